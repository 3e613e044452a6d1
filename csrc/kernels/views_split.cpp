// Views that give several tensors, complex parts, and the copies a view's place is written through.
#include <algorithm>
#include <string>

#include "core/complex.h"
#include "core/errors.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace tp::kernels {
namespace {

int split_dim(const OpSchema& op, const Storage& input, std::int64_t dim) {
  const int d = wrap_dim(op.name, dim, input.dim());
  if (TP_UNLIKELY(input.dim() == 0)) value_error(op.name, ": a 0-d tensor cannot be split");
  return d;
}

Storage part(const Storage& s, int dim, std::int64_t from, std::int64_t length) {
  Shape sizes = s.sizes();
  sizes[dim] = length;
  return s.with_geometry(std::move(sizes), s.strides(), s.offset() + from * s.stride(dim));
}

std::vector<Storage> even_parts(const Storage& s, int dim, std::int64_t size) {
  std::vector<Storage> parts;
  const std::int64_t n = s.size(dim);
  if (n == 0) return {part(s, dim, 0, 0)};
  parts.reserve(std::size_t((n + size - 1) / size));
  for (std::int64_t i = 0; i < n; i += size) parts.push_back(part(s, dim, i, std::min(size, n - i)));
  return parts;
}

// Complex memory seen as pairs of reals: strides and offset double.
Storage as_pairs(const Storage& s, std::int64_t first) {
  Strides strides = s.strides();
  for (std::int64_t& v : strides) v *= 2;
  return Storage(s.block(), real_dtype(s.dtype()), s.sizes(), std::move(strides), 2 * s.offset() + first);
}

Storage writable_copy(const Storage& s) {
  Storage out = empty(s.sizes(), s.dtype());
  copy_into(out, s);
  return out;
}

void write_part(const OpSchema& op, Storage place, const Storage& src) {
  if (TP_UNLIKELY(!(place.sizes() == src.sizes())))
    value_error(op.name, ": src has shape ", src.sizes(), ", but the place it replaces has shape ", place.sizes());
  copy_into(place, src);
}

Storage zeros_with(const OpSchema& op, Storage zeros, Storage place, const Storage& grad) {
  write_part(op, std::move(place), grad);
  return zeros;
}

}  // namespace

std::vector<Storage> unbind(const OpSchema& op, const Storage& input, std::int64_t dim) {
  const int d = split_dim(op, input, dim);
  std::vector<Storage> parts;
  parts.reserve(std::size_t(input.size(d)));
  Shape sizes = input.sizes();
  Strides strides = input.strides();
  sizes.erase(d);
  strides.erase(d);
  for (std::int64_t i = 0; i < input.size(d); ++i)
    parts.push_back(input.with_geometry(sizes, strides, input.offset() + i * input.stride(d)));
  return parts;
}

std::vector<Storage> split(const OpSchema& op, const Storage& input, std::int64_t split_size, std::int64_t dim) {
  const int d = split_dim(op, input, dim);
  if (TP_UNLIKELY(split_size < 0 || (split_size == 0 && input.size(d) != 0)))
    value_error(op.name, ": split_size must be positive, got ", split_size, " for dimension ", d, " with size ",
                input.size(d));
  return even_parts(input, d, split_size);
}

std::vector<Storage> split_with_sizes(const OpSchema& op, const Storage& input, const Dims& split_sizes,
                                      std::int64_t dim) {
  const int d = split_dim(op, input, dim);
  std::int64_t total = 0;
  for (std::int64_t s : split_sizes) {
    if (TP_UNLIKELY(s < 0)) value_error(op.name, ": split_sizes must not be negative, got ", split_sizes);
    total += s;
  }
  if (TP_UNLIKELY(total != input.size(d)))
    value_error(op.name, ": split_sizes ", split_sizes, " sum to ", total, ", but dimension ", d, " has size ",
                input.size(d));
  std::vector<Storage> parts;
  std::int64_t at = 0;
  for (std::int64_t s : split_sizes) {
    parts.push_back(part(input, d, at, s));
    at += s;
  }
  return parts;
}

std::vector<Storage> chunk(const OpSchema& op, const Storage& input, std::int64_t chunks, std::int64_t dim) {
  const int d = split_dim(op, input, dim);
  if (TP_UNLIKELY(chunks <= 0)) value_error(op.name, ": chunks must be positive, got ", chunks);
  const std::int64_t size = (input.size(d) + chunks - 1) / chunks;
  if (size == 0) {
    std::vector<Storage> parts;
    for (std::int64_t i = 0; i < chunks; ++i) parts.push_back(part(input, d, 0, 0));
    return parts;
  }
  return even_parts(input, d, size);
}

std::vector<Storage> tensor_split(const OpSchema& op, const Storage& input, std::int64_t sections, std::int64_t dim) {
  const int d = split_dim(op, input, dim);
  if (TP_UNLIKELY(sections <= 0)) value_error(op.name, ": the number of sections must be positive, got ", sections);
  const std::int64_t least = input.size(d) / sections, longer = input.size(d) % sections;
  std::vector<Storage> parts;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < sections; ++i) {
    const std::int64_t length = least + (i < longer);
    parts.push_back(part(input, d, at, length));
    at += length;
  }
  return parts;
}

