"""The Python array API standard, version 2024.12, over the ops of tensorplay: its names, signatures and defaults.

A translation and nothing more: every function calls ops by name. `Tensor.__array_namespace__()` returns this module.
What no op of the catalogue exists for raises NotImplementedError with the op's name. `Tensor.size` is a method here;
`math.prod(x.shape)` and `x.numel()` give the number of elements.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import Any

from .._C import (
    bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .._numeric_limits import finfo as _finfo
from .._numeric_limits import iinfo as _iinfo
from . import _creation, _dtypes, _elementwise, _manipulation, _searching, _sets, _statistics, fft, linalg
from ._creation import *  # noqa: F403
from ._dtypes import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._info import __array_namespace_info__
from ._manipulation import *  # noqa: F403
from ._searching import *  # noqa: F403
from ._sets import *  # noqa: F403
from ._statistics import *  # noqa: F403
from .linalg import matmul, matrix_transpose, tensordot, vecdot

__array_api_version__ = "2024.12"
newaxis = None

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "bool", "complex64", "complex128", "e", "fft", "finfo",
    "float32", "float64", "iinfo", "inf", "int8", "int16", "int32", "int64", "linalg", "matmul", "matrix_transpose",
    "nan", "newaxis", "pi", "tensordot", "uint8", "uint16", "uint32", "uint64", "vecdot", *_creation.__all__,
    *_dtypes.__all__, *_elementwise.__all__, *_manipulation.__all__, *_searching.__all__, *_sets.__all__,
    *_statistics.__all__,
]  # fmt: skip


def finfo(type: Any, /) -> Any:
    """Limits of a floating-point dtype, or of an array's."""
    return _finfo(getattr(type, "dtype", type))


def iinfo(type: Any, /) -> Any:
    """Limits of an integer dtype, or of an array's."""
    return _iinfo(getattr(type, "dtype", type))


def _namespace(array: Any, api_version: str | None) -> Any:
    """What `Tensor.__array_namespace__` returns."""
    import sys

    if api_version not in (None, "2021.12", "2022.12", "2023.12", __array_api_version__):
        raise ValueError(
            f"__array_namespace__: version {api_version!r} of the array API is not supported; "
            f"{__array_api_version__!r} is"
        )
    return sys.modules[__name__]
