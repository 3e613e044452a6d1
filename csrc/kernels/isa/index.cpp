// Index checks and element picks of one instruction set.
#include "kernels/index_table.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

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
#if defined(__AVX512F__)
  // The compiler makes no gathers by itself here; eight at a time hide the latency of the loads.
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    const __m512i by = _mm512_set1_epi64(step);
    __m512i shift = _mm512_setr_epi64(0, along, 2 * along, 3 * along, 4 * along, 5 * along, 6 * along, 7 * along);
    const __m512i next = _mm512_set1_epi64(8 * along);
    int64_t done = 0;
    for (; done + 8 <= n; done += 8) {
      const __m512i at = _mm512_add_epi64(_mm512_mullo_epi64(_mm512_loadu_si512(index + done), by), shift);
      if constexpr (sizeof(T) == 4)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + done), _mm512_i64gather_epi32(at, from, 4));
      else
        _mm512_storeu_si512(to + done, _mm512_i64gather_epi64(at, from, 8));
      shift = _mm512_add_epi64(shift, next);
    }
    for (; done < n; ++done) to[done] = from[index[done] * step + done * along];
    return;
  }
#endif
  if (along == 0 && step == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[index[i]];
  } else if (along == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[index[i] * step + i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[index[i] * step + i * along];
  }
}

}  // namespace

extern const IndexTable index_table = {within,
                                       {pick<uint8_t>, pick<uint16_t>, pick<uint32_t>, pick<uint64_t>, pick<raw16>}};

}  // namespace TP_ISA
}  // namespace tp
