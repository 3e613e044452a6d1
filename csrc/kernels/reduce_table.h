// The table of folding kernels behind reduce.h, compiled per instruction set. Knows raw blocks only: what a layout looks
// like, which dimensions fold and who runs in parallel is the driver's business (reduce.cpp).
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "kernels/isa_table.h"

namespace tp {

/// Accumulators of up to `capacity` outputs, as planes (one field of all outputs after the other) from `base`.
struct Accumulators {
  char* base;
  std::int64_t capacity;
};

/// One way of folding blocks of one type. Every kernel adds to what the accumulators hold, in a fixed order, so the
/// result depends on how the driver cuts the data and never on threads.
struct FoldKernel {
  Dtype block;  // type of the blocks it reads
  Dtype result;  // type `finish` writes
  int acc_bytes;  // of one output, all planes together
  void (*init)(Accumulators acc, std::int64_t n);
  /// Folds `rows` rows (distance row_stride elements) of n contiguous elements, the first of which has number `first`,
  /// into outputs 0..rows-1.
  void (*rows)(Accumulators acc, const char* x, std::int64_t row_stride, std::int64_t rows, std::int64_t n,
               std::int64_t first);
  /// Folds `rows` rows (distance row_stride elements) of `cols` contiguous elements into outputs 0..cols-1.
  void (*cols)(Accumulators acc, const char* x, std::int64_t row_stride, std::int64_t rows, std::int64_t cols,
               std::int64_t first);
  /// Adds n other accumulators, which saw later elements.
  void (*merge)(Accumulators acc, Accumulators later, std::int64_t n);
  /// Writes n results; `count` elements were folded into each, `param` is the fold's own.
  void (*finish)(char* out, Accumulators acc, std::int64_t n, double count, double param);
  /// All of it at once for at most kFewRows rows, with results of the block's type; or null.
  void (*few)(char* out, const char* x, std::int64_t row_stride, std::int64_t rows, std::int64_t cols) = nullptr;
};
inline constexpr std::int64_t kFewRows = 64;
/// Most columns of one call: the longer a row, the more of memory is read as it lies (rows of 4096 floats in one piece or four:
/// 2.9 and 3.6 ms for 64 MB on Zen 4).
inline constexpr std::int64_t kFoldColumns = 4096;

/// Applied to a staged block before folding: from and to are of the two block types; both may be the same memory.
struct BlockMap {
  Dtype from;
  Dtype to;
  void (*run)(char* to, const char* from, std::int64_t n, double param);
};

struct ReduceTable {
  FoldKernel sum_f32, sum_f64, sum_i64;
  FoldKernel mean_f32, mean_f64;
  FoldKernel prod_f32, prod_f64, prod_i64, prod_c128;
  FoldKernel var_f32,
      var_f64;  // param: correction; std takes the root. Planes of doubles: counts, means, squared deviations
  FoldKernel std_f32, std_f64;
  FoldKernel logsumexp_f32, logsumexp_f64;
  FoldKernel root_f64;  // sum, then its square root
  FoldKernel norm_f32, norm_f64;  // of squares: sum, then its square root
  FoldKernel power_f64;  // sum, then its 1/param-th power
  BlockMap power_abs_f64, abs_f64, abs_c128;
  BlockMap nan_to_zero_f32, nan_to_zero_f64;
  BlockMap is_number_f64;  // 1 or 0
};
TP_DECLARE_TABLE(ReduceTable, reduce_table)

struct ExtremeTable {
  FoldKernel max[kNumComputes], min[kNumComputes];  // B8, I32, I64, U64, F32, F64
  FoldKernel argmax[kNumComputes], argmin[kNumComputes];  // the same; the first plane holds the int64 positions
};
TP_DECLARE_TABLE(ExtremeTable, extreme_table)

}  // namespace tp
