"""Plain NumPy forms of kernels that NumPy and SciPy have no function for: references for `check`, by kernel name.

Written from the documented meaning of each op, one slow loop or index expression at a time; never from the C++.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .numpy_grids import KERNELS as GRID_KERNELS
from .numpy_grids import OPS as GRID_OPS
from .numpy_linalg import KERNELS as LINALG_KERNELS
from .numpy_linalg import OPS as LINALG_OPS
from .numpy_nn import KERNELS as NN_KERNELS
from .numpy_nn import OPS as NN_OPS
from .numpy_places import KERNELS as PLACE_KERNELS
from .numpy_places import OPS as PLACE_OPS
from .numpy_random import KERNELS as RANDOM_KERNELS
from .numpy_random import OPS as RANDOM_OPS
from .numpy_signals import OPS as SIGNAL_OPS
from .numpy_windows import KERNELS as WINDOW_KERNELS
from .numpy_windows import OPS as WINDOW_OPS
from .structured import gather, scatter_add, sum_to

Array = Any
Dims = Sequence[int]


def _grid(index: Array, dim: int) -> tuple[Array, ...]:
    """Positions that index reads or writes: its own place, but for dim."""
    at = list(np.indices(index.shape, sparse=True))
    at[dim] = index
    return tuple(at)


def _corner(src: Array, index: Array) -> Array:
    return src[tuple(slice(0, n) for n in index.shape)] if np.ndim(src) else src


def scatter(x: Array, dim: int, index: Array, src: Array) -> Array:
    out = np.array(x)
    if out.ndim == 0:
        return np.array(src)
    out[_grid(np.asarray(index), dim)] = _corner(np.asarray(src), np.asarray(index))
    return out


def _scatter_op(x: Array, dim: int, index: Array, src: Array, reduce: str | None = None) -> Array:
    if reduce is None:
        return scatter(x, dim, index, src)
    whole = np.full(np.shape(index), src) if np.ndim(src) == 0 else src
    return PLACE_OPS["scatter_reduce"](x, dim, index, whole, {"add": "sum", "multiply": "prod"}[reduce])


def index_add(x: Array, dim: int, index: Array, source: Array, alpha: Any = 1) -> Array:
    out = np.array(x)
    moved = np.moveaxis(out, dim, 0)
    np.add.at(moved, np.asarray(index), alpha * np.moveaxis(np.asarray(source), dim, 0))
    return out


def _places(x: Array, indices: Sequence[Array | None]) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def index(x: Array, indices: Sequence[Array | None]) -> Array:
    return np.array(x[_places(x, indices)])


def index_put(x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False) -> Array:
    out = np.array(x)
    if accumulate:
        np.add.at(out, _places(x, indices), values)
    else:
        out[_places(x, indices)] = values
    return out


def masked_select_backward(grad: Array, mask: Array, size: Dims) -> Array:
    full = np.zeros(np.broadcast_shapes(tuple(size), np.shape(mask)), dtype=np.asarray(grad).dtype)
    full[np.broadcast_to(mask, full.shape)] = grad
    return sum_to(full, size)


def embedding_backward(grad: Array, input: Array, num_weights: int, padding_idx: int | None = None) -> Array:
    width = np.shape(grad)[-1]
    out = np.zeros((num_weights, width), dtype=np.asarray(grad).dtype)
    for row, g in zip(np.ravel(input), np.reshape(grad, (-1, width)), strict=True):
        if padding_idx is None or row != padding_idx % num_weights:
            out[row] += g
    return out


def select_backward(grad: Array, size: Dims, dim: int, index: int) -> Array:
    out = np.zeros(tuple(size), dtype=np.asarray(grad).dtype)
    np.moveaxis(out, dim, 0)[index] = grad
    return out


def slice_backward(grad: Array, size: Dims, dim: int, start: int | None, end: int | None, step: int) -> Array:
    out = np.zeros(tuple(size), dtype=np.asarray(grad).dtype)
    np.moveaxis(out, dim, 0)[start:end:step] = np.moveaxis(grad, dim, 0)
    return out


def diagonal_backward(grad: Array, size: Dims, offset: int, dim1: int, dim2: int) -> Array:
    out = np.zeros(tuple(size), dtype=np.asarray(grad).dtype)
    moved = np.moveaxis(out, (dim1, dim2), (-2, -1))
    for k in range(np.shape(grad)[-1]):
        moved[..., k + max(-offset, 0), k + max(offset, 0)] = np.asarray(grad)[..., k]
    return out


def _strided(size: Dims, stride: Dims, offset: int | None) -> Array:
    """Positions in memory of a strided view."""
    at = np.full(tuple(size), offset or 0)
    for d, (n, s) in enumerate(zip(size, stride, strict=True)):
        at = at + (np.arange(n) * s).reshape([-1 if i == d else 1 for i in range(len(size))])
    return at


def as_strided(x: Array, size: Dims, stride: Dims, storage_offset: int | None = None) -> Array:
    return np.ravel(x)[_strided(size, stride, storage_offset)]


def as_strided_backward(grad: Array, input_size: Dims, size: Dims, stride: Dims, storage_offset: int | None) -> Array:
    out = np.zeros(math.prod(input_size), dtype=np.asarray(grad).dtype)
    np.add.at(out, _strided(size, stride, storage_offset), grad)
    return out.reshape(tuple(input_size))


def view_bytes(x: Array, dtype: str) -> Array:
    from .reference import NP_DTYPE

    return np.ascontiguousarray(x).view(NP_DTYPE[dtype])


def as_strided_scatter(x: Array, src: Array, size: Dims, stride: Dims, storage_offset: int | None = None) -> Array:
    out = np.array(x).reshape(-1)
    out[_strided(size, stride, storage_offset)] = src
    return out.reshape(np.shape(x))


def _pad_widths(x_ndim: int, pad: Dims) -> list[tuple[int, int]]:
    """(before, after) of each dimension, from pairs that begin with the last one."""
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (x_ndim - len(pairs)) + pairs[::-1]


def constant_pad_nd(x: Array, pad: Dims, value: Any = 0) -> Array:
    widths = _pad_widths(np.ndim(x), pad)
    kept = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(widths, np.shape(x), strict=True))
    return np.pad(x[kept], [(max(a, 0), max(b, 0)) for a, b in widths], constant_values=value)


_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad_by_index(x: Array, pad: Dims, mode: str) -> Array:
    return np.pad(x, _pad_widths(np.ndim(x), pad), mode=_PAD_MODES[mode])  # type: ignore[call-overload]


def pad_by_index_backward(grad: Array, size: Dims, pad: Dims, mode: str) -> Array:
    source = pad_by_index(np.arange(math.prod(size)).reshape(tuple(size)), pad, mode)
    out = np.zeros(math.prod(size), dtype=np.asarray(grad).dtype)
    np.add.at(out, source, grad)
    return out.reshape(tuple(size))


def topk(x: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    order = np.argsort(-x if largest else x, axis=dim, kind="stable")
    at = np.take(order, np.arange(k), axis=dim)
    return np.take_along_axis(x, at, dim), at


def _class_weights(target: Array, weight: Array | None, ignore_index: int) -> Array:
    one = (
        np.ones(np.shape(target)) if weight is None else np.asarray(weight)[np.where(target == ignore_index, 0, target)]
    )
    return np.where(target == ignore_index, 0, one)


def _pick(x: Array, target: Array, ignore_index: int) -> Array:
    safe = np.where(target == ignore_index, 0, target)
    d = 1 if np.ndim(x) > 1 else 0
    return np.squeeze(gather(x, d, np.expand_dims(safe, d)), d)


def _reduced(loss: Array, w: Array, reduction: str) -> Array:
    if reduction == "none":
        return loss
    return np.asarray(loss.sum() / w.sum() if reduction == "mean" else loss.sum())


def nll_loss(x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str) -> tuple[Array, Array]:
    target = np.asarray(target)
    w = _class_weights(target, weight, ignore_index)
    return _reduced(-w * _pick(x, target, ignore_index), w, reduction), np.asarray(w.sum())


def nll_loss_backward(
    grad: Array, size: Dims, target: Array, weight: Array | None, total_weight: Any, ignore_index: int, reduction: str
) -> Array:
    target = np.asarray(target)
    w = _class_weights(target, weight, ignore_index)
    d = 1 if len(size) > 1 else 0
    scale = 1 / total_weight if reduction == "mean" else 1
    safe = np.expand_dims(np.where(target == ignore_index, 0, target), d)
    return scatter_add(np.zeros(tuple(size)), d, safe, np.expand_dims(-w * grad * scale, d))


def _log_softmax(x: Array) -> tuple[Array, Array]:
    d = 1 if np.ndim(x) > 1 else 0
    top = x.max(axis=d, keepdims=True)
    lse = top + np.log(np.exp(x - top).sum(axis=d, keepdims=True))
    return x - lse, np.squeeze(lse, d)


def cross_entropy_index(
    x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Array, Array, Array]:
    target = np.asarray(target)
    logp, lse = _log_softmax(x)
    d = 1 if np.ndim(x) > 1 else 0
    w = _class_weights(target, weight, ignore_index)
    loss = -w * _pick(logp, target, ignore_index)
    classes = np.shape(x)[d]
    per_class = np.ones(classes) if weight is None else np.asarray(weight)
    shape = [classes if i == d else 1 for i in range(np.ndim(x))]
    smooth = -(logp * per_class.reshape(shape)).sum(axis=d) * (target != ignore_index) / classes
    loss = (1 - label_smoothing) * loss + label_smoothing * smooth
    return _reduced(loss, w, reduction), lse, np.asarray(w.sum())


def cross_entropy_index_backward(
    grad: Array, x: Array, target: Array, weight: Array | None, logsumexp: Array, total_weight: Any, ignore_index: int,
    reduction: str, label_smoothing: float,
) -> Array:  # fmt: skip
    target = np.asarray(target)
    d = 1 if np.ndim(x) > 1 else 0
    classes = np.shape(x)[d]
    # The saved logsumexp is a function of x, and so it is here: differences must see it move.
    p = np.exp(_log_softmax(x)[0])
    w = np.expand_dims(_class_weights(target, weight, ignore_index), d)
    kept = np.expand_dims(target != ignore_index, d)
    shape = [classes if i == d else 1 for i in range(np.ndim(x))]
    hot = np.arange(classes).reshape(shape) == np.expand_dims(target, d)
    per_class = (np.ones(classes) if weight is None else np.asarray(weight)).reshape(shape)
    smooth = (p * per_class.sum() - per_class) * kept / classes
    scale = 1 / total_weight if reduction == "mean" else 1
    g = np.expand_dims(grad, d) if reduction == "none" else grad
    return ((1 - label_smoothing) * w * (p - hot) + label_smoothing * smooth) * g * scale


def fit_size(x: Array, size: Dims) -> Array:
    out = np.zeros(tuple(size), dtype=np.asarray(x).dtype)
    both = tuple(slice(0, min(a, b)) for a, b in zip(np.shape(x), size, strict=True))
    out[both] = np.asarray(x)[both]
    return out


def cast(x: Array, dtype: Any) -> Array:
    from .reference import NP_DTYPE

    return np.asarray(x).astype(NP_DTYPE.get(dtype, dtype) if isinstance(dtype, str) else dtype)


KERNELS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        scatter, scatter_add, gather, index, index_add, index_put, masked_select_backward, embedding_backward,
        select_backward,
        slice_backward, diagonal_backward, as_strided, as_strided_backward, as_strided_scatter, constant_pad_nd,
        pad_by_index,
        pad_by_index_backward, topk, nll_loss, nll_loss_backward, cross_entropy_index, cross_entropy_index_backward,
        sum_to, cast, fit_size,
    )
}  # fmt: skip
KERNELS |= (
    LINALG_KERNELS
    | NN_KERNELS
    | GRID_KERNELS
    | PLACE_KERNELS
    | RANDOM_KERNELS
    | WINDOW_KERNELS
    | {
        "scatter_value": scatter,
        "view_bytes": view_bytes,
        "copy": lambda x, src: np.broadcast_to(src, np.shape(x)),
        "fill": lambda x, value: np.full(np.shape(x), value),
        "empty_filled": lambda size, dtype=None: np.zeros(tuple(size)),
    }
)


def _nll_loss_op(
    x: Array, target: Array, weight: Array | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Array:
    return nll_loss(x, target, weight, ignore_index, reduction)[0]


def _cross_entropy_op(
    x: Array, target: Array, weight: Array | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:  # fmt: skip
    if np.asarray(target).dtype.kind != "f":
        return cross_entropy_index(x, target, weight, ignore_index, reduction, label_smoothing)[0]
    d = 1 if np.ndim(x) > 1 else 0
    classes = np.shape(x)[d]
    shape = [classes if i == d else 1 for i in range(np.ndim(x))]
    w = (np.ones(classes) if weight is None else np.asarray(weight)).reshape(shape)
    mixed = target * (1 - label_smoothing) + label_smoothing / classes
    loss = -(mixed * w * _log_softmax(x)[0]).sum(axis=d)
    if reduction == "none":
        return loss
    return np.asarray(loss.sum() / (max(loss.size, 1) if reduction == "mean" else 1))


def _linear_recurrence(x: Array, factor: Array, dim: int, reverse: bool = False) -> Array:
    lines, by = np.moveaxis(x, dim, 0), np.moveaxis(factor, dim, 0)
    out = np.array(lines)
    order = range(len(out) - 2, -1, -1) if reverse else range(1, len(out))
    for k in order:
        out[k] = lines[k] + by[k] * out[k + 1 if reverse else k - 1]
    return np.moveaxis(out, 0, dim)


def _one_before(x: Array, dim: int, reverse: bool = False) -> Array:
    out = np.roll(x, -1 if reverse else 1, axis=dim)
    np.moveaxis(out, dim, 0)[-1 if reverse else 0] = 0
    return out


def _exclusive_cumprod(x: Array, dim: int) -> Array:
    shifted = np.roll(x, 1, axis=dim)
    np.moveaxis(shifted, dim, 0)[0] = 1
    return np.cumprod(shifted, axis=dim)


def _cross_entropy_curvature(
    grad: Array, x: Array, target: Array, weight: Array | None, total_weight: Any, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> Array:  # fmt: skip
    """The sum over classes of the weights a sample's softmax is compared with."""
    target = np.asarray(target)
    d = 1 if np.ndim(x) > 1 else 0
    classes = np.shape(x)[d]
    per_class = np.ones(classes) if weight is None else np.asarray(weight)
    hot = _class_weights(target, weight, ignore_index)
    total = hot - label_smoothing * hot + label_smoothing * per_class.mean() * (target != ignore_index)
    return np.expand_dims(total * grad / (total_weight if reduction == "mean" else 1), d)


