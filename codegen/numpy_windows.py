"""Plain NumPy forms of windows over space (pooling and back, columns, convolution by name): references for `check`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from .numpy_nn import convolution, convolution_input_slope

Array = Any
Dims = Sequence[int]
Window = tuple[tuple[int, ...], list[tuple[int, ...]]]  # a place in the output, the places of the input it sees


# ---- pooling --------------------------------------------------------------------------------------------------------


def _length(n: int, kernel: int, stride: int, pad: int, dilation: int, ceil: bool) -> int:
    span = n + 2 * pad - dilation * (kernel - 1) - 1
    length = (span + (stride - 1 if ceil else 0)) // stride + 1
    # A window that would begin in the padding at the far end is left out.
    return length - 1 if ceil and (length - 1) * stride >= n + pad else length


def _product(ranges: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = [()]
    for r in ranges:
        out = [(*head, i) for head in out for i in r]
    return out


def _windows(size: Dims, kernel: Dims, stride: Dims, padding: Dims, dilation: Dims, ceil: bool) -> Iterator[Window]:
    axes = [
        [[o * s - p + k * d for k in range(w)] for o in range(_length(n, w, s, p, d, ceil))]
        for n, w, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]
    for at in _product([range(len(a)) for a in axes]):
        yield at, _product([a[i] for a, i in zip(axes, at, strict=True)])


def _adaptive(size: Dims, output: Dims) -> Iterator[Window]:
    axes = [[range(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(size, output, strict=True)]
    for at in _product([range(len(a)) for a in axes]):
        yield at, _product([a[i] for a, i in zip(axes, at, strict=True)])


def _inside(places: list[tuple[int, ...]], size: Dims) -> list[tuple[int, ...]]:
    return [p for p in places if all(0 <= i < n for i, n in zip(p, size, strict=True))]


def _extent(windows: list[Window]) -> tuple[int, ...]:
    return tuple(i + 1 for i in windows[-1][0])


def _max_of(x: Array, windows: list[Window], space: int) -> tuple[Array, Array]:
    size = x.shape[-space:]
    lead = x.shape[:-space]
    out: Array = np.empty(lead + _extent(windows), dtype=x.dtype)
    indices: Array = np.empty(out.shape, dtype=np.int64)
    for at, places in windows:
        seen = _inside(places, size)
        values = np.stack([x[(..., *p)] for p in seen], axis=-1)
        best = values.argmax(axis=-1)
        out[(..., *at)] = values.max(axis=-1)
        indices[(..., *at)] = np.array([np.ravel_multi_index(p, size) for p in seen])[best]
    return out, indices


def max_pool(x: Array, kernel: Dims, stride: Dims, padding: Dims, dilation: Dims, ceil: bool) -> tuple[Array, Array]:
    space = len(kernel)
    return _max_of(x, list(_windows(x.shape[-space:], kernel, stride, padding, dilation, ceil)), space)


def adaptive_max_pool(x: Array, output: Dims) -> tuple[Array, Array]:
    return _max_of(x, list(_adaptive(x.shape[-len(output) :], output)), len(output))


def _divisor(places: list[tuple[int, ...]], size: Dims, padding: Dims, count_pad: bool, override: int | None) -> int:
    if override is not None:
        return override
    if not count_pad:
        return len(_inside(places, size))
    # What lies beyond the declared padding (a window cut off by ceil_mode) does not count.
    return len([p for p in places if all(i < n + q for i, n, q in zip(p, size, padding, strict=True))])


def _averages(
    size: Dims, kernel: Dims, stride: Dims, padding: Dims, ceil: bool, count_pad: bool, override: int | None = None
) -> list[tuple[tuple[int, ...], list[tuple[int, ...]], int]]:
    windows = _windows(size, kernel, stride, padding, (1,) * len(kernel), ceil)
    return [(at, _inside(p, size), _divisor(p, size, padding, count_pad, override)) for at, p in windows]


def _means(x: Array, windows: list[Any], space: int) -> Array:
    out = np.zeros(x.shape[:-space] + _extent([(at, places) for at, places, _ in windows]))
    for at, places, n in windows:
        out[(..., *at)] = sum(x[(..., *p)] for p in places) / n
    return out


def _spread(grad: Array, size: Dims, windows: list[Any]) -> Array:
    out = np.zeros(tuple(size))
    for at, places, n in windows:
        for p in places:
            out[(..., *p)] += grad[(..., *at)] / n
    return out


def avg_pool(x: Array, kernel: Dims, *rest: Any) -> Array:
    space = len(kernel)
    return _means(x, _averages(x.shape[-space:], kernel, *rest), space)


def avg_pool_slope(grad: Array, size: Dims, kernel: Dims, *rest: Any) -> Array:
    return _spread(grad, size, _averages(tuple(size)[-len(kernel) :], kernel, *rest))


def adaptive_avg_pool(x: Array, output: Dims) -> Array:
    space = len(output)
    return _means(x, [(at, p, len(p)) for at, p in _adaptive(x.shape[-space:], output)], space)


def adaptive_avg_pool_slope(space: int, grad: Array, size: Dims) -> Array:
    output = grad.shape[-space:]
    return _spread(grad, size, [(at, p, len(p)) for at, p in _adaptive(tuple(size)[-space:], output)])


def _own_stride(f: Callable[..., Any], x: Array, kernel: Dims, stride: Dims | None, *rest: Any) -> Any:
    return f(x, kernel, kernel if stride is None else stride, *rest)


# ---- columns and transposed convolution -----------------------------------------------------------------------------


def patches(x: Array, kernel: Dims, dilation: Dims, padding: Dims, stride: Dims) -> Array:
    windows = list(_windows(x.shape[-2:], kernel, stride, padding, dilation, False))
    columns = []
    for _, places in windows:
        seen = set(_inside(places, x.shape[-2:]))
        outside: Array = np.zeros(x.shape[:-2])
        columns.append(np.stack([x[(..., *p)] if p in seen else outside for p in places], axis=-1))
    out = np.stack(columns, axis=-1)  # [..., C, kernel, blocks]
    return out.reshape(*out.shape[:-3], -1, out.shape[-1])


def fold_patches(x: Array, output: Dims, kernel: Dims, dilation: Dims, padding: Dims, stride: Dims) -> Array:
    taps = int(np.prod(kernel))
    blocks: Array = x.reshape(*x.shape[:-2], -1, taps, x.shape[-1])
    out: Array = np.zeros((*blocks.shape[:-2], *output), dtype=x.dtype)
    for b, (_, places) in enumerate(_windows(output, kernel, stride, padding, dilation, False)):
        for k, p in enumerate(places):
            if p in _inside([p], output):
                out[(..., *p)] += blocks[..., k, b]
    return out


def conv_transpose(
    x: Array, w: Array, b: Array | None, stride: Dims, padding: Dims, output_padding: Dims, groups: int, dilation: Dims
) -> Array:
    space = w.ndim - 2
    window = zip(x.shape[-space:], w.shape[2:], stride, padding, output_padding, dilation, strict=True)
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + q + 1 for n, k, s, p, q, d in window]
    size = (*x.shape[: -space - 1], w.shape[1] * groups, *sizes)
    out = convolution_input_slope(x, w, size, stride, padding, dilation, groups)
    return out if b is None else out + np.reshape(b, (-1, *(1,) * space))


# ---- what pooling found, put back ------------------------------------------------------------------------------------


def unpool(x: Array, indices: Array, size: Dims) -> Array:
    """Every plane empty but for the elements at their places in row-major order."""
    lead = np.shape(x)[: -len(size)]
    out: Array = np.zeros((*lead, *size))
    for plane in np.ndindex(*lead):
        out[plane].reshape(-1)[np.ravel(indices[plane])] = np.ravel(x[plane])
    return out


def max_unpool(x: Array, indices: Array, kernel: Any, stride: Any, padding: Any, output_size: Dims | None) -> Array:
    kernel = tuple(kernel)
    space = len(kernel)
    step = tuple(stride) if stride else kernel
    pads = (padding,) * space if isinstance(padding, int) else tuple(padding)
    if output_size is not None:
        return unpool(x, indices, tuple(output_size)[-space:])
    sizes = zip(np.shape(x)[-space:], kernel, step, pads, strict=True)
    return unpool(x, indices, tuple((n - 1) * s - 2 * p + k for n, k, s, p in sizes))


# ---- convolution by the names users call -----------------------------------------------------------------------------


def _each_dim(f: Callable[..., Array], numbers: Sequence[int]) -> Callable[..., Array]:
    """f with the arguments at these places given as one number a dimension of space."""

    def call(x: Array, w: Array, *rest: Any) -> Array:
        full = [(v,) * (w.ndim - 2) if i in numbers and isinstance(v, int) else v for i, v in enumerate(rest)]
        return f(x, w, *full)

    return call


def lp_pool(x: Array, order: float, kernel: Dims, stride: Dims | None = None, ceil_mode: bool = False) -> Array:
    space = len(kernel)
    if math.isinf(order):
        return max_pool(np.abs(x), kernel, stride or kernel, (0,) * space, (1,) * space, ceil_mode)[0]
    # A window cut off at the end counts as the whole one that its elements stand for.
    means = avg_pool(x**order, kernel, stride or kernel, (0,) * space, ceil_mode, True, None)
    return (means * math.prod(kernel)) ** (1 / order)


def _own_size(x: Array, output: Sequence[int | None]) -> Array:
    sizes = x.shape[-len(output) :]
    return adaptive_avg_pool(x, [n if m is None else m for n, m in zip(sizes, output, strict=True)])


OPS: dict[str, Callable[..., Any]] = {
    "convolution_other": convolution,
    "convolution_mode_other": convolution,
    "conv_transpose_other": conv_transpose,
    "unpool": unpool,
}
for _n in (1, 2, 3):
    OPS |= {
        f"conv{_n}d": _each_dim(convolution, (1, 2, 3)),
        f"conv_transpose{_n}d": _each_dim(conv_transpose, (1, 2, 3, 5)),
        f"max_unpool{_n}d": max_unpool,
        f"adaptive_avg_pool{_n}d": _own_size,
        f"max_pool{_n}d": lambda *a: _own_stride(max_pool, *a[:6]),
        f"avg_pool{_n}d": partial(_own_stride, avg_pool),
        f"lp_pool{_n}d": lp_pool,
        f"adaptive_max_pool{_n}d": lambda *a: adaptive_max_pool(*a[:2]),
        f"adaptive_avg_pool{_n}d_backward": partial(adaptive_avg_pool_slope, _n),
    }
KERNELS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        max_pool, adaptive_max_pool, avg_pool, avg_pool_slope, adaptive_avg_pool, patches, fold_patches, conv_transpose,
    )
}  # fmt: skip
