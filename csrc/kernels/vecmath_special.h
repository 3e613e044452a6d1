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
// x sigmoid(x), x tanh(softplus(x)): x joins before the other factor is rounded, far below zero to the few bits of a
// subnormal number. A tiny x joins last: scaled it would be subnormal itself.
template <class T>
TP_MATH T times_sigmoid(T x) {
  if constexpr (Real<T>) {
    constexpr T scale = __is_same(T, float) ? T(0x1p-64) : T(0x1p-512);
    const bool tiny = detail::magnitude(x) < T(0x1p-30);
    const T numerator = tiny ? scale : x * scale, quotient = numerator / detail::scaled_logistic(x);
    return tiny ? x * quotient : quotient;
  } else {
    return x * sigmoid(x);
  }
}
// tanh(log(1 + u)) is w / (w + 2) with w = u (u + 2).
TP_MATH double times_tanh_softplus(double x) {
  const double u = exp(x > 40.0 ? 40.0 : x), w = TP_FMA(u, u, 2.0 * u);
  return x * (w / (w + 2.0));
}
TP_MATH float times_tanh_softplus(float x) { return float(times_tanh_softplus(double(x))); }

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
namespace detail {
// ndtr(-a), or a ndtr(-a), from 5 on: the factor before exp(-a^2 / 2) is a polynomial in 1 / a^2 over a. What the quotient
// and the square lose joins the exponent, what the polynomial and the product lose the last sum.
template <bool kTimes>
TP_MATH float ndtr_far(float magnitude) {
  const float a = magnitude > 14.5f ? 14.5f : magnitude;
  const float s = a * a, s_lost = TP_FMA(a, a, -s), inverse = 1.0f / a, t = inverse * inverse, h0 = 0x1.988450p-2f;
  const float rest = horner(t, -0x1.b5303ap+6f, 0x1.edf752p+4f, -0x1.6e37a0p+2f, 0x1.3185b4p+0f, -0x1.987ec8p-2f);
  const float h = TP_FMA(t, rest, h0), h_lost = TP_FMA(t, rest, h0 - h);
  const float inverse_lost = kTimes ? 0.0f : TP_FMA(-a, inverse, 1.0f), q = kTimes ? h : h * inverse;
  const float q_lost = kTimes ? h_lost : TP_FMA(h_lost, inverse, TP_FMA(h, inverse, -q));
  const auto [n, reduced, biased] = exp_reduce(-0.5f * s, 254, 128);
  const float r = reduced + TP_FMA(s_lost, -0.5f, inverse_lost), p = TP_FMA(r * r, expm1_tail(r), r);
  return scale_in_two(q + TP_FMA(q, p, q_lost), n, biased);
}
}  // namespace detail
TP_MATH float ndtr(float x) {
  const float near = ndtr_fast(x), magnitude = detail::magnitude(x), tail = detail::ndtr_far<false>(magnitude);
  const float far = x < 0 ? tail : 1.0f - tail;
  return magnitude <= kNdtrNearF ? near : far;
}
#else
TP_MATH float ndtr(float x) { return float(ndtr(double(x))); }
#endif
// x ndtr(x): x joins before the power of two does, far below zero to the few bits of a subnormal number.
TP_MATH double times_ndtr(double x) { return x * ndtr(x); }
#if TP_HAS_FMA
TP_MATH float times_ndtr(float x) {
  const float near = x * ndtr_fast(x), magnitude = detail::magnitude(x), tail = detail::ndtr_far<true>(magnitude);
  const float below = x == -detail::kInf<float> ? __builtin_nanf("") : -tail, above = x - tail;
  const float far = x < 0 ? below : above;
  return magnitude <= kNdtrNearF ? near : far;
}
#else
TP_MATH float times_ndtr(float x) { return float(times_ndtr(double(x))); }
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
// erfinv(y) / y in w = -log(1 - y^2): up to 25/4 in w - 25/8; then it is near sqrt(w), and the difference a
// polynomial in sqrt(w) - 4.35 up to 6.2, then in 1 / (sqrt(w) + 2).
// Doubles reach 6.01 from y; the far piece is for what is nearer to 1 than they are.
TP_MATH Pair erfinv_near(double t, double lost) {
  return leading(
      0x1.a755e7c99ae86p+0, -0x1.8f2ce4b47ebb6p-56 + lost, t,
      horner(t,
             horner_quad(t, t * t, -0x1.71e85cb7c66e7p-76, -0x1.98901e99d9c27p-72, 0x1.493dd47a7b686p-68,
                         0x1.61fa58bed690ap-66, -0x1.bed537ed97e92p-62, 0x1.7997aa9237e9cp-61, 0x1.2702e1128be12p-56,
                         -0x1.1ac450727647cp-53, -0x1.97658b3d58e2ep-55, 0x1.d63b2bb633bd2p-48, -0x1.682f41a549495p-45,
                         -0x1.6ba68d1796bcfp-44, 0x1.7231a3e48d582p-39, -0x1.c8a5ab52e0019p-37, -0x1.dc3e5172ac9cfp-35,
                         0x1.20f53f519ed0ap-30, -0x1.1a9eb3bfcd07cp-28, -0x1.f36cee3c60d01p-26, 0x1.c6b4f898a7553p-22,
                         -0x1.6e8a53ca14edfp-20, -0x1.d1d1f7ca61a14p-17, 0x1.879c2a20b13ap-13, -0x1.845769483523p-11),
             -0x1.8b6c33114ea71p-8, 0x1.ebd80d9b13df9p-3));
}
TP_MATH double erfinv_middle(double t) {
  return horner(
      t,
      horner_quad(t, t * t, 0x1.70fbb3ab2af91p-54, -0x1.d3b38d5140462p-53, -0x1.045c1651e49bap-49,
                  0x1.8109e8b41840dp-48, 0x1.e4f0a09d80592p-47, -0x1.6b2c6306e460ap-45, -0x1.6b340d0e30165p-44,
                  0x1.86ddca260103p-44, 0x1.637c48dc63176p-40, -0x1.a9365d7cd7bcbp-39, -0x1.0d671c087a9e6p-38,
                  0x1.501f49e41fe37p-35, -0x1.02e013b45fa05p-33, 0x1.5e2875418f7e9p-33, 0x1.8ea7503d81b09p-32,
                  -0x1.841b0c3bf60efp-29, 0x1.26d7e7aff0e89p-27, -0x1.d6bb7d18ef7c2p-27, -0x1.20d0d427b6658p-28,
                  0x1.c1cf416a323eep-24, -0x1.a58f978febb07p-22, 0x1.09a73e8182ea2p-20, -0x1.0a173764f9774p-19,
                  0x1.d6cb0e58a6402p-19, -0x1.b73ed04906f24p-18, 0x1.103eb6f1156c2p-16, -0x1.bd4efae425ba6p-15,
                  0x1.7fa939f0dc0b8p-13, -0x1.156104730e26ap-11, 0x1.1c6d00dc88b04p-11),
      0x1.4b1187a61dfc2p-7, -0x1.4111c9a088377p-3);
}
TP_MATH double erfinv_far(double t) {
  return horner(
      t,
      horner_quad(t, t * t, 0x1.1eafc868856d7p-31, -0x1.115b922cb65cep-30, -0x1.750a3cda26c3fp-30,
                  0x1.60a12d9db648dp-29, 0x1.19e266caebc8ap-28, -0x1.0e343c4b617a6p-27, 0x1.e08a9e3da2c66p-31,
                  -0x1.199c7ac370ca3p-29, 0x1.4b06973010eaap-26, -0x1.4c0c6b6d451b2p-25, 0x1.25b11759478f2p-24,
                  -0x1.2f49f8cd0ec81p-23, 0x1.42069eed12a5p-22, -0x1.5537ae9c0351ap-21, 0x1.6f95db89df724p-20,
                  -0x1.95208b5814993p-19, 0x1.ca3a36290dd71p-18, -0x1.0c8812f25ed49p-16, 0x1.4a298e5a6fbfdp-15,
                  -0x1.9d3cac3616785p-14, 0x1.5e1fff6a976cap-12, -0x1.3896e837cc103p-11, 0x1.90ebf49822387p-8),
      -0x1.41e3ad12bf951p-5, -0x1.acc18b28f3cc7p-4);
}

