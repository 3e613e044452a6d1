// Owns the reduction of angles by pi/2, short (moderate arguments) and long (every finite argument).
#pragma once
#include "kernels/vecmath_f32.h"
#include "kernels/vecmath_f64.h"

namespace tp {
namespace TP_ISA {
namespace m {
namespace detail {

inline constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLo = 0x1.1a62633145c07p-54;
inline constexpr double kPi = 0x1.921fb54442d18p+1, kPiLo = 0x1.1a62633145c07p-53;

// Up to these the short reduction is good.
#if TP_HAS_FMA
inline constexpr float kTrigFastF = 0x1p17f;
inline constexpr double kTrigFast = 0x1p30;
#else
inline constexpr float kTrigFastF = 0x1p20f;
inline constexpr double kTrigFast = 0x1p20;
#endif

// x = n pi/2 + r (+ lo); quadrant holds n in its low bits.
struct TrigReducedF {
  float r;
  uint32_t quadrant;
};
struct TrigReduced {
  double r, lo;
  uint64_t quadrant;
};

TP_MATH TrigReduced trig_reduce_fast(double x) {
  const double t = TP_FMA(x, 0x1.45f306dc9c883p-1, kRounder), n = t - kRounder;
#if TP_HAS_FMA
  // The first difference is exact: both terms are multiples of 2^-53.
  const double r1 = TP_FMA(n, -kHalfPi, x), r = TP_FMA(n, -kHalfPiLo, r1);
  const double lo = TP_FMA(n, 0x1.f1976b7ed8fbcp-110, TP_FMA(n, -kHalfPiLo, r1 - r));
  return {r, lo, to_bits(t)};
#else
  // Parts of 33 bits, whose multiples are exact.
  const double r1 = x - n * 0x1.921fb544p+0, second = n * 0x1.0b4611a6p-34, r = r1 - second;
  const double rest = ((r1 - r) - second) - n * 0x1.3198a2e037073p-69, sum = r + rest;
  return {sum, (r - sum) + rest, to_bits(t)};
#endif
}

TP_MATH TrigReducedF trig_reduce_fast(float x) {
#if TP_HAS_FMA
  const float t = TP_FMA(x, 0x1.45f306p-1f, kRounderF), n = t - kRounderF;
  const float r = TP_FMA(n, 0x1.ee59dap-50f, TP_FMA(n, 0x1.777a5cp-25f, TP_FMA(n, -0x1.921fb6p+0f, x)));
  return {r, to_bits(t)};
#else
  const double d = x, t = d * 0x1.45f306dc9c883p-1 + kRounder, n = t - kRounder;
  return {float((d - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34), uint32_t(to_bits(t))};
#endif
}

#if TP_HAS_FMA

// 2 / pi to 1280 bits.
static constexpr uint64_t kTwoOverPi[20] = {
    0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u,
    0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u,
    0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
    0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu, 0xf0cfbc209af4361du};

// For each exponent e from 30 on: 2^(e-52) * 2/pi modulo 4, in four pieces of 53 bits. What is a multiple of four turns
// the angle by whole circles, and is left out.
struct TurnTable {
  static constexpr int first = 30, count = 1024 - first;
  double piece[4][count];
};
// 53 bits of 2 / pi from a position on; 1 is the first bit after the point, and before it there are zeros.
constexpr uint64_t turn_bits(int position) {
  if (position < 1) return position <= -52 ? 0 : (kTwoOverPi[0] >> 11) >> (1 - position);
  const int word = (position - 1) / 64, offset = (position - 1) % 64;
  const uint64_t low = offset == 0 ? 0 : kTwoOverPi[word + 1] >> (64 - offset);
  return (kTwoOverPi[word] << offset | low) >> 11;
}
constexpr TurnTable make_turn_table() {
  TurnTable table{};
  const double unit[4] = {0x1p-51, 0x1p-104, 0x1p-157, 0x1p-210};
  for (int j = 0; j < 4; ++j) {
    for (int row = 0; row < TurnTable::count; ++row) {
      table.piece[j][row] = double(turn_bits(row + TurnTable::first - 53 + 53 * j)) * unit[j];
    }
  }
  return table;
}
// Not const: the compiler would load constant rows on a path of their own, and then not vectorise at all.
[[gnu::visibility("hidden")]] inline constinit TurnTable turns = make_turn_table();

// x as an integer multiple m of a power of two, and the row of the table for that power. For small x m has a fraction,
// which does no harm. Infinity and NaN take some row and stay what they are.
struct TurnIndex {
  double m;
  int64_t row;
};
TP_MATH TurnIndex turn_index(double x, int digits) {
  const int64_t skipped = 1023 + TurnTable::first + digits - 53, last = TurnTable::count - 1;
  const int64_t exponent = int64_t(to_bits(magnitude(x)) >> 52) - skipped;
  const int64_t above = exponent > 0 ? exponent : 0, row = above < last ? above : last;
  return {x * from_bits(uint64_t(2 * 1023 - 1 + digits - skipped - row) << 52), row};
}

// Multiples of 4 are dropped from each product as soon as it is formed, so that what remains is exact where it must be.
TP_MATH TrigReduced trig_reduce(double x) {
  const auto [m, row] = turn_index(x, 53);
  const auto [high1, low1] = two_product(m, turns.piece[0][row]);
  const auto [high2, low2] = two_product(m, turns.piece[1][row]);
  const auto [high3, low3] = two_product(m, turns.piece[2][row]);
  const double high4 = m * turns.piece[3][row];
  const double h = TP_FMA(-4.0, round(0.25 * high1), high1), l = TP_FMA(-4.0, round(0.25 * low1), low1);
  const double a = h + l, a_lost = (h - a) + l, n1 = round(a), n2 = round(high2), first = a - n1, second = high2 - n2;
  const double sum = first + second, back = sum - first, sum_lost = (first - (sum - back)) + (second - back);
  const double n3 = round(sum), s = sum - n3, small = (sum_lost + high3) + (a_lost + (low2 + (low3 + high4)));
  const double f = s + small, f_lost = (s - f) + small;
  const auto [r, r_lost] = two_product(f, kHalfPi);
  return {r, r_lost + TP_FMA(f, kHalfPiLo, f_lost * kHalfPi), to_bits((n1 + n2 + n3) + kRounder)};
}

// The significand of a float has 24 bits: two pieces do.
TP_MATH TrigReducedF trig_reduce(float x) {
  const auto [m, row] = turn_index(double(x), 24);
  const auto [high, low] = two_product(m, turns.piece[0][row]);
  const double n = round(high), f = (high - n) + TP_FMA(m, turns.piece[1][row], low);
  return {float(f * kHalfPi), uint32_t(to_bits(n + kRounder))};
}

#endif

}  // namespace detail
}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
