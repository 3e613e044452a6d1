// Bunch and Kaufman's factors of symmetric and Hermitian matrices that need not be positive.
#include "kernels/linalg.h"
#include "kernels/linalg_support.h"

namespace tp::kernels {
namespace {

template <class T>
int factor(bool hermitian, int n, T* a, int* pivots) {
  if constexpr (lapack::kComplex<T>)
    if (hermitian) return lapack::hetrf(n, a, std::max(n, 1), pivots);
  return lapack::sytrf(n, a, std::max(n, 1), pivots);
}
template <class T>
int solve(bool hermitian, int n, int rhs, const T* a, const int* pivots, T* b) {
  if constexpr (lapack::kComplex<T>)
    if (hermitian) return lapack::hetrs(n, rhs, a, std::max(n, 1), pivots, b, std::max(n, 1));
  return lapack::sytrs(n, rhs, a, std::max(n, 1), pivots, b, std::max(n, 1));
}

}  // namespace

std::array<Storage, 3> linalg_ldl_factor(const OpSchema& op, const Storage& A, bool hermitian) {
  need_square(op, "A", A);
  const LinalgDtype d = linalg_dtype(A.dtype());
  const Shape batch = batch_of(op, "A", A);
  const int64_t n = rows_of(A), count = product(batch);
  Storage a = columns_of(op, A, batch, d.work);
  Storage pivots = empty(with_size(batch, n), Dtype::I32), info = zeros_storage(batch, Dtype::I32);
  with_linalg_type(d.work, [&]<class T>(T) {
    T* p = a.data<T>();
    over_matrices(n == 0 ? 0 : count, double(n) * double(n) * double(n) / 3, [&](int64_t i) {
      T* m = p + i * n * n;
      info.data<std::int32_t>()[i] = factor(hermitian, int(n), m, pivots.data<std::int32_t>() + i * n);
      for (int64_t column = 1; column < n; ++column) std::fill_n(m + column * n, column, T());
    });
  });
  return {in_result(a, d.result), pivots, info};
}

Storage linalg_ldl_solve(const OpSchema& op, const Storage& LD, const Storage& pivots, const Storage& B,
                         bool hermitian) {
  need_square(op, "LD", LD);
  batch_of(op, "B", B);
  const int64_t n = rows_of(LD), rhs = cols_of(B);
  if (TP_UNLIKELY(rows_of(B) != n))
    value_error(op.name, ": B of sizes ", B.sizes(), " does not fit LD of sizes ", LD.sizes());
  if (TP_UNLIKELY(pivots.dim() != LD.dim() - 1 || pivots.size(pivots.dim() - 1) != n))
    value_error(op.name, ": pivots of sizes ", pivots.sizes(), " do not belong to LD of ", LD.sizes());
  if (TP_UNLIKELY(B.dtype() != LD.dtype()))
    type_error(op.name, ": B is ", dtype_name(B.dtype()), " and LD ", dtype_name(LD.dtype()), "; both need one dtype");
  const LinalgDtype d = linalg_dtype(LD.dtype());
  const Shape batch = joined_batch(op, LD, B);
  const int64_t count = product(batch);
  Storage p = empty(with_size(batch, n), Dtype::I32);
  copy_broadcast(op.name, p, pivots);
  for (int64_t i = 0; i < p.numel(); ++i) {
    const std::int32_t at = std::abs(p.data<std::int32_t>()[i]);
    if (TP_UNLIKELY(at < 1 || at > n)) value_error(op.name, ": pivots must lie within ", n, "; one is ", at);
  }
  const Storage a = columns_of(op, LD, batch, d.work);
  Storage x = columns_of(op, B, batch, d.work);
  with_linalg_type(d.work, [&]<class T>(T) {
    const T* f = a.data<T>();
    T* b = x.data<T>();
    over_matrices(n == 0 || rhs == 0 ? 0 : count, 2 * double(n) * double(n) * double(rhs), [&](int64_t i) {
      solve(hermitian, int(n), int(rhs), f + i * n * n, p.data<std::int32_t>() + i * n, b + i * n * rhs);
    });
  });
  return in_result(x, d.result);
}

}  // namespace tp::kernels
