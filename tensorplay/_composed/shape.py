"""Grids, products and combinations of tensors, splits, block matrices, differences and integrals along a line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import tensorplay as tp

from .reading import need_values, readable

Tensor = Any


def _given(op: str, tensors: Sequence[Any]) -> list[Tensor]:
    """Tensors that came one by one or as one list."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    for i, x in enumerate(tensors):
        if not isinstance(x, tp.Tensor):
            raise TypeError(f"{op}: argument {i} must be a Tensor, not {type(x).__name__}")
    return list(tensors)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    xs = _given("broadcast_tensors", tensors)
    sizes = tp.broadcast_shapes(*(x.shape for x in xs))
    return tuple(x.expand(sizes) for x in xs)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    xs = _given("meshgrid", tensors)
    if indexing not in (None, "ij", "xy"):
        raise ValueError(f"meshgrid: indexing='{indexing}' is not 'ij' or 'xy'")
    if not xs:
        raise ValueError("meshgrid: needs at least one tensor")
    for i, x in enumerate(xs):
        if x.ndim > 1:
            raise ValueError(f"meshgrid: argument {i} has sizes {list(x.shape)}; only vectors and numbers make a grid")
        if x.dtype != xs[0].dtype:
            raise TypeError(f"meshgrid: argument {i} is {x.dtype}, the first {xs[0].dtype}; all need one dtype")
    swap = indexing == "xy" and len(xs) > 1
    if swap:
        xs[:2] = xs[1::-1]
    sizes = [x.numel() for x in xs]
    out = [x.reshape([-1 if i == k else 1 for i in range(len(xs))]).expand(sizes) for k, x in enumerate(xs)]
    if swap:
        out[:2] = out[1::-1]
    return tuple(out)


def cartesian_prod(*tensors: Any) -> Tensor:
    xs = _given("cartesian_prod", tensors)
    for i, x in enumerate(xs):
        if x.ndim != 1:
            raise ValueError(f"cartesian_prod: argument {i} has sizes {list(x.shape)}; a vector is needed")
    if len(xs) == 1:
        return xs[0]
    return tp.stack([x.reshape([-1]) for x in meshgrid(*xs)], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    if input.ndim != 1:
        raise ValueError(f"combinations: input has sizes {list(input.shape)}; a vector is needed")
    if r < 0:
        raise ValueError(f"combinations: r={r} is negative")
    if r == 0:
        return tp.empty([0], dtype=input.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(len(input)), r))
    if not rows:
        return input[:0].reshape([0, 1]).expand([0, r])
    return input.index_select(0, tp.tensor(rows).reshape([-1])).reshape([len(rows), r])


def block_diag(*tensors: Any) -> Tensor:
    xs = _given("block_diag", tensors)
    if not xs:
        return tp.empty([1, 0])
    for i, x in enumerate(xs):
        if x.ndim > 2:
            raise ValueError(f"block_diag: argument {i} has sizes {list(x.shape)}; blocks have at most 2 dimensions")
    xs = [x.reshape([1, -1]) if x.ndim < 2 else x for x in xs]
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = tp.promote_types(dtype, x.dtype)
    width, at, rows = sum(x.shape[1] for x in xs), 0, []
    for x in xs:
        rows.append(tp.constant_pad_nd(x.to(dtype), [at, width - at - x.shape[1]]))
        at += x.shape[1]
    return tp.cat(rows, 0)


