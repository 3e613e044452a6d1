// Owns the integer and bool forms of the vector maths: wraparound arithmetic, division that never traps, bit
// operations.
#pragma once
#include "kernels/vecmath_base.h"

namespace tp {
namespace TP_ISA {
namespace m {

// T: the type, U: the unsigned type its arithmetic wraps in. Divisors that would trap (0, and -1 under the most
// negative value) are replaced before dividing; a zero divisor gives 0, and the op layer reports it.
#define TP_MATH_INTEGER_COMMON(T, U)                    \
  TP_MATH T maximum(T x, T y) { return x > y ? x : y; } \
  TP_MATH T minimum(T x, T y) { return x < y ? x : y; } \
  TP_MATH T fmax(T x, T y) { return x > y ? x : y; }    \
  TP_MATH T fmin(T x, T y) { return x < y ? x : y; }    \
  TP_MATH T square(T x) { return T(U(x) * U(x)); }      \
  TP_MATH T bit_and(T x, T y) { return T(x & y); }      \
  TP_MATH T bit_or(T x, T y) { return T(x | y); }       \
  TP_MATH T bit_xor(T x, T y) { return T(x ^ y); }      \
  TP_MATH T bit_not(T x) { return T(~x); }              \
  TP_MATH T floor(T x) { return x; }                    \
  TP_MATH T ceil(T x) { return x; }                     \
  TP_MATH T round(T x) { return x; }                    \
  TP_MATH T trunc(T x) { return x; }                    \
  TP_MATH T conj(T x) { return x; }                     \
  TP_MATH T real(T x) { return x; }                     \
  TP_MATH bool isnan(T) { return false; }               \
  TP_MATH bool isinf(T) { return false; }               \
  TP_MATH bool isfinite(T) { return true; }             \
  TP_MATH T heaviside(T x, T h) { return x > 0 ? T(1) : x == 0 ? h : T(0); }

#define TP_MATH_SIGNED(T, U)                                                       \
  TP_MATH_INTEGER_COMMON(T, U)                                                     \
  TP_MATH T abs(T x) { return x < 0 ? T(U(0) - U(x)) : x; }                        \
  TP_MATH T sign(T x) { return T((x > 0) - (x < 0)); }                             \
  TP_MATH bool signbit(T x) { return x < 0; }                                      \
  TP_MATH T copysign(T x, T y) { return (x < 0) != (y < 0) ? T(U(0) - U(x)) : x; } \
  TP_MATH T trunc_divide(T x, T y) {                                               \
    const bool trivial = y == 0 || y == -1;                                        \
    const T q = x / (trivial ? T(1) : y);                                          \
    return y == 0 ? T(0) : y == -1 ? T(U(0) - U(x)) : q;                           \
  }                                                                                \
  TP_MATH T shl(T x, T s) {                                                        \
    const bool in_range = s >= 0 && s < T(sizeof(T) * 8);                          \
    return in_range ? T(U(x) << (in_range ? s : 0)) : T(0);                        \
  }                                                                                \
  TP_MATH T shr(T x, T s) {                                                        \
    const bool in_range = s >= 0 && s < T(sizeof(T) * 8);                          \
    return T(x >> (in_range ? s : T(sizeof(T) * 8 - 1)));                          \
  }                                                                                \
  TP_MATH T pow(T x, T n) {                                                        \
    U base = U(x), result = 1;                                                     \
    for (U k = U(n < 0 ? T(0) : n); k != 0; k >>= 1) {                             \
      result *= (k & 1) ? base : U(1);                                             \
      base *= base;                                                                \
    }                                                                              \
    /* 1 / x^|n| truncated: only 1 and -1 leave anything. */                       \
    const T negative = x == 1 ? T(1) : x == -1 ? ((n & 1) ? T(-1) : T(1)) : T(0);  \
    return n < 0 ? negative : T(result);                                           \
  }                                                                                \
  template <int N>                                                                 \
  TP_MATH T powi(T x) {                                                            \
    return pow(x, T(N));                                                           \
  }                                                                                \
  TP_MATH T gcd(T x, T y) {                                                        \
    U a = U(abs(x)), b = U(abs(y));                                                \
    while (b != 0) {                                                               \
      const U r = a % b;                                                           \
      a = b;                                                                       \
      b = r;                                                                       \
    }                                                                              \
    return T(a);                                                                   \
  }                                                                                \
  TP_MATH T lcm(T x, T y) {                                                        \
    const T g = gcd(x, y);                                                         \
    return g == 0 ? T(0) : T(U(trunc_divide(abs(x), g)) * U(abs(y)));              \
  }

// Conditions as numbers: signs that change at random cost a branch more than the division.
#define TP_MATH_DIVISION(T, U)                                  \
  TP_MATH T fmod(T x, T y) {                                    \
    const bool trivial = y == 0 || y == -1;                     \
    const T r = x % (trivial ? T(1) : y);                       \
    return trivial ? T(0) : r;                                  \
  }                                                             \
  TP_MATH T remainder(T x, T y) {                               \
    const T r = fmod(x, y);                                     \
    return T(r + (y & T(-T((r != 0) & ((r < 0) != (y < 0)))))); \
  }                                                             \
  TP_MATH T floor_divide(T x, T y) {                            \
    const T q = trunc_divide(x, y);                             \
    const bool inexact = (y != 0) & (T(U(q) * U(y)) != x);      \
    return T(q - T(inexact & ((x < 0) != (y < 0))));            \
  }

TP_MATH_SIGNED(int32_t, uint32_t)
TP_MATH_SIGNED(int64_t, uint64_t)

TP_MATH_DIVISION(int64_t, uint64_t)

// Division in float64, which is vector code. Where |x| and |y| are at most 2^51 both are exact there, and rounding does not
// reach the whole number m next to a quotient that is not whole: they are 1 / |y| apart at least, which exceeds |m| / 2^53
// as |m y| < |x| + |y|, and half the distance of the numbers below m is less than that.
#if TP_HAS_FMA
TP_MATH int32_t fmod(int32_t x, int32_t y) {
  const double a = x, b = y == 0 ? 1 : y;
  return int32_t(TP_FMA(-trunc(a / b), b, a));
}
TP_MATH int32_t remainder(int32_t x, int32_t y) {
  const double a = x, b = y == 0 ? 1 : y;
  return int32_t(TP_FMA(-floor(a / b), b, a));
}
TP_MATH int32_t floor_divide(int32_t x, int32_t y) {
  const double q = floor(double(x) / (y == 0 ? detail::kInf<double> : double(y)));
  return int32_t(q == 0x1p31 ? -0x1p31 : q);  // the least over -1 wraps
}
#else
TP_MATH_DIVISION(int32_t, uint32_t)
#endif

namespace detail {

// By the bits of a sum, as few instruction sets convert vectors of int64: in 2^52 + 2^51 + x they count ones.
inline constexpr int64_t kOnes = 0x4338000000000000;
TP_MATH double to_double(int64_t x) { return __builtin_bit_cast(double, x + kOnes) - 0x1.8p52; }
TP_MATH int64_t to_integer(double x) { return __builtin_bit_cast(int64_t, x + 0x1.8p52) - kOnes; }

}  // namespace detail

TP_MATH int64_t fmod_fast(int64_t x, int64_t y) {
  const double a = detail::to_double(x), b = detail::to_double(y);
  return detail::to_integer(TP_FMA(-trunc(a / b), b, a));
}
TP_MATH int64_t remainder_fast(int64_t x, int64_t y) {
  const double a = detail::to_double(x), b = detail::to_double(y);
  return detail::to_integer(TP_FMA(-floor(a / b), b, a));
}
TP_MATH int64_t floor_divide_fast(int64_t x, int64_t y) {
  return detail::to_integer(floor(detail::to_double(x) / detail::to_double(y)));
}
// Whether all of a block may take the short form.
TP_MATH bool fmod_near(int64_t n, const int64_t* x, const int64_t* y) {
  constexpr uint64_t kHalf = uint64_t(1) << 51;
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i)
    bits |= (uint64_t(x[i]) + kHalf) | (uint64_t(y[i]) + kHalf) | (y[i] == 0 ? ~uint64_t(0) : uint64_t(0));
  return bits >> 52 == 0;
}

TP_MATH_INTEGER_COMMON(uint64_t, uint64_t)
TP_MATH uint64_t abs(uint64_t x) { return x; }
TP_MATH uint64_t sign(uint64_t x) { return x != 0; }
TP_MATH bool signbit(uint64_t) { return false; }
TP_MATH uint64_t fmod(uint64_t x, uint64_t y) { return y == 0 ? 0 : x % (y == 0 ? 1 : y); }
TP_MATH uint64_t remainder(uint64_t x, uint64_t y) { return fmod(x, y); }
TP_MATH uint64_t trunc_divide(uint64_t x, uint64_t y) { return y == 0 ? 0 : x / (y == 0 ? 1 : y); }
TP_MATH uint64_t floor_divide(uint64_t x, uint64_t y) { return trunc_divide(x, y); }
TP_MATH uint64_t shl(uint64_t x, uint64_t s) { return s < 64 ? x << (s & 63) : 0; }
TP_MATH uint64_t shr(uint64_t x, uint64_t s) { return s < 64 ? x >> (s & 63) : 0; }
TP_MATH uint64_t pow(uint64_t x, uint64_t n) {
  uint64_t base = x, result = 1;
  for (uint64_t k = n; k != 0; k >>= 1) {
    result *= (k & 1) ? base : uint64_t(1);
    base *= base;
  }
  return result;
}
template <int N>
TP_MATH uint64_t powi(uint64_t x) {
  return N >= 0 ? pow(x, uint64_t(N)) : uint64_t(x == 1);
}
TP_MATH uint64_t gcd(uint64_t x, uint64_t y) {
  while (y != 0) {
    const uint64_t r = x % y;
    x = y;
    y = r;
  }
  return x;
}
TP_MATH uint64_t lcm(uint64_t x, uint64_t y) {
  const uint64_t g = gcd(x, y);
  return g == 0 ? 0 : x / g * y;
}

// bool: the two-element case of each, so that integer formulas accept it.
TP_MATH bool abs(bool x) { return x; }
TP_MATH bool sign(bool x) { return x; }
TP_MATH bool square(bool x) { return x; }
TP_MATH bool maximum(bool x, bool y) { return x | y; }
TP_MATH bool minimum(bool x, bool y) { return x & y; }
TP_MATH bool fmax(bool x, bool y) { return x | y; }
TP_MATH bool fmin(bool x, bool y) { return x & y; }
TP_MATH bool bit_and(bool x, bool y) { return x & y; }
TP_MATH bool bit_or(bool x, bool y) { return x | y; }
TP_MATH bool bit_xor(bool x, bool y) { return x != y; }
TP_MATH bool bit_not(bool x) {
  return __builtin_bit_cast(uint8_t, x) == 0;
}  // as a byte: of bools gcc makes no vectors
TP_MATH bool shl(bool x, bool s) { return x & !s; }
TP_MATH bool shr(bool x, bool s) { return x & !s; }
TP_MATH bool pow(bool x, bool n) { return x | !n; }
template <int N>
TP_MATH bool powi(bool x) {
  return x | (N == 0);
}
TP_MATH bool gcd(bool x, bool y) { return x | y; }
TP_MATH bool lcm(bool x, bool y) { return x & y; }
TP_MATH bool fmod(bool, bool) { return false; }
TP_MATH bool remainder(bool, bool) { return false; }
TP_MATH bool trunc_divide(bool x, bool y) { return x & y; }
TP_MATH bool floor_divide(bool x, bool y) { return x & y; }
TP_MATH bool floor(bool x) { return x; }
TP_MATH bool ceil(bool x) { return x; }
TP_MATH bool round(bool x) { return x; }
TP_MATH bool trunc(bool x) { return x; }
TP_MATH bool conj(bool x) { return x; }
TP_MATH bool real(bool x) { return x; }
TP_MATH bool isnan(bool) { return false; }
TP_MATH bool isinf(bool) { return false; }
TP_MATH bool isfinite(bool) { return true; }
TP_MATH bool signbit(bool) { return false; }
TP_MATH bool heaviside(bool x, bool h) { return x | h; }

#undef TP_MATH_SIGNED
#undef TP_MATH_DIVISION
#undef TP_MATH_INTEGER_COMMON

}  // namespace m
}  // namespace TP_ISA
}  // namespace tp
