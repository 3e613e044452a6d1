"""Plain NumPy forms of ops that draw: references for `check`, as in `numpy_ops.py`.

What a generator gives is fixed here: numbers that depend on their sizes and on whether the generator was handed on, so
that a formula over draws is compared element by element, and one that forgets the generator draws others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any
Dims = Sequence[int]

GENERATOR = "the generator of check"  # what a `generator` argument is given


def _source(generator: Any) -> np.random.Generator:
    return np.random.default_rng(1 if generator is None else 2)


def _typed(x: Array, dtype: Any) -> Array:
    from .reference import NP_DTYPE

    return x if dtype is None else x.astype(NP_DTYPE[dtype] if isinstance(dtype, str) else dtype)


def rand(size: Dims, generator: Any = None, dtype: Any = None) -> Array:
    """The first number is 0, the end of [0, 1) that a formula must survive."""
    u = _source(generator).random(tuple(size))
    u.reshape(-1)[:1] = 0
    return _typed(u, dtype)


def randn(size: Dims, generator: Any = None, dtype: Any = None) -> Array:
    return _typed(_source(generator).standard_normal(tuple(size)), dtype)


def randint(low: int, high: int, size: Dims, generator: Any = None, dtype: Any = None) -> Array:
    # By the uniform numbers: a change of either end moves them.
    return _typed(np.floor(low + rand(size, generator) * (high - low)), dtype or "i64")


def _like(draw: Callable[..., Array]) -> Callable[..., Array]:
    def drawn(x: Array, *rest: Any) -> Array:
        *bounds, generator, dtype = rest
        return draw(*bounds, np.shape(x), generator, dtype)

    return drawn


def _below(high: int, size: Dims, generator: Any = None, dtype: Any = None) -> Array:
    return randint(0, high, size, generator, dtype)


def bernoulli(x: Array, *rest: Any) -> Array:
    """With the probabilities in x, or one for all: (x, generator) or (x, p, generator)."""
    p, generator = rest if len(rest) == 2 else (x, *rest)
    return (rand(np.shape(x), generator) < p).astype(np.asarray(x).dtype)


def _kept(sizes: Dims, p: float, generator: Any = None) -> Array:
    return rand(sizes, generator) < 1 - p


def native_dropout(x: Array, p: float, generator: Any) -> tuple[Array, Array]:
    kept = _kept(np.shape(x), p, generator)
    return np.where(kept, x, 0) / (1 - p if p < 1 else 1), kept


KERNELS: dict[str, Callable[..., Any]] = {
    "rand": rand,
    "randn": randn,
    "randint": randint,
    "randint_high": _below,
    "rand_like": _like(rand),
    "randn_like": _like(randn),
    "randint_like": _like(randint),
    "randint_like_high": _like(_below),
    "randperm": lambda n, generator=None, dtype=None: _typed(_source(generator).permutation(n), dtype or "i64"),
    "bernoulli": bernoulli,
    "native_dropout": native_dropout,
}


# ---- compositions ---------------------------------------------------------------------------------------------------


def uniform_draw(x: Array, generator: Any) -> Array:
    """Numbers of (0, 1): none is below the smallest normal one of the precision drawn in."""
    wide = np.asarray(x).dtype in (np.float64, np.int64)
    u = rand(np.shape(x), generator, "f64" if wide else "f32")
    return np.maximum(u, np.finfo(u.dtype).tiny)


def _as(x: Array, values: Array) -> Array:
    return np.asarray(values).astype(np.asarray(x).dtype)


def _cauchy(x: Array, median: float, sigma: float, generator: Any) -> Array:
    return _as(x, median + sigma * np.tan(np.pi * (uniform_draw(x, generator) - 0.5)))


def _geometric(x: Array, p: float, generator: Any) -> Array:
    """The first trial by which the chance that none succeeded is no more than the number drawn."""
    u = uniform_draw(x, generator)
    return _as(x, np.maximum(np.ceil(np.log(u) / math.log(1 - p)), 1))


def _log_normal(x: Array, mean: float, std: float, generator: Any) -> Array:
    z = randn(np.shape(x), generator, "f64" if np.asarray(x).dtype == np.float64 else "f32")
    return _as(x, np.exp(mean + std * z))


def _normal(mean: Array, std: Array, *rest: Any) -> Array:
    """(mean, std, generator), or (mean, std, size, generator, dtype) of two numbers."""
    broadcast = np.broadcast_shapes(np.shape(mean), np.shape(std))
    size, generator = rest[:2] if len(rest) == 3 else (broadcast, *rest)
    return std * randn(size, generator) + mean


def _poisson(x: Array, generator: Any) -> Array:
    from scipy import stats

    return _as(x, np.maximum(stats.poisson.ppf(rand(np.shape(x), generator, "f64"), x), 0))


def _gumbel_softmax(logits: Array, tau: float, hard: bool, eps: float, dim: int) -> Array:
    """Exponentials of noisy logits over their sum; hard: 1 where they are largest."""
    noisy = np.exp(logits / tau) * (-np.log(uniform_draw(logits, None))) ** (-1 / tau)
    if hard:
        return (noisy == noisy.max(dim, keepdims=True)).astype(noisy.dtype)
    return noisy / noisy.sum(dim, keepdims=True)


def _random(x: Array, *rest: Any) -> Array:
    """(generator), (to, generator) or (from, to, generator)."""
    low, high = (0, *rest[:-1])[-2:] if len(rest) > 1 else (0, None)
    held = np.asarray(x).dtype
    digits = np.iinfo(held).max if held.kind in "iu" else 1 << (np.finfo(held).nmant + 1)
    return _as(x, randint(low, digits if high is None else high, np.shape(x), rest[-1]))


def drop(x: Array, p: float, sizes: Dims) -> Array:
    """Elements of sizes stand for all that broadcast to them."""
    return np.where(_kept(sizes, p), x, 0) / (1 - p) if p < 1 else np.zeros(np.shape(x))


def drop_selu(x: Array, p: float, sizes: Dims) -> Array:
    """What is dropped falls to SELU's limit; an affine map brings mean 0 and variance 1 back."""
    if p == 1:
        return np.zeros(np.shape(x))
    limit = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717
    scale = 1 / math.sqrt((1 - p) * (1 + p * limit**2))
    return scale * (np.where(_kept(sizes, p), x, limit) - p * limit)


