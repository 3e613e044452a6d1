// What the normalisation kernels share: the active loops, staging of optional parameters, sums over rows in blocks that
// do not depend on the number of threads. Internal to norm.cpp and batch_norm.cpp.
#pragma once
#include <algorithm>

#include "core/modes.h"
#include "kernels/axis.h"
#include "kernels/norm_table.h"
#include "kernels/scratch.h"
#include "kernels/streaming.h"

namespace tp::kernels {

template <class T>
const NormLoops<T>& norm_loops() {
  static const NormTable& table = TP_PICK_TABLE(norm_table);
  if constexpr (std::is_same_v<T, float>)
    return table.f32;
  else
    return table.f64;
}

inline Storage staged_param(const OpSchema& op, const char* name, const Storage& s, const Shape& sizes, Dtype work) {
  if (!s.defined()) return s;
  if (TP_UNLIKELY(!(s.sizes() == sizes)))
    value_error(op.name, ": ", name, " must have sizes ", sizes, "; it is ", s.sizes());
  return contiguous(cast(s, work));
}
template <class T>
const T* data_or_null(const Storage& s) {
  return s.defined() ? s.data<T>() : nullptr;
}
template <class T>
T* mutable_or_null(const Storage& s) {
  return s.defined() ? s.data<T>() : nullptr;
}

/// Runs body(first_row, end_row, gw, gb) over blocks of rows, each with zeroed sums of n values, and adds the blocks' sums
/// pairwise into gw and gb (which may be null).
template <class T, class Body>
void sum_over_rows(std::int64_t rows, std::int64_t n, double ns_per_row, T* gw, T* gb, const Body& body) {
  const std::int64_t blocks = std::clamp<std::int64_t>(rows / 16, 1, 64);
  Scratch<T> partial(2 * blocks * n);
  T* sums = partial.get();
  std::fill_n(sums, 2 * blocks * n, T(0));
  parallel_tiles(blocks, grain_for(ns_per_row * double(rows) / double(blocks)), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i)
      body(rows * i / blocks, rows * (i + 1) / blocks, gw ? sums + 2 * i * n : nullptr,
           gb ? sums + (2 * i + 1) * n : nullptr);
  });
  for (std::int64_t step = 1; step < blocks; step *= 2)
    for (std::int64_t i = 0; i + step < blocks; i += 2 * step)
      for (std::int64_t j = 0; j < 2 * n; ++j) sums[2 * i * n + j] += sums[2 * (i + step) * n + j];
  if (gw) std::copy_n(sums, n, gw);
  if (gb) std::copy_n(sums + n, n, gb);
}

}  // namespace tp::kernels
