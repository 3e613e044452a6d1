"""finfo and iinfo: the limits of a dtype."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = ["finfo", "iinfo"]

# bits of the mantissa (without the hidden one), largest and smallest exponent
_FLOATS = {
    "float16": (10, 15, -14),
    "bfloat16": (7, 127, -126),
    "float32": (23, 127, -126),
    "float64": (52, 1023, -1022),
}


class finfo:
    """Limits of a floating dtype (default: the default dtype); a complex dtype has those of its parts.

    Attributes: bits, eps, max, min, tiny, smallest_normal, resolution, dtype.
    """

    def __init__(self, dtype: Any = None) -> None:
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if not isinstance(dtype, _C.dtype) or not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"finfo: expected a floating-point dtype, got {dtype}; iinfo() is for integers")
        real = dtype.to_real()
        mantissa, high, low = _FLOATS[real.name]
        self.bits = real.itemsize * 8
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**high
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**low
        digits = {10: 3, 7: 2, 23: 6, 52: 15}[mantissa]
        self.resolution = float(f"1e-{digits}")
        self.dtype = real.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer dtype. Attributes: bits, max, min, dtype."""

    def __init__(self, dtype: Any) -> None:
        if not isinstance(dtype, _C.dtype) or dtype.is_floating_point or dtype.is_complex or dtype.name == "bool":
            raise TypeError(f"iinfo: expected an integer dtype, got {dtype}; finfo() is for floating-point ones")
        self.bits = dtype.itemsize * 8
        self.min = -(1 << (self.bits - 1)) if dtype.is_signed else 0
        self.max = (1 << (self.bits - (1 if dtype.is_signed else 0))) - 1
        self.dtype = dtype.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
