"""How the namespace finds ops: by name, when they are called, so that an op of a later version is picked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorplay

from .. import _C

__all__ = ["axes_of", "check_device", "dims", "op", "tensors"]


def op(path: str) -> Any:
    """The function `tensorplay.<path>`.

    Raises:
        NotImplementedError: this version has no such op.
    """
    place: Any = tensorplay
    for name in path.split("."):
        place = getattr(place, name, None)
    if place is None:
        raise NotImplementedError(f"{path}: this version of tensorplay has no such op, which array_api stands on")
    return place


def check_device(device: Any) -> None:
    """ValueError for a device that is not the CPU."""
    if device is not None and str(device) not in ("cpu", "cpu:0"):
        raise ValueError(f"array_api: device {device!r} is not available; this build of tensorplay has 'cpu' only")


def dims(axis: int | Sequence[int] | None) -> Any:
    """An axis argument as ops take it: () is no axis, None all."""
    return () if axis is None else axis


def axes_of(x: Any, axis: int | Sequence[int] | None) -> tuple[int, ...]:
    """Every axis that is meant, none negative."""
    given = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    out = []
    for a in given:
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"array_api: axis {a} is out of range for an array of {x.ndim} dimensions")
        out.append(a % x.ndim)
    return tuple(out)


def tensors(*values: Any) -> list[Any]:
    """Operands as tensors: a Python scalar beside arrays becomes one of their dtype (of a higher kind: its own)."""
    dtype = _C.result_type(*values)
    return [v if isinstance(v, _C.Tensor) else _C.scalar_tensor(v, dtype=dtype) for v in values]
