"""Losses with a function among their arguments, or a loop over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorplay as tp

from .reading import need_values

Tensor = Any


def _reduced(op: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(f"{op}: reduction='{reduction}' is not none, mean or sum")


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
