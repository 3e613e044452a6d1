// Views that give one tensor: order of dimensions, sizes, single parts.
#include "kernels/views.h"

#include <algorithm>

#include "core/complex.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {
namespace {

/// `s` without dimension `d`.
Storage without(const Storage& s, int d, std::int64_t offset) {
  Shape sizes;
  Strides strides;
  sizes.resize(s.dim() - 1);
  strides.resize(s.dim() - 1);
  const std::int64_t *n = s.sizes().data(), *by = s.strides().data();
  std::int64_t *to_n = sizes.data(), *to_by = strides.data();
  for (int i = 0; i + 1 < s.dim(); ++i) {
    to_n[i] = n[i + (i >= d)];
    to_by[i] = by[i + (i >= d)];
  }
  return s.with_geometry(sizes, strides, offset);
}

Storage swapped(const Storage& s, int a, int b) {
  Shape sizes = s.sizes();
  Strides strides = s.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return s.with_geometry(sizes, strides, s.offset());
}

Storage ordered(const Storage& s, const Dims& order) {
  Shape sizes;
  Strides strides;
  sizes.resize(order.size());
  strides.resize(order.size());
  for (int i = 0; i < order.size(); ++i) {
    sizes[i] = s.size(int(order[i]));
    strides[i] = s.stride(int(order[i]));
  }
  return s.with_geometry(sizes, strides, s.offset());
}

template <class T>
void negate_imaginary(T* v, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) v[i].im = -v[i].im;
}

int matrix_dim(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(input.dim() < 2))
    value_error(op.name, ": needs a tensor of at least 2 dimensions, got ", input.dim(), "-d");
  return input.dim() - 2;
}

}  // namespace

// ---- order of dimensions -----------------------------------------------------------------------------------------

Storage transpose(const OpSchema& op, const Storage& input, std::int64_t dim0, std::int64_t dim1) {
  const int a = wrap_dim(op.name, dim0, input.dim()), b = wrap_dim(op.name, dim1, input.dim());
  return input.dim() == 0 ? input : swapped(input, a, b);
}

Storage permute(const OpSchema& op, const Storage& input, const Dims& dims) {
  const int n = input.dim();
  if (TP_UNLIKELY(dims.size() != n))
    value_error(op.name, ": dims ", dims, " has ", dims.size(), " entries for a ", n, "-d tensor");
  Dims order(n, -1);
  for (int i = 0; i < n; ++i) {
    const int d = wrap_dim(op.name, dims[i], n);
    for (int j = 0; j < i; ++j)
      if (TP_UNLIKELY(order[j] == d)) value_error(op.name, ": dim ", dims[i], " appears twice in dims ", dims);
    order[i] = d;
  }
  return ordered(input, order);
}

Storage movedim(const OpSchema& op, const Storage& input, const Dims& source, const Dims& destination) {
  const int n = input.dim();
  if (TP_UNLIKELY(source.size() != destination.size()))
    value_error(op.name, ": source ", source, " and destination ", destination, " differ in length");
  if (n == 0) {
    for (std::int64_t d : source) wrap_dim(op.name, d, n, "source dim");
    for (std::int64_t d : destination) wrap_dim(op.name, d, n, "destination dim");
    return input;
  }
  Dims order(n, -1), taken(n, 0);
  for (int i = 0; i < source.size(); ++i) {
    const int from = wrap_dim(op.name, source[i], n, "source dim");
    const int to = wrap_dim(op.name, destination[i], n, "destination dim");
    if (TP_UNLIKELY(taken[from])) value_error(op.name, ": dim ", source[i], " appears twice in source ", source);
    if (TP_UNLIKELY(order[to] != -1))
      value_error(op.name, ": dim ", destination[i], " appears twice in destination ", destination);
    taken[from] = 1;
    order[to] = from;
  }
  for (int i = 0, next = 0; i < n; ++i) {
    if (order[i] != -1) continue;
    while (taken[next]) ++next;
    order[i] = next++;
  }
  return ordered(input, order);
}

