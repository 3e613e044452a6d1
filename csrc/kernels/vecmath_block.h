// Owns the forms over many elements of the longer special functions: name_block(n, x, out), with the bits of name(x). They
// are compiled once beside the loops that call them (special_table.h), float32 through float64.
#pragma once
#include "kernels/special_table.h"
#include "kernels/vecmath_gamma.h"

namespace tp {
namespace TP_ISA {
namespace m {

#define TP_SPECIAL_BLOCK(name, in_float32)                                                                \
  TP_MATH void name##_block(int64_t n, const double* x, double* out) { special_loops().name(n, x, out); } \
  TP_MATH void name##_block(int64_t n, const float* x, float* out) { in_float32; }
#define TP_SPECIAL_OWN(name) TP_SPECIAL_BLOCK(name, special_loops().name##_float(n, x, out))
#define TP_SPECIAL_THROUGH(name) \
  TP_SPECIAL_BLOCK(name, special_loops().through_float64(special_loops().name, n, x, out))
TP_SPECIAL_LOOPS_FLOAT(TP_SPECIAL_OWN)
TP_SPECIAL_THROUGH(digamma)
TP_SPECIAL_THROUGH(trigamma)
TP_SPECIAL_THROUGH(ndtri)
TP_SPECIAL_THROUGH(bessel_j0)
TP_SPECIAL_THROUGH(bessel_j1)
TP_SPECIAL_THROUGH(bessel_y0)
TP_SPECIAL_THROUGH(bessel_y1)
TP_SPECIAL_THROUGH(modified_bessel_k0)
TP_SPECIAL_THROUGH(modified_bessel_k1)
TP_SPECIAL_THROUGH(scaled_modified_bessel_k0)
TP_SPECIAL_THROUGH(scaled_modified_bessel_k1)
TP_SPECIAL_THROUGH(spherical_bessel_j0)
TP_SPECIAL_THROUGH(airy_ai)
#undef TP_SPECIAL_THROUGH
#undef TP_SPECIAL_OWN
#undef TP_SPECIAL_BLOCK

// Whether loops over T have those of vecmath_pieces.h.
#if defined(__AVX512F__) && !defined(TP_SCALAR_LOOPS)
template <class T>
inline constexpr bool kPieces = __is_same(T, float);
#else
template <class T>
inline constexpr bool kPieces = false;
#endif
#define TP_SPECIAL_PIECES(name) \
  TP_MATH void name##_block(int64_t n, const float* x, float* out) { special_loops().name##_float(n, x, out); }
TP_SPECIAL_LOOPS_PIECES(TP_SPECIAL_PIECES)
#undef TP_SPECIAL_PIECES

template <Real T>
TP_MATH void polygamma_block(int order, int64_t n, const T* x, T* out) {
  if (order == 0) return digamma_block(n, x, out);
  if (order == 1) return trigamma_block(n, x, out);
  for (int64_t i = 0; i < n; ++i) out[i] = polygamma(order, x[i]);
}

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