// For w = -log(1 - y^2) up to 16, to 2^-37.
TP_MATH double erfinv_short(double w) {
  const double t = TP_FMA(0x1.9p+1, w / (w + 9.0), -1.0);
  return horner_quad(t, t * t, 0x1.ff80e4c84d723p-19, -0x1.40113a9d809fp-16, -0x1.974fe2f7cecabp-16,
                     0x1.3c0c59f438b78p-13, 0x1.71767866b5019p-14, -0x1.349d750421335p-11, -0x1.b72decf629737p-13,
                     0x1.d6798b68a386p-10, 0x1.7cc711307856bp-11, -0x1.1c6bcb39cd4c8p-8, -0x1.e3688f31dfa8p-10,
                     0x1.6b3901daf95fbp-7, 0x1.1168f6ba7ffbbp-7, -0x1.22496356d344fp-6, -0x1.9657a584e6e87p-8,
                     0x1.12a8ecc500597p-4, 0x1.33367d9b2c4f4p-4, 0x1.2dc4e84d17555p-6, 0x1.8002d0d868c6p-2,
                     0x1.66a3f8af7d3cdp+0, 0x1.e97fe13ad655dp+0);
}
// erfinv(y) / y from w + w_lost. What the root loses is carried along.
template <bool Far>
TP_MATH Pair erfinv_outer(double w, double w_lost) {
  const double root = sqrt(w);
  const auto [square, square_lost] = two_product(root, root);
  const double root_lost = (((w - square) - square_lost) + w_lost) * (0.5 / root);
  const double over = TP_FMA(0x1.6ba7d0c689187p+4, 1.0 / (root + 2.0), -0x1.c5925f2bf8c59p+0),
               t = root - 0x1.1666666666666p+2;
  return leading(root, root_lost, 1.0, TP_EITHER(Far && root > 6.2, erfinv_far(over), erfinv_middle(t)));
}
template <bool Far>
TP_MATH Pair erfinv_over_y(double product) {
  const auto [log_hi, log_lo] = log_parts(product);
  return TP_EITHER(log_hi > -6.25, erfinv_near(-log_hi - 3.125, -0.2 * log_lo), erfinv_outer<Far>(-log_hi, -log_lo));
}
}  // namespace detail

