"""Dropouts, losses and poolings of nn.functional that are sums over other ops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorplay as tp

from .reading import need_values, readable

Tensor = Any


# ---- dropouts -------------------------------------------------------------------------------------------------------


def _probability(op: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"{op}: p={p} is not a probability; it must be between 0 and 1")


def _kept(sizes: Sequence[int], p: float, dtype: Any) -> Tensor:
    return tp.bernoulli(tp.full(list(sizes), 1 - p, dtype=dtype))


def _result(input: Tensor, out: Tensor, inplace: bool) -> Tensor:
    return input.copy_(out) if inplace else out


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _channels("dropout1d", input, p, training, inplace, 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _channels("dropout2d", input, p, training, inplace, 3 if input.ndim == 3 else 4)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _channels("dropout3d", input, p, training, inplace, 4)


def _channels(op: str, input: Tensor, p: float, training: bool, inplace: bool, without_batch: int) -> Tensor:
    """Whole channels are kept or zeroed. In 1 and 3 dimensions a tensor of one dimension less is one sample."""
    _probability(op, p)
    if input.ndim < 2:
        raise ValueError(f"{op}: needs at least 2 dimensions, got sizes {list(input.shape)}")
    if not training or p == 0:
        return input
    if p == 1:
        return _result(input, input * 0.0, inplace)
    alone = op != "dropout2d" and input.ndim == without_batch
    sizes = [*input.shape[:1], *(1,) * (input.ndim - 1)] if alone else [*input.shape[:2], *(1,) * (input.ndim - 2)]
    return _result(input, input * _kept(sizes, p, input.dtype) / (1 - p), inplace)


_SELU_FLOOR = 1.7580993408473766  # -scale * alpha of SELU, the value it takes far to the left


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    return _selu_dropout("alpha_dropout", input, p, training, inplace, list(input.shape))


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    if input.ndim < 2:
        raise ValueError(f"feature_alpha_dropout: needs at least 2 dimensions, got sizes {list(input.shape)}")
    sizes = [*input.shape[:2], *(1,) * (input.ndim - 2)]
    return _selu_dropout("feature_alpha_dropout", input, p, training, inplace, sizes)


def _selu_dropout(op: str, input: Tensor, p: float, training: bool, inplace: bool, sizes: list[int]) -> Tensor:
    _probability(op, p)
    if not training or p == 0:
        return input
    if p == 1:
        return _result(input, input * 0.0, inplace)
    a = 1 / math.sqrt((_SELU_FLOOR**2 * p + 1) * (1 - p))
    kept = _kept(sizes, p, input.dtype)
    return _result(input, input * (kept * a) + ((kept - 1) * (_SELU_FLOOR * a) + _SELU_FLOOR * a * p), inplace)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    if lower > upper:
        raise ValueError(f"rrelu: lower={lower} is above upper={upper}")
    if training:
        slope: Any = tp.rand_like(input) * (upper - lower) + lower
    else:
        slope = (lower + upper) / 2
    return _result(input, tp.where(input >= 0, input, input * slope), inplace)


# ---- losses ---------------------------------------------------------------------------------------------------------


def _reduced(op: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(f"{op}: reduction='{reduction}' is not none, mean or sum")


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    logs = tp.nn.functional.logsigmoid
    loss = -(target * logs(input) + (1 - target) * logs(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced("multilabel_soft_margin_loss", loss.mean(-1), reduction)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p={p} is not 1 or 2")
    x = input if input.ndim == 2 else input.reshape([1, -1])
    at = target.reshape([-1, 1])
    gap = tp.relu(margin - x.gather(1, at) + x)
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * weight[at.reshape([-1])].unsqueeze(1)
    loss = gap.scatter(1, at, 0).sum(1) / x.shape[1]
    return _reduced("multi_margin_loss", loss if input.ndim == 2 else loss.reshape([]), reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The targets of a row are the classes before its first -1."""
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"multilabel_margin_loss: target has sizes {list(target.shape)}, input {list(input.shape)}; they must agree"
        )
    x = input if input.ndim == 2 else input.reshape([1, -1])
    y = target.reshape(x.shape)
    named = (y < 0).to(tp.int64).cumsum(1) == 0
    safe = tp.where(named, y, tp.zeros_like(y))
    is_target = tp.zeros(x.shape, dtype=x.dtype).scatter_add(1, safe, named.to(x.dtype)) > 0
    gap = (1 - (x.gather(1, safe).unsqueeze(2) - x.unsqueeze(1))).clamp(min=0)
    counted = named.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = tp.where(counted, gap, tp.zeros((), dtype=x.dtype)).sum([1, 2]) / x.shape[1]
    return _reduced("multilabel_margin_loss", loss if input.ndim == 2 else loss.reshape([]), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    if margin <= 0:
        raise ValueError(f"triplet_margin_with_distance_loss: margin={margin} is not positive")
    distance = distance_function or tp.nn.functional.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = tp.minimum(far, distance(positive, negative))
    return _reduced("triplet_margin_with_distance_loss", (margin + near - far).clamp(min=0), reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The forward recursion over time, for all samples and positions at once, in logarithms."""
    op = "ctc_loss"
    single = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if single else log_probs
    steps, batch, classes = x.shape
    if not 0 <= blank < classes:
        raise ValueError(f"{op}: blank={blank} is no class of {classes}")
    lengths = [_lengths(op, name, v, batch) for name, v in (("input_lengths", input_lengths),
                                                            ("target_lengths", target_lengths))]  # fmt: skip
    if max(lengths[0], default=0) > steps:
        raise ValueError(f"{op}: input_lengths holds {max(lengths[0])}, log_probs has {steps} steps")
    longest = max(lengths[1], default=0)
    labels = _labels(targets, lengths[1], longest, batch, blank)
    # Blanks stand before, between and after the labels.
    wide = 2 * longest + 1
    path = tp.full([batch, 1], blank, dtype=tp.int64)
    skip = tp.zeros([batch, min(wide, 2)], dtype=tp.bool)
    if longest:
        pairs = tp.stack([labels, tp.full([batch, longest], blank, dtype=tp.int64)], 2)
        path = tp.cat([path, pairs.reshape([batch, 2 * longest])], 1)
        skip = tp.cat([skip, (path[:, 2:] != blank) & (path[:, 2:] != path[:, :-2])], 1)
    never = tp.full((), -1e30, dtype=x.dtype)
    scores = x.gather(2, path.unsqueeze(0).expand([steps, batch, wide]))
    start = tp.arange(wide).unsqueeze(0) < tp.tensor([[1 + (n > 0)] for n in lengths[1]])
    alpha = tp.where(start, scores[0], never)
    ends = tp.tensor(lengths[0]).unsqueeze(1)
    for t in range(1, steps):
        one = tp.constant_pad_nd(alpha, [1, -1], -1e30)
        two = tp.where(skip, tp.constant_pad_nd(alpha, [2, -2], -1e30) if wide > 1 else one, never)
        step = tp.logaddexp(tp.logaddexp(alpha, one), two) + scores[t]
        alpha = tp.where(ends > t, step, alpha)
    last: Tensor = tp.tensor([[2 * n] for n in lengths[1]])
    before = alpha.gather(1, (last - 1).clamp(min=0))
    before = tp.where(last > 0, before, never)
    loss = -tp.logaddexp(alpha.gather(1, last), before).reshape([batch])
    lost = loss > 1e29
    nothing = tp.tensor([n == 0 for n in lengths[0]]) & tp.tensor([n == 0 for n in lengths[1]])
    loss = tp.where(nothing, tp.zeros((), dtype=x.dtype), loss)
    loss = tp.where(lost & ~nothing, tp.full((), 0.0 if zero_infinity else math.inf, dtype=x.dtype), loss)
    if reduction == "mean":
        return (loss / tp.tensor([float(max(n, 1)) for n in lengths[1]], dtype=x.dtype)).mean()
    return _reduced(op, loss.reshape([]) if single else loss, reduction)


def _lengths(op: str, name: str, v: Any, batch: int) -> list[int]:
    need_values(op, name, v, "how far the recursion goes")
    out = [int(n) for n in (v.reshape([-1]).tolist() if isinstance(v, tp.Tensor) else [v] if isinstance(v, int) else v)]
    if len(out) != batch:
        raise ValueError(f"{op}: {name} holds {len(out)} lengths for a batch of {batch}")
    return out


def _labels(targets: Tensor, lengths: Sequence[int], longest: int, batch: int, blank: int) -> Tensor:
    """Targets as a matrix, blank where a sample has no more."""
    if targets.ndim == 2:
        return targets[:, :longest].to(tp.int64)
    flat, at, rows = targets.to(tp.int64), 0, []
    if sum(lengths) > len(flat):
        raise ValueError(f"ctc_loss: target_lengths add up to {sum(lengths)}, targets holds {len(flat)} labels")
    for n in lengths:
        rows.append(tp.constant_pad_nd(flat[at : at + n], [0, longest - n], blank))
        at += n
    return tp.stack(rows, 0) if rows else flat.reshape([0, 0])


# ---- distances and norms --------------------------------------------------------------------------------------------


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    if input.ndim != 2:
        raise ValueError(f"pdist: input has sizes {list(input.shape)}; a matrix of rows is needed")
    if p < 0:
        raise ValueError(f"pdist: p={p} is negative")
    at = tp.triu_indices(len(input), len(input), 1)
    return tp.linalg.vector_norm(input.index_select(0, at[0]) - input.index_select(0, at[1]), p, -1)


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
    x = input if dtype is None else input.to(dtype)
    if p == "nuc":
        at = [-2, -1] if dims is None else dims
        if len(at) != 2:
            raise ValueError(f"norm: p='nuc' is a norm of matrices; dim={dim} names {len(at)} dimensions")
        return tp.linalg.matrix_norm(x, "nuc", at, keepdim)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f"norm: p='{p}' is not 'fro', 'nuc' or a number")
    order = 2.0 if p in (None, "fro") else float(p)
    return tp.linalg.vector_norm(x, order, dims, keepdim)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    if input.ndim < 3:
        raise ValueError(f"local_response_norm: needs at least 3 dimensions, got sizes {list(input.shape)}")
    if size < 1:
        raise ValueError(f"local_response_norm: size={size} is not positive")
    n = input.shape[1]
    padded = tp.constant_pad_nd(input * input, [*(0, 0) * (input.ndim - 2), size // 2, (size - 1) // 2])
    total = padded.narrow(1, 0, n)
    for i in range(1, size):
        total = total + padded.narrow(1, i, n)
    return input / (total / size * alpha + k) ** beta


# ---- unpooling ------------------------------------------------------------------------------------------------------


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


def _tuple(v: Any, n: int) -> list[int]:
    if isinstance(v, int):
        return [v] * n
    if len(v) not in (1, n):
        raise ValueError(f"{list(v)} has {len(v)} numbers for {n} dimensions")
    return list(v) * (n // len(v))


def _unpool(op: str, n: int, input: Tensor, indices: Tensor, kernel: Any, stride: Any, padding: Any,
            output_size: Any) -> Tensor:  # fmt: skip
    if tuple(input.shape) != tuple(indices.shape):
        raise ValueError(f"{op}: indices have sizes {list(indices.shape)}, input {list(input.shape)}; they must agree")
    if input.ndim not in (n + 1, n + 2):
        raise ValueError(f"{op}: needs {n + 1} or {n + 2} dimensions, got sizes {list(input.shape)}")
    kernel_, padding_ = _tuple(kernel, n), _tuple(padding, n)
    stride_ = kernel_ if stride is None else _tuple(stride, n)
    space = input.shape[-n:]
    sizes = [(s - 1) * st - 2 * p + k for s, st, p, k in zip(space, stride_, padding_, kernel_, strict=True)]
    if output_size is not None:
        wanted = list(output_size)[-n:]
        for w, s, st in zip(wanted, sizes, stride_, strict=True):
            if not s - st < w < s + st:
                raise ValueError(f"{op}: output_size={list(output_size)}: {w} is not between {s - st} and {s + st}")
        sizes = wanted
    lead = list(input.shape[:-n])
    total = math.prod(sizes)
    if (
        indices.numel()
        and readable(indices)
        and not (int(indices.min().item()) >= 0 and int(indices.max().item()) < total)
    ):
        raise ValueError(f"{op}: an index is out of range for an output of sizes {sizes}")
    flat = tp.zeros([*lead, total], dtype=input.dtype)
    count = math.prod(space)
    return flat.scatter(-1, indices.reshape([*lead, count]), input.reshape([*lead, count])).reshape([*lead, *sizes])
