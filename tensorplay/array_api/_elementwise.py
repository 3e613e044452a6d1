"""Elementwise functions of the standard: the name there, the op here. Those with arguments of their own stand below."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from ._ops import op

_UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh",
    "bitwise_invert": "bitwise_not", "conj": "conj", "cos": "cos", "cosh": "cosh", "exp": "exp",
    "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan", "log": "log", "log10": "log10",
    "log2": "log2", "logical_not": "logical_not", "negative": "neg", "positive": "positive",
    "reciprocal": "reciprocal", "sign": "sgn", "signbit": "signbit", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt",
    "square": "square", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
# Integers are whole already.
_ROUNDING = ("ceil", "floor", "trunc")
_BINARY = {
    "add": "add", "atan2": "atan2", "bitwise_and": "bitwise_and", "bitwise_left_shift": "bitwise_left_shift",
    "bitwise_or": "bitwise_or", "bitwise_right_shift": "bitwise_right_shift", "bitwise_xor": "bitwise_xor",
    "copysign": "copysign", "divide": "div", "equal": "eq", "floor_divide": "floor_divide", "greater": "gt",
    "greater_equal": "ge", "hypot": "hypot", "less": "lt", "less_equal": "le", "logaddexp": "logaddexp",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor", "maximum": "maximum",
    "minimum": "minimum", "multiply": "mul", "nextafter": "nextafter", "not_equal": "ne", "pow": "pow",
    "remainder": "remainder", "subtract": "sub",
}  # fmt: skip


def _unary(name: str, path: str) -> Callable[[Any], Any]:
    def function(x: Any, /) -> Any:
        return op(path)(x)

    return _named(function, name, f"`{name}` of the array API standard: `tensorplay.{path}`.")


def _rounding(name: str) -> Callable[[Any], Any]:
    def function(x: Any, /) -> Any:
        return op(name)(x) if x.is_floating_point() else op("positive")(x)

    return _named(function, name, f"`{name}` of the array API standard: `tensorplay.{name}`; integers as they are.")


def _binary(name: str, path: str) -> Callable[[Any, Any], Any]:
    def function(x1: Any, x2: Any, /) -> Any:
        return op(path)(x1, x2)

    return _named(function, name, f"`{name}` of the array API standard: `tensorplay.{path}`; one may be a number.")


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


globals().update({name: _unary(name, path) for name, path in _UNARY.items()})
globals().update({name: _rounding(name) for name in _ROUNDING})
globals().update({name: _binary(name, path) for name, path in _BINARY.items()})


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Elements between bounds, in the dtype of x. A bound is a number, an array or None."""
    if min is None and max is None:
        return x.clone()
    kept = x
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            kept = op(name)(kept, bound)
    return kept.to(x.dtype)


def expm1(x: Any, /) -> Any:
    """exp(x) - 1, exact near 0 too."""
    if not x.is_complex():
        return op("expm1")(x)
    a, b = x.real, x.imag
    return _complex(op("expm1")(a) * op("cos")(b) - 2 * op("sin")(b / 2) ** 2, op("exp")(a) * op("sin")(b))


def log1p(x: Any, /) -> Any:
    """log(1 + x), exact near 0 too."""
    if not x.is_complex():
        return op("log1p")(x)
    a, b = x.real, x.imag
    near = op("log1p")(a * (2 + a) + b * b) / 2
    far = op("log")(op("hypot")(1 + a, b))
    return _complex(op("where")(op("hypot")(a, b) < 0.5, near, far), op("atan2")(b, 1 + a))


def _complex(re: Any, im: Any) -> Any:
    return op("view_as_complex")(op("stack")([re, im], -1))


def imag(x: Any, /) -> Any:
    """The imaginary part of a complex array."""
    return x.imag.clone()


def real(x: Any, /) -> Any:
    """The real part."""
    return x.real.clone()


def round(x: Any, /) -> Any:
    """The nearest whole number, halves to the even one; of a complex number, both parts."""
    if x.is_complex():
        return _complex(op("round")(x.real), op("round")(x.imag))
    return _rounding("round")(x)


__all__ = builtins.sorted([*_UNARY, *_ROUNDING, *_BINARY, "clip", "expm1", "imag", "log1p", "real", "round"])
