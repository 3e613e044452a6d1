// Owns the two 16-bit floating types and their exact, round-to-nearest-even conversions. They are storage types:
// arithmetic happens in float. Forced inline, because this is compiled into every instruction set.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <type_traits>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace tp {

#define TP_HALF_INLINE __attribute__((always_inline)) inline

namespace half_detail {
// Branch-free, so that a plain loop over them becomes vector code where there is no instruction for it.
TP_HALF_INLINE float half_bits_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16, rest = uint32_t(h & 0x7fffu) << 13;
  // Rebias the exponent by a multiplication: exact, and it normalises subnormals on the way.
  const float scaled = __builtin_bit_cast(float, rest) * 0x1p112f;
  const uint32_t quiet = rest > 0x0f800000u ? 0x00400000u : 0u;
  const uint32_t magnitude = rest >= 0x0f800000u ? rest | 0x7f800000u | quiet : __builtin_bit_cast(uint32_t, scaled);
  return __builtin_bit_cast(float, sign | magnitude);
}

TP_HALF_INLINE uint16_t float_to_half_bits(float f) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, f), sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu;
  // Subnormal results: adding 0.5 lines the last kept bit up with the last bit of the sum, which rounds it.
  const float shifted = __builtin_bit_cast(float, a) + 0.5f;
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, shifted) - 0x3f000000u;
  const uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
  const uint32_t special = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ffu) : 0x7c00u;
  const uint32_t finite = a < 0x38800000u ? subnormal : normal;
  return uint16_t(sign | (a >= 0x477ff000u ? special : finite));
}

TP_HALF_INLINE float bfloat16_bits_to_float(uint16_t b) { return __builtin_bit_cast(float, uint32_t(b) << 16); }

TP_HALF_INLINE uint16_t float_to_bfloat16_bits(float f) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return uint16_t((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}

// Double to float with the inexact remainder kept in the last bit (round to odd): the second rounding, to 16 bits,
// then sees on which side of a tie the double was, so that the pair rounds once.
TP_HALF_INLINE float double_to_float_odd(double d) {
  const float f = float(d);
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  const double magnitude = d < 0 ? -d : d, back = f < 0 ? -double(f) : double(f);
  const uint32_t truncated = bits - (back > magnitude ? 1u : 0u);
  return __builtin_bit_cast(float, back == magnitude || d != d ? bits : truncated | 1u);
}
}  // namespace half_detail

#define TP_HALF_TYPE(T, FROM, TO)                                                                         \
  struct T {                                                                                              \
    uint16_t bits;                                                                                        \
    T() = default;                                                                                        \
    TP_HALF_INLINE explicit T(float v) : bits(half_detail::FROM(v)) {}                                    \
    TP_HALF_INLINE explicit T(double v) : bits(half_detail::FROM(half_detail::double_to_float_odd(v))) {} \
    /* Integers convert by value; through double, which holds every integer that is finite in 16 bits. */ \
    template <class I>                                                                                    \
      requires std::is_integral_v<I>                                                                      \
    TP_HALF_INLINE explicit T(I v) : T(double(v)) {}                                                      \
    T(uint16_t) = delete; /* ambiguous: T::from_bits for a bit pattern, T(float(v)) for a value */        \
    static TP_HALF_INLINE T from_bits(uint16_t b) {                                                       \
      T t;                                                                                                \
      t.bits = b;                                                                                         \
      return t;                                                                                           \
    }                                                                                                     \
    template <class A>                                                                                    \
      requires std::is_arithmetic_v<A>                                                                    \
    TP_HALF_INLINE explicit operator A() const {                                                          \
      return A(half_detail::TO(bits));                                                                    \
    }                                                                                                     \
  };                                                                                                      \
  TP_HALF_INLINE bool operator==(T a, T b) { return float(a) == float(b); }                               \
  TP_HALF_INLINE bool operator!=(T a, T b) { return float(a) != float(b); }                               \
  TP_HALF_INLINE bool operator<(T a, T b) { return float(a) < float(b); }

TP_HALF_TYPE(half, float_to_half_bits, half_bits_to_float)
TP_HALF_TYPE(bfloat16, float_to_bfloat16_bits, bfloat16_bits_to_float)
#undef TP_HALF_TYPE

// Whole blocks. The compiler has no vector form of the half instructions for plain loops, hence the intrinsics;
// the results are the same bits as the scalar forms give.
TP_HALF_INLINE void to_float_block(size_t n, const half* x, float* out) {
  size_t i = 0;
#ifdef __AVX512F__
  // Masked by all: the plain form starts from a register the compiler takes for uninitialised.
#pragma GCC unroll 4
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(out + i,
                     _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i))));
#endif
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) out[i] = float(x[i]);
}

TP_HALF_INLINE void from_float_block(size_t n, const float* x, half* out) {
  size_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(out + i),
        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
  for (; i < n; ++i) out[i] = half(x[i]);
}

TP_HALF_INLINE void to_float_block(size_t n, const bfloat16* x, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = float(x[i]);
}

TP_HALF_INLINE void from_float_block(size_t n, const float* x, bfloat16* out) {
  for (size_t i = 0; i < n; ++i) out[i] = bfloat16(x[i]);
}

#undef TP_HALF_INLINE

}  // namespace tp
