"""Plain NumPy forms of resampling (interpolation, grids of places): references for `check`, as in `numpy_ops.py`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .numpy_windows import adaptive_avg_pool

Array = Any
Dims = Sequence[int]


def cubic(d: float, a: float = -0.75) -> float:
    """Keys' cubic convolution kernel."""
    d = abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


# ---- interpolation: a matrix along each dimension of space ----------------------------------------------------------


def _resize_matrix(n: int, size: int, factor: float, rule: str, align: bool) -> Array:
    """[size, n]: how much of each input element an output element holds."""
    ratio = 1 / factor if factor > 0 else n / size
    at = np.arange(size)
    if rule.startswith("nearest"):
        source = np.floor((at + (0.5 if rule == "nearest-exact" else 0)) * ratio).astype(int)
        return np.eye(n)[np.minimum(source, n - 1)]
    place = at * ((n - 1) / (size - 1) if size > 1 else 0) if align else (at + 0.5) * ratio - 0.5
    if rule == "linear":
        return np.stack([np.interp(place, np.arange(n), row) for row in np.eye(n)], 1)
    out = np.zeros((size, n))
    for i, p in enumerate(place):
        for j in range(int(np.floor(p)) - 1, int(np.floor(p)) + 3):
            out[i, min(max(j, 0), n - 1)] += cubic(p - j)
    return out


def _resize(x: Array, matrices: Sequence[Array]) -> Array:
    for k, m in enumerate(matrices):
        x = np.moveaxis(np.moveaxis(x, 2 + k, -1) @ m.T, -1, 2 + k)
    return x


def _matrices(sizes: Dims, size: Dims, scale: Sequence[float], rule: str, align: bool) -> list[Array]:
    factors = list(scale) or [0.0] * len(size)
    return [_resize_matrix(n, s, f, rule, align) for n, s, f in zip(sizes[2:], size, factors, strict=True)]


def _upsample(rule: str | None) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A rule and its transpose; None: one of the nearest rules, as the last argument says."""

    def named(flag: bool) -> str:
        return rule or ("nearest-exact" if flag else "nearest")

    def forward(x: Array, size: Dims, scale: Sequence[float], flag: bool) -> Array:
        return _resize(x, _matrices(np.shape(x), size, scale, named(flag), flag))

    def transposed(grad: Array, input_size: Dims, scale: Sequence[float], flag: bool) -> Array:
        return _resize(grad, [m.T for m in _matrices(input_size, np.shape(grad)[2:], scale, named(flag), flag)])

    return forward, transposed


def filter_rows(length: int, size: int, scale: Sequence[float], dim: int, is_cubic: bool, align: bool) -> Array:
    """Rows of a triangle or a cubic as wide as what one output element stands for, brought to sum 1."""
    ratio = 1 / scale[dim] if len(scale) else length / size
    if align:
        ratio = (length - 1) / (size - 1) if size > 1 else 0.0
    wide = max(ratio, 1.0)
    out = np.zeros((size, length))
    for i in range(size):
        centre = i * ratio if align else (i + 0.5) * ratio - 0.5
        for j in range(length):
            d = (j - centre) / wide
            out[i, j] = cubic(d, -0.5) if is_cubic else max(0.0, 1 - abs(d))
    return out / out.sum(axis=1, keepdims=True)


def antialiased(x: Array, size: Dims, scale: Sequence[float], is_cubic: bool, align: bool) -> Array:
    return _resize(x, [filter_rows(x.shape[2 + k], s, scale, k, is_cubic, align) for k, s in enumerate(size)])


def interpolate(
    x: Array, size: Dims | None, scale_factor: Sequence[float] | None, mode: str = "nearest",
    align_corners: bool | None = None, recompute: bool | None = None, antialias: bool = False,
) -> Array:  # fmt: skip
    space = np.shape(x)[2:]
    scale: tuple[float, ...] = ()
    if size is None:
        given = tuple(scale_factor or ())
        scale = given * len(space) if len(given) == 1 else given
        size = [int(np.floor(n * s)) for n, s in zip(space, scale, strict=True)]
        scale = () if recompute else scale
    elif len(size) == 1:
        size = tuple(size) * len(space)
    align = bool(align_corners)
    if mode == "area":
        return adaptive_avg_pool(x, size)
    if antialias:
        return antialiased(x, size, scale, mode == "bicubic", align)
    rule = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return _resize(x, _matrices(np.shape(x), size, scale, rule, align))


# ---- grids ----------------------------------------------------------------------------------------------------------


def grid_line(like: Array, n: int, align: bool) -> Array:
    """Centres of n elements of equal length on [-1, 1]; the first and last at its ends with align."""
    if n <= 1:
        return np.zeros(n)
    return np.array([-1 + 2 * i / (n - 1) if align else (2 * i + 1) / n - 1 for i in range(n)])


def affine_grid(theta: Array, size: Dims, align: bool | None) -> Array:
    batch, _, *space = size
    out = np.zeros((batch, *space, len(space)))
    lines = [grid_line(theta, k, bool(align)) for k in space]
    for at in np.ndindex(*space):
        place = [line[i] for line, i in zip(lines, at, strict=True)][::-1]
        out[(slice(None), *at)] = theta @ np.array([*place, 1.0])
    return out


def _fold(p: float, low: float, span: float) -> float:
    """p reflected at low and low + span until it lies between."""
    if span == 0:
        return 0.0
    far = abs(p - low) % (2 * span)
    return low + (far if far <= span else 2 * span - far)


def _padded(p: float, n: float, padding: int, align: bool) -> float:
    """Brought into [0, n - 1]: left alone, held at the borders, reflected about the border's centre or outer edge."""
    if padding == 0:
        return p
    if padding == 2:
        p = _fold(p, 0.0, n - 1) if align else _fold(p, -0.5, n)
    return min(max(p, 0.0), n - 1)


