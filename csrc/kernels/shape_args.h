// Checks and normal forms of dimension numbers, sizes and shapes, shared by the kernels. Errors carry the op's name.
#pragma once
#include <optional>
#include <string_view>

#include "core/errors.h"
#include "core/storage.h"

namespace tp::kernels {

[[noreturn]] TP_API void dim_error(std::string_view op, std::int64_t dim, int ndim, std::string_view what);

/// `dim` counted from the front. A 0-d tensor counts as 1-d here.
inline int wrap_dim(std::string_view op, std::int64_t dim, int ndim, std::string_view what = "dim") {
  const int n = ndim == 0 ? 1 : ndim;
  if (TP_UNLIKELY(dim < -n || dim >= n)) dim_error(op, dim, ndim, what);
  return int(dim < 0 ? dim + n : dim);
}

/// Dimensions counted from the front, ascending, each once (a repeated one raises). Absent or empty: all of them.
TP_API Dims wrap_dims(std::string_view op, const std::optional<Dims>& dims, int ndim);

/// A shape with its -1 worked out for `numel` elements; raises where it does not fit.
TP_API Shape infer_shape(std::string_view op, const Dims& shape, std::int64_t numel);

/// Strides under which the memory of `s` shows as `shape` (equal element count), when there are any.
TP_API std::optional<Strides> view_strides(const Storage& s, const Shape& shape);

/// `shape` without the dimensions (ascending), or with them as 1.
TP_API Shape reduced_shape(const Shape& shape, const Dims& dims, bool keepdim);

/// `s` as `shape`: a view where the layout allows it, else a copy.
TP_API Storage reshaped(const Storage& s, const Shape& shape);

/// `s` with dimension `dim` moved to place `to`.
TP_API Storage moved_dim(const Storage& s, int dim, int to);

/// `s` expanded to `shape` by zero strides; the caller has checked that it fits.
TP_API Storage expanded(const Storage& s, const Shape& shape);

}  // namespace tp::kernels
