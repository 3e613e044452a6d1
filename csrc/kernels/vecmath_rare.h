// Owns the names under which loops call the rarest special functions: scalar code, compiled once (special_functions.cpp).
// erfcx reuses the vector code of erfc. float32 goes through float64.
#pragma once
#include "kernels/special_functions.h"
#include "kernels/vecmath_f64.h"

namespace tp {
namespace TP_ISA {
namespace m {

#define TP_RARE_1(name, call)                    \
  TP_MATH double name(double x) { return call; } \
  TP_MATH float name(float x) { return float(name(double(x))); }
#define TP_RARE_2(name, call)                              \
  TP_MATH double name(double x, double y) { return call; } \
  TP_MATH float name(float x, float y) { return float(name(double(x), double(y))); }
#define TP_RARE_POLYNOMIAL(name, family)                                           \
  TP_MATH double name(double x, double n, double k) {                              \
    return ::tp::special::polynomial(::tp::special::Polynomials::family, x, n, k); \
  }                                                                                \
  TP_MATH float name(float x, float n, float k) { return float(name(double(x), double(n), double(k))); }

#define TP_RARE_ORDER(name)                                                                       \
  TP_MATH double name(double x, double y, double k) { return ::tp::special::name(x, y, int(k)); } \
  TP_MATH float name(float x, float y, float k) { return float(name(double(x), double(y), double(k))); }

TP_RARE_1(airy_ai_prime, ::tp::special::airy_ai_prime(x))
TP_RARE_2(zeta, ::tp::special::zeta(x, y))
TP_RARE_2(igamma, ::tp::special::igamma(x, y))
TP_RARE_2(igammac, ::tp::special::igammac(x, y))
TP_RARE_ORDER(igamma_order)
TP_RARE_ORDER(gamma_density)
TP_RARE_ORDER(zeta_order)
TP_RARE_POLYNOMIAL(chebyshev_t, ChebyshevT)
TP_RARE_POLYNOMIAL(chebyshev_u, ChebyshevU)
TP_RARE_POLYNOMIAL(chebyshev_v, ChebyshevV)
TP_RARE_POLYNOMIAL(chebyshev_w, ChebyshevW)
TP_RARE_POLYNOMIAL(hermite_h, HermiteH)
TP_RARE_POLYNOMIAL(hermite_he, HermiteHe)
TP_RARE_POLYNOMIAL(laguerre_l, Laguerre)
TP_RARE_POLYNOMIAL(legendre_p, Legendre)
#undef TP_RARE_1
#undef TP_RARE_2
#undef TP_RARE_POLYNOMIAL
#undef TP_RARE_ORDER

// exp(x^2) erfc(x); below 0 it is 2 exp(x^2) less the mirrored value, x^2 in two parts.
TP_MATH double erfcx(double x) {
  const double a = detail::magnitude(x);
  const double y = a > 1e100 ? 1e100 : a;
  const auto whole = detail::erfcx(y, 0.0);
  const double right = y > 1e8 ? 0.56418958354775628695 / a : whole.hi + whole.lo;
  const double capped = a > 27.0 ? 27.0 : a;
  const auto [hi, lo] = detail::two_product(capped, capped);
  const double left = 2.0 * detail::times_exp(detail::Pair{1.0, 0.0}, hi, lo) - right;
  const double result = x < 0 ? (a > 26.7 ? detail::kInf<double> : left) : right;
  return x != x ? x : result;
}
TP_MATH float erfcx(float x) { return float(erfcx(double(x))); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
