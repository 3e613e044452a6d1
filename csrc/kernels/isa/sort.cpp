// Keys of a block and sorting networks over rows side by side, compiled per instruction set.
#include "kernels/sort_table.h"

#include "kernels/isa/vectors.h"

namespace tp {
namespace TP_ISA {
namespace {

void keys_f32(const float* x, int64_t n, uint32_t flip, uint32_t* __restrict keys, uint32_t* __restrict least) {
  for (int64_t b = 0; b < n; b += kKeyBlock) {
    const int64_t count = n - b < kKeyBlock ? n - b : kKeyBlock;
    const float* from = x + b;
    uint32_t* to = keys + b;
    uint32_t low = ~0u;
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t bits = __builtin_bit_cast(uint32_t, from[i] + 0.0f);
      const uint32_t ordered = bits ^ (uint32_t(int32_t(bits) >> 31) | 0x80000000u);
      const uint32_t key = (from[i] != from[i] ? ~0u : ordered) ^ flip;
      to[i] = key;
      low = key < low ? key : low;
    }
    least[b / kKeyBlock] = low;
  }
}

// The smaller of each pair of items to `low`.
TP_FORCE void exchange(int64_t* low, int64_t* high) {
  constexpr int L = Vector<int64_t>::lanes;
  for (int k = 0; k < kSortRows; k += L) {
    const Vec<int64_t> a = load(low + k), b = load(high + k);
    store(low + k, a < b ? a : b);
    store(high + k, a < b ? b : a);
  }
}

// Batcher's odd-even merge sort. Places past the end would hold items larger than all, which no comparison moves.
void columns(int64_t* items, int64_t n) {
  for (int64_t run = 1; run < n; run *= 2)
    for (int64_t far = run; far >= 1; far /= 2)
      for (int64_t j = far % run; j + far < n; j += 2 * far) {
        const int64_t end = j + far < n - far ? j + far : n - far;
        for (int64_t i = j; i < end; ++i)
          if (((i ^ (i + far)) & -2 * run) == 0)  // within one pair of runs
            exchange(items + i * kSortRows, items + (i + far) * kSortRows);
      }
}

}  // namespace

extern const SortTable sort_table = {keys_f32, columns};

}  // namespace TP_ISA
}  // namespace tp
