// The table of what sorting does to whole blocks: keys in the order of values, networks over neighbouring rows. Compiled per
// instruction set. Raw memory only.
#pragma once
#include <cstdint>

#include "kernels/isa_table.h"

namespace tp {

/// Rows that a network sorts side by side, and elements that share one least key.
inline constexpr std::int64_t kSortRows = 8, kKeyBlock = 64;

struct SortTable {
  /// Keys whose order is that of the values (float: -0 as 0, nan last), all bits turned by `flip`; and the least of every
  /// kKeyBlock of them.
  void (*keys_f32)(const float* x, std::int64_t n, std::uint32_t flip, std::uint32_t* keys, std::uint32_t* least);
  /// Sorts columns of items[n][kSortRows].
  void (*columns)(std::int64_t* items, std::int64_t n);
};
TP_DECLARE_TABLE(SortTable, sort_table)

}  // namespace tp
