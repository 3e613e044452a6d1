// Folds any layout over any dimensions with a folding kernel. Internal to the kernels room; knows no op.
#pragma once
#include "core/storage.h"
#include "kernels/reduce_table.h"

namespace tp::kernels {

extern const ReduceTable* const folds;  // the active tables
extern const ExtremeTable* const extremes;

struct FoldCall {
  const FoldKernel* kernel;
  double param = 0;               // given to the kernel's finish
  const BlockMap* map = nullptr;  // applied to each block before folding
  double map_param = 0;
  const Dtype* via = nullptr;  // elements are cast to this type before they become the block's
  bool ordered = false;        // the order of the elements matters (positions)
};

/// Folds `input` over `dims` (ascending, unique) into `out`, whose sizes are input's without them or with them as 1.
/// index: receives the first, int64, plane of an ordered kernel. Either output may be null.
void run_fold(const FoldCall& call, const Storage& input, const Dims& dims, const Storage* out, const Storage* index);

}  // namespace tp::kernels
