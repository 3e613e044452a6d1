// Matrix products on raw memory: dispatch to BLAS, threads, packing of operands the library cannot read in place.
#include "kernels/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <type_traits>

#include "core/errors.h"
#include "kernels/panel_gemm.h"
#include "kernels/scratch.h"
#include "kernels/small_gemm.h"
#include "kernels/streaming.h"

namespace tp::kernels {
namespace {

using std::int64_t;

template <class T>
inline constexpr bool kLibrary =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, c64> || std::is_same_v<T, c128>;
template <class T>
inline constexpr bool kComplex = std::is_same_v<T, c64> || std::is_same_v<T, c128>;

void library_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha, const float* a, int lda,
                  const float* b, int ldb, float beta, float* c, int ldc) {
  scipy_cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void library_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, double alpha, const double* a, int lda,
                  const double* b, int ldb, double beta, double* c, int ldc) {
  scipy_cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void library_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, c64 alpha, const c64* a, int lda,
                  const c64* b, int ldb, c64 beta, c64* c, int ldc) {
  scipy_cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}
void library_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, c128 alpha, const c128* a, int lda,
                  const c128* b, int ldb, c128 beta, c128* c, int ldc) {
  scipy_cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}

void library_gemv(CBLAS_TRANSPOSE t, int m, int n, float alpha, const float* a, int lda, const float* x, int incx,
                  float beta, float* y, int incy) {
  scipy_cblas_sgemv(CblasRowMajor, t, m, n, alpha, a, lda, x, incx, beta, y, incy);
}
void library_gemv(CBLAS_TRANSPOSE t, int m, int n, double alpha, const double* a, int lda, const double* x, int incx,
                  double beta, double* y, int incy) {
  scipy_cblas_dgemv(CblasRowMajor, t, m, n, alpha, a, lda, x, incx, beta, y, incy);
}
void library_gemv(CBLAS_TRANSPOSE t, int m, int n, c64 alpha, const c64* a, int lda, const c64* x, int incx, c64 beta,
                  c64* y, int incy) {
  scipy_cblas_cgemv(CblasRowMajor, t, m, n, &alpha, a, lda, x, incx, &beta, y, incy);
}
void library_gemv(CBLAS_TRANSPOSE t, int m, int n, c128 alpha, const c128* a, int lda, const c128* x, int incx,
                  c128 beta, c128* y, int incy) {
  scipy_cblas_zgemv(CblasRowMajor, t, m, n, &alpha, a, lda, x, incx, &beta, y, incy);
}

const SmallGemm& small_table() {
  static const SmallGemm& table = TP_PICK_TABLE(small_gemm);
  return table;
}
void call_small(const SmallGemmArgs<float>& g) { small_table().f32(g); }
void call_small(const SmallGemmArgs<double>& g) { small_table().f64(g); }
void call_small(const SmallGemmArgs<c64>& g) { small_table().c64_(g); }
void call_small(const SmallGemmArgs<c128>& g) { small_table().c128_(g); }
void call_small(const SmallGemmArgs<std::int32_t>& g) { small_table().i32(g); }
void call_small(const SmallGemmArgs<int64_t>& g) { small_table().i64(g); }
void call_small(const SmallGemmArgs<std::uint64_t>& g) { small_table().u64(g); }

/// An operand as the library reads it: row-major with a leading dimension, perhaps transposed.
template <class T>
struct Operand {
  const T* p;
  int ld;
  CBLAS_TRANSPOSE trans;
};

bool fits(int64_t ld, int64_t width) { return ld >= std::max<int64_t>(width, 1) && ld <= INT_MAX; }

