"""Interpolation to another size and sampling on a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorplay as tp

Tensor = Any
_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    op, n = "interpolate", input.ndim - 2
    if not 1 <= n <= 3:
        raise ValueError(f"{op}: needs [N, C, ...] with 1 to 3 more dimensions, got sizes {list(input.shape)}")
    if mode not in _MODES:
        raise ValueError(f"{op}: mode='{mode}' is not one of {', '.join(_MODES)}")
    if (mode in _LINEAR and _LINEAR[mode] != n) or (mode == "bicubic" and n != 2):
        raise ValueError(f"{op}: mode='{mode}' does not go with {n} dimensions of space, sizes {list(input.shape)}")
    if align_corners is not None and mode not in (*_LINEAR, "bicubic"):
        raise ValueError(f"{op}: align_corners goes with linear, bilinear, bicubic and trilinear, not with '{mode}'")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"{op}: antialias goes with bilinear and bicubic, not with '{mode}'")
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{op}: give one of size and scale_factor")
    space = list(input.shape[2:])
    scales: list[float] = []
    if size is not None:
        sizes = [size] * n if isinstance(size, int) else [int(s) for s in size]
        if recompute_scale_factor:
            raise ValueError(f"{op}: recompute_scale_factor goes with scale_factor, not with size")
    else:
        factors = [scale_factor] * n if isinstance(scale_factor, (int, float)) else list(scale_factor)
        if len(factors) != n:
            raise ValueError(f"{op}: {len(factors)} factors for {n} dimensions of space")
        sizes = [math.floor(s * float(f)) for s, f in zip(space, factors, strict=True)]
        if not recompute_scale_factor:
            scales = [float(f) for f in factors]
    if len(sizes) != n or min(sizes) < 1:
        raise ValueError(f"{op}: sizes {sizes} for {n} dimensions of space; every one must be positive")
    if min(space) < 1 or input.shape[1] < 1:
        raise ValueError(f"{op}: input of sizes {list(input.shape)} has no element to read")
    internal = tp._C.internal
    if mode == "area":
        pool = (tp.nn.functional.adaptive_avg_pool1d, tp.nn.functional.adaptive_avg_pool2d,
                tp.nn.functional.adaptive_avg_pool3d)[n - 1]  # fmt: skip
        return pool(input, sizes)
    if mode in ("nearest", "nearest-exact"):
        return internal.upsample_nearest_to(input, sizes, scales, mode == "nearest-exact")
    if antialias:
        return _antialiased(input, sizes, scales, mode, bool(align_corners))
    if mode == "bicubic":
        return internal.upsample_bicubic_to(input, sizes, scales, bool(align_corners))
    return internal.upsample_linear_to(input, sizes, scales, bool(align_corners))


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    return interpolate(input, size, scale_factor, "bilinear", True)


def _antialiased(x: Tensor, sizes: Sequence[int], scales: Sequence[float], mode: str, align: bool) -> Tensor:
    """A matrix product along each dimension: rows are the filter, widened where the size shrinks."""
    for k, n in enumerate(sizes):
        d = 2 + k
        m = x.shape[d]
        if align:
            ratio = (m - 1) / (n - 1) if n > 1 else 0.0
        else:
            ratio = 1 / scales[k] if scales and scales[k] > 0 else m / n
        wide = max(ratio, 1.0)
        reach = (1.0 if mode == "bilinear" else 2.0) * wide
        rows = []
        for i in range(n):
            # Centres as image libraries count them, whatever align says.
            centre = ratio * (i + 0.5)
            low, high = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), m)
            weights = [_filter((j - centre + 0.5) / wide, mode) for j in range(low, high)]
            total = sum(weights) or 1.0
            rows.append([0.0] * low + [w / total for w in weights] + [0.0] * (m - high))
        matrix = tp.tensor(rows, dtype=x.dtype)
        x = tp.matmul(x.movedim(d, -1), matrix.transpose(0, 1)).movedim(-1, d)
    return x


def _filter(t: float, mode: str) -> float:
    t = abs(t)
    if mode == "bilinear":
        return max(1 - t, 0.0)
    a = -0.5
    if t < 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


# ---- sampling on a grid ---------------------------------------------------------------------------------------------


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    sizes = [int(s) for s in size]
    n = len(sizes) - 2
    if n not in (2, 3) or list(theta.shape) != [sizes[0], n, n + 1]:
        raise ValueError(
            f"affine_grid: theta of sizes [N, 2, 3] goes with a size of 4 numbers, [N, 3, 4] with 5; got "
            f"{list(theta.shape)} and {sizes}"
        )

    def line(k: int) -> Tensor:
        if k <= 1:
            return tp.zeros([k], dtype=theta.dtype)
        at = tp.linspace(-1, 1, k, dtype=theta.dtype)
        return at if align_corners else at * ((k - 1) / k)

    grids = tp.meshgrid(*(line(k) for k in sizes[2:]))
    base = tp.stack([*reversed(grids), tp.ones(sizes[2:], dtype=theta.dtype)], -1).reshape([1, -1, n + 1])
    out = tp.matmul(base.expand([sizes[0], *base.shape[1:]]), theta.transpose(1, 2))
    return out.reshape([sizes[0], *sizes[2:], n])


_PADDING = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    op, n = "grid_sample", input.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"{op}: mode='{mode}' is not bilinear, nearest or bicubic")
    if padding_mode not in _PADDING:
        raise ValueError(f"{op}: padding_mode='{padding_mode}' is not one of {', '.join(_PADDING)}")
    if n not in (2, 3) or grid.ndim != n + 2 or grid.shape[0] != input.shape[0] or grid.shape[-1] != n:
        raise ValueError(
            f"{op}: an input of sizes [N, C, H, W] needs a grid [N, h, w, 2], [N, C, D, H, W] one of [N, d, h, w, 3]; "
            f"got {list(input.shape)} and {list(grid.shape)}"
        )
    if mode == "bicubic" and n != 2:
        raise ValueError(f"{op}: mode='bicubic' is for 4 dimensions, got sizes {list(input.shape)}")
    if min(input.shape[2:]) < 1:
        raise ValueError(f"{op}: input of sizes {list(input.shape)} has no element to read")
    return _sample(input, grid, mode, padding_mode, bool(align_corners))


def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    return grid_sample(
        input, grid, ("bilinear", "nearest", "bicubic")[interpolation_mode], _PADDING[padding_mode], align_corners
    )


def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    return grid_sample(
        input, grid, ("bilinear", "nearest", "bicubic")[interpolation_mode], _PADDING[padding_mode], align_corners
    )


def _sample(x: Tensor, grid: Tensor, mode: str, padding: str, align: bool) -> Tensor:
    space = list(x.shape[2:])
    n = len(space)
    flat = x.reshape([x.shape[0], x.shape[1], math.prod(space)])
    out_space = list(grid.shape[1:-1])
    # The last coordinate of the grid runs along the first dimension of space.
    places = [grid.select(-1, n - 1 - k).reshape([x.shape[0], -1]) for k in range(n)]
    at = [(p + 1) / 2 * (s - 1) if align else ((p + 1) * s - 1) / 2 for p, s in zip(places, space, strict=True)]
    if mode != "bicubic":
        at = [_padded(p, s, padding, align) for p, s in zip(at, space, strict=True)]
    if mode == "nearest":
        corners = [[(p.round().detach(), None)] for p in at]
    elif mode == "bilinear":
        corners = []
        for p in at:
            low = p.floor().detach()
            corners.append([(low, 1 - (p - low)), (low + 1, p - low)])
    else:
        corners = []
        for p in at:
            low = p.floor().detach()
            t = p - low
            corners.append([(low + k, _cubic(t, k)) for k in (-1, 0, 1, 2)])
    total = None
    for choice in _product(corners):
        index, inside, weight = None, None, None
        for (place, w), s in zip(choice, space, strict=True):
            if mode == "bicubic":
                place = _padded(place, s, padding, align).round()
            here = (place >= 0) & (place <= s - 1)
            place = place.clamp(0, s - 1).nan_to_num().to(tp.int64)
            index = place if index is None else index * s + place
            inside = here if inside is None else inside & here
            weight = w if weight is None else weight if w is None else weight * w
        assert index is not None and inside is not None
        values = flat.gather(2, index.unsqueeze(1).expand([x.shape[0], x.shape[1], index.shape[1]]))
        values = tp.where(inside.unsqueeze(1), values, tp.zeros((), dtype=x.dtype))
        term = values if weight is None else values * weight.unsqueeze(1)
        total = term if total is None else total + term
    assert total is not None
    return total.reshape([x.shape[0], x.shape[1], *out_space])


def _product(lists: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    out: list[tuple[Any, ...]] = [()]
    for items in lists:
        out = [(*head, i) for head in out for i in items]
    return out


def _cubic(t: Tensor, k: int) -> Tensor:
    """Weight of the neighbour k by cubic convolution with a = -0.75."""
    a = -0.75
    d = t + 1 if k == -1 else t if k == 0 else 1 - t if k == 1 else 2 - t
    if k in (0, 1):
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _padded(p: Tensor, s: int, padding: str, align: bool) -> Tensor:
    """A coordinate brought into range."""
    if padding == "zeros":
        return p
    if padding == "reflection":
        low, span = (0.0, float(s - 1)) if align else (-0.5, float(s))
        if span == 0:
            return p * 0
        d = (p - low).abs()
        turns = (d / span).floor().detach()
        rest = d - turns * span
        p = tp.where(turns % 2 == 0, rest + low, span - rest + low)
    return p.clamp(0, s - 1)
