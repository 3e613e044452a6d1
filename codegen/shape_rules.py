"""The shape rules of `shape:`: sizes and plain values in, sizes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Dims = Sequence[int]


def dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """dim as a tuple of axes in [0, ndim); None and () mean all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    items = (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(int(d) + ndim if d < 0 else int(d) for d in items)


class ShapeError(ValueError):
    """Sizes that do not fit."""


def _broadcast(*shapes: Dims) -> tuple[int, ...]:
    import numpy as np

    return tuple(np.broadcast_shapes(*(tuple(s) for s in shapes)))


def _reduce(x: Dims, dim: Any = None, keepdim: bool = False) -> tuple[int, ...]:
    gone = set(dims(dim, len(x)))
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
    gone = dims(dim, len(x))
    return tuple(s for i, s in enumerate(x) if s != 1 or i not in gone)


def _unsqueeze(x: Dims, dim: int) -> tuple[int, ...]:
    at = dim + len(x) + 1 if dim < 0 else dim
    return (*x[:at], 1, *x[at:])


def flatten(x: Dims, start: int = 0, end: int = -1) -> tuple[int, ...]:
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
    "flatten": flatten,
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