def _tie_share(grad: Array, x: Array, out: Array, dim: Dims, keepdim: bool) -> Array:
    axes = tuple(d % x.ndim for d in dim) or tuple(range(x.ndim))
    full = [1 if i in axes else n for i, n in enumerate(x.shape)]
    ties = x == np.reshape(out, full)
    with np.errstate(all="ignore"):
        return np.reshape(grad, full) * ties / ties.sum(axis=axes, keepdims=True)


def _cross_entropy_probs(
    x: Array, target: Array, weight: Array | None, reduction: str, label_smoothing: float
) -> Array:
    return _cross_entropy_op(x, target, weight, -100, reduction, label_smoothing)


def _loss(loss: Array, reduction: str) -> Array:
    return np.asarray(loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss)


def _cosine_embedding_loss(a: Array, b: Array, target: Array, margin: float, reduction: str) -> Array:
    c = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    apart = np.where(target == -1, np.maximum(c - margin, 0), 0)
    return _loss(np.where(target == 1, 1 - c, apart), reduction)


def _triplet_margin_loss(
    anchor: Array, positive: Array, negative: Array, margin: float, p: float, eps: float, swap: bool, reduction: str
) -> Array:
    def distance(a: Array, b: Array) -> Array:
        return np.asarray(np.linalg.norm(a - b + eps, ord=p, axis=-1))

    far = distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    return _loss(np.maximum(distance(anchor, positive) - far + margin, 0), reduction)