template <class T>
std::optional<Operand<T>> in_place(MatRef<T> x, int64_t rows, int64_t cols) {
  // The stride of a dimension of size one is never used.
  if (x.cs == 1 || cols == 1) {
    if (rows == 1) return Operand<T>{x.p, int(std::max<int64_t>(cols, 1)), CblasNoTrans};
    if (x.cs == 1 && fits(x.rs, cols)) return Operand<T>{x.p, int(x.rs), CblasNoTrans};
    if (cols == 1 && fits(x.rs, 1)) return Operand<T>{x.p, int(x.rs), CblasNoTrans};
  }
  if (x.rs == 1 || rows == 1) {
    if (cols == 1) return Operand<T>{x.p, int(std::max<int64_t>(rows, 1)), CblasTrans};
    if (fits(x.cs, rows)) return Operand<T>{x.p, int(x.cs), CblasTrans};
  }
  return std::nullopt;
}

template <class T>
void copy_dense(MatRef<T> x, int64_t rows, int64_t cols, T* to) {
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += kTile)
    for (int64_t j0 = 0; j0 < cols; j0 += kTile)
      for (int64_t i = i0; i < std::min(rows, i0 + kTile); ++i)
        for (int64_t j = j0; j < std::min(cols, j0 + kTile); ++j) to[i * cols + j] = x.p[i * x.rs + j * x.cs];
}

template <class T>
void scale_rows(int64_t m, int64_t n, T beta, T* c, int64_t ldc, const T* bias) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    if (beta == T{}) {
      if (bias)
        std::copy_n(bias, n, row);
      else
        std::fill_n(row, n, T{});
    } else if (bias) {
      for (int64_t j = 0; j < n; ++j) row[j] = beta * row[j] + bias[j];
    } else {
      for (int64_t j = 0; j < n; ++j) row[j] = beta * row[j];
    }
  }
}

template <class T>
T one() {
  if constexpr (kComplex<T>)
    return T{1, 0};
  else
    return T(1);
}

// Operands already fit the library. The bias is laid down first: the library then adds to it.
template <class T>
void library_product(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
                     const T* bias) {
  const bool vector = m == 1 || n == 1;
  if (bias || vector) {
    // Also for vectors: gemv with beta == 0 would carry a NaN over from uninitialised memory.
    scale_rows(m, n, beta, c, ldc, bias);
    beta = one<T>();
  }
  if (n == 1) {
    const int incx = b.trans == CblasNoTrans ? b.ld : 1;
    if (a.trans == CblasNoTrans)
      library_gemv(CblasNoTrans, int(m), int(k), alpha, a.p, a.ld, b.p, incx, beta, c, int(ldc));
    else
      library_gemv(CblasTrans, int(k), int(m), alpha, a.p, a.ld, b.p, incx, beta, c, int(ldc));
  } else if (m == 1) {
    const int incx = a.trans == CblasNoTrans ? 1 : a.ld;
    if (b.trans == CblasNoTrans)
      library_gemv(CblasTrans, int(k), int(n), alpha, b.p, b.ld, a.p, incx, beta, c, 1);
    else
      library_gemv(CblasNoTrans, int(n), int(k), alpha, b.p, b.ld, a.p, incx, beta, c, 1);
  } else {
    library_gemm(a.trans, b.trans, int(m), int(n), int(k), alpha, a.p, a.ld, b.p, b.ld, beta, c, int(ldc));
  }
}

template <class T>
void own_product(int64_t m, int64_t n, int64_t k, T alpha, MatRef<T> a, MatRef<T> b, T beta, T* c, int64_t ldc,
                 const T* bias) {
  if (bias) {
    scale_rows(m, n, beta, c, ldc, bias);
    beta = one<T>();
  }
  const bool past = streams(std::size_t(m) * std::size_t(n) * sizeof(T));
  call_small(SmallGemmArgs<T>{1, m, n, k, a.p, 0, a.rs, a.cs, b.p, 0, b.rs, b.cs, c, 0, ldc, alpha, beta, past});
}

