// Owns the logistic and entropy helpers and the normal distribution family.
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
  const double far = times_exp(scaled, -hi, -lo);
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
// For |x| <= 5, without float64: half plus an odd polynomial in the middle, and beyond it 2^(q - x^2 log2(e) / 2) with q
// the logarithm of erfcx in |x| - 2.5. The exponent is summed exactly: its largest parts are cut so that they cancel
// without rounding, and what they lose joins the small ones. 1.4 ulp; needs a fused multiply-add.
inline constexpr float kNdtrNearF = TP_HAS_FMA ? 5.0f : -1.0f;
TP_MATH float ndtr_fast(float x) {
  const float a = detail::magnitude(x), s = a * a, s_lost = TP_FMA(a, a, -s), u = a - 2.5f;
  const float middle = TP_FMA(
      x, detail::horner(s, 0x1.1c798p-13f, -0x1.3da5e6p-10f, 0x1.471098p-7f, -0x1.1059p-4f, 0x1.988454p-2f), 0.5f);
  // q + 3 = q0 - u / 2 + u w: the straight part is exact but for 'line_lost', the rest is small.
  const float w =
      detail::horner(u,
                     detail::horner_pair(u, u * u, -0x1.b6b2dap-27f, 0x1.5fedb4p-24f, 0x1.ad6c88p-26f, -0x1.9fde84p-19f,
                                         0x1.055778p-15f, -0x1.f98a26p-13f, 0x1.ad3p-10f, -0x1.51d838p-7f),
                     0x1.06e2dp-4f, 0.5f - 0x1.dccc18p-2f);
  const float q0 = 0x1.6acf5p-3f, line = TP_FMA(u, -0.5f, q0), line_lost = TP_FMA(u, -0.5f, q0 - line);
  const float half_log2e = 0x1.715476p-1f, half_log2e_lost = 0x1.4ae0cp-27f, rounder = detail::kRounderF + 124.0f;
  const float e = TP_FMA(s, half_log2e, 48.0f) - 48.0f, e_lost = TP_FMA(s, half_log2e, -e);
  const float t = (TP_FMA(w, u, line) - e) + rounder, n = t - rounder;
  const float lost = TP_FMA(s_lost, half_log2e, TP_FMA(s, half_log2e_lost, e_lost)) - line_lost;
  const float r = ((-e - n) + line) + TP_FMA(w, u, -lost);
  const float p = detail::horner(r, 0x1.416eeep-13f, 0x1.5f098ap-10f, 0x1.3b2ddep-7f, 0x1.c6af7ap-5f, 0x1.ebfbdcp-3f,
                                 0x1.62e43p-1f, 1.0f);
  const float tail = p * detail::from_bits(detail::to_bits(t) << 23), above = 1.0f - tail, outer = x < 0 ? tail : above;
  return a < 0.674f ? middle : outer;
}
#if TP_HAS_FMA
// Beyond 5 the factor before exp(-a^2 / 2) is a polynomial in 1 / a^2 over a. What the quotient and the square lose joins
// the exponent, what the product loses the last sum.
TP_MATH float ndtr(float x) {
  const float near = ndtr_fast(x), magnitude = detail::magnitude(x), a = magnitude > 14.5f ? 14.5f : magnitude;
  const float s = a * a, s_lost = TP_FMA(a, a, -s), inverse = 1.0f / a, inverse_lost = TP_FMA(-a, inverse, 1.0f);
  const float h = detail::horner(inverse * inverse, -0x1.b5303ap+6f, 0x1.edf752p+4f, -0x1.6e37a0p+2f, 0x1.3185b4p+0f,
                                 -0x1.987ec8p-2f, 0x1.988450p-2f);
  const float q = h * inverse, q_lost = TP_FMA(h, inverse, -q);
  const auto [n, reduced, biased] = detail::exp_reduce(-0.5f * s, 254, 128);
  const float r = reduced + TP_FMA(s_lost, -0.5f, inverse_lost), p = TP_FMA(r * r, detail::expm1_tail(r), r);
  const float tail = detail::scale_in_two(q + TP_FMA(q, p, q_lost), n, biased), far = x < 0 ? tail : 1.0f - tail;
  return magnitude <= kNdtrNearF ? near : far;
}
#else
TP_MATH float ndtr(float x) { return float(ndtr(double(x))); }
#endif
TP_MATH float log_ndtr(float x) { return float(log_ndtr(double(x))); }

