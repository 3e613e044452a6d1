// LAPACK by overloads on the element type: column-major matrices, the routine's info as result. Knows no Storage.
#pragma once
#include "core/complex.h"

#define LAPACK_COMPLEX_CUSTOM
#define lapack_complex_float tp::c64
#define lapack_complex_double tp::c128
#include <lapacke.h>

namespace tp::lapack {

template <class T>
struct RealOf {
  using type = T;
};
template <>
struct RealOf<c64> {
  using type = float;
};
template <>
struct RealOf<c128> {
  using type = double;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool kComplex = !__is_same(Real<T>, T);

#define TP_LAPACK_COMMON(T, R, p, qr, ev)                                                                 \
  inline int potrf(char uplo, int n, T* a, int ld) {                                                      \
    return scipy_LAPACKE_##p##potrf(LAPACK_COL_MAJOR, uplo, n, a, ld);                                    \
  }                                                                                                       \
  inline int getrf(int m, int n, T* a, int ld, int* pivots) {                                             \
    return scipy_LAPACKE_##p##getrf(LAPACK_COL_MAJOR, m, n, a, ld, pivots);                               \
  }                                                                                                       \
  inline int getrs(char trans, int n, int rhs, const T* a, int ld, const int* pivots, T* b, int ldb) {    \
    return scipy_LAPACKE_##p##getrs(LAPACK_COL_MAJOR, trans, n, rhs, a, ld, pivots, b, ldb);              \
  }                                                                                                       \
  inline int getri(int n, T* a, int ld, const int* pivots) {                                              \
    return scipy_LAPACKE_##p##getri(LAPACK_COL_MAJOR, n, a, ld, pivots);                                  \
  }                                                                                                       \
  inline int trtrs(char uplo, char trans, char diag, int n, int rhs, const T* a, int ld, T* b, int ldb) { \
    return scipy_LAPACKE_##p##trtrs(LAPACK_COL_MAJOR, uplo, trans, diag, n, rhs, a, ld, b, ldb);          \
  }                                                                                                       \
  inline int geqrf(int m, int n, T* a, int ld, T* tau) {                                                  \
    return scipy_LAPACKE_##p##geqrf(LAPACK_COL_MAJOR, m, n, a, ld, tau);                                  \
  }                                                                                                       \
  inline int orgqr(int m, int n, int k, T* a, int ld, const T* tau) {                                     \
    return scipy_LAPACKE_##p##qr(LAPACK_COL_MAJOR, m, n, k, a, ld, tau);                                  \
  }                                                                                                       \
  inline int eigh(char jobz, char uplo, int n, T* a, int ld, R* w) {                                      \
    return scipy_LAPACKE_##p##ev(LAPACK_COL_MAJOR, jobz, uplo, n, a, ld, w);                              \
  }                                                                                                       \
  inline int gesdd(char jobz, int m, int n, T* a, int ld, R* s, T* u, int ldu, T* vt, int ldvt) {         \
    return scipy_LAPACKE_##p##gesdd(LAPACK_COL_MAJOR, jobz, m, n, a, ld, s, u, ldu, vt, ldvt);            \
  }                                                                                                       \
  inline int gelsd(int m, int n, int rhs, T* a, int ld, T* b, int ldb, R* s, R rcond, int* rank) {        \
    return scipy_LAPACKE_##p##gelsd(LAPACK_COL_MAJOR, m, n, rhs, a, ld, b, ldb, s, rcond, rank);          \
  }
TP_LAPACK_COMMON(float, float, s, orgqr, syevd)
TP_LAPACK_COMMON(double, double, d, orgqr, syevd)
TP_LAPACK_COMMON(c64, float, c, ungqr, heevd)
TP_LAPACK_COMMON(c128, double, z, ungqr, heevd)
#undef TP_LAPACK_COMMON

// Factors of an indefinite matrix, symmetric or (of complex numbers) Hermitian, and systems with them.
#define TP_LAPACK_INDEFINITE(T, p, factor, solve)                                          \
  inline int factor(int n, T* a, int ld, int* pivots) {                                    \
    return scipy_LAPACKE_##p##factor(LAPACK_COL_MAJOR, 'L', n, a, ld, pivots);             \
  }                                                                                        \
  inline int solve(int n, int rhs, const T* a, int ld, const int* pivots, T* b, int ldb) { \
    return scipy_LAPACKE_##p##solve(LAPACK_COL_MAJOR, 'L', n, rhs, a, ld, pivots, b, ldb); \
  }
TP_LAPACK_INDEFINITE(float, s, sytrf, sytrs)
TP_LAPACK_INDEFINITE(double, d, sytrf, sytrs)
TP_LAPACK_INDEFINITE(c64, c, sytrf, sytrs)
TP_LAPACK_INDEFINITE(c128, z, sytrf, sytrs)
TP_LAPACK_INDEFINITE(c64, c, hetrf, hetrs)
TP_LAPACK_INDEFINITE(c128, z, hetrf, hetrs)
#undef TP_LAPACK_INDEFINITE

// Eigenvalues of a general matrix: real ones come in two parts, and vectors of a conjugate pair in two real columns.
inline int geev(char vectors, int n, float* a, int ld, float* re, float* im, float* v, int ldv) {
  return scipy_LAPACKE_sgeev(LAPACK_COL_MAJOR, 'N', vectors, n, a, ld, re, im, nullptr, 1, v, ldv);
}
inline int geev(char vectors, int n, double* a, int ld, double* re, double* im, double* v, int ldv) {
  return scipy_LAPACKE_dgeev(LAPACK_COL_MAJOR, 'N', vectors, n, a, ld, re, im, nullptr, 1, v, ldv);
}
inline int geev(char vectors, int n, c64* a, int ld, c64* w, c64* v, int ldv) {
  return scipy_LAPACKE_cgeev(LAPACK_COL_MAJOR, 'N', vectors, n, a, ld, w, nullptr, 1, v, ldv);
}
inline int geev(char vectors, int n, c128* a, int ld, c128* w, c128* v, int ldv) {
  return scipy_LAPACKE_zgeev(LAPACK_COL_MAJOR, 'N', vectors, n, a, ld, w, nullptr, 1, v, ldv);
}

}  // namespace tp::lapack