std::vector<Storage> tensor_split_indices(const OpSchema& op, const Storage& input, const Dims& indices,
                                          std::int64_t dim) {
  const int d = split_dim(op, input, dim);
  const std::int64_t n = input.size(d);
  std::vector<Storage> parts;
  std::int64_t at = 0;
  for (int i = 0; i <= indices.size(); ++i) {
    const std::int64_t raw = i < indices.size() ? indices[i] : n;
    const std::int64_t end = std::clamp<std::int64_t>(raw < 0 ? raw + n : raw, 0, n);
    parts.push_back(part(input, d, std::min(at, n), std::max<std::int64_t>(0, end - at)));
    at = end;
  }
  return parts;
}

// ---- complex parts -----------------------------------------------------------------------------------------------

Storage real(const OpSchema&, const Storage& input) { return is_complex(input.dtype()) ? as_pairs(input, 0) : input; }

Storage imag(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(!is_complex(input.dtype())))
    type_error(op.name, ": needs a complex tensor, got ", dtype_name(input.dtype()));
  return as_pairs(input, 1);
}

Storage view_as_real(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(!is_complex(input.dtype())))
    type_error(op.name, ": needs a complex tensor, got ", dtype_name(input.dtype()));
  Storage out = as_pairs(input, 0);
  Shape sizes = out.sizes();
  Strides strides = out.strides();
  sizes.push_back(2);
  strides.push_back(1);
  return out.with_geometry(std::move(sizes), std::move(strides), out.offset());
}

Storage view_as_complex(const OpSchema& op, const Storage& input) {
  if (TP_UNLIKELY(input.dtype() != Dtype::F32 && input.dtype() != Dtype::F64))
    type_error(op.name, ": needs float32 or float64, got ", dtype_name(input.dtype()));
  const int last = input.dim() - 1;
  if (TP_UNLIKELY(last < 0 || input.size(last) != 2))
    value_error(op.name, ": the last dimension must have size 2, got shape ", input.sizes());
  bool fits = input.stride(last) == 1 && input.offset() % 2 == 0;
  Shape sizes = input.sizes();
  Strides strides = input.strides();
  sizes.erase(last);
  strides.erase(last);
  for (std::int64_t& v : strides) {
    fits &= v % 2 == 0;
    v /= 2;
  }
  if (TP_UNLIKELY(!fits))
    runtime_error(op.name, ": strides ", input.strides(),
                  " do not pair up as complex numbers; call contiguous() first");
  return Storage(input.block(), complex_dtype(input.dtype()), std::move(sizes), std::move(strides), input.offset() / 2);
}

Storage view_bytes(const OpSchema&, const Storage& input, Dtype dtype) {
  const std::int64_t from = std::int64_t(item_size(input.dtype())), to = std::int64_t(item_size(dtype));
  Shape sizes = input.sizes();
  Strides strides = input.strides();
  std::int64_t offset = input.offset();
  if (from != to) {
    const int last = input.dim() - 1;
    const auto as = [&] { return std::string(dtype_name(input.dtype())) + " as " + std::string(dtype_name(dtype)); };
    if (TP_UNLIKELY(last < 0)) runtime_error("view: a 0-d tensor has no dimension to view ", as(), " in");
    if (TP_UNLIKELY(sizes[last] > 1 && strides[last] != 1))
      runtime_error("view: the last dimension has stride ", strides[last], ", but must have 1 to view ", as(),
                    "; call contiguous() first");
    if (from > to) {
      const std::int64_t parts = from / to;
      for (std::int64_t& s : strides) s *= parts;
      sizes[last] *= parts;
      offset *= parts;
    } else {
      const std::int64_t parts = to / from;
      if (TP_UNLIKELY(sizes[last] % parts))
        runtime_error("view: the last dimension has size ", sizes[last], ", which must be a multiple of ", parts,
                      " to view ", as());
      if (TP_UNLIKELY(offset % parts))
        runtime_error("view: the first element stands ", offset,
                      " elements into its memory, which must be a "
                      "multiple of ",
                      parts, " to view ", as(), "; clone() it first");
      for (int i = 0; i < last; ++i) {
        if (TP_UNLIKELY(sizes[i] > 1 && strides[i] % parts))
          runtime_error("view: dimension ", i, " has stride ", strides[i], ", which must be a multiple of ", parts,
                        " to view ", as(), "; call contiguous() first");
        strides[i] /= parts;
      }
      sizes[last] /= parts;
      offset /= parts;
    }
    strides[last] = 1;
  }
  // Memory of somebody else may begin anywhere.
  const std::size_t step = item_size(real_dtype(dtype));
  if (TP_UNLIKELY(reinterpret_cast<std::uintptr_t>(input.raw()) % step))
    runtime_error("view: the memory begins at an address that is no multiple of ", step, ", as ", dtype_name(dtype),
                  " needs; clone() it first");
  return Storage(input.block(), dtype, std::move(sizes), std::move(strides), offset);
}

