// Owns the long double references of the accuracy program: the C library where it has the function, a series or an
// iteration where it has not. 64 significant bits, so errors of float64 forms show to about 0.002 ulp.
#pragma once
#include <math.h>

namespace reference {

using Big = long double;
inline unsigned current_bits = 64;  // width of the type under test: nextafter depends on it
inline constexpr Big kPi = 3.14159265358979323846264338327950288L;
inline constexpr Big kLn2 = 0.693147180559945309417232121458176568L;

#define TP_REFERENCE_LIBM(f) \
  inline Big f(Big x) { return ::f##l(x); }
TP_REFERENCE_LIBM(exp)
TP_REFERENCE_LIBM(exp2)
TP_REFERENCE_LIBM(expm1)
TP_REFERENCE_LIBM(log)
TP_REFERENCE_LIBM(log2)
TP_REFERENCE_LIBM(log10)
TP_REFERENCE_LIBM(log1p)
TP_REFERENCE_LIBM(tanh)
TP_REFERENCE_LIBM(sinh)
TP_REFERENCE_LIBM(cosh)
TP_REFERENCE_LIBM(asinh)
TP_REFERENCE_LIBM(acosh)
TP_REFERENCE_LIBM(atanh)
TP_REFERENCE_LIBM(sin)
TP_REFERENCE_LIBM(cos)
TP_REFERENCE_LIBM(tan)
TP_REFERENCE_LIBM(asin)
TP_REFERENCE_LIBM(acos)
TP_REFERENCE_LIBM(atan)
TP_REFERENCE_LIBM(erf)
TP_REFERENCE_LIBM(erfc)
TP_REFERENCE_LIBM(sqrt)
TP_REFERENCE_LIBM(floor)
TP_REFERENCE_LIBM(ceil)
TP_REFERENCE_LIBM(trunc)
#undef TP_REFERENCE_LIBM
inline Big round(Big x) { return ::rintl(x); }

inline Big reciprocal(Big x) { return 1 / x; }
inline Big rsqrt(Big x) { return 1 / ::sqrtl(x); }
inline Big sigmoid(Big x) { return x < 0 ? ::expl(x) / (1 + ::expl(x)) : 1 / (1 + ::expl(-x)); }
inline Big log_sigmoid(Big x) { return x < 0 ? x - ::log1pl(::expl(x)) : -::log1pl(::expl(-x)); }
inline Big entr(Big x) { return x > 0 ? -x * ::logl(x) : x == 0 ? 0 : x < 0 ? -INFINITY : x; }

// sin(pi x) / (pi x); x is reduced exactly before pi enters.
inline Big sinc(Big x) {
  if (x == 0) return 1;
  if (::isinf(x)) return 0;
  const Big r = x - 2 * ::rintl(x / 2);
  const Big s = ::fabsl(r) <= 0.25L ? ::sinl(kPi * r)
      : ::fabsl(r) < 0.75L          ? ::copysignl(::cosl(kPi * (0.5L - ::fabsl(r))), r)
                                    : ::copysignl(::sinl(kPi * (1 - ::fabsl(r))), r);
  return s == 0 ? 0 : s / (kPi * x);
}

inline Big ndtr(Big x) {
  const Big t = x * 0.707106781186547524400844362104849039L;
  return x < 0 ? 0.5L * ::erfcl(-t) : 1 - 0.5L * ::erfcl(t);
}
inline Big log_ndtr(Big x) {
  if (x > 0) return ::log1pl(-0.5L * ::erfcl(x * 0.707106781186547524400844362104849039L));
  if (x > -30) return ::logl(ndtr(x));
  Big term = 1, sum = 1;
  const Big s = 1 / (x * x);
  for (int k = 1; k < 20; ++k) term *= -(2 * k - 1) * s, sum += term;
  return -0.5L * x * x - ::logl(-x) - 0.918938533204672741780329736405617640L + ::logl(sum);
}
inline Big erfinv(Big y) {
  if (y == 0 || y != y) return y;
  if (::fabsl(y) >= 1) return ::fabsl(y) == 1 ? ::copysignl(INFINITY, y) : NAN;
  const Big a = ::fabsl(y), w = -::logl((1 - a) * (1 + a));
  Big x = a < 0.3L ? a * 0.886226925452758013649083741670572591L : ::sqrtl(w) * 0.8L;
  for (int i = 0; i < 60; ++i) {
    const Big f =
        (a < 0.5L ? ::erfl(x) - a : (1 - a) - ::erfcl(x)) * 0.886226925452758013649083741670572591L * ::expl(x * x);
    const Big step = f / (1 + x * f);
    x -= step;
    if (::fabsl(step) < 1e-19L * x) break;
  }
  return ::copysignl(x, y);
}

inline Big lgamma(Big x) {
  int sign;
  return ::lgammal_r(x, &sign);
}
inline Big digamma(Big x) {
  if (::isinf(x)) return x > 0 ? x : NAN;
  if (x == 0) return -1 / x;
  if (x < 0 && x == ::floorl(x)) return NAN;
  Big result = 0;
  if (x < 0) {
    const Big r = x - ::rintl(x);
    result = -kPi * (::fabsl(r) == 0.5L ? 0 : 1 / ::tanl(kPi * r));
    x = 1 - x;
  }
  for (; x < 25; x += 1) result -= 1 / x;
  const Big s = 1 / (x * x);
  const Big c[] = {1.L / 12, -1.L / 120, 1.L / 252, -1.L / 240, 1.L / 132, -691.L / 32760, 1.L / 12, -3617.L / 8160};
  Big power = s;
  for (Big v : c) result -= v * power, power *= s;
  return result + ::logl(x) - 0.5L / x;
}
inline Big trigamma(Big x) {
  if (::isinf(x)) return x > 0 ? 0 : NAN;
  if (x <= 0 && x == ::floorl(x)) return INFINITY;
  Big result = 0, sign = 1;
  if (x < 0) {
    const Big r = x - ::rintl(x), s = kPi / ::sinl(kPi * r);
    result = s * s, sign = -1;
    x = 1 - x;
  }
  Big sum = 0;
  for (; x < 25; x += 1) sum += 1 / (x * x);
  const Big s = 1 / (x * x), c[] = {1.L / 6, -1.L / 30, 1.L / 42, -1.L / 30, 5.L / 66, -691.L / 2730, 7.L / 6};
  Big power = 1 / x * s;
  sum += 1 / x + 0.5L * s;
  for (Big v : c) sum += v * power, power *= s;
  return result + sign * sum;
}

// exp(-|x|) I_v(x): power series of positive terms, then the asymptotic series.
inline Big bessel_scaled(Big x, int v) {
  const Big a = ::fabsl(x);
  if (::isinf(x)) return 0;
  if (a < 60) {
    Big term = v ? a / 2 : 1, sum = term;
    for (int k = 1; k < 200; ++k) term *= a * a / 4 / (Big(k) * (k + v)), sum += term;
    return ::expl(-a) * sum;
  }
  Big term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) term *= -(4 * v * v - Big(2 * k - 1) * (2 * k - 1)) / (8 * k * a), sum += term;
  return sum / ::sqrtl(2 * kPi * a);
}
inline Big i0e(Big x) { return x != x ? x : bessel_scaled(x, 0); }
inline Big i1e(Big x) { return x != x ? x : ::copysignl(bessel_scaled(x, 1), x); }
inline Big i0(Big x) { return ::isinf(x) ? INFINITY : ::expl(::fabsl(x)) * i0e(x); }
inline Big i1(Big x) { return ::isinf(x) ? x : ::expl(::fabsl(x)) * i1e(x); }

inline Big pow(Big x, Big y) { return ::powl(x, y); }
inline Big atan2(Big x, Big y) { return ::atan2l(x, y); }
inline Big hypot(Big x, Big y) { return ::hypotl(x, y); }
inline Big fmod(Big x, Big y) { return ::fmodl(x, y); }
inline Big copysign(Big x, Big y) { return ::copysignl(x, y); }
inline Big nextafter(Big x, Big y) {
  return current_bits == 32 ? Big(::nextafterf(float(x), float(y))) : Big(::nextafter(double(x), double(y)));
}
inline Big remainder(Big x, Big y) {
  const Big r = ::fmodl(x, y);
  return r == 0 ? ::copysignl(0, y) : (r < 0) != (y < 0) ? r + y : r;
}
inline Big xlogy(Big x, Big y) { return x == 0 && y == y ? 0 : x * ::logl(y); }
inline Big xlog1py(Big x, Big y) { return x == 0 && y == y ? 0 : x * ::log1pl(y); }
inline Big logaddexp(Big x, Big y) {
  if (x == y) return x + kLn2;
  const Big d = x - y;
  return d > 0 ? x + ::log1pl(::expl(-d)) : d <= 0 ? y + ::log1pl(::expl(d)) : d;
}
inline Big logaddexp2(Big x, Big y) {
  if (x == y) return x + 1;
  const Big d = x - y;
  return d > 0 ? x + ::log1pl(::exp2l(-d)) / kLn2 : d <= 0 ? y + ::log1pl(::exp2l(d)) / kLn2 : d;
}

}  // namespace reference
