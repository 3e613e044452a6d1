// Owns the gamma family. lgamma, digamma and trigamma are vector code, but for lgamma near its zeros below -2, which is the C
// library's; the higher derivatives loop.
#pragma once
#include "kernels/vecmath_f64.h"
#include "kernels/vecmath_trig.h"

namespace tp {
namespace TP_ISA {
namespace m {

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

// |sin(pi x)| with what its last addition loses.
TP_MATH Pair sin_pi_size(double x) {
  const double r = x - 2.0 * round(0.5 * x), t = TP_FMA(r, 2.0, kRounder), f = TP_FMA(t - kRounder, -0.5, r);
  const auto [angle, lost] = two_product(f, kPi);
  const double low = TP_FMA(f, kPiLo, lost), hi = magnitude(angle), lo = angle < 0 ? -low : low, s = hi * hi;
  const double half = 0.5 * s, w = 1.0 - half, cosine = ((1.0 - w) - half) + TP_FMA(s * s, cos_tail(s), -hi * lo);
  const bool odd = (to_bits(t) & 1) != 0;
  const double sine = TP_FMA(hi * s, sin_tail(s), lo), first = odd ? w : hi, rest = odd ? cosine : sine;
  const double sum = first + rest;
  return {sum, (first - sum) + rest};
}

// (lgamma(2 + t) / t - c) / t on [sqrt(2) - 2, 1/2], c its value at 0.
TP_MATH double lgamma_near_two(double t) {
  return horner(
      t,
      horner_quad(t, t * t, -0x1.b856599a4c749p-25, 0x1.06e0b77e03b86p-24, -0x1.29448d5ac2417p-24,
                  0x1.ba89e45f3f05ap-23, -0x1.f3adbc00b4026p-22, 0x1.00ba76b032015p-20, -0x1.110f076e29124p-19,
                  0x1.2595e7cb678c4p-18, -0x1.3cc40cfa7fdc2p-17, 0x1.580dc8698ed5ap-16, -0x1.78de2555baf48p-15,
                  0x1.a127b1752678ep-14, -0x1.d3fd4d6b576fcp-13, 0x1.0b36af84ea99bp-11, -0x1.38ac5c2abba86p-10,
                  0x1.7add6eadb9a6cp-9, -0x1.e404fc2191035p-8, 0x1.51322ac7d846fp-6),
      -0x1.13e001a557603p-4, 0x1.4a34cc4a60fa6p-2);
}
// x (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) from 5/2 on, in s = 1 / x^2.
TP_MATH double lgamma_stirling(double s) {
  return horner(
      s,
      horner_quad(s, s * s, 0x1.39a2a09b2f5d2p+5, -0x1.a0571acb3314bp+5, 0x1.0118b1c0c7c41p+5, -0x1.8cde48454b486p+3,
                  0x1.b65ba28dd74f2p+1, -0x1.7f275b4a19aedp-1, 0x1.2736f4268abb6p-3, -0x1.ca9aeccab73d5p-6,
                  0x1.a0b659205e766p-8, -0x1.f658912c843ebp-10, 0x1.b94f3f8034d19p-11, -0x1.38137a91f1e1ap-11),
      0x1.a01a01972a46dp-11, -0x1.6c16c16c158d5p-9, 0x1.5555555555555p-4);
}

// log(y) as a sum whose second part is small, and 1 / y.
struct LogParts {
  Pair log;
  double inverse;
};
// Around 2 lgamma is t p(t), and below sqrt(2) one or two steps away from there, their logarithm in the same sum; around
// 1 that begins with t too, which is left out of both.
TP_MATH Pair lgamma_near(double a, LogParts parts) {
  const bool low = a < 0.5, step = a < 0x1.6a09e667f3bcdp+0, one = (a >= 0x1.6a09e667f3bcdp-1) & step;
  const double inner = step ? a - 1.0 : a - 2.0, t = low ? a : inner;
  const double c = one ? -0x1.2788cfc6fb619p-1 : 0x1.b0ee6072093cep-2, c_lost = 0x1.6cb90701fbfabp-58;
  const auto [p, p_lost] = leading(c, c_lost, t, lgamma_near_two(t));
  const auto [part, part_lost] = two_product(t, p);
  const double subtract = step ? -parts.log.hi : 0.0;
  const auto [hi, lost] = two_sum(one ? 0.0 : subtract, part);
  return {hi, (lost - (step ? parts.log.lo : 0.0)) + TP_FMA(t, p_lost, part_lost)};
}
// (a - 1/2) (log(a) - 1) + (log(2 pi) - 1) / 2 + ...
TP_MATH Pair lgamma_far(double a, LogParts parts) {
  const auto [less, less_lost] = two_sum(parts.log.hi, -1.0);
  const auto [g, g_lost] = two_sum(less, parts.log.lo + less_lost);
  const double b = a - 0.5, r = parts.inverse;
  const auto [q, q_lost] = two_product(b, g);
  const auto [hi, lost] = two_sum(q, 0x1.acfe390c97d69p-2);
  const double rest = TP_FMA(r, lgamma_stirling(r * r), TP_FMA(b, g_lost, 0x1.3494bc9001442p-56));
  return {hi, a > 0x1p900 ? 0.0 : (lost + q_lost) + rest};  // there the exact products may overflow
}
// lgamma of a finite a > 0 with what its last addition loses.
TP_MATH Pair lgamma_positive(double a) {
  const bool low = a < 0.5;
  const auto [square, square_lost] = two_product(a, a);
  const double product = a + square, y = low ? product : a, inverse = 1.0 / y;
  const double y_lost = low ? ((a - product) + square) + square_lost : 0.0;
  const double lost = a < 0x1p-60 ? 0.0 : y_lost * inverse;
  const auto [k, f] = log_reduce(y);
  const double whole = k * kLn2Hi, hi = whole + f;
  const double lo = ((whole - hi) + f) + TP_FMA(k, kLn2Lo, TP_FMA(f * f, log_tail(f), lost));
  const LogParts parts = {{hi, lo}, inverse};
  return TP_EITHER(a < 2.5, lgamma_near(a, parts), lgamma_far(a, parts));
}
}  // namespace detail

// +inf at the poles 0, -1, ... and at both infinities.
TP_MATH double lgamma_positive(double x) {
  const auto [hi, lo] = detail::lgamma_positive(x);
  const double result = hi + lo, outside = x == 0 ? detail::kInf<double> : x;
  const double finite = x < detail::kInf<double> ? result : x;
  return x > 0 ? finite : outside;
}
namespace detail {
// lgamma of a finite a > 0 to 2^-37 of itself, by the same steps.
TP_MATH double lgamma_short(double a) {
  const bool low = a < 0.5, step = a < 0x1.6a09e667f3bcdp+0, one = (a >= 0x1.6a09e667f3bcdp-1) & step;
  const double square = a * a, y = low ? a + square : a, inverse = 1.0 / a;
  const auto [k, f] = log_reduce(y);
  const double tail = f * f * log_tail_short(f), log = TP_FMA(k, 0x1.62e42fefa39efp-1, f + tail);
  const double inner = step ? a - 1.0 : a - 2.0, t = low ? a : inner;
  const double p =
      TP_FMA(t,
             horner_quad(t, t * t, 0x1.f044a348ffc46p-18, -0x1.8038178442acap-17, 0x1.3525344a94a8ep-16,
                         -0x1.72b9e5ad11b81p-15, 0x1.a3c36be7720e3p-14, -0x1.d444e24c71313p-13, 0x1.0b2a46f341bf1p-11,
                         -0x1.38ab7fb4d98d4p-10, 0x1.7adda8d510406p-9, -0x1.e404fec298229p-8, 0x1.51322a8d4a4ccp-6,
                         -0x1.13e001a48e004p-4, 0x1.4a34cc4a695afp-2),
             one ? -0x1.2788cfc6fb619p-1 : 0x1.b0ee6072093cep-2);
  const double stepped = one ? tail : log, near = TP_FMA(t, p, step ? -stepped : 0.0);
  const double s = inverse * inverse;
  const double rest = TP_FMA(
      inverse,
      horner_quad(s, s * s, -0x1.783fb826a4bf6p-9, 0x1.726321a1d36e6p-9, -0x1.9abf621afc06fp-10, 0x1.adbfe3e285ec5p-11,
                  -0x1.37a6709e7df55p-11, 0x1.a017f2c897cfcp-11, -0x1.6c16c072acee3p-9, 0x1.5555555552da9p-4),
      0x1.acfe390c97d69p-2);
  const double far = TP_FMA(a - 0.5, log - 1.0, rest);
  return a < 2.5 ? near : far;
}

// By reflection, log(pi / (a sin(pi a))) - lgamma(a), a = -x: where the two cancel, absolutely good to 1e-16.
TP_MATH double lgamma_reflected(double a, Pair positive) {
  const auto [sine, sine_lost] = sin_pi_size(a);
  const auto [product, product_lost] = two_product(sine, a);
  const double lost = TP_FMA(sine_lost, a, product_lost) / product;
  const auto [log_hi, log_lo] = log_parts(product);
  const auto [first, first_lost] = two_sum(0x1.250d048e7a1bdp+0, -log_hi);
  const auto [sum, sum_lost] = two_sum(first, -positive.hi);
  const double result = sum + ((sum_lost + first_lost) + ((0x1.7abf2ad8d5088p-57 - log_lo) - positive.lo - lost));
  const double settled = a < 0x1p-60 ? positive.hi + positive.lo : result;
  return (a >= 0x1p52) | (sine == 0) ? kInf<double> : settled;
}
}  // namespace detail

// For results that are rounded to float32.
TP_MATH double lgamma_positive_float(double x) {
  const double result = detail::lgamma_short(x), outside = x == 0 ? detail::kInf<double> : x;
  const double finite = x < detail::kInf<double> ? result : x;
  return x > 0 ? finite : outside;
}
TP_MATH double lgamma_fast(double x) {
  const double a = detail::magnitude(x);
  const detail::Pair positive = detail::lgamma_positive(a);
  const double finite = TP_EITHER(x < 0, detail::lgamma_reflected(a, positive), positive.hi + positive.lo);
  const double outside = x == x ? detail::kInf<double> : x;  // 0 and the infinities
  return (a > 0) & (a < detail::kInf<double>) ? finite : outside;
}
// The C library's, of long double: within 1 ulp where that is wider (else up to 6 ulp).
TP_MATH double lgamma_exact(double x) {
  int sign_of_gamma;
  return double(::lgammal_r(x, &sign_of_gamma));
}

// Where the terms of the reflection cancel; a result in float32 has fewer digits to lose.
TP_MATH bool lgamma_cancels(double x, double value, bool single) {
  return (x < -2) & (abs(value) < (single ? 0x1p-12 : 0.25));
}
TP_MATH double lgamma(double x) {
  const double value = lgamma_fast(x);
  return lgamma_cancels(x, value, false) ? lgamma_exact(x) : value;
}
TP_MATH float lgamma(float x) {
  const double positive = lgamma_positive_float(x), negative = lgamma_fast(x), value = x < 0 ? negative : positive;
  return float(lgamma_cancels(x, value, true) ? lgamma_exact(x) : value);
}

namespace detail {
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
