// Owns the complex forms of the vector maths. Transcendental functions are those of the C library, evaluated in double
// precision for both types, which settles overflow inside complex64; branch cuts are C's (and NumPy's).
#pragma once
#include "core/complex.h"
#include "kernels/vecmath_f32.h"
#include "kernels/vecmath_f64.h"
#include "kernels/vecmath_trig.h"

namespace tp {
namespace TP_ISA {
namespace m {

namespace detail {
__extension__ typedef _Complex double native_complex;

TP_MATH native_complex to_native(c128 z) {
  native_complex n;
  __real__ n = z.re;
  __imag__ n = z.im;
  return n;
}
TP_MATH c128 from_native(native_complex n) { return {__real__ n, __imag__ n}; }

// Powers with a small integer exponent keep exact results exact, as multiplication does.
TP_MATH c128 integer_power(c128 z, unsigned k) {
  c128 result = (k & 1) ? z : c128{1, 0};
  for (k >>= 1; k != 0; k >>= 1) {
    z = z * z;
    if (k & 1) result = result * z;
  }
  return result;
}
}  // namespace detail

#define TP_MATH_COMPLEX_UNARY(name)                                                                  \
  TP_MATH c128 name(c128 z) { return detail::from_native(__builtin_c##name(detail::to_native(z))); } \
  TP_MATH c64 name(c64 z) { return c64(name(c128(z))); }

TP_MATH_COMPLEX_UNARY(exp)
TP_MATH_COMPLEX_UNARY(log)
TP_MATH_COMPLEX_UNARY(sqrt)
TP_MATH_COMPLEX_UNARY(sin)
TP_MATH_COMPLEX_UNARY(cos)
TP_MATH_COMPLEX_UNARY(tan)
TP_MATH_COMPLEX_UNARY(sinh)
TP_MATH_COMPLEX_UNARY(cosh)
TP_MATH_COMPLEX_UNARY(tanh)
TP_MATH_COMPLEX_UNARY(asin)
TP_MATH_COMPLEX_UNARY(acos)
TP_MATH_COMPLEX_UNARY(atan)
TP_MATH_COMPLEX_UNARY(asinh)
TP_MATH_COMPLEX_UNARY(acosh)
TP_MATH_COMPLEX_UNARY(atanh)
#undef TP_MATH_COMPLEX_UNARY

TP_MATH double abs(c128 z) { return hypot(z.re, z.im); }
TP_MATH float abs(c64 z) { return float(sqrt(double(z.re) * z.re + double(z.im) * z.im)); }
TP_MATH double angle(c128 z) { return atan2(z.im, z.re); }
TP_MATH float angle(c64 z) { return atan2(z.im, z.re); }

// exp(z) - 1 without cancellation near 0: re = expm1(x) cos(y) - 2 sin(y/2)^2.
TP_MATH c128 expm1(c128 z) {
  const double half_sine = sin(z.im * 0.5);
  const c128 e = exp(z);
  return {expm1(z.re) * cos(z.im) - 2 * half_sine * half_sine, z.im == 0 ? z.im : e.im};
}
// log(1 + z): near the unit circle |1 + z|^2 - 1 is formed without rounding 1 + z.
TP_MATH c128 log1p(c128 z) {
  const double u = z.re + 1;
  const bool small = abs(z.re) < 0.5 && abs(z.im) < 0.5;
  const double re = small ? 0.5 * log1p(z.re * (2 + z.re) + z.im * z.im) : log(c128{u, z.im}).re;
  return {re, atan2(z.im, u)};
}
TP_MATH c128 log2(c128 z) { return log(z) * 1.4426950408889634074; }
TP_MATH c128 log10(c128 z) { return log(z) * 0.43429448190325182765; }
TP_MATH c128 exp2(c128 z) {
  const double size = exp2(z.re), angle = z.im * 0.69314718055994530942;
  return z.im == 0 ? c128{size, z.im} : c128{size * cos(angle), size * sin(angle)};
}
TP_MATH c128 reciprocal(c128 z) { return 1.0 / z; }
TP_MATH c128 rsqrt(c128 z) { return 1.0 / sqrt(z); }
TP_MATH c128 sigmoid(c128 z) {
  // The exponential of the side that cannot overflow.
  const bool positive = z.re >= 0;
  const c128 e = exp(positive ? -z : z);
  const c128 one = {1, 0};
  return (positive ? one : e) / (one + e);
}
TP_MATH c128 sinc(c128 z) {
  const c128 t = z * 3.14159265358979323846;
  return z == 0.0 ? c128{1, 0} : sin(t) / t;
}
// From the larger real part on, so that neither exponential overflows; two of -inf have -inf together.
TP_MATH c128 logaddexp(c128 x, c128 y) {
  const c128 a = x.re < y.re ? y : x, b = x.re < y.re ? x : y;
  if (isinf(a.re) && (a.re < 0 || b.re < a.re)) return a;
  return a + log1p(exp(b - a));
}
TP_MATH c128 pow(c128 x, c128 y) {
  const bool small_integer = y.im == 0 && y.re == round(y.re) && abs(y.re) <= 64;
  if (small_integer) {
    const c128 p = detail::integer_power(x, unsigned(abs(y.re)));
    const c128 result = y.re < 0 ? 1.0 / p : p;
    if (isfinite(result.re) && isfinite(result.im)) return result;
  }
  if (x == 0.0) {
    const double nan = detail::kNan<double>;
    return y.re > 0 ? c128{0, 0} : y == 0.0 ? c128{1, 0} : c128{nan, nan};
  }
  return detail::from_native(__builtin_cpow(detail::to_native(x), detail::to_native(y)));
}

TP_MATH c64 expm1(c64 z) { return c64(expm1(c128(z))); }
TP_MATH c64 log1p(c64 z) { return c64(log1p(c128(z))); }
TP_MATH c64 log2(c64 z) { return c64(log2(c128(z))); }
TP_MATH c64 log10(c64 z) { return c64(log10(c128(z))); }
TP_MATH c64 exp2(c64 z) { return c64(exp2(c128(z))); }
TP_MATH c64 reciprocal(c64 z) { return c64(reciprocal(c128(z))); }
TP_MATH c64 rsqrt(c64 z) { return c64(rsqrt(c128(z))); }
TP_MATH c64 sigmoid(c64 z) { return c64(sigmoid(c128(z))); }
TP_MATH c64 sinc(c64 z) { return c64(sinc(c128(z))); }
TP_MATH c64 logaddexp(c64 x, c64 y) { return c64(logaddexp(c128(x), c128(y))); }
TP_MATH c64 pow(c64 x, c64 y) { return c64(pow(c128(x), c128(y))); }

#define TP_MATH_COMPLEX_PARTS(T, R)                                       \
  TP_MATH T square(T z) { return z * z; }                                 \
  TP_MATH T conj(T z) { return {z.re, -z.im}; }                           \
  TP_MATH R real(T z) { return z.re; }                                    \
  TP_MATH R imag(T z) { return z.im; }                                    \
  TP_MATH T sgn(T z) {                                                    \
    const R r = abs(z);                                                   \
    return r == 0 ? T{0, 0} : T{z.re / r, z.im / r};                      \
  }                                                                       \
  TP_MATH bool isnan(T z) { return isnan(z.re) || isnan(z.im); }          \
  TP_MATH bool isinf(T z) { return isinf(z.re) || isinf(z.im); }          \
  TP_MATH bool isfinite(T z) { return isfinite(z.re) && isfinite(z.im); } \
  template <int N>                                                        \
  TP_MATH T powi(T z) {                                                   \
    return pow(z, T{R(N), 0});                                            \
  }                                                                       \
  TP_MATH T xlogy(T x, T y) { return x == R(0) && !isnan(y) ? T{0, 0} : x * log(y); }

TP_MATH_COMPLEX_PARTS(c64, float)
TP_MATH_COMPLEX_PARTS(c128, double)
#undef TP_MATH_COMPLEX_PARTS

// The real counterparts, so that a formula over any element type compiles.
template <Real T>
TP_MATH T conj(T x) {
  return x;
}
template <Real T>
TP_MATH T real(T x) {
  return x;
}
template <Real T>
TP_MATH T imag(T) {
  return T(0);
}
template <Real T>
TP_MATH T sgn(T x) {
  return sign(x);
}
template <Real T>
TP_MATH T angle(T x) {
  return x != x ? x : signbit(x) ? T(3.14159265358979323846) : T(0);
}

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
