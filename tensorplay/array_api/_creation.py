"""Creation functions of the standard."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._ops import check_device, op

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Evenly spaced numbers from start (0 where it is the only bound) up to stop, which is left out."""
    check_device(device)
    start, stop = (0, start) if stop is None else (start, stop)
    if (stop - start) * step <= 0:  # an empty range is no error here
        whole = all(isinstance(v, int) for v in (start, stop, step))
        return zeros((0,), dtype=dtype or (_C.int64 if whole else None))
    return op("arange")(start, stop, step, dtype=dtype)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """An array of obj: numbers, nested sequences, an array of another library, a buffer."""
    check_device(device)
    if isinstance(obj, _C.Tensor) and not copy:
        if copy is False and dtype is not None and dtype != obj.dtype:
            raise ValueError(f"asarray: {obj.dtype} becomes {dtype} only by a copy, and copy=False was given")
        return obj if dtype is None else obj.to(dtype)
    return _C.asarray(obj, dtype=dtype, copy=copy)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of the size whose elements are undefined."""
    check_device(device)
    return op("empty")(shape, dtype=dtype)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of the size of x whose elements are undefined."""
    check_device(device)
    return op("empty_like")(x, dtype=dtype)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """Ones on diagonal k, zeros elsewhere."""
    check_device(device)
    n_cols = n_rows if n_cols is None else n_cols
    out = zeros((n_rows, n_cols), dtype=dtype)
    if -n_rows < k < n_cols:
        out.diagonal(k)[...] = 1
    return out


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array over the memory of another library's array."""
    check_device(device)
    return _C.from_dlpack(x, copy=copy)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of one value."""
    check_device(device)
    return op("full")(shape, fill_value, dtype=dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of the size of x and of one value."""
    check_device(device)
    return op("full")(tuple(x.shape), fill_value, dtype=x.dtype if dtype is None else dtype)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Any:
    """num evenly spaced numbers from start to stop, which is left out without `endpoint`."""
    check_device(device)
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, it is {num}")
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = _C.get_default_dtype().to_complex()
    real = dtype.to_real() if dtype is not None and dtype.is_complex else dtype
    if real is not dtype:
        start, stop = complex(start), complex(stop)
        re, im = (linspace(a, b, num, dtype=real, endpoint=endpoint) for a, b in
                  ((start.real, stop.real), (start.imag, stop.imag)))  # fmt: skip
        return re + 1j * im
    if endpoint:
        return op("linspace")(start, stop, num, dtype=dtype)
    return op("linspace")(start, stop, num + 1, dtype=dtype)[:num]


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Coordinates of a grid: one array for each of the given 1-d ones, in matrix ('ij') or Cartesian ('xy') order."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    n = len(arrays)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    sizes = [1 if a.ndim == 0 else a.shape[0] for a in arrays]
    shape = tuple(sizes[i] for i in order)
    placed = []
    for i, a in enumerate(arrays):
        ones_but = [1] * n
        ones_but[order.index(i)] = sizes[i]
        placed.append(a.reshape(tuple(ones_but)).expand(shape).clone())
    return tuple(placed)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of ones."""
    check_device(device)
    return op("ones")(shape, dtype=dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of ones of the size of x."""
    check_device(device)
    return op("ones_like")(x, dtype=dtype)


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The matrices with zeros above diagonal k."""
    return op("tril")(x, k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The matrices with zeros below diagonal k."""
    return op("triu")(x, k)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of zeros."""
    check_device(device)
    return op("zeros")(shape, dtype=dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of zeros of the size of x."""
    check_device(device)
    return op("zeros_like")(x, dtype=dtype)
