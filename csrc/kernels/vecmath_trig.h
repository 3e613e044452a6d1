// Owns the circular functions and their inverses, float32 and float64, and atan2, hypot, sinc.
#pragma once
#include "kernels/vecmath_reduce.h"

namespace tp {
namespace TP_ISA {
namespace m {

namespace detail {

TP_MATH float sin_poly(float r, float s) {
  return TP_FMA(r * s, horner(s, -0x1.9952eap-13f, 0x1.110776p-7f, -0x1.555546p-3f), r);
}
TP_MATH float cos_poly(float s) {
  return TP_FMA(s, horner(s, 0x1.99e824p-16f, -0x1.6c0c28p-10f, 0x1.55554ap-5f, -0x1p-1f), 1.0f);
}
// (sin(r) - r) / r^3 in s = r^2
TP_MATH double sin_tail(double s) {
  return horner(s, 0x1.5d8ce49e39562p-33, -0x1.ae5e4fb57d9f8p-26, 0x1.71de3558ca6d2p-19, -0x1.a01a019beb157p-13,
                0x1.111111110f72fp-7, -0x1.5555555555548p-3);
}
TP_MATH double sin_poly(double r, double lo, double s) { return r + TP_FMA(r * s, sin_tail(s), lo); }
// (cos(r) - 1 + r^2 / 2) / r^4 in s = r^2
TP_MATH double cos_tail(double s) {
  return horner(s, -0x1.8fa655252ce04p-37, 0x1.1ee9db80aab45p-29, -0x1.27e4f7f13460bp-22, 0x1.a01a019c8ec8bp-16,
                -0x1.6c16c16c15013p-10, 0x1.555555555554bp-5);
}
TP_MATH double cos_poly(double r, double lo, double s) {
  // 1 - s/2 rounds; what it loses is carried into the small terms.
  const double half = 0.5 * s, w = 1.0 - half;
  return w + (((1.0 - w) - half) + TP_FMA(s * s, cos_tail(s), -r * lo));
}

// The sine of the angle with quadrant number q: odd quadrants take the cosine, the upper two are negative.
TP_MATH float sin_quadrant(float r, uint32_t q) {
  const float s = r * r, odd = cos_poly(s), even = sin_poly(r, s), value = (q & 1) ? odd : even;
  return from_bits(to_bits(value) ^ ((q & 2) << 30));
}
TP_MATH double sin_quadrant(double r, double lo, uint64_t q) {
  const double s = r * r, odd = cos_poly(r, lo, s), even = sin_poly(r, lo, s), value = (q & 1) ? odd : even;
  return from_bits(to_bits(value) ^ ((q & 2) << 62));
}

}  // namespace detail

// ---- sine, cosine, tangent -------------------------------------------------------------------------------------------

// Good for |x| <= detail::kTrigFast(F) only.
TP_MATH float sin_fast(float x) {
  const auto [r, q] = detail::trig_reduce_fast(x);
  const float result = detail::sin_quadrant(r, q);
  return x == 0 ? x : result;
}
TP_MATH float cos_fast(float x) {
  const auto [r, q] = detail::trig_reduce_fast(x);
  return detail::sin_quadrant(r, q + 1);
}
TP_MATH double sin_fast(double x) {
  const auto [r, lo, q] = detail::trig_reduce_fast(x);
  const double result = detail::sin_quadrant(r, lo, q);
  return x == 0 ? x : result;
}
TP_MATH double cos_fast(double x) {
  const auto [r, lo, q] = detail::trig_reduce_fast(x);
  return detail::sin_quadrant(r, lo, q + 1);
}
namespace detail {
// Numerator and denominator keep what they lose, and the quotient is corrected by its residual.
TP_MATH double tan_quadrant(double r, double lo, uint64_t q) {
  const double s = r * r, sine_tail = TP_FMA(r * s, sin_tail(s), lo), sine = r + sine_tail;
  const double sine_lost = (r - sine) + sine_tail;
  const double half = 0.5 * s, w = 1.0 - half, cosine_tail = ((1.0 - w) - half) + TP_FMA(s * s, cos_tail(s), -r * lo);
  const double cosine = w + cosine_tail, cosine_lost = (w - cosine) + cosine_tail;
  const bool odd = (q & 1) != 0;
  const double over = odd ? -cosine : sine, over_lost = odd ? -cosine_lost : sine_lost;
  const double under = odd ? sine : cosine, under_lost = odd ? sine_lost : cosine_lost;
  const double inverse = 1.0 / under, quotient = over * inverse;
  const auto [back, back_lost] = two_product(quotient, under);
  return quotient + (((over - back) - back_lost) + (over_lost - quotient * under_lost)) * inverse;
}
}  // namespace detail

TP_MATH double tan_fast(double x) {
  const auto [r, lo, q] = detail::trig_reduce_fast(x);
  const double result = detail::tan_quadrant(r, lo, q);
  return detail::magnitude(x) < 0x1p-27 ? x : result;
}
TP_MATH float tan_fast(float x) { return float(tan_fast(double(x))); }

#if TP_HAS_FMA
// Every finite argument, at three to five times the cost.
TP_MATH float sin(float x) {
  const auto [r, q] = detail::trig_reduce(x);
  const float result = detail::sin_quadrant(r, q);
  return detail::magnitude(x) < 0x1p-13f ? x : result;
}
TP_MATH float cos(float x) {
  const auto [r, q] = detail::trig_reduce(x);
  return detail::sin_quadrant(r, q + 1);
}
TP_MATH double sin(double x) {
  const auto [r, lo, q] = detail::trig_reduce(x);
  const double result = detail::sin_quadrant(r, lo, q);
  return detail::magnitude(x) < 0x1p-27 ? x : result;
}
TP_MATH double cos(double x) {
  const auto [r, lo, q] = detail::trig_reduce(x);
  return detail::sin_quadrant(r, lo, q + 1);
}
TP_MATH double tan(double x) {
  const auto [r, lo, q] = detail::trig_reduce(x);
  const double result = detail::tan_quadrant(r, lo, q);
  return detail::magnitude(x) < 0x1p-27 ? x : result;
}
TP_MATH float tan(float x) { return float(tan(double(x))); }
#else
// Without fused operations the long reduction is the C library's.
TP_MATH float sin(float x) { return detail::magnitude(x) <= detail::kTrigFastF ? sin_fast(x) : ::sinf(x); }
TP_MATH float cos(float x) { return detail::magnitude(x) <= detail::kTrigFastF ? cos_fast(x) : ::cosf(x); }
TP_MATH float tan(float x) { return detail::magnitude(x) <= 0x1p20f ? tan_fast(x) : ::tanf(x); }
TP_MATH double sin(double x) { return detail::magnitude(x) <= detail::kTrigFast ? sin_fast(x) : ::sin(x); }
TP_MATH double cos(double x) { return detail::magnitude(x) <= detail::kTrigFast ? cos_fast(x) : ::cos(x); }
TP_MATH double tan(double x) { return detail::magnitude(x) <= detail::kTrigFast ? tan_fast(x) : ::tan(x); }
#endif

// Block forms: one look at a block decides whether all of it may take the short reduction alone. An element's value does
// not depend on its neighbours: the long way takes the short form's value where that holds. out may be x.
#define TP_MATH_TRIG_BLOCK(f, T, limit)                                                  \
  TP_MATH void f##_block(int64_t total, const T* x, T* out) {                            \
    for (int64_t from = 0; from < total; from += 512, x += 512, out += 512) {            \
      const int64_t n = total - from < 512 ? total - from : 512;                         \
      int32_t far = 0;                                                                   \
      for (int64_t i = 0; i < n; ++i) far |= detail::magnitude(x[i]) <= (limit) ? 0 : 1; \
      if (!far) {                                                                        \
        for (int64_t i = 0; i < n; ++i) out[i] = f##_fast(x[i]);                         \
      } else {                                                                           \
        for (int64_t i = 0; i < n; ++i) {                                                \
          const T v = x[i], near_value = f##_fast(v), far_value = f(v);                  \
          out[i] = detail::magnitude(v) <= (limit) ? near_value : far_value;             \
        }                                                                                \
      }                                                                                  \
    }                                                                                    \
  }
TP_MATH_TRIG_BLOCK(sin, float, detail::kTrigFastF)
TP_MATH_TRIG_BLOCK(cos, float, detail::kTrigFastF)
TP_MATH_TRIG_BLOCK(tan, float, 0x1p20f)
TP_MATH_TRIG_BLOCK(sin, double, detail::kTrigFast)
TP_MATH_TRIG_BLOCK(cos, double, detail::kTrigFast)
TP_MATH_TRIG_BLOCK(tan, double, detail::kTrigFast)
#undef TP_MATH_TRIG_BLOCK

// sin(pi x) / (pi x), exactly 0 at the integers (every number from 2^53 on is one): x is reduced before pi enters.
TP_MATH double sinc(double x) {
  const double r = x - 2.0 * round(0.5 * x), t = TP_FMA(r, 2.0, detail::kRounder), n = t - detail::kRounder;
  const double f = TP_FMA(n, -0.5, r);
  const auto [hi, lo] = detail::two_product(f, detail::kPi);
  const double low = TP_FMA(f, detail::kPiLo, lo), z = hi * hi;
  const double s = detail::sin_quadrant(hi, low, detail::to_bits(t));
  // s / x with its residual, times 1 / pi in two parts.
  const double inverse = 1.0 / x, q = s * inverse;
  const auto [back, back_lo] = detail::two_product(q, x);
  const double rest = ((s - back) - back_lo) * inverse;
  const auto [product, lost] = detail::two_product(q, 0x1.45f306dc9c883p-2);
  const double quotient = product + (lost + TP_FMA(q, -0x1.6b01ec5417056p-56, rest * 0x1.45f306dc9c883p-2));
  const double near = TP_FMA(z, detail::sin_tail(z), 1.0);
  const double finite = detail::magnitude(x) < 0.25 ? near : quotient + 0.0;  // not -0
  return detail::magnitude(x) >= 0x1p53 ? 0.0 : finite;
}
TP_MATH float sinc(float x) { return float(sinc(double(x))); }

// ---- inverses --------------------------------------------------------------------------------------------------------

namespace detail {
// (asin(s) - s) / (s z) for z = s^2 <= 1/4
TP_MATH double asin_tail(double z) {
  return z *
      horner_pair(z, z * z, 0x1.056b5c7dad009p-5, -0x1.09cd74dd7e4fap-6, 0x1.3ff14b28a73b1p-6, 0x1.abd3c9a90c3c8p-8,
                  0x1.8ec28cab1d0a1p-7, 0x1.c6fdcf05347e2p-7, 0x1.1c6be13679e86p-6, 0x1.6e89f44276d73p-6,
                  0x1.f1c72c39230bbp-6, 0x1.6db6db4278fc3p-5, 0x1.333333336e83cp-4, 0x1.555555555539p-3);
}
// pi/2 - (t + tail); what the first difference loses goes to the small terms.
TP_MATH double complement(double t, double tail) {
  const double first = kHalfPi - t, lost = (kHalfPi - first) - t;
  return first + ((kHalfPiLo + lost) - tail);
}
// atan(t) - t for 0 <= t <= 1
TP_MATH double atan_tail(double t) {
  const double z = t * t;
  const double p = horner(
      z,
      horner_quad(z, z * z, -0x1.53e09e2b95e84p-16, 0x1.d3b58006b92fep-13, -0x1.31278201cb454p-10, 0x1.f9698598b50b7p-9,
                  -0x1.2cf61dee19606p-7, 0x1.162b7f390941dp-6, -0x1.a7260a801032bp-6, 0x1.1715aa3863482p-5,
                  -0x1.4f450bbf63806p-5, 0x1.7ee3ef0ed02e8p-5, -0x1.ad32b8c84df9fp-5, 0x1.e178170cef9e8p-5,
                  -0x1.11089d04d8554p-4, 0x1.3b12b2ea073b3p-4, -0x1.745d023138e2fp-4, 0x1.c71c709e1eda1p-4),
      -0x1.2492491fa2327p-3, 0x1.999999998411ap-3, -0x1.555555555544cp-2);
  return t * z * p;
}
}  // namespace detail

TP_MATH double asin(double x) {
  const double a = detail::magnitude(x), far_z = (1.0 - a) * 0.5, near_z = a * a;
  const bool far = a > 0.5;
  const double z = far ? far_z : near_z, root = sqrt(far_z), s = far ? root : a;
  const double tail = s * detail::asin_tail(z), near = s + tail, other = detail::complement(2.0 * s, 2.0 * tail);
  const double result = far ? other : near;
  return detail::with_sign(result, x);
}

TP_MATH double acos(double x) {
  const double a = detail::magnitude(x), far_z = (1.0 - a) * 0.5, near_z = a * a;
  const bool far = a > 0.5;
  const double z = far ? far_z : near_z, root = sqrt(far_z), s = far ? root : x;
  const double r = TP_FMA(s, detail::asin_tail(z), s), doubled = 2.0 * r;
  const double below = detail::kPi - (doubled - detail::kPiLo);
  const double ends = x < 0 ? below : doubled;
  const double middle = detail::kHalfPi - (r - detail::kHalfPiLo);
  return far ? ends : middle;
}

TP_MATH double atan(double x) {
  const double a = detail::magnitude(x);
  const bool far = a > 1.0;
  const double over = far ? 1.0 : a, under = far ? a : 1.0, t = over / under, tail = detail::atan_tail(t);
  const double near = t + tail, other = detail::complement(t, tail);
  return detail::with_sign(far ? other : near, x);
}

TP_MATH double atan2(double y, double x) {
  const double ay = detail::magnitude(y), ax = detail::magnitude(x);
  const bool steep = ay > ax;
  const double over = steep ? ax : ay, under = steep ? ay : ax, quotient = over / under;
  // 0 / 0 counts as 0 and inf / inf as 1, which gives the angles C gives.
  const double equal = over == 0 ? 0.0 : 1.0, t = over == under ? equal : quotient, tail = detail::atan_tail(t);
  const double near = t + tail, other = detail::complement(t, tail), first = steep ? other : near;
  const double second = detail::kPi - (first - detail::kPiLo), angle = signbit(x) ? second : first;
  const double result = detail::with_sign(angle, y);
  const bool ordered = x == x && y == y;
  return ordered ? result : detail::kNan<double>;
}

// Scaled by a power of two when the squares would overflow or vanish. An infinity wins over a NaN.
TP_MATH double hypot(double x, double y) {
  const double a = detail::magnitude(x), b = detail::magnitude(y), large = a > b ? a : b, small = a > b ? b : a;
  const double down = large > 0x1p500 ? 0x1p-600 : 1.0, scale = large < 0x1p-400 ? 0x1p600 : down;
  const double unscale = detail::from_bits(0x7fe0000000000000u - detail::to_bits(scale));  // 1 / scale
  const double l = large * scale, s = small * scale;
  const auto [square, lost] = detail::two_product(l, l);
  const double result = sqrt(square + TP_FMA(s, s, lost)) * unscale;
  const double sum = a + b;
  const bool infinite = a == detail::kInf<double> || b == detail::kInf<double>, ordered = sum == sum;
  const double finite = ordered ? result : sum;
  return infinite ? detail::kInf<double> : finite;
}

TP_MATH float asin(float x) { return float(asin(double(x))); }
TP_MATH float acos(float x) { return float(acos(double(x))); }
TP_MATH float atan(float x) { return float(atan(double(x))); }
TP_MATH float atan2(float y, float x) { return float(atan2(double(y), double(x))); }
TP_MATH float hypot(float x, float y) {
  const double a = x, b = y, root = sqrt(a * a + b * b);
  return isinf(x) || isinf(y) ? detail::kInf<float> : float(root);
}

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
