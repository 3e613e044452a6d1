// Register tiles of direct convolution, sized by the registers an instruction set has.
#include "kernels/conv_direct_table.h"

#include <stdint.h>

#pragma GCC diagnostic ignored "-Wpsabi"
// Fused multiply-add, as in the library's products.
#pragma GCC optimize("fp-contract=fast")

#ifndef TP_ISA
#define TP_ISA baseline
#endif

namespace tp {
namespace TP_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 8, kVectors = 3, kTapRows = 4, kTapColumns = 6;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRows = 4, kVectors = 3, kTapRows = 3, kTapColumns = 4;
#else
constexpr int kBytes = 16, kRows = 4, kVectors = 2, kTapRows = 3, kTapColumns = 3;
#endif

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T>
inline constexpr int kLanes = kBytes / int(sizeof(T));

template <class T>
static inline __attribute__((always_inline)) typename VecOf<T>::type load(const T* p) {
  typename VecOf<T>::type v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

// A block of R channels; one channel alone (a filter per plane) has a tile of its own.
template <class T, int R>
static inline __attribute__((always_inline)) void block_positions(const ConvPositions<T>& p) {
  using V = typename VecOf<T>::type;
  constexpr int kWidth = kVectors * kLanes<T>;
  const bool whole = p.num_runs == 1 && p.runs[0].count == kWidth;
  const T* filters = p.filters;
  for (int64_t c0 = 0; c0 < p.channels; c0 += kRows) {
    V acc[R][kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) acc[i][v] = V{};
    for (int64_t k = 0; k < p.depth; ++k) {
      const T* row = p.b + p.offsets[k];
      V right[kVectors];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) right[v] = load(row + v * kLanes<T>);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const T left = filters[i];
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) acc[i][v] += left * right[v];
      }
      filters += kRows;
    }
    const int64_t rows = p.channels - c0 < kRows ? p.channels - c0 : kRows;
    T values[R][kWidth];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const T bias = p.bias && i < rows ? p.bias[c0 + i] : T(0);
      // Past the last channel nothing is written.
      T* to = whole && i < rows ? p.out + (c0 + i) * p.out_plane + p.runs[0].at : values[i];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
        const V out = acc[i][v] + bias;
        __builtin_memcpy(to + v * kLanes<T>, &out, sizeof(V));
      }
    }
    if (whole) continue;
    for (int64_t i = 0; i < rows; ++i)
      for (int r = 0; r < p.num_runs; ++r) {
        T* __restrict to = p.out + (c0 + i) * p.out_plane + p.runs[r].at;
        const T* __restrict from = values[i] + p.runs[r].start;
        for (int32_t j = 0; j < p.runs[r].count; ++j) to[j] = from[j];
      }
  }
}

template <class T>
void positions(const ConvPositions<T>& p) {
  if (p.channels == 1)
    block_positions<T, 1>(p);
  else
    block_positions<T, kRows>(p);
}

template <class T>
void taps(const ConvTaps<T>& t) {
  using V = typename VecOf<T>::type;
  for (int64_t m0 = 0; m0 < t.channels; m0 += kTapRows)
    for (int64_t k0 = 0; k0 < t.depth; k0 += kTapColumns) {
      // Rows and columns past the end repeat the last one; their sums are not stored.
      const T *g[kTapRows], *x[kTapColumns];
#pragma GCC unroll 8
      for (int i = 0; i < kTapRows; ++i) g[i] = t.g + (m0 + i < t.channels ? m0 + i : t.channels - 1) * t.g_row;
#pragma GCC unroll 8
      for (int j = 0; j < kTapColumns; ++j) x[j] = t.x + t.offsets[k0 + j < t.depth ? k0 + j : t.depth - 1];
      V acc[kTapRows][kTapColumns];
#pragma GCC unroll 8
      for (int i = 0; i < kTapRows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < kTapColumns; ++j) acc[i][j] = V{};
      for (int64_t n = 0; n < t.images; ++n) {
        const int64_t gn = n * t.g_image, xn = n * t.x_image;
        for (int64_t q = 0; q < t.positions; q += kLanes<T>) {
          V left[kTapRows];
#pragma GCC unroll 8
          for (int i = 0; i < kTapRows; ++i) left[i] = load(g[i] + gn + q);
#pragma GCC unroll 8
          for (int j = 0; j < kTapColumns; ++j) {
            const V right = load(x[j] + xn + q);
#pragma GCC unroll 8
            for (int i = 0; i < kTapRows; ++i) acc[i][j] += left[i] * right;
          }
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < kTapRows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < kTapColumns; ++j) {
          if (m0 + i >= t.channels || k0 + j >= t.depth) continue;
          T lanes[kLanes<T>];
          __builtin_memcpy(lanes, &acc[i][j], sizeof(V));
#pragma GCC unroll 8
          for (int w = kLanes<T> / 2; w > 0; w /= 2)
            for (int l = 0; l < w; ++l) lanes[l] += lanes[l + w];
          T& to = t.filter[(m0 + i) * t.filter_row + k0 + j];
          to = t.add ? to + lanes[0] : lanes[0];
        }
    }
}

template <class T>
constexpr DirectLoops<T> loops() {
  return {kRows, kVectors * kLanes<T>, kLanes<T>, positions<T>, taps<T>};
}

}  // namespace

extern const ConvDirectTable conv_direct_table;
const ConvDirectTable conv_direct_table = {loops<float>(), loops<double>()};

}  // namespace TP_ISA
}  // namespace tp
