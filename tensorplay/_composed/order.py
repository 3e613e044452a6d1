"""Distinct values, quantiles and histograms."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import tensorplay as tp

from .reading import need_values, readable, sized_by_values

Tensor = Any


def _chosen(values: Tensor, inverse: Tensor, counts: Tensor, return_inverse: bool, return_counts: bool) -> Any:
    out = (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))
    return out if len(out) > 1 else values


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    with sized_by_values("unique"):
        if dim is None:
            values, inverse, counts = tp._C.internal.unique_flat(input.detach())
            return _chosen(values, inverse.reshape(input.shape), counts, return_inverse, return_counts)
        x = input.detach().movedim(dim, 0)
        order = _row_order(x)
        values, inverse, counts = _runs(x[order])
    back = tp.empty_like(inverse).scatter(0, order, inverse)
    return _chosen(values.movedim(0, dim), back, counts, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    with sized_by_values("unique_consecutive"):
        if dim is None:
            values, inverse, counts = tp._C.internal.unique_consecutive_flat(input.detach())
            return _chosen(values, inverse.reshape(input.shape), counts, return_inverse, return_counts)
        values, inverse, counts = _runs(input.detach().movedim(dim, 0))
    return _chosen(values.movedim(0, dim), inverse, counts, return_inverse, return_counts)


def _row_order(x: Tensor) -> Tensor:
    """The order of slices of the first dimension, compared element by element: the last element is sorted first."""
    rows = x.reshape([x.shape[0], math.prod(x.shape[1:])])
    order = tp.arange(x.shape[0])
    for k in reversed(range(rows.shape[1])):
        order = order[rows[:, k][order].argsort(stable=True)]
    return order


def _runs(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Equal neighbours along the first dimension as one: values, the run of each, lengths."""
    n = x.shape[0]
    if n == 0:
        return x, tp.empty([0], dtype=tp.int64), tp.empty([0], dtype=tp.int64)
    rows = x.reshape([n, math.prod(x.shape[1:])])
    first = tp.cat([tp.ones([1], dtype=tp.bool), (rows[1:] != rows[:-1]).any(1)])
    inverse = first.to(tp.int64).cumsum(0) - 1
    return x[first.nonzero().reshape([-1])], inverse, tp.bincount(inverse)


# ---- quantiles ------------------------------------------------------------------------------------------------------

_RULES = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _quantile(op: str, x: Tensor, q: Any, dim: int | None, keepdim: bool, rule: str, skip_nan: bool) -> Tensor:
    if rule not in _RULES:
        raise ValueError(f"{op}: interpolation='{rule}' is not one of {', '.join(_RULES)}")
    if x.dtype not in (tp.float32, tp.float64):
        raise TypeError(f"{op}: input must be float32 or float64, not {x.dtype}")
    q = q if isinstance(q, tp.Tensor) else tp.tensor(q, dtype=x.dtype)
    if q.dtype != x.dtype:
        raise TypeError(f"{op}: q is {q.dtype} and input {x.dtype}; both need one dtype")
    if q.ndim > 1:
        raise ValueError(f"{op}: q has sizes {list(q.shape)}; a number or a vector is needed")
    if x.numel() == 0:
        raise ValueError(f"{op}: input of sizes {list(x.shape)} has no element")
    if readable(q):
        low, high = float(q.min().item()), float(q.max().item())
        if not (low >= 0 and high <= 1):
            raise ValueError(f"{op}: q holds {low if not low >= 0 else high}; quantiles are between 0 and 1")
    kept = [1] * x.ndim
    if dim is None:
        x, at = x.reshape([-1]), 0
    else:
        at = dim % max(x.ndim, 1)
        kept = [1 if i == at else n for i, n in enumerate(x.shape)]
        x = x.movedim(at, -1) if x.ndim else x.reshape([1])
    values = x.sort(-1)[0]  # nan comes last
    n = values.shape[-1]
    bad = values.isnan().detach()
    if skip_nan:
        last = (n - 1 - bad.sum(-1, keepdim=True)).clamp(min=0).to(x.dtype)
    else:
        last = tp.full([*values.shape[:-1], 1], float(n - 1), dtype=x.dtype)
    place = q.detach().reshape([-1]) * last
    if not skip_nan:
        place = tp.where(bad[..., -1:], last, place)
    if rule == "lower":
        place = place.floor()
    elif rule == "higher":
        place = place.ceil()
    elif rule == "nearest":
        place = place.round()
    below = place.floor().to(tp.int64)
    out = values.gather(-1, below)
    if rule in ("linear", "midpoint"):
        weight = tp.full_like(place, 0.5) if rule == "midpoint" else place - place.floor()
        above = values.gather(-1, place.ceil().to(tp.int64))
        out = tp.lerp(out, above, weight)
    # The quantiles become the first dimension.
    out = out.movedim(-1, 0)
    if keepdim:
        out = out.reshape([out.shape[0], *kept])
    elif dim is None:
        out = out.reshape([out.shape[0]])
    return out[0] if q.ndim == 0 else out


# ---- histograms -----------------------------------------------------------------------------------------------------


def _ends(x: Tensor, margin: float) -> tuple[Any, Any]:
    """The smallest and the largest element, or points around the only one; 0-d tensors inside vmap."""
    low, high = x.min(), x.max()
    if readable(x):
        low, high = float(low.item()), float(high.item())
        return (low, high) if low != high else (low - margin, high + margin)
    alone = low == high
    return tp.where(alone, low - margin, low), tp.where(alone, high + margin, high)


