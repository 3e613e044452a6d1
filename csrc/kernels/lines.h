// The lines of a tensor along one dimension, bundled for threads: what running reductions and recurrences walk.
// Internal to the kernels room.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/dims.h"
#include "core/modes.h"
#include "kernels/scratch.h"

namespace tp::kernels {

inline constexpr std::int64_t kLineColumns = 256, kMostColumns = 4096;  // neighbouring columns of one task,
inline constexpr std::int64_t kManyLines = 16, kBundle = 4;  // or lines one behind the other, where there are many

// A contiguous tensor seen as [outer, length, inner].
struct Lines {
  std::int64_t outer = 1, length = 1, inner = 1;
  Lines(const Shape& sizes, int dim) {
    for (int d = 0; d < sizes.size(); ++d) (d < dim ? outer : d == dim ? length : inner) *= sizes[d];
  }
  std::int64_t numel() const { return outer * length * inner; }
  /// From the beginning of a line to that of its neighbour.
  std::int64_t apart() const { return inner == 1 ? length : 1; }
};

/// f(offset, lines): a bundle of neighbouring lines, the first of which begins at `offset`.
template <class F>
void for_each_bundle(const Lines& l, double ns_per_element, const F& f) {
  if (l.numel() == 0) return;
  const bool in_order = l.inner == 1;
  const std::int64_t neighbours = in_order ? l.outer : l.inner, groups = in_order ? 1 : l.outer;
  // Columns in as few parts as there are threads, so that rows are read as they lie.
  const std::int64_t share = (l.outer * l.inner / num_threads() + 63) & -64;
  const std::int64_t width = !in_order ? std::clamp(share, kLineColumns, kMostColumns)
      : l.outer < kManyLines           ? 1
                                       : kBundle;
  const std::int64_t blocks = (neighbours + width - 1) / width;
  modes::Unlocked unlocked(double(l.numel()) * ns_per_element > 50000);
  const double ns = ns_per_element * double(l.length) * double(std::min(width, neighbours));
  parallel_tiles(groups * blocks, grain_for(ns), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) {
      const std::int64_t first = i % blocks * width;
      f(i / blocks * l.length * l.inner + first * l.apart(), std::min(width, neighbours - first));
    }
  });
}

/// f(at, first): every element of the lines of a bundle, all lines abreast; `at` is its offset.
template <class F>
void for_each_element(const Lines& l, std::int64_t offset, std::int64_t lines, const F& f) {
  const std::int64_t apart = l.apart();
  for (std::int64_t r = 0; r < l.length; ++r)
    for (std::int64_t c = 0; c < lines; ++c) f(offset + r * l.inner + c * apart, r);
}

}  // namespace tp::kernels