/// Whether this machine has a product of our own for T that is the better one at these sizes; if so, does it.
template <class T>
bool panel_product(int64_t m, int64_t n, int64_t k, T alpha, MatRef<T> a, MatRef<T> b, T beta, T* c, int64_t ldc,
                   const T* bias) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    static const PanelGemm& table = TP_PICK_TABLE(panel_gemm);
    void (*f)(const PanelGemmArgs<T>&) = nullptr;
    if constexpr (std::is_same_v<T, float>)
      f = table.f32;
    else
      f = table.f64;
    if (!f || !is_panel_product(m, n, k)) return false;
    Scratch<T> room(panel_gemm_room(m, n, k, sizeof(T)));
    f({m, n, k, a.p, a.rs, a.cs, b.p, b.rs, b.cs, c, ldc, alpha, beta, bias,
       streams(std::size_t(m) * std::size_t(n) * sizeof(T)), room.get()});
    return true;
  } else {
    return false;
  }
}

void check_sizes(int64_t m, int64_t n, int64_t k, int64_t ldc) {
  if (TP_UNLIKELY(m > INT_MAX || n > INT_MAX || k > INT_MAX || ldc > INT_MAX))
    runtime_error("matrix product: sizes ", m, " x ", k, " x ", n, " exceed 2^31 - 1; split the operands");
}

/// How many pieces to cut rows and columns of C into. `weight`: what a multiplication takes, in those of float.
struct Grid {
  int64_t rows, cols;
};
Grid grid_for(int64_t m, int64_t n, int64_t k, double weight) {
  const double flops = 2.0 * double(m) * double(n) * double(k);
  const int threads = num_threads();
  // A product of seconds is cut so that the user can end it in between.
  const int64_t stops = int64_t(weight * flops / 1.5e10);
  if ((threads == 1 && stops < 2) || flops < 1e6) return {1, 1};
  // Two pieces a thread absorb a busy neighbour where a piece is large enough to repack its operands for.
  const int64_t parts = std::max(
      stops, std::min<int64_t>(flops > 2e8 ? threads * 2 : threads, std::max<int64_t>(2, int64_t(flops / 5e5))));
  const int64_t max_rows = std::max<int64_t>(1, m / 8), max_cols = std::max<int64_t>(1, n / 16);
  Grid best{1, 1};
  double cost = 1e300;
  for (int64_t r = 1; r <= std::min(parts, max_rows); ++r) {
    const int64_t c = std::min(max_cols, (parts + r - 1) / r);
    const double pieces = double(r * c);
    const double packing = (double(m) / double(r) + double(n) / double(c)) * std::min(pieces, double(parts));
    const double idle = double(parts) / std::min(pieces, double(parts));
    if (packing * idle < cost) {
      cost = packing * idle;
      best = {r, c};
    }
  }
  return best;
}

int64_t cut(int64_t n, int64_t parts, int64_t i, int64_t align) {
  if (i >= parts) return n;
  return std::min(n, (n * i / parts + align - 1) / align * align);
}

template <class T, class Piece>
void over_grid(int64_t m, int64_t n, int64_t k, const Piece& piece) {
  const Grid g = grid_for(m, n, k, double(sizeof(T)) / 4 * (kComplex<T> ? 2 : 1));
  if (g.rows * g.cols == 1) return piece(0, m, 0, n);
  parallel_tiles(g.rows * g.cols, 1, [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e; ++t) {
      const int64_t r = t / g.cols, q = t % g.cols;
      const int64_t i0 = cut(m, g.rows, r, 8), i1 = cut(m, g.rows, r + 1, 8);
      const int64_t j0 = cut(n, g.cols, q, 16), j1 = cut(n, g.cols, q + 1, 16);
      if (i0 < i1 && j0 < j1) piece(i0, i1, j0, j1);
    }
  });
}

