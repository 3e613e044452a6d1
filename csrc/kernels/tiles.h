// Walks operands of equal sizes in cache-resident tiles and stages what is not contiguous memory of the loop's type.
// Internal to the kernels room; knows raw memory only.
#pragma once
#include <cstdint>
#include <span>

#include "core/storage.h"
#include "kernels/loops.h"
#include "kernels/staging_table.h"

namespace tp::kernels {

inline constexpr int kMaxOperands = 16;
inline constexpr int kMaxWalkDims = 32;

/// Sizes and strides of several operands after broadcasting, in the order of the walk: dimension 0 is innermost.
/// Dimensions that all operands step through evenly are merged.
struct Walk {
  int num_dims = 0;
  int num_operands = 0;
  std::int64_t sizes[kMaxWalkDims];
  std::int64_t strides[kMaxOperands][kMaxWalkDims];  // in elements; 0 where an operand is broadcast

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int d = 0; d < num_dims; ++d) n *= sizes[d];
    return n;
  }
};

/// Operands broadcast to `sizes` (each must fit). The first operand's strides decide the order of the dimensions.
Walk make_walk(std::string_view op, const Shape& sizes, std::span<const Storage* const> operands);

struct TileOperand {
  char* base;
  int item;           // bytes of an element in memory
  int block_item;     // bytes of an element in the loop's blocks
  ConvertFn convert;  // memory to block for inputs, block to memory for outputs; null when they are the same
};

/// Runs `loop` over all elements. operands: the output, then the inputs, in the order of the walk's strides. Without a
/// loop, copies operand 1 to operand 0 through operand 1's conversion. The walk's dimensions may be put in another order.
void run_tiles(Walk& walk, std::span<const TileOperand> operands, Loop loop, const Scalar* params);

/// First and one-past-last byte a storage can touch.
struct Extent {
  const char *begin, *end;
};
Extent extent(const Storage& s);
inline bool overlaps(const Storage& a, const Storage& b) {
  const Extent x = extent(a), y = extent(b);
  return x.begin < y.end && y.begin < x.end;
}
/// The very same elements at the very same addresses (the blocks may be aliases).
bool same_elements(const Storage& a, const Storage& b);
/// Whether two indices can name the same element (an expanded dimension, or strides that cross).
bool has_internal_overlap(const Storage& s);

/// Whether loops take elements of the dtype as they are.
inline bool is_compute_layout(Dtype d) {
  constexpr std::uint32_t own = [] {
    std::uint32_t bits = 0;
    for (int i = 0; i < kNumDtypes; ++i) bits |= std::uint32_t(dtype_of(compute_type(Dtype(i))) == Dtype(i)) << i;
    return bits;
  }();
  return own >> int(d) & 1;
}

/// From how many elements on work is split over threads, and from how many the host's lock is let go.
inline constexpr std::int64_t kParallelFrom = 32768;
inline constexpr std::int64_t kUnlockFrom = 262144;

}  // namespace tp::kernels
