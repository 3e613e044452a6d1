"""Names, types and literals of the generated C++. Knows the argument types of signatures, nothing of formulas."""

from __future__ import annotations

import math
from typing import Any

from .model import REQUIRED, Arg, Base, Result, Type
from .reserved import reserved

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const
    consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
    double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while xor xor_eq V
    """.split()  # noqa: SIM905
)

TENSOR = Type(Base.TENSOR)
TENSORS = Type(Base.TENSOR, is_list=True)
DIMS = Type(Base.INT, is_list=True)
INT = Type(Base.INT)
FLOAT = Type(Base.FLOAT)
BOOL = Type(Base.BOOL)
STR = Type(Base.STR)
SCALAR = Type(Base.SCALAR)
DTYPE = Type(Base.DTYPE)

DTYPE_CPP = {
    "bool": "Bool", "u8": "U8", "i8": "I8", "i16": "I16", "i32": "I32", "i64": "I64", "u16": "U16", "u32": "U32",
    "u64": "U64", "f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "c64": "C64", "c128": "C128",
}  # fmt: skip

_VALUE = {
    Base.SCALAR: "Scalar", Base.INT: "std::int64_t", Base.FLOAT: "double", Base.BOOL: "bool",
    Base.STR: "std::string_view", Base.DTYPE: "Dtype", Base.DEVICE: "Device", Base.GENERATOR: "Generator",
}  # fmt: skip


def cpp_name(name: str) -> str:
    """A variable as a C++ identifier: keywords, and names that the generated code uses, get a trailing underscore."""
    return name + "_" if name in _KEYWORDS or reserved(name) else name


def function_name(name: str) -> str:
    """The same of a function. One of a user's ops that the generated code has a use for has another symbol already."""
    return name + "_" if name in _KEYWORDS else name


def pascal(name: str) -> str:
    """log_softmax -> LogSoftmax"""
    return "".join(p[:1].upper() + p[1:] for p in name.split("_") if p)


def param_type(t: Type, world: str) -> str:
    """The type of a parameter; world is Storage, TensorRef or V."""
    if t.base is Base.TENSOR:
        return f"std::span<const {world}>" if t.is_list else f"const {world}&"
    if t.is_list:
        inner = _list_type(t)
        return f"const std::optional<{inner}>&" if t.optional else f"const {inner}&"
    if t.base is Base.GENERATOR:
        return "Generator*"
    plain = _VALUE[t.base]
    if t.optional:
        return f"const std::optional<{plain}>&" if t.base is Base.SCALAR else f"std::optional<{plain}>"
    return f"const {plain}&" if t.base is Base.SCALAR else plain


def _list_type(t: Type) -> str:
    match t.base:
        case Base.INT:
            return "Dims"
        case Base.FLOAT:
            return "std::vector<double>"
        case Base.BOOL:
            return "std::vector<bool>"
    return "std::vector<Scalar>"


def member_type(t: Type) -> str:
    """The type in which a node keeps an argument."""
    if t.is_list:
        inner = _list_type(t)
    elif t.base is Base.STR:
        inner = "std::string"
    elif t.base is Base.GENERATOR:
        return "Generator*"
    else:
        inner = _VALUE[t.base]
    return f"std::optional<{inner}>" if t.optional else inner


def member_init(t: Type) -> str:
    """Initialiser of a member, so that no node holds an indeterminate value."""
    if t.optional or t.is_list or t.base in (Base.STR, Base.SCALAR):
        return ""
    return {
        Base.INT: " = 0",
        Base.FLOAT: " = 0",
        Base.BOOL: " = false",
        Base.DTYPE: " = Dtype::F32",
        Base.GENERATOR: " = nullptr",
    }.get(t.base, "{}")


def result_type(results: tuple[Result, ...], world: str) -> str:
    if len(results) == 1:
        t = results[0].type
        if t.base is Base.TENSOR:
            return f"std::vector<{world}>" if t.is_list else world
        return _list_type(t) if t.is_list else ("std::string" if t.base is Base.STR else _VALUE[t.base])
    return f"std::array<{world}, {len(results)}>"


def string_literal(s: str) -> str:
    out = []
    for ch in s:
        match ch:
            case '"' | "\\":
                out.append("\\" + ch)
            case "\n":
                out.append("\\n")
            case _ if " " <= ch <= "~":
                out.append(ch)
            case _:
                out.extend(f"\\{b:03o}" for b in ch.encode())
    return '"' + "".join(out) + '"'


def number_literal(v: int | float) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        if v == -(1 << 63):
            return "INT64_MIN"
        return str(v) if abs(v) < 1 << 31 else f"{v}LL"
    if math.isnan(v):
        return "std::numeric_limits<double>::quiet_NaN()"
    if math.isinf(v):
        return ("-" if v < 0 else "") + "std::numeric_limits<double>::infinity()"
    return repr(v)


def literal(v: Any, t: Type, world: str = "V") -> str:
    """A Python default as a C++ expression of the parameter's type."""
    if v is None and t.base is Base.GENERATOR:
        return "nullptr"
    if v is None:
        return {Base.TENSOR: f"{world}()", Base.GENERATOR: "nullptr"}.get(t.base, "std::nullopt")
    if t.is_list:
        items = v if isinstance(v, tuple) else (v,) * (t.size or 1)
        inner = ", ".join(
            number_literal(x) if t.base is not Base.SCALAR else f"Scalar({scalar_literal(x)})" for x in items
        )
        return f"{_list_type(t)}{{{inner}}}"
    match t.base:
        case Base.STR:
            return string_literal(v)
        case Base.DTYPE:
            return f"Dtype::{DTYPE_CPP[v]}"
        case Base.DEVICE:
            return "Device::CPU"
        case Base.SCALAR:
            return f"Scalar({scalar_literal(v)})"
        case Base.FLOAT:
            return number_literal(float(v))
        case Base.INT:
            return f"std::int64_t({number_literal(v)})"
        case Base.TENSOR:
            return f"number<{world}>(Scalar({scalar_literal(v)}))"
    return number_literal(v)


def scalar_literal(v: Any) -> str:
    """Arguments of a Scalar constructor."""
    if isinstance(v, complex):
        return f"{number_literal(v.real)}, {number_literal(v.imag)}"
    if isinstance(v, int) and not isinstance(v, bool) and abs(v) >= 1 << 31:
        return f"std::int64_t({number_literal(v)})"
    return number_literal(v)


def params_text(args: tuple[Arg, ...], world: str, used: set[str] | None = None) -> str:
    """Parameter list of a function over all arguments, in signature order; names outside `used` are left out."""
    texts = []
    for a in args:
        name = cpp_name(a.name)
        shown = f" {name}" if used is None or name in used else ""
        texts.append(param_type(a.type, world) + shown)
    return ", ".join(texts)


def default_text(a: Arg) -> str:
    """The default as Python text; '' when there is none."""
    if a.default is REQUIRED:
        return ""
    v = a.default
    if isinstance(v, float) and math.isinf(v):
        return "float('-inf')" if v < 0 else "float('inf')"
    if isinstance(v, tuple):
        return "[" + ", ".join(map(repr, v)) + "]" if a.type.is_list else repr(v)
    return repr(v)
