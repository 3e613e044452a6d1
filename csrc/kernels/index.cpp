// Indexing along one dimension: gather, scatter and their sums, rows of a table, masks.
#include "kernels/index.h"

#include <algorithm>
#include <cstring>

#include "core/modes.h"
#include "core/parallel_for.h"
#include "kernels/elementwise.h"
#include "kernels/index_support.h"
#include "kernels/views.h"

namespace tp::kernels {
namespace {

/// Runs over all positions of `index` in rows of its last dimension: f(begin of the row in index, offset in `whole`, offset
/// in `other`, n); the offsets leave the indexed dimension out.
struct RowWalk {
  Shape sizes;
  Strides whole, other;
  int dim;
  std::int64_t rows, length;

  RowWalk(const Storage& index, const Strides& whole_strides, const Strides& other_strides, int dim_)
      : sizes(index.sizes()), whole(whole_strides), other(other_strides), dim(dim_) {
    if (sizes.empty()) {
      sizes.push_back(1);
      whole = {1};
      other = {1};
    }
    length = sizes.back();
    rows = length ? product(sizes) / length : 0;
  }
  template <class F>
  void run(std::int64_t begin, std::int64_t end, const F& f) const {
    const int last = sizes.size() - 1;
    for (std::int64_t r = begin; r < end; ++r) {
      std::int64_t rest = r, a = 0, b = 0;
      for (int i = last - 1; i >= 0; --i) {
        const std::int64_t at = rest % sizes[i];
        rest /= sizes[i];
        if (i != dim) a += at * whole[i];
        b += at * other[i];
      }
      f(r * length, a, b);
    }
  }
  std::int64_t step() const { return dim == sizes.size() - 1 ? 0 : whole.back(); }
};

void check_index_sizes(const OpSchema& op, const Storage& index, const Storage& input, int dim) {
  bool fits = index.dim() == input.dim();
  for (int i = 0; fits && i < index.dim(); ++i) fits = i == dim || index.size(i) <= input.size(i);
  if (!fits && index.numel() != 0)
    runtime_error(op.name, ": index of sizes ", index.sizes(), " does not fit into input of sizes ", input.sizes(),
                  " in the dimensions other than ", dim);
}
void check_source_sizes(const OpSchema& op, const Storage& index, const Storage& src) {
  bool fits = index.dim() == src.dim();
  for (int i = 0; fits && i < index.dim(); ++i) fits = index.size(i) <= src.size(i);
  if (!fits && index.numel() != 0)
    runtime_error(op.name, ": index of sizes ", index.sizes(), " is larger than src of sizes ", src.sizes());
}
std::int64_t dim_size(const Storage& s, int dim) { return s.dim() ? s.size(dim) : 1; }
std::int64_t dim_stride(const Storage& s, int dim) { return s.dim() ? s.stride(dim) : 1; }

struct Pieces {  // contiguous [outer, length, inner]
  std::int64_t outer = 1, length = 1, inner = 1;
  Pieces(const Shape& s, int dim) {
    for (int i = 0; i < s.size(); ++i) (i < dim ? outer : i == dim ? length : inner) *= s[i];
  }
};

}  // namespace

Storage gather(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index) {
  const int d = checked_dim(op, dim, input.dim());
  const Storage at = index64(op, "index", index);
  check_index_sizes(op, at, input, d);
  check_range(op, at, dim_size(input, d), d);
  Storage out = empty(index.sizes(), input.dtype());
  if (out.numel() == 0) return out;
  const RowWalk walk(at, input.strides(), out.strides(), d);
  const std::int64_t along = dim_stride(input, d), step = walk.step();
  const std::int64_t* where = at.data<std::int64_t>();
  const modes::Unlocked unlocked(out.numel() > 65536);
  by_item_size(input.dtype(), [&](auto word) {
    using W = decltype(word);
    const W* from = input.data<W>();
    W* to = out.data<W>();
    parallel_for(0, walk.rows, std::max<std::int64_t>(1, 16384 / walk.length), [&](std::int64_t b, std::int64_t e) {
      walk.run(b, e, [&](std::int64_t row, std::int64_t base, std::int64_t) {
        for (std::int64_t j = 0; j < walk.length; ++j) to[row + j] = from[base + where[row + j] * along + j * step];
      });
    });
  });
  return out;
}

namespace {

/// Contiguous copy of input with f(place in it, place in src) called for every index, in order.
template <class Words, class F>
void scatter_rows(const Storage& out, const Storage& at, const Strides& src_strides, int d, const F& f) {
  const RowWalk walk(at, out.strides(), src_strides, d);
  const std::int64_t along = dim_stride(out, d), step = walk.step(), src_step = walk.other.back();
  const std::int64_t* where = at.data<std::int64_t>();
  walk.run(0, walk.rows, [&](std::int64_t row, std::int64_t base, std::int64_t src) {
    for (std::int64_t j = 0; j < walk.length; ++j) f(base + where[row + j] * along + j * step, src + j * src_step);
  });
}

}  // namespace

Storage scatter(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Storage& src) {
  const int d = checked_dim(op, dim, input.dim());
  const Storage at = index64(op, "index", index);
  check_index_sizes(op, at, input, d);
  check_source_sizes(op, at, src);
  check_range(op, at, dim_size(input, d), d);
  if (src.dtype() != input.dtype())
    runtime_error(op.name, ": src is ", dtype_name(src.dtype()), " but input is ", dtype_name(input.dtype()));
  Storage out = empty(input.sizes(), input.dtype());
  copy_into(out, input);
  if (at.numel() == 0) return out;
  by_item_size(input.dtype(), [&](auto word) {
    using W = decltype(word);
    W* to = out.data<W>();
    const W* from = src.data<W>();
    scatter_rows<W>(out, at, src.strides(), d, [&](std::int64_t a, std::int64_t b) { to[a] = from[b]; });
  });
  return out;
}

Storage scatter_value(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Scalar& value) {
  Storage one = empty({}, input.dtype());
  fill(one, value);
  const Strides still(index.dim(), 0);
  return scatter(op, input, dim, index, one.with_geometry(index.sizes(), still, 0));
}

Storage scatter_add(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Storage& src) {
  const int d = checked_dim(op, dim, input.dim());
  const Storage at = index64(op, "index", index);
  check_index_sizes(op, at, input, d);
  check_source_sizes(op, at, src);
  check_range(op, at, dim_size(input, d), d);
  if (src.dtype() != input.dtype())
    runtime_error(op.name, ": src is ", dtype_name(src.dtype()), " but input is ", dtype_name(input.dtype()));
  Storage out = accumulator(input);
  if (at.numel() != 0)
    by_compute_type(input.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Storage values = cast(src, out.dtype());
      T* to = out.data<T>();
      const T* from = values.data<T>();
      scatter_rows<T>(out, at, values.strides(), d, [&](std::int64_t a, std::int64_t b) { add_to(to[a], from[b]); });
    });
  return cast(out, input.dtype());
}

