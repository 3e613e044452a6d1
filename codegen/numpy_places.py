"""Plain NumPy forms of ops that find, overwrite or combine places (order, *_scatter): references for `check`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any


# ---- the k-th, the most frequent, the largest so far -----------------------------------------------------------------


def _picked(x: Array, indices: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """Values at one index along dim, [..., 1, ...], with or without that dimension."""
    values = np.take_along_axis(x, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def kthvalue(x: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    order = np.argsort(x, axis=dim, kind="stable")
    return _picked(x, np.take(order, [k - 1], axis=dim), dim, keepdim)


def median_dim(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    return kthvalue(x, (x.shape[dim] + 1) // 2, dim, keepdim)


def mode(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    def best(row: Array) -> int:
        values, counts = np.unique(row, return_counts=True)
        return int(np.flatnonzero(row == values[counts.argmax()])[-1])

    return _picked(x, np.expand_dims(np.apply_along_axis(best, dim, x), dim), dim, keepdim)


def _running(better: Callable[[Any, Any], Any], x: Array, dim: int) -> tuple[Array, Array]:
    rows = np.moveaxis(x, dim, 0)
    values, indices = rows.copy(), np.zeros(rows.shape, dtype=np.int64)
    for i in range(1, rows.shape[0]):
        new = better(rows[i], values[i - 1])
        values[i] = np.where(new, rows[i], values[i - 1])
        indices[i] = np.where(new, i, indices[i - 1])
    return np.moveaxis(values, 0, dim), np.moveaxis(indices, 0, dim)


# ---- overwriting -----------------------------------------------------------------------------------------------------


def _at(ndim: int, dim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * (dim % ndim) + (index,)


def _changed(x: Array, place: Any, values: Array) -> Array:
    out = np.array(x, dtype=np.result_type(x, values))
    out[place] = values
    return out


def select_scatter(x: Array, src: Array, dim: int, index: int) -> Array:
    return _changed(x, _at(x.ndim, dim, index), src)


def slice_scatter(x: Array, src: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    return _changed(x, _at(x.ndim, dim, slice(start, end, step)), src)


def diagonal_scatter(x: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    out = np.array(x, dtype=np.result_type(x, src))
    moved = np.moveaxis(out, (dim1, dim2), (-2, -1))
    rows = np.arange(src.shape[-1])
    moved[..., rows + max(-offset, 0), rows + max(offset, 0)] = src
    return out


def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    return _changed(x, _at(x.ndim, dim, index), source)


def index_fill(x: Array, dim: int, index: Array, value: Any) -> Array:
    return _changed(x, _at(x.ndim, dim, index), np.asarray(value))


def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    full, where = (np.array(a) for a in np.broadcast_arrays(x, mask))
    full[where] = np.ravel(source)[: int(where.sum())]
    return full


def put(x: Array, index: Array, source: Array, accumulate: bool) -> Array:
    out = np.array(x)
    for at, v in zip(np.ravel(index), np.ravel(source), strict=True):
        out.flat[at] = out.flat[at] + v if accumulate else v
    return out


def diag_embed(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), dtype=x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


# ---- combining what meets in a place ---------------------------------------------------------------------------------

_COMBINED: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min,
}  # fmt: skip


def _combined(x: Array, pairs: list[tuple[Any, Any]], reduce: str, include_self: bool) -> Array:
    """x with what `pairs` (place, value) bring together at each place they name."""
    met: dict[Any, list[Any]] = {}
    for place, value in pairs:
        met.setdefault(place, [x[place]] if include_self else []).append(value)
    out = np.array(x)
    for place, values in met.items():
        out[place] = _COMBINED[reduce](np.stack(values), axis=0)
    return out


def scatter_reduce(x: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True) -> Array:
    if x.ndim == 0:
        return scatter_reduce(x[None], 0, np.ravel(index), np.ravel(src), reduce, include_self)[0]
    axis = dim % x.ndim
    pairs = [((*at[:axis], int(i), *at[axis + 1 :]), src[at]) for at, i in np.ndenumerate(index)]
    return _combined(x, pairs, reduce, include_self)


def index_reduce(x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool) -> Array:
    if x.ndim == 0:
        return index_reduce(x[None], 0, np.ravel(index), np.ravel(source), reduce, include_self)[0]
    rows = np.moveaxis(source, dim, 0)
    pairs = [(int(i), rows[k]) for k, i in enumerate(np.ravel(index))]
    return np.moveaxis(_combined(np.moveaxis(x, dim, 0), pairs, reduce, include_self), 0, dim)


def _unique_consecutive(x: Array, inverse: bool, counts: bool, dim: int | None) -> tuple[Array, Array, Array]:
    if dim is None:
        return unique_consecutive(x)
    rows = np.moveaxis(x, dim, 0)
    new = np.array([i == 0 or bool((rows[i] != rows[i - 1]).any()) for i in range(len(rows))], dtype=bool)
    run = np.cumsum(new) - 1
    return np.moveaxis(rows[new], 0, dim), run, np.bincount(run)


def unique_consecutive(x: Array) -> tuple[Array, Array, Array]:
    flat = np.ravel(x)
    new = np.concatenate([[True], flat[1:] != flat[:-1]])[: flat.size]
    run = np.cumsum(new) - 1
    return flat[new], run.reshape(np.shape(x)), np.bincount(run)


# ---- windows of one dimension ----------------------------------------------------------------------------------------


def unfold(x: Array, dimension: int, size: int, step: int) -> Array:
    dimension %= x.ndim
    starts = range(0, x.shape[dimension] - size + 1, step)
    pieces = [np.moveaxis(np.take(x, range(s, s + size), axis=dimension), dimension, -1) for s in starts]
    return np.stack(pieces, axis=dimension)


def unfold_backward(grad: Array, input_size: Sequence[int], dimension: int, size: int, step: int) -> Array:
    out = np.zeros(tuple(input_size), dtype=grad.dtype)
    dimension %= out.ndim
    rows = np.moveaxis(out, dimension, 0)
    for i, piece in enumerate(np.moveaxis(grad, dimension, 0)):
        rows[i * step : i * step + size] += np.moveaxis(piece, -1, 0)
    return out


def linalg_inv_ex(a: Array) -> tuple[Array, Array]:
    return np.linalg.inv(a), np.zeros(a.shape[:-2], dtype=np.int32)


KERNELS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        kthvalue, median_dim, mode, select_scatter, slice_scatter, diagonal_scatter, index_copy, index_fill, unfold,
        unfold_backward, linalg_inv_ex, masked_scatter, scatter_reduce, unique_consecutive,
    )
}  # fmt: skip
KERNELS |= {
    "nextafter_half": np.nextafter,
    "cummax": lambda x, dim: _running(np.greater_equal, x, dim),
    "cummin": lambda x, dim: _running(np.less_equal, x, dim),
}
OPS: dict[str, Callable[..., Any]] = {
    "put": put,
    "unique_consecutive": _unique_consecutive,
    "unique_runs": lambda x: _unique_consecutive(x, True, True, 0),
    "diag_embed": diag_embed,
    "index_reduce": index_reduce,
    "scatter_reduce": scatter_reduce,
    "scatter_sums": scatter_reduce,
    "scatter_ends": scatter_reduce,
    "scatter_means": lambda x, dim, index, src, own: scatter_reduce(x, dim, index, src, "mean", own),
    "scatter_products": lambda x, dim, index, src: scatter_reduce(x, dim, index, src, "prod"),
}
