"""Bags of rows of a table, and places as one tensor or as one for each dimension."""

from __future__ import annotations

from typing import Any

import tensorplay as tp

Tensor = Any


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    op = "embedding_bag"
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"{op}: mode='{mode}' is not sum, mean or max")
    if sparse:
        raise NotImplementedError(f"{op}: gradients are dense; leave sparse out")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"{op}: per_sample_weights go with mode='sum', not '{mode}'")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(f"{op}: a matrix of indices has one bag a row; offsets go with a vector")
        bags, width = input.shape
        bag = tp.arange(bags).unsqueeze(1).expand([bags, width]).reshape([-1])
        flat = input.reshape([-1])
        scale = None if per_sample_weights is None else per_sample_weights.reshape([-1])
    elif input.ndim == 1 and offsets is not None:
        starts = offsets.to(tp.int64)
        if include_last_offset:
            starts = starts[:-1]
        if len(starts) and int(starts[0].item()) != 0:
            raise ValueError(f"{op}: the first offset is {int(starts[0].item())}, it must be 0")
        bags, flat, scale = len(starts), input, per_sample_weights
        bag = tp.searchsorted(starts, tp.arange(len(input)), right=True) - 1
    else:
        raise ValueError(f"{op}: takes a matrix of indices, or a vector with offsets; got sizes {list(input.shape)}")
    if max_norm is not None:
        with tp.no_grad():
            rows = tp.unique(flat)
            weight[rows] = tp.renorm(weight[rows], norm_type, 0, max_norm)
    if padding_idx is not None:
        kept = (flat != padding_idx % len(weight)).nonzero().reshape([-1])
        flat, bag = flat[kept], bag[kept]
        scale = None if scale is None else scale[kept]
    rows = weight[flat]
    if scale_grad_by_freq and weight.requires_grad:
        often = tp.bincount(flat, minlength=len(weight))[flat].to(weight.dtype).unsqueeze(1)
        rows = rows / often + (rows - rows / often).detach()
    if scale is not None:
        rows = rows * scale.unsqueeze(1)
    empty = tp.zeros([bags, weight.shape[1]], dtype=weight.dtype)
    if mode == "max":
        at = bag.unsqueeze(1).expand(rows.shape)
        return tp.scatter_reduce(empty, 0, at, rows, "amax", include_self=False)
    out = empty.index_add(0, bag, rows)
    if mode == "sum":
        return out
    count = tp.bincount(bag, minlength=bags).clamp(min=1).to(weight.dtype)
    return out / count.unsqueeze(1)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor:
    if not as_tuple:
        return tp.argwhere(input)
    return tuple(tp.argwhere(input if input.ndim else input.reshape(1)).unbind(1))
