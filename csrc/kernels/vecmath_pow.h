// Owns pow for real types. float64 carries the logarithm in two parts; float32 computes in float64, where short
// polynomials are exact enough.
#pragma once
#include "kernels/vecmath_f64.h"

namespace tp {
namespace TP_ISA {
namespace m {

namespace detail {

// What C says about zeros, infinities, negative bases and NaN, given power = |x|^y for ordinary arguments.
template <Real T>
TP_MATH T pow_special(T power, T x, T y) {
  const T a = magnitude(x), half = T(0.5) * y;
  const bool integer = round(y) == y, odd = integer & (round(half) != half);
  const bool to_infinity = (a == kInf<T>) == (y > 0);  // at |x| = 0 and |x| = inf
  const T extreme = to_infinity ? kInf<T> : T(0);
  const T size = (a == 0) | (a == kInf<T>) ? extreme : power;
  const T sign = odd ? x : T(1);
  const T signed_size = from_bits(to_bits(size) | (to_bits(sign) & kSignBit<T>));
  const bool negative = (x < 0) & (a < kInf<T>);
  const T defined = negative & !integer ? kNan<T> : signed_size;
  const bool unordered = (x != x) | (y != y);
  const T ordered = unordered ? kNan<T> : defined;
  const bool one = (y == 0) | (x == 1) | ((x == -1) & (magnitude(y) == kInf<T>));
  return one ? T(1) : ordered;
}

// log(x) as a sum, good to about 2^-66 of itself, for finite x > 0.
TP_MATH Pair log_pair(double x) {
  const auto [k, f] = log_reduce(x);
  // s = f / (2 + f) with its residual, so that log(1 + f) = 2 atanh(s).
  const double d = 2.0 + f, d_lost = f - (d - 2.0), inverse = 1.0 / d, s = f * inverse;
  const auto [back, back_lost] = two_product(s, d);
  const double s_lost = (((f - back) - back_lost) - s * d_lost) * inverse;
  const auto [z, z_error] = two_product(s, s);
  const double z_lost = TP_FMA(2.0 * s, s_lost, z_error);
  const double q = horner(z, 0x1.e032495d1da31p-5, 0x1.df7c65e562d6p-5, 0x1.1118c9d88201fp-4, 0x1.3b1395c854c51p-4,
                          0x1.745d177aaf123p-4, 0x1.c71c71c6ea828p-4, 0x1.2492492492522p-3, 0x1.999999999999ap-3);
  // w = z / 3 + z^2 q, the relative correction to 2 s
  const double a = z * q, t = 0x1.5555555555555p-2 + a;
  const double t_lost = ((0x1.5555555555555p-2 - t) + a) + TP_FMA(z_lost, q, 0x1.5555555555555p-56);
  const auto [w, w_error] = two_product(z, t);
  const double w_lost = w_error + TP_FMA(z, t_lost, z_lost * t);
  const auto [p, p_error] = two_product(2.0 * s, w);
  const double p_lost = p_error + TP_FMA(2.0 * s, w_lost, 2.0 * s_lost * (1.0 + w));
  const double h = 2.0 * s + p, h_lost = ((2.0 * s - h) + p) + p_lost;
  const double kh = k * kLn2Hi, sum = kh + h;
  return {sum, ((kh - sum) + h) + TP_FMA(k, kLn2Lo, h_lost)};
}

}  // namespace detail

TP_MATH double pow(double x, double y) {
  const auto [l, l_lost] = detail::log_pair(detail::magnitude(x));
  // Beyond 2^70 every power of x != 1 has over- or underflowed; the products below must not.
  const double bounded = detail::magnitude(y) > 0x1p70 ? detail::with_sign(0x1p70, y) : y;
  const auto [p, p_error] = detail::two_product(bounded, l);
  const double low = p < -760.0 ? -760.0 : p, exponent = low > 720.0 ? 720.0 : low;
  const double p_lost = exponent == p ? TP_FMA(bounded, l_lost, p_error) : 0.0;
  const double rounder = detail::kRounder + 2046.0, t = TP_FMA(exponent, detail::kLog2e, rounder), n = t - rounder;
  const double first = TP_FMA(n, -detail::kLn2Hi, exponent), r = TP_FMA(n, -detail::kLn2Lo, first) + p_lost;
  const double tail = r * r * detail::expm1_tail(r);
  return detail::pow_special(detail::scale_in_two((r + tail) + 1.0, n, detail::to_bits(t)), x, y);
}

// For 0 < x < inf and finite y; the bits are those of pow.
TP_MATH float pow_fast(float x, float y) {
  const double base = x;
  const uint64_t bits = detail::to_bits(base), above = bits - 0x3fe6a09e667f3bcdu;
  const double k = detail::from_bits(((above + 0x4000000000000000u) >> 52) | 0x4330000000000000u) - (0x1p52 + 1024.0);
  const double f = detail::from_bits(bits - (above & 0xfff0000000000000u)) - 1.0;
  const double log2 =
      TP_FMA(f,
             detail::horner(f, 0x1.3cd14c01a12d9p-4, -0x1.248dac27b6d7fp-3, 0x1.287d48e2dc7ecp-3, -0x1.253054b17490ep-3,
                            0x1.452727e4c57e9p-3, -0x1.71411ff4e76f9p-3, 0x1.a63f650244019p-3, -0x1.ec72bb2098f9cp-3,
                            0x1.27765187f1be8p-2, -0x1.71547086dc452p-2, 0x1.ec709ebcc1f15p-2, -0x1.715476566a587p-1,
                            0x1.71547652a1c89p+0),
             k);
  const double z = log2 * y, low = z < -200.0 ? -200.0 : z;
  const double rounder = detail::kRounder + 1023.0, last = rounder + 200.0, shifted = TP_FMA(low, 1.0, rounder);
  const double t = detail::cap(shifted, last), r = low - (t - rounder);
  const double p = detail::horner(r, 0x1.41f80e072af7bp-13, 0x1.5f3f230f2d586p-10, 0x1.3b2d5509c287p-7,
                                  0x1.c6aee71ecac8ap-5, 0x1.ebfbdc2d4b2d5p-3, 0x1.62e430afd6778p-1, 1.0);
  return float(p * detail::from_bits(detail::to_bits(t) << 52));
}
TP_MATH float pow(float x, float y) { return detail::pow_special(pow_fast(detail::magnitude(x), y), x, y); }
// Whether all of a block may take the short form.
TP_MATH bool pow_near(int64_t n, const float* x, const float* y) {
  int32_t far = 0;
  for (int64_t i = 0; i < n; ++i)
    far |= (detail::to_bits(x[i]) - 1u < 0x7f7fffffu) & (detail::magnitude(y[i]) < detail::kInf<float>) ? 0 : 1;
  return far == 0;
}

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
