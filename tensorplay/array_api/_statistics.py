"""Statistical and utility functions of the standard."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._creation import zeros
from ._ops import axes_of, dims, op

__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip

_Axis = int | tuple[int, ...] | None


def _sum_dtype(x: Any, dtype: Any) -> Any:
    """The default dtype of the kind for sums, where it is wider."""
    if dtype is not None or x.is_floating_point() or x.is_complex():
        return dtype or x.dtype
    return _C.uint64 if not x.dtype.is_signed and x.dtype != _C.bool else _C.int64


def all(x: Any, /, *, axis: _Axis = None, keepdims: bool = False) -> Any:
    """Whether every element along the axes is true."""
    return op("all")(x, dims(axis), keepdims).to(_C.bool) if axis != () else x != 0


def any(x: Any, /, *, axis: _Axis = None, keepdims: bool = False) -> Any:
    """Whether some element along the axes is true."""
    return op("any")(x, dims(axis), keepdims).to(_C.bool) if axis != () else x != 0


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Running products along an axis, which only 1-d arrays may leave out; with `include_initial`, a 1 comes first."""
    return _cumulative("cumprod", x, axis, dtype, 1 if include_initial else None)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Running sums along an axis, which only 1-d arrays may leave out; with `include_initial`, a 0 comes first."""
    return _cumulative("cumsum", x, axis, dtype, 0 if include_initial else None)


def _cumulative(name: str, x: Any, axis: int | None, dtype: Any, initial: int | None) -> Any:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    (place,) = axes_of(x, axis)
    dtype = _sum_dtype(x, dtype)
    out = op(name)(x.to(dtype), place, dtype=dtype)
    if initial is None:
        return out
    head = op("full")((*x.shape[:place], 1, *x.shape[place + 1 :]), initial, dtype=dtype)
    return op("cat")([head, out], place)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, n times; prepend and append extend x first."""
    (place,) = axes_of(x, axis)
    parts = [p for p in (prepend, x, append) if p is not None]
    out = op("cat")(parts, place) if len(parts) > 1 else x
    for _ in range(n):
        last = out.shape[place]
        out = (out.narrow(place, 1, last - 1) - out.narrow(place, 0, last - 1)) if last else out
    return out


def max(x: Any, /, *, axis: _Axis = None, keepdims: bool = False) -> Any:
    """The largest element along the axes; nan where there is one."""
    return op("amax")(x, dims(axis), keepdims) if axis != () else x.clone()


def mean(x: Any, /, *, axis: _Axis = None, keepdims: bool = False) -> Any:
    """The mean along the axes."""
    return op("mean")(x, dims(axis), keepdims) if axis != () else x.clone()


def min(x: Any, /, *, axis: _Axis = None, keepdims: bool = False) -> Any:
    """The smallest element along the axes; nan where there is one."""
    return op("amin")(x, dims(axis), keepdims) if axis != () else x.clone()


def prod(x: Any, /, *, axis: _Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product along the axes; integers are multiplied in 64 bits."""
    out = x.to(_sum_dtype(x, dtype))
    for a in sorted(axes_of(x, axis), reverse=True):
        out = op("prod")(out, a, keepdims, dtype=out.dtype)
    return out if out is not x else x.clone()


def std(x: Any, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation along the axes; `correction` is taken from the number of elements."""
    return op("std")(x, axis, correction=correction, keepdim=keepdims) if axis != () else zeros(x.shape, dtype=x.dtype)


def sum(x: Any, /, *, axis: _Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum along the axes; integers are added in 64 bits."""
    dtype = _sum_dtype(x, dtype)
    x = x.to(dtype)
    return op("sum")(x, dims(axis), keepdims, dtype=dtype) if axis != () else x.clone()


def var(x: Any, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance along the axes; `correction` is taken from the number of elements."""
    return op("var")(x, axis, correction=correction, keepdim=keepdims) if axis != () else zeros(x.shape, dtype=x.dtype)
