// Owns the forms over many elements of the longer special functions: name_block(n, x, out), with the bits of name(x). They
// are compiled once beside the loops that call them (special_table.h), float32 through float64.
#pragma once
#include "kernels/special_table.h"
#include "kernels/vecmath_gamma.h"

namespace tp {
namespace TP_ISA {
namespace m {

namespace detail {
TP_MATH void special_block(SpecialTable::Loop in_float64, SpecialTable::Loop, int64_t n, const double* x, double* out) {
  in_float64(n, x, out);
}
TP_MATH void special_block(SpecialTable::Loop, SpecialTable::Loop loop, int64_t n, const float* x, float* out) {
  special_loops().float32(loop, n, x, out);
}
}  // namespace detail

// 'short_form' is good enough for results that are rounded to float32.
#define TP_SPECIAL_BLOCK(name, short_form)                                              \
  template <Real T>                                                                     \
  TP_MATH void name##_block(int64_t n, const T* x, T* out) {                            \
    detail::special_block(special_loops().name, special_loops().short_form, n, x, out); \
  }
TP_SPECIAL_BLOCK(lgamma, lgamma_float)
TP_SPECIAL_BLOCK(digamma, digamma)
TP_SPECIAL_BLOCK(trigamma, trigamma)
TP_SPECIAL_BLOCK(erfinv, erfinv_float)
TP_SPECIAL_BLOCK(ndtri, ndtri)
TP_SPECIAL_BLOCK(erfcx, erfcx)
TP_SPECIAL_BLOCK(log_ndtr, log_ndtr)
TP_SPECIAL_BLOCK(i0, i0)
TP_SPECIAL_BLOCK(i0e, i0e)
TP_SPECIAL_BLOCK(i1, i1)
TP_SPECIAL_BLOCK(i1e, i1e)
TP_SPECIAL_BLOCK(bessel_j0, bessel_j0)
TP_SPECIAL_BLOCK(bessel_j1, bessel_j1)
TP_SPECIAL_BLOCK(bessel_y0, bessel_y0)
TP_SPECIAL_BLOCK(bessel_y1, bessel_y1)
TP_SPECIAL_BLOCK(modified_bessel_k0, modified_bessel_k0)
TP_SPECIAL_BLOCK(modified_bessel_k1, modified_bessel_k1)
TP_SPECIAL_BLOCK(scaled_modified_bessel_k0, scaled_modified_bessel_k0)
TP_SPECIAL_BLOCK(scaled_modified_bessel_k1, scaled_modified_bessel_k1)
TP_SPECIAL_BLOCK(spherical_bessel_j0, spherical_bessel_j0)
TP_SPECIAL_BLOCK(airy_ai, airy_ai)
#undef TP_SPECIAL_BLOCK

template <Real T>
TP_MATH void polygamma_block(int order, int64_t n, const T* x, T* out) {
  if (order == 0) return digamma_block(n, x, out);
  if (order == 1) return trigamma_block(n, x, out);
  for (int64_t i = 0; i < n; ++i) out[i] = polygamma(order, x[i]);
}

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
