// Binary search, distinct values and order statistics, one line of a tensor at a time.
#include "kernels/search.h"

#include <algorithm>
#include <numeric>

#include "kernels/index_support.h"
#include "kernels/sort.h"

namespace tp::kernels {
namespace {

template <class T>
bool is_nan(T v) {
  return v != v;
}
/// The order of sort: nan last.
template <class T>
bool before(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

Dtype order_dtype(const OpSchema& op, Dtype d) {
  if (TP_UNLIKELY(is_complex(d))) type_error(op.name, ": complex numbers have no order");
  return d == Dtype::Bool ? Dtype::I32 : dtype_of(compute_type(d));
}

template <class F>
void with_order(Dtype d, const F& f) {
  switch (d) {
    case Dtype::I32: return f(std::int32_t());
    case Dtype::I64: return f(std::int64_t());
    case Dtype::U64: return f(std::uint64_t());
    case Dtype::F32: return f(float());
    default: return f(double());
  }
}

// Calls pick(line, length, scratch) -> position for every line along `dim` and gathers values and positions.
template <class Pick>
std::array<Storage, 2> pick_lines(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim,
                                  double ns_per_element, const Pick& pick) {
  const Dtype work = order_dtype(op, input.dtype());
  const int d = wrap_dim(op.name, dim, input.dim());
  Dims dims;
  if (input.dim()) dims.push_back(d);
  const Shape shape = reduced_shape(input.sizes(), dims, keepdim);
  Storage values = empty(shape, work), index = empty(shape, Dtype::I64);
  const std::int64_t n = input.dim() ? input.size(d) : 1, lines = values.numel();
  if (TP_UNLIKELY(n == 0 && lines != 0))
    index_error(op.name, ": dimension ", d, " of shape ", input.sizes(), " has no elements");
  if (lines == 0) return {cast(values, input.dtype()), index};
  const Storage x = contiguous(moved_dim(cast(input, work), d, std::max(0, input.dim() - 1)));
  modes::Unlocked unlocked(double(x.numel()) * ns_per_element > 50000);
  with_order(work, [&](auto type) {
    using T = decltype(type);
    parallel_tiles(lines, grain_for(ns_per_element * double(n)), [&](std::int64_t b, std::int64_t e) {
      const Scratch<std::int64_t> order(n);
      for (std::int64_t i = b; i < e; ++i) {
        const T* line = x.data<T>() + i * n;
        const std::int64_t at = pick(line, n, order.get());
        values.data<T>()[i] = line[at];
        index.data<std::int64_t>()[i] = at;
      }
    });
  });
  return {cast(values, input.dtype()), index};
}

// Position of the k-th smallest (from 0); of equal elements the earlier one counts as smaller.
template <class T>
std::int64_t kth(const T* line, std::int64_t n, std::int64_t k, std::int64_t* order) {
  std::iota(order, order + n, 0);
  std::nth_element(order, order + k, order + n, [line](std::int64_t a, std::int64_t b) {
    return before(line[a], line[b]) || (!before(line[b], line[a]) && a < b);
  });
  return order[k];
}

template <class T>
std::int64_t first_nan(const T* line, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (is_nan(line[i])) return i;
  return -1;
}

template <class T>
void search_line(const T* line, std::int64_t n, const T* values, std::int64_t count, std::int64_t* out, bool right) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T v = values[i];
    out[i] = right ? std::upper_bound(line, line + n, v, before<T>) - line
                   : std::lower_bound(line, line + n, v, before<T>) - line;
  }
}

// Runs of equal neighbours of `x` (in the given order, when there is one).
template <class T>
std::array<Storage, 3> runs(const Storage& x, const std::int64_t* order, Dtype dtype, const Shape& shape) {
  const std::int64_t n = x.numel();
  const T* v = x.data<T>();
  Storage inverse = empty(shape, Dtype::I64);
  std::int64_t* place = inverse.data<std::int64_t>();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    count += i == 0 || !(v[i] == v[i - 1]);
    place[order ? order[i] : i] = count - 1;
  }
  Storage values = empty(Shape{count}, x.dtype()), counts = zeros_storage(Shape{count}, Dtype::I64);
  std::int64_t k = -1;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i == 0 || !(v[i] == v[i - 1])) values.data<T>()[++k] = v[i];
    ++counts.data<std::int64_t>()[k];
  }
  return {cast(values, dtype), std::move(inverse), std::move(counts)};
}

}  // namespace