Storage t(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(input.dim() > 2))
    value_error(op.name, ": needs a tensor of at most 2 dimensions, got ", input.dim(), "-d; use mT or transpose");
  return input.dim() < 2 ? input : swapped(input, 0, 1);
}

Storage numpy_T(const OpSchema&, const Storage& input) {
  Dims order(input.dim(), 0);
  for (int i = 0; i < input.dim(); ++i) order[i] = input.dim() - 1 - i;
  return ordered(input, order);
}

Storage mT(const OpSchema& op, const Storage& input) {
  const int d = matrix_dim(op, input);
  return swapped(input, d, d + 1);
}

Storage mH(const OpSchema& op, const Storage& input) {
  const Storage turned = mT(op, input);
  if (!is_complex(input.dtype())) return turned;
  Storage out = empty(turned.sizes(), turned.dtype());
  copy_into(out, turned);
  if (out.dtype() == Dtype::C64)
    negate_imaginary(out.data<c64>(), out.numel());
  else
    negate_imaginary(out.data<c128>(), out.numel());
  return out;
}

// ---- sizes -------------------------------------------------------------------------------------------------------

Storage reshape(const OpSchema& op, const Storage& input, const Dims& shape) {
  return reshaped(input, infer_shape(op.name, shape, input.numel()));
}

Storage view(const OpSchema& op, const Storage& input, const Dims& size) {
  const Shape shape = infer_shape(op.name, size, input.numel());
  if (input.is_contiguous()) return input.with_sizes(shape);
  std::optional<Strides> strides = view_strides(input, shape);
  if (TP_UNLIKELY(!strides))
    runtime_error(op.name, ": shape ", size, " is not compatible with a tensor of shape ", input.sizes(),
                  " and strides ", input.strides(),
                  " (a dimension would span two separate ranges of memory); use reshape, which copies");
  return input.with_geometry(shape, *std::move(strides), input.offset());
}

Storage flatten(const OpSchema& op, const Storage& input, std::int64_t start_dim, std::int64_t end_dim) {
  const int n = input.dim();
  const int start = wrap_dim(op.name, start_dim, n, "start_dim"), end = wrap_dim(op.name, end_dim, n, "end_dim");
  if (n == 0) return reshaped(input, Shape{1});
  if (TP_UNLIKELY(start > end))
    value_error(op.name, ": start_dim ", start_dim, " comes after end_dim ", end_dim, " in a ", n, "-d tensor");
  if (start == end) return input;
  Shape shape;
  std::int64_t merged = 1;
  for (int i = 0; i < n; ++i) {
    if (i >= start && i <= end) {
      merged *= input.size(i);
      if (i == end) shape.push_back(merged);
    } else {
      shape.push_back(input.size(i));
    }
  }
  return reshaped(input, shape);
}

Storage unflatten(const OpSchema& op, const Storage& input, std::int64_t dim, const Dims& sizes) {
  const int d = wrap_dim(op.name, dim, input.dim());
  if (TP_UNLIKELY(input.dim() == 0)) value_error(op.name, ": a 0-d tensor has no dimension to unflatten");
  if (TP_UNLIKELY(sizes.empty())) value_error(op.name, ": sizes must not be empty");
  const Shape inner = infer_shape(op.name, sizes, input.size(d));
  Shape shape;
  Strides strides;
  for (int i = 0; i < input.dim(); ++i) {
    if (i != d) {
      shape.push_back(input.size(i));
      strides.push_back(input.stride(i));
      continue;
    }
    std::int64_t step = input.stride(d) * input.size(d);
    for (std::int64_t s : inner) {
      step = s ? step / s : input.stride(d);
      shape.push_back(s);
      strides.push_back(step);
    }
  }
  return input.with_geometry(shape, strides, input.offset());
}

