// Long element loops (of exponentials and the like) take whole steps of elements, so that the compiler makes one body of each
// and no remainders: half the code, and no element by itself. Here is what lets them run on any number of elements. Compiled
// once per instruction set, in its namespace. Knows no op.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "core/complex.h"
#include "kernels/loops.h"

namespace tp {
namespace TP_ISA {

#if defined(TP_SCALAR_LOOPS)
inline constexpr bool kVectors = false;
#else
inline constexpr bool kVectors = true;
#endif

/// Elements of a step of a loop over T: a vector of the widest, of bytes where an operand has those. Complex loops go element
/// by element.
template <class T, class... Operands>
inline constexpr std::int64_t kStep = !kVectors ? 1
    : ((sizeof(Operands) == 1) || ...)          ? 64
                                                : 64 / sizeof(T);
template <class... Operands>
inline constexpr std::int64_t kStep<c64, Operands...> = 1;
template <class... Operands>
inline constexpr std::int64_t kStep<c128, Operands...> = 1;

/// Bytes of a block that one operand of a step fits in.
inline constexpr std::int64_t kTailBytes = 64 * 8;

namespace detail {

// `count` items at `from` into the block `to`, which repeats the first of them from there on: what a loop looks for in all
// its elements (all small, all squares) it finds in a block that has no others.
template <class U>
inline void fill_block(char* to, const char* from, std::int64_t count, std::int64_t step) {
  U first;
  std::memcpy(&first, from, sizeof(U));
#if defined(__AVX512VL__)
  // In one store of the width in which the loop reads it: narrower ones would have to leave the store buffer first.
  constexpr std::int64_t kLanes = 64 / sizeof(U);
  for (std::int64_t i = 0; i < step; i += kLanes) {
    const std::int64_t k = count - i;
    const std::uint64_t mask = k >= kLanes ? ~std::uint64_t(0) : k <= 0 ? 0 : (std::uint64_t(1) << k) - 1;
    const char* p = from + (k > 0 ? i : 0) * std::int64_t(sizeof(U));
    char* q = to + i * std::int64_t(sizeof(U));
    if constexpr (sizeof(U) == 8)
      _mm512_store_epi64(q, _mm512_mask_loadu_epi64(_mm512_set1_epi64(std::int64_t(first)), __mmask8(mask), p));
    else if constexpr (sizeof(U) == 4)
      _mm512_store_epi32(q, _mm512_mask_loadu_epi32(_mm512_set1_epi32(std::int32_t(first)), __mmask16(mask), p));
    else
      _mm512_store_si512(q, _mm512_mask_loadu_epi8(_mm512_set1_epi8(char(first)), __mmask64(mask), p));
  }
#else
  std::memcpy(to, from, std::size_t(count) * sizeof(U));
  for (std::int64_t i = count; i < step; ++i) std::memcpy(to + i * std::int64_t(sizeof(U)), &first, sizeof(U));
#endif
}

// The first `count` items of a block to where they belong.
template <class U>
inline void empty_block(char* to, const char* from, std::int64_t count) {
#if defined(__AVX512VL__)
  constexpr std::int64_t kLanes = 64 / sizeof(U);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t k = count - i;
    const std::uint64_t mask = k >= kLanes ? ~std::uint64_t(0) : (std::uint64_t(1) << k) - 1;
    char* p = to + i * std::int64_t(sizeof(U));
    const char* q = from + i * std::int64_t(sizeof(U));
    if constexpr (sizeof(U) == 8)
      _mm512_mask_storeu_epi64(p, __mmask8(mask), _mm512_load_epi64(q));
    else if constexpr (sizeof(U) == 4)
      _mm512_mask_storeu_epi32(p, __mmask16(mask), _mm512_load_epi32(q));
    else
      _mm512_mask_storeu_epi8(p, __mmask64(mask), _mm512_load_si512(q));
  }
#else
  std::memcpy(to, from, std::size_t(count) * sizeof(U));
#endif
}

// `items`: bytes of an element of each operand, results first.
[[gnu::noinline]] inline void whole_and_tail(Loop loop, std::int64_t step, std::int64_t n, char* const* data,
                                             const Scalar* params, const unsigned char* items, int operands,
                                             int results) {
  const std::int64_t whole = n & -step, left = n - whole;
  if (whole) loop(whole, data, params);
  alignas(64) char block[16][kTailBytes];
  char* at[16];
  for (int o = 0; o < operands; ++o) {
    at[o] = block[o];
    if (o < results) continue;
    const char* from = data[o] + whole * items[o];
    switch (items[o]) {
      case 1: fill_block<std::uint8_t>(at[o], from, left, step); break;
      case 4: fill_block<std::uint32_t>(at[o], from, left, step); break;
      default: fill_block<std::uint64_t>(at[o], from, left, step);
    }
  }
  loop(step, at, params);
  for (int o = 0; o < results; ++o) {
    char* to = data[o] + whole * items[o];
    switch (items[o]) {
      case 1: empty_block<std::uint8_t>(to, at[o], left); break;
      case 4: empty_block<std::uint32_t>(to, at[o], left); break;
      default: empty_block<std::uint64_t>(to, at[o], left);
    }
  }
}

}  // namespace detail

/// What a loop of whole steps does with a count that is none. Operands: the types of its results, then of its inputs.
template <class T, int results, class... Operands>
inline void any_count(Loop loop, std::int64_t n, char* const* data, const Scalar* params) {
  static constexpr unsigned char items[] = {sizeof(Operands)...};
  detail::whole_and_tail(loop, kStep<T, Operands...>, n, data, params, items, int(sizeof...(Operands)), results);
}

}  // namespace TP_ISA
}  // namespace tp