def _check_range(op: str, low: Any, high: Any) -> None:
    if not readable(low, high):
        return
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{op}: the range from {low} to {high} is not finite")
    if low > high:
        raise ValueError(f"{op}: the range begins at {low} and ends at {high} below it")


def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    if bins < 1:
        raise ValueError(f"histc: bins={bins} is not positive")
    x = input.detach().reshape([-1])
    wide = x.to(tp.float64)
    low: Any = float(min)
    high: Any = float(max)
    if low == high:
        low, high = _ends(wide, 1) if x.numel() else (low - 1, high + 1)
    _check_range("histc", low, high)
    # Elements outside count nothing: what is added up has one size for all samples of a vmap.
    inside = (wide >= low) & (wide <= high)
    at = tp.where(inside, (wide - low) * bins / (high - low), tp.zeros_like(wide)).to(tp.int64).clamp(0, bins - 1)
    return tp.zeros([bins], dtype=tp.int64).scatter_add(0, at, inside.to(tp.int64)).to(input.dtype)


Histogram = namedtuple("Histogram", ["hist", "bin_edges"])


def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    x = input.detach().reshape([-1])
    if isinstance(bins, tp.Tensor) and bins.ndim == 0:
        need_values("histogram", "bins", bins, "the size of the result")
        bins = int(bins.item())
    if isinstance(bins, tp.Tensor):
        edges = bins.detach()
        if range is not None:
            raise ValueError("histogram: the edges say the range; drop range=")
        if edges.ndim != 1 or len(edges) < 2:
            raise ValueError(f"histogram: bins has sizes {list(edges.shape)}; a vector of at least 2 edges is needed")
    else:
        if bins < 1:
            raise ValueError(f"histogram: bins={bins} is not positive")
        if range is None:
            low, high = _ends(x, 0.5) if x.numel() else (0.0, 1.0)
        else:
            low, high = (float(v) for v in range)
            if low == high:
                low, high = low - 0.5, high + 0.5
        _check_range("histogram", low, high)
        if readable(low, high):
            edges = tp.linspace(low, high, bins + 1, dtype=x.dtype)
        else:
            part = tp.linspace(0, 1, bins + 1, dtype=x.dtype)
            edges = low * (1 - part) + high * part
    count = len(edges) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    at = (searchsorted(edges, x, right=True) - 1).clamp(0, count - 1)
    given = tp.ones_like(x) if weight is None else weight.detach().reshape([-1]).to(x.dtype)
    if len(given) != len(x):
        raise ValueError(f"histogram: {len(given)} weights for {len(x)} elements")
    hist = tp.zeros([count], dtype=x.dtype).index_add(0, at, tp.where(inside, given, tp.zeros_like(given)))
    if density:
        hist = hist / (hist.sum() * (edges[1:] - edges[:-1]))
    return Histogram(hist, edges)


# ---- places in sorted sequences -------------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side='{side}' is not 'left' or 'right'")
    if side == "left" and right:
        raise ValueError("searchsorted: side='left' and right=True contradict each other")
    if not isinstance(input, tp.Tensor):
        input = tp.tensor(input, dtype=sorted_sequence.dtype if not isinstance(input, float) else None)
    if sorter is not None:
        if tuple(sorter.shape) != tuple(sorted_sequence.shape):
            raise ValueError(
                f"searchsorted: sorter has sizes {list(sorter.shape)}, sorted_sequence {list(sorted_sequence.shape)}"
            )
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    out = tp._C.internal.searchsorted_in(sorted_sequence, input, right=right or side == "right")
    return out.to(tp.int32) if out_int32 else out


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    if boundaries.ndim != 1:
        raise ValueError(f"bucketize: boundaries have sizes {list(boundaries.shape)}; a vector is needed")
    if not isinstance(input, tp.Tensor):
        input = tp.tensor(input, dtype=boundaries.dtype if not isinstance(input, float) else None)
    out = tp._C.internal.searchsorted_in(boundaries, input, right=right)
    return out.to(tp.int32) if out_int32 else out


# ---- covariance -----------------------------------------------------------------------------------------------------


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    if input.ndim > 2:
        raise ValueError(f"cov: input has sizes {list(input.shape)}; a matrix with one variable a row is needed")
    if fweights is None and aweights is None:
        return tp._C.internal.cov_rows(input, correction)
    x = input if input.ndim == 2 else input.reshape([1, -1])
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None and list(w.shape) != [x.shape[1]]:
            raise ValueError(f"cov: {name} has sizes {list(w.shape)} for {x.shape[1]} observations")
        if w is not None and w.numel() and readable(w) and float(w.min().item()) < 0:
            raise ValueError(f"cov: {name} has the negative element {float(w.min().item())}")
    if not x.is_floating_point() and not x.is_complex():
        x = x.to(tp.get_default_dtype())
    real = x.dtype.to_real() if x.is_complex() else x.dtype
    w = tp.ones([x.shape[1]], dtype=real)
    if fweights is not None:
        w = w * fweights.to(real)
    if aweights is not None:
        w = w * aweights.to(real)
    total = w.sum()
    centred = x - (x * w).sum(1, keepdim=True) / total
    if aweights is None or correction == 0:
        free = total - correction
    else:
        free = total - correction * (w * aweights.to(real)).sum() / total
    out = tp.matmul(centred * w, centred.conj().transpose(0, 1)) / free.clamp(min=0)
    return out if input.ndim == 2 else out.reshape([])
