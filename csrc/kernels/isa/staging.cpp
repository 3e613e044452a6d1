// Block moves of one instruction set: every dtype to every dtype, and strided copies with register transposes.
// Knows no Storage and no op.
#include "kernels/staging_table.h"

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/complex.h"
#include "core/half.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // the vectors never cross a call

#ifndef TP_ISA
#define TP_ISA baseline
#endif

namespace tp {
namespace TP_ISA {
namespace {

// ---- conversions -------------------------------------------------------------------------------------------------

struct boolean {
  uint8_t v;
};
template <int D>
struct TypeOf;
#define TP_TYPE_OF(dtype, type)      \
  template <>                        \
  struct TypeOf<int(Dtype::dtype)> { \
    using T = type;                  \
  };
TP_TYPE_OF(Bool, boolean)
TP_TYPE_OF(U8, uint8_t)
TP_TYPE_OF(I8, int8_t)
TP_TYPE_OF(I16, int16_t)
TP_TYPE_OF(I32, int32_t)
TP_TYPE_OF(I64, int64_t)
TP_TYPE_OF(U16, uint16_t)
TP_TYPE_OF(U32, uint32_t)
TP_TYPE_OF(U64, uint64_t)
TP_TYPE_OF(F16, half)
TP_TYPE_OF(BF16, bfloat16)
TP_TYPE_OF(F32, float)
TP_TYPE_OF(F64, double)
TP_TYPE_OF(C64, c64)
TP_TYPE_OF(C128, c128)
#undef TP_TYPE_OF

template <class T>
constexpr bool is_complex_t = __is_same(T, c64) || __is_same(T, c128);
template <class T>
constexpr bool is_half_t = __is_same(T, half) || __is_same(T, bfloat16);
template <class T>
constexpr bool is_real_t = __is_same(T, float) || __is_same(T, double);

#define TP_INLINE static inline __attribute__((always_inline))

// Floating values go to narrow or unsigned integers through a wider signed one, so that negative values wrap as they do
// in NumPy and PyTorch.
template <class To, class From>
TP_INLINE To convert_value(From v) {
  if constexpr (__is_same(To, boolean)) {
    if constexpr (is_complex_t<From>)
      return boolean{uint8_t(v.re != 0 || v.im != 0)};
    else if constexpr (__is_same(From, boolean))
      return boolean{uint8_t(v.v != 0)};
    else
      return boolean{uint8_t(v != From(0))};
  } else if constexpr (__is_same(From, boolean)) {
    return convert_value<To>(uint8_t(v.v != 0));
  } else if constexpr (is_complex_t<To>) {
    using R = decltype(To::re);
    if constexpr (is_complex_t<From>)
      return To{R(v.re), R(v.im)};
    else
      return To{R(v), R(0)};
  } else if constexpr (is_complex_t<From>) {
    return convert_value<To>(v.re);
  } else if constexpr (is_real_t<From> && !is_real_t<To> && !is_half_t<To>) {
    if constexpr (sizeof(To) < 4)
      return To(int32_t(v));
    else if constexpr (__is_same(To, uint32_t))
      return To(int64_t(v));
    else if constexpr (__is_same(To, uint64_t))
      return v < From(0) ? To(int64_t(v)) : To(v);
    else
      return To(v);
  } else {
    return To(v);
  }
}

constexpr int64_t kPiece = 512;

// Not inlined: the conversions in two steps call those of one step, which exist anyway.
template <int F, int T>
[[gnu::noinline]] void convert(char* to_, const char* from_, int64_t n) {
  using From = typename TypeOf<F>::T;
  using To = typename TypeOf<T>::T;
  To* __restrict to = reinterpret_cast<To*>(to_);
  const From* __restrict from = reinterpret_cast<const From*>(from_);
  if constexpr (F == T) {
    memcpy(to_, from_, size_t(n) * sizeof(To));
  } else if constexpr (is_half_t<From>) {
    if constexpr (__is_same(To, float)) {
      to_float_block(size_t(n), from, to);
    } else {
      alignas(64) float piece[kPiece];
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t k = n - i < kPiece ? n - i : kPiece;
        convert<F, int(Dtype::F32)>(reinterpret_cast<char*>(piece), reinterpret_cast<const char*>(from + i), k);
        convert<int(Dtype::F32), T>(reinterpret_cast<char*>(to + i), reinterpret_cast<const char*>(piece), k);
      }
    }
  } else if constexpr (is_half_t<To>) {
    if constexpr (__is_same(From, float)) {
      from_float_block(size_t(n), from, to);
    } else if constexpr (__is_same(From, double) || (!is_complex_t<From> && sizeof(From) >= 4)) {
      // Wider than float: the type's own constructor rounds once.
      for (int64_t i = 0; i < n; ++i) to[i] = To(from[i]);
    } else {
      alignas(64) float piece[kPiece];
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t k = n - i < kPiece ? n - i : kPiece;
        convert<F, int(Dtype::F32)>(reinterpret_cast<char*>(piece), reinterpret_cast<const char*>(from + i), k);
        convert<int(Dtype::F32), T>(reinterpret_cast<char*>(to + i), reinterpret_cast<const char*>(piece), k);
      }
    }
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = convert_value<To>(from[i]);
  }
}

// Signed and unsigned narrow targets are the same bits.
constexpr int canonical_target(int t) {
  return t == int(Dtype::U8) ? int(Dtype::I8) : t == int(Dtype::U16) ? int(Dtype::I16) : t;
}
template <int F, int T>
constexpr ConvertFn pick_convert() {
  if constexpr (F == T)
    return convert<F, T>;
  else if constexpr (F == canonical_target(T))
    return convert<T, T>;
  else
    return convert<F, canonical_target(T)>;
}

// ---- strided copies ----------------------------------------------------------------------------------------------

struct alignas(8) raw16 {
  uint64_t a, b;
};

// Side of the square that transposes in registers, 32 bytes a row (16 for halves).
template <class T>
constexpr int64_t kSquare = sizeof(T) == 4 ? 8
    : sizeof(T) == 8                       ? 4
    : sizeof(T) == 2                       ? 8
                                           : 1;

typedef uint32_t v8x32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint64_t v4x64 __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint16_t v8x16 __attribute__((vector_size(16), aligned(2), may_alias));

template <class T>
struct VectorOf;
template <>
struct VectorOf<uint32_t> {
  using V = v8x32;
  static inline __attribute__((always_inline)) V low(V a, V b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  static inline __attribute__((always_inline)) V high(V a, V b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};
template <>
struct VectorOf<uint64_t> {
  using V = v4x64;
  static inline __attribute__((always_inline)) V low(V a, V b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
  static inline __attribute__((always_inline)) V high(V a, V b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};
template <>
struct VectorOf<uint16_t> {
  using V = v8x16;
  static inline __attribute__((always_inline)) V low(V a, V b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  static inline __attribute__((always_inline)) V high(V a, V b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};

// log2(n) rounds of interleaving row i with row i + n/2 transpose an n x n square.
template <class T>
TP_INLINE void transpose_square(T* to, int64_t to_row, const T* from, int64_t from_col) {
  using O = VectorOf<T>;
  using V = typename O::V;
  constexpr int64_t n = kSquare<T>;
  V a[n], b[n];
  for (int i = 0; i < n; ++i) a[i] = *reinterpret_cast<const V*>(from + i * from_col);
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
    for (int i = 0; i < n / 2; ++i) {
      b[2 * i] = O::low(a[i], a[i + n / 2]);
      b[2 * i + 1] = O::high(a[i], a[i + n / 2]);
    }
    for (int i = 0; i < n; ++i) a[i] = b[i];
  }
  for (int i = 0; i < n; ++i) *reinterpret_cast<V*>(to + i * to_row) = a[i];
}

// to[r][c] = from[c][r]: both sides contiguous along their own inner dimension.
template <class T>
void transpose(T* to, int64_t to_row, const T* from, int64_t from_col, int64_t rows, int64_t cols) {
  constexpr int64_t n = kSquare<T>;
  if constexpr (n > 1) {
    // Along the source, so that its memory is read in streams.
    const int64_t full_rows = rows / n * n, full_cols = cols / n * n;
    for (int64_t c = 0; c < full_cols; c += n)
      for (int64_t r = 0; r < full_rows; r += n)
        transpose_square(to + r * to_row + c, to_row, from + c * from_col + r, from_col);
    for (int64_t r = 0; r < full_rows; ++r)
      for (int64_t c = full_cols; c < cols; ++c) to[r * to_row + c] = from[c * from_col + r];
    for (int64_t r = full_rows; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) to[r * to_row + c] = from[c * from_col + r];
  } else {
    // Whole cache lines on both sides: rows a page apart share their places in the cache.
    constexpr int64_t line = 64 / sizeof(T);
    for (int64_t r0 = 0; r0 < rows; r0 += 16) {
      const int64_t last = r0 + 16 < rows ? r0 + 16 : rows;
      for (int64_t c0 = 0; c0 < cols; c0 += line) {
        const int64_t end = c0 + line < cols ? c0 + line : cols;
        for (int64_t r = r0; r < last; ++r)
          for (int64_t c = c0; c < end; ++c) to[r * to_row + c] = from[c * from_col + r];
      }
    }
  }
}

template <class T>
void copy2d(char* to_, const char* from_, const Copy2dStrides& s, int64_t rows, int64_t cols) {
  T* to = reinterpret_cast<T*>(to_);
  const T* from = reinterpret_cast<const T*>(from_);
  if (s.to_col == 1) {
    if (s.from_col == 1) {
      if (rows > 1 && s.to_row == cols && s.from_row == cols) {
        memcpy(to, from, size_t(rows * cols) * sizeof(T));
        return;
      }
      if (cols * int64_t(sizeof(T)) >= 64) {
        for (int64_t r = 0; r < rows; ++r) memcpy(to + r * s.to_row, from + r * s.from_row, size_t(cols) * sizeof(T));
        return;
      }
    } else if (s.from_col == 0) {
      for (int64_t r = 0; r < rows; ++r) {
        T* row = to + r * s.to_row;
        const T v = from[r * s.from_row];
        for (int64_t c = 0; c < cols; ++c) row[c] = v;
      }
      return;
    } else if (s.from_col == -1) {
      // A step the compiler knows: whole vectors, turned around.
      for (int64_t r = 0; r < rows; ++r) {
        T* __restrict row = to + r * s.to_row;
        const T* __restrict source = from + r * s.from_row;
        for (int64_t c = 0; c < cols; ++c) row[c] = source[-c];
      }
      return;
    } else if (s.from_row == 1 && rows >= 4) {
      return transpose<T>(to, s.to_row, from, s.from_col, rows, cols);
    }
    for (int64_t r = 0; r < rows; ++r) {
      T* __restrict row = to + r * s.to_row;
      const T* __restrict source = from + r * s.from_row;
      for (int64_t c = 0; c < cols; ++c) row[c] = source[c * s.from_col];
    }
    return;
  }
  if (s.to_row == 1 && rows >= 4)
    return copy2d<T>(to_, from_, {s.to_col, s.to_row, s.from_col, s.from_row}, cols, rows);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[r * s.to_row + c * s.to_col] = from[r * s.from_row + c * s.from_col];
}

// Whole lines past the caches; what shares a line with a neighbour goes the usual way.
TP_INLINE void store_line(char* to, const char* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
  for (int i = 0; i < 64; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
#elif defined(__SSE2__)
  for (int i = 0; i < 64; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#else
  memcpy(to, from, 64);
#endif
}
void stream(char* to, const char* from, int64_t bytes) {
  const int64_t head = int64_t(-reinterpret_cast<uintptr_t>(to) & 63);
  if (head) {
    const int64_t n = head < bytes ? head : bytes;
    memcpy(to, from, size_t(n));
    to += n, from += n, bytes -= n;
  }
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) store_line(to + i, from + i);
  if (i < bytes) memcpy(to + i, from + i, size_t(bytes - i));
}

// ---- numbers -----------------------------------------------------------------------------------------------------

void ramp_i64(int64_t* to, int64_t n, int64_t first, int64_t start, int64_t step) {
  start += first * step;
  for (int64_t i = 0; i < n; ++i) to[i] = start + i * step;
}
void ramp_f64(double* to, int64_t n, int64_t first, double start, double step) {
  // The place as a sum of two doubles, which is exact: only 32-bit integers become doubles in one instruction everywhere.
  const double base = double(first);
  for (int32_t i = 0; i < int32_t(n); ++i) to[i] = start + (base + double(i)) * step;
}

}  // namespace

#define TP_ROW(F)                                                                                                    \
  {pick_convert<F, 0>(),  pick_convert<F, 1>(),  pick_convert<F, 2>(),  pick_convert<F, 3>(),  pick_convert<F, 4>(), \
   pick_convert<F, 5>(),  pick_convert<F, 6>(),  pick_convert<F, 7>(),  pick_convert<F, 8>(),  pick_convert<F, 9>(), \
   pick_convert<F, 10>(), pick_convert<F, 11>(), pick_convert<F, 12>(), pick_convert<F, 13>(), pick_convert<F, 14>()}

extern const StagingTable staging_table = {
    {TP_ROW(0), TP_ROW(1), TP_ROW(2), TP_ROW(3), TP_ROW(4), TP_ROW(5), TP_ROW(6), TP_ROW(7), TP_ROW(8), TP_ROW(9),
     TP_ROW(10), TP_ROW(11), TP_ROW(12), TP_ROW(13), TP_ROW(14)},
    {copy2d<uint8_t>, copy2d<uint16_t>, copy2d<uint32_t>, copy2d<uint64_t>, copy2d<raw16>},
    stream,
    ramp_i64,
    ramp_f64,
};
#undef TP_ROW

}  // namespace TP_ISA
}  // namespace tp