// ---- places written in a copy ------------------------------------------------------------------------------------

Storage select_scatter(const OpSchema& op, const Storage& input, const Storage& src, std::int64_t dim,
                       std::int64_t index) {
  Storage out = writable_copy(input);
  write_part(op, select(op, out, dim, index), src);
  return out;
}

Storage slice_scatter(const OpSchema& op, const Storage& input, const Storage& src, std::int64_t dim,
                      std::optional<std::int64_t> start, std::optional<std::int64_t> end, std::int64_t step) {
  Storage out = writable_copy(input);
  write_part(op, slice(op, out, dim, start, end, step), src);
  return out;
}

Storage diagonal_scatter(const OpSchema& op, const Storage& input, const Storage& src, std::int64_t offset,
                         std::int64_t dim1, std::int64_t dim2) {
  Storage out = writable_copy(input);
  write_part(op, diagonal(op, out, offset, dim1, dim2), src);
  return out;
}

Storage as_strided_scatter(const OpSchema& op, const Storage& input, const Storage& src, const Dims& size,
                           const Dims& stride, std::optional<std::int64_t> storage_offset) {
  // The place is named in the memory of `input`: the copy keeps its extent and layout.
  const std::int64_t item = std::int64_t(item_size(input.dtype()));
  const std::int64_t room = std::int64_t(input.block()->nbytes) / item;
  Storage flat = Storage(input.block(), input.dtype(), Shape{room}, Strides{1}, 0);
  Storage copy = writable_copy(flat);
  Storage out = copy.with_geometry(input.sizes(), input.strides(), input.offset());
  write_part(op, as_strided(op, out, size, stride, storage_offset), src);
  return out;
}

Storage select_backward(const OpSchema& op, const Storage& grad, const Dims& size, std::int64_t dim,
                        std::int64_t index) {
  Storage zeros = zeros_storage(size, grad.dtype());
  return zeros_with(op, zeros, select(op, zeros, dim, index), grad);
}

Storage slice_backward(const OpSchema& op, const Storage& grad, const Dims& size, std::int64_t dim,
                       std::optional<std::int64_t> start, std::optional<std::int64_t> end, std::int64_t step) {
  Storage zeros = zeros_storage(size, grad.dtype());
  return zeros_with(op, zeros, slice(op, zeros, dim, start, end, step), grad);
}

Storage diagonal_backward(const OpSchema& op, const Storage& grad, const Dims& size, std::int64_t offset,
                          std::int64_t dim1, std::int64_t dim2) {
  Storage zeros = zeros_storage(size, grad.dtype());
  return zeros_with(op, zeros, diagonal(op, zeros, offset, dim1, dim2), grad);
}

namespace {

// Adds every element of `from` (contiguous) to the place of the same index in `place`; places may coincide.
template <class T>
void add_elements(const Storage& place, const Storage& from) {
  const int n = place.dim();
  const T* v = from.data<T>();
  T* at = place.data<T>();
  Dims index(n, 0);
  const std::int64_t inner = n ? place.size(n - 1) : 1, step = n ? place.stride(n - 1) : 0;
  for (std::int64_t done = 0, total = place.numel(); done < total; done += inner) {
    for (std::int64_t i = 0; i < inner; ++i) at[i * step] = at[i * step] + *v++;
    for (int d = n - 2; d >= 0; --d) {
      at += place.stride(d);
      if (++index[d] < place.size(d)) break;
      at -= place.size(d) * place.stride(d);
      index[d] = 0;
    }
  }
}

void add_at(const OpSchema& op, const Storage& place, const Storage& from) {
  switch (compute_type(place.dtype())) {
    case Compute::I32: return add_elements<std::uint32_t>(place, from);
    case Compute::I64:
    case Compute::U64: return add_elements<std::uint64_t>(place, from);
    case Compute::F32: return add_elements<float>(place, from);
    case Compute::F64: return add_elements<double>(place, from);
    case Compute::C64: return add_elements<c64>(place, from);
    case Compute::C128: return add_elements<c128>(place, from);
    default: type_error(op.name, ": not defined for ", dtype_name(place.dtype()));
  }
}

// Sums are taken in the compute type of the gradient.
template <class PlaceOf>
Storage summed(const OpSchema& op, const Storage& grad, const Shape& size, const PlaceOf& place_of) {
  const Dtype wide = dtype_of(compute_type(grad.dtype()));
  Storage out = zeros_storage(size, wide);
  const Storage place = place_of(out);
  if (TP_UNLIKELY(!(place.sizes() == grad.sizes())))
    value_error(op.name, ": the gradient has shape ", grad.sizes(), ", but the view has shape ", place.sizes());
  add_at(op, place, contiguous(cast(grad, wide)));
  return cast(out, grad.dtype());
}

}  // namespace

Storage unfold_backward(const OpSchema& op, const Storage& grad, const Dims& input_size, std::int64_t dimension,
                        std::int64_t size, std::int64_t step) {
  return summed(op, grad, input_size, [&](const Storage& out) { return unfold(op, out, dimension, size, step); });
}

}  // namespace tp::kernels
