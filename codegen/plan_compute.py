"""Compute types of element loops: which of them an expression has forms for, and which operands are masks.

The table of functions follows csrc/kernels/vecmath*.h. Emits nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from .formula import Binary, BoolOp, Call, Compare, Name, Node, Num, Unary, children, walk
from .functions import FUNCTIONS, REAL_VALUED
from .model import Base, Type
from .simplify import expand

# The order of the table in csrc/core/dtype.h.
COMPUTE = ("B8", "I32", "I64", "U64", "F32", "F64", "C64", "C128")
CPP = ("bool", "std::int32_t", "std::int64_t", "std::uint64_t", "float", "double", "c64", "c128")
_BOOL, _INT, _FLOAT, _COMPLEX = {"B8"}, {"I32", "I64", "U64"}, {"F32", "F64"}, {"C64", "C128"}
_ALL = _BOOL | _INT | _FLOAT | _COMPLEX
_REAL = _BOOL | _INT | _FLOAT
# dtype of an entry -> compute type that serves it
SERVES = {
    "bool": ("B8",), "u8": ("I32",), "i8": ("I32",), "i16": ("I32",), "i32": ("I32",), "i64": ("I64", "U64"),
    "u16": ("I32",), "u32": ("I64",), "u64": ("I64", "U64"),
    "f16": ("F32",), "bf16": ("F32",), "f32": ("F32",), "f64": ("F64",), "c64": ("C64",), "c128": ("C128",),
}  # fmt: skip

# What csrc/kernels/vecmath*.h has beyond the real floating types.
_COMPLEX_FUNCTIONS = frozenset(
    """
    exp log sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh abs angle expm1 log1p log2 log10
    exp2 reciprocal rsqrt sigmoid sinc square conj real imag sgn isnan isinf isfinite xlogy where logical_not
    logical_and logical_or logical_xor bool float strong_mul logaddexp
    """.split()  # noqa: SIM905
)
_SIGNED_FUNCTIONS = frozenset(["copysign"])
_INTEGER_FUNCTIONS = frozenset(
    """
    maximum minimum fmax fmin square floor ceil round trunc conj real isnan isinf isfinite heaviside abs sign
    signbit fmod gcd lcm where clamp logical_not logical_and logical_or logical_xor bitwise_not bitwise_and
    bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift isposinf isneginf int bool sgn imag
    """.split()  # noqa: SIM905
)
_BOOL_FUNCTIONS = _INTEGER_FUNCTIONS


def is_mask_use(name: str, n: Node, boolean: bool = False) -> bool:
    """Whether every use of the name stands where a truth value is asked for."""
    match n:
        case Name(id=i):
            return i != name or boolean
        case Call(func="where", args=(c, a, b)):
            return is_mask_use(name, c, True) and is_mask_use(name, a, boolean) and is_mask_use(name, b, boolean)
        case BoolOp(args=args):
            return all(is_mask_use(name, a, True) for a in args)
        case Unary(op="not", arg=a):
            return is_mask_use(name, a, True)
    return all(is_mask_use(name, c) for c in children(n))


def supported(n: Node, types: Mapping[str, Type], masks: frozenset[str]) -> set[str]:
    """Compute types for which every function and operator of the expression has a form."""
    ok = set(_ALL)
    for x in walk(n):
        match x:
            case Call(func=f):
                here = set(_FLOAT)
                if f in _COMPLEX_FUNCTIONS:
                    here |= _COMPLEX
                if f in _INTEGER_FUNCTIONS or f in _SIGNED_FUNCTIONS:
                    here |= _INT
                if f in _SIGNED_FUNCTIONS:
                    here -= {"U64"}
                if f in _BOOL_FUNCTIONS:
                    here |= _BOOL
                if f in FUNCTIONS and FUNCTIONS[f].kind == "int" and f != "int":
                    here &= _BOOL | _INT
                ok &= here
            case Compare(op=op) if op in ("<", "<=", ">", ">="):
                if _value_names(x, types, REAL_VALUED):
                    ok &= _REAL
            case Binary(op="/"):
                if _value_names(x, types):
                    ok &= _FLOAT | _COMPLEX
            case Binary(op="**", right=Num(value=e)) if isinstance(e, int) and e >= 0:
                pass
            case Binary(op="**", right=Num()):
                ok &= _FLOAT | _COMPLEX
            case Binary(op=("//" | "%")):
                ok &= _REAL
            case Binary(op=("&" | "|" | "^" | "<<" | ">>")) | Unary(op="~"):
                ok &= _BOOL | _INT
            case Unary(op="-"):
                if _value_names(x, types):
                    ok -= {"B8"}
            case Num(value=float() as v) if math.isfinite(v) and not v.is_integer():
                ok &= _FLOAT | _COMPLEX
            case Num(value=float()):
                ok &= _FLOAT | _COMPLEX
            case Num(value=complex()):
                ok &= _COMPLEX | _FLOAT
            case Name(id=("pi" | "e" | "inf" | "nan")):
                ok &= _FLOAT | _COMPLEX
            case Name(id=i) if i in types and types[i].base is Base.FLOAT:
                ok &= _FLOAT | _COMPLEX
    return ok


# kMaxTogether of csrc/kernels/elementwise.cpp, kMaxOperands of csrc/kernels/tiles.h
MOST_TOGETHER, MOST_OPERANDS = 6, 16


def share_work(gradients: Sequence[Node], reads: int) -> bool:
    """Whether one loop for all gradients has room for its operands, `reads` tensors beside g, and is worth its code:
    two of them have a costly part in common."""
    if not 2 <= len(gradients) <= MOST_TOGETHER or len(gradients) + 1 + reads > MOST_OPERANDS:
        return False
    shared = Counter(part for d in gradients for part in _costly(expand(d)))
    return any(k > 1 for k in shared.values())


def _costly(n: Node) -> set[Node]:
    """The parts of an expression whose value for one element costs more than reading and writing it."""
    out: set[Node] = set()
    for x in walk(n):
        match x:
            case Call(func=f) if f in FUNCTIONS and f not in _INTEGER_FUNCTIONS:
                out.add(x)
            case Binary(op="**", right=Num(value=e)) if isinstance(e, int) and abs(e) <= 64:
                pass
            case Binary(op="**"):
                out.add(x)
    return out


def _value_names(n: Node, types: Mapping[str, Type], but: frozenset[str] = frozenset()) -> bool:
    """Whether it reads values, other than as arguments of the functions `but`."""
    if isinstance(n, Call) and n.func in but:
        return False
    if isinstance(n, Name):
        t = types.get(n.id)
        return t is None or t.has_tensor or t.base in (Base.SCALAR, Base.FLOAT)
    return any(_value_names(c, types, but) for c in children(n))
