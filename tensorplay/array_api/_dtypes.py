"""Data type functions of the standard, and broadcasting."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._ops import check_device, op

__all__ = ["astype", "broadcast_arrays", "broadcast_to", "can_cast", "isdtype", "result_type"]

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def kind_names(kind: str) -> tuple[str, ...]:
    """The dtypes of a kind, by name.

    Raises:
        ValueError: the standard has no such kind.
    """
    if kind not in _KINDS:
        raise ValueError(f"isdtype: kind must be a dtype or one of {', '.join(map(repr, _KINDS))}, not {kind!r}")
    return _KINDS[kind]


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """x in another dtype; without `copy`, x itself where it has the dtype already.

    Raises:
        TypeError: complex numbers have no value of a real dtype.
    """
    check_device(device)
    if x.is_complex() and not dtype.is_complex:
        raise TypeError(f"astype: {x.dtype} does not convert to {dtype}; take real() or abs() first")
    return x.to(dtype, copy=copy)


def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """The arrays in the size they have together."""
    shape = _C.functions.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """x repeated without copies to the given size."""
    if -1 in shape:
        raise ValueError(f"broadcast_to: shape {tuple(shape)} has a negative size")
    return op("Tensor.expand")(x, tuple(shape))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion leads from one dtype (or an array's) to another: by the standard's rules, not by categories."""
    source = getattr(from_, "dtype", from_)
    try:
        return bool(_C.promote_types(source, to) == to and _same_or_lower(source, to))
    except TypeError:
        return False


def _same_or_lower(source: Any, to: Any) -> bool:
    if source.is_floating_point or source.is_complex or source == to:
        return True
    return not (to.is_floating_point or to.is_complex or source.name == "bool")


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, a name of the standard such as 'integral', or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        return dtype.name in kind_names(kind)
    if not isinstance(kind, _C.dtype):
        raise TypeError(f"isdtype: kind must be a dtype, a string or a tuple of these, not {type(kind).__name__}")
    return bool(dtype == kind)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype operations on these give; 0-d arrays count as arrays, Python numbers yield."""
    if not arrays_and_dtypes:
        raise ValueError("result_type: needs at least one array, dtype or number")
    found = [getattr(a, "dtype", a) for a in arrays_and_dtypes if isinstance(a, (_C.Tensor, _C.dtype))]
    if not found:
        raise ValueError("result_type: needs at least one array or dtype beside Python numbers")
    numbers = [a for a in arrays_and_dtypes if not isinstance(a, (_C.Tensor, _C.dtype))]
    return _C.result_type(*found, *numbers)