Storage expand(const OpSchema& op, const Storage& input, const Dims& size) {
  const int n = size.size(), shift = n - input.dim();
  if (TP_UNLIKELY(shift < 0))
    value_error(op.name, ": sizes ", size, " have fewer dimensions than the tensor of shape ", input.sizes());
  Shape shape = size;
  Strides strides(n, 0);
  for (int i = 0; i < n; ++i) {
    const std::int64_t own = i < shift ? 1 : input.size(i - shift);
    if (size[i] == -1) {
      if (TP_UNLIKELY(i < shift))
        value_error(op.name, ": -1 in sizes ", size, " stands for a new leading dimension, whose size must be given");
      shape[i] = own;
    } else if (TP_UNLIKELY(size[i] < 0 || (own != 1 && own != size[i]))) {
      value_error(op.name, ": shape ", input.sizes(), " cannot be expanded to ", size, ": size ", own, " in dimension ",
                  i, " is neither 1 nor ", size[i]);
    }
    if (i >= shift && (own != 1 || shape[i] == 1)) strides[i] = input.stride(i - shift);
  }
  return input.with_geometry(shape, strides, input.offset());
}

Storage squeeze(const OpSchema& op, const Storage& input, const std::optional<Dims>& dim) {
  Dims chosen;
  if (dim) {
    if (dim->empty()) return input;
    chosen = wrap_dims(op.name, dim, input.dim());
  }
  Shape sizes;
  Strides strides;
  for (int i = 0; i < input.dim(); ++i) {
    const bool named = !dim || std::find(chosen.begin(), chosen.end(), i) != chosen.end();
    if (named && input.size(i) == 1) continue;
    sizes.push_back(input.size(i));
    strides.push_back(input.stride(i));
  }
  return input.with_geometry(sizes, strides, input.offset());
}

Storage unsqueeze(const OpSchema& op, const Storage& input, std::int64_t dim) {
  const int n = input.dim();
  if (TP_UNLIKELY(dim < -(n + 1) || dim > n))
    index_error(op.name, ": dim ", dim, " out of range for a ", n, "-d tensor (expected ", -(n + 1), "..", n, ")");
  const int d = int(dim < 0 ? dim + n + 1 : dim);
  Shape sizes = input.sizes();
  Strides strides = input.strides();
  const std::int64_t step = d < n ? sizes[d] * strides[d] : 1;
  sizes.insert(d, 1);
  strides.insert(d, step);
  return input.with_geometry(sizes, strides, input.offset());
}

// ---- parts -------------------------------------------------------------------------------------------------------

Storage select(const OpSchema& op, const Storage& input, std::int64_t dim, std::int64_t index) {
  if (TP_UNLIKELY(input.dim() == 0)) index_error(op.name, ": a 0-d tensor cannot be indexed; use item() for its value");
  const int d = wrap_dim(op.name, dim, input.dim());
  const std::int64_t n = input.size(d);
  if (TP_UNLIKELY(index < -n || index >= n))
    index_error(op.name, ": index ", index, " is out of range for dimension ", d, " with size ", n);
  return without(input, d, input.offset() + (index < 0 ? index + n : index) * input.stride(d));
}

Storage slice(const OpSchema& op, const Storage& input, std::int64_t dim, std::optional<std::int64_t> start,
              std::optional<std::int64_t> end, std::int64_t step) {
  if (TP_UNLIKELY(input.dim() == 0)) index_error(op.name, ": a 0-d tensor cannot be sliced");
  const int d = wrap_dim(op.name, dim, input.dim());
  if (TP_UNLIKELY(step <= 0)) value_error(op.name, ": step must be positive, got ", step, "; use flip to reverse");
  const std::int64_t n = input.size(d);
  const auto bound = [n](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + n : v, 0, n); };
  const std::int64_t from = bound(start.value_or(0)), to = std::max(from, bound(end.value_or(n)));
  Shape sizes = input.sizes();
  Strides strides = input.strides();
  sizes[d] = (to - from + step - 1) / step;
  const std::int64_t offset = input.offset() + from * strides[d];
  strides[d] *= step;
  return input.with_geometry(sizes, strides, offset);
}