Storage searchsorted(const OpSchema& op, const Storage& sorted_sequence, const Storage& input, bool right) {
  if (TP_UNLIKELY(sorted_sequence.dim() == 0)) value_error(op.name, ": sorted_sequence must have at least 1 dimension");
  const bool shared = sorted_sequence.dim() == 1;
  bool fits = shared || sorted_sequence.dim() == input.dim();
  for (int d = 0; fits && !shared && d < input.dim() - 1; ++d) fits = input.size(d) == sorted_sequence.size(d);
  if (TP_UNLIKELY(!fits))
    value_error(op.name, ": sorted_sequence of shape ", sorted_sequence.sizes(),
                " must be 1-d or match input of shape ", input.sizes(), " in all dimensions but the last");
  Promotion p;
  p.add(sorted_sequence.dtype(), false, false);
  p.add(input.dtype(), false, false);
  const Dtype work = order_dtype(op, p.result());
  const Storage line = contiguous(cast(sorted_sequence, work)), x = contiguous(cast(input, work));
  Storage out = empty(input.sizes(), Dtype::I64);
  const std::int64_t n = sorted_sequence.size(sorted_sequence.dim() - 1);
  const std::int64_t count = shared ? x.numel() : x.dim() ? x.size(x.dim() - 1) : 1;
  const std::int64_t lines = count ? x.numel() / count : 0;
  modes::Unlocked unlocked(x.numel() > 4096);
  with_order(work, [&](auto type) {
    using T = decltype(type);
    if (shared) {
      parallel_for(0, x.numel(), 1024, [&](std::int64_t b, std::int64_t e) {
        search_line(line.data<T>(), n, x.data<T>() + b, e - b, out.data<std::int64_t>() + b, right);
      });
      return;
    }
    parallel_tiles(lines, grain_for(30.0 * double(count)), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i)
        search_line(line.data<T>() + i * n, n, x.data<T>() + i * count, count, out.data<std::int64_t>() + i * count,
                    right);
    });
  });
  return out;
}

Storage bucketize(const OpSchema& op, const Storage& input, const Storage& boundaries, bool right) {
  if (TP_UNLIKELY(boundaries.dim() != 1))
    value_error(op.name, ": boundaries must be 1-d, got shape ", boundaries.sizes());
  return searchsorted(op, boundaries, input, right);
}

std::array<Storage, 3> unique(const OpSchema& op, const Storage& input) {
  const Dtype work = order_dtype(op, input.dtype());
  const Storage flat = contiguous(reshaped(cast(input, work), Shape{input.numel()}));
  const auto [values, order] = sort(op, flat, 0, false, true);
  std::array<Storage, 3> out;
  with_order(work, [&](auto type) {
    out = runs<decltype(type)>(values, order.template data<std::int64_t>(), input.dtype(), input.sizes());
  });
  return out;
}

std::array<Storage, 3> unique_consecutive(const OpSchema& op, const Storage& input) {
  const Dtype work = order_dtype(op, input.dtype());
  const Storage flat = contiguous(reshaped(cast(input, work), Shape{input.numel()}));
  std::array<Storage, 3> out;
  with_order(work, [&](auto type) { out = runs<decltype(type)>(flat, nullptr, input.dtype(), input.sizes()); });
  return out;
}

std::array<Storage, 2> kthvalue(const OpSchema& op, const Storage& input, std::int64_t k, std::int64_t dim,
                                bool keepdim) {
  const int d = wrap_dim(op.name, dim, input.dim());
  const std::int64_t n = input.dim() ? input.size(d) : 1;
  if (TP_UNLIKELY(k < 1 || k > n))
    value_error(op.name, ": k ", k, " is out of range for dimension ", d, " with size ", n);
  return pick_lines(op, input, dim, keepdim, 10,
                    [k](const auto* line, std::int64_t n, std::int64_t* order) { return kth(line, n, k - 1, order); });
}

std::array<Storage, 2> median_dim(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim) {
  return pick_lines(op, input, dim, keepdim, 10, [](const auto* line, std::int64_t n, std::int64_t* order) {
    const std::int64_t nan = first_nan(line, n);
    return nan >= 0 ? nan : kth(line, n, (n - 1) / 2, order);
  });
}

Storage median(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(input.numel() == 0)) index_error(op.name, ": a tensor of shape ", input.sizes(), " has no median");
  return median_dim(op, reshaped(input, Shape{input.numel()}), 0, false)[0];
}

Storage nanmedian(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(input.numel() == 0)) index_error(op.name, ": a tensor of shape ", input.sizes(), " has no median");
  return pick_lines(op, reshaped(input, Shape{input.numel()}), 0, false, 10,
                    [](const auto* line, std::int64_t n, std::int64_t* order) {
                      std::int64_t numbers = 0;
                      for (std::int64_t i = 0; i < n; ++i) numbers += !is_nan(line[i]);
                      return numbers ? kth(line, n, (numbers - 1) / 2, order) : 0;
                    })[0];
}

std::array<Storage, 2> mode(const OpSchema& op, const Storage& input, std::int64_t dim, bool keepdim) {
  return pick_lines(op, input, dim, keepdim, 60, [](const auto* line, std::int64_t n, std::int64_t* order) {
    std::iota(order, order + n, 0);
    std::sort(order, order + n, [line](std::int64_t a, std::int64_t b) {
      return before(line[a], line[b]) || (!before(line[b], line[a]) && a < b);
    });
    std::int64_t best = order[0], most = 0;
    for (std::int64_t i = 0, run = 0; i < n; ++i) {
      run = i && line[order[i]] == line[order[i - 1]] ? run + 1 : 1;
      if (run > most || (run == most && line[order[i]] == line[best])) {
        most = run;
        best = order[i];
      }
    }
    return best;
  });
}

}  // namespace tp::kernels