Storage index_select(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index) {
  const int d = checked_dim(op, dim, input.dim());
  if (index.dim() > 1) index_error(op.name, ": index must be a vector, it has ", index.dim(), " dimensions");
  const Storage at = index64(op, "index", index);
  check_range(op, at, dim_size(input, d), d);
  const Storage from = contiguous(input);
  Shape sizes = input.sizes();
  if (input.dim()) sizes[d] = at.numel();
  Storage out = empty(sizes, input.dtype());
  if (out.numel() == 0) return out;
  const Pieces p(input.sizes(), d);
  const std::int64_t n = at.numel(), bytes = p.inner * std::int64_t(item_size(input.dtype()));
  const std::int64_t* where = at.data<std::int64_t>();
  const modes::Unlocked unlocked(out.numel() > 65536);
  parallel_for(0, p.outer * n, std::max<std::int64_t>(1, 65536 / bytes), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t r = b; r < e; ++r)
      std::memcpy(out.raw() + r * bytes, from.raw() + (r / n * p.length + where[r % n]) * bytes, std::size_t(bytes));
  });
  return out;
}

Storage index_add(const OpSchema& op, const Storage& input, std::int64_t dim, const Storage& index, const Storage& source,
                  const Scalar& alpha) {
  const int d = checked_dim(op, dim, input.dim());
  if (index.dim() > 1) index_error(op.name, ": index must be a vector, it has ", index.dim(), " dimensions");
  const Storage at = index64(op, "index", index);
  Shape expected = input.sizes();
  if (input.dim()) expected[d] = at.numel();
  if (!(source.sizes() == expected))
    runtime_error(op.name, ": source must have sizes ", expected, " for ", at.numel(), " indices along dimension ", d, "; it has ",
                  source.sizes());
  if (source.dtype() != input.dtype())
    runtime_error(op.name, ": source is ", dtype_name(source.dtype()), " but input is ", dtype_name(input.dtype()));
  check_range(op, at, dim_size(input, d), d);
  Storage out = accumulator(input);
  const Storage values = contiguous(cast(source, out.dtype()));
  const Pieces p(input.sizes(), d);
  const std::int64_t n = at.numel();
  const std::int64_t* where = at.data<std::int64_t>();
  by_compute_type(input.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T scale = scalar_to<T>(alpha);
    for (std::int64_t o = 0; o < p.outer; ++o)
      for (std::int64_t k = 0; k < n; ++k) {
        T* to = out.data<T>() + (o * p.length + where[k]) * p.inner;
        const T* from = values.data<T>() + (o * n + k) * p.inner;
        if constexpr (std::is_same_v<T, std::uint8_t>)
          for (std::int64_t j = 0; j < p.inner; ++j) to[j] = to[j] | (std::uint8_t(scale != 0) & from[j]);
        else
          for (std::int64_t j = 0; j < p.inner; ++j) to[j] = to[j] + scale * from[j];
      }
  });
  return cast(out, input.dtype());
}

