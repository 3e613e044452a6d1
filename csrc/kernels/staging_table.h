// The table of block moves behind staging.h: contiguous conversions between dtypes and 2-d strided copies by item size.
// Compiled per instruction set; knows no Storage.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "kernels/isa_table.h"

namespace tp {

/// n contiguous elements of one dtype to another. The two must not overlap.
using ConvertFn = void (*)(char* to, const char* from, std::int64_t n);
/// rows x cols elements; strides in elements: {to row, to col, from row, from col}.
struct Copy2dStrides {
  std::int64_t to_row, to_col, from_row, from_col;
};
using Copy2dFn = void (*)(char* to, const char* from, const Copy2dStrides& s, std::int64_t rows, std::int64_t cols);

struct StagingTable {
  ConvertFn convert[kNumDtypes][kNumDtypes];  // [from][to]
  Copy2dFn copy2d[5];  // item sizes 1, 2, 4, 8, 16
  /// Copies past the caches; see streaming.h.
  void (*stream)(char* to, const char* from, std::int64_t bytes);
  /// to[i] = start + (first + i) * step, for n up to 2^31.
  void (*ramp_i64)(std::int64_t* to, std::int64_t n, std::int64_t first, std::int64_t start, std::int64_t step);
  void (*ramp_f64)(double* to, std::int64_t n, std::int64_t first, double start, double step);
};
TP_DECLARE_TABLE(StagingTable, staging_table)

inline int copy2d_index(std::size_t item) { return item == 1 ? 0 : item == 2 ? 1 : item == 4 ? 2 : item == 8 ? 3 : 4; }

namespace kernels {
extern const StagingTable* const staging;  // the active table
}
}  // namespace tp
