// Owns the special functions: gamma family, error-function family, Bessel, logistic and entropy helpers.
#pragma once
#include "kernels/vecmath_f32.h"
#include "kernels/vecmath_f64.h"
#include "kernels/vecmath_trig.h"

namespace tp {
namespace TP_ISA {
namespace m {

// ---- logistic and entropy family
// -------------------------------------------------------------------------------------

template <Real T>
TP_MATH T log_sigmoid(T x) {
  const T small = -log1p(exp(-abs(x)));
  const T below = x + small;
  return x < 0 ? below : small;
}
template <Real T>
TP_MATH T xlogy(T x, T y) {
  return x == 0 && y == y ? T(0) : x * log(y);
}
template <Real T>
TP_MATH T xlog1py(T x, T y) {
  return x == 0 && y == y ? T(0) : x * log1p(y);
}
// Where the result nearly vanishes, float64 is good to 2 ulp of the larger argument, not of the result; float32 goes
// through float64 and does not show it.
TP_MATH double logaddexp(double x, double y) {
  const double larger = maximum(x, y), sum = larger + log1p(exp(-abs(x - y)));
  const double settled = x == y ? x + 0x1.62e42fefa39efp-1 : sum;
  return isinf(larger) ? larger : settled;
}
TP_MATH double logaddexp2(double x, double y) {
  const double larger = maximum(x, y), sum = larger + log1p(exp2(-abs(x - y))) * 0x1.71547652b82fep+0;
  const double settled = x == y ? x + 1.0 : sum;
  return isinf(larger) ? larger : settled;
}
TP_MATH float logaddexp(float x, float y) { return float(logaddexp(double(x), double(y))); }
TP_MATH float logaddexp2(float x, float y) { return float(logaddexp2(double(x), double(y))); }
template <Real T>
TP_MATH T entr(T x) {
  return x > 0 ? -x * log(x) : x == 0 ? T(0) : x < 0 ? -detail::kInf<T> : x;
}
// ---- error-function family
// -------------------------------------------------------------------------------------------

// The normal distribution function. x^2 / 2 is formed exactly, where the square of x / sqrt(2) would not be.
namespace detail {
// The pieces of ndtr(-a), a >= 0: the value itself, and the value without its factor exp(-a^2 / 2).
struct NormalTail {
  double value, scaled;
  bool near;  // 'value' came from erf; 'scaled' is not needed
};
TP_MATH NormalTail normal_tail(double a) {
  const double y = a > 40.0 ? 40.0 : a;
  const auto [t, t_error] = two_product(a, 0x1.6a09e667f3bcdp-1);
  const double t_lost = TP_FMA(a, -0x1.bdd3413b26456p-55, t_error);
  const auto [hi, lo] = two_product(y, 0.5 * y);
  const double s = t * t, lost = t_lost * TP_FMA(-0.35, s, 0.564);  // the slope, roughly
  const double small = TP_FMA(-0.5 * t, erf_small(s), 0.5 - 0.5 * t) - lost;
  const Pair whole = erfcx(t, t_lost), scaled = {0.5 * whole.hi, 0.5 * whole.lo};
  const double far = times_exp_minus(scaled, hi, lo);
  const bool near = t < 0.5;
  return {near ? small : far, scaled.hi + scaled.lo, near};
}
}  // namespace detail

TP_MATH double ndtr(double x) {
  const double magnitude = detail::magnitude(x), a = magnitude > 40.0 ? 40.0 : magnitude;
  const double tail = detail::normal_tail(a).value, above = 1.0 - tail;
  return x < 0 ? tail : above;
}
// Below -0.71 the exponential part is taken out of the logarithm, so that nothing vanishes. 3 ulp.
TP_MATH double log_ndtr(double x) {
  const double magnitude = detail::magnitude(x), a = magnitude > 1e100 ? 1e100 : magnitude;
  const auto [value, scaled, near] = detail::normal_tail(a);
  const double square = 0.5 * magnitude * magnitude, argument = near ? value : scaled, outside = near ? 0.0 : square;
  const double below = log(argument) - outside, above = log1p(-value);
  return x < 0 ? below : above;
}
TP_MATH float ndtr(float x) { return float(ndtr(double(x))); }
TP_MATH float log_ndtr(float x) { return float(log_ndtr(double(x))); }

TP_MATH double erfinv(double y) {
  const double w = -::log((1 - y) * (1 + y));
  const double a = 0.147, b = 2 / (3.14159265358979323846 * a) - 0.5 * w;
  double x = ::copysign(::sqrt(::sqrt(b * b + w / a) - b), y);
  for (int i = 0; i < 3; ++i) {
    const double e = y > 0 ? ::erfc(x) - (1 - y) : (1 + y) - ::erfc(-x);
    const double f = (::fabs(y) < 0.5 ? y - ::erf(x) : e) * 0.88622692545275801365 * ::exp(x * x);
    x += f / (1 - x * f);
  }
  const double inside = y == 0 ? y : x;
  return y == 1 ? detail::kInf<double> : y == -1 ? -detail::kInf<double> : abs(y) < 1 ? inside : detail::kNan<double>;
}
TP_MATH float erfinv(float y) { return float(erfinv(double(y))); }

// ---- gamma family
// ----------------------------------------------------------------------------------------------------

TP_MATH double lgamma(double x) {
  int sign_of_gamma;
  return ::lgamma_r(x, &sign_of_gamma);
}
TP_MATH float lgamma(float x) {
  int sign_of_gamma;
  return ::lgammaf_r(x, &sign_of_gamma);
}

TP_MATH double digamma(double x) {
  if (x == 0) return ::copysign(detail::kInf<double>, -x);
  if (x < 0 && x == ::floor(x)) return detail::kNan<double>;
  double reflection = 0;
  if (x < 0) {
    // psi(1 - x) - psi(x) = pi cot(pi x)
    reflection = -3.14159265358979323846 / ::tan(3.14159265358979323846 * (x - ::floor(x)));
    x = 1 - x;
  }
  double shift = 0;
  for (; x < 10; x += 1) shift -= 1 / x;
  const double s = 1 / (x * x);
  const double series =
      detail::horner(s, 1. / 12, -691. / 32760, 1. / 132, -1. / 240, 1. / 252, -1. / 120, 1. / 12) * s;
  return ::log(x) - 0.5 / x - series + shift + reflection;
}
TP_MATH float digamma(float x) { return float(digamma(double(x))); }

namespace detail {
// Hurwitz zeta(s, q) for q > 0: a few terms, then Euler-Maclaurin.
TP_MATH double hurwitz_zeta(double s, double q) {
  constexpr double kBernoulli[] = {1. / 12,
                                   -1. / 720,
                                   1. / 30240,
                                   -1. / 1209600,
                                   1. / 47900160,
                                   -691. / 1307674368000.,
                                   1. / 74724249600.,
                                   -3617. / 10670622842880000.,
                                   43867. / 5109094217170944000.};
  double sum = 0, a = q;
  for (; a < 10; a += 1) sum += ::pow(a, -s);
  const double tail = ::pow(a, -s);
  sum += tail * a / (s - 1) + 0.5 * tail;
  double factor = s, power = tail / a;
  for (int k = 0; k < 9; ++k) {
    sum += kBernoulli[k] * factor * power;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= a * a;
  }
  return sum;
}
}  // namespace detail

TP_MATH double trigamma(double x) {
  if (x <= 0) {
    if (x == ::floor(x)) return detail::kInf<double>;
    const double s = ::sin(3.14159265358979323846 * (x - ::floor(x))), pi = 3.14159265358979323846;
    return (pi / s) * (pi / s) - detail::hurwitz_zeta(2, 1 - x);
  }
  return x == detail::kInf<double> ? 0.0 : detail::hurwitz_zeta(2, x);
}
TP_MATH float trigamma(float x) { return float(trigamma(double(x))); }

TP_MATH double polygamma(int n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  if (x == detail::kInf<double>) return 0.0;
  const double sign = n % 2 ? 1.0 : -1.0, factorial = ::tgamma(n + 1.0);
  double below = 0;
  // Negative arguments step up one by one; far out, where the poles crowd the precision, that is not worth it.
  if (x < -1e4) return detail::kNan<double>;
  for (; x <= 0; x += 1) {
    if (x == 0) return n % 2 ? detail::kInf<double> : detail::kNan<double>;
    below += powi(x, -(n + 1));
  }
  return sign * factorial * (below + detail::hurwitz_zeta(n + 1, x));
}
TP_MATH float polygamma(int n, float x) { return float(polygamma(n, double(x))); }

// ---- modified Bessel functions
// ---------------------------------------------------------------------------------------

namespace detail {
// exp(-|x|) I_v(x) for v = 0, 1: power series, then the asymptotic series.
TP_MATH double bessel_scaled(double x, int v) {
  const double a = ::fabs(x);
  if (a < 30) {
    double term = v ? 0.5 * a : 1.0, sum = term;
    for (int k = 1; k < 90; ++k) {
      term *= 0.25 * a * a / (double(k) * (k + v));
      sum += term;
    }
    return ::exp(-a) * sum;
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 25; ++k) {
    term *= -(4.0 * v * v - (2 * k - 1) * (2 * k - 1)) / (8.0 * k * a);
    sum += term;
  }
  return sum / ::sqrt(6.283185307179586 * a);
}
}  // namespace detail

TP_MATH double i0e(double x) { return x != x ? x : detail::bessel_scaled(x, 0); }
TP_MATH double i1e(double x) { return x != x ? x : ::copysign(detail::bessel_scaled(x, 1), x); }
// exp in two halves: I grows more slowly than exp, so the whole exponential may overflow first.
TP_MATH double i0(double x) {
  const double e = exp(0.5 * abs(x));
  return isinf(x) ? abs(x) : e * i0e(x) * e;
}
TP_MATH double i1(double x) {
  const double e = exp(0.5 * abs(x));
  return isinf(x) ? x : e * i1e(x) * e;
}
TP_MATH float i0e(float x) { return float(i0e(double(x))); }
TP_MATH float i1e(float x) { return float(i1e(double(x))); }
TP_MATH float i0(float x) { return float(i0(double(x))); }
TP_MATH float i1(float x) { return float(i1(double(x))); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
