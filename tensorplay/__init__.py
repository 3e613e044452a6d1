"""tensorplay: differentiable tensors whose every op is one entry of a YAML file."""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from ._absent import missing as _missing
from ._binary import _C as _C
from ._C import *  # noqa: F403  types, dtypes, modes and creation
from ._C import functions as _functions

__version__ = "0.1.0"

for _name in ("functions", "fft", "internal", "linalg", "nn_functional", "random", "special"):
    globals().pop(_name, None)  # tables of the binary; the packages of those names stand over them

globals().update({_name: getattr(_functions, _name) for _name in dir(_functions) if not _name.startswith("_")})

import math as _math  # noqa: E402

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None
long, double, float, half = int64, float64, float32, float16  # noqa: F405  PyTorch's short names of dtypes
short, int, cfloat, cdouble = int16, int32, complex64, complex128  # noqa: F405

from . import autograd as autograd  # noqa: E402

_LAZY = (
    *("amp", "array_api", "fft", "func", "library", "linalg", "memory", "nn", "random", "special", "testing", "utils"),
)
_LAZY_NAMES = {
    "set_printoptions": "_printing",
    "finfo": "_numeric_limits",
    "iinfo": "_numeric_limits",
    "get_default_device": "_settings",
    "set_default_device": "_settings",
    "get_float32_matmul_precision": "_settings",
    "set_float32_matmul_precision": "_settings",
    "autocast": "amp",
    "clear_autocast_cache": "amp",
    "is_autocast_cache_enabled": "amp",
    "set_autocast_cache_enabled": "amp",
    "set_autocast_dtype": "amp",
    "set_autocast_enabled": "amp",
    "ops": "library",
    "define_op": "library",
    "define_ops": "library",
    "save": "_files",
    "load": "_files",
    "vmap": "func",
}

def __getattr__(name: str) -> _Any:
    # Loaded when first asked for, so that importing tensorplay takes milliseconds.
    if name in _LAZY_NAMES:
        value = getattr(_importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
    elif name in _LAZY:
        value = _importlib.import_module(f"{__name__}.{name}")
    else:
        raise _missing(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES})
