// What generated element loops use beyond the vector maths: conversions, bounds, the strong-zero product.
// Compiled once per instruction set, in its namespace. Knows no op.
#pragma once
#include <limits>

#include "kernels/loop_tail.h"
#include "kernels/vecmath.h"

// For the loops that follow: T(1) of a complex type leaves the imaginary part zero; a product of bools is a conjunction.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"

namespace tp {
namespace TP_ISA {

template <class T>
struct RealOf {
  using type = T;
};
template <>
struct RealOf<c64> {
  using type = float;
};
template <>
struct RealOf<c128> {
  using type = double;
};
/// The real type of T: T itself unless it is complex.
template <class T>
using real_t = typename RealOf<T>::type;

namespace m {

/// d * g, and 0 where g is 0 whatever d is: a masked branch makes no NaN.
template <class T>
TP_MATH T strong_mul(T d, T g) {
  return g == T(0) ? T(0) : d * g;
}

/// x^3 rounded once where a multiply-add is fused: as good as pow, for which it stands.
template <class T>
TP_MATH T cube(T x) {
  const T h = square(x);
#if TP_HAS_FMA
  if constexpr (Real<T>) {
    const T lost = TP_FMA(x, x, -h), whole = TP_FMA(h, x, lost * x);
    return h - h == 0 ? whole : h * x;
  }
#endif
  return h * x;
}

/// x^y where every element has an exponent of its own: the powers that have products are those products, whether the block
/// around them has others or not.
template <class T>
TP_MATH T product_or(T x, T y, T otherwise) {
  // One selection after another, each of what is there: nested ones become branches, and the loop no vector code.
  T r = y == T(3) ? cube(x) : otherwise;
  r = y == T(2) ? square(x) : r;
  return y == T(1) ? x : r;
}
template <class T>
TP_MATH T power(T x, T y) {
  if constexpr (__is_same(T, int32_t) || __is_same(T, int64_t) || __is_same(T, uint64_t))
    return pow(x, y);
  else
    return product_or(x, y, pow(x, y));
}
TP_MATH float power_fast(float x, float y) { return product_or(x, y, pow_fast(x, y)); }

/// clamp in two halves; an absent bound does not bind, and NaN passes, from a bound too. Selection after selection: conditions
/// joined by `or` in both halves become branches, and the loop no vector code. The first is a maximum in one instruction,
/// which gives x where either is NaN.
template <class T>
TP_MATH T at_least(T x, T low, bool given) {
  const T bound = low > x ? low : x;
  return given & (low != low) ? low : given ? bound : x;
}
template <class T>
TP_MATH T at_most(T x, T high, bool given) {
  const T bound = high < x ? high : x;
  return given & (high != high) ? high : given ? bound : x;
}

/// An imaginary constant: 0 for a real type, whose derivatives have no imaginary part.
template <class T>
TP_MATH T imaginary(double v) {
  if constexpr (__is_same(T, real_t<T>))
    return T(0);
  else
    return T{0, real_t<T>(v)};
}

template <class T>
TP_MATH bool isposinf(T x) {
  if constexpr (Real<T>)
    return x == std::numeric_limits<T>::infinity();
  else
    return false;
}
template <class T>
TP_MATH bool isneginf(T x) {
  if constexpr (Real<T>)
    return x == -std::numeric_limits<T>::infinity();
  else
    return false;
}

// The sign of an integer: sgn and sign are one function on real types.
template <class T>
  requires(__is_same(T, bool) || __is_same(T, int32_t) || __is_same(T, int64_t) || __is_same(T, uint64_t))
TP_MATH T sgn(T x) {
  return sign(x);
}

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
