// Owns the float64 exponentials, logarithms, hyperbolic and error functions. Same shapes as vecmath_f32.h; where the
// last bits matter, small terms are carried beside the large ones instead of into them.
#pragma once
#include "kernels/vecmath_base.h"

namespace tp {
namespace TP_ISA {
namespace m {

namespace detail {

inline constexpr double kRounder = 0x1.8p52;
inline constexpr double kLog2e = 0x1.71547652b82fep+0;
// ln 2 in two parts; multiples of the first below 2^11 are exact.
inline constexpr double kLn2Hi = 0x1.62e42fefa38p-1, kLn2Lo = 0x1.ef35793c7673p-45;

struct Pair {
  double hi, lo;
};
TP_MATH Pair either(bool condition, Pair a, Pair b) { return {condition ? a.hi : b.hi, condition ? a.lo : b.lo}; }

// a * b = product + error, exactly (unless it overflows or vanishes).
TP_MATH Pair two_product(double a, double b) {
  const double p = a * b;
#if TP_HAS_FMA
  return {p, __builtin_fma(a, b, -p)};
#else
  // Dekker: halves of 26 bits, whose products are exact.
  const double sa = a * 0x1.0000002p27, sb = b * 0x1.0000002p27;
  const double ah = sa - (sa - a), al = a - ah, bh = sb - (sb - b), bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
}

// a + b = sum + error, exactly.
TP_MATH Pair two_sum(double a, double b) {
  const double s = a + b, back = s - a;
  return {s, (a - (s - back)) + (b - back)};
}

// hi + lo + t p with what the sum loses, for t p smaller than hi.
TP_MATH Pair leading(double hi, double lo, double t, double p) {
  const double sum = TP_FMA(t, p, hi);
  return {sum, TP_FMA(t, p, hi - sum) + lo};
}

// (hi + lo) / y, hi constant.
TP_MATH Pair over(double hi, double lo, double y) {
  const double q = hi / y;
  const auto [back, back_lost] = two_product(q, y);
  const double lost = (((hi - back) - back_lost) + lo) * (q * (1.0 / hi));
  return {q, y < 0x1p-900 ? 0.0 : lost};  // there the exact product may overflow
}

// The smaller of two numbers next to kRounder. As integers where vectors compare those: through a comparison of doubles
// the compiler would trace the clamps of the argument, and compute every case on a path of its own.
TP_MATH double cap(double t, double last) {
#if TP_HAS_ROUND
  const int64_t a = int64_t(to_bits(t)), b = int64_t(to_bits(last));
  const int64_t least = a < b ? a : b;
  return from_bits(uint64_t(least));
#else
  return t > last ? last : t;
#endif
}

// x = n ln 2 + r; 'biased' holds n + bias in its low bits. Above n = top the remainder grows instead of n.
struct ExpReduced {
  double n, r;
  uint64_t biased;
};
TP_MATH ExpReduced exp_reduce(double x, int bias, int top) {
  const double rounder = kRounder + bias, last = rounder + top, t = TP_FMA(x, kLog2e, rounder);
  const double capped = cap(t, last), n = capped - rounder;
  return {n, TP_FMA(n, -kLn2Lo, TP_FMA(n, -kLn2Hi, x)), to_bits(capped)};
}

// 2^n in two factors; biased carries a bias of 2046.
TP_MATH double scale_in_two(double p, double n, uint64_t biased) {
  const uint64_t half = to_bits(TP_FMA(n, 0.5, kRounder + 1023.0));
  return p * from_bits(half << 52) * from_bits((biased - half) << 52);
}

// (exp(r) - 1 - r) / r^2
TP_MATH double expm1_tail(double r) {
  return horner_pair(r, r * r, 0x1.1f31c9abc514ap-29, 0x1.af5d3a1227765p-26, 0x1.27e4fdb2c8345p-22,
                     0x1.71ddf920bd3ap-19, 0x1.a01a019bdcf8ep-16, 0x1.a01a01afa316dp-13, 0x1.6c16c16c16ffbp-10,
                     0x1.111111110f702p-7, 0x1.5555555555558p-5, 0x1.5555555555559p-3, 0x1p-1);
}
TP_MATH double exp_poly(double r) { return TP_FMA(r * r, expm1_tail(r), r) + 1.0; }

// x = 2^k (1 + f), also for subnormal x.
struct LogReduced {
  double k, f;
};
TP_MATH LogReduced log_reduce(double x) {
  const double scale = x < 0x1p-1022 ? 0x1p54 : 1.0;
  const uint64_t bits = to_bits(x * scale), above = bits - 0x3fe6a09e667f3bcdu;
  // There is no vector conversion of 64-bit integers below AVX-512: the biased exponent becomes the significand of a
  // number next to 2^52 instead.
  const uint64_t biased = (above + 0xbff0000000000000u - to_bits(scale)) >> 52;
  const double k = from_bits(biased | 0x4330000000000000u) - (0x1p52 + 2048.0);
  return {k, from_bits(bits - (above & 0xfff0000000000000u)) - 1.0};
}

TP_MATH double log_tail(double f) {
  return horner_quad(f, f * f, 0x1.ac40b0f4d3dc8p-6, -0x1.e9ebf7c599368p-5, 0x1.0a63f602738dap-4, -0x1.d129d876e7e34p-5,
                     0x1.d05b64ed06dccp-5, -0x1.fba01575003c7p-5, 0x1.11ccdaf19bcf2p-4, -0x1.24d7623205bcfp-4,
                     0x1.3b0b8d2ca9902p-4, -0x1.5550ed6585ed9p-4, 0x1.745d3ee0884ebp-4, -0x1.9999c27425a0ap-4,
                     0x1.c71c71e20754fp-4, -0x1.ffffff2bcb451p-4, 0x1.249249229f93ap-3, -0x1.555555566b6d1p-3,
                     0x1.999999999f7e4p-3, -0x1.fffffffffef11p-3, 0x1.5555555555533p-2, -0x1p-1);
}

TP_MATH double add_exponent(double f, double tail, double k, double high, double low) {
  return TP_FMA(k, high, f + TP_FMA(k, low, tail));
}

// (log(1 + f) - f) / f^2 to 2^-37, for results that are rounded to float32.
TP_MATH double log_tail_short(double f) {
  return horner_quad(f, f * f, -0x1.48077889d4285p-5, 0x1.44404fc7bc462p-4, -0x1.4d54ea437c2dp-4, 0x1.3a723d9a07eap-4,
                     -0x1.50100cae0622p-4, 0x1.73e0bdd3bb3e2p-4, -0x1.99eb887c7c33p-4, 0x1.c7270b834c74ep-4,
                     -0x1.fffd791c105c2p-4, 0x1.24921dad6695dp-3, -0x1.55555a240a34bp-3, 0x1.99999a259950fp-3,
                     -0x1.fffffff8e9cdbp-3, 0x1.5555555517c91p-2, -0x1.0000000000731p-1);
}
TP_MATH double log_short(double x) {
  const auto [k, f] = log_reduce(x);
  return TP_FMA(k, 0x1.62e42fefa39efp-1, TP_FMA(f * f, log_tail_short(f), f));
}

// log(x) of a positive finite x with what its last addition loses.
TP_MATH Pair log_parts(double x) {
  const auto [k, f] = log_reduce(x);
  const double whole = k * kLn2Hi, high = whole + f;
  const double low = ((whole - high) + f) + TP_FMA(k, kLn2Lo, f * f * log_tail(f)), sum = high + low;
  return {sum, (high - sum) + low};
}

TP_MATH double log_special(double result, double x, double zero_at) {
  const double outside = x == zero_at ? -kInf<double> : kNan<double>;
  const double inside = x < kInf<double> ? result : x;
  return x > zero_at ? inside : outside;
}

}  // namespace detail

// ---- exponentials ----------------------------------------------------------------------------------------------------

TP_MATH double exp(double x) {
  const double y = x < -746.0 ? -746.0 : x;
  const auto [n, r, biased] = detail::exp_reduce(y, 2046, 1024);
  return detail::scale_in_two(detail::exp_poly(r), n, biased);
}

TP_MATH double exp2(double x) {
  const double y = x < -1076.0 ? -1076.0 : x, rounder = detail::kRounder + 2046.0, last = rounder + 1024.0;
  const double t = y + rounder, capped = detail::cap(t, last), n = capped - rounder;
  const double p =
      detail::horner(y - n, 0x1.e8202d3de9541p-32, 0x1.e612bec2977p-28, 0x1.b52600d6d20a9p-24, 0x1.62bfcd2f4d0dcp-20,
                     0x1.ffcbfbffdc339p-17, 0x1.4309130c4e56dp-13, 0x1.5d87fe78b1fe9p-10, 0x1.3b2ab6fba1023p-7,
                     0x1.c6b08d704a0dep-5, 0x1.ebfbdff82c59dp-3, 0x1.62e42fefa39efp-1, 1.0);
  return detail::scale_in_two(p, n, detail::to_bits(capped));
}

TP_MATH double expm1(double x) {
  const double y = x < -38.0 ? -38.0 : x;
  const auto [n, r, biased] = detail::exp_reduce(y, 1022, 1024);
  const double s = detail::from_bits(biased << 52);
  const double p = TP_FMA(r * r, detail::expm1_tail(r), r);
  const double result = 2.0 * TP_FMA(s, p, s - 0.5);
  return detail::magnitude(x) < 0x1p-54 ? x : result;
}

namespace detail {
// 2^-512 (1 + exp(-x)).
TP_MATH double scaled_logistic(double x) {
  const double y = x > 40.0 ? 40.0 : x;
  const auto [n, r, biased] = exp_reduce(-y, 1023 - 512, 1076);
  // The power of two joins last, so that exp itself is never rounded, only exp - 1.
  const double s = from_bits(biased << 52), p = TP_FMA(r * r, expm1_tail(r), r);
  return TP_FMA(p, s, 0x1p-512) + s;
}
}  // namespace detail
TP_MATH double sigmoid(double x) { return 0x1p-512 / detail::scaled_logistic(x); }

// u / (u + 1) with 2 u = expm1(2 |x|). The reduction is shifted so that n = 0 reaches up to |x| = 0.26: where n changes,
// the rounding of u would otherwise show twice.
TP_MATH double tanh(double x) {
  const double a = detail::magnitude(x), y = a > 20.0 ? 20.0 : a, rounder = detail::kRounder + 1023.0;
  const double t = TP_FMA(y - 0x1.62e42fefa39efp-4, 2 * detail::kLog2e, rounder), n = t - rounder;
  const double h = TP_FMA(n, -0.5 * detail::kLn2Lo, TP_FMA(n, -0.5 * detail::kLn2Hi, y)), r = h + h;
  const double tail =
      detail::horner(r, 0x1.502424aa57cd2p-29, 0x1.a99805b2e42f3p-26, 0x1.27fccf58c8cf1p-22, 0x1.71de394046b1bp-19,
                     0x1.a019fb641cbd9p-16, 0x1.a01a01bbc258dp-13, 0x1.6c16c16c8479ap-10, 0x1.111111110e328p-7,
                     0x1.5555555555513p-5, 0x1.555555555555ap-3, 0x1p-1);
  const double s = detail::from_bits(detail::to_bits(t) << 52);
  const double u = TP_FMA(s, TP_FMA(r * h, tail, h), TP_FMA(s, 0.5, -0.5));
  // For small u the quotient is only a correction: u - u^2 / (u + 1).
  const double q = u / (u + 1.0), small = TP_FMA(-u, q, u);
  return detail::with_sign(u < 0.5 ? small : q, x);
}
#if !TP_HAS_FMA
TP_MATH float tanh(float x) { return float(tanh(double(x))); }
#endif

// exp(|x|) / 2 with the halving inside the scale, so that it overflows only where cosh does.
namespace detail {
TP_MATH double half_exp(double a) {
  const auto [n, r, biased] = exp_reduce(a, 2045, 1025);
  return scale_in_two(exp_poly(r), n, biased);
}
}  // namespace detail

TP_MATH double cosh(double x) {
  const double e = detail::half_exp(detail::magnitude(x));
  return e + 0.25 / e;
}

TP_MATH double sinh(double x) {
  const double a = detail::magnitude(x), e = detail::half_exp(a), s = x * x;
  const double p =
      detail::horner(s, 0x1.b5c87393178cbp-41, 0x1.6116f4fc424afp-33, 0x1.ae646ff460045p-26, 0x1.71de3a3b07454p-19,
                     0x1.a01a01a037264p-13, 0x1.111111111101ep-7, 0x1.5555555555556p-3);
  const double small = TP_FMA(a * s, p, a), large = e - 0.25 / e;
  return detail::with_sign(a < 1.0 ? small : large, x);
}

// ---- logarithms ------------------------------------------------------------------------------------------------------

TP_MATH double log(double x) {
  const auto [k, f] = detail::log_reduce(x);
  const double result = detail::add_exponent(f, f * f * detail::log_tail(f), k, detail::kLn2Hi, detail::kLn2Lo);
  return detail::log_special(result, x, 0.0);
}

TP_MATH double log2(double x) {
  const auto [k, f] = detail::log_reduce(x);
  const double p = detail::horner(
      f,
      detail::horner_quad(f, f * f, -0x1.4e431ccfd37bcp-5, 0x1.7642c8d4242a2p-4, -0x1.91c317d51f4aep-4,
                          0x1.610d23d276dfp-4, -0x1.64c1a382991b5p-4, 0x1.873a0723f8ed3p-4, -0x1.a7269fff9ecb1p-4,
                          0x1.c6e418cee1be4p-4, -0x1.ec644063f487dp-4, 0x1.0c97eac6aa429p-3, -0x1.2776eac08c879p-3,
                          0x1.484b2ab5e9204p-3, -0x1.715475f4603f2p-3, 0x1.a6176238ac9b9p-3, -0x1.ec709dc37010ap-3,
                          0x1.2776c50f803bdp-2, -0x1.71547652b91e5p-2),
      0x1.ec709dc39fc2p-2, -0x1.71547652b82f9p-1, 0x1.c551d94ae0bfap-2);
  return detail::log_special(k + TP_FMA(f, p, f), x, 0.0);
}

TP_MATH double log10(double x) {
  const auto [k, f] = detail::log_reduce(x);
  const double p = detail::horner(
      f,
      detail::horner_quad(f, f * f, -0x1.927de2f543dc3p-7, 0x1.c2a7ae1e9f512p-6, -0x1.e3c50e727f2c3p-6,
                          0x1.a91dbc94c6d59p-6, -0x1.ad93d7cd9f1c3p-6, 0x1.d71577615691ap-6, -0x1.fd8640f9a3bddp-6,
                          0x1.11df260111a51p-5, -0x1.28730478445bep-5, 0x1.436b30af8a0a1p-5, -0x1.63c654d8638b3p-5,
                          0x1.8b4e0e7d0cb4dp-5, -0x1.bcb7b0e0d47b6p-5, 0x1.fc3fa58f667f7p-5, -0x1.287a7636d7336p-4,
                          0x1.63c62775c6fcdp-4, -0x1.bcb7b1526f6ffp-4),
      0x1.287a7636f3ea3p-3, -0x1.bcb7b1526e508p-3, -0x1.0d213ab646bc6p-4);
  const double result = detail::add_exponent(0.5 * f, f * p, k, 0x1.34413509f78p-2, 0x1.fef311f12b358p-46);
  return detail::log_special(result, x, 0.0);
}

namespace detail {
// 1 + x = 2^k (1 + f): the exponent from the rounded sum, the significand from x itself, so that nothing of x is lost.
struct Log1pReduced {
  double f, scale;
  uint64_t minus_k;
};
TP_MATH Log1pReduced log1p_reduce(double x) {
  const uint64_t minus_k = (0x3ff7ffffffffffffu - to_bits(1.0 + x)) & 0xfff0000000000000u;
  const double scale = from_bits(0x4010000000000000u + minus_k);  // 2^(2-k), a normal number for every k
  return {from_bits(to_bits(x) + minus_k) - TP_FMA(scale, -0.25, 1.0), scale, minus_k};
}
TP_MATH double log1p_finish(double f, uint64_t minus_k) {
  const uint64_t biased = (minus_k + 0x4000000000000000u) >> 52;  // -k + 1024
  const double k = from_bits(biased | 0x4330000000000000u) - (0x1p52 + 1024.0);
  const double p =
      horner_quad(f, f * f, 0x1.0916440691a4ap-7, -0x1.e176b5eafc9d5p-6, 0x1.9f48068f1bc5cp-5, -0x1.e8e7858d05b37p-5,
                  0x1.f253b809de9f1p-5, -0x1.fffd45caf89fp-5, 0x1.101ca4cddbb9bp-4, -0x1.24656d9ad0351p-4,
                  0x1.3b1f0378e46f7p-4, -0x1.55593a08945d3p-4, 0x1.745cec2227a3p-4, -0x1.999972c23749dp-4,
                  0x1.c71c70de8f349p-4, -0x1.00000063fe39dp-3, 0x1.2492492974233p-3, -0x1.5555555458a99p-3,
                  0x1.999999998c755p-3, -0x1.0000000000776p-2, 0x1.55555555555ap-2, -0x1p-1);
  return add_exponent(f, f * f * p, k, -kLn2Hi, -kLn2Lo);
}
// log(1 + x + lo) for lo below the last bit of x
TP_MATH double log1p_sum(double x, double lo) {
  const auto [f, scale, minus_k] = log1p_reduce(x);
  return log_special(log1p_finish(TP_FMA(0.25 * lo, scale, f), minus_k), x, -1.0);
}
}  // namespace detail

TP_MATH double log1p(double x) {
  const auto [f, scale, minus_k] = detail::log1p_reduce(x);
  return detail::log_special(detail::log1p_finish(f, minus_k), x, -1.0);
}

// The arguments of the logarithm are sums and quotients; what they lose goes along.
TP_MATH double atanh(double x) {
  const double a = detail::magnitude(x), d = 1.0 - a, d_lost = (1.0 - d) - a, inverse = 1.0 / d, q = (a + a) * inverse;
  const auto [back, back_lost] = detail::two_product(q, d);
  const double residual = (((a + a) - back) - back_lost) - q * d_lost, lost = a < 1.0 ? residual * inverse : 0.0;
  return detail::with_sign(0.5 * detail::log1p_sum(q, lost), x);
}
// Far out the argument of the logarithm is 2 |x|, which may overflow: the doubling is added afterwards.
TP_MATH double asinh(double x) {
  const double a = detail::magnitude(x), s = a * a, small = s / (1.0 + sqrt(s + 1.0)), near = a + small;
  const bool far = a > 0x1p60;
  const double lost = (a - near) + small, argument = far ? a : near;
  const double result = detail::log1p_sum(argument, far ? 0.0 : lost) + (far ? 0x1.62e42fefa39efp-1 : 0.0);
  return detail::with_sign(result, x);
}
TP_MATH double acosh(double x) {
  const double t = x - 1.0;
  const auto [square, square_lost] = detail::two_product(t, t);
  const double u = 2.0 * t + square, u_lost = ((2.0 * t - u) + square) + square_lost, root = sqrt(u);
  const auto [back, back_lost] = detail::two_product(root, root);
  const double root_lost = (((u - back) - back_lost) + u_lost) * (0.5 / root), near = root + t;
  const bool far = x > 0x1p60, plain = far | (t == 0);
  const double lost = ((root - near) + t) + root_lost, argument = far ? x : near;
  const double result = detail::log1p_sum(argument, plain ? 0.0 : lost) + (far ? 0x1.62e42fefa39efp-1 : 0.0);
  return x < 1.0 ? detail::kNan<double> : result;
}

// ---- error functions -------------------------------------------------------------------------------------------------

namespace detail {
// erf(t) / t - 1 in s = t^2 for |t| <= 0.9
TP_MATH double erf_small(double s) {
  return horner(s,
                horner_pair(s, s * s, -0x1.2988aae0b258ep-30, 0x1.0361720a097e5p-26, -0x1.61e5be1c0a544p-23,
                            0x1.ba5165c8ccb9cp-20, -0x1.f4dc7d419bcc5p-17, 0x1.f9a3bec64598p-14, -0x1.c02db998908e4p-11,
                            0x1.565bcd2efdc75p-8, -0x1.b82ce31364de5p-6, 0x1.ce2f21a045b7cp-4),
                -0x1.812746b037a27p-2, 0x1.06eba8214db69p-3);
}
}  // namespace detail

TP_MATH double erf(double x) {
  const double a = detail::magnitude(x), t = a > 6.0 ? 6.0 : a, small = TP_FMA(t, detail::erf_small(t * t), t);
  // 1 - 2^-q(t) beyond.
  const double q = detail::horner(
      t,
      detail::horner_quad(t, t * t, 0x1.60cd2e61a1a7ep-37, -0x1.bf36745931296p-32, 0x1.072ba00bdb696p-27,
                          -0x1.7cc083ab106bdp-24, 0x1.78d481e4ca813p-21, -0x1.0b33b8494bb1ap-18, 0x1.10e23c5a095a9p-16,
                          -0x1.7a2d4047c793ep-15, 0x1.f7803df17634fp-15, 0x1.17c788be4671fp-13, -0x1.0a212c04a62d2p-10,
                          0x1.5ab1df3a27c26p-9, -0x1.f614586dff9b2p-12, -0x1.c2381d50cfe83p-6, 0x1.2f8a6ee93a61cp-3),
      0x1.d64144635d779p-1, 0x1.a0be45112be1ep+0, 0x1.7893bb3fd71fp-22);
  const double rounder = detail::kRounder + 1023.0, shifted = rounder - q, r = (rounder - shifted) - q;
  const double p =
      detail::horner(r, 0x1.e8202d3de9541p-32, 0x1.e612bec2977p-28, 0x1.b52600d6d20a9p-24, 0x1.62bfcd2f4d0dcp-20,
                     0x1.ffcbfbffdc339p-17, 0x1.4309130c4e56dp-13, 0x1.5d87fe78b1fe9p-10, 0x1.3b2ab6fba1023p-7,
                     0x1.c6b08d704a0dep-5, 0x1.ebfbdff82c59dp-3, 0x1.62e42fefa39efp-1, 1.0);
  const double large = TP_FMA(-p, detail::from_bits(detail::to_bits(shifted) << 52), 1.0);
  return detail::with_sign(t < 0.9 ? small : large, x);
}

namespace detail {
// exp(x^2) erfc(x) for x = a + lo >= 0, as a sum: a polynomial in (x - 4) / (x + 4), divided by 1 + 2 x. One division
// serves both quotients; the second is corrected by its residual.
TP_MATH Pair erfcx(double a, double lo) {
  const double d = TP_FMA(2.0, a, 1.0), d_lost = (2.0 * a - (d - 1.0)) + 2.0 * lo;
  const double inverse = 1.0 / ((a + 4.0) * d), u = (a - 4.0) * (d * inverse), reciprocal_d = (a + 4.0) * inverse;
  const double leading = 0x1.3ba5916e9fd7fp+0;
  const double w = u *
      horner(u,
             horner_quad(u, u * u, 0x1.ed8f8cd9ad344p-31, 0x1.b145db95ca18bp-30, -0x1.a197ec82253a6p-27,
                         -0x1.1980b78c3e2e2p-26, 0x1.c6a16ace9df27p-24, 0x1.31bfc7c11994dp-24, -0x1.b87247df127fbp-21,
                         0x1.3ff009aab250ap-22, 0x1.7eebe5e9ea3b8p-18, -0x1.78a686f0ba0aep-17, -0x1.9951eecc24568p-16,
                         0x1.3be125917842fp-13, -0x1.a1df715047232p-13, -0x1.8d4aaa04fdecap-11, 0x1.49c67306d6d37p-8,
                         -0x1.0962386e98ec1p-6, 0x1.3079edf463f91p-5, -0x1.0fb06dfedc839p-4, 0x1.7fee004e267edp-4,
                         -0x1.9ddb23c3e14a3p-4, 0x1.16ecefcfa4862p-4),
             0x1.f7f5df66fc348p-7, -0x1.1df1ad154a27fp-3);
  const double h = leading + w, h_lost = (leading - h) + w, q = h * reciprocal_d;
  const auto [back, back_lost] = two_product(q, d);
  const double residual = ((h - back) - back_lost) + (h_lost - q * d_lost);
  return {q, reciprocal_d * residual};
}

// factor * exp(hi + lo) for tiny lo, rounding once at the end.
TP_MATH double times_exp(Pair factor, double hi, double lo) {
  const double low = hi < -760.0 ? -760.0 : hi;
  const double rounder = kRounder + 2046.0, last = rounder + 1040.0, free = TP_FMA(low, kLog2e, rounder);
  const double t = cap(free, last), n = t - rounder;
  const double first = TP_FMA(n, -kLn2Hi, low), r = TP_FMA(n, -kLn2Lo, first);
  const double lost = TP_FMA(n, -kLn2Lo, first - r) + lo, s = r + lost, rest = (r - s) + lost;
  const double p = s + TP_FMA(s * s, expm1_tail(s), rest);
  return scale_in_two(factor.hi + TP_FMA(factor.hi, p, TP_FMA(factor.lo, p, factor.lo)), n, to_bits(t));
}
}  // namespace detail

TP_MATH double erfc(double x) {
  const double magnitude = detail::magnitude(x), a = magnitude > 28.0 ? 28.0 : magnitude;
  const auto [hi, lo] = detail::two_product(a, a);
  const double small = TP_FMA(-a, detail::erf_small(hi), 1.0 - a);
  const double tail = detail::times_exp(detail::erfcx(a, 0.0), -hi, -lo), upper = a < 0.6 ? small : tail;
  const double lower = 2.0 - upper;
  return x < 0 ? lower : upper;
}

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
