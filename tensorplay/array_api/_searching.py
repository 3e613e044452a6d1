"""Searching and sorting functions of the standard."""

from __future__ import annotations

from typing import Any

from ._dtypes import result_type
from ._ops import dims, op, tensors

__all__ = ["argmax", "argmin", "argsort", "count_nonzero", "nonzero", "searchsorted", "sort", "where"]


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the largest element is, along an axis or in the row of all elements."""
    return _arg("argmax", x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the smallest element is, along an axis or in the row of all elements."""
    return _arg("argmin", x, axis, keepdims)


def _arg(name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    if axis is None:
        found = op(name)(x)
        return found.reshape((1,) * x.ndim) if keepdims else found
    return op(name)(x, axis, keepdims)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The order that sorts x along an axis; equal elements keep theirs."""
    return op("argsort")(x, axis, descending, stable)


def count_nonzero(x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """How many elements differ from zero."""
    return op("sum")(x != 0, dims(axis), keepdims)


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """Where x is not zero: an array of positions for each axis.

    Raises:
        ValueError: a 0-d array has no axes.
    """
    if x.ndim == 0:
        raise ValueError("nonzero: a 0-d array has no axes; reshape it to (1,)")
    return tuple(op("nonzero")(x).unbind(1))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where the elements of x2 would go in the ascending 1-d array x1 (in the order `sorter`)."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', not {side!r}")
    if sorter is not None:
        x1 = op("index_select")(x1, 0, sorter)
    dtype = result_type(x1, x2)
    return op("searchsorted")(x1.to(dtype), x2.to(dtype), right=side == "right")


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """x in order along an axis; equal elements keep theirs, nans are largest."""
    return op("sort")(x, axis, descending, stable=stable)[0]


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Elements of x1 where the condition holds, of x2 elsewhere."""
    return op("where")(condition, *tensors(x1, x2))
