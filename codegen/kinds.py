"""Result kind of an elementwise formula: bool, any (the promoted type of its operands) or float."""

from __future__ import annotations

from collections.abc import Mapping

from . import formula as F
from .functions import FUNCTIONS, OPERATORS
from .model import Base, Signature, Type

_RANK = {"bool": 0, "int": 1, "any": 2, "float": 3}


def join(*kinds: str) -> str:
    return max(kinds, key=lambda k: _RANK[k], default="any")


def of(n: F.Node, names: Mapping[str, str]) -> str:
    """Kind of n where `names` gives the kinds of its names."""
    match n:
        case F.Bool() | F.Compare() | F.BoolOp() | F.Unary(op="not"):
            return "bool"
        case F.Num(value=v):
            return "float" if isinstance(v, (float, complex)) else "int"
        case F.Name(id=i):
            return names.get(i, "float")  # pi, e, inf, nan
        case F.Unary(arg=a):
            return of(a, names)
        case F.Binary(op="**", right=b) if _of_whole_numbers(n, names) and not _is_count(b):
            return "float"  # the exponent may be negative, and the dtype may not depend on its value
        case F.Binary(op=op, left=a, right=b):
            kind = OPERATORS[op].kind if op in OPERATORS else "any"
            return "float" if kind == "float" else join(of(a, names), of(b, names), "int")
        case F.Call(func="where", args=(_, a, b)):
            return join(of(a, names), of(b, names))
        case F.Call(func=f, args=args) if f in FUNCTIONS:
            kind = FUNCTIONS[f].kind
            if kind in ("bool", "float"):
                return kind
            return join(*(of(a, names) for a in args if not isinstance(a, F.NoneLit)))
    return "any"


def _of_whole_numbers(n: F.Binary, names: Mapping[str, str]) -> bool:
    """Whether an operation is one of whole numbers, not of elements."""
    if any(names.get(i) != "int" for i in F.names(n)):
        return False
    return of(n.left, names) == of(n.right, names) == "int"


def _is_count(n: F.Node) -> bool:
    return isinstance(n, F.Num) and isinstance(n.value, int) and n.value >= 0


def of_type(t: Type) -> str:
    if t.dtype == "bool" or t.base is Base.BOOL:
        return "bool"
    if t.base is Base.FLOAT:
        return "float"
    return "int" if t.base is Base.INT else "any"


def promotion(expr: F.Node, sig: Signature) -> str:
    """The promote rule that an elementwise expr implies."""
    kind = of(expr, {a.name: of_type(a.type) for a in sig.args})
    if kind == "bool":
        return "bool"
    if isinstance(expr, F.Call) and expr.func in ("abs", "real", "imag"):
        return "real"
    if isinstance(expr, F.Call) and expr.func == "angle":
        return "float_real"
    return "float" if kind == "float" else "common"
