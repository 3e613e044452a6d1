// The table of pooling loops over one plane. Knows no Storage and no threads. A pooling window is a kernel's taps, so the
// geometry is a convolution's.
#pragma once
#include <cstdint>

#include "kernels/conv_table.h"

namespace tp {

template <class T>
struct PoolLoops {
  /// Largest value of each window and its position in the plane; room: twice out[2] integers.
  void (*max)(const ConvGeometry& g, const T* x, T* out, std::int64_t* at, std::int32_t* room);
  /// Sums of the windows' elements inside the plane.
  void (*sum)(const ConvGeometry& g, const T* x, T* out);
  /// x += the window's slope at each of its elements.
  void (*sum_back)(const ConvGeometry& g, const T* slope, T* x);
};
struct PoolTable {
  PoolLoops<float> f32;
  PoolLoops<double> f64;
  PoolLoops<std::int64_t> i64;
  /// The sum of a box of n[0] x n[1] x n[2] elements, the last ones contiguous; steps of the first two in elements.
  double (*box_f32)(const float* x, const std::int64_t* n, std::int64_t plane, std::int64_t line);
  double (*box_f64)(const double* x, const std::int64_t* n, std::int64_t plane, std::int64_t line);
};
TP_DECLARE_TABLE(PoolTable, pool_table)

}  // namespace tp
