// Owns the macros of the vector maths and the functions that are exact or one instruction: rounding, selection, sign,
// remainders. Knows no polynomials. See vecmath.h for the rules every file of the group keeps.
#pragma once
#include <math.h>
#include <stdint.h>

#ifndef TP_ISA
#define TP_ISA baseline
#endif

#define TP_MATH static inline __attribute__((always_inline))

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__riscv_flen)
#define TP_HAS_FMA 1
#else
#define TP_HAS_FMA 0
#endif

// a * b + c, fused where that is an instruction. A formula that uses it must be accurate both ways.
#define TP_FMA(a, b, c) ::tp::TP_ISA::m::detail::multiply_add(a, b, c)

// Rounding instructions: SSE4.1 on x86, always there elsewhere.
#if defined(__SSE4_1__) || !(defined(__x86_64__) || defined(__i386__))
#define TP_HAS_ROUND 1
#else
#define TP_HAS_ROUND 0
#endif

// A selection between two long expressions. Vectors compute both; where loops are scalar code, only the one that is taken.
#if defined(TP_SCALAR_LOOPS)
#define TP_EITHER(condition, a, b) ((condition) ? (a) : (b))
#else
#define TP_EITHER(condition, a, b) ::tp::TP_ISA::m::detail::either(condition, a, b)
#endif

