// The order that searches and order statistics share: numbers by size, nan last. Internal to the kernels room.
#pragma once
#include "core/dtype.h"
#include "core/errors.h"
#include "core/op_schema.h"

namespace tp::kernels {

template <class T>
bool is_nan(T v) {
  return v != v;
}
template <class T>
bool before(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

/// The dtype whose values are compared for elements of `d`.
inline Dtype order_dtype(const OpSchema& op, Dtype d) {
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

}  // namespace tp::kernels
