"""NumPy forms of what structured formulas call (`vjp`, `tangent`, `compose`) and of the shape rules. Add one, and
it may be used: its parameters are its arity. Ops of the file are callable too; the checker evaluates them by `like`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

Dims = Sequence[int]


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """dim as a tuple of axes in [0, ndim); None and () mean all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    items = (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(int(d) + ndim if d < 0 else int(d) for d in items)


# ---- formula functions: metadata (never an op) ----------------------------------------------------------------------


def shape(x: Any) -> Any:
    import numpy as np

    return np.shape(x)


def dtype(x: Any) -> Any:
    import numpy as np

    return np.asarray(x).dtype


def ndim(x: Any) -> Any:
    import numpy as np

    return np.ndim(x)


def numel(x: Any) -> Any:
    import numpy as np

    return np.size(x)


def size(x: Any, dim: int) -> Any:
    import numpy as np

    return np.shape(x)[dim]


META: dict[str, Callable[..., Any]] = {f.__name__: f for f in (shape, dtype, ndim, numel, size)}
META["len"] = len

# ---- formula functions: tensors -------------------------------------------------------------------------------------


def sum_to(x: Any, sizes: Dims) -> Any:
    """Sum over what broadcasting from `sizes` added."""
    import numpy as np

    x = np.asarray(x)
    lead = x.ndim - len(sizes)
    x = x.sum(axis=tuple(range(lead))) if lead else x
    ones = tuple(i for i, s in enumerate(sizes) if s == 1 and x.shape[i] != 1)
    out = np.asarray(x.sum(axis=ones, keepdims=True) if ones else x)
    if out.shape != tuple(sizes):
        raise ValueError(f"sum_to: {list(x.shape)} does not reduce to {list(sizes)}")
    return out


def expand_to(x: Any, sizes: Dims) -> Any:
    import numpy as np

    return np.broadcast_to(x, tuple(sizes))


def _keepdim(sizes: Dims, dim: Any) -> tuple[int, ...]:
    gone = set(_dims(dim, len(sizes)))
    return tuple(1 if i in gone else s for i, s in enumerate(sizes))


def restore_dims(x: Any, sizes: Dims, dim: Any, keepdim: bool = False) -> Any:
    """Put back as size 1 the dimensions that a reduction of `sizes` over dim removed."""
    import numpy as np

    return np.asarray(x) if keepdim else np.reshape(x, _keepdim(sizes, dim))


def expand_reduced(x: Any, sizes: Dims, dim: Any, keepdim: bool = False) -> Any:
    """A reduction's gradient spread over its input."""
    return expand_to(restore_dims(x, sizes, dim, keepdim), sizes)


def drop_dim(x: Any, dim: int, keepdim: bool = False) -> Any:
    """What a reduction over one dimension leaves of a dimension of size 1."""
    import numpy as np

    x = np.asarray(x)
    return x if keepdim or x.ndim == 0 else np.squeeze(x, dim)


def split_like(x: Any, tensors: Sequence[Any], dim: int) -> Any:
    """x cut along dim into pieces as long as the tensors'."""
    import numpy as np

    ends = np.cumsum([np.shape(t)[dim] for t in tensors])[:-1]
    return list(np.split(x, ends, axis=dim))


def mT(x: Any) -> Any:
    import numpy as np

    return np.swapaxes(x, -1, -2)


def mH(x: Any) -> Any:
    import numpy as np

    return np.conj(np.swapaxes(x, -1, -2))


def _np_dtype(dtype: Any) -> Any:
    """A dtype, or the name of one, for NumPy; float64 for None."""
    from .reference import NP_DTYPE

    return NP_DTYPE.get(dtype, dtype) if isinstance(dtype, str) else dtype


def zeros(sizes: Dims, dtype: Any = None) -> Any:
    import numpy as np

    return np.zeros(tuple(sizes), _np_dtype(dtype))


def ones(sizes: Dims, dtype: Any = None) -> Any:
    import numpy as np

    return np.ones(tuple(sizes), _np_dtype(dtype))


def full(sizes: Dims, value: Any, dtype: Any = None) -> Any:
    import numpy as np

    return np.full(tuple(sizes), value, _np_dtype(dtype) if dtype is not None else None)


def cast(x: Any, dtype: Any) -> Any:
    import numpy as np

    return np.asarray(x).astype(_np_dtype(dtype))


def strong_mul(x: Any, y: Any) -> Any:
    """x * y, and 0 where y is 0 whatever x is."""
    import numpy as np

    return np.where(np.equal(y, 0), 0 * np.nan_to_num(y), x * y)


def matmul(x: Any, y: Any) -> Any:
    import numpy as np

    return np.matmul(x, y)


def reshape(x: Any, sizes: Dims) -> Any:
    import numpy as np

    return np.reshape(x, tuple(sizes))


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    import numpy as np

    return np.asarray(x) if np.ndim(x) == 0 else np.swapaxes(x, dim0, dim1)


def permute(x: Any, dims: Dims) -> Any:
    import numpy as np

    return np.transpose(x, tuple(dims))


def invert_permutation(dims: Dims) -> Any:
    """The permutation that undoes dims."""
    n = len(dims)
    out = [0] * n
    for i, d in enumerate(dims):
        out[d % n] = i
    return tuple(out)


def unsqueeze(x: Any, dim: int) -> Any:
    import numpy as np

    return np.expand_dims(x, dim)


def flip(x: Any, dims: Any) -> Any:
    import numpy as np

    return np.flip(x, _dims(dims, np.ndim(x)))


def sum_dims(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    import numpy as np

    return np.sum(x, axis=_dims(dim, np.ndim(x)), keepdims=keepdim)


def cumsum(x: Any, dim: int) -> Any:
    import numpy as np

    return np.cumsum(x, axis=dim) if np.ndim(x) else np.asarray(x)


def gather(x: Any, dim: int, index: Any) -> Any:
    """out[i][j] = x[index[i][j]][j] for dim 0; index may be smaller than x in the other dimensions."""
    import numpy as np

    x, index = np.asarray(x), np.asarray(index)
    if index.ndim == 0:
        return x.reshape(-1)[index] if x.ndim == 0 else x[index]
    grid = list(np.indices(index.shape, sparse=True))
    grid[dim] = index
    return x[tuple(grid)]


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    """x with src[i][j] added at [index[i][j]][j] for dim 0."""
    import numpy as np

    out, index = np.array(x), np.asarray(index)
    src = np.broadcast_to(src, np.shape(src))[tuple(slice(0, n) for n in index.shape)]
    grid = list(np.indices(index.shape, sparse=True))
    if not grid:
        return out + src
    grid[dim] = index
    np.add.at(out, tuple(grid), src)
    return out


def tril(x: Any, diagonal: int = 0) -> Any:
    import numpy as np

    return np.tril(x, diagonal)


def triu(x: Any, diagonal: int = 0) -> Any:
    import numpy as np

    return np.triu(x, diagonal)


def shorten_rows(table: Any, index: Any, max_norm: float, norm_type: float) -> Any:
    """The table, its rows that index names brought to at most a norm in place."""
    import numpy as np

    norms = np.linalg.norm(table, norm_type, axis=1, keepdims=True)
    named = np.isin(np.arange(len(table)), index)[:, None]
    return np.where(named & (norms > max_norm), table * (max_norm / (norms + 1e-7)), table)


TENSOR: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        sum_to, expand_to, restore_dims, expand_reduced, drop_dim, split_like, mT, mH, zeros, ones, full, cast,
        strong_mul, matmul, reshape, transpose, permute,
        unsqueeze, flip, sum_dims, cumsum, gather, scatter_add, tril, triu, shorten_rows,
    )
}  # fmt: skip