namespace tp {
namespace TP_ISA {
namespace m {

template <class T>
concept Real = __is_same(T, float) || __is_same(T, double);

namespace detail {

template <class T>
struct Traits;
template <>
struct Traits<float> {
  using Bits = uint32_t;
  using Signed = int32_t;
  static constexpr int mantissa = 23;
  static constexpr float integral = 0x1p23f;  // from here on every value is an integer
};
template <>
struct Traits<double> {
  using Bits = uint64_t;
  using Signed = int64_t;
  static constexpr int mantissa = 52;
  static constexpr double integral = 0x1p52;
};

TP_MATH uint32_t to_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
TP_MATH uint64_t to_bits(double x) { return __builtin_bit_cast(uint64_t, x); }
TP_MATH float from_bits(uint32_t b) { return __builtin_bit_cast(float, b); }
TP_MATH double from_bits(uint64_t b) { return __builtin_bit_cast(double, b); }

template <class T>
inline constexpr typename Traits<T>::Bits kSignBit = typename Traits<T>::Bits(1) << (sizeof(T) * 8 - 1);
template <class T>
inline constexpr T kNan = T(__builtin_nanf(""));
template <class T>
inline constexpr T kInf = T(__builtin_inff());

#if TP_HAS_FMA
TP_MATH float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TP_MATH double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
TP_MATH float multiply_add(float a, float b, float c) { return a * b + c; }
TP_MATH double multiply_add(double a, double b, double c) { return a * b + c; }
#endif

TP_MATH double either(bool condition, double a, double b) { return condition ? a : b; }

// Horner's rule, highest coefficient first.
template <class T>
TP_MATH T horner(T, T c) {
  return c;
}
template <class T, class... Rest>
TP_MATH T horner(T x, T c0, T c1, Rest... rest) {
  return horner(x, multiply_add(c0, x, c1), rest...);
}

// The same polynomial in half the latency: two interleaved Horner chains in x^2. A long chain fills the scheduler with
// waiting operations before the next iterations can start. The lowest coefficients round twice; where that shows, wrap
// the high ones only: horner(x, horner_pair(x, x * x, ...), c1, c0).
template <class T>
TP_MATH T horner_chains(T x, T, T a, T b) {
  return multiply_add(a, x, b);
}
template <class T, class... Rest>
TP_MATH T horner_chains(T x, T square, T a, T b, T c, Rest... rest) {
  return horner_chains(x, square, b, multiply_add(a, square, c), rest...);
}
template <class T, class... Rest>
TP_MATH T horner_pair(T x, T square, T c0, T c1, Rest... rest) {
  return horner_chains(x, square, c0, c1, rest...);
}

// Four chains in x^4, for the longest.
template <class T>
TP_MATH T horner_chains4(T x, T square, T, T a, T b, T c, T d) {
  return multiply_add(multiply_add(a, x, b), square, multiply_add(c, x, d));
}
template <class T, class... Rest>
TP_MATH T horner_chains4(T x, T square, T fourth, T a, T b, T c, T d, T e, Rest... rest) {
  return horner_chains4(x, square, fourth, b, c, d, multiply_add(a, fourth, e), rest...);
}
template <class T, class... Rest>
TP_MATH T horner_quad(T x, T square, T c0, T c1, T c2, T c3, Rest... rest) {
  return horner_chains4(x, square, square * square, c0, c1, c2, c3, rest...);
}

template <Real T>
TP_MATH T with_sign(T magnitude, T sign) {
  return from_bits((to_bits(magnitude) & ~kSignBit<T>) | (to_bits(sign) & kSignBit<T>));
}
template <Real T>
TP_MATH T magnitude(T x) {
  return from_bits(to_bits(x) & ~kSignBit<T>);
}

}  // namespace detail

// ---- classification and selection
// ------------------------------------------------------------------------------------

template <class T>
TP_MATH T where(bool condition, T a, T b) {
  return condition ? a : b;
}

template <Real T>
TP_MATH bool isnan(T x) {
  return x != x;
}
template <Real T>
TP_MATH bool isinf(T x) {
  return detail::magnitude(x) == detail::kInf<T>;
}
template <Real T>
TP_MATH bool isfinite(T x) {
  return detail::magnitude(x) < detail::kInf<T>;
}
template <Real T>
TP_MATH bool signbit(T x) {
  return (detail::to_bits(x) & detail::kSignBit<T>) != 0;
}

template <Real T>
TP_MATH T abs(T x) {
  return detail::magnitude(x);
}
template <Real T>
TP_MATH T copysign(T x, T y) {
  return detail::with_sign(x, y);
}
template <Real T>
TP_MATH T sign(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
}

// A NaN in either operand is the result; of two zeros the positive one is the larger.
template <Real T>
TP_MATH T maximum(T x, T y) {
  const T zeros = detail::from_bits(detail::to_bits(x) & detail::to_bits(y));
  const T larger = x > y ? x : x == y ? zeros : y;
  return x != x ? x : larger;
}
template <Real T>
TP_MATH T minimum(T x, T y) {
  const T zeros = detail::from_bits(detail::to_bits(x) | detail::to_bits(y));
  const T smaller = x < y ? x : x == y ? zeros : y;
  return x != x ? x : smaller;
}
// A NaN is ignored when the other operand is a number.
template <Real T>
TP_MATH T fmax(T x, T y) {
  const T larger = maximum(x, y), ordered = y != y ? x : larger;
  return x != x ? y : ordered;
}
template <Real T>
TP_MATH T fmin(T x, T y) {
  const T smaller = minimum(x, y), ordered = y != y ? x : smaller;
  return x != x ? y : ordered;
}

template <Real T>
TP_MATH T heaviside(T x, T at_zero) {
  return x > 0 ? T(1) : x < 0 ? T(0) : x == 0 ? at_zero : x;
}

// Steps through the bit patterns, which are ordered like the values on each side of zero.
template <Real T>
TP_MATH T nextafter(T x, T y) {
  using Bits = typename detail::Traits<T>::Bits;
  const Bits bits = detail::to_bits(x);
  const bool away_from_zero = (x > 0) == (y > x);
  const Bits next = away_from_zero ? bits + 1 : bits - 1;
  const Bits from_zero = (detail::to_bits(y) & detail::kSignBit<T>) | 1;
  const T stepped = detail::from_bits(x == 0 ? from_zero : next);
  return x != x || y != y ? x + y : x == y ? y : stepped;
}

// ---- rounding to integers
// --------------------------------------------------------------------------------------------

#if TP_HAS_ROUND
TP_MATH float round(float x) { return __builtin_rintf(x); }
TP_MATH double round(double x) { return __builtin_rint(x); }
TP_MATH float floor(float x) { return __builtin_floorf(x); }
TP_MATH double floor(double x) { return __builtin_floor(x); }
TP_MATH float ceil(float x) { return __builtin_ceilf(x); }
TP_MATH double ceil(double x) { return __builtin_ceil(x); }
TP_MATH float trunc(float x) { return __builtin_truncf(x); }
TP_MATH double trunc(double x) { return __builtin_trunc(x); }
#else
// Half to even: adding 2^mantissa pushes the fraction out of the significand, and the hardware rounds it.
template <Real T>
TP_MATH T round(T x) {
  constexpr T big = detail::Traits<T>::integral;
  const T a = detail::magnitude(x);
  return a < big ? detail::with_sign((a + big) - big, x) : x;
}
template <Real T>
TP_MATH T floor(T x) {
  const T r = round(x);
  return r > x ? r - 1 : r;
}
template <Real T>
TP_MATH T ceil(T x) {
  const T r = round(x);
  return r < x ? detail::with_sign(r + 1, x) : r;
}
template <Real T>
TP_MATH T trunc(T x) {
  return detail::with_sign(floor(detail::magnitude(x)), x);
}
#endif

template <Real T>
TP_MATH T frac(T x) {
  return x - trunc(x);
}

// ---- powers and quotients
// --------------------------------------------------------------------------------------------

TP_MATH float sqrt(float x) { return __builtin_sqrtf(x); }
TP_MATH double sqrt(double x) { return __builtin_sqrt(x); }

template <Real T>
TP_MATH T rsqrt(T x) {
  return T(1) / sqrt(x);
}
template <Real T>
TP_MATH T reciprocal(T x) {
  return T(1) / x;
}
template <Real T>
TP_MATH T square(T x) {
  return x * x;
}

// Integer power by squaring. The exponent is part of the type: a loop over its bits keeps the element loop scalar.
template <int N, Real T>
TP_MATH T powi(T x) {
  if constexpr (N < 0)
    return T(1) / powi<-N>(x);
  else if constexpr (N == 0)
    return T(1);
  else if constexpr (N == 1)
    return x;
  else if constexpr (N % 2 != 0)
    return powi<N / 2>(x * x) * x;
  else
    return powi<N / 2>(x * x);
}

TP_MATH float fmod(float x, float y) { return ::fmodf(x, y); }
TP_MATH double fmod(double x, double y) { return ::fmod(x, y); }

namespace detail {

// |x| = quotient |y| + rest, quotient whole, 0 <= rest < |y|.
template <class T>
struct Division {
  T quotient, rest;
};
// For finite y and |x| up to 2^22 |y| (2^51 in float64): the rounded quotient is off by one at most, and what a fused product
// leaves is exact.
template <class T>
TP_MATH Division<T> divide_fast(T x, T y) {
  const T a = magnitude(x), b = magnitude(y);
  const T q = trunc(a / b), r = TP_FMA(-q, b, a);
  return {r < 0 ? q - 1 : r >= b ? q + 1 : q, r < 0 ? r + b : r >= b ? r - b : r};
}

}  // namespace detail

// The bits of fmod, where detail::divide_fast holds.
template <Real T>
TP_MATH T fmod_fast(T x, T y) {
  return detail::with_sign(detail::divide_fast(x, y).rest, x);
}
// Whether all of a block may take the short form.
template <Real T>
TP_MATH bool fmod_near(int64_t n, const T* x, const T* y) {
  int far = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T a = detail::magnitude(x[i]), b = detail::magnitude(y[i]);
    far |= (a <= b * (detail::Traits<T>::integral / 2)) & (b < detail::kInf<T>) ? 0 : 1;
  }
  return far == 0;
}

namespace detail {

// Python's rule: the result has the sign of the divisor. r: what fmod leaves.
template <class T>
TP_MATH T remainder_of(T r, T y) {
  const T shifted = (r < 0) != (y < 0) ? r + y : r;
  return r == 0 ? with_sign(T(0), y) : shifted;
}

}  // namespace detail

template <Real T>
TP_MATH T remainder(T x, T y) {
  return detail::remainder_of(fmod(x, y), y);
}
template <Real T>
TP_MATH T remainder_fast(T x, T y) {
  return detail::remainder_of(fmod_fast(x, y), y);
}
// floor(x / y) of the exact quotient, consistent with remainder; division by zero as x / y. In float64: in float32 the quotient
// of what is a multiple of y would round to its neighbour from 2^22 on.
template <Real T>
TP_MATH T floor_divide(T x, T y) {
  const T r = fmod(x, y);
  const double whole = round((double(x) - double(r)) / double(y));
  const T lower = T((r != 0) & ((r < 0) != (y < 0)) ? whole - 1 : whole);
  const T result = lower == 0 ? detail::with_sign(T(0), x / y) : lower;
  return y == 0 ? x / y : result;
}
template <Real T>
TP_MATH T floor_divide_fast(T x, T y) {
  const auto [q, r] = detail::divide_fast(x, y);
  return (x < 0) != (y < 0) ? -(r != 0 ? q + 1 : q) : q;
}

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
