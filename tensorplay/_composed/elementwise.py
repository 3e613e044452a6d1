"""Elementwise ops with optional parameters or several results, and draws like another tensor."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import tensorplay as tp

Tensor = Any


def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if not input.is_floating_point() and not input.is_complex():
        return input.clone()
    if input.is_complex():
        parts = (nan_to_num(part, nan, posinf, neginf) for part in (input.real, input.imag))
        return tp.complex(*parts)
    limits = tp.finfo(input.dtype)
    out = input.masked_fill(input.isnan(), 0.0 if nan is None else nan)
    out = out.masked_fill(input.isposinf(), limits.max if posinf is None else posinf)
    return out.masked_fill(input.isneginf(), limits.min if neginf is None else neginf)


def float_power(input: Any, exponent: Any) -> Tensor:
    def wide(x: Any) -> Any:
        if not isinstance(x, tp.Tensor):
            return x
        return x.to(tp.complex128 if x.is_complex() or either else tp.float64)

    either = any(isinstance(x, complex) or (isinstance(x, tp.Tensor) and x.is_complex()) for x in (input, exponent))
    return tp.pow(wide(input), wide(exponent))


Frexp = namedtuple("Frexp", ["mantissa", "exponent"])


def frexp(input: Tensor) -> Any:
    """The exponent is found in float64, where halves and float32 have no subnormal numbers."""
    x = input.detach().to(tp.float64)
    tiny = x.abs() < 2.0**-1000
    size = tp.where(tiny, x * 2.0**100, x).abs()
    finite = tp.isfinite(x) & (x != 0)
    size = tp.where(finite, size, tp.ones((), dtype=tp.float64))
    e = size.log2().floor()
    half = 2.0 ** (e / 2).floor()
    # The logarithm may be one off near powers of two.
    ratio = size / half / 2.0 ** (e - (e / 2).floor())
    e = e + tp.where(ratio >= 2, 1.0, tp.where(ratio < 1, -1.0, 0.0)) + 1
    e = tp.where(finite, e - tp.where(tiny, 100.0, 0.0), tp.zeros((), dtype=tp.float64))
    first = (-e / 2).floor()
    scale = [(2.0**k).to(input.dtype if input.dtype == tp.float64 else tp.float32) for k in (first, -e - first)]
    mantissa = (input * scale[0] * scale[1]).to(input.dtype)
    return Frexp(tp.where(finite, mantissa, input), e.to(tp.int32))


def randint_like(input: Tensor, low: int, high: int | None = None, *, dtype: Any = None) -> Tensor:
    if high is None:
        low, high = 0, low
    return tp.randint(low, high, input.shape, dtype=input.dtype if dtype is None else dtype)