def reduced_count(sizes: Any, dim: Any) -> Any:
    """How many elements one element of a reduction of `sizes` over dim stands for."""
    return math.prod(sizes[d] for d in _dims(dim, len(sizes)))


def negative(dims: Dims) -> Any:
    """Every number with the opposite sign."""
    return tuple(-d for d in dims)


def dims_of(dim: Any) -> Any:
    """An optional dimension as a list: empty (all) for None."""
    return () if dim is None else (dim,)


def flatten_shape(sizes: Dims, start: int, end: int) -> Any:
    """Sizes with the dimensions from start to end merged."""
    return _flatten(tuple(sizes), start, end)


def tile_shape(sizes: Dims, repeats: Dims) -> Any:
    """Sizes of a repeated tensor with each repeat as a dimension of its own before the size it repeats."""
    lead = len(repeats) - len(sizes)
    return tuple(v for r, n in zip(repeats, (*(1,) * lead, *sizes), strict=True) for v in (r, n))


def tile_dims(sizes: Dims, repeats: Dims) -> Any:
    """The dimensions of tile_shape that count repeats, and the leading ones sizes has not."""
    lead = len(repeats) - len(sizes)
    return tuple(d for i in range(len(repeats)) for d in ((2 * i, 2 * i + 1) if i < lead else (2 * i,)))


