// The table of random fills over raw memory. A stream is addressed by (seed, block): group i of a fill uses the 16 Philox
// blocks from block + 16 * i on, whatever thread or instruction set fills it. Knows no Storage and no threads.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

inline constexpr std::int64_t kRandomWords = 64;  // 32-bit words of a group
inline constexpr std::int64_t kRandomBlocks = 16;  // Philox blocks of a group

struct RandomStream {
  std::uint64_t seed, block;
  RandomStream at_group(std::int64_t g) const { return {seed, block + std::uint64_t(g) * kRandomBlocks}; }
};

struct RandomTable {
  /// 64 words a group.
  void (*bits32)(RandomStream s, std::int64_t n, std::uint32_t* out);
  /// 32 words a group.
  void (*bits64)(RandomStream s, std::int64_t n, std::uint64_t* out);
  /// low + u * width with u a multiple of 2^-bits in [0, 1); 64 a group in float, 32 in double.
  void (*uniform_f32)(RandomStream s, std::int64_t n, int bits, float low, float width, float* out);
  void (*uniform_f64)(RandomStream s, std::int64_t n, double low, double width, double* out);
  void (*normal_f32)(RandomStream s, std::int64_t n, float mean, float deviation, float* out);
  void (*normal_f64)(RandomStream s, std::int64_t n, double mean, double deviation, double* out);
  /// -log(u) * scale with u in (0, 1]
  void (*exponential_f32)(RandomStream s, std::int64_t n, float scale, float* out);
  void (*exponential_f64)(RandomStream s, std::int64_t n, double scale, double* out);
  /// low + floor(range * u) for range <= 65536; 64 a group.
  void (*small_int)(RandomStream s, std::int64_t n, std::int64_t low, std::uint32_t range, std::int64_t* out);
  /// mask = word >= threshold; 64 a group.
  void (*mask)(RandomStream s, std::int64_t n, std::uint64_t threshold, std::uint8_t* out);
  /// The mask, and out = mask ? x * scale : 0.
  void (*dropout_f32)(RandomStream s, std::int64_t n, std::uint64_t threshold, float scale, const float* x, float* out,
                      std::uint8_t* mask);
  void (*dropout_f64)(RandomStream s, std::int64_t n, std::uint64_t threshold, double scale, const double* x,
                      double* out, std::uint8_t* mask);
};
TP_DECLARE_TABLE(RandomTable, random_table)

}  // namespace tp
