// The own matrix product for instruction sets with 32 registers of 64 bytes: C in tiles of 8 rows by 3 vectors, B packed
// into panels of that width, A read where it lies when its rows are contiguous. Other instruction sets have none.
#include "kernels/panel_gemm.h"

#ifndef TP_ISA
#define TP_ISA baseline
#endif

#if defined(__AVX512F__)
#include <immintrin.h>

#include "kernels/staging_table.h"

namespace tp {
namespace TP_ISA {

extern const StagingTable staging_table;

namespace {

#define TP_FORCE static inline __attribute__((always_inline))

template <class T>
struct Wide;
template <>
struct Wide<float> {
  using V = __m512;
  using Mask = __mmask16;
  static constexpr int lanes = 16;
  TP_FORCE V zero() { return _mm512_setzero_ps(); }
  TP_FORCE V all(float x) { return _mm512_set1_ps(x); }
  TP_FORCE V load(const float* p) { return _mm512_loadu_ps(p); }
  TP_FORCE V load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  TP_FORCE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  TP_FORCE void store(float* p, V v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
  TP_FORCE void store_past(float* p, V v) { _mm512_stream_ps(p, v); }
  TP_FORCE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  TP_FORCE V mul(V a, V b) { return _mm512_mul_ps(a, b); }
};
template <>
struct Wide<double> {
  using V = __m512d;
  using Mask = __mmask8;
  static constexpr int lanes = 8;
  TP_FORCE V zero() { return _mm512_setzero_pd(); }
  TP_FORCE V all(double x) { return _mm512_set1_pd(x); }
  TP_FORCE V load(const double* p) { return _mm512_loadu_pd(p); }
  TP_FORCE V load(const double* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  TP_FORCE void store(double* p, V v) { _mm512_storeu_pd(p, v); }
  TP_FORCE void store(double* p, V v, Mask m) { _mm512_mask_storeu_pd(p, m, v); }
  TP_FORCE void store_past(double* p, V v) { _mm512_stream_pd(p, v); }
  TP_FORCE V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  TP_FORCE V mul(V a, V b) { return _mm512_mul_pd(a, b); }
};

// What happens to a tile of C when its sum over k is done.
template <class T>
struct Write {
  T alpha, beta;
  const T* bias;
  int64_t ldc;
  bool past;  // whole aligned vectors, past the caches
};

// rows <= R rows of C by NV vectors, the last of them under `last`. A: element (r, p) at a[r * rs + p * cs], R rows can be
// read. B: NV vectors per p, ldb apart.
template <class T, int R, int NV>
void tile(int64_t k, const T* a, int64_t rs, int64_t cs, const T* b, int64_t ldb, T* c, int64_t rows,
          typename Wide<T>::Mask last, const Write<T>& write) {
  const Write<T> w = write;  // stores to C cannot change it
  using W = Wide<T>;
  using V = typename W::V;
  constexpr int L = W::lanes;
  if (!w.past)
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < NV; ++v) __builtin_prefetch(c + r * w.ldc + v * L, 1);
  V acc[R][NV];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < NV; ++v) acc[r][v] = W::zero();
  for (int64_t p = 0; p < k; ++p) {
    V bv[NV];
#pragma GCC unroll 3
    for (int v = 0; v < NV; ++v) bv[v] = W::load(b + v * L);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V av = W::all(a[r * rs]);
#pragma GCC unroll 3
      for (int v = 0; v < NV; ++v) acc[r][v] = W::fma(av, bv[v], acc[r][v]);
    }
    a += cs;
    b += ldb;
  }
  const V alpha = W::all(w.alpha), beta = W::all(w.beta);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (r >= rows) break;
    T* to = c + r * w.ldc;
#pragma GCC unroll 3
    for (int v = 0; v < NV; ++v) {
      const typename W::Mask m = v == NV - 1 ? last : typename W::Mask(-1);
      V x = w.bias ? W::fma(alpha, acc[r][v], W::load(w.bias + v * L, m)) : W::mul(alpha, acc[r][v]);
      if (w.beta != T(0)) x = W::fma(beta, W::load(to + v * L, m), x);
      if (w.past)
        W::store_past(to + v * L, x);
      else
        W::store(to + v * L, x, m);
    }
  }
}

template <class T>
using TileFn = void (*)(int64_t, const T*, int64_t, int64_t, const T*, int64_t, T*, int64_t, typename Wide<T>::Mask,
                        const Write<T>&);

// Rows of A for the tiles: where they lie, or packed in eights.
template <class T>
void pack_rows(const T* a, int64_t rs, int64_t cs, int64_t rows, int64_t k, int64_t width, T* to) {
  if (rs == 1 && rows == width && width == kPanelRows) {
    for (int64_t p = 0; p < k; ++p)
      for (int r = 0; r < kPanelRows; ++r) to[p * kPanelRows + r] = a[p * cs + r];
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t r = 0; r < rows; ++r) to[p * width + r] = a[r * rs + p * cs];
    for (int64_t r = rows; r < width; ++r) to[p * width + r] = T(0);
  }
}

