// Owns the special functions: gamma family, error-function family, Bessel, logistic and entropy helpers.
#pragma once
#include "kernels/vecmath_f32.h"
#include "kernels/vecmath_f64.h"

namespace tp {
namespace TP_ISA {
namespace m {

// ---- logistic and entropy family
// -------------------------------------------------------------------------------------

TP_MATH double sigmoid(double x) {
  const double e = exp(-abs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
template <Real T>
TP_MATH T log_sigmoid(T x) {
  return (x < 0 ? x : T(0) * x) - log1p(exp(-abs(x)));
}
template <Real T>
TP_MATH T xlogy(T x, T y) {
  return x == 0 && y == y ? T(0) : x * log(y);
}
template <Real T>
TP_MATH T xlog1py(T x, T y) {
  return x == 0 && y == y ? T(0) : x * log1p(y);
}
template <Real T>
TP_MATH T logaddexp(T x, T y) {
  const T larger = maximum(x, y);
  const T sum = larger + log1p(exp(-abs(x - y)));
  return x == y ? x + T(0.69314718055994530942) : isinf(larger) ? larger : sum;
}
template <Real T>
TP_MATH T logaddexp2(T x, T y) {
  const T larger = maximum(x, y);
  const T sum = larger + log1p(exp2(-abs(x - y))) * T(1.4426950408889634074);
  return x == y ? x + T(1) : isinf(larger) ? larger : sum;
}
template <Real T>
TP_MATH T entr(T x) {
  return x > 0 ? -x * log(x) : x == 0 ? T(0) : x < 0 ? -detail::kInf<T> : x;
}
// sin(pi x) / (pi x)
TP_MATH double sinc(double x) {
  const double t = x * 3.14159265358979323846;
  return x == 0 ? 1.0 : isinf(x) ? 0.0 : sin(t) / t;
}
TP_MATH float sinc(float x) { return float(sinc(double(x))); }

// ---- error-function family
// -------------------------------------------------------------------------------------------

TP_MATH double ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  return t < -0.5 ? 0.5 * erfc(-t) : t > 0.5 ? 1.0 - 0.5 * erfc(t) : 0.5 + 0.5 * erf(t);
}
TP_MATH float ndtr(float x) { return float(ndtr(double(x))); }

TP_MATH double log_ndtr(double x) {
  if (x > -5) return x > 5 ? -ndtr(-x) : ::log(ndtr(x));
  // Asymptotic series of the Mills ratio in 1/x^2.
  const double s = 1 / (x * x);
  double term = 1, sum = 1;
  for (int k = 1; k <= 12; ++k) {
    term *= -(2 * k - 1) * s;
    sum += term;
  }
  return -0.5 * x * x - ::log(-x) - 0.91893853320467274178 + ::log(sum);
}
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
