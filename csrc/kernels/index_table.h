// The table of index checks and element picks behind the indexing kernels, compiled per instruction set. Raw memory only.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

struct IndexTable {
  /// Whether all of the n indices lie in [low, high).
  bool (*within)(const std::int64_t* index, std::int64_t n, std::int64_t low, std::int64_t high);
  /// to[i] = from[index[i] * step + i * along], by item size 1, 2, 4, 8, 16; strides in elements.
  void (*pick[5])(char* to, const char* from, const std::int64_t* index, std::int64_t n, std::int64_t step,
                  std::int64_t along);
  /// to[i] += from[i].
  void (*add_f32)(float* to, const float* from, std::int64_t n);
  void (*add_f64)(double* to, const double* from, std::int64_t n);
};
TP_DECLARE_TABLE(IndexTable, index_table)

namespace kernels {
extern const IndexTable* const index_kernels;  // the active table
}
}  // namespace tp
