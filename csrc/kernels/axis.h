// Dtype choices and the view of a tensor along one dimension that several kernels share. Knows no op.
#pragma once
#include "core/errors.h"
#include "core/op_schema.h"
#include "core/storage.h"
#include "kernels/shape_args.h"
#include "kernels/staging.h"

namespace tp::kernels {

/// A contiguous tensor as [outer, n, inner] around one dimension.
struct Axis {
  std::int64_t outer = 1, n = 1, inner = 1;
};
inline Axis axis_of(const Shape& sizes, int dim) {
  Axis a;
  for (int i = 0; i < sizes.size(); ++i) (i < dim ? a.outer : i == dim ? a.n : a.inner) *= sizes[i];
  return a;
}

/// The floating dtype an op works in for inputs of `d`: integers become the default float. Complex is refused.
inline Dtype real_float_dtype(const OpSchema& op, Dtype d) {
  if (TP_UNLIKELY(is_complex(d))) type_error(op.name, ": not defined for ", dtype_name(d), " inputs");
  return is_float(d) ? d : default_float();
}
/// Contiguous values in F32 (halves included) or F64.
inline Storage staged_float(const Storage& s, Dtype d) { return contiguous(cast(s, dtype_of(compute_type(d)))); }
inline Storage in_dtype(Storage s, Dtype d) { return s.dtype() == d ? s : cast(s, d); }

/// f(float()) or f(double()).
template <class F>
void with_float(Dtype d, F&& f) {
  if (d == Dtype::F64)
    f(double());
  else
    f(float());
}

}  // namespace tp::kernels