def _split(op: str, input: Tensor, indices_or_sections: Any, dim: int, need: int) -> tuple[Tensor, ...]:
    if input.ndim < need:
        raise ValueError(f"{op}: needs at least {need} dimension{'s' * (need > 1)}, got sizes {list(input.shape)}")
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        if n < 1 or input.shape[dim] % n:
            raise ValueError(f"{op}: dimension {dim} of size {input.shape[dim]} is not divisible into {n} parts")
    return tuple(input.tensor_split(indices_or_sections, dim))


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    return _split("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1, 1)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    return _split("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    return _split("dsplit", input, indices_or_sections, 2, 3)


def _spaced(op: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    """Areas of the trapezoids between neighbours along dim, twice."""
    n = y.shape[dim]
    sums = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)
    if x is None:
        return sums * (1 if dx is None else dx)
    if dx is not None:
        raise TypeError(f"{op}: x and dx both give the spacing; drop one")
    if x.ndim == 1:
        if len(x) != n:
            raise ValueError(f"{op}: x holds {len(x)} points for {n} values along dim {dim}")
        x = x.reshape([-1 if i == dim % y.ndim else 1 for i in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape([*(1,) * (y.ndim - x.ndim), *x.shape])
    m = x.shape[dim]
    return sums * (x.narrow(dim, 1, m - 1) - x.narrow(dim, 0, m - 1))


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    if y.shape[dim] == 0:
        return y.sum(dim) * 1.0
    return _spaced("trapezoid", y, x, dx, dim).sum(dim) / 2


def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    if y.shape[dim] == 0:
        return y * 1.0
    return _spaced("cumulative_trapezoid", y, x, dx, dim).cumsum(dim) / 2


def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> list[Tensor]:
    dims = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order={edge_order} is not 1 or 2")
    if isinstance(spacing, (list, tuple)):
        steps = list(spacing)
        if len(steps) != len(dims):
            raise ValueError(f"gradient: {len(steps)} spacings for {len(dims)} dimensions")
    else:
        steps = [spacing] * len(dims)
    if not input.is_floating_point() and not input.is_complex():
        input = input.to(tp.get_default_dtype())
    return [_slopes(input, d % input.ndim, h, edge_order) for d, h in zip(dims, steps, strict=True)]


def _slopes(x: Tensor, dim: int, h: Any, edge_order: int) -> Tensor:
    n = x.shape[dim]
    if n < edge_order + 1:
        raise ValueError(f"gradient: dimension {dim} has size {n}; edge_order={edge_order} needs {edge_order + 1}")

    def at(i: int) -> Tensor:
        return x.narrow(dim, i, 1)

    if isinstance(h, tp.Tensor) and h.ndim == 1:
        if len(h) != n:
            raise ValueError(f"gradient: {len(h)} coordinates for dimension {dim} of size {n}")
        steps = (h[1:] - h[:-1]).reshape([-1 if i == dim else 1 for i in range(x.ndim)])
    else:
        steps = None

    def step(i: int) -> Any:
        return h if steps is None else steps.narrow(dim, i, 1)

    if n > 2:
        low, mid, high = (x.narrow(dim, i, n - 2) for i in range(3))
        if steps is None:
            inner = (high - low) / (2 * h)
        else:
            a, b = steps.narrow(dim, 0, n - 2), steps.narrow(dim, 1, n - 2)
            inner = -b / (a * (a + b)) * low + (b - a) / (a * b) * mid + a / (b * (a + b)) * high
    if edge_order == 1:
        first, last = (at(1) - at(0)) / step(0), (at(n - 1) - at(n - 2)) / step(n - 2)
    else:
        a, b = step(0), step(1)
        first = -(2 * a + b) / (a * (a + b)) * at(0) + (a + b) / (a * b) * at(1) - a / (b * (a + b)) * at(2)
        a, b = step(n - 3), step(n - 2)
        last = b / (a * (a + b)) * at(n - 3) - (a + b) / (a * b) * at(n - 2) + (2 * b + a) / (b * (a + b)) * at(n - 1)
    return tp.cat([first, inner, last] if n > 2 else [first, last], dim)


def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    if repeats is None:
        # One tensor: how often each of its places is repeated.
        if input.ndim != 1 or input.is_floating_point() or input.is_complex():
            raise ValueError(
                f"repeat_interleave: repeats must be a vector of whole numbers, got {input.dtype} {list(input.shape)}"
            )
        return _places(input, output_size)
    if dim is None:
        input, dim = input.reshape([-1]), 0
    if output_size is not None and not readable(repeats) and repeats.numel() == 1 and input.ndim:
        repeats = repeats.reshape([1]).expand([input.shape[dim]])
    elif isinstance(repeats, int) or repeats.numel() == 1:
        need_values("repeat_interleave", "repeats", repeats, "the size of the result")
        k = int(repeats) if isinstance(repeats, int) else int(repeats.reshape([]).item())
        if k < 0:
            raise ValueError(f"repeat_interleave: repeats={k} is negative")
        dim = dim % max(input.ndim, 1)
        if input.ndim == 0:
            return input.reshape([1]).expand([k]).clone()
        shape = list(input.shape)
        wide = input.unsqueeze(dim + 1).expand([*shape[: dim + 1], k, *shape[dim + 1 :]])
        return wide.reshape([*shape[:dim], shape[dim] * k, *shape[dim + 1 :]])
    if repeats.ndim != 1 or len(repeats) != input.shape[dim]:
        raise ValueError(
            f"repeat_interleave: {list(repeats.shape)} repeats for dimension {dim} of size {input.shape[dim]}"
        )
    return input.index_select(dim, _places(repeats, output_size))


def _places(repeats: Tensor, output_size: int | None) -> Tensor:
    if not readable(repeats):
        if output_size is None:
            need_values("repeat_interleave", "repeats", repeats, "without output_size the size of the result")
        return tp.searchsorted(repeats.to(tp.int64).cumsum(0), tp.arange(output_size), right=True)
    if repeats.numel() and int(repeats.min().item()) < 0:
        raise ValueError(f"repeat_interleave: repeats has the negative element {int(repeats.min().item())}")
    ends = repeats.to(tp.int64).cumsum(0)
    total = int(ends[-1].item()) if len(repeats) else 0
    if output_size is not None and output_size != total:
        raise ValueError(f"repeat_interleave: output_size={output_size}, but the repeats add up to {total}")
    return tp.searchsorted(ends, tp.arange(total), right=True)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    sizes = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == tp.bool:
        raise TypeError(f"unravel_index: indices must be whole numbers, not {indices.dtype}")
    total = math.prod(sizes)
    if (
        indices.numel()
        and readable(indices)
        and not (int(indices.min().item()) >= 0 and int(indices.max().item()) < total)
    ):
        raise ValueError(f"unravel_index: an index is out of range for sizes {sizes}, which hold {total} elements")
    out = []
    for n in reversed(sizes):
        out.append(indices % n if n else indices)
        indices = indices // n if n else indices
    return tuple(reversed(out))


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    if n < 0:
        raise ValueError(f"diff: n={n} is negative")
    if input.ndim == 0:
        raise ValueError("diff: needs at least one dimension, got a 0-d tensor")
    if n == 0:
        return input
    parts = [x for x in (prepend, input, append) if x is not None]
    x = tp.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        m = x.shape[dim]
        if m == 0:
            break
        low, high = x.narrow(dim, 0, m - 1), x.narrow(dim, 1, m - 1)
        x = high ^ low if x.dtype == tp.bool else high - low
    return x
