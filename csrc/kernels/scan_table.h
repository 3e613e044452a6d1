// The table of running sums and products behind scan.h, compiled per instruction set. Knows raw memory only.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

using StreamFn = void (*)(char* to, const char* from, std::int64_t bytes);

/// out[r][c] = x[0][c] + ... + x[r][c] (or their product) for `rows` rows at distance `stride` (elements) and `cols` neighbouring
/// columns. At stride 1 a column is a line in memory, and the next one begins where it ends. Where `stream` is given, it
/// stores the columns.
using RunningFn = void (*)(char* out, const char* x, std::int64_t rows, std::int64_t stride, std::int64_t cols,
                           StreamFn stream);

struct ScanTable {
  RunningFn sum_f32, sum_f64, sum_i64;
  RunningFn prod_f32, prod_f64, prod_i64;
};
TP_DECLARE_TABLE(ScanTable, scan_table)

}  // namespace tp