// Whether all of a block may take the short forms exp_fast, log_fast, ndtr_fast.
TP_MATH bool exp_near(int64_t n, const float* x) {
  int32_t far = 0;
  for (int64_t i = 0; i < n; ++i) far |= detail::magnitude(x[i]) <= kExpNearF ? 0 : 1;
  return far == 0;
}
TP_MATH bool log_near(int64_t n, const float* x) {
  int32_t far = 0;
  for (int64_t i = 0; i < n; ++i) far |= detail::to_bits(x[i]) - 0x00800000u < 0x7f000000u ? 0 : 1;
  return far == 0;
}
TP_MATH bool ndtr_near(int64_t n, const float* x) {
  int32_t far = 0;
  for (int64_t i = 0; i < n; ++i) far |= detail::magnitude(x[i]) <= kNdtrNearF ? 0 : 1;
  return far == 0;
}

namespace detail {
// erfinv(y) / y in w = -log(1 - y^2), in three pieces; the outer two in sqrt(w).
TP_MATH double erfinv_over_y(double w) {
  const double inner = w > 6.25 ? 3.125 : w - 3.125, root = sqrt(w), middle = root - 3.25, outer = root - 5.1;
  const double near =
      horner(inner,
             horner_quad(inner, inner * inner, 0x1.fe1492b345589p-69, -0x1.30da23e808395p-70, -0x1.a618fdd822a85p-62,
                         0x1.51c3aec436037p-60, 0x1.22b5116555869p-56, -0x1.2bd93c00ae7cbp-53, -0x1.8b4bbcdd6c2d8p-55,
                         0x1.db32a0dbb5172p-48, -0x1.683250acb84ddp-45, -0x1.6d8eae20a49eap-44, 0x1.723086db22675p-39,
                         -0x1.c8960d2d0db2dp-37, -0x1.dc3dd3e095aeap-35, 0x1.20f4eb2af37ffp-30, -0x1.1a9eb6ee05563p-28,
                         -0x1.f36ce542c433cp-26, 0x1.c6b4f8af0ecccp-22, -0x1.6e8a53ee3110fp-20, -0x1.d1d1f7cb071dap-17,
                         0x1.879c2a20d6b5dp-13, -0x1.8457694834121p-11),
             -0x1.8b6c33114ee3fp-8, 0x1.ebd80d9b13df7p-3, 0x1.a755e7c99ae86p+0);
  const double mid =
      horner(middle,
             horner_quad(middle, middle * middle, -0x1.1614a4c15d735p-26, 0x1.5efc7a203408bp-31, 0x1.1fa29232e4ec1p-23,
                         -0x1.23325f2ab0294p-22, -0x1.03f9dfe16f4bcp-25, 0x1.924434fcf47bfp-20, -0x1.0b5deae95ca22p-18,
                         0x1.88b2454152749p-19, 0x1.a23ca8f9eb2f5p-17, -0x1.8cf0ce4a91751p-15, 0x1.1e6ae016f11f7p-14,
                         0x1.932d7c8e417e8p-16, -0x1.7448bdf5a0d9ap-12, 0x1.f3cc551b58edp-11, -0x1.ba9240d32cdfdp-10,
                         0x1.468eeca731daep-9, -0x1.ebadabba1862dp-9),
             0x1.5ffcfe5b7152fp-8, 0x1.0158a6d641d56p+0, 0x1.8abcc380d5a48p+1);
  const double far =
      horner(outer,
             horner_quad(outer, outer * outer, 0x1.2b0bf56fafaa1p-38, -0x1.9ef9de1c7ac61p-37, -0x1.949fd448a784dp-38,
                         0x1.5e057dc675d76p-34, -0x1.2cc6b64d69b93p-32, 0x1.bff3d3613332p-31, -0x1.18b1535d9cc25p-29,
                         0x1.26368f6099725p-28, -0x1.1853c14d16fe7p-27, 0x1.1c44be4957f02p-26, -0x1.8638c8dba4619p-25,
                         0x1.80afeaf1d2e93p-23, -0x1.be2dd284286bep-21, 0x1.050ca2b0672f8p-18, -0x1.1ff0f2543c43fp-16,
                         0x1.182e06fbee21fp-14, -0x1.872569e820407p-13),
             -0x1.a1098acac3474p-13, 0x1.02a0d45ec794dp+0, 0x1.3cdc1ddba66bdp+2);
  const double tail = root < 4.0 ? mid : far;
  return w < 6.25 ? near : tail;
}
}  // namespace detail

TP_MATH double erfinv(double y) {
  const double a = detail::magnitude(y), result = y * detail::erfinv_over_y(-log((1.0 - a) * (1.0 + a)));
  const double ends = a == 1.0 ? detail::with_sign(detail::kInf<double>, y) : detail::kNan<double>;
  return a < 1.0 ? result : ends;
}
TP_MATH float erfinv(float y) { return float(erfinv(double(y))); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
