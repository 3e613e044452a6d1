"""The linear algebra extension of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _C
from ._dtypes import result_type
from ._ops import dims, op
from ._statistics import sum as _sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Any
    logabsdet: Any


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Any
    S: Any
    Vh: Any


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor L of x = L Lᴴ, or U of x = Uᴴ U."""
    return op("linalg.cholesky")(x, upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of 3 elements."""
    return op("linalg.cross")(x1, x2, dim=axis)


def det(x: Any, /) -> Any:
    """The determinant of each matrix."""
    return op("linalg.det")(x)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """A diagonal of each matrix."""
    return op("linalg.diagonal")(x, offset=offset)


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*op("linalg.eigh")(x))


def eigvalsh(x: Any, /) -> Any:
    """Eigenvalues of Hermitian matrices."""
    return op("linalg.eigvalsh")(x)


def inv(x: Any, /) -> Any:
    """The inverse of each matrix."""
    return op("linalg.inv")(x)


def matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product of the last two dimensions."""
    dtype = result_type(x1, x2)
    return op("matmul")(x1.to(dtype), x2.to(dtype))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """A norm of each matrix: 'fro', 'nuc', 1, 2, inf and their negatives."""
    if isinstance(ord, str):
        return op("linalg.matrix_norm")(x, ord, (-2, -1), keepdims)
    # The largest or smallest row, column or singular value.
    pick = op("amax" if ord > 0 else "amin")
    if abs(ord) == 2:
        values = pick(svdvals(x), (-1,), keepdims)
        return values[..., None] if keepdims else values
    if abs(ord) not in (1, float("inf")):
        raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', 1, 2, inf or one of their negatives, not {ord!r}")
    across = -2 if abs(ord) == 1 else -1
    out = pick(op("sum")(op("abs")(x), (across,), True), (-2, -1), True)
    return out if keepdims else out.squeeze((-2, -1))


def matrix_power(x: Any, n: int, /) -> Any:
    """Each square matrix multiplied with itself n times; a negative n takes the inverse."""
    if n < 0:
        x, n = inv(x), -n
    out = op("eye")(x.shape[-1], dtype=x.dtype).expand(x.shape).clone()
    while n:
        out = matmul(out, x) if n & 1 else out
        n >>= 1
        x = matmul(x, x) if n else x
    return out


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """How many singular values are larger than rtol times the largest (default: size times epsilon)."""
    values = svdvals(x)
    if rtol is None:
        from .._numeric_limits import finfo

        rtol = max(x.shape[-2:]) * finfo(values.dtype).eps
    limit = op("amax")(values, (-1,), True) * (rtol if isinstance(rtol, (int, float)) else rtol[..., None])
    return op("sum")(values > limit, (-1,))


def matrix_transpose(x: Any, /) -> Any:
    """The last two dimensions swapped."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: needs at least 2 dimensions, x has {x.ndim}")
    return x.mT


def outer(x1: Any, x2: Any, /) -> Any:
    """The products of each element of one vector with each of another."""
    return op("outer")(x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverse; singular values up to rtol times the largest count as zero."""
    if rtol is None:
        return op("linalg.pinv")(x)
    u, s, vh = svd(x, full_matrices=False)
    limit = op("amax")(s, (-1,), True) * (rtol if isinstance(rtol, (int, float)) else rtol[..., None])
    inverse = op("where")(s > limit, 1 / s, op("zeros_like")(s))
    return matmul(vh.mH * inverse[..., None, :].to(x.dtype), u.mH)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Orthonormal columns and an upper triangle whose product is x."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', not {mode!r}")
    return QRResult(*op("linalg.qr")(x, mode))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant."""
    return SlogdetResult(*op("linalg.slogdet")(x))


def solve(x1: Any, x2: Any, /) -> Any:
    """The x of x1 @ x = x2; x2 is a vector where it is 1-d, else a stack of matrices."""
    if x2.ndim == 1:
        return op("linalg.solve")(x1, x2[..., None])[..., 0]
    return op("linalg.solve")(x1, x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition x = U diag(S) Vh."""
    return SVDResult(*op("linalg.svd")(x, full_matrices))


def svdvals(x: Any, /) -> Any:
    """The singular values in descending order."""
    return op("linalg.svdvals")(x)


def tensordot(x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Any:
    """Products summed over axes of both: the last n with the first n, or those named."""
    if isinstance(axes, int):
        left, right = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        left, right = [a % x1.ndim for a in axes[0]], [a % x2.ndim for a in axes[1]]
    if [x1.shape[a] for a in left] != [x2.shape[a] for a in right]:
        raise ValueError(f"tensordot: axes {axes} of {tuple(x1.shape)} and {tuple(x2.shape)} differ in size")
    keep1 = [a for a in range(x1.ndim) if a not in left]
    keep2 = [a for a in range(x2.ndim) if a not in right]
    inner = 1
    for a in left:
        inner *= x1.shape[a]
    rows, cols = [x1.shape[a] for a in keep1], [x2.shape[a] for a in keep2]
    m = x1.permute((*keep1, *left)).reshape((_product(rows), inner))
    n = x2.permute((*right, *keep2)).reshape((inner, _product(cols)))
    return matmul(m, n).reshape((*rows, *cols))


def _product(sizes: Sequence[int]) -> int:
    out = 1
    for n in sizes:
        out *= n
    return out


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of a diagonal of each matrix."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The dot product of vectors along an axis, the first conjugated."""
    dtype = result_type(x1, x2)
    x1, x2 = x1.to(dtype), x2.to(dtype)
    return (
        op("sum")(x1.conj() * x2, (axis,), dtype=dtype) if dtype != _C.bool else op("linalg.vecdot")(x1, x2, dim=axis)
    )


def vector_norm(x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A norm of the vectors along the axes; None: of all elements."""
    return op("linalg.vector_norm")(x, ord, dims(axis), keepdims)
