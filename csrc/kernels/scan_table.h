// The table of running sums behind scan.h, compiled per instruction set. Knows raw memory only.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

/// out[r][c] = x[0][c] + ... + x[r][c] for `rows` rows at distance `stride` (elements) and `cols` neighbouring columns.
using RunningSumFn = void (*)(char* out, const char* x, std::int64_t rows, std::int64_t stride, std::int64_t cols);

struct ScanTable {
  RunningSumFn sum_f32, sum_f64, sum_i64;
};
TP_DECLARE_TABLE(ScanTable, scan_table)

}  // namespace tp
