"""Writes and reductions by index: scatter_reduce, index_reduce, masked_scatter, put, bags of embeddings, isin."""

from __future__ import annotations

from typing import Any

import tensorplay as tp

Tensor = Any
_REDUCE = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if reduce not in _REDUCE:
        raise ValueError(f"scatter_reduce: reduce='{reduce}' is not one of {', '.join(_REDUCE)}")
    return _scattered(input, dim, index, src, reduce, include_self)


def _scattered(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """The kernel's value; as sums over what takes part where something may be differentiated."""
    value = tp._C.internal.scatter_reduce_value(input.detach(), dim, index, src.detach(), reduce, include_self)
    if not (input.is_floating_point() or input.is_complex()) or not index.numel():
        return value if index.numel() else input.clone()
    part = src if tuple(src.shape) == tuple(index.shape) else src[tuple(slice(0, n) for n in index.shape)]
    start = input if include_self else input.scatter(dim, index, 0)
    if reduce == "sum":
        return start.scatter_add(dim, index, part)
    if reduce == "mean":
        ones = tp.ones(index.shape, dtype=input.dtype)
        count = tp.ones(input.shape, dtype=input.dtype)
        count = (count if include_self else count.scatter(dim, index, 0)).scatter_add(dim, index, ones)
        return start.scatter_add(dim, index, part) / count
    if reduce == "prod":
        own = input if include_self else input.scatter(dim, index, 1)
        return _product(own, dim, index, part, include_self)
    # The largest: its ties share the gradient.
    ties = part == value.gather(dim, index)
    mine = input == value
    if not include_self:
        mine = mine & tp.ones_like(mine).scatter(dim, index, False)
    zero = tp.zeros((), dtype=input.dtype)
    total = tp.where(mine, input, zero).scatter_add(dim, index, tp.where(ties, part, zero))
    count = mine.to(input.dtype).scatter_add(dim, index, ties.to(input.dtype))
    return tp.where(count > 0, total / count.clamp(min=1), value)


def _product(own: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    """Products by index with right derivatives at zeros: numbers that aren't zero count through their logarithms, a
    single zero stands as it is."""

    def split(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        zero = x == 0
        plain = tp.where(zero, tp.ones((), dtype=x.dtype), x)
        return zero.to(x.dtype), plain, tp.where(zero, x, tp.zeros((), dtype=x.dtype))

    zero_own, plain_own, rest_own = split(own)
    zero_src, plain_src, rest_src = split(src)
    value = tp._C.internal.scatter_reduce_value(plain_own.detach(), dim, index, plain_src.detach(), "prod", True)
    ratio_own, ratio_src = plain_own / plain_own.detach(), plain_src / plain_src.detach()
    product = value * (ratio_own.log().scatter_add(dim, index, ratio_src.log())).exp()
    zeros = zero_own.scatter_add(dim, index, zero_src)
    rest = rest_own.scatter_add(dim, index, rest_src)
    one, none = tp.ones((), dtype=own.dtype), tp.zeros((), dtype=own.dtype)
    return product * tp.where(zeros == 0, one, tp.where(zeros == 1, rest, none))


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ValueError(f"index_reduce: reduce='{reduce}' is not one of prod, mean, amax, amin")
    if index.ndim > 1:
        raise ValueError(f"index_reduce: index must be a vector, got sizes {list(index.shape)}")
    index = index.reshape([-1])
    if input.ndim == 0:
        return _scattered(input.reshape([1]), 0, index, source.reshape([-1]), reduce, include_self).reshape([])
    d = dim % input.ndim
    want = [*input.shape[:d], len(index), *input.shape[d + 1 :]]
    if list(source.shape) != want:
        raise ValueError(
            f"index_reduce: source has sizes {list(source.shape)}; {len(index)} indices along dimension {d} of sizes "
            f"{list(input.shape)} need {want}"
        )
    at = index.reshape([-1 if i == d else 1 for i in range(input.ndim)]).expand(want)
    return _scattered(input, d, at, source, reduce, include_self)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    x = elements if isinstance(elements, tp.Tensor) else tp.tensor(elements)
    y = (test_elements if isinstance(test_elements, tp.Tensor) else tp.tensor(test_elements)).reshape([-1])
    dtype = tp.promote_types(x.dtype, y.dtype)
    if dtype.is_complex or dtype == tp.bool:
        raise TypeError(f"isin: not defined for {dtype} tensors")
    x, y = x.detach().to(dtype), y.detach().to(dtype)
    if len(y) == 0:
        found = tp.zeros(x.shape, dtype=tp.bool)
    elif len(y) <= 8:
        found = (x.unsqueeze(-1) == y).any(-1)
    else:
        # nan sorts last and equals nothing, so the comparison refuses it.
        sorted_y = y.sort()[0]
        at = tp.searchsorted(sorted_y, x.reshape([-1])).clamp(max=len(y) - 1)
        found = (sorted_y[at] == x.reshape([-1])).reshape(x.shape)
    return ~found if invert else found


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
        return scatter_reduce(empty, 0, at, rows, "amax", include_self=False)
    out = empty.index_add(0, bag, rows)
    if mode == "sum":
        return out
    count = tp.bincount(bag, minlength=bags).clamp(min=1).to(weight.dtype)
    return out / count.unsqueeze(1)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    if p <= 0:
        raise ValueError(f"renorm: p={p} is not positive")
    if maxnorm < 0:
        raise ValueError(f"renorm: maxnorm={maxnorm} is negative")
    if input.ndim < 2:
        raise ValueError(f"renorm: input needs at least 2 dimensions, got sizes {list(input.shape)}")
    rest = [i for i in range(input.ndim) if i != dim % input.ndim]
    norms = tp.linalg.vector_norm(input, p, rest, True)
    one = tp.ones((), dtype=norms.dtype)
    return input * tp.where(norms > maxnorm, maxnorm / (norms + 1e-7), one).to(input.dtype)
