// What the folding kernels of one instruction set share: sums and extrema of a block. Included by files of this folder only.
#pragma once
#include "kernels/isa/vectors.h"
#include "kernels/reduce_table.h"

namespace tp {
namespace TP_ISA {

constexpr int64_t kBlock = 2048;  // elements summed in the block's own type before the wide accumulator takes them
constexpr int64_t kGroup = 64;  // rows folded the same way
constexpr int64_t kMaxCols = 1024;  // of one call to a cols kernel

TP_FORCE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- sums --------------------------------------------------------------------------------------------------------

template <class Acc, class T>
TP_FORCE Acc sum_of(const T* x, int64_t n) {
  constexpr int L = Vector<T>::lanes;
  Acc total = 0;
  int64_t i = 0;
  if (n >= 4 * L) {
    Vec<T> a[8] = {};
    for (; i + 8 * L <= n; i += 8 * L)
      for (int k = 0; k < 8; ++k) a[k] += load(x + i + k * L);
    for (; i + L <= n; i += L) a[0] += load(x + i);
    a[0] = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
    T lanes[L];
    store(lanes, a[0]);
    // As a tree: a chain of dependent additions would cost more than a short row itself.
    Acc wide[L];
    for (int k = 0; k < L; ++k) wide[k] = Acc(lanes[k]);
    for (int half = L / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) wide[k] += wide[k + half];
    total = wide[0];
  }
  for (; i < n; ++i) total += Acc(x[i]);
  return total;
}

// tmp[c] = sum over rows of x[r][c], rows <= kGroup; eight rows are added as a tree before the running sum.
template <class T>
TP_FORCE void sum_rows(T* __restrict tmp, const T* x, int64_t stride, int64_t rows, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) tmp[c] = 0;
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) {
    const T* p = x + r * stride;
    for (int64_t c = 0; c < cols; ++c)
      tmp[c] += ((p[c] + p[c + stride]) + (p[c + 2 * stride] + p[c + 3 * stride])) +
          ((p[c + 4 * stride] + p[c + 5 * stride]) + (p[c + 6 * stride] + p[c + 7 * stride]));
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) tmp[c] += x[r * stride + c];
}

// ---- extrema -----------------------------------------------------------------------------------------------------

template <class T>
TP_FORCE T lowest() {
  if constexpr (__is_same(T, float) || __is_same(T, double))
    return -T(__builtin_inf());
  else
    return T(-1) < T(0) ? T(T(1) << (sizeof(T) * 8 - 1)) : T(0);
}
template <class T>
TP_FORCE T highest() {
  if constexpr (__is_same(T, float) || __is_same(T, double))
    return T(__builtin_inf());
  else
    return T(-1) < T(0) ? T(~lowest<T>()) : T(-1);
}

// The more extreme of two; a nan, once taken, stays.
template <class T, bool kMax>
TP_FORCE T extreme(T x, T best) {
  if constexpr (__is_same(T, float) || __is_same(T, double))
    return ((kMax ? x > best : x < best) | (x != x)) ? x : best;
  else
    return (kMax ? x > best : x < best) ? x : best;
}
template <class T, bool kMax>
TP_FORCE Vec<T> extreme_vec(Vec<T> x, Vec<T> best) {
  if constexpr (__is_same(T, float) || __is_same(T, double))
    return ((kMax ? x > best : x < best) | (x != x)) ? x : best;
  else
    return (kMax ? x > best : x < best) ? x : best;
}

template <class T, bool kMax>
TP_FORCE T extreme_of(const T* x, int64_t n, T best) {
  constexpr int L = Vector<T>::lanes;
  int64_t i = 0;
  if (n >= 2 * L) {
    Vec<T> a[4];
    for (int k = 0; k < 4; ++k) a[k] = load(x);
    for (; i + 4 * L <= n; i += 4 * L)
      for (int k = 0; k < 4; ++k) a[k] = extreme_vec<T, kMax>(load(x + i + k * L), a[k]);
    for (; i + L <= n; i += L) a[0] = extreme_vec<T, kMax>(load(x + i), a[0]);
    a[0] = extreme_vec<T, kMax>(extreme_vec<T, kMax>(a[0], a[1]), extreme_vec<T, kMax>(a[2], a[3]));
    T lanes[L];
    store(lanes, a[0]);
    for (int k = 0; k < L; ++k) best = extreme<T, kMax>(lanes[k], best);
  }
  for (; i < n; ++i) best = extreme<T, kMax>(x[i], best);
  return best;
}

template <class T, bool kMax>
TP_FORCE void extreme_rows(T* __restrict best, const T* x, int64_t stride, int64_t rows, int64_t cols) {
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) {
    const T* p = x + r * stride;
    for (int64_t c = 0; c < cols; ++c) {
      T b = extreme<T, kMax>(p[c], best[c]);
      for (int k = 1; k < 8; ++k) b = extreme<T, kMax>(p[c + k * stride], b);
      best[c] = b;
    }
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) best[c] = extreme<T, kMax>(x[r * stride + c], best[c]);
}

}  // namespace TP_ISA
}  // namespace tp
