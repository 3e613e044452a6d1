// Matrix products on raw memory: C = alpha * A B + beta * C, row-major C. Owns the choice between the BLAS library, its
// matrix-vector forms and the own small kernel, and the split over threads. Knows no Storage.
#pragma once
#include <cstdint>

#include "core/complex.h"
#include "core/dtype.h"

namespace tp::kernels {

/// Before the first call into the library from outside gemm: keeps its own threads off.
void prepare_library();

/// A matrix operand: element (i, j) lies at p[i * rs + j * cs].
template <class T>
struct MatRef {
  const T* p;
  std::int64_t rs, cs;
  MatRef t() const { return {p, cs, rs}; }
};

/// f(T()) of the type T that products of a dtype are computed in.
template <class F>
void with_product_type(Dtype d, F&& f) {
  switch (d) {
    case Dtype::F32: return f(float());
    case Dtype::F64: return f(double());
    case Dtype::C64: return f(c64());
    case Dtype::C128: return f(c128());
    case Dtype::I32: return f(std::int32_t());
    case Dtype::I64: return f(std::int64_t());
    default: return f(std::uint64_t());
  }
}

/// C[m, n] = alpha * A[m, k] B[k, n] + beta * C, plus `bias` (n values) added to every row. C has unit column stride and row
/// stride ldc. beta == 0 does not read C. T: float, double, c64, c128, int32, int64, uint64. Any strides of A and B.
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, MatRef<T> a, MatRef<T> b, T beta, T* c,
          std::int64_t ldc, const T* bias = nullptr);
/// The same on the calling thread alone (for bodies of parallel_for).
template <class T>
void gemm_serial(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, MatRef<T> a, MatRef<T> b, T beta, T* c,
                 std::int64_t ldc, const T* bias = nullptr);

/// `batch` products of one shape; product i reads a.p + a_at(i), b.p + b_at(i) and writes c + i * m * n (ldc == n).
/// The offsets are either i * step, or taken from a list.
struct BatchOffsets {
  const std::int64_t* list = nullptr;
  std::int64_t step = 0;
  std::int64_t at(std::int64_t i) const { return list ? list[i] : i * step; }
};
template <class T>
void gemm_batched(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, MatRef<T> a,
                  BatchOffsets a_at, MatRef<T> b, BatchOffsets b_at, T beta, T* c);

/// sum of x[i] * y[i]; conjugates x where T is complex and `conj`.
template <class T>
T dot(std::int64_t n, const T* x, std::int64_t incx, const T* y, std::int64_t incy, bool conj = false);

}  // namespace tp::kernels