template <class T>
void product(int64_t m, int64_t n, int64_t k, T alpha, MatRef<T> a, MatRef<T> b, T beta, T* c, int64_t ldc,
             const T* bias, bool threads) {
  if (m == 0 || n == 0) return;
  if (k == 0 || alpha == T{}) return scale_rows(m, n, beta, c, ldc, bias);
  const auto all_own = [&] {
    const auto piece = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
      own_product<T>(i1 - i0, j1 - j0, k, alpha, {a.p + i0 * a.rs, a.rs, a.cs}, {b.p + j0 * b.cs, b.rs, b.cs}, beta,
                     c + i0 * ldc + j0, ldc, bias ? bias + j0 : nullptr);
    };
    if (threads)
      over_grid<T>(m, n, k, piece);
    else
      piece(0, m, 0, n);
  };
  if constexpr (!kLibrary<T>) {
    all_own();
  } else {
    if (!kComplex<T> && is_outer_product(n, k)) return all_own();
    if (is_small_product(m, n, k)) return own_product(m, n, k, alpha, a, b, beta, c, ldc, bias);
    const auto own_piece = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
      return panel_product<T>(i1 - i0, j1 - j0, k, alpha, {a.p + i0 * a.rs, a.rs, a.cs}, {b.p + j0 * b.cs, b.rs, b.cs},
                              beta, c + i0 * ldc + j0, ldc, bias ? bias + j0 : nullptr);
    };
    if (!threads && own_piece(0, m, 0, n)) return;
    check_sizes(m, n, k, ldc);
    prepare_library();
    std::optional<Operand<T>> oa = in_place(a, m, k), ob = in_place(b, k, n);
    Scratch<T> copy_a(oa ? 0 : m * k), copy_b(ob ? 0 : k * n);
    if (!oa) {
      copy_dense(a, m, k, copy_a.get());
      oa = Operand<T>{copy_a.get(), int(k), CblasNoTrans};
    }
    if (!ob) {
      copy_dense(b, k, n, copy_b.get());
      ob = Operand<T>{copy_b.get(), int(n), CblasNoTrans};
    }
    const auto piece = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
      if (own_piece(i0, i1, j0, j1)) return;
      Operand<T> pa = *oa, pb = *ob;
      pa.p += pa.trans == CblasNoTrans ? i0 * pa.ld : i0;
      pb.p += pb.trans == CblasNoTrans ? j0 : j0 * pb.ld;
      library_product(i1 - i0, j1 - j0, k, alpha, pa, pb, beta, c + i0 * ldc + j0, ldc, bias ? bias + j0 : nullptr);
    };
    if (threads)
      over_grid<T>(m, n, k, piece);
    else
      piece(0, m, 0, n);
  }
}

}  // namespace

// The library's own threads collapse when the machine is shared; the products are split here instead.
void prepare_library() { [[maybe_unused]] static const bool once = (scipy_openblas_set_num_threads(1), true); }

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, MatRef<T> a, MatRef<T> b, T beta, T* c, int64_t ldc,
          const T* bias) {
  product(m, n, k, alpha, a, b, beta, c, ldc, bias, true);
}
template <class T>
void gemm_serial(int64_t m, int64_t n, int64_t k, T alpha, MatRef<T> a, MatRef<T> b, T beta, T* c, int64_t ldc,
                 const T* bias) {
  product(m, n, k, alpha, a, b, beta, c, ldc, bias, false);
}