TP_MATH double erfinv(double y) {
  const double a = detail::magnitude(y);
  const auto [hi, lo] = detail::erfinv_over_y<false>((1.0 - a) * (1.0 + a));
  const double result = detail::with_sign(TP_FMA(a, hi, a * lo), y);
  const double ends = a == 1.0 ? detail::with_sign(detail::kInf<double>, y) : detail::kNan<double>;
  return a < 1.0 ? result : ends;
}
// Good enough for results that are rounded to float32.
TP_MATH double erfinv_float(double y) {
  const double a = detail::magnitude(y), product = (1.0 - a) * (1.0 + a);
  const double result = y * detail::erfinv_short(-detail::log_short(product));
  const double ends = a == 1.0 ? detail::with_sign(detail::kInf<double>, y) : detail::kNan<double>;
  return a < 1.0 ? result : ends;
}
TP_MATH float erfinv(float y) { return float(erfinv_float(double(y))); }

// The inverse of ndtr, sqrt(2) erfinv(2 p - 1), in the smaller of p and 1 - p: 1 - y^2 = 4 p (1 - p).
TP_MATH double ndtri(double p) {
  const double other = 1.0 - p, q = p < 0.5 ? p : other, y = TP_FMA(2.0, q, -1.0);
  const auto [hi, lo] = detail::erfinv_over_y<true>(4.0 * q * (1.0 - q));
  const auto [c, c_lost] = detail::two_product(y, 0x1.6a09e667f3bcdp+0);
  const double value = TP_FMA(c, hi, TP_FMA(c, lo, hi * TP_FMA(y, -0x1.bdd3413b26456p-54, c_lost)));
  const double below = q > 0 ? value : -detail::kInf<double>, result = p < 0.5 ? below : 0.0 - below;
  return (p >= 0) & (p <= 1) ? result : detail::kNan<double>;
}
TP_MATH float ndtri(float p) { return float(ndtri(double(p))); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
