// The table of normalisation loops over raw memory. Knows no Storage and no threads.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

/// Rows are n contiguous elements; the columns_* forms take `width` neighbouring columns of `rows` elements, `stride` apart.
/// Null pointers stand for absent weights and unwanted results.
template <class T>
struct NormLoops {
  /// Mean, and the sum of squared distances from it.
  void (*moments)(std::int64_t n, const T* x, T* mean, T* m2);
  T (*sum_squares)(std::int64_t n, const T* x);
  /// out = (x - mean) * rstd * w + b
  void (*normalize)(std::int64_t n, const T* x, T mean, T rstd, const T* w, const T* b, T* out);
  /// out = (x - mean) * scale + shift
  void (*affine)(std::int64_t n, const T* x, T mean, T scale, T shift, T* out);
  /// gx of one row; adds to gw and gb. centered: mean was subtracted (layer norm; not in RMS norm).
  void (*row_backward)(std::int64_t n, const T* g, const T* x, T mean, T rstd, const T* w, bool centered, T* gx, T* gw,
                       T* gb);
  /// sums of g and of g * (x - mean)
  void (*slope_sums)(std::int64_t n, const T* g, const T* x, T mean, T* sum_g, T* sum_gx);
  /// gx = a * g + b * (x - mean) + c
  void (*combine)(std::int64_t n, const T* g, const T* x, T mean, T a, T b, T c, T* gx);

  void (*columns_affine)(std::int64_t width, std::int64_t rows, std::int64_t stride, const T* x, const T* mean,
                         const T* scale, const T* shift, T* out);
  void (*columns_slope_sums)(std::int64_t width, std::int64_t rows, std::int64_t stride, const T* g, const T* x,
                             const T* mean, T* sum_g, T* sum_gx);
  void (*columns_combine)(std::int64_t width, std::int64_t rows, std::int64_t stride, const T* g, const T* x,
                          const T* mean, const T* a, const T* b, const T* c, T* gx);
};
struct NormTable {
  NormLoops<float> f32;
  NormLoops<double> f64;
};
TP_DECLARE_TABLE(NormTable, norm_table)

}  // namespace tp