def trailing_pads(small: Dims, large: Dims) -> Any:
    """Padding after each dimension that brings `small` to `large`, last dimension first."""
    return tuple(v for a, b in zip(reversed(small), reversed(large), strict=True) for v in (0, b - a))


def along_shape(sizes: Dims, other: Dims, dim: int) -> Any:
    """Sizes broadcast with other's in every dimension but dim, which stays."""
    import numpy as np

    at = dim % len(sizes)
    return tuple(
        s if i == at else int(np.broadcast_shapes((s,), (o,))[0])
        for i, (s, o) in enumerate(zip(sizes, other, strict=True))
    )


def broadcast_shape(a: Dims, b: Dims) -> Any:
    """Sizes that both broadcast to."""
    import numpy as np

    return tuple(np.broadcast_shapes(tuple(a), tuple(b)))


def dtype_or(dtype: Any, x: Any) -> Any:
    """dtype, or x's where it is None."""
    import numpy as np

    return np.asarray(x).dtype if dtype is None else dtype


def is_contiguous(x: Any) -> Any:
    """Whether the elements lie in order without gaps."""
    return x.flags["C_CONTIGUOUS"]


def class_dim(sizes: Dims) -> Any:
    """The dimension of classes of a loss's scores: 1, or 0 of a vector."""
    return 0 if len(sizes) == 1 else 1


def class_shape(sizes: Dims) -> Any:
    """Sizes that let a vector over classes broadcast against scores of `sizes`."""
    at = class_dim(sizes)
    return tuple(s if i == at else 1 for i, s in enumerate(sizes))


def reduction_code(reduction: str) -> Any:
    """0, 1, 2 for none, mean, sum."""
    return {"none": 0, "mean": 1, "sum": 2}[reduction]


def is_floating(x: Any) -> Any:
    """Whether the elements are floating-point numbers."""
    import numpy as np

    return np.issubdtype(np.asarray(x).dtype, np.floating)


def is_complex(dtype: Any) -> Any:
    """Whether a dtype is complex."""
    import numpy as np

    return np.issubdtype(dtype, np.complexfloating)


def last_dims(n: int) -> Any:
    """The last n dimensions."""
    return tuple(range(-n, 0))


def other_dims(n: int) -> Any:
    """Every dimension of n but that of channels, the second."""
    return tuple(i for i in range(n) if i != 1)


def channel_sizes(channels: int, n: int) -> Any:
    """Sizes of a vector over channels before n dimensions of space."""
    return (channels, *(1,) * n)


def fft_dims(dim: Any, s: Any, n: int) -> Any:
    """The dimensions a Fourier transform runs over: the last len(s), or all, where none are given."""
    return tuple(dim) if dim is not None else tuple(range(n - len(s) if s else 0, n))


def fft_sizes(sizes: Dims, dim: Dims, s: Any) -> Any:
    """Lengths of a transform: those of s, the tensor's own where s has none or says -1."""
    return tuple(sizes[d] if not s or s[i] == -1 else s[i] for i, d in enumerate(dim))


def flip_norm(norm: Any) -> Any:
    """The norm with which the opposite transform has the same factor."""
    return "ortho" if norm == "ortho" else "backward" if norm == "forward" else "forward"