def _neighbours(p: float, mode: int) -> list[tuple[float, float]]:
    """(position, weight) along one dimension."""
    if mode == 1:
        return [(float(np.rint(p)), 1.0)]
    low = float(np.floor(p))
    if mode == 0:
        return [(low, 1 - (p - low)), (low + 1, p - low)]
    return [(low + k, cubic(p - low - k)) for k in (-1, 0, 1, 2)]


def _spots(place: Array, space: Dims, mode: int, padding: int, align: bool) -> Iterator[tuple[tuple[int, ...], float]]:
    """The elements that a place of the grid reads, and how much of each."""
    spots: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    for c, n in zip(place[::-1], space, strict=True):
        p = (c + 1) / 2 * (n - 1) if align else ((c + 1) * n - 1) / 2
        if mode != 2:
            p = _padded(p, n, padding, align)
        along = _neighbours(p, mode)
        if mode == 2:
            along = [(_padded(q, n, padding, align), w) for q, w in along]
        spots = [((*at, int(np.rint(q))), v * w) for at, v in spots for q, w in along]
    return ((at, w) for at, w in spots if all(0 <= i < n for i, n in zip(at, space, strict=True)))


def grid_sampled(x: Array, grid: Array, mode: int, padding: int, align: bool) -> Array:
    space = x.shape[2:]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *at in np.ndindex(grid.shape[:-1]):
        for spot, weight in _spots(grid[(n, *at)], space, mode, padding, align):
            out[(n, slice(None), *at)] += weight * x[(n, slice(None), *spot)]
    return out


def grid_sample(x: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool | None) -> Array:
    number = ("bilinear", "nearest", "bicubic").index(mode)
    return grid_sampled(x, grid, number, ("zeros", "border", "reflection").index(padding_mode), bool(align_corners))


def grid_neighbours(low: Array, space: Dims, width: int, padding: int, align: bool) -> Array:
    out = np.zeros((*low.shape[:-1], width ** len(space)), dtype=np.int64)
    for at in np.ndindex(low.shape[:-1]):
        lines = [
            [np.rint(_padded(p + k, n, padding, align)) for k in range(width)]
            for p, n in zip(low[at], space, strict=True)
        ]
        for i, spot in enumerate(itertools.product(*lines)):
            inside = all(0 <= q < n for q, n in zip(spot, space, strict=True))
            out[(*at, i)] = np.ravel_multi_index([int(q) for q in spot], space) if inside else -1
    return out


def grid_weights(place: Array, width: int) -> Array:
    out = np.ones((*place.shape[:-1], width ** place.shape[-1]))
    for at in np.ndindex(place.shape[:-1]):
        lines = [[1 - abs(p - k) if width == 2 else cubic(p - k) for k in range(width)] for p in place[at]]
        out[at] = [np.prod(each) for each in itertools.product(*lines)]
    return out


def weighted_picks(x: Array, index: Array, weights: Array) -> Array:
    at = np.maximum(index, 0)[..., None, :, :]
    lead = np.broadcast_shapes(x.shape[:-2], index.shape[:-2])
    wide = np.broadcast_to(x[..., None, :], (*lead, x.shape[-2], index.shape[-2], x.shape[-1]))
    values = np.take_along_axis(wide, np.broadcast_to(at, (*wide.shape[:-1], index.shape[-1])), -1)
    return np.einsum("...cpk,...pk->...cp", np.where(index[..., None, :, :] < 0, 0, values), weights)


def _each(f: Callable[..., float]) -> Callable[..., Array]:
    """A function of a coordinate, over arrays of them and of lengths."""
    return np.vectorize(f, otypes=[float])


OPS: dict[str, Callable[..., Any]] = {
    "interpolate": interpolate,
    "upsample": interpolate,
    "upsample_nearest": interpolate,
    "upsample_bilinear": lambda x, size, factor: interpolate(x, size, factor, "bilinear", True),
    "antialiased": antialiased,
    "grid_line": grid_line,
    "affine_grid": affine_grid,
    "grid_padded": _each(_padded),
    "grid_reflected": _each(_fold),
    "grid_sampled": grid_sampled,
    "grid_weights": grid_weights,
    "grid_sampler_2d": grid_sampled,
    "grid_sampler_3d": grid_sampled,
    "grid_sample": grid_sample,
}
KERNELS: dict[str, Callable[..., Any]] = {
    "filter_rows": filter_rows,
    "weighted_picks": weighted_picks,
    "grid_neighbours": grid_neighbours,
}
for _rule, _name in ((None, "nearest"), ("linear", "linear"), ("cubic", "bicubic")):
    KERNELS[f"upsample_{_name}"], KERNELS[f"upsample_{_name}_slope"] = _upsample(_rule)
