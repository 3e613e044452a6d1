// Rows so short that each would be little more than the ends of loops: they are turned, a block of them at a time, into
// columns. Internal to the kernels room; knows no op.
#pragma once
#include <cstdint>

#include "kernels/axis.h"
#include "kernels/staging_table.h"

namespace tp::kernels {

inline constexpr std::int64_t kShortRow = 128;

/// Whether turning is the faster way: asked of all rows, not of a thread's.
inline bool are_short(const Axis& a) { return a.n <= kShortRow && a.outer >= 8; }

/// to[r * to_row + c * to_col] = from[r * from_row + c * from_col]
template <class T>
void turn(std::int64_t rows, std::int64_t cols, const T* from, std::int64_t from_row, std::int64_t from_col, T* to,
          std::int64_t to_row, std::int64_t to_col) {
  staging->copy2d[copy2d_index(sizeof(T))](reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from),
                                           {to_row, to_col, from_row, from_col}, rows, cols);
}

}  // namespace tp::kernels
