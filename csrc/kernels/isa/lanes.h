// Sums and maxima of rows in fixed lanes, so that the compiler vectorises them without reordering licences and every
// instruction set adds in the same order. Included by files of this folder only.
#pragma once
#include "kernels/vecmath.h"

namespace tp {
namespace TP_ISA {
namespace rows {

inline constexpr int kLanes = 64;  // of the main loop
inline constexpr int kTail = 16;   // of the padded tail

template <class T>
TP_MATH T fold_sum(T* acc) {
  for (int w = kLanes / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) acc[j] += acc[j + w];
  return acc[0];
}
template <class T>
TP_MATH T fold_max(T* acc) {
  for (int w = kLanes / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) acc[j] = acc[j + w] > acc[j] ? acc[j + w] : acc[j];
  return acc[0];
}

/// NaNs are passed over: what follows a row maximum meets them again.
template <class T>
TP_MATH T max(const T* x, int64_t n) {
  const T low = -m::detail::kInf<T>;
  T acc[kLanes];
  for (int j = 0; j < kLanes; ++j) acc[j] = low;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) acc[j] = x[i + j] > acc[j] ? x[i + j] : acc[j];
  for (; i + kTail <= n; i += kTail)
    for (int j = 0; j < kTail; ++j) acc[j] = x[i + j] > acc[j] ? x[i + j] : acc[j];
  T top = fold_max(acc);
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

/// sum of f(i) for i < n; f must be plain arithmetic on index i.
template <class T, class F>
TP_MATH T sum(int64_t n, F f) {
  T acc[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) acc[j] += f(i + j);
  for (; i + kTail <= n; i += kTail)
    for (int j = 0; j < kTail; ++j) acc[j] += f(i + j);
  for (int j = 0; i + j < n; ++j) acc[j] += f(i + j);
  return fold_sum(acc);
}

}  // namespace rows
}  // namespace TP_ISA
}  // namespace tp
