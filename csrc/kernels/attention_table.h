// The table of attention's loops over blocks of scores. Knows no Storage and no threads.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

/// A block of scores: rows of n values, ld apart. Row r counts the first `limit + r` values only where causal; mask, when
/// given, is added (rows mask_ld apart).
template <class T>
struct ScoreBlock {
  std::int64_t rows, n, ld;
  T* s;
  T scale;
  const T* mask;
  std::int64_t mask_ld;
  bool causal;
  std::int64_t limit;
};

template <class T>
struct AttentionLoops {
  /// Online softmax: s becomes exp(scale * s + mask - top), top and total are brought up to date, factor is what earlier
  /// results are multiplied by.
  void (*forward)(const ScoreBlock<T>& b, T* top, T* total, T* factor);
  /// s becomes the probabilities exp(scale * s + mask - lse).
  void (*probabilities)(const ScoreBlock<T>& b, const T* lse);
  /// slope = p * (slope - level) * scale, rows of n values.
  void (*score_slope)(std::int64_t rows, std::int64_t n, const T* p, const T* level, T scale, T* slope);
  /// Rows times their factor.
  void (*scale_rows)(std::int64_t rows, std::int64_t n, std::int64_t ld, const T* factor, T* x);
  T (*dot)(std::int64_t n, const T* x, const T* y);
  /// x = keep ? x * scale : 0
  void (*drop)(std::int64_t n, const std::uint8_t* keep, T scale, T* x);
};
struct AttentionTable {
  AttentionLoops<float> f32;
  AttentionLoops<double> f64;
};
TP_DECLARE_TABLE(AttentionTable, attention_table)

}  // namespace tp