template <class T>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, T alpha, MatRef<T> a, BatchOffsets a_at, MatRef<T> b,
                  BatchOffsets b_at, T beta, T* c) {
  if (batch == 0 || m == 0 || n == 0) return;
  const double flops = 2.0 * double(m) * double(n) * double(k);
  const bool small = is_small_product(m, n, k) || (!kComplex<T> && is_outer_product(n, k));
  if (k > 0 && small && !a_at.list && !b_at.list) {
    const int64_t grain = grain_for(4 + flops / 20);
    const bool past = streams(std::size_t(batch) * std::size_t(m) * std::size_t(n) * sizeof(T));
    return parallel_for(0, batch, grain, [&](int64_t s, int64_t e) {
      call_small(SmallGemmArgs<T>{e - s, m, n, k, a.p + s * a_at.step, a_at.step, a.rs, a.cs, b.p + s * b_at.step,
                                  b_at.step, b.rs, b.cs, c + s * m * n, m * n, n, alpha, beta, past});
    });
  }
  const auto one_product = [&](int64_t i, bool threads) {
    product<T>(m, n, k, alpha, {a.p + a_at.at(i), a.rs, a.cs}, {b.p + b_at.at(i), b.rs, b.cs}, beta, c + i * m * n, n,
               nullptr, threads);
  };
  const bool few_and_large = flops > 4e7 && batch < 2 * num_threads();
  if (few_and_large) {
    for (int64_t i = 0; i < batch; ++i) one_product(i, true);
    return;
  }
  parallel_tiles(batch, grain_for(50 + flops / 100), [&](int64_t s, int64_t e) {
    for (int64_t i = s; i < e; ++i) one_product(i, false);
  });
}

template <class T>
T dot(int64_t n, const T* x, int64_t incx, const T* y, int64_t incy, bool conj) {
  if (n == 0) return T{};
  // The library adds from end to end: halves keep its rounding to that of one block.
  constexpr int64_t kBlock = 8192;
  if (n > kBlock) {
    const int64_t half = (n / 2 + kBlock - 1) / kBlock * kBlock;
    return dot(half, x, incx, y, incy, conj) + dot(n - half, x + half * incx, incx, y + half * incy, incy, conj);
  }
  // The library steps negative strides from the other end; a start at the lowest address makes both agree.
  if constexpr (kLibrary<T>) {
    const bool ok = incx > 0 && incy > 0 && incx <= INT_MAX && incy <= INT_MAX;
    if (ok) {
      prepare_library();
      if constexpr (std::is_same_v<T, float>) {
        return scipy_cblas_sdot(int(n), x, int(incx), y, int(incy));
      } else if constexpr (std::is_same_v<T, double>) {
        return scipy_cblas_ddot(int(n), x, int(incx), y, int(incy));
      } else {
        T out;
        if constexpr (std::is_same_v<T, c64>)
          (conj ? scipy_cblas_cdotc_sub : scipy_cblas_cdotu_sub)(int(n), x, int(incx), y, int(incy), &out);
        else
          (conj ? scipy_cblas_zdotc_sub : scipy_cblas_zdotu_sub)(int(n), x, int(incx), y, int(incy), &out);
        return out;
      }
    }
  }
  T sum{};
  for (int64_t i = 0; i < n; ++i) {
    T a = x[i * incx];
    if constexpr (kComplex<T>)
      if (conj) a.im = -a.im;
    sum = sum + a * y[i * incy];
  }
  return sum;
}

#define TP_INSTANTIATE(T)                                                                                     \
  template void gemm<T>(int64_t, int64_t, int64_t, T, MatRef<T>, MatRef<T>, T, T*, int64_t, const T*);        \
  template void gemm_serial<T>(int64_t, int64_t, int64_t, T, MatRef<T>, MatRef<T>, T, T*, int64_t, const T*); \
  template void gemm_batched<T>(int64_t, int64_t, int64_t, int64_t, T, MatRef<T>, BatchOffsets, MatRef<T>,    \
                                BatchOffsets, T, T*);                                                         \
  template T dot<T>(int64_t, const T*, int64_t, const T*, int64_t, bool);
TP_INSTANTIATE(float)
TP_INSTANTIATE(double)
TP_INSTANTIATE(c64)
TP_INSTANTIATE(c128)
TP_INSTANTIATE(std::int32_t)
TP_INSTANTIATE(int64_t)
TP_INSTANTIATE(std::uint64_t)
#undef TP_INSTANTIATE

}  // namespace tp::kernels
