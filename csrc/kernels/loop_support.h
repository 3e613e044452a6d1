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
    return whole - whole == 0 ? whole : h * x;  // what is lost may leave the range the other way
  }
#endif
  return h * x;
}

/// x^(kTwice / 2) for the exponents that have a short form, which are those of with_power.
template <int kTwice, class T>
TP_MATH T half_power(T x) {
  if constexpr (kTwice == 2) {
    return x;
  } else if constexpr (kTwice == 4) {
    return square(x);
  } else if constexpr (kTwice == 6) {
    return cube(x);
  } else if constexpr (kTwice == 8) {
    return square(square(x));
  } else if constexpr (kTwice == -2) {
    return T(1) / x;
  } else if constexpr (kTwice == -4) {
    return square(T(1) / x);  // not 1 / square(x), which is inf where the square is too small for a number
  } else {
    // pow has +0 and inf for -0 and -inf, where a root has -0 and nan.
    const T size = abs(x), y = (x < 0) & (size < detail::kInf<T>) ? detail::kNan<T> : size, root = sqrt(y);
    if constexpr (kTwice == 1)
      return root;
    else if constexpr (kTwice == 3)
      return y * root;
    else if constexpr (kTwice == 5)
      return square(y) * root;
    else if constexpr (kTwice == -1)
      return T(1) / root;
    else
      return T(1) / y / root;
  }
}

template <int kTwice>
struct Twice {};
inline constexpr int kMixedPowers = 100;

/// f(Twice<k>) for the k that `twice` is.
template <class T, class F>
TP_MATH void with_power(int twice, F f) {
  if constexpr (Real<T>) switch (twice) {
      case -4: return f(Twice<-4>());
      case -3: return f(Twice<-3>());
      case -2: return f(Twice<-2>());
      case -1: return f(Twice<-1>());
      case 1: return f(Twice<1>());
      case 3: return f(Twice<3>());
      case 5: return f(Twice<5>());
      case 8: return f(Twice<8>());
      default: break;
    }
  switch (twice) {
    case 2: return f(Twice<2>());
    case 4: return f(Twice<4>());
    default: return f(Twice<6>());
  }
}

/// Whether y has a short form, as 0 or 1.
template <class T>
TP_MATH int has_short_power(T y) {
  int has = int(y == T(1)) | int(y == T(2)) | int(y == T(3));
  if constexpr (Real<T>)
    has |= int(y == T(-2)) | int(y == T(-1.5)) | int(y == T(-1)) | int(y == T(-0.5)) | int(y == T(0.5)) |
        int(y == T(1.5)) | int(y == T(2.5)) | int(y == T(4));
  return has;
}

template <class T>
TP_MATH int twice_of(T y) {
  if constexpr (Real<T>)
    return int(y + y);
  else
    return y == T(1) ? 2 : y == T(2) ? 4 : 6;
}

/// Twice the exponent y + shift where all of a block have one and the same with a short form, 0 where none has a short form.
template <class T>
TP_MATH int shared_power(int64_t n, const T* y, T shift) {
  if (n == 0) return 0;
  const T first = y[0] + shift;
  int others = 0;
  if (!has_short_power(first)) {
    for (int64_t i = 0; i < n; ++i) others |= has_short_power(T(y[i] + shift));
    return others ? kMixedPowers : 0;
  }
  for (int64_t i = 0; i < n; ++i) others |= y[i] + shift == first ? 0 : 1;
  if (others) return kMixedPowers;
  return twice_of(first);
}

/// x^y where elements have exponents of their own: a power with a short form takes it, whether the block around it has others
/// or not. One for all loops, and none of them vector code: such blocks are rare.
template <class T>
static __attribute__((noinline)) T power(T x, T y) {
  if (!has_short_power(y)) return pow(x, y);
  T result;
  with_power<T>(twice_of(y), [&]<int kTwice>(Twice<kTwice>) { result = half_power<kTwice>(x); });
  return result;
}

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
