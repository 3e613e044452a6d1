"""Plain NumPy forms of linear algebra: kernels and compositions that NumPy has no one function for.

Written from the documented meaning of each op; never from the C++.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .functions import Unavailable

Array = Any


def linalg_lu_core(A: Array, pivot: bool = True) -> tuple[Array, Array, Array]:
    """Elimination row by row, exchanging for the largest pivot."""
    lu = np.array(A)
    m, n = lu.shape[-2:]
    flat = lu.reshape(-1, m, n)
    pivots = np.zeros((len(flat), min(m, n)), dtype=np.int32)
    for a, p in zip(flat, pivots, strict=True):
        for k in range(min(m, n)):
            row = k + int(np.argmax(np.abs(a[k:, k])))
            p[k] = row + 1
            a[[k, row]] = a[[row, k]]
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return lu, pivots.reshape(*lu.shape[:-2], min(m, n)), np.zeros(lu.shape[:-2], dtype=np.int32)


def linalg_permutation(pivots: Array, n: int, dtype: Any = None) -> Array:
    pivots = np.asarray(pivots)
    out = np.zeros((*pivots.shape[:-1], n, n))
    for at in np.ndindex(pivots.shape[:-1]):
        order = list(range(n))
        for i, p in enumerate(pivots[at]):
            order[i], order[p - 1] = order[p - 1], order[i]
        out[at][order, range(n)] = 1
    return out


def linalg_lu_solve(LU: Array, pivots: Array, B: Array, left: bool = True, adjoint: bool = False) -> Array:
    n = np.shape(LU)[-1]
    A = linalg_permutation(pivots, n) @ (np.tril(LU, -1) + np.eye(n)) @ np.triu(LU)
    A = np.conj(np.swapaxes(A, -1, -2)) if adjoint else A
    return np.linalg.solve(A, B) if left else np.asarray(B) @ np.linalg.inv(A)


def linalg_solve_triangular(A: Array, B: Array, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    A = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        A = A - np.eye(A.shape[-1]) * A + np.eye(A.shape[-1])
    return np.linalg.solve(A, B) if left else np.asarray(B) @ np.linalg.inv(A)


def linalg_lstsq(A: Array, B: Array, rcond: float | None = None) -> tuple[Array, Array, Array, Array]:
    x = np.linalg.pinv(A) @ B
    s = np.linalg.svd(A, compute_uv=False)
    rest = np.abs(B - A @ x) ** 2
    full = np.shape(A)[-2] > np.shape(A)[-1]
    return x, rest.sum(axis=-2) if full else np.zeros(0), np.asarray(np.linalg.matrix_rank(A)), s


def linalg_checked_info(info: Array, check: bool, caller: str, what: str) -> Array:
    return np.array(info)


def linalg_checked_pivots(pivots: Array, info: Array, caller: str) -> Array:
    return np.array(pivots)


def linalg_inv_ex(A: Array) -> tuple[Array, Array]:
    return np.linalg.inv(A), np.zeros(np.shape(A)[:-2], dtype=np.int32)


def linalg_cholesky_ex(x: Array, upper: bool = False) -> tuple[Array, Array]:
    return np.linalg.cholesky((x + np.conj(np.swapaxes(x, -1, -2))) / 2), np.zeros(np.shape(x)[:-2], dtype=np.int32)


def linalg_ldl_factor(A: Array, hermitian: bool = False) -> tuple[Array, Array, Array]:
    """Bunch-Kaufman factors of the lower triangle, in LAPACK's arrangement, by SciPy's LAPACK."""
    try:
        from scipy.linalg.lapack import get_lapack_funcs
    except ImportError:
        raise Unavailable("needs SciPy") from None

    A = np.asarray(A)
    factor = get_lapack_funcs("hetrf" if hermitian and np.iscomplexobj(A) else "sytrf", (A,))
    out = np.empty_like(A)
    pivots, info = np.empty(A.shape[:-1], dtype=np.int32), np.empty(A.shape[:-2], dtype=np.int32)
    for at in np.ndindex(A.shape[:-2]):
        out[at], pivots[at], info[at] = factor(A[at], lower=1)
        out[at] = np.tril(out[at])
    return out, pivots, info


def linalg_ldl_solve(LD: Array, pivots: Array, B: Array, hermitian: bool = False) -> Array:
    """With A put together again: rows exchanged and subtracted for each block of D in turn."""
    n = np.shape(LD)[-1]
    L, D = np.eye(n, dtype=np.asarray(LD).dtype), np.zeros_like(LD)
    k = 0
    while k < n:
        wide = 1 if pivots[k] > 0 else 2
        order = np.arange(n)
        row, other = k + wide - 1, abs(int(pivots[k])) - 1
        order[[row, other]] = order[[other, row]]
        below = np.eye(n, dtype=L.dtype)
        below[k + wide :, k : k + wide] = LD[k + wide :, k : k + wide]
        L = L @ np.eye(n)[order] @ below
        D[k : k + wide, k : k + wide] = LD[k : k + wide, k : k + wide]
        if wide == 2:
            D[k, k + 1] = np.conj(D[k + 1, k]) if hermitian else D[k + 1, k]
        k += wide
    return np.linalg.solve(L @ D @ (np.conj(L.T) if hermitian else L.T), B)


def linalg_eig(A: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eig(A)
    return values.astype(complex), vectors.astype(complex)


def linalg_refused(A: Array, message: str) -> Array:
    """What stands in a branch without meaning: no number agrees with it."""
    return np.full(np.shape(A), np.nan)


KERNELS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        linalg_lu_core, linalg_permutation, linalg_lu_solve, linalg_solve_triangular, linalg_lstsq, linalg_checked_info,
        linalg_checked_pivots, linalg_inv_ex, linalg_cholesky_ex, linalg_refused,
        linalg_ldl_factor, linalg_ldl_solve, linalg_eig,
    )
}  # fmt: skip

# Results of unit columns, each defined up to a phase: a gradient may see them only where that phase does not matter.
PHASE_FREE = {"linalg_eig": "eigenvectors"}


# ---- compositions ----------------------------------------------------------------------------------------------------
def _lu(A: Array, pivot: bool = True) -> tuple[Array, Array, Array]:
    lu, pivots, _ = linalg_lu_core(A, pivot)
    return _unpack(lu, pivots)


def _unpack(lu: Array, pivots: Array, data: bool = True, order: bool = True) -> tuple[Array, Array, Array]:
    m, n = np.shape(lu)[-2:]
    k = min(m, n)
    P = linalg_permutation(pivots, m) if order else np.zeros(0)
    if not data:
        return P, np.zeros(0), np.zeros(0)
    lower = np.where(np.arange(m)[:, None] > np.arange(k), np.asarray(lu)[..., :k], 0)
    return P, lower + np.eye(m, k), np.triu(np.asarray(lu)[..., :k, :])


def _triangular_solve(
    b: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    T = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        T = T + np.eye(np.shape(A)[-1]) * (1 - T)
    return np.linalg.solve(np.swapaxes(T, -1, -2) if transpose else T, b), np.asarray(A)


def _solve_ex(A: Array, B: Array, left: bool = True, check_errors: bool = False) -> tuple[Array, Array]:
    info = np.zeros(np.shape(A)[:-2], dtype=np.int32)
    if not left:
        return np.asarray(B) @ np.linalg.inv(A), info
    column = np.ndim(B) == np.ndim(A) - 1
    x = np.linalg.solve(A, np.asarray(B)[..., None] if column else B)
    return x[..., 0] if column else x, info


def _svd(A: Array, some: bool = True, compute_uv: bool = True) -> tuple[Array, Array, Array]:
    U, S, Vh = np.linalg.svd(A, full_matrices=not some)
    V = np.conj(np.swapaxes(Vh, -1, -2))
    return (U, S, V) if compute_uv else (np.zeros_like(U), S, np.zeros_like(V))


def _cholesky_ex(A: Array, upper: bool = False, check_errors: bool = False) -> tuple[Array, Array]:
    L, info = linalg_cholesky_ex(A)
    return np.conj(np.swapaxes(L, -1, -2)) if upper else L, info


def _householder_product(A: Array, tau: Array) -> Array:
    """One reflection after the other."""
    m, n = A.shape[-2:]
    Q = np.broadcast_to(np.eye(m), (*A.shape[:-2], m, m))
    for i in range(tau.shape[-1]):
        v = np.where(np.arange(m) > i, A[..., :, i], np.arange(m) == i)
        Q = Q @ (np.eye(m) - tau[..., i, None, None] * v[..., :, None] * np.conj(v[..., None, :]))
    return Q[..., :n]


OPS: dict[str, Callable[..., Any]] = {
    "ldl_factor": lambda A, hermitian=False: linalg_ldl_factor(A, hermitian)[:2],
    "ldl_factor_ex": lambda A, hermitian=False, check_errors=False: linalg_ldl_factor(A, hermitian),
    "householder_product": _householder_product,
    "linalg_lstsq": lambda A, B, rcond=None, driver=None: linalg_lstsq(A, B, rcond),
    "inv_ex": lambda A, check_errors=False: linalg_inv_ex(A),
    "cholesky_ex": _cholesky_ex,
    "triangular_solve": _triangular_solve,
    "lu_factor_ex": lambda A, pivot=True, check_errors=False: linalg_lu_core(A, pivot),
    "lu_factor": lambda A, pivot=True: linalg_lu_core(A, pivot)[:2],
    "linalg_lu": _lu,
    "lu_unpack": _unpack,
    "lu_solve": lambda b, lu, pivots: linalg_lu_solve(lu, pivots, b),
    "solve_ex": _solve_ex,
    "svd": _svd,
    "qr": lambda A, some=True: np.linalg.qr(A, "reduced" if some else "complete"),
    "cond_by_inverse": lambda norm, inverse, info, p: np.where(
        np.asarray(info) != 0, np.inf, np.asarray(norm) * np.linalg.norm(np.where(info != 0, 0, inverse), p)
    ),
}
