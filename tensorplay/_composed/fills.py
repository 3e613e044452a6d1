"""Draws that overwrite a tensor (bernoulli_, random_, cauchy_, ...) and draws with parameters of their own."""

from __future__ import annotations

from typing import Any

import tensorplay as tp

Tensor = Any


def _uniform(input: Tensor, generator: Any) -> Tensor:
    """Numbers of (0, 1) in input's sizes, float64 where that is what input holds."""
    dtype = tp.float64 if input.dtype in (tp.float64, tp.int64) else tp.float32
    return tp.rand(input.shape, generator=generator, dtype=dtype).clamp(min=tp.finfo(dtype).tiny)


def _write(input: Tensor, values: Tensor) -> Tensor:
    return input.copy_(values.to(input.dtype))


def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    if isinstance(p, tp.Tensor):
        chances = p.detach().expand(input.shape).to(tp.float64 if p.dtype == tp.float64 else tp.float32)
    else:
        if not 0 <= p <= 1:
            raise ValueError(f"bernoulli_: p={p} is not a probability; it must be between 0 and 1")
        chances = tp.full(input.shape, float(p), dtype=tp.float64)
    return _write(input, tp.bernoulli(chances, generator=generator))


def bernoulli_of(input: Tensor, p: float, *, generator: Any = None) -> Tensor:
    return bernoulli_(input.detach().clone(), p, generator=generator)


def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    if sigma <= 0:
        raise ValueError(f"cauchy_: sigma={sigma} is not positive")
    return _write(input, ((_uniform(input, generator) - 0.5) * tp.pi).tan() * sigma + median)


def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    if std <= 0:
        raise ValueError(f"log_normal_: std={std} is not positive")
    dtype = tp.float64 if input.dtype == tp.float64 else tp.float32
    return _write(input, (tp.randn(input.shape, generator=generator, dtype=dtype) * std + mean).exp())


def geometric_(input: Tensor, p: float, *, generator: Any = None) -> Tensor:
    if not 0 < p < 1:
        raise ValueError(f"geometric_: p={p} is not between 0 and 1")
    size = tp.log1p(tp.tensor(-float(p), dtype=tp.float64))
    return _write(input, (_uniform(input, generator).log() / size).ceil().clamp(min=1))


def random_(input: Tensor, *bounds: int, generator: Any = None, to: int | None = None) -> Tensor:
    """Takes to, or from and to; without them up to what the dtype holds exactly."""
    if len(bounds) > 2 or (to is not None and len(bounds) > 1):
        raise TypeError(f"random_: takes from and to, got {len(bounds)} numbers")
    low, high = 0, to
    if len(bounds) == 2:
        low, high = bounds
    elif bounds:
        low, high = (0, bounds[0]) if to is None else (bounds[0], to)
    if high is None:
        kind = input.dtype
        if kind == tp.bool:
            high = 2
        elif kind.is_floating_point:
            high = 2 ** {tp.float16: 11, tp.bfloat16: 8, tp.float32: 24}.get(kind, 53)
        else:
            high = int(tp.iinfo(kind).max)
    if high <= low:
        raise ValueError(f"random_: from={low} is not below to={high}")
    return _write(input, tp.randint(low, high, input.shape, generator=generator, dtype=tp.int64))
