// Sums and maxima of rows in fixed lanes, so that the compiler vectorises them without reordering licences and every
// instruction set adds in the same order. Included by files of this folder only.
#pragma once
#include "kernels/isa/vectors.h"
#include "kernels/vecmath.h"

namespace tp {
namespace TP_ISA {
namespace rows {

inline constexpr int kLanes = 64;  // of the main loop
inline constexpr int kTail = 16;   // of the padded tail

template <class T>
TP_MATH T fold_sum(const T* acc) {
  constexpr int L = Vector<T>::lanes;
  Vec<T> v[kLanes / L];
  for (int k = 0; k < kLanes / L; ++k) v[k] = load(acc + k * L);
  for (int w = kLanes / L / 2; w > 0; w /= 2)
    for (int k = 0; k < w; ++k) v[k] += v[k + w];
  return fold_lanes<T>(v[0], [](auto a, auto b) { return a + b; });
}
template <class T>
struct Range {
  T low, top;
};
/// The least and the greatest of a row. NaNs are passed over: what follows meets them again.
template <class T>
TP_MATH Range<T> range(const T* x, int64_t n) {
  T low[kLanes], top[kLanes];
  for (int j = 0; j < kLanes; ++j) low[j] = m::detail::kInf<T>, top[j] = -m::detail::kInf<T>;
  const auto add = [&](T v, int j) {
    low[j] = v < low[j] ? v : low[j];
    top[j] = v > top[j] ? v : top[j];
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) add(x[i + j], j);
  for (; i + kTail <= n; i += kTail)
    for (int j = 0; j < kTail; ++j) add(x[i + j], j);
  for (; i < n; ++i) add(x[i], 0);
  for (int w = kLanes / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) {
      low[j] = low[j + w] < low[j] ? low[j + w] : low[j];
      top[j] = top[j + w] > top[j] ? top[j + w] : top[j];
    }
  return {low[0], top[0]};
}

/// Whether exp(x - top) is a normal number for all x from `low` to `top`, and there is a short form for that.
template <class T>
TP_MATH bool is_near(T top, T low) {
  return __is_same(T, float) && top - low <= T(m::kExpNearF);
}
/// exp(x) for x <= 0. Near: is_near said so.
template <bool Near, class T>
TP_MATH T exp_below(T x) {
  if constexpr (Near)
    return m::exp_fast(x);
  else
    return m::exp(x);
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
