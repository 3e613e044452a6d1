"""Comparisons that answer with one bool. Knows nothing of history: they compare values."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = ["allclose", "equal"]


def _both_tensors(name: str, input: Any, other: Any) -> None:
    for place, value in (("input", input), ("other", other)):
        if not isinstance(value, _C.Tensor):
            raise TypeError(f"{name}: {place} must be a Tensor, not {type(value).__name__}; wrap it with tensor()")


def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether `|input - other| <= atol + rtol * |other|` for every element; the two broadcast.

    Args:
        rtol, atol: relative and absolute tolerance.
        equal_nan: whether two nans count as equal.
    Raises:
        TypeError: one of the two is no Tensor. RuntimeError: the dtypes differ.
    """
    _both_tensors("allclose", input, other)
    if input.dtype != other.dtype:
        raise RuntimeError(f"allclose: got {input.dtype} and {other.dtype}; convert one with .to()")
    with _C.no_grad():
        if not (input.is_floating_point() or input.is_complex()):
            input, other = input.to(_C.float64), other.to(_C.float64)
        elif input.itemsize < 4:
            input, other = input.to(_C.float32), other.to(_C.float32)
        error = (input - other).abs()
        # An infinite error is none that a tolerance may allow; equal infinities are equal.
        close = (input == other) | ((error <= atol + rtol * other.abs()) & (error < float("inf")))
        if equal_nan:
            close = close | ((input != input) & (other != other))
        return bool(close.all().item())


def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same sizes and the same elements; nan equals nothing, itself included.

    Raises:
        TypeError: one of the two is no Tensor. RuntimeError: the dtypes differ.
    """
    _both_tensors("equal", input, other)
    if input.shape != other.shape:
        return False
    if input.dtype != other.dtype:
        raise RuntimeError(f"equal: got {input.dtype} and {other.dtype}; convert one with .to()")
    with _C.no_grad():
        return bool((input == other).all().item())
