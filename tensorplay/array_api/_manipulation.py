"""Manipulation and indexing functions of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._dtypes import result_type
from ._ops import axes_of, op

__all__ = [
    "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack",
    "take", "take_along_axis", "tile", "unstack",
]  # fmt: skip


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Any:
    """The arrays joined along an axis; with None, their elements in one row."""
    dtype = result_type(*arrays)
    if axis is None:
        return op("cat")([a.to(dtype).reshape((-1,)) for a in arrays])
    return op("cat")([a.to(dtype) for a in arrays], axis)


def expand_dims(x: Any, /, *, axis: int | tuple[int, ...] = 0) -> Any:
    """x with axes of size 1 at the given places of the result."""
    given = (axis,) if isinstance(axis, int) else axis
    n = x.ndim + len(given)
    for a in given:
        if not -n <= a < n:
            raise IndexError(f"expand_dims: axis {a} is out of range for a result of {n} dimensions")
    places = sorted(a % n for a in given)
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims: axis {axis} names a place twice")
    for a in places:
        x = x.unsqueeze(a)
    return x


def flip(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """The elements in reverse order along the axes; None: all."""
    return op("flip")(x, axes_of(x, axis)) if x.ndim else x.clone()


def moveaxis(x: Any, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Any:
    """Axes of x at other places."""
    return op("movedim")(x, source, destination)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Any:
    """The axes of x in another order."""
    return x.permute(tuple(axes))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Each element repeated, a number of times or as often as an array says."""
    if axis is None:
        x, axis = x.reshape((-1,)), 0
    (place,) = axes_of(x, axis)
    n = x.shape[place]
    if isinstance(repeats, int) or repeats.ndim == 0 or repeats.shape[0] == 1:
        times = int(repeats)
        index = op("arange")(n * times) // max(times, 1)
    else:
        ends = op("cumsum")(repeats, 0)
        total = int(ends[-1].item()) if repeats.shape[0] else 0
        index = op("searchsorted")(ends, op("arange")(total), right=True)
    return op("index_select")(x, place, index)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """The elements in order in another size.

    Raises:
        ValueError: copy=False, and the memory has no such view.
    """
    shape = tuple(shape)
    if copy:
        return x.clone().reshape(shape)
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as e:
            raise ValueError(
                f"reshape: {tuple(x.shape)} becomes {shape} only by a copy, and copy=False was given"
            ) from e
    return x.reshape(shape)


def roll(x: Any, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Any:
    """Elements moved along the axes; what leaves at one end comes in at the other. None: of the row of all elements."""
    if axis is None:
        return op("roll")(x, shift)
    given = (axis,) if isinstance(axis, int) else axis
    shifts = (shift,) * len(given) if isinstance(shift, int) else shift
    return op("roll")(x, shifts, given)


def squeeze(x: Any, /, axis: int | tuple[int, ...]) -> Any:
    """x without the axes, each of which has size 1.

    Raises:
        ValueError: one has another size.
    """
    places = axes_of(x, axis)
    for a in places:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has size {x.shape[a]}; only axes of size 1 can be left out")
    return x.squeeze(places) if places else x


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Any:
    """The arrays along a new axis."""
    dtype = result_type(*arrays)
    return op("stack")([a.to(dtype) for a in arrays], axis)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The items of x at the indices, along an axis (which only 1-d arrays may leave out)."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    (place,) = axes_of(x, axis)
    flat = op("index_select")(x, place, indices.reshape((-1,)))
    return flat if indices.ndim == 1 else flat.reshape((*x.shape[:place], *indices.shape, *x.shape[place + 1 :]))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements at indices along an axis; the other axes broadcast."""
    return op("take_along_dim")(x, indices, axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> Any:
    """x as often as said along each axis, the last one last."""
    return op("tile")(x, tuple(repetitions))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The arrays along an axis."""
    return tuple(x.unbind(axis))
