// Owns the modified Bessel functions I0, I1 and their exponentially scaled forms.
#pragma once
#include "kernels/vecmath_f64.h"

namespace tp {
namespace TP_ISA {
namespace m {

namespace detail {
// I0(a) and I1(a) / (a / 2) on [0, 8], in (a / 2)^2: every coefficient is positive, so nothing cancels.
TP_MATH double bessel_i0_near(double q) {
  return horner(q,
                horner_quad(q, q * q, 0x1.1c6e7ccf9f54fp-80, 0x1.10c4bff307cd4p-73, 0x1.f28c6da8a4034p-66,
                            0x1.40a87c74117bap-58, 0x1.69e5b8676add9p-51, 0x1.55ff586b7aa7ap-44, 0x1.0b315315103bdp-37,
                            0x1.522a413d4a134p-31, 0x1.522a441fd1eb7p-25, 0x1.02e85c06e146ep-19, 0x1.23456789c4233p-14,
                            0x1.c71c71c71abebp-10, 0x1.c71c71c71c833p-6),
                0x1.ffffffffffff5p-3, 0x1p+0, 0x1p+0);
}
TP_MATH double bessel_i1_near(double q) {
  return horner(q,
                horner_quad(q, q * q, 0x1.178b9822f3b38p-84, 0x1.273a0d8f284bp-77, 0x1.1c0c52ea9d8cdp-69,
                            0x1.8ad990b2e4d33p-62, 0x1.e280152291d2dp-55, 0x1.f174349cf0804p-48, 0x1.ab820f5e4cabcp-41,
                            0x1.2c97573e4433dp-34, 0x1.522a441021715p-28, 0x1.27e4fb7668e8cp-22, 0x1.845c8a0cf6264p-17,
                            0x1.6c16c16c161cdp-12, 0x1.c71c71c71c79p-8),
                0x1.5555555555553p-4, 0x1p-1, 0x1p+0);
}
// exp(-a) sqrt(a) I(a) from 8 on, in 16 / a - 1.
TP_MATH double bessel_i0_far(double u) {
  return horner(u,
                horner_quad(u, u * u, 0x1.8a58a820ead5bp-34, 0x1.5b001db4d3f39p-35, -0x1.613c7b305dd54p-31,
                            -0x1.4602e8b29068ap-32, 0x1.278a35edd8862p-29, 0x1.397e112a4e05p-30, -0x1.3669520f38265p-28,
                            -0x1.b4c6992bd8275p-29, 0x1.bfb4093dd88fbp-28, 0x1.fa59f4c9fc7e5p-28,
                            -0x1.58b0c8c5d03edp-28, -0x1.ca67ccc277df3p-27, -0x1.d7284f4d1badfp-28,
                            0x1.03085b708a427p-27, 0x1.7287295a41608p-26, 0x1.51d36aa52d39ap-25, 0x1.7d0ce48c8776fp-24,
                            0x1.3f499b49529dfp-22, 0x1.8e513c5255f57p-20, 0x1.75e5ee7537155p-17),
                0x1.1daa72b5ce96ep-13, 0x1.b87969bb93ae7p-9, 0x1.9bd428ad249a5p-2);
}
TP_MATH double bessel_i1_far(double u) {
  return horner(
      u,
      horner_quad(u, u * u, -0x1.9a9e214554922p-34, -0x1.445a3dfc3be61p-35, 0x1.705b79a157a8ap-31,
                  0x1.33ba7eeb83b82p-32, -0x1.350a2e6277913p-29, -0x1.2d1f23291755bp-30, 0x1.46684a3c7ed12p-28,
                  0x1.ae4d84775f146p-29, -0x1.dcb46e7a43a88p-28, -0x1.00eabf7baea33p-27, 0x1.7ecb69736e9f5p-28,
                  0x1.e0245c3aa324p-27, 0x1.d68a7911cda5ap-28, -0x1.2117bca202392p-27, -0x1.91e7485c1895dp-26,
                  -0x1.727e729dac14bp-25, -0x1.ad8b0c52fe2e1p-24, -0x1.7613747f0dffcp-22, -0x1.ec8e126256832p-20,
                  -0x1.f89c23093cbedp-17),
      -0x1.cbc54df1d43a1p-13, -0x1.3f796198ee60bp-7, 0x1.8ebe783a8403p-2);
}

// What the rounding of (a / 2)^2 would change, as a fraction of the value: the logarithmic slope needs few digits.
TP_MATH double bessel_lost(double a, double square_lost) { return 0.25 * square_lost * horner(a, 0.0118, -0.19, 1.0); }

// p / sqrt(a), with what the root and the quotient lose.
TP_MATH Pair over_root(double p, double a) {
  const double root = sqrt(a), inverse = 1.0 / root, q = p * inverse;
  const auto [square, square_lost] = two_product(root, root);
  const auto [back, back_lost] = two_product(q, root);
  const double root_lost = ((a - square) - square_lost) * 0.5 * inverse;
  const double lost = (((p - back) - back_lost) - q * root_lost) * inverse;
  return {q, a > 0x1p1000 ? 0.0 : lost};  // there the exact products may overflow
}

// The scaled forms take exp(-a) away, which the near polynomials do not have and the far ones do.
TP_MATH double bessel(double a, Pair near, double far, bool scaled) {
  // Unscaled, everything past 10^4 overflows; scaled, only infinity needs care.
  const double capped = a > 1e4 && !scaled ? 1e4 : a;
  const Pair quotient = over_root(far, capped < 8.0 ? 8.0 : capped);
  const double scaled_near = times_exp(near, capped > 8.0 ? -8.0 : -capped, 0.0);
  const double low = scaled ? scaled_near : near.hi + near.lo;
  const double settled = a == kInf<double> ? 0.0 : quotient.hi + quotient.lo;
  const double high = scaled ? settled : times_exp(quotient, capped, 0.0);
  const double result = a < 8.0 ? low : high;
  return result;
}
TP_MATH double bessel_i0(double x, bool scaled) {
  const double a = magnitude(x), y = a > 8.0 ? 8.0 : a, u = (a < 8.0 ? 2.0 : 16.0 / a) - 1.0;
  const auto [square, lost] = two_product(y, y);
  const double near = bessel_i0_near(0.25 * square);
  const double result = bessel(a, {near, near * bessel_lost(y, lost)}, bessel_i0_far(u), scaled);
  return x != x ? x : result;
}
TP_MATH double bessel_i1(double x, bool scaled) {
  const double a = magnitude(x), y = a > 8.0 ? 8.0 : a, u = (a < 8.0 ? 2.0 : 16.0 / a) - 1.0;
  const auto [square, lost] = two_product(y, y);
  const auto [near, product_lost] = two_product(0.5 * y, bessel_i1_near(0.25 * square));
  const double result =
      bessel(a, {near, TP_FMA(near, 0.6 * bessel_lost(y, lost), product_lost)}, bessel_i1_far(u), scaled);
  return x != x ? x : with_sign(result, x);
}
}  // namespace detail

TP_MATH double i0(double x) { return detail::bessel_i0(x, false); }
TP_MATH double i0e(double x) { return detail::bessel_i0(x, true); }
TP_MATH double i1(double x) { return detail::bessel_i1(x, false); }
TP_MATH double i1e(double x) { return detail::bessel_i1(x, true); }
TP_MATH float i0(float x) { return float(i0(double(x))); }
TP_MATH float i0e(float x) { return float(i0e(double(x))); }
TP_MATH float i1(float x) { return float(i1(double(x))); }
TP_MATH float i1e(float x) { return float(i1e(double(x))); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
