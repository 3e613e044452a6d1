"""Plain NumPy forms of convolution, normalisation and attention: references for `check`, as in `numpy_ops.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .numpy_random import drop

Array = Any
Dims = Sequence[int]


# ---- convolution ----------------------------------------------------------------------------------------------------


def _pads(padding: Dims | str, kernel: Dims, dilation: Dims) -> list[tuple[int, int]]:
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(t // 2, t - t // 2) for t in totals]
    return [(int(p), int(p)) for p in padding]


def _taps(
    padded: Dims, kernel: Dims, stride: Dims, dilation: Dims
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[int, ...]]]:
    """(position in the kernel, the slice of the padded input it meets, sizes of the output)."""
    out = tuple((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded, kernel, stride, dilation, strict=True))
    for at in np.ndindex(*kernel):
        yield (
            at,
            tuple(
                slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilation, out, stride, strict=True)
            ),
            out,
        )


def _batched(x: Array, spatial: int) -> tuple[Array, bool]:
    return (x, False) if x.ndim == spatial + 2 else (x[None], True)


def _padded(x: Array, pads: list[tuple[int, int]]) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *pads])


def convolution(
    x: Array, w: Array, b: Array | None, stride: Dims, padding: Any, dilation: Dims, groups: int = 1
) -> Array:
    x, single = _batched(x, w.ndim - 2)
    kernel = w.shape[2:]
    full = _padded(x, _pads(padding, kernel, dilation))
    out: Array = 0
    wg = w.reshape(groups, -1, *w.shape[1:])
    for at, cut, _ in _taps(full.shape[2:], kernel, stride, dilation):
        part = full[(slice(None), slice(None), *cut)]
        part = part.reshape(part.shape[0], groups, -1, *part.shape[2:])
        out = out + np.einsum("ngc...,goc->ngo...", part, wg[(..., *at)])
    out = out.reshape(out.shape[0], -1, *out.shape[3:])
    if b is not None:
        out = out + np.reshape(b, (1, -1, *(1,) * len(kernel)))
    return out[0] if single else out


def convolution_input_slope(
    grad: Array, w: Array, size: Dims, stride: Dims, padding: Any, dilation: Dims, groups: int = 1
) -> Array:
    grad, single = _batched(grad, w.ndim - 2)
    kernel, space = w.shape[2:], tuple(size)[-(w.ndim - 2) :]
    pads = _pads(padding, kernel, dilation)
    padded = tuple(n + a + b for n, (a, b) in zip(space, pads, strict=True))
    full: Array = np.zeros((grad.shape[0], tuple(size)[-(w.ndim - 1)], *padded), dtype=np.result_type(grad, w))
    wg = w.reshape(groups, -1, *w.shape[1:])
    g = grad.reshape(grad.shape[0], groups, -1, *grad.shape[2:])
    for at, cut, _ in _taps(padded, kernel, stride, dilation):
        part = np.einsum("ngo...,goc->ngc...", g, wg[(..., *at)])
        full[(slice(None), slice(None), *cut)] += part.reshape(part.shape[0], -1, *part.shape[3:])
    kept = full[(slice(None), slice(None), *(slice(a, a + n) for n, (a, _) in zip(space, pads, strict=True)))]
    return kept[0] if single else kept


def convolution_weight_slope(
    grad: Array, x: Array, size: Dims, stride: Dims, padding: Any, dilation: Dims, groups: int = 1
) -> Array:
    spatial = len(size) - 2
    grad, _ = _batched(grad, spatial)
    x, _ = _batched(x, spatial)
    kernel = tuple(size)[2:]
    full = _padded(x, _pads(padding, kernel, dilation))
    out = np.zeros((groups, size[0] // groups, *tuple(size)[1:]), dtype=np.result_type(grad, x))
    g = grad.reshape(grad.shape[0], groups, -1, *grad.shape[2:])
    for at, cut, _ in _taps(full.shape[2:], kernel, stride, dilation):
        part = full[(slice(None), slice(None), *cut)]
        part = part.reshape(part.shape[0], groups, -1, *part.shape[2:])
        axes = tuple(range(3, 3 + spatial))
        product = np.expand_dims(g, 3) * np.expand_dims(part, 2)
        place: Array = (..., *at)
        out[place] = product.sum(axis=(0, *(a + 1 for a in axes)))
    return out.reshape(tuple(size))


# ---- normalisation --------------------------------------------------------------------------------------------------


def _standardised(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    mu = x.mean(axis=axes, keepdims=True)
    rstd = 1 / np.sqrt(((x - mu) ** 2).mean(axis=axes, keepdims=True) + eps)
    return (x - mu) * rstd, mu, rstd


def _affine(x: Array, weight: Array | None, bias: Array | None, sizes: Dims) -> Array:
    x = x if weight is None else x * np.reshape(weight, sizes)
    return x if bias is None else x + np.reshape(bias, sizes)


def _channels(x: Array) -> tuple[int, ...]:
    return (1, x.shape[1], *(1,) * (x.ndim - 2))


def native_layer_norm(x: Array, normalized_shape: Dims, weight: Array | None, bias: Array | None, eps: float) -> Any:
    axes = tuple(range(-len(tuple(normalized_shape)), 0))
    y, mu, rstd = _standardised(x, axes, eps)
    return _affine(y, weight, bias, tuple(normalized_shape)), mu, rstd


def native_rms_norm(x: Array, normalized_shape: Dims, weight: Array | None, eps: float | None) -> Any:
    axes = tuple(range(-len(tuple(normalized_shape)), 0))
    rstd = 1 / np.sqrt((x**2).mean(axis=axes, keepdims=True) + (np.finfo(np.float64).eps if eps is None else eps))
    return _affine(x * rstd, weight, None, tuple(normalized_shape)), rstd


def native_group_norm(x: Array, num_groups: int, weight: Array | None, bias: Array | None, eps: float) -> Any:
    y, mu, rstd = _standardised(x.reshape(x.shape[0], num_groups, -1), (2,), eps)
    return _affine(y.reshape(x.shape), weight, bias, _channels(x)), mu[..., 0], rstd[..., 0]


def native_batch_norm(
    x: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array,
    training: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    axes = tuple(i for i in range(x.ndim) if i != 1)
    if training:
        y, mu, rstd = _standardised(x, axes, eps)
    else:
        mu, rstd = np.reshape(running_mean, _channels(x)), 1 / np.sqrt(np.reshape(running_var, _channels(x)) + eps)
        y = (x - mu) * rstd
    return _affine(y, weight, bias, _channels(x)), np.ravel(mu), np.ravel(rstd)


def _norm_gradients(
    grad: Array, x: Array, axes: tuple[int, ...], rstd: Array, weight: Array | None, sizes: Dims
) -> Any:
    """(u, normalised x, gradient of x), where the mean is that of x and rstd is taken at its word."""
    y = (x - x.mean(axis=axes, keepdims=True)) * rstd
    u = grad if weight is None else grad * np.reshape(weight, sizes)
    slope = rstd * (u - u.mean(axis=axes, keepdims=True) - y * (u * y).mean(axis=axes, keepdims=True))
    return y, slope


def native_layer_norm_backward(
    grad: Array, x: Array, normalized_shape: Dims, mu: Array, rstd: Array, weight: Array | None, *wanted: bool
) -> Any:
    sizes = tuple(normalized_shape)
    y, slope = _norm_gradients(grad, x, tuple(range(-len(sizes), 0)), rstd, weight, sizes)
    lead = tuple(range(x.ndim - len(sizes)))
    return slope, (grad * y).sum(axis=lead), grad.sum(axis=lead)


def native_rms_norm_backward(
    grad: Array, x: Array, normalized_shape: Dims, rstd: Array, weight: Array | None, *wanted: bool
) -> Any:
    sizes = tuple(normalized_shape)
    axes = tuple(range(-len(sizes), 0))
    y = x * rstd
    u = grad if weight is None else grad * np.reshape(weight, sizes)
    return rstd * (u - y * (u * y).mean(axis=axes, keepdims=True)), (grad * y).sum(
        axis=tuple(range(x.ndim - len(sizes)))
    )


def native_group_norm_backward(
    grad: Array, x: Array, num_groups: int, mu: Array, rstd: Array, weight: Array | None, *wanted: bool
) -> Any:
    grouped = (x.shape[0], num_groups, -1)
    u = grad if weight is None else grad * np.reshape(weight, _channels(x))
    y, slope = _norm_gradients(u.reshape(grouped), x.reshape(grouped), (2,), rstd[..., None], None, ())
    others = tuple(i for i in range(x.ndim) if i != 1)
    return slope.reshape(x.shape), (grad * y.reshape(x.shape)).sum(axis=others), grad.sum(axis=others)


def native_batch_norm_backward(
    grad: Array, x: Array, weight: Array | None, mu: Array, rstd: Array, training: bool, *wanted: bool
) -> Any:
    others = tuple(i for i in range(x.ndim) if i != 1)
    r = np.reshape(rstd, _channels(x))
    if training:
        y, slope = _norm_gradients(grad, x, others, r, weight, _channels(x))
    else:
        y = (x - np.reshape(mu, _channels(x))) * r
        slope = r * (grad if weight is None else grad * np.reshape(weight, _channels(x)))
    return slope, (grad * y).sum(axis=others), grad.sum(axis=others)


def _batch_norm(x: Array, running_mean: Array, running_var: Array, weight: Array, bias: Array, *rest: Any) -> Array:
    return native_batch_norm(x, weight, bias, running_mean, running_var, *rest)[0]


# ---- attention and channels -----------------------------------------------------------------------------------------


def native_attention(
    q: Array, k: Array, v: Array, mask: Array | None, dropout_p: float, is_causal: bool, scale: float | None,
    generator: Any = None,
) -> Any:  # fmt: skip
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / total @ v, (np.log(total) + top)[..., 0], np.zeros(2, dtype=np.int64)


def _attention(
    q: Array, k: Array, v: Array, mask: Array | None, dropout_p: float, is_causal: bool, scale: float | None
) -> Array:
    weights = native_attention(q, k, np.eye(k.shape[-2]), mask, 0.0, is_causal, scale)[0]
    return (drop(weights, dropout_p, weights.shape) if dropout_p else weights) @ v


def pixel_shuffle(x: Array, r: int) -> Array:
    *lead, c, h, w = x.shape
    out = np.empty((*lead, c // (r * r), h * r, w * r), dtype=x.dtype)
    for i in range(r):
        for j in range(r):
            out[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return out


def pixel_unshuffle(x: Array, r: int) -> Array:
    *lead, c, h, w = x.shape
    out = np.empty((*lead, c * r * r, h // r, w // r), dtype=x.dtype)
    for i in range(r):
        for j in range(r):
            out[..., i * r + j :: r * r, :, :] = x[..., i::r, j::r]
    return out


def channel_shuffle(x: Array, groups: int) -> Array:
    per = x.shape[1] // groups
    return x[:, [g * per + i for i in range(per) for g in range(groups)]]


def _instance_norm(
    x: Array, mean: Array | None, var: Array | None, weight: Array | None, bias: Array | None, own: bool,
    momentum: float, eps: float,
) -> Array:  # fmt: skip
    if not own:
        return native_batch_norm(x, weight, bias, mean, var, False, momentum, eps)[0]
    return _affine(_standardised(x, tuple(range(2, x.ndim)), eps)[0], weight, bias, _channels(x))


OPS: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": _attention,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "channel_shuffle": channel_shuffle,
    "instance_norm": _instance_norm,
    "layer_norm": lambda *a: native_layer_norm(*a)[0],
    "rms_norm": lambda *a: native_rms_norm(*a)[0],
    "group_norm": lambda *a: native_group_norm(*a)[0],
    "batch_norm": _batch_norm,
}
KERNELS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        convolution, convolution_input_slope, convolution_weight_slope, native_layer_norm, native_rms_norm,
        native_group_norm, native_batch_norm, native_layer_norm_backward, native_rms_norm_backward,
        native_group_norm_backward, native_batch_norm_backward, native_attention,
    )
}  # fmt: skip
KERNELS |= {
    "convolution_mode": convolution,
    "convolution_mode_input_slope": convolution_input_slope,
    "convolution_mode_weight_slope": convolution_weight_slope,
}
