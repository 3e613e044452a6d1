// Owns the cylinder functions: Bessel's J and Y of orders 0 and 1, the modified K of both, and Airy's Ai. Far out the waves are
// a modulus times the cosine of a phase, so that their zeros keep their digits; near the origin they are power series and
// a logarithm.
#pragma once
#include "kernels/special_functions.h"
#include "kernels/vecmath_bessel.h"
#include "kernels/vecmath_f64.h"
#include "kernels/vecmath_trig.h"

namespace tp {
namespace TP_ISA {
namespace m {

namespace detail {

// The angle of r less pi/4, in the same form; r may be outside of +-pi/4 by as much as 'by'.
TP_MATH TrigReduced turned(TrigReduced angle, double by, double by_lost) {
  const auto [s, s_lost] = two_sum(angle.r, by);
  const bool up = s < 0;
  const double quarter = up ? 0.5 * kHalfPi : -0.5 * kHalfPi, quarter_lost = up ? 0.5 * kHalfPiLo : -0.5 * kHalfPiLo;
  const auto [r, r_lost] = two_sum(quarter, s);
  const double lost = r_lost + (s_lost + ((angle.lo + by_lost) + quarter_lost)), sum = r + lost;
  return {sum, (r - sum) + lost, angle.quadrant - (up ? 1 : 0)};
}

TP_MATH Pair over_root(Pair p, double a) {
  const Pair q = over_root(p.hi, a);
  return {q.hi, TP_FMA(p.lo, 1.0 / sqrt(a), q.lo)};
}

// ---- J and Y

// sqrt(x (J^2 + Y^2)), and x times the phase less x - pi/4 (less pi/2 for order 1), from 2 on in t = 8 / (x + 2) - 1.
TP_MATH Pair bessel_modulus0(double t) {
  return leading(
      0x1.97d626c51fe4fp-1, 0x1.0b96af093b019p-55, t,
      horner(t,
             horner_quad(t, t * t, -0x1.f762598e646a7p-40, -0x1.2bf708223368cp-38, 0x1.bb66f922eb627p-39,
                         -0x1.a29732d11f93fp-36, -0x1.70218374ef68fp-34, -0x1.6fac7b942a91cp-33, -0x1.9c431acda344ep-31,
                         -0x1.1c1505dd63b0ap-29, -0x1.e16da2db35718p-28, -0x1.9b8aa23f035e9p-26, -0x1.387748a2b33cbp-24,
                         -0x1.11fc01a970095p-22, -0x1.c0e77b61a5b2fp-21, -0x1.6f2c9c5692a8ep-19, -0x1.44ae6e297fbbap-17,
                         -0x1.0e21031eac68bp-15, -0x1.caddb1660a2ep-14, -0x1.a86f0afec6237p-12, -0x1.5b6e22118903ap-10,
                         -0x1.9470ce59fa71dp-9),
             -0x1.bed77868b9204p-9));
}

TP_MATH double bessel_phase0(double t) {
  return horner(t,
                horner_quad(t, t * t, -0x1.e37c2f819d8ep-39, 0x1.8b9aa78c44345p-36, -0x1.2f0ee8fde65b1p-35,
                            -0x1.653d1a2c2e1adp-35, 0x1.d4121735fb137p-33, -0x1.63eab71f3caf2p-32,
                            0x1.954c52b3ad0d6p-32, 0x1.e762a8b9d82ccp-32, -0x1.15edaff0aed32p-29, 0x1.62ad268283fdep-27,
                            -0x1.486ff89293cedp-28, 0x1.c0dd31eb047c3p-26, 0x1.ddcff0ebae5c9p-23, 0x1.6c7dc426024ccp-24,
                            0x1.29270458e8af2p-19, 0x1.477362ac450fap-17, 0x1.32b104e6f77aap-16, 0x1.67cea9da3c17ap-13,
                            0x1.2635d11366f72p-10, 0x1.c3095ad0cfb03p-9),
                0x1.1021296323b6fp-8, -0x1.f925ed1963e64p-4);
}

TP_MATH Pair bessel_modulus1(double t) {
  return leading(
      0x1.9a96dff550ad6p-1, 0x1.164d05b912162p-55, t,
      horner(t,
             horner_quad(t, t * t, 0x1.92bd473d7f525p-39, 0x1.bd4cea8aded57p-37, 0x1.593b1590d8971p-36,
                         0x1.20b739f3d89e8p-35, 0x1.9732792af15d4p-33, 0x1.482306286e424p-31, 0x1.cc62f8d73751fp-30,
                         0x1.725a8857c66acp-28, 0x1.19c5b9d1e4566p-26, 0x1.bbf52ec2898b6p-25, 0x1.5e692da972d64p-23,
                         0x1.1191295efd94p-21, 0x1.b841ed6af5212p-20, 0x1.5f84b6fd65766p-18, 0x1.1a3d332c34d0ep-16,
                         0x1.cb444b0683abep-15, 0x1.6e0a408c11decp-13, 0x1.207bdaace74e1p-11, 0x1.bdec1e987d5dcp-10,
                         0x1.330f173e15ff1p-8, 0x1.43eaee0112037p-7),
             0x1.5914eecdd0c7ap-7));
}

TP_MATH double bessel_phase1(double t) {
  return horner(
      t,
      horner_quad(t, t * t, 0x1.5fa60b69caecbp-39, -0x1.97125512a79b2p-36, 0x1.9176d522134a6p-35, 0x1.055818ead2f4cp-35,
                  -0x1.fc750b0b370f4p-33, 0x1.baa40ed0ec068p-32, -0x1.a12f9ce7bfd8p-32, 0x1.9b664a4371526p-33,
                  0x1.2075141be0653p-28, -0x1.954277da0fb68p-29, 0x1.46d9a3bb02cb8p-25, 0x1.acbcb03c19464p-25,
                  -0x1.5691a5a923f14p-24, -0x1.4dac6f67f57c9p-22, -0x1.e2f3310f383fep-18, -0x1.556825f2348a6p-15,
                  -0x1.76fb3c555e771p-13, -0x1.dc9b8b0c6d21ep-11, -0x1.e5870da9ef066p-9, -0x1.38c1f0180561p-7),
      -0x1.65a2772b4544fp-7, 0x1.7b963373a3d6ap-2);
}

struct Wave {
  Pair modulus;
  TrigReduced angle;  // of Y's sine
};
template <int Order>
TP_MATH Wave bessel_wave(double a) {
  const double x = a < 2.0 ? 2.0 : a, y = x > 0x1p100 ? 0x1p100 : x, inverse = 1.0 / ((y + 2.0) * y);
  const double t = TP_FMA(8.0 * y, inverse, -1.0), over_x = (y + 2.0) * inverse;
  const Pair modulus = Order == 0 ? bessel_modulus0(t) : bessel_modulus1(t);
  const double phase = (Order == 0 ? bessel_phase0(t) : bessel_phase1(t)) * over_x;
  TrigReduced angle = turned(trig_reduce_fast(x), phase, 0.0);
  angle.quadrant -= Order;
  return {over_root(modulus, x), angle};
}
TP_MATH double wave_value(Pair modulus, double r, double lo, uint64_t quadrant) {
  const double s = sin_quadrant(r, lo, quadrant);
  return TP_FMA(modulus.hi, s, modulus.lo * s);
}

// On [0, 2], in s = x^2.
TP_MATH Pair bessel_j0_near(double x) {
  const auto [s, s_lost] = two_product(x, x);
  const double w = 1.0 - 0.25 * s, lost = ((1.0 - w) - 0.25 * s) - 0.25 * s_lost;
  return {w,
          TP_FMA(s * s,
                 horner_pair(s, s * s, 0x1.4984111cd5fffp-64, -0x1.0b02a4027565ep-55, 0x1.52298838256c1p-47,
                             -0x1.522a423c8b1c4p-39, 0x1.02e85c0635a85p-31, -0x1.23456789a8181p-24,
                             0x1.c71c71c71c6cp-18, -0x1.c71c71c71c71cp-12, 0x1p-6),
                 lost)};
}
// J1(x) / (x / 2) - 1
TP_MATH double bessel_j1_near(double s) {
  return TP_FMA(s * s,
                horner_pair(s, s * s, 0x1.e0c9599f0704bp-68, -0x1.ab43b97d0b004p-59, 0x1.2c96db6e83079p-50,
                            -0x1.522a42cf26b02p-42, 0x1.27e4fb75f1a64p-34, -0x1.845c8a0ce297dp-27,
                            0x1.6c16c16c16bf8p-20, -0x1.c71c71c71c71cp-14, 0x1.5555555555555p-8),
                -0.125 * s);
}
// Y0 - (2 / pi) log(x / z) J0, over x^2 - z^2, z = 0.893576966279167522 the first zero.
TP_MATH double bessel_y0_rest(double s) {
  return horner(s,
                horner_pair(s, s * s, -0x1.48d98ce0889a2p-63, 0x1.03433b734f4c3p-54, -0x1.3c54c0f371aebp-46,
                            0x1.2eb3f149835e7p-38, -0x1.b797036267209p-31, 0x1.cf0413da5279dp-24,
                            -0x1.4c030d99a84a5p-17, 0x1.268a9aaaeb0c5p-11),
                -0x1.12583f4a4abcfp-6, 0x1.750811790a13cp-3);
}
// (Y1 - (2 / pi) (log(x) J1 - 1 / x)) / x
TP_MATH double bessel_y1_rest(double s) {
  return horner(s,
                horner_pair(s, s * s, -0x1.d4cf731bbe8c2p-68, 0x1.972ac20814b8cp-59, -0x1.1473aaaf4d2c7p-50,
                            0x1.2a4e178be321bp-42, -0x1.f0ce34c39e0cap-35, 0x1.32e5a4dddad7ep-27,
                            -0x1.0a780ac776c8dp-20, 0x1.2c7dbffcde979p-14, -0x1.835b97894be5bp-9),
                0x1.bd3975c75b4a7p-5, -0x1.91866143cbc8ap-3);
}
inline constexpr double kTwoOverPiHi = 0x1.45f306dc9c883p-1, kTwoOverPiLo = -0x1.6b01ec5417056p-55;

template <int Order>
TP_MATH double bessel_j_wave(double a) {
  const auto [modulus, angle] = bessel_wave<Order>(a);
  return wave_value(modulus, angle.r, angle.lo, angle.quadrant + 1);
}
template <int Order>
TP_MATH double bessel_y_wave(double a) {
  const auto [modulus, angle] = bessel_wave<Order>(a);
  return wave_value(modulus, angle.r, angle.lo, angle.quadrant);
}
TP_MATH double sum_of(Pair p) { return p.hi + p.lo; }

TP_MATH double bessel_j0(double x) {
  const double a = magnitude(x), y = a < 2.0 ? a : 2.0;
  const double result = TP_EITHER(a < 2.0, sum_of(bessel_j0_near(y)), bessel_j_wave<0>(a));
  return a == kInf<double> ? 0.0 : result;
}
TP_MATH double bessel_j1(double x) {
  const double a = magnitude(x), y = a < 2.0 ? a : 2.0;
  const double value = TP_EITHER(a < 2.0, TP_FMA(0.5 * y, bessel_j1_near(y * y), 0.5 * y), bessel_j_wave<1>(a));
  const double result = a == kInf<double> ? 0.0 : value;
  return from_bits(to_bits(result) ^ (to_bits(x) & kSignBit<double>));
}
TP_MATH double bessel_y0_near(double y) {
  const auto [j_hi, j_lo] = bessel_j0_near(y);
  const auto [l_hi, l_lo] = log_parts(y);
  // log(x / z)
  const auto [l, l_lost] = two_sum(l_hi, 0x1.cce4b73e6f025p-4);
  const double j = j_hi + j_lo, j_lost = (j_hi - j) + j_lo, rest_lost = (l_lost + l_lo) + 0x1.4297c34fad727p-58;
  const auto [c, c_lost] = two_product(j, kTwoOverPiHi);
  const double c_rest = c_lost + TP_FMA(j, kTwoOverPiLo, j_lost * kTwoOverPiHi);
  const auto [p, p_lost] = two_product(c, l);
  const double p_rest = p_lost + TP_FMA(c_rest, l, c * rest_lost);
  return p +
      TP_FMA(((y - 0x1.c982eb8d417eap-1) - 0x1.ea9d270347f83p-56) * (y + 0x1.c982eb8d417eap-1), bessel_y0_rest(y * y),
             p_rest);
}
TP_MATH double bessel_y1_near(double y) {
  const double s = y * y;
  const auto [l, l_lost] = log_parts(y);
  const auto [q, q_lost] = over(kTwoOverPiHi, kTwoOverPiLo, y);
  const double half = 0.5 * y, w = half * bessel_j1_near(s), j1 = half + w, j1_lost = (half - j1) + w;
  const auto [j, j_lost] = two_product(j1, kTwoOverPiHi);
  const double j_rest = j_lost + TP_FMA(j1, kTwoOverPiLo, j1_lost * kTwoOverPiHi);
  const auto [p, p_error] = two_product(j, l);
  const double p_lost = TP_FMA(j_rest, l, p_error);
  const auto [sum, sum_lost] = two_sum(-q, p);
  const double value = sum + TP_FMA(y, bessel_y1_rest(s), (sum_lost + p_lost) + TP_FMA(j, l_lost, -q_lost));
  return y < 0x1p-900 ? -q : value;  // which may overflow
}
TP_MATH double bessel_y_ends(double x, double value) {
  const double inside = x == kInf<double> ? 0.0 : value, outside = x == 0 ? -kInf<double> : kNan<double>;
  return x > 0 ? inside : outside;
}
TP_MATH double bessel_y0(double x) {
  const double y = x < 2.0 ? x : 2.0;
  return bessel_y_ends(x, TP_EITHER(x < 2.0, bessel_y0_near(y), bessel_y_wave<0>(x)));
}
TP_MATH double bessel_y1(double x) {
  const double y = x < 2.0 ? x : 2.0;
  return bessel_y_ends(x, TP_EITHER(x < 2.0, bessel_y1_near(y), bessel_y_wave<1>(x)));
}

// ---- K

// exp(x) sqrt(x) K(x) from 1 on, in t = 4 / (x + 1) - 1.
TP_MATH Pair bessel_k0_far(double t) {
  return leading(
      0x1.356417a9f2ee9p+0, -0x1.f27fbbfe32e5fp-55, t,
      horner(t,
             horner_quad(t, t * t, 0x1.c4ef98cfe1a4dp-37, -0x1.b992b2f481d4p-36, -0x1.3d000172a5a25p-35,
                         0x1.ca7f709ae49eep-35, 0x1.1b99ff1686fa9p-34, -0x1.12e951206e6fbp-32, -0x1.fae32e38d95a4p-33,
                         -0x1.03aa84b7541d3p-30, -0x1.37a85ea4bd4cep-29, -0x1.5b2933529acfcp-27, -0x1.d3363aa800047p-26,
                         -0x1.bab9e7356cef9p-24, -0x1.4ced252759cb9p-22, -0x1.2dfa95fdc58dcp-20, -0x1.e1ff18888a986p-19,
                         -0x1.b49009dc3d31cp-17, -0x1.6d1e88ce3b329p-15, -0x1.55615cf60282bp-13, -0x1.2d4432422cf96p-11,
                         -0x1.334777d999167p-9, -0x1.287ae72aabd63p-7),
             -0x1.a932e00d70339p-5));
}
TP_MATH Pair bessel_k1_far(double t) {
  return leading(
      0x1.65a260862b35ep+0, 0x1.f0cc60467c86cp-54, t,
      horner(t,
             horner_quad(t, t * t, -0x1.ad376b4510adfp-38, 0x1.bf59ac058387dp-35, 0x1.2584cadc4896bp-34,
                         0x1.0aa2e4e3a2c6ap-35, 0x1.51d4bddd8521cp-32, 0x1.88d1b9a5e51a8p-30, 0x1.f5ff7d2b3c7dfp-29,
                         0x1.8c125e4ce8cb7p-27, 0x1.2cb14c69d9473p-25, 0x1.dfc3c71f3c257p-24, 0x1.6ebc53409226dp-22,
                         0x1.2272b2f94add9p-20, 0x1.c2c0beb423462p-19, 0x1.66221ade6c68dp-17, 0x1.197da2e8d154dp-15,
                         0x1.c3cd0ad7829fep-14, 0x1.68d7d916976f3p-12, 0x1.276b51f311d52p-10, 0x1.e4076193ab533p-9,
                         0x1.9e097c3c5f9fdp-7, 0x1.6595f9d3a06d1p-5),
             0x1.6b98e74488343p-3));
}

// Below 1: I0 and K0 + log(x) I0; I1 / x and (K1 - 1 / x - log(x) I1) / x; in x^2.
struct BesselK {
  double i, rest;
};
TP_MATH BesselK bessel_k0_near(double s) {
  return {horner(s,
                 horner_pair(s, s * s, 0x1.56e48dba7a232p-47, 0x1.522161c5d3828p-39, 0x1.02e8650679f89p-31,
                             0x1.2345677f113a7p-24, 0x1.c71c71c72b21ep-18, 0x1.c71c71c71c666p-12, 0x1p-6),
                 0x1p-2, 0x1p+0),
          horner(s,
                 horner_pair(s, s * s, 0x1.e61b679067c7fp-46, 0x1.c9f53132fadcap-38, 0x1.4c2b7bbffef78p-30,
                             0x1.5d6b13a13a103p-23, 0x1.f4747696e5262p-17, 0x1.bb90e85debe48p-11, 0x1.9dadb014541ecp-6),
                 0x1.1dadb014541ebp-2, 0x1.dadb014541eb2p-4)};
}
TP_MATH BesselK bessel_k1_near(double s) {
  return {
      horner(s,
             horner_pair(s, s * s, 0x1.305effd6d6c8bp-51, 0x1.52232a0d90e6cp-43, 0x1.27e502a768425p-35,
                         0x1.845c8a046b75bp-28, 0x1.6c16c16c1cap-21, 0x1.c71c71c71c6d3p-15, 0x1.5555555555555p-9),
             0x1p-4, 0x1p-1),
      horner(s,
             horner_pair(s, s * s, -0x1.b7eac05d4c867p-50, -0x1.d488f6076181dp-42, -0x1.8630b69c1fbcp-34,
                         -0x1.e2129ff4f869ep-27, -0x1.a29182247cbdap-20, -0x1.d802af7a5db5ap-14, -0x1.303ae729ff30fp-8),
             -0x1.5dadb014541ebp-4, -0x1.3b5b6028a83d6p-2)};
}

template <int Order, bool Scaled>
TP_MATH double bessel_k_near(double y) {
  const double s = y * y;
  const auto [l, l_lost] = log_parts(y);
  Pair near;
  if constexpr (Order == 0) {
    const auto [i, rest] = bessel_k0_near(s);
    const auto [p, p_lost] = two_product(-l, i);
    const auto [sum, lost] = two_sum(p, rest);
    near = {sum, lost + TP_FMA(-l_lost, i, p_lost)};
  } else {
    const auto [i, rest] = bessel_k1_near(s);
    const auto [q, q_lost] = over(1.0, 0.0, y);
    near = {q, TP_FMA(y, TP_FMA(l, i, rest), q_lost)};
  }
  return Scaled ? times_exp(near, y, 0.0) : near.hi + near.lo;
}
template <int Order, bool Scaled>
TP_MATH double bessel_k_far(double z) {
  const double t = 4.0 / (z + 1.0) - 1.0, capped = z > 800.0 ? 800.0 : z;
  const auto [hi, lo] = over_root(Order == 0 ? bessel_k0_far(t) : bessel_k1_far(t), z);
  const double settled = z == kInf<double> ? 0.0 : hi + lo;
  return Scaled ? settled : times_exp({hi, lo}, -capped, 0.0);
}
template <int Order, bool Scaled>
TP_MATH double bessel_k(double x) {
  const double y = x < 1.0 ? x : 1.0, z = x < 1.0 ? 1.0 : x;
  const double inside = TP_EITHER(x < 1.0, (bessel_k_near<Order, Scaled>(y)), (bessel_k_far<Order, Scaled>(z)));
  const double outside = x == 0 ? kInf<double> : kNan<double>;
  return x > 0 ? inside : outside;
}

// ---- Ai

// zeta = 2/3 x^(3/2)
TP_MATH Pair airy_zeta(double x) {
  const double root = sqrt(x);
  const auto [square, square_lost] = two_product(root, root);
  const double root_lost = ((x - square) - square_lost) * (0.5 / root);
  const auto [p, p_lost] = two_product(x, root);
  const double rest = TP_FMA(x, root_lost, p_lost);
  const auto [z, z_lost] = two_product(p, 0x1.5555555555555p-1);
  return {z, z_lost + TP_FMA(p, 0x1.5555555555555p-55, rest * 0x1.5555555555555p-1)};
}
// x^(1/4) exp(zeta) Ai(x) from 1 on, in 1 / (zeta + 0.7).
TP_MATH Pair airy_right(double t) {
  return leading(
      0x1.18ce4e0023c07p-2, 0x1.60c6f5cb74d6cp-61, t,
      horner(t,
             horner_quad(t, t * t, 0x1.79100f2543e05p-35, -0x1.1ef003807231ap-34, -0x1.a047b37c2dc12p-33,
                         0x1.39ee1a3cfa946p-32, 0x1.dd6eec4775461p-32, -0x1.695764d1b2446p-31, -0x1.201dfa19900c9p-31,
                         0x1.abac03afd6093p-31, 0x1.369a9bdf24908p-31, -0x1.f5744ff7ad812p-31, -0x1.b933fd063f2c2p-37,
                         -0x1.c91c97e63ffb7p-32, 0x1.627c87893797ap-31, -0x1.39722e8bf554p-28, -0x1.dd16e1816a9e3p-30,
                         -0x1.064ebd0f549c4p-25, -0x1.7c31ba5f9ab5dp-25, -0x1.19e7f21e31b4ap-22, -0x1.37f00c2818562p-21,
                         -0x1.5e66c813c94fdp-19, -0x1.d72c5c87957abp-18, -0x1.edc4af1ffa43p-16, -0x1.744a48397a736p-14,
                         -0x1.9e808c88d25d9p-12, -0x1.5b0afcfc147e3p-10),
             -0x1.226bac3cb5a99p-7));
}

// x^(1/4) sqrt(Ai^2 + Bi^2) at -x and zeta times the phase less zeta - pi/4, from 2 on, in 1 / (zeta + 1).
TP_MATH Pair airy_modulus(double t) {
  return leading(
      0x1.20734099cc3aep-1, -0x1.0737fb1f6feeap-55, t,
      horner(t,
             horner_quad(t, t * t, 0x1.7be21c381b77cp-37, -0x1.7df695a644c08p-37, -0x1.15db5fa2ef97ep-34,
                         0x1.8ef66269ade1fp-34, 0x1.6ac7c340c9aeap-34, -0x1.8115cb752e5fdp-33, 0x1.6a5d4f8825cffp-35,
                         -0x1.31aebdce60765p-33, 0x1.1a92323e1e267p-31, -0x1.0ddd64cfcaa2ap-31, -0x1.6912ac7b2dc1ap-31,
                         0x1.11d0d6e470615p-28, -0x1.84c335c35c71p-27, 0x1.3a877fc184e9ep-26, -0x1.c4a3a319f3183p-27,
                         -0x1.11b71ae75f632p-23, 0x1.29e72a779fbe7p-22, -0x1.014320273415dp-19, -0x1.76e70757a8124p-18,
                         -0x1.02d1a829a6a7fp-16, -0x1.0fcbc25349d59p-12, -0x1.52f5b75d17499p-10),
             -0x1.e698b063cc3d9p-10));
}
TP_MATH double airy_phase(double t) {
  return horner(
      t,
      horner_quad(t, t * t, 0x1.18860e477581p-35, -0x1.2d13c32fea429p-34, -0x1.cfa8a161755bdp-34, 0x1.6988aefd7e1d6p-32,
                  -0x1.6a4feba26a987p-39, -0x1.bf47b7b272d15p-32, 0x1.4334f97bad3e1p-38, 0x1.094bc2c2741b7p-32,
                  0x1.89b968d8755bp-31, -0x1.f98030891452ep-30, 0x1.285af6b5fb582p-29, -0x1.696bf0002f9e7p-30,
                  -0x1.ad55021400882p-29, 0x1.12d733d5e843ep-26, -0x1.5bdb366f24ed2p-25, 0x1.1a6048ecaf9d7p-24,
                  -0x1.1df8b8e3f0494p-25, -0x1.daa0a06d1d609p-23, 0x1.06bcb30c850afp-20, -0x1.1e5a75982052ap-19,
                  0x1.1b47cd40d4a46p-20, 0x1.04b4529ee39cp-16, -0x1.fefb3bc7e995p-15, 0x1.dcc3a4f951c68p-14,
                  0x1.e2a25ccc34892p-10),
      0x1.8fab53e66b749p-9, -0x1.16bc0b6413501p-4);
}

// Ai on [-2, 0], in t = x + 1, and on [0, 1]: there the first two terms are formed exactly.
TP_MATH double airy_below(double t) {
  const auto [s, s_lost] = two_product(t, t);
  const double rest =
      TP_FMA(t, -0x1.4cf103bcc6624p-7,
             t * s *
                 horner(t,
                        horner_quad(t, t * t, -0x1.55f681e304551p-43, 0x1.f1ef8623b250ep-40, -0x1.b5459bbeb3d15p-39,
                                    -0x1.2ff278fcdc7f3p-34, 0x1.32f5da7cbf655p-31, -0x1.9ee826a1ab4abp-32,
                                    -0x1.4a223b086c0d9p-26, 0x1.ecf4184efcab3p-24, 0x1.318c4ba262ef9p-25,
                                    -0x1.d0a22e4bbf565p-19, 0x1.e4a0beaf3da8bp-17, 0x1.411687764639ep-16,
                                    -0x1.7b39f6c3da3afp-12, 0x1.ebe510ca23ef1p-11, 0x1.2f95f061821d4p-9,
                                    -0x1.25dff9df33d71p-6, 0x1.5fbcac2a2789dp-6),
                        0x1.748bbc65f3efcp-4));
  const auto [p, p_lost] = two_product(s, -0x1.1235093d83da5p-2);
  const auto [sum, lost] = two_sum(0x1.1235093d83da5p-1, p);
  return sum +
      (rest +
       (lost + TP_FMA(s_lost, -0x1.1235093d83da5p-2, p_lost) +
        TP_FMA(s, -0x1.997f886982eddp-56, 0x1.97f341f179f09p-55)));
}
TP_MATH double airy_above(double x) {
  const auto [p, p_lost] = two_product(x, -0x1.0907f42b70f8bp-2);
  const auto [sum, lost] = two_sum(0x1.6b8c7962715b8p-2, p);
  const double rest = x *
      horner(x,
             horner_pair(x, x * x, 0x1.9d084c0708991p-37, -0x1.89db12bf937b7p-33, 0x1.1b0a78d79928ap-30,
                         -0x1.938daa7b20eafp-35, -0x1.39de8f4effefap-25, 0x1.bd9f74aac8093p-23, 0x1.53f0abe7af819p-37,
                         -0x1.7eea95d457b67p-18, 0x1.cb98f0328a78fp-16, -0x1.f9729fc9052f4p-44, -0x1.0d3ce7ca8100ep-11,
                         0x1.028606ac66f27p-9, 0x1.ca377044de8a5p-56),
             -0x1.615ff039ebf63p-6, 0x1.e4bb4c8341cf6p-5);
  return sum + TP_FMA(x * x, rest, (lost + p_lost) + TP_FMA(x, 0x1.d1459035afde2p-56, 0x1.7a96d7bb04e65p-56));
}
TP_MATH double airy_decay(double x) {
  const Pair zeta = airy_zeta(x);
  const double t = TP_FMA(0x1.5dddddddddddep+1, 1.0 / (zeta.hi + 0.7), -1.0);
  return times_exp(over_root(airy_right(t), sqrt(x)), -zeta.hi, -zeta.lo);
}
TP_MATH double airy_wave(double a) {
  const Pair zeta = airy_zeta(a);
  const double z = zeta.hi, inverse = 1.0 / ((z + 1.0) * z), t = TP_FMA(0x1.715beeeff7d33p+2 * z, inverse, -1.0);
  const double phase = airy_phase(t) * ((z + 1.0) * inverse);
  const TrigReduced angle = turned(trig_reduce_fast(z), phase, zeta.lo);
  return wave_value(over_root(airy_modulus(t), sqrt(a)), angle.r, angle.lo, angle.quadrant + 1);
}
TP_MATH double airy_ai(double x) {
  const double right = x < 1.0 ? 1.0 : x > 200.0 ? 200.0 : x, left = x > -2.0 ? 2.0 : -x;
  const double middle = TP_EITHER(x < 0, airy_below(x + 1.0), airy_above(x));
  const double beside = TP_EITHER(x < 1.0, middle, airy_decay(right));
  const double result = TP_EITHER(x < -2.0, airy_wave(left), beside);
  return x != x ? x : result;
}

// The wave of an angle beyond the short reduction is the C library's.
TP_MATH bool wave_near(double x) { return magnitude(x) <= kTrigFast; }
TP_MATH bool airy_near(double x) { return !(x < (TP_HAS_FMA ? -0x1p19 : -0x1p12)); }

}  // namespace detail

#define TP_CYLINDER(name, near, value, far)                                          \
  TP_MATH double name(double x) { return detail::near(x) ? detail::value : far(x); } \
  TP_MATH float name(float x) { return float(name(double(x))); }
TP_CYLINDER(bessel_j0, wave_near, bessel_j0(x), ::j0)
TP_CYLINDER(bessel_j1, wave_near, bessel_j1(x), ::j1)
TP_CYLINDER(bessel_y0, wave_near, bessel_y0(x), ::y0)
TP_CYLINDER(bessel_y1, wave_near, bessel_y1(x), ::y1)
TP_CYLINDER(airy_ai, airy_near, airy_ai(x), ::tp::special::airy_ai)
#undef TP_CYLINDER
#define TP_CYLINDER(name, order, scaled)                                       \
  TP_MATH double name(double x) { return detail::bessel_k<order, scaled>(x); } \
  TP_MATH float name(float x) { return float(name(double(x))); }
TP_CYLINDER(modified_bessel_k0, 0, false)
TP_CYLINDER(modified_bessel_k1, 1, false)
TP_CYLINDER(scaled_modified_bessel_k0, 0, true)
TP_CYLINDER(scaled_modified_bessel_k1, 1, true)
#undef TP_CYLINDER

namespace detail {
// sin(x) / x, 1 at 0.
TP_MATH double spherical_bessel_j0(double x) {
  const double q = sin_fast(x) / x;
  return x == 0 ? 1.0 : q;
}
}  // namespace detail
TP_MATH double spherical_bessel_j0(double x) {
  return detail::wave_near(x) ? detail::spherical_bessel_j0(x) : isinf(x) ? 0.0 : ::sin(x) / x;
}
TP_MATH float spherical_bessel_j0(float x) { return float(spherical_bessel_j0(double(x))); }

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
