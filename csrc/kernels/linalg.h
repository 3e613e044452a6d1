// Kernels of factorisations, linear systems and spectra over the last two dimensions; all earlier ones are a batch.
// Integers become the default float, 16-bit floats go through float32. A matrix that cannot be handled raises RuntimeError
// and names its place in the batch; the *_ex forms report it in `info` (int32) instead.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "core/errors.h"
#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

/// A matrix that has no factorisation, inverse or solution: Python's linalg.LinAlgError, a RuntimeError.
class TP_API LinalgError : public Error {
 public:
  explicit LinalgError(std::string message) : Error(ErrorKind::Runtime, std::move(message)) {}
  ~LinalgError() override;
};

// kernel: linalg_cholesky
TP_API Storage linalg_cholesky(const OpSchema& op, const Storage& input, bool upper);
/// (factor, info)
// kernel: linalg_cholesky_ex
TP_API std::array<Storage, 2> linalg_cholesky_ex(const OpSchema& op, const Storage& input, bool upper);
/// (LU, pivots): row i was exchanged with row pivots[i] - 1.
// kernel: linalg_lu_factor (internal)
TP_API std::array<Storage, 2> linalg_lu_factor(const OpSchema& op, const Storage& input);
/// (LU, pivots, info)
// kernel: linalg_lu_factor_ex (internal)
TP_API std::array<Storage, 3> linalg_lu_factor_ex(const OpSchema& op, const Storage& input);
/// (P, L, U) with input = P L U.
// kernel: linalg_lu (internal)
TP_API std::array<Storage, 3> linalg_lu(const OpSchema& op, const Storage& input);
/// Solves A X = B (X A = B where not `left`; with A^H where `adjoint`) from what linalg_lu_factor gave.
// kernel: linalg_lu_solve
TP_API Storage linalg_lu_solve(const OpSchema& op, const Storage& LU, const Storage& pivots, const Storage& B,
                               bool left, bool adjoint);
/// B is one vector where it has one dimension, or the sizes of A without the last.
// kernel: linalg_solve
TP_API Storage linalg_solve(const OpSchema& op, const Storage& A, const Storage& B, bool left);
// kernel: linalg_solve_triangular
TP_API Storage linalg_solve_triangular(const OpSchema& op, const Storage& A, const Storage& B, bool upper, bool left,
                                       bool unitriangular);
// kernel: linalg_inv
TP_API Storage linalg_inv(const OpSchema& op, const Storage& A);
/// (inverse, info)
// kernel: linalg_inv_ex
TP_API std::array<Storage, 2> linalg_inv_ex(const OpSchema& op, const Storage& A);
// kernel: linalg_det
TP_API Storage linalg_det(const OpSchema& op, const Storage& A);
/// (sign, logabsdet)
// kernel: linalg_slogdet
TP_API std::array<Storage, 2> linalg_slogdet(const OpSchema& op, const Storage& A);

/// (Q, R); mode "reduced", "complete" or "r" (Q empty).
// kernel: linalg_qr
TP_API std::array<Storage, 2> linalg_qr(const OpSchema& op, const Storage& A, std::string_view mode);
/// (eigenvalues ascending, eigenvectors as columns) of a Hermitian matrix; UPLO "L" or "U": the triangle that is read.
// kernel: linalg_eigh
TP_API std::array<Storage, 2> linalg_eigh(const OpSchema& op, const Storage& A, std::string_view UPLO);
// kernel: linalg_eigvalsh
TP_API Storage linalg_eigvalsh(const OpSchema& op, const Storage& A, std::string_view UPLO);
/// Complex (eigenvalues, eigenvectors as columns of unit length).
// kernel: linalg_eig
TP_API std::array<Storage, 2> linalg_eig(const OpSchema& op, const Storage& A);
// kernel: linalg_eigvals
TP_API Storage linalg_eigvals(const OpSchema& op, const Storage& A);
/// (U, S, Vh)
// kernel: linalg_svd
TP_API std::array<Storage, 3> linalg_svd(const OpSchema& op, const Storage& A, bool full_matrices);
// kernel: linalg_svdvals
TP_API Storage linalg_svdvals(const OpSchema& op, const Storage& A);
/// (solution, residuals, rank, singular_values) by singular values; rcond: what counts as zero, relative to the largest.
// kernel: linalg_lstsq
TP_API std::array<Storage, 4> linalg_lstsq(const OpSchema& op, const Storage& A, const Storage& B,
                                           std::optional<double> rcond);

/// The Moore-Penrose inverse; singular values at or below max(atol, rtol * the largest) count as zero.
// kernel: linalg_pinv
TP_API Storage linalg_pinv(const OpSchema& op, const Storage& A, std::optional<double> atol, std::optional<double> rtol,
                           bool hermitian);
// kernel: linalg_matrix_exp
TP_API Storage linalg_matrix_exp(const OpSchema& op, const Storage& input);

/// `info` itself as a copy; where `check` and an item is not 0, an error in the name of `caller`: the input is `what`.
// kernel: linalg_checked_info
TP_API Storage linalg_checked_info(const OpSchema& op, const Storage& info, bool check, std::string_view caller,
                                   std::string_view what);
/// The matrix P of A = P L U, n by n, from what linalg_lu_factor gave.
// kernel: linalg_permutation
TP_API Storage linalg_permutation(const OpSchema& op, const Storage& pivots, std::int64_t n, Dtype dtype);
/// `pivots` as a copy, or an error in the name of `caller` where `info` is not 0.
// kernel: linalg_checked_pivots
TP_API Storage linalg_checked_pivots(const OpSchema& op, const Storage& pivots, const Storage& info,
                                     std::string_view caller);
/// linalg_lu_factor_ex; elimination without exchanges is refused.
// kernel: linalg_lu_core
TP_API std::array<Storage, 3> linalg_lu_core(const OpSchema& op, const Storage& A, bool pivot);
/// Always a RuntimeError with `message`.
// kernel: linalg_refused
TP_API Storage linalg_refused(const OpSchema& op, const Storage& A, std::string_view message);

/// (LD, pivots, info) of symmetric or Hermitian matrices, read from their lower triangles: L D L^T with blocks of one or two.
// kernel: linalg_ldl_factor
TP_API std::array<Storage, 3> linalg_ldl_factor(const OpSchema& op, const Storage& A, bool hermitian);
// kernel: linalg_ldl_solve
TP_API Storage linalg_ldl_solve(const OpSchema& op, const Storage& LD, const Storage& pivots, const Storage& B,
                                bool hermitian);

}  // namespace tp::kernels
