"""The Fourier transform extension of the standard, over `tensorplay.fft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._ops import check_device, op

_LINES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_PLANES = ("fftn", "ifftn", "rfftn", "irfftn")


def _line(name: str) -> Callable[..., Any]:
    def function(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        return op(f"fft.{name}")(x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of the array API standard: `tensorplay.fft.{name}`."
    return function


def _plane(name: str) -> Callable[..., Any]:
    def function(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        return op(f"fft.{name}")(x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of the array API standard: `tensorplay.fft.{name}`."
    return function


globals().update({name: _line(name) for name in _LINES})
globals().update({name: _plane(name) for name in _PLANES})


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the bins of `fft`."""
    check_device(device)
    return op("fft.fftfreq")(n, d, dtype=dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the bins of `rfft`."""
    check_device(device)
    return op("fft.rfftfreq")(n, d, dtype=dtype)


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The zero frequency moved to the middle."""
    return op("fft.fftshift")(x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return op("fft.ifftshift")(x, axes)


__all__ = [*_LINES, *_PLANES, "fftfreq", "fftshift", "ifftshift", "rfftfreq"]