def halves(sizes: Dims) -> Any:
    """Half of every size, rounded down."""
    return tuple(n // 2 for n in sizes)


def first_sizes(sizes: Dims, n: int) -> Any:
    """The first n items; all but the last -n for a negative n."""
    return tuple(sizes[:n])


def last_sizes(sizes: Dims, n: int) -> Any:
    """The items from number n on; counted from the end for a negative n."""
    return tuple(sizes[n:])


def product_of(sizes: Dims) -> Any:
    """The product of all items."""
    return math.prod(sizes)


def joined(a: Dims, b: Dims) -> Any:
    """Both lists, one after the other."""
    return (*a, *b)


def without_dims(n: int, dim: Any) -> Any:
    """Every dimension of n but those of dim."""
    gone = {d % n for d in dim or ()}
    return tuple(i for i in range(n) if i not in gone)


def epsilon(dtype: Any) -> Any:
    """The distance from 1 to the next number of a dtype."""
    import numpy as np

    return float(np.finfo(dtype).eps)


def first_of_size(sizes: Dims, n: int) -> Any:
    """The first dimension of a size; as many as there are where none has it."""
    return next((i for i, s in enumerate(sizes) if s == n), len(sizes))


def within_sizes(sizes: Dims, least: int) -> Any:
    """Whether no size is below the least."""
    return all(s >= least for s in sizes)


def wrap_dim(dim: int, n: int) -> Any:
    """A dimension counted from the front; one that is out of range is an IndexError."""
    if not -max(n, 1) <= dim < max(n, 1):
        raise IndexError(f"dimension {dim} is out of range for {n} dimensions")
    return dim % max(n, 1)


def per_dim(given: Any, n: int) -> Any:
    """One number for each of n dimensions, of one for all or one each."""
    given = (given,) if isinstance(given, int) else tuple(given)
    return given * n if len(given) == 1 else given


def starts(lengths: Dims) -> Any:
    """Where pieces of these lengths begin, and where the last one ends."""
    return tuple(sum(lengths[:k]) for k in range(len(lengths) + 1))


def kept_sizes(given: Any, sizes: Dims) -> Any:
    """The given sizes, a tensor's own in place of None."""
    given = (given,) * len(sizes) if isinstance(given, int) else tuple(given)
    return tuple(s if g is None else g for g, s in zip(given, sizes, strict=True))


def resized(sizes: Dims, size: Any, scale: Any) -> Any:
    """The size of interpolation: the given one, or sizes times a factor or one each."""
    if size is not None:
        return tuple(size) * (len(sizes) // len(size))
    factors = scale if isinstance(scale, (tuple, list)) else (scale,) * len(sizes)
    return tuple(math.floor(s * f) for s, f in zip(sizes, factors, strict=True))


def kept_scales(n: int, scale: Any, recompute: bool) -> Any:
    """The factors of interpolation, none where sizes say them."""
    return () if scale is None or recompute else scale if isinstance(scale, (tuple, list)) else (scale,) * n


def unpool_sizes(natural: Dims, step: Dims, wanted: Any) -> Any:
    """The last of the wanted sizes, each less than a step away from the natural one."""
    return tuple(wanted)[-len(natural) :]


def is_whole(dtype: Any) -> Any:
    """Whether a dtype holds whole numbers; bool is none."""
    import numpy as np

    return np.issubdtype(dtype, np.integer)


def real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of complex numbers; other dtypes as they are."""
    import numpy as np

    return np.empty(0, dtype).real.dtype


def floating_dtype(dtype: Any) -> Any:
    """The dtype, or the default one of floats for whole numbers and bool."""
    import numpy as np

    return dtype if np.issubdtype(dtype, np.inexact) else np.float64


def default_dtype() -> Any:
    """The dtype of new tensors of floats."""
    import numpy as np

    return np.float64


def largest_of(dtype: Any) -> Any:
    """The largest finite number of a floating or complex dtype."""
    import numpy as np

    return float(np.finfo(dtype).max) if np.issubdtype(dtype, np.inexact) else 0.0


def whole_limit(dtype: Any) -> Any:
    """The end of the whole numbers that a dtype holds without gaps."""
    import numpy as np

    return 2**53 if np.issubdtype(dtype, np.floating) else int(np.iinfo(dtype).max)


def broadcast_sizes(tensors: Any) -> Any:
    """The size that tensors have together."""
    import numpy as np

    return tuple(np.broadcast_shapes(*(np.shape(x) for x in tensors)))


def odd_one(tensors: Any, least: int, most: int) -> Any:
    """The first tensor with less or more dimensions; -1 where there is none."""
    import numpy as np

    return next((i for i, x in enumerate(tensors) if not least <= np.ndim(x) <= most), -1)


def first_unlike(tensors: Any) -> Any:
    """The first tensor whose dtype is not the first one's; -1 where there is none."""
    return next((i for i, x in enumerate(tensors) if x.dtype != tensors[0].dtype), -1)


def readable(x: Any) -> Any:
    """Whether the elements can be read: not inside vmap."""
    return True


def within(x: Any, low: float, high: float) -> Any:
    """Whether every element lies between two numbers, both included; true where elements can't be read."""
    import numpy as np

    return bool(np.all((x >= low) & (x <= high)))


def least(x: Any) -> Any:
    """The smallest element."""
    import numpy as np

    return float(np.min(x))


def greatest(x: Any) -> Any:
    """The largest element."""
    import numpy as np

    return float(np.max(x))


META["range"] = range
META |= {
    f.__name__: f
    for f in (
        fft_dims, fft_sizes, flip_norm, halves, first_sizes, last_sizes, product_of, joined, without_dims, epsilon,
        is_complex, last_dims, other_dims, channel_sizes, class_dim, class_shape, reduction_code, is_floating,
        invert_permutation, reduced_count, negative, dims_of, flatten_shape, tile_shape, tile_dims, trailing_pads,
        along_shape, broadcast_shape, dtype_or, is_contiguous, first_of_size, within_sizes, wrap_dim, per_dim, starts,
        kept_sizes, resized, kept_scales, unpool_sizes, is_whole, real_dtype, floating_dtype, default_dtype,
        largest_of, whole_limit, broadcast_sizes, odd_one, first_unlike, readable, within, least, greatest,
    )
}  # fmt: skip

# ---- shape rules: shapes and plain values in, a shape out -----------------------------------------------------------


class ShapeError(ValueError):
    """Sizes that do not fit."""


def _broadcast(*shapes: Dims) -> tuple[int, ...]:
    import numpy as np

    return tuple(np.broadcast_shapes(*(tuple(s) for s in shapes)))


def _reduce(x: Dims, dim: Any = None, keepdim: bool = False) -> tuple[int, ...]:
    gone = set(_dims(dim, len(x)))
    return tuple(1 if i in gone else s for i, s in enumerate(x) if keepdim or i not in gone)


def _matmul(a: Dims, b: Dims) -> tuple[int, ...]:
    left, right = (1, *a) if len(a) == 1 else tuple(a), (*b, 1) if len(b) == 1 else tuple(b)
    if left[-1] != right[-2]:
        raise ShapeError(f"inner sizes differ: {left[-1]} and {right[-2]}")
    rows = () if len(a) == 1 else (left[-2],)
    cols = () if len(b) == 1 else (right[-1],)
    return (*_broadcast(left[:-2], right[:-2]), *rows, *cols)


def _reshape(x: Dims, sizes: Any) -> tuple[int, ...]:
    out = list((sizes,) if isinstance(sizes, int) else sizes)
    if -1 in out:
        rest = -math.prod(out)
        out[out.index(-1)] = math.prod(x) // rest if rest else 0
    if math.prod(out) != math.prod(x):
        raise ShapeError(f"{tuple(x)} does not reshape to {tuple(sizes)}")
    return tuple(out)


def _expand(x: Dims, sizes: Dims) -> tuple[int, ...]:
    lead = len(sizes) - len(x)
    return tuple(x[i - lead] if s == -1 else s for i, s in enumerate(sizes))


def _swap(x: Dims, a: int, b: int) -> tuple[int, ...]:
    out = list(x)
    if out:
        out[a], out[b] = out[b], out[a]
    return tuple(out)


def _squeeze(x: Dims, dim: Any = None) -> tuple[int, ...]:
    gone = _dims(dim, len(x))
    return tuple(s for i, s in enumerate(x) if s != 1 or i not in gone)


def _unsqueeze(x: Dims, dim: int) -> tuple[int, ...]:
    at = dim + len(x) + 1 if dim < 0 else dim
    return (*x[:at], 1, *x[at:])


def _flatten(x: Dims, start: int = 0, end: int = -1) -> tuple[int, ...]:
    if not x:
        return (1,)
    a, b = start % len(x), end % len(x)
    return (*x[:a], math.prod(x[a : b + 1]), *x[b + 1 :])


def _without(x: Dims, dim: int, *_: Any) -> tuple[int, ...]:
    at = dim % len(x)
    return (*x[:at], *x[at + 1 :])


def _with(x: Dims, dim: int, n: int) -> tuple[int, ...]:
    at = dim % len(x) if x else 0
    return (*x[:at], n, *x[at + 1 :])


def _slice(x: Dims, dim: int, start: Any = None, end: Any = None, step: int = 1) -> tuple[int, ...]:
    return _with(x, dim, len(range(*slice(start, end, step).indices(x[dim]))))


def _cat(tensors: Sequence[Dims], dim: int = 0) -> tuple[int, ...]:
    kept = [s for s in tensors if tuple(s) != (0,)] or [tensors[0]]
    return _with(kept[0], dim, sum(s[dim] for s in kept))


def _stack(tensors: Sequence[Dims], dim: int = 0) -> tuple[int, ...]:
    x = tensors[0]
    at = dim + len(x) + 1 if dim < 0 else dim
    return (*x[:at], len(tensors), *x[at:])


def _repeat(x: Dims, repeats: Dims) -> tuple[int, ...]:
    lead = len(repeats) - len(x)
    return tuple(r * s for r, s in zip(repeats, (*(1,) * lead, *x), strict=True))


def _pad(x: Dims, pad: Dims) -> tuple[int, ...]:
    out = list(x)
    for i in range(len(pad) // 2):
        out[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    return tuple(out)


def _split(x: Dims, size: Any, dim: int = 0) -> Any:
    n = x[dim]
    parts = [min(size, n - i) for i in range(0, n, size)] or [0] if isinstance(size, int) else list(size)
    return tuple(_with(x, dim, p) for p in parts)


def _arange(start: float, end: Any = None, step: float = 1) -> tuple[int, ...]:
    a, b = (0, start) if end is None else (start, end)
    return (max(0, math.ceil((b - a) / step)),)


SHAPES: dict[str, Callable[..., Any]] = {
    "same": lambda x: tuple(x),
    "broadcast": _broadcast,
    "reduce": _reduce,
    "matmul": _matmul,
    "reshape": _reshape,
    "expand": _expand,
    "permute": lambda x, dims: tuple(x[d] for d in dims),
    "swap_dims": _swap,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "flatten": _flatten,
    "select": _without,
    "slice": _slice,
    "narrow": lambda x, dim, start, length: _with(x, dim, length),
    "cat": _cat,
    "stack": _stack,
    "repeat": _repeat,
    "pad": _pad,
    "split": _split,
    "unbind": lambda x, dim=0: (_without(x, dim),) * x[dim],
    "index_select": lambda x, dim, index: _with(x, dim, math.prod(index)),
    "resize_dim": _with,
    "append_dim": lambda x, n: (*x, n),
    "concat": lambda *parts: tuple(s for p in parts for s in ((p,) if isinstance(p, int) else p)),
    "outer": lambda a, b: (a[0], b[0]),
    "linear": lambda x, weight: (*x[:-1], *weight[:-1]),
    "sizes": lambda size: (size,) if isinstance(size, int) else tuple(size),
    "scalar": lambda: (),
    "arange": _arange,
    "eye": lambda n, m=None: (n, n if m is None else m),
}


@cache
def parameters(f: Callable[..., Any]) -> tuple[int, int, tuple[str, ...]]:
    """(least, most, names) of a table function; most is -1 for any number."""
    try:
        ps = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return 1, 1, ()
    if any(p.kind is p.VAR_POSITIONAL for p in ps):
        return sum(p.kind is not p.VAR_POSITIONAL and p.default is p.empty for p in ps), -1, ()
    return sum(p.default is p.empty for p in ps), len(ps), tuple(p.name for p in ps)
