// What the folding kernels of one instruction set share: sums and extrema of a block. Included by files of this folder only.
#pragma once
#include "kernels/isa/vectors.h"
#include "kernels/reduce_table.h"

namespace tp {
namespace TP_ISA {

constexpr int64_t kBlock = 2048;  // elements summed in the block's own type before the wide accumulator takes them
constexpr int64_t kGroup = kFewRows;  // rows folded the same way
constexpr int64_t kMaxCols = kFoldColumns;

TP_FORCE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- sums --------------------------------------------------------------------------------------------------------

// What is summed of each element: other than itself, in double, as the squares of floats may leave their range.
enum class Term { Itself, Square };

template <bool same, class T>
struct WideOf {
  using A = double;
};
template <class T>
struct WideOf<true, T> {
  using A = T;
};
template <Term term, class T>
using Wide = typename WideOf<term == Term::Itself, T>::A;

// Of a value or a vector of them.
template <Term term, class V>
TP_FORCE V term_of(V v) {
  if constexpr (term == Term::Square)
    return v * v;
  else
    return v;
}

template <class Acc, Term term = Term::Itself, class T>
TP_FORCE Acc sum_of(const T* x, int64_t n) {
  using A = Wide<term, T>;
  constexpr int L = Vector<A>::lanes;
  Acc total = 0;
  int64_t i = 0;
  if (n >= 4 * L) {
    const auto at = [x](int64_t k) { return term_of<term>(load_as<A>(x + k)); };
    Vec<A> a[8] = {};
    for (; i + 8 * L <= n; i += 8 * L)
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) a[k] += at(i + k * L);
    for (; i + L <= n; i += L) a[0] += at(i);
    a[0] = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
    const auto add = [](auto v, auto w) { return v + w; };
    if constexpr (__is_same(A, Acc)) {
      total = fold_lanes<A>(a[0], add);
    } else {
      A lanes[L];
      store(lanes, a[0]);
      total = fold_lanes<Acc>(load_as<Acc>(lanes) + load_as<Acc>(lanes + L / 2), add);
    }
  }
  for (; i < n; ++i) total += Acc(term_of<term>(A(x[i])));
  return total;
}

// tmp[c] = sum over rows of x[r][c], rows <= kGroup; eight rows are added as a tree before the running sum.
template <Term term = Term::Itself, class A, class T>
TP_FORCE void sum_rows(A* __restrict tmp, const T* x, int64_t stride, int64_t rows, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) tmp[c] = 0;
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) {
    const T* p = x + r * stride;
    const auto at = [p](int64_t k) { return term_of<term>(A(p[k])); };
    for (int64_t c = 0; c < cols; ++c)
      tmp[c] += ((at(c) + at(c + stride)) + (at(c + 2 * stride) + at(c + 3 * stride))) +
          ((at(c + 4 * stride) + at(c + 5 * stride)) + (at(c + 6 * stride) + at(c + 7 * stride)));
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) tmp[c] += term_of<term>(A(x[r * stride + c]));
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

template <class T>
constexpr bool kHasNan = __is_same(T, float) || __is_same(T, double);

// The more extreme of two, values or vectors of them; a nan, once taken, stays.
template <class T, bool kMax, class V>
TP_FORCE V extreme(V x, V best) {
  if constexpr (__is_same(T, float) || __is_same(T, double))
    return ((kMax ? x > best : x < best) | (x != x)) ? x : best;
  else
    return (kMax ? x > best : x < best) ? x : best;
}
// The same of numbers, which is one instruction.
template <bool kMax, class V>
TP_FORCE V extreme_number(V x, V best) {
  return (kMax ? x > best : x < best) ? x : best;
}

// Where neither is a nan: one instruction.
template <class V>
TP_FORCE auto ordered(V v, V w) {
  return (v <= w) | (v >= w);
}

template <class T, bool kMax>
TP_FORCE T extreme_of(const T* x, int64_t n, T best) {
  constexpr int L = Vector<T>::lanes;
  int64_t i = 0;
  if (n >= 2 * L) {
    Vec<T> a[4];
    for (int k = 0; k < 4; ++k) a[k] = load(x);
    // Among numbers; nans are counted beside, two vectors by one comparison.
    auto numbers = a[0] == a[0];
    for (; i + 4 * L <= n; i += 4 * L) {
      const Vec<T> v[4] = {load(x + i), load(x + i + L), load(x + i + 2 * L), load(x + i + 3 * L)};
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) a[k] = extreme_number<kMax>(v[k], a[k]);
      if constexpr (kHasNan<T>) numbers &= ordered(v[0], v[1]) & ordered(v[2], v[3]);
    }
    for (; i + L <= n; i += L) {
      const Vec<T> v = load(x + i);
      a[0] = extreme_number<kMax>(v, a[0]);
      if constexpr (kHasNan<T>) numbers &= v == v;
    }
    const auto more = [](auto v, auto w) { return extreme_number<kMax>(w, v); };
    a[0] = more(more(a[0], a[1]), more(a[2], a[3]));
    if constexpr (kHasNan<T>) {
      using I = __typeof__(numbers[0] + 0);
      if (!fold_lanes<I>(numbers, [](auto v, auto w) { return v & w; })) i = 0;
    }
    if (i) best = extreme<T, kMax>(fold_lanes<T>(a[0], more), best);
  }
  for (; i < n; ++i) best = extreme<T, kMax>(x[i], best);
  return best;
}

template <class T, bool kMax>
TP_FORCE void extreme_rows(T* __restrict best, const T* x, int64_t stride, int64_t rows, int64_t cols) {
  constexpr int L = Vector<T>::lanes;
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) {
    const T* p = x + r * stride;
    int64_t c = 0;
    for (; c + L <= cols; c += L) {
      Vec<T> b = load(best + c);
      auto numbers = b == b;
#pragma GCC unroll 4
      for (int k = 0; k < 8; k += 2) {
        const Vec<T> v = load(p + c + k * stride), w = load(p + c + (k + 1) * stride);
        b = extreme_number<kMax>(w, extreme_number<kMax>(v, b));
        if constexpr (kHasNan<T>) numbers &= ordered(v, w);
      }
      if constexpr (kHasNan<T>) b = numbers ? b : Vec<T>{} + T(__builtin_nan(""));
      store(best + c, b);
    }
    for (; c < cols; ++c)
      for (int k = 0; k < 8; ++k) best[c] = extreme<T, kMax>(p[c + k * stride], best[c]);
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) best[c] = extreme<T, kMax>(x[r * stride + c], best[c]);
}

}  // namespace TP_ISA
}  // namespace tp
