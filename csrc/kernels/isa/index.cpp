// Index checks and element picks of one instruction set.
#include "kernels/index_table.h"

#include "kernels/isa/vectors.h"

namespace tp {
namespace TP_ISA {
namespace {

bool within(const int64_t* index, int64_t n, int64_t low, int64_t high) {
  const uint64_t room = uint64_t(high - low);
  // Blocks, so that a bad index early in a long list ends the search.
  for (int64_t b = 0; b < n; b += 4096) {
    const int64_t end = n - b < 4096 ? n : b + 4096;
    uint64_t bad = 0;
    for (int64_t i = b; i < end; ++i) bad |= uint64_t(uint64_t(index[i] - low) >= room);
    if (bad) return false;
  }
  return true;
}

struct raw16 {
  uint64_t a, b;
};

template <class T>
void pick(char* to_, const char* from_, const int64_t* index, int64_t n, int64_t step, int64_t along) {
  T* __restrict to = reinterpret_cast<T*>(to_);
  const T* from = reinterpret_cast<const T*>(from_);
  // Plain loads: gather instructions are microcode on some processors and slowed down by fixes on others.
  if (along == 0 && step == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[index[i]];
  } else if (along == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[index[i] * step + i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[index[i] * step + i * along];
  }
}

template <class T>
void add(T* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

}  // namespace

extern const IndexTable index_table = {
    within, {pick<uint8_t>, pick<uint16_t>, pick<uint32_t>, pick<uint64_t>, pick<raw16>}, add<float>, add<double>};

}  // namespace TP_ISA
}  // namespace tp