namespace {

Storage as_mask(const OpSchema& op, const Storage& mask) {
  if (mask.dtype() != Dtype::Bool) runtime_error(op.name, ": mask must be bool, got ", dtype_name(mask.dtype()));
  return contiguous(mask);
}
std::int64_t count_true(const Storage& mask) {
  const std::uint8_t* m = mask.data<std::uint8_t>();
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < mask.numel(); ++i) n += m[i] != 0;
  return n;
}

}  // namespace

Storage masked_select(const OpSchema& op, const Storage& input, const Storage& mask) {
  const Storage* both[] = {&input, &mask};
  const Shape full = broadcast_shapes(op.name, both);
  const Storage m = as_mask(op, expand(op, mask, full));
  const Storage from = contiguous(expand(op, input, full));
  Storage out = empty({count_true(m)}, input.dtype());
  by_item_size(input.dtype(), [&](auto word) {
    using W = decltype(word);
    const std::uint8_t* keep = m.data<std::uint8_t>();
    W* to = out.data<W>();
    for (std::int64_t i = 0; i < m.numel(); ++i)
      if (keep[i]) *to++ = from.data<W>()[i];
  });
  return out;
}

Storage masked_scatter(const OpSchema& op, const Storage& input, const Storage& mask, const Storage& source) {
  const Storage m = as_mask(op, mask);
  if (!(m.sizes() == input.sizes()))
    runtime_error(op.name, ": mask has sizes ", m.sizes(), " but input has ", input.sizes());
  const Storage from = contiguous(cast(source, input.dtype()));
  const std::int64_t needed = count_true(m);
  if (from.numel() < needed)
    runtime_error(op.name, ": the mask picks ", needed, " places but source has ", from.numel(), " elements");
  Storage out = empty(input.sizes(), input.dtype());
  copy_into(out, input);
  by_item_size(input.dtype(), [&](auto word) {
    using W = decltype(word);
    const std::uint8_t* keep = m.data<std::uint8_t>();
    const W* next = from.data<W>();
    for (std::int64_t i = 0; i < m.numel(); ++i)
      if (keep[i]) out.data<W>()[i] = *next++;
  });
  return out;
}

