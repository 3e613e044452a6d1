// Kernels of factorisations, linear systems and spectra over the last two dimensions; all earlier ones are a batch.
// Integers become the default float, 16-bit floats go through float32. A matrix that cannot be handled raises RuntimeError
// and names its place in the batch; the *_ex forms report it in `info` (int32) instead.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "core/op_schema.h"
#include "core/storage.h"

namespace tp::kernels {

// kernel: linalg_cholesky (internal)
TP_API Storage linalg_cholesky(const OpSchema& op, const Storage& input, bool upper);
/// (factor, info)
// kernel: linalg_cholesky_ex (internal)
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
// kernel: linalg_lu_solve (internal)
TP_API Storage linalg_lu_solve(const OpSchema& op, const Storage& LU, const Storage& pivots, const Storage& B,
                               bool left, bool adjoint);
/// B is one vector where it has one dimension, or the sizes of A without the last.
// kernel: linalg_solve (internal)
TP_API Storage linalg_solve(const OpSchema& op, const Storage& A, const Storage& B, bool left);
// kernel: linalg_solve_triangular (internal)
TP_API Storage linalg_solve_triangular(const OpSchema& op, const Storage& A, const Storage& B, bool upper, bool left,
                                       bool unitriangular);
// kernel: linalg_inv (internal)
TP_API Storage linalg_inv(const OpSchema& op, const Storage& A);
/// (inverse, info)
// kernel: linalg_inv_ex (internal)
TP_API std::array<Storage, 2> linalg_inv_ex(const OpSchema& op, const Storage& A);
// kernel: linalg_det (internal)
TP_API Storage linalg_det(const OpSchema& op, const Storage& A);
/// (sign, logabsdet)
// kernel: linalg_slogdet (internal)
TP_API std::array<Storage, 2> linalg_slogdet(const OpSchema& op, const Storage& A);

/// (Q, R); mode "reduced", "complete" or "r" (Q empty).
// kernel: linalg_qr (internal)
TP_API std::array<Storage, 2> linalg_qr(const OpSchema& op, const Storage& A, std::string_view mode);
/// (eigenvalues ascending, eigenvectors as columns) of a Hermitian matrix; UPLO "L" or "U": the triangle that is read.
// kernel: linalg_eigh (internal)
TP_API std::array<Storage, 2> linalg_eigh(const OpSchema& op, const Storage& A, std::string_view UPLO);
// kernel: linalg_eigvalsh (internal)
TP_API Storage linalg_eigvalsh(const OpSchema& op, const Storage& A, std::string_view UPLO);
/// Complex (eigenvalues, eigenvectors as columns of unit length).
// kernel: linalg_eig (internal)
TP_API std::array<Storage, 2> linalg_eig(const OpSchema& op, const Storage& A);
// kernel: linalg_eigvals (internal)
TP_API Storage linalg_eigvals(const OpSchema& op, const Storage& A);
/// (U, S, Vh)
// kernel: linalg_svd (internal)
TP_API std::array<Storage, 3> linalg_svd(const OpSchema& op, const Storage& A, bool full_matrices);
// kernel: linalg_svdvals (internal)
TP_API Storage linalg_svdvals(const OpSchema& op, const Storage& A);
/// (solution, residuals, rank, singular_values) by singular values; rcond: what counts as zero, relative to the largest.
// kernel: linalg_lstsq (internal)
TP_API std::array<Storage, 4> linalg_lstsq(const OpSchema& op, const Storage& A, const Storage& B,
                                           std::optional<double> rcond);

}  // namespace tp::kernels