def _multi_margin_loss(x: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: str) -> Array:
    if x.ndim == 1:
        return _loss(_multi_margin_loss(x[None], np.ravel(target), p, margin, weight, "sum"), "none")
    losses = []
    for scores, y in zip(x, target, strict=True):
        gaps = [max(0, margin - scores[y] + s) ** p for c, s in enumerate(scores) if c != y]
        losses.append(sum(gaps) * (1 if weight is None else weight[y]) / len(scores))
    return _loss(np.array(losses), reduction)


def _multilabel_margin_loss(x: Array, target: Array, reduction: str) -> Array:
    if x.ndim == 1:
        return _loss(_multilabel_margin_loss(x[None], target[None], "sum"), "none")
    losses = []
    for scores, named in zip(x, target, strict=True):
        mine = [int(c) for c in named[: int(np.argmax(named < 0)) if (named < 0).any() else None]]
        others = [c for c in range(len(scores)) if c not in mine]
        losses.append(sum(max(0, 1 - (scores[a] - scores[b])) for a in mine for b in others) / len(scores))
    return _loss(np.array(losses), reduction)


# Ops composed over such kernels, by op name.
OPS: dict[str, Callable[..., Any]] = (
    LINALG_OPS
    | NN_OPS
    | GRID_OPS
    | PLACE_OPS
    | RANDOM_OPS
    | SIGNAL_OPS
    | WINDOW_OPS
    | {
        "scatter": _scatter_op,
        "cosine_embedding_loss": _cosine_embedding_loss,
        "triplet_margin_loss": _triplet_margin_loss,
        "nll_loss": _nll_loss_op,
        "cross_entropy": _cross_entropy_op,
        "cross_entropy_probs": _cross_entropy_probs,
        "exclusive_cumprod": _exclusive_cumprod,
        "linear_recurrence": _linear_recurrence,
        "one_before": _one_before,
        "tie_share": _tie_share,
        "cross_entropy_curvature": _cross_entropy_curvature,
        "multi_margin_loss": _multi_margin_loss,
        "multilabel_margin_loss": _multilabel_margin_loss,
        "empty_like": lambda x, dtype=None: np.zeros(np.shape(x)),
    }
)


def find(op: str, kernel: str | None) -> Callable[..., Any] | None:
    return OPS.get(op) or (KERNELS.get(kernel) if kernel else None)
