"""Settings of the process that scripts for PyTorch make and that leave one choice here, or need none. Knows no op."""

from __future__ import annotations

from typing import Any

from . import _C

_PRECISIONS = ("highest", "high", "medium")
_precision = "highest"


def get_default_device() -> Any:
    """Where factories put tensors: the CPU."""
    return _C.device("cpu")


def set_default_device(device: Any) -> None:
    """Takes the CPU, or None for it; another device is refused."""
    if device is not None:
        _C.device(device)


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told last; 'highest' at first."""
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """The least precision asked of float32 matrix products: 'highest', 'high' or 'medium'. Each gets 'highest'."""
    global _precision
    if precision not in _PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision: {precision!r} is not one of {', '.join(_PRECISIONS)}")
    _precision = precision