Storage narrow(const OpSchema& op, const Storage& input, std::int64_t dim, std::int64_t start, std::int64_t length) {
  if (TP_UNLIKELY(input.dim() == 0)) index_error(op.name, ": a 0-d tensor cannot be narrowed");
  const int d = wrap_dim(op.name, dim, input.dim());
  const std::int64_t n = input.size(d);
  if (TP_UNLIKELY(length < 0)) value_error(op.name, ": length must not be negative, got ", length);
  if (TP_UNLIKELY(start < -n || start > n))
    index_error(op.name, ": start ", start, " is out of range for dimension ", d, " with size ", n);
  const std::int64_t from = start < 0 ? start + n : start;
  if (TP_UNLIKELY(from + length > n))
    index_error(op.name, ": start ", start, " with length ", length, " exceeds dimension ", d, " with size ", n);
  Shape sizes = input.sizes();
  sizes[d] = length;
  return input.with_geometry(std::move(sizes), input.strides(), input.offset() + from * input.stride(d));
}

Storage diagonal(const OpSchema& op, const Storage& input, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  if (TP_UNLIKELY(input.dim() < 2))
    value_error(op.name, ": needs a tensor of at least 2 dimensions, got ", input.dim(), "-d");
  const int a = wrap_dim(op.name, dim1, input.dim(), "dim1"), b = wrap_dim(op.name, dim2, input.dim(), "dim2");
  if (TP_UNLIKELY(a == b)) value_error(op.name, ": dim1 and dim2 are the same dimension (", dim1, ", ", dim2, ")");
  const std::int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
  const std::int64_t length = std::max<std::int64_t>(0, std::min(input.size(a) - down, input.size(b) - right));
  const std::int64_t first = length ? down * input.stride(a) + right * input.stride(b) : 0;
  Shape sizes;
  Strides strides;
  for (int i = 0; i < input.dim(); ++i) {
    if (i == a || i == b) continue;
    sizes.push_back(input.size(i));
    strides.push_back(input.stride(i));
  }
  sizes.push_back(length);
  strides.push_back(input.stride(a) + input.stride(b));
  return input.with_geometry(sizes, strides, input.offset() + first);
}

Storage unfold(const OpSchema& op, const Storage& input, std::int64_t dimension, std::int64_t size, std::int64_t step) {
  const int d = wrap_dim(op.name, dimension, input.dim(), "dimension");
  const std::int64_t n = input.dim() ? input.size(d) : 1;
  if (TP_UNLIKELY(size < 0 || size > n))
    value_error(op.name, ": window size ", size, " does not fit dimension ", d, " with size ", n);
  if (TP_UNLIKELY(step <= 0)) value_error(op.name, ": step must be positive, got ", step);
  Shape sizes = input.sizes();
  Strides strides = input.strides();
  const std::int64_t stride = input.dim() ? strides[d] : 1;
  if (input.dim()) {
    sizes[d] = (n - size) / step + 1;
    strides[d] = stride * step;
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return input.with_geometry(sizes, strides, input.offset());
}

Storage as_strided(const OpSchema& op, const Storage& input, const Dims& size, const Dims& stride,
                   std::optional<std::int64_t> storage_offset) {
  if (TP_UNLIKELY(size.size() != stride.size()))
    value_error(op.name, ": size ", size, " and stride ", stride, " differ in length");
  const std::int64_t offset = storage_offset.value_or(input.offset());
  std::int64_t low = offset, high = offset, count = 1;
  for (int i = 0; i < size.size(); ++i) {
    if (TP_UNLIKELY(size[i] < 0)) value_error(op.name, ": negative size in ", size);
    if (TP_UNLIKELY(stride[i] < 0)) value_error(op.name, ": negative strides are not supported, got ", stride);
    count *= size[i];
    const std::int64_t reach = (size[i] - 1) * stride[i];
    (reach < 0 ? low : high) += reach;
  }
  const std::int64_t room = std::int64_t(input.block()->nbytes / item_size(input.dtype()));
  if (TP_UNLIKELY(offset < 0 || (count && (low < 0 || high >= room))))
    value_error(op.name, ": size ", size, ", stride ", stride, " and offset ", offset, " reach element ", high,
                " of memory that holds ", room);
  return input.with_geometry(size, stride, offset);
}

}  // namespace tp::kernels
