// The table of loops over pairs of rows behind distance.h, compiled per instruction set. Raw memory only.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

enum class Distance : std::uint8_t { City, Euclid, Chess };  // orders 1, 2, infinity

template <class T>
struct DistanceLoops {
  std::int64_t panel;  // rows of the other matrix one call takes
  /// out[i * out_step + j] = distance of row i of x to row j of the panel, for j < cols. The panel is transposed:
  /// element k of its row j lies at panel[k * this->panel + j]. Rows of x are contiguous.
  void (*run[3])(const T* x, const T* panel, std::int64_t length, std::int64_t rows, std::int64_t cols, T* out,
                 std::int64_t out_step);
  /// out[i] = the sum over the n rows of y of weight[i][j] * (x[i] - y[j]), for `rows` contiguous rows.
  void (*weigh)(const T* weight, const T* x, const T* y, std::int64_t rows, std::int64_t n, std::int64_t length,
                T* out);
};
struct DistanceTable {
  DistanceLoops<float> f32;
  DistanceLoops<double> f64;
};
TP_DECLARE_TABLE(DistanceTable, distance_table)

}  // namespace tp