Storage nonzero(const OpSchema&, const Storage& input) {
  Storage m = empty(input.sizes(), Dtype::Bool);
  copy_into(m, input);
  const std::int64_t n = count_true(m);
  Storage out = empty({n, input.dim()}, Dtype::I64);
  std::int64_t* to = out.data<std::int64_t>();
  const std::uint8_t* keep = m.data<std::uint8_t>();
  for (std::int64_t i = 0; i < m.numel(); ++i) {
    if (!keep[i]) continue;
    std::int64_t rest = i;
    for (int d = input.dim() - 1; d >= 0; --d) {
      to[d] = rest % input.size(d);
      rest /= input.size(d);
    }
    to += input.dim();
  }
  return out;
}

Storage one_hot(const OpSchema& op, const Storage& input, std::int64_t num_classes) {
  const Storage at = index64(op, "input", input);
  const std::int64_t* p = at.data<std::int64_t>();
  if (num_classes < 0) {
    if (at.numel() == 0) value_error(op.name, ": num_classes must be given for an empty input");
    num_classes = 1 + *std::max_element(p, p + at.numel());
  }
  for (std::int64_t i = 0; i < at.numel(); ++i)
    if (p[i] < 0 || p[i] >= num_classes) value_error(op.name, ": class ", p[i], " is outside 0..", num_classes - 1);
  Shape sizes = input.sizes();
  sizes.push_back(num_classes);
  Storage out = zeros_storage(sizes, Dtype::I64);
  for (std::int64_t i = 0; i < at.numel(); ++i) out.data<std::int64_t>()[i * num_classes + p[i]] = 1;
  return out;
}

namespace {

std::optional<std::int64_t> padding_row(const OpSchema& op, std::optional<std::int64_t> padding_idx, std::int64_t rows) {
  if (!padding_idx) return padding_idx;
  if (*padding_idx < -rows || *padding_idx >= rows)
    value_error(op.name, ": padding_idx ", *padding_idx, " is outside a table of ", rows, " rows");
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

}  // namespace

Storage embedding(const OpSchema& op, const Storage& input, const Storage& weight, std::optional<std::int64_t> padding_idx) {
  if (weight.dim() != 2) value_error(op.name, ": weight must be a matrix [rows, width], it has sizes ", weight.sizes());
  padding_row(op, padding_idx, weight.size(0));
  const Storage at = index64(op, "input", input);
  const Storage rows = index_select(op, weight, 0, at.with_geometry({at.numel()}, {1}, at.offset()));
  Shape sizes = input.sizes();
  sizes.push_back(weight.size(1));
  return rows.with_geometry(sizes, contiguous_strides(sizes), 0);
}

Storage embedding_backward(const OpSchema& op, const Storage& grad, const Storage& input, std::int64_t num_weights,
                           std::optional<std::int64_t> padding_idx) {
  const std::int64_t skip = padding_row(op, padding_idx, num_weights).value_or(-1);
  const Storage at = index64(op, "input", input);
  const std::int64_t width = grad.size(grad.dim() - 1);
  const Dtype sum_type = dtype_of(compute_type(grad.dtype()));
  const Storage g = contiguous(cast(grad, sum_type));
  Storage out = zeros_storage({num_weights, width}, sum_type);
  const std::int64_t* where = at.data<std::int64_t>();
  by_compute_type(sum_type, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t k = 0; k < at.numel(); ++k) {
      if (where[k] == skip) continue;
      T* to = out.data<T>() + where[k] * width;
      const T* from = g.data<T>() + k * width;
      for (std::int64_t j = 0; j < width; ++j) add_to(to[j], from[j]);
    }
  });
  return cast(out, grad.dtype());
}

}  // namespace tp::kernels