def _channels(x: Array, lead: int) -> tuple[int, ...]:
    """Sizes of one draw for each of the first dimensions."""
    return tuple(n if i < lead else 1 for i, n in enumerate(np.shape(x)))


def _dropout(space: int | None, dropped: Callable[..., Array] = drop) -> Callable[..., Array]:
    """Of elements (None), or of channels: two dimensions, or one where only `space` more follow (0: always two)."""

    def f(x: Array, p: float, training: bool) -> Array:
        if not training or p == 0:
            return x
        if space is None:
            return dropped(x, p, np.shape(x))
        return dropped(x, p, _channels(x, 1 if space and np.ndim(x) == space + 1 else 2))

    return f


def _rrelu(x: Array, lower: float, upper: float, training: bool) -> Array:
    slope = lower + rand(np.shape(x)) * (upper - lower) if training else (lower + upper) / 2
    return np.where(x >= 0, x, x * slope)


OPS: dict[str, Callable[..., Any]] = {
    "uniform": lambda x, low, high, g: low + rand(np.shape(x), g) * (high - low),
    "normal": _normal,
    "normal_fill": lambda x, mean, std, g: mean + randn(np.shape(x), g) * std,
    "poisson": _poisson,
    "gumbel_softmax": _gumbel_softmax,
    "exponential": lambda x, rate, g: -np.log(1 - rand(np.shape(x), g)) / rate,
    "bernoulli": bernoulli,
    "bernoulli_fill": bernoulli,
    "uniform_draw": uniform_draw,
    "cauchy": _cauchy,
    "geometric": _geometric,
    "log_normal": _log_normal,
    "random": _random,
    "random_between": lambda x, low, high, g: _as(x, randint(low, high, np.shape(x), g)),
    "drop": drop,
    "drop_selu": drop_selu,
    "dropout": _dropout(None),
    "dropout1d": _dropout(1),
    "dropout2d": _dropout(0),
    "dropout3d": _dropout(3),
    "alpha_dropout": _dropout(None, drop_selu),
    "feature_alpha_dropout": _dropout(0, drop_selu),
    "rrelu": _rrelu,
}
