// Owns the gamma family. lgamma is the C library's, of long double, which rounds to within 1 ulp where that is wider (else
// up to 6 ulp); digamma and trigamma are vector code; the higher
// derivatives loop.
#pragma once
#include "kernels/vecmath_f64.h"
#include "kernels/vecmath_trig.h"

namespace tp {
namespace TP_ISA {
namespace m {

TP_MATH double lgamma(double x) {
  int sign_of_gamma;
  return double(::lgammal_r(x, &sign_of_gamma));
}
TP_MATH float lgamma(float x) {
  int sign_of_gamma;
  return float(::lgamma_r(double(x), &sign_of_gamma));
}

namespace detail {

// sin and cos of pi x; x is reduced before pi enters, so both are exact at multiples of 1/2.
struct SinCosPi {
  double sin, cos;
};
TP_MATH SinCosPi sin_cos_pi(double x) {
  const double r = x - 2.0 * round(0.5 * x), t = TP_FMA(r, 2.0, kRounder), f = TP_FMA(t - kRounder, -0.5, r);
  const auto [hi, lo] = two_product(f, kPi);
  const double low = TP_FMA(f, kPiLo, lo);
  return {sin_quadrant(hi, low, to_bits(t)), sin_quadrant(hi, low, to_bits(t) + 1)};
}

// digamma on [1, 2] as (x - root) times a polynomial; the root in two parts keeps the digits near it.
TP_MATH double digamma_near_root(double x) {
  const double t = x - 1.5;
  const double p =
      horner(t,
             horner_quad(t, t * t, -0x1.722bcc232dbc4p-13, 0x1.1072f9f6af12ep-12, -0x1.345c6b0b6609ap-13,
                         0x1.dc2ab260918e6p-13, -0x1.fc3f0aee7755ap-12, 0x1.7b480f71ef01p-11, -0x1.0fcdc88d2195fp-10,
                         0x1.980de70688d4bp-10, -0x1.336b3ad8179c8p-9, 0x1.cd3e6dbb89df2p-9, -0x1.5a06ccb97d12ap-8,
                         0x1.03c006d419a05p-7, -0x1.8635627bf519p-7, 0x1.256475efb9d58p-6, -0x1.b9f8b12485ba7p-6,
                         0x1.4de9aa05a23f5p-5, -0x1.fb44202a07dfcp-5, 0x1.8512e5905d906p-4, -0x1.2feeeb98a7a26p-3),
             0x1.eca189b8e6d9ap-3, -0x1.b1cb63005ee98p-2, 0x1.e6f0cbb873617p-1);
  return ((x - 0x1.762d86356be3fp+0) - 0x1.b86a722197829p-54) * p;
}

}  // namespace detail

// Poles: -inf at +0, +inf at -0, NaN at the negative integers. 4 ulp for x > 0; below, 6 ulp of the larger of the two
// terms of the reflection.
TP_MATH double digamma(double x) {
  const double z = x < 0 ? 1.0 - x : x;
  // Below 8 step up by 8: the sum of 1 / (z + k) as one quotient of positive terms.
  double over = 1.0, under = z;
  for (int k = 1; k < 8; ++k) {
    over = TP_FMA(over, z + k, under);
    under *= z + k;
  }
  // From 1 to 2 a polynomial around the root; (0, 1) and (2, 3] are one step away from it.
  const bool below_one = z < 1.0, above_two = z > 2.0, near = z <= 3.0, shift = z < 8.0, step = below_one | near;
  const double one_off = below_one ? z : 1.0 - z;  // one_off < 0: the step is added
  const double quotient = (step ? 1.0 : over) / (step ? one_off : under);
  const double w = shift ? z + 8.0 : z, inverse = 1.0 / w, s = inverse * inverse;
  const double series = s *
      detail::horner(s, 43867. / 14364, -3617. / 8160, 1. / 12, -691. / 32760, 1. / 132, -1. / 240, 1. / 252, -1. / 120,
                     1. / 12);
  const double asymptotic = log(w) - TP_FMA(0.5, inverse, series);
  const double inner = above_two ? z - 1.0 : z, root_part = detail::digamma_near_root(below_one ? z + 1.0 : inner);
  const double base = near ? root_part : asymptotic;
  const bool subtract = below_one | (above_two & shift);
  const double positive = base - (subtract ? quotient : 0.0);
  const auto [sine, cosine] = detail::sin_cos_pi(x);
  const double reflected = positive - detail::kPi * cosine / sine;
  const double pole = x == 0 ? detail::with_sign(detail::kInf<double>, -x) : detail::kNan<double>;
  const double negative = sine == 0 ? detail::kNan<double> : reflected;
  const double regular = x < 0 ? negative : positive;
  return x == 0 ? pole : regular;
}
TP_MATH float digamma(float x) { return float(digamma(double(x))); }

// +inf at the poles.
TP_MATH double trigamma(double x) {
  const double z = x < 0 ? 1.0 - x : x;
  // Below 10 step up by 10, the smallest terms first: a quotient of products would add up the errors of its factors.
  double sum = 0.0;
  for (int k = 9; k > 0; --k) sum += 1.0 / ((z + k) * (z + k));
  const bool shift = z < 10.0;
  const double first = 1.0 / z, steps = first * first + sum;
  const double w = shift ? z + 10.0 : z, inverse = 1.0 / w, s = inverse * inverse;
  const double series =
      detail::horner(s, 43867. / 798, -3617. / 510, 7. / 6, -691. / 2730, 5. / 66, -1. / 30, 1. / 42, -1. / 30, 1. / 6);
  const double tail = inverse + s * TP_FMA(inverse, series, 0.5), positive = tail + (shift ? steps : 0.0);
  const double sine = detail::sin_cos_pi(x).sin, q = detail::kPi / sine, reflected = q * q - positive;
  return x < 0 ? reflected : positive;
}
TP_MATH float trigamma(float x) { return float(trigamma(double(x))); }

namespace detail {
// q^s times the Hurwitz zeta(s, q) for q > 0: the sum of (q / (q + k))^s, with Euler-Maclaurin from where it converges.
TP_MATH double scaled_zeta(double s, double q) {
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
  for (const double start = 10 + s / 2; a < start; a += 1) sum += ::pow(q / a, s);
  const double tail = ::pow(q / a, s);
  sum += tail * a / (s - 1) + 0.5 * tail;
  double factor = s, power = tail / a;
  for (int k = 0; k < 9; ++k) {
    sum += kBernoulli[k] * factor * power;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= a * a;
  }
  return sum;
}

// n! q^-(n+1), also where one factor alone is out of range.
TP_MATH double factorial_over_power(int n, double q) {
  const double factorial = ::tgamma(n + 1.0), power = ::pow(q, -(n + 1.0));
  const bool direct = isfinite(factorial) && isfinite(power) && power >= 0x1p-1022;
  int sign_of_gamma;
  return direct ? factorial * power : ::exp(::lgamma_r(n + 1.0, &sign_of_gamma) - (n + 1.0) * ::log(q));
}
}  // namespace detail

// n >= 0; orders above 1 for x > 0 to about 1e-15 (1e-13 where the factorial leaves the range). Negative arguments step up
// one by one, which near the middle between two poles cancels; below -10^4 the result is NaN.
TP_MATH double polygamma(int n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  if (x == detail::kInf<double>) return 0.0;
  if (!(x >= -1e4)) return detail::kNan<double>;
  const double sign = n % 2 ? 1.0 : -1.0;
  double below = 0;
  for (; x <= 0; x += 1) {
    if (x == 0) return n % 2 ? detail::kInf<double> : detail::kNan<double>;
    const double size = detail::factorial_over_power(n, -x);
    below += n % 2 ? size : -size;
  }
  return sign * (below + detail::factorial_over_power(n, x) * detail::scaled_zeta(n + 1, x));
}
TP_MATH float polygamma(int n, float x) { return float(polygamma(n, double(x))); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
