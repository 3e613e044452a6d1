// Products of small matrices and of integers, compiled per instruction set. Operands may have any strides.
#include "kernels/small_gemm.h"

#include <string.h>

#include "kernels/staging_table.h"

#pragma GCC diagnostic ignored "-Wpsabi"
// Fused multiply-add, as the library's kernels have it.
#pragma GCC optimize("fp-contract=fast")

#ifndef TP_ISA
#define TP_ISA baseline
#endif

namespace tp {
namespace TP_ISA {
namespace {

constexpr int64_t kMaxK = 64;  // bound of is_small_product: the padded copy of B lies on the stack

template <class T, int W>
struct Vec {
  typedef T type __attribute__((vector_size(W * sizeof(T))));
};

// ROWS rows of C, columns [0, n) with n <= W; b: rows of W elements, ldb apart.
template <class T, int W, int ROWS>
inline __attribute__((always_inline)) void block(int64_t n, int64_t k, const T* a, int64_t a_rs, int64_t a_cs,
                                                 const T* b, int64_t ldb, T* c, int64_t ldc, T alpha, T beta) {
  using V = typename Vec<T, W>::type;
  V acc[ROWS];
  for (int r = 0; r < ROWS; ++r) acc[r] = V{};
  for (int64_t p = 0; p < k; ++p) {
    V bv;
    __builtin_memcpy(&bv, b + p * ldb, sizeof(V));
    for (int r = 0; r < ROWS; ++r) acc[r] += a[r * a_rs + p * a_cs] * bv;
  }
  for (int r = 0; r < ROWS; ++r) {
    V out = acc[r] * alpha;
    T* row = c + r * ldc;
    if (n == W) {
      if (beta != T(0)) {
        V old;
        __builtin_memcpy(&old, row, sizeof(V));
        out += old * beta;
      }
      __builtin_memcpy(row, &out, sizeof(V));
    } else {
      for (int64_t j = 0; j < n; ++j) row[j] = beta != T(0) ? out[j] + beta * row[j] : out[j];
    }
  }
}

template <class T, int W>
inline __attribute__((always_inline)) void columns(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_rs,
                                                   int64_t a_cs, const T* b, int64_t b_rs, int64_t b_cs, T* c,
                                                   int64_t ldc, T alpha, T beta) {
  T padded[kMaxK * W];
  if (n != W || b_cs != 1) {
    for (int64_t p = 0; p < k; ++p) {
      T* to = padded + p * W;
      for (int64_t j = 0; j < n; ++j) to[j] = b[p * b_rs + j * b_cs];
      for (int64_t j = n; j < W; ++j) to[j] = T(0);
    }
    b = padded;
    b_rs = W;
  }
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) block<T, W, 4>(n, k, a + i * a_rs, a_rs, a_cs, b, b_rs, c + i * ldc, ldc, alpha, beta);
  for (; i < m; ++i) block<T, W, 1>(n, k, a + i * a_rs, a_rs, a_cs, b, b_rs, c + i * ldc, ldc, alpha, beta);
}

// N x N matrices too small for a vector: all of it in scalar registers.
template <class T, int N>
inline __attribute__((always_inline)) void tiny(const SmallGemmArgs<T>& g) {
  for (int64_t s = 0; s < g.batch; ++s) {
    const T *a = g.a + s * g.a_batch, *b = g.b + s * g.b_batch;
    T* c = g.c + s * g.c_batch;
#pragma GCC unroll 3
    for (int i = 0; i < N; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < N; ++j) {
        T sum = 0;
#pragma GCC unroll 3
        for (int p = 0; p < N; ++p) sum += a[i * g.a_rs + p * g.a_cs] * b[p * g.b_rs + j * g.b_cs];
        T& to = c[i * g.ldc + j];
        to = g.beta != T(0) ? g.alpha * sum + g.beta * to : g.alpha * sum;
      }
  }
}

template <class T>
inline __attribute__((always_inline)) void scaled_row(int64_t n, T a, const T* b, T alpha, T beta, T* c) {
  if (beta == T(0))
    for (int64_t j = 0; j < n; ++j) c[j] = a * b[j] * alpha;
  else
    for (int64_t j = 0; j < n; ++j) c[j] = a * b[j] * alpha + beta * c[j];
}

// k == 1. A C too large for the caches is made in blocks of whole rows, which leave past them.
template <class T>
void outer(const SmallGemmArgs<T>& g) {
  constexpr int64_t kBlock = 8192 / sizeof(T);
  T dense[kBlock], made[kBlock];
  const bool past = g.past && g.beta == T(0);
  for (int64_t s = 0; s < g.batch; ++s)
    for (int64_t j = 0; j < g.n; j += kBlock) {
      const int64_t n = g.n - j < kBlock ? g.n - j : kBlock, at_once = past && n == g.ldc ? kBlock / n : 1;
      const T *a = g.a + s * g.a_batch, *b = g.b + s * g.b_batch + j * g.b_cs;
      T* c = g.c + s * g.c_batch + j;
      if (g.b_cs != 1) {
        for (int64_t q = 0; q < n; ++q) dense[q] = b[q * g.b_cs];
        b = dense;
      }
      for (int64_t i = 0; i < g.m; i += at_once) {
        const int64_t rows = g.m - i < at_once ? g.m - i : at_once;
        T* to = past ? made : c + i * g.ldc;
        for (int64_t r = 0; r < rows; ++r) scaled_row(n, a[(i + r) * g.a_rs], b, g.alpha, g.beta, to + r * n);
        if (past)
          staging_table.stream(reinterpret_cast<char*>(c + i * g.ldc), reinterpret_cast<const char*>(made),
                               rows * n * int64_t(sizeof(T)));
      }
    }
#if defined(__x86_64__)
  if (past) __builtin_ia32_sfence();
#endif
}

template <class T, int W>
void real_small(const SmallGemmArgs<T>& g) {
  if (is_outer_product(g.n, g.k)) return outer<T>(g);
  if (g.m == g.n && g.n == g.k) {
    if (g.n == 2) return tiny<T, 2>(g);
    if (g.n == 3) return tiny<T, 3>(g);
  }
  for (int64_t s = 0; s < g.batch; ++s) {
    const T *a = g.a + s * g.a_batch, *b = g.b + s * g.b_batch;
    T* c = g.c + s * g.c_batch;
    if (g.n == 4 && g.k == 4 && g.m == 4 && g.a_cs == 1 && g.b_cs == 1) {
      columns<T, 4>(4, 4, 4, a, g.a_rs, 1, b, g.b_rs, 1, c, g.ldc, g.alpha, g.beta);
      continue;
    }
    for (int64_t j = 0; j < g.n; j += W) {
      const int64_t n = g.n - j < W ? g.n - j : W;
      const T* bj = b + j * g.b_cs;
      if (n <= W / 4)
        columns<T, W / 4>(g.m, n, g.k, a, g.a_rs, g.a_cs, bj, g.b_rs, g.b_cs, c + j, g.ldc, g.alpha, g.beta);
      else if (n <= W / 2)
        columns<T, W / 2>(g.m, n, g.k, a, g.a_rs, g.a_cs, bj, g.b_rs, g.b_cs, c + j, g.ldc, g.alpha, g.beta);
      else
        columns<T, W>(g.m, n, g.k, a, g.a_rs, g.a_cs, bj, g.b_rs, g.b_cs, c + j, g.ldc, g.alpha, g.beta);
    }
  }
}

// Any size: tiles of B stay in cache while the rows of A pass.
template <class T>
void plain(const SmallGemmArgs<T>& g) {
  constexpr int64_t kTileK = 64, kTileN = 512;
  const T zero{}, alpha = g.alpha, beta = g.beta;
  for (int64_t s = 0; s < g.batch; ++s) {
    const T *a = g.a + s * g.a_batch, *b = g.b + s * g.b_batch;
    T* c = g.c + s * g.c_batch;
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t j = 0; j < g.n; ++j) c[i * g.ldc + j] = beta == zero ? zero : beta * c[i * g.ldc + j];
    for (int64_t j0 = 0; j0 < g.n; j0 += kTileN) {
      const int64_t n = g.n - j0 < kTileN ? g.n - j0 : kTileN;
      for (int64_t p0 = 0; p0 < g.k; p0 += kTileK) {
        const int64_t k = g.k - p0 < kTileK ? g.k - p0 : kTileK;
        for (int64_t i = 0; i < g.m; ++i) {
          T* row = c + i * g.ldc + j0;
          for (int64_t p = p0; p < p0 + k; ++p) {
            const T f = alpha * a[i * g.a_rs + p * g.a_cs];
            const T* from = b + p * g.b_rs + j0 * g.b_cs;
            if (g.b_cs == 1)
              for (int64_t j = 0; j < n; ++j) row[j] += f * from[j];
            else
              for (int64_t j = 0; j < n; ++j) row[j] += f * from[j * g.b_cs];
          }
        }
      }
    }
  }
}

// Signed overflow wraps: the unsigned type of the same width gives the same bits.
template <class T, class U>
void wrapping(const SmallGemmArgs<T>& g) {
  const SmallGemmArgs<U> u{g.batch,
                           g.m,
                           g.n,
                           g.k,
                           reinterpret_cast<const U*>(g.a),
                           g.a_batch,
                           g.a_rs,
                           g.a_cs,
                           reinterpret_cast<const U*>(g.b),
                           g.b_batch,
                           g.b_rs,
                           g.b_cs,
                           reinterpret_cast<U*>(g.c),
                           g.c_batch,
                           g.ldc,
                           U(g.alpha),
                           U(g.beta)};
  plain<U>(u);
}

}  // namespace

extern const SmallGemm small_gemm;
const SmallGemm small_gemm = {real_small<float, 16>,       real_small<double, 8>,       plain<c64>,     plain<c128>,
                              wrapping<int32_t, uint32_t>, wrapping<int64_t, uint64_t>, plain<uint64_t>};

}  // namespace TP_ISA
}  // namespace tp
