"""NumPy forms of what structured formulas call (`vjp`, `tangent`, `compose`): tensors here, sizes, dtypes and values in
`facts.py`. Add one, and it may be used: its parameters are its arity. Ops of the file are callable too; the checker
evaluates them by `like`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from .facts import FACTS
from .shape_rules import Dims
from .shape_rules import dims as _dims

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
META |= FACTS
META["len"] = len
META["range"] = range

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
