// Normal forms of shape arguments.
#include "kernels/shape_args.h"

#include <algorithm>

#include "kernels/staging.h"

namespace tp::kernels {

void dim_error(std::string_view op, std::int64_t dim, int ndim, std::string_view what) {
  const int n = ndim == 0 ? 1 : ndim;
  index_error(op, ": ", what, " ", dim, " out of range for a ", ndim, "-d tensor (expected ", -n, "..", n - 1, ")");
}

Dims wrap_dims(std::string_view op, const std::optional<Dims>& dims, int ndim) {
  Dims out;
  if (!dims || dims->empty()) {
    out.resize(ndim);
    for (int i = 0; i < ndim; ++i) out[i] = i;
    return out;
  }
  for (std::int64_t d : *dims) {
    const int w = wrap_dim(op, d, ndim);
    if (TP_UNLIKELY(std::find(out.begin(), out.end(), w) != out.end()))
      value_error(op, ": dim ", d, " appears twice in dim=", *dims);
    if (ndim > 0) out.push_back(w);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Shape infer_shape(std::string_view op, const Dims& shape, std::int64_t numel) {
  Shape out = shape;
  std::int64_t known = 1;
  int unknown = -1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (unknown >= 0) value_error(op, ": only one dimension of shape ", shape, " can be -1");
      unknown = i;
    } else if (shape[i] < 0) {
      value_error(op, ": invalid size ", shape[i], " in shape ", shape);
    } else {
      known *= shape[i];
    }
  }
  if (unknown >= 0) {
    if (known == 0) value_error(op, ": -1 in shape ", shape, " is ambiguous, since the other sizes hold no elements");
    if (numel % known == 0) {
      out[unknown] = numel / known;
      return out;
    }
  } else if (known == numel) {
    return out;
  }
  value_error(op, ": shape ", shape, " is invalid for input of size ", numel);
}

std::optional<Strides> view_strides(const Storage& s, const Shape& shape) {
  if (s.is_contiguous() || s.numel() == 0) return contiguous_strides(shape);
  Strides out(shape.size(), 1);
  // Runs of the old dimensions that step evenly are matched, from the back, with runs of new ones.
  int at = shape.size() - 1;
  std::int64_t base = 1, run = 1, filled = 1;
  bool started = false;
  for (int d = s.dim() - 1; d >= 0; --d) {
    if (!started) {
      base = s.stride(d);
      started = true;
    }
    run *= s.size(d);
    const bool ends = d == 0 || (s.size(d - 1) != 1 && s.stride(d - 1) != run * base);
    if (!ends) continue;
    while (at >= 0 && (filled < run || shape[at] == 1)) {
      out[at] = filled * base;
      filled *= shape[at];
      --at;
    }
    if (filled != run) return std::nullopt;
    if (d > 0) base = s.stride(d - 1);
    run = filled = 1;
  }
  if (at != -1) return std::nullopt;
  return out;
}

Shape reduced_shape(const Shape& shape, const Dims& dims, bool keepdim) {
  Shape out;
  int next = 0;
  for (int i = 0; i < shape.size(); ++i) {
    const bool reduced = next < dims.size() && dims[next] == i;
    next += reduced;
    if (!reduced)
      out.push_back(shape[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

Storage reshaped(const Storage& s, const Shape& shape) {
  if (s.sizes() == shape) return s;
  if (s.is_contiguous()) return s.with_sizes(shape);
  if (std::optional<Strides> strides = view_strides(s, shape))
    return s.with_geometry(shape, *std::move(strides), s.offset());
  const Storage copy = contiguous(s);
  return copy.with_geometry(shape, contiguous_strides(shape), copy.offset());
}

Storage moved_dim(const Storage& s, int dim, int to) {
  if (dim == to || s.dim() < 2) return s;
  Shape sizes = s.sizes();
  Strides strides = s.strides();
  const std::int64_t size = sizes[dim], stride = strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  sizes.insert(to, size);
  strides.insert(to, stride);
  return s.with_geometry(std::move(sizes), std::move(strides), s.offset());
}

Storage expanded(const Storage& s, const Shape& shape) {
  if (s.sizes() == shape) return s;
  Strides strides(shape.size(), 0);
  const int shift = shape.size() - s.dim();
  for (int d = 0; d < s.dim(); ++d) strides[d + shift] = s.size(d) == 1 ? 0 : s.stride(d);
  return s.with_geometry(shape, std::move(strides), s.offset());
}

}  // namespace tp::kernels