// `cols` columns of B as rows of `width` elements, zeros behind.
template <class T>
void pack_panel(const T* b, int64_t rs, int64_t cs, int64_t k, int64_t cols, int64_t width, T* to) {
  using W = Wide<T>;
  constexpr int L = W::lanes;
  const typename W::Mask last = typename W::Mask((1u << (cols - (width - L))) - 1);
  if (cs == 1) {
    for (int64_t p = 0; p < k; ++p) {
      const T* from = b + p * rs;
      for (int64_t j = 0; j + L < width; j += L) W::store(to + p * width + j, W::load(from + j));
      W::store(to + p * width + width - L, W::load(from + width - L, last));
    }
    return;
  }
  if (cols < width)
    for (int64_t p = 0; p < k; ++p) W::store(to + p * width + width - L, W::zero());
  staging_table.copy2d[copy2d_index(sizeof(T))](reinterpret_cast<char*>(to), reinterpret_cast<const char*>(b),
                                                {width, 1, rs, cs}, k, cols);
}

template <class T>
void product(const PanelGemmArgs<T>& g) {
  constexpr int L = Wide<T>::lanes;
  constexpr int64_t kColumns = kPanelBytesN / int64_t(sizeof(T)), kRows = kPanelRows;
  static constexpr TileFn<T> full[] = {tile<T, 8, 1>, tile<T, 8, 2>, tile<T, 8, 3>};
  static constexpr TileFn<T> half[] = {tile<T, 4, 1>, tile<T, 4, 2>, tile<T, 4, 3>};
  const bool in_place = g.a_cs == 1;
  const bool past = g.past && g.beta == T(0) && g.k <= kPanelK && g.n % L == 0 && g.ldc % L == 0 &&
      (reinterpret_cast<uintptr_t>(g.c) & 63) == 0;
  T *packed_b = g.room, *packed_a = nullptr;
  for (int64_t j0 = 0; j0 < g.n; j0 += kColumns) {
    const int64_t nc = g.n - j0 < kColumns ? g.n - j0 : kColumns;
    for (int64_t p0 = 0; p0 < g.k; p0 += kPanelK) {
      const int64_t kc = g.k - p0 < kPanelK ? g.k - p0 : kPanelK;
      Write<T> w{g.alpha, p0 == 0 ? g.beta : T(1), nullptr, g.ldc, past};
      packed_a = packed_b + kc * ((nc + L - 1) / L * L);
      bool ready = false;  // B is packed while the first rows pass, panel by panel
      for (int64_t i0 = 0; i0 < g.m; i0 += kPanelM) {
        const int64_t mc = g.m - i0 < kPanelM ? g.m - i0 : kPanelM, even = mc / kRows * kRows;
        const T* a = g.a + i0 * g.a_rs + p0 * g.a_cs;
        if (!in_place)
          for (int64_t i = 0; i < even; i += kRows)
            pack_rows(a + i * g.a_rs, g.a_rs, g.a_cs, kRows, kc, kRows, packed_a + i * kc);
        const int64_t rest = mc - even, rest_width = rest <= 4 ? 4 : 8;
        T* packed_rest = packed_a + (in_place ? 0 : even * kc);
        if (rest) pack_rows(a + even * g.a_rs, g.a_rs, g.a_cs, rest, kc, rest_width, packed_rest);
        int64_t vectors = (nc + L - 1) / L;
        for (int64_t j = 0; vectors > 0;) {
          // Never three and one: two pairs keep the multipliers busier.
          const int nv = vectors == 4 || vectors == 2 ? 2 : vectors == 1 ? 1 : 3;
          vectors -= nv;
          const int64_t width = nv * L, cols = nc - j < width ? nc - j : width;
          T* panel = packed_b + j * kc;
          if (!ready) pack_panel(g.b + p0 * g.b_rs + (j0 + j) * g.b_cs, g.b_rs, g.b_cs, kc, cols, width, panel);
          const auto last = typename Wide<T>::Mask((1u << (cols - (width - L))) - 1);
          w.bias = g.bias && p0 == 0 ? g.bias + j0 + j : nullptr;
          T* c = g.c + i0 * g.ldc + j0 + j;
          const TileFn<T> f = full[nv - 1];
          if (in_place)
            for (int64_t i = 0; i < even; i += kRows)
              f(kc, a + i * g.a_rs, g.a_rs, 1, panel, width, c + i * g.ldc, kRows, last, w);
          else
            for (int64_t i = 0; i < even; i += kRows)
              f(kc, packed_a + i * kc, 1, kRows, panel, width, c + i * g.ldc, kRows, last, w);
          if (rest)
            (rest_width == 4 ? half : full)[nv - 1](kc, packed_rest, 1, rest_width, panel, width, c + even * g.ldc,
                                                    rest, last, w);
          j += width;
        }
        ready = true;
      }
    }
  }
  if (past) _mm_sfence();
}

}  // namespace

extern const PanelGemm panel_gemm;
const PanelGemm panel_gemm = {product<float>, product<double>};

}  // namespace TP_ISA
}  // namespace tp

#else

namespace tp {
namespace TP_ISA {

extern const PanelGemm panel_gemm;
const PanelGemm panel_gemm = {nullptr, nullptr};

}  // namespace TP_ISA
}  // namespace tp

#endif
