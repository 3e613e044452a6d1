// Owns the float32 elementary functions that have a form of their own. The rarer ones go through the float64 form.
// Coefficients are minimax fits with the leading ones fixed (tests/core/ulp/minimax.py makes them).
#pragma once
#include "kernels/vecmath_base.h"
#include "kernels/vecmath_f64.h"

namespace tp {
namespace TP_ISA {
namespace m {

namespace detail {

// Adding this rounds to an integer (half to even) and leaves it in the low bits of the sum. A small integer added to it
// biases what is left, so that shifting the sum by 23 gives the bits of a power of two.
inline constexpr float kRounderF = 0x1.8p23f;
inline constexpr float kLog2eF = 0x1.715476p+0f;
// ln 2 in two parts; multiples of the first below 2^9 are exact, so no fused operation is needed.
inline constexpr float kLn2HiF = 0x1.62e4p-1f, kLn2LoF = 0x1.7f7d1cp-20f;

// x = n ln 2 + r with |r| <= ln 2 / 2; 'biased' holds n + bias in its low bits. Above n = top the remainder grows
// instead of n: the polynomials then grow too, and their product with the scale overflows as it should.
struct ExpReducedF {
  float n, r;
  uint32_t biased;
};
TP_MATH ExpReducedF exp_reduce(float x, int bias, int top) {
  const float rounder = kRounderF + float(bias);
  const int32_t bits = int32_t(to_bits(TP_FMA(x, kLog2eF, rounder)));
  const int32_t last = int32_t(to_bits(rounder + float(top)));
  const int32_t capped = bits < last ? bits : last;
  const float n = from_bits(uint32_t(capped)) - rounder;
  return {n, TP_FMA(n, -kLn2LoF, TP_FMA(n, -kLn2HiF, x)), uint32_t(capped)};
}

// 2^n in two factors, so that subnormal results round once and 2^128 can be reached. biased carries a bias of 254.
TP_MATH float scale_in_two(float p, float n, uint32_t biased) {
  const uint32_t half = to_bits(TP_FMA(n, 0.5f, kRounderF + 127.0f));
  return p * from_bits(half << 23) * from_bits((biased - half) << 23);
}

// (exp(r) - 1 - r) / r^2 on the reduced range.
TP_MATH float expm1_tail(float r) {
  return horner(r, 0x1.6c5e2ep-10f, 0x1.122426p-7f, 0x1.5555b2p-5f, 0x1.5554b6p-3f, 0x1p-1f);
}

// x = 2^k (1 + f), also for subnormal x. Selecting the scale, not the scaled value, keeps the compiler from computing
// both ways.
struct LogReducedF {
  float k, f;  // k in units of 2^-23
};
TP_MATH LogReducedF log_reduce(float x) {
  const float scale = x < 0x1p-126f ? 0x1p24f : 1.0f;
  const uint32_t bits = to_bits(x * scale);
  const uint32_t k = (bits - 0x3f3504f3u) & 0xff800000u;
  return {float(int32_t(k - (to_bits(scale) - 0x3f800000u))), from_bits(bits - k) - 1.0f};
}

// result + k * c for a constant c in two parts; k counts in units of 2^-23 and the first part is short.
TP_MATH float add_exponent(float f, float tail, float k, float whole, float high, float low) {
#if TP_HAS_FMA
  (void)high, (void)low;
  return TP_FMA(k, whole * 0x1p-23f, f + tail);
#else
  (void)whole;
  return k * (high * 0x1p-23f) + (f + (tail + k * (low * 0x1p-23f)));
#endif
}

// The values of a logarithm outside its open domain. Separate selections of ready values: nested conditions would be
// turned into branches and back into more masks.
TP_MATH float log_special(float result, float x, float zero_at) {
  const float outside = x == zero_at ? -kInf<float> : kNan<float>;
  const float inside = x < kInf<float> ? result : x;
  return x > zero_at ? inside : outside;
}

}  // namespace detail

// ---- exponentials ----------------------------------------------------------------------------------------------------

TP_MATH float exp(float x) {
  const float y = x < -104.0f ? -104.0f : x;
  const auto [n, r, biased] = detail::exp_reduce(y, 254, 128);
  const float p =
      detail::horner(r, 0x1.6a4356p-10f, 0x1.1239b4p-7f, 0x1.5558bap-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1.0f, 1.0f);
  return detail::scale_in_two(p, n, biased);
}

// Where the result is a normal number the scale is added to its exponent; the bits are those of exp.
inline constexpr float kExpNearF = 87.0f;
TP_MATH float exp_fast(float x) {
  const float t = TP_FMA(x, detail::kLog2eF, detail::kRounderF), n = t - detail::kRounderF;
  const float r = TP_FMA(n, -detail::kLn2LoF, TP_FMA(n, -detail::kLn2HiF, x));
  const float p =
      detail::horner(r, 0x1.6a4356p-10f, 0x1.1239b4p-7f, 0x1.5558bap-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1.0f, 1.0f);
  return detail::from_bits(detail::to_bits(p) + (detail::to_bits(t) << 23));
}

TP_MATH float exp2(float x) {
  const float y = x < -151.0f ? -151.0f : x, rounder = detail::kRounderF + 254.0f;
  const int32_t bits = int32_t(detail::to_bits(y + rounder)), last = int32_t(detail::to_bits(rounder + 128.0f));
  const int32_t capped = bits < last ? bits : last;
  const uint32_t biased = uint32_t(capped);
  const float n = detail::from_bits(biased) - rounder;
  const float p = detail::horner(y - n, 0x1.416eeep-13f, 0x1.5f098ap-10f, 0x1.3b2ddep-7f, 0x1.c6af7ap-5f,
                                 0x1.ebfbdcp-3f, 0x1.62e43p-1f, 1.0f);
  return detail::scale_in_two(p, n, biased);
}

TP_MATH float expm1(float x) {
  const float y = x < -18.0f ? -18.0f : x;
  // Half the scale first: 2^128 is not a float, and the last doubling overflows only where the result does.
  const auto [n, r, biased] = detail::exp_reduce(y, 126, 128);
  const float s = detail::from_bits(biased << 23);
  const float p = TP_FMA(r * r, detail::expm1_tail(r), r);
  const float result = 2.0f * TP_FMA(s, p, s - 0.5f);
  return detail::magnitude(x) < 0x1p-25f ? x : result;
}

namespace detail {
// 2^-64 + 2^-64 exp(-x): the factor lets one scale reach every exponent, down to subnormal results.
TP_MATH float scaled_logistic(float x) {
  const float y = x > 30.0f ? 30.0f : x;
  const auto [n, r, biased] = exp_reduce(-y, 63, 150);
  // The power of two joins last, so that exp itself is never rounded, only exp - 1.
  const float s = from_bits(biased << 23), p = TP_FMA(r * r, expm1_tail(r), r);
  return TP_FMA(p, s, 0x1p-64f) + s;
}
}  // namespace detail
TP_MATH float sigmoid(float x) { return 0x1p-64f / detail::scaled_logistic(x); }

#if TP_HAS_FMA
// u / (u + 1) with 2 u = expm1(2 |x|). The reduction is shifted so that n = 0 reaches up to |x| = 0.26: where n changes,
// the rounding of u would otherwise show twice.
TP_MATH float tanh(float x) {
  const float a = detail::magnitude(x), y = a > 10.0f ? 10.0f : a, rounder = detail::kRounderF + 127.0f;
  const float t = TP_FMA(y - 0x1.62e43p-4f, 2 * detail::kLog2eF, rounder), n = t - rounder;
  const float h = TP_FMA(n, -0.5f * detail::kLn2LoF, TP_FMA(n, -0.5f * detail::kLn2HiF, y));
  const float tail = detail::horner(h, 0x1.a3f5aap-5f, 0x1.0f5f92p-3f, 0x1.554c68p-2f, 0x1.555634p-1f, 1.0f);
  const float s = detail::from_bits(detail::to_bits(t) << 23);
  const float u = TP_FMA(s, TP_FMA(h * h, tail, h), TP_FMA(s, 0.5f, -0.5f));
  // For small u the quotient is only a correction: u - u^2 / (u + 1).
  const float q = u / (u + 1.0f), small = TP_FMA(-u, q, u);
  return detail::with_sign(u < 0.5f ? small : q, x);
}
#endif  // without fused products 2.1 ulp: vecmath_f64.h has it

// ---- logarithms ------------------------------------------------------------------------------------------------------

TP_MATH float log(float x) {
  const auto [k, f] = detail::log_reduce(x);
  const float p = detail::horner_pair(f, f * f, -0x1.39178p-4f, 0x1.057dep-3f, -0x1.0d83c8p-3f, 0x1.22d598p-3f,
                                      -0x1.5471fep-3f, 0x1.99a034p-3f, -0x1.000228p-2f, 0x1.555554p-2f, -0x1p-1f);
  const float result = detail::add_exponent(f, f * f * p, k, 0x1.62e43p-1f, detail::kLn2HiF, detail::kLn2LoF);
  return detail::log_special(result, x, 0.0f);
}

// For positive normal numbers; the bits are those of log.
TP_MATH float log_fast(float x) {
  const uint32_t bits = detail::to_bits(x), k = (bits - 0x3f3504f3u) & 0xff800000u;
  const float f = detail::from_bits(bits - k) - 1.0f;
  const float p = detail::horner_pair(f, f * f, -0x1.39178p-4f, 0x1.057dep-3f, -0x1.0d83c8p-3f, 0x1.22d598p-3f,
                                      -0x1.5471fep-3f, 0x1.99a034p-3f, -0x1.000228p-2f, 0x1.555554p-2f, -0x1p-1f);
  return detail::add_exponent(f, f * f * p, float(int32_t(k)), 0x1.62e43p-1f, detail::kLn2HiF, detail::kLn2LoF);
}

TP_MATH float log2(float x) {
  const auto [k, f] = detail::log_reduce(x);
  const float p = detail::horner(f,
                                 detail::horner_pair(f, f * f, -0x1.dcc714p-4f, 0x1.7e9cd2p-3f, -0x1.817f6ep-3f,
                                                     0x1.a21edep-3f, -0x1.eb6d3cp-3f, 0x1.278bacp-2f, -0x1.7156c4p-2f),
                                 0x1.ec7022p-2f, -0x1.715476p-1f, 0x1.c551dap-2f);
  return detail::log_special(TP_FMA(k, 0x1p-23f, TP_FMA(f, p, f)), x, 0.0f);
}

TP_MATH float log10(float x) {
  const auto [k, f] = detail::log_reduce(x);
  const float p = detail::horner(f,
                                 detail::horner_pair(f, f * f, -0x1.166caap-5f, 0x1.c96338p-5f, -0x1.d2a678p-5f,
                                                     0x1.f8725p-5f, -0x1.27c58p-4f, 0x1.63d48ep-4f, -0x1.bcbae4p-4f),
                                 0x1.287a5p-3f, -0x1.bcb7b2p-3f, -0x1.0d213ap-4f);
  const float result = detail::add_exponent(0.5f * f, f * p, k, 0x1.344136p-2f, 0x1.344p-2f, 0x1.3509f8p-18f);
  return detail::log_special(result, x, 0.0f);
}

// The exponent comes from the rounded 1 + x, the significand from x itself: nothing of x is lost. The exponent is kept
// negated, so that every term of log1p(-0) is -0.
TP_MATH float log1p(float x) {
  const uint32_t minus_k = (0x3fbfffffu - detail::to_bits(1.0f + x)) & 0xff800000u;
  const float scale = detail::from_bits(0x40800000u + minus_k);  // 2^(2-k), a normal number for every k
  const float f = detail::from_bits(detail::to_bits(x) + minus_k) - TP_FMA(scale, -0.25f, 1.0f);
  const float p = detail::horner_pair(f, f * f, -0x1.71d1e2p-5f, 0x1.acef56p-4f, -0x1.0d9acep-3f, 0x1.288226p-3f,
                                      -0x1.54edccp-3f, 0x1.99698ap-3f, -0x1.000048p-2f, 0x1.5555a4p-2f, -0x1p-1f);
  const float result =
      detail::add_exponent(f, f * f * p, float(int32_t(minus_k)), -0x1.62e43p-1f, -detail::kLn2HiF, -detail::kLn2LoF);
  return detail::log_special(result, x, -1.0f);
}

// ---- error function --------------------------------------------------------------------------------------------------

namespace detail {
// erf(t) / t - 1 in s = t^2 for |t| <= 0.925
TP_MATH float erf_small(float s) {
  return horner(s, -0x1.387f18p-11f, 0x1.46dc84p-8f, -0x1.b67c66p-6f, 0x1.ce198ap-4f, -0x1.8126e2p-2f, 0x1.06eba6p-3f);
}
}  // namespace detail

TP_MATH float erf(float x) {
  const float a = detail::magnitude(x), t = a > 4.0f ? 4.0f : a, s = t * t, small = detail::erf_small(s);
  // 1 - 2^q(t) beyond; the power is below 0.2 there, so a short polynomial does.
  const float q = detail::horner(t, 0x1.286906p-12f, -0x1.1fbb32p-8f, 0x1.06b092p-5f, -0x1.33148p-3f, -0x1.d6a93cp-1f,
                                 -0x1.a07bfcp+0f, -0x1.28122p-12f);
  const float rounder = detail::kRounderF + 127.0f, shifted = q + rounder, r = q - (shifted - rounder);
  const float p =
      detail::horner(r, 0x1.5bd894p-10f, 0x1.3ce98ap-7f, 0x1.c6b6dep-5f, 0x1.ebf9cp-3f, 0x1.62e42ap-1f, 1.0f);
  const float large = TP_FMA(-p, detail::from_bits(detail::to_bits(shifted) << 23), 1.0f);
  const float near_zero = TP_FMA(t, small, t);
  return detail::with_sign(t < 0.925f ? near_zero : large, x);
}

namespace detail {
// a * b = hi + lo, exactly (short of overflow and underflow).
struct PairF {
  float hi, lo;
};
TP_MATH PairF exact_product(float a, float b) {
  const float hi = a * b;
#if TP_HAS_FMA
  return {hi, TP_FMA(a, b, -hi)};
#else
  // Halves of 12 bits, whose products are exact.
  const float ah = from_bits(to_bits(a) & 0xfffff000u), al = a - ah, bh = from_bits(to_bits(b) & 0xfffff000u);
  const float bl = b - bh;
  return {hi, (((ah * bh - hi) + ah * bl) + al * bh) + al * bl};
#endif
}
}  // namespace detail

// exp(-a^2) times a polynomial in (a - 3) / (a + 3) over 1 + 2 a, as in float64. What the square, the polynomial's last
// sum and the quotient lose goes into one small term.
TP_MATH float erfc(float x) {
  const float magnitude = detail::magnitude(x), a = magnitude > 10.1f ? 10.1f : magnitude;
  const float d = TP_FMA(2.0f, a, 1.0f), d_lost = 2.0f * a - (d - 1.0f);
  const float both = 1.0f / ((a + 3.0f) * d), u = (a - 3.0f) * (d * both), inverse = (a + 3.0f) * both;
  const float lead = 0x1.40c522p+0f;
  const float w = TP_FMA(u,
                         detail::horner(u, 0x1.26ae46p-15f, -0x1.809b5p-13f, -0x1.85172p-11f, 0x1.ff391ep-10f,
                                        0x1.4b9b6ap-9f, -0x1.85bc56p-6f, 0x1.17c7fep-4f, -0x1.e88962p-4f,
                                        0x1.098388p-3f, -0x1.85a18cp-5f, -0x1.15c086p-3f),
                         0x1.b58cc6p-25f);
  const float h = lead + w, h_lost = (lead - h) + w, q = h * inverse;
  const auto [back, back_lost] = detail::exact_product(q, d);
  const auto [square, square_lost] = detail::exact_product(a, a);
  const float rest = inverse * (((h - back) - back_lost) + (h_lost - q * d_lost)) - q * square_lost;
  const auto [n, r, biased] = detail::exp_reduce(-square, 254, 128);
  const float p = TP_FMA(r * r, detail::expm1_tail(r), r);
  const float tail = detail::scale_in_two(q + TP_FMA(q, p, TP_FMA(rest, p, rest)), n, biased);
  const float small = TP_FMA(-a, detail::erf_small(a * a), 1.0f - a), upper = a < 0.6f ? small : tail;
  const float lower = 2.0f - upper;
  return x < 0 ? lower : upper;
}

// ---- through float64 ------------------------------------------------------------------------------------------------

TP_MATH float sinh(float x) { return float(sinh(double(x))); }
TP_MATH float cosh(float x) { return float(cosh(double(x))); }
TP_MATH float asinh(float x) { return float(asinh(double(x))); }
TP_MATH float acosh(float x) { return float(acosh(double(x))); }
TP_MATH float atanh(float x) { return float(atanh(double(x))); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
