"""Evaluates a formula with numbers: NumPy arrays or mpmath scalars. Owns the walk; the functions come from tables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from . import formula as F
from .functions import CONSTANTS, Unavailable, mpmath_functions, numpy_functions

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_BITS: Mapping[str, Callable[[Any, Any], Any]] = {
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
_ARITH: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "@": operator.matmul,
}  # fmt: skip

Table = Mapping[str, Callable[..., Any]]


class NumpyEvaluator:
    """Arrays. `extra` adds functions (structured ones, other ops) before the elementwise table is asked; `compared` is
    handed what comparisons give.
    """

    def __init__(
        self,
        extra: Callable[[str], Callable[..., Any] | None] | None = None,
        compared: Callable[[Any], Any] | None = None,
    ) -> None:
        self.extra = extra
        self.compared = compared
        self.seen: set[int] | None = None  # where set: the nodes that were evaluated, by identity
        self.table: Table = numpy_functions()

    def function(self, name: str) -> Callable[..., Any]:
        found = self.extra(name) if self.extra else None
        found = found or self.table.get(name)
        if found is None:
            raise Unavailable(f"no numeric form of '{name}'")
        return found

    def __call__(self, n: F.Node, env: Mapping[str, Any]) -> Any:
        import numpy as np

        if self.seen is not None:
            self.seen.add(id(n))

        def ev(c: F.Node) -> Any:
            return self(c, env)

        match n:
            case F.Num(value=v) | F.Bool(value=v) | F.Str(value=v):
                return v
            case F.NoneLit():
                return None
            case F.Name(id=i):
                if i in env:
                    return env[i]
                if i in CONSTANTS:
                    return CONSTANTS[i]
                raise Unavailable(f"no value for '{i}'")
            case F.Tuple(items=items) | F.List(items=items):
                return tuple(map(ev, items))
            case F.Each(body=body, var=var, over=over):
                return tuple(self(body, {**env, var: item}) for item in ev(over))
            case F.Subscript(value=v, index=i):
                return ev(v)[ev(i)]
            case F.Call(func="where", args=(c, a, b)) if isinstance(cond := ev(c), (bool, np.bool_)):
                return (
                    ev(a) if cond else ev(b)
                )  # the same for every element: the other branch may not even have a shape
            case F.Call(func=f, args=args, kwargs=kwargs):
                return self.function(f)(*map(ev, args), **{k: ev(v) for k, v in kwargs})
            case F.Unary(op="not", arg=a):
                v = ev(a)
                return (not v) if isinstance(v, (bool, str, tuple, type(None))) else np.logical_not(v)
            case F.Unary(op=op, arg=a):
                v = ev(a)
                return -v if op == "-" else np.invert(v) if op == "~" else +v
            case F.BoolOp(op=op, args=args):
                out = ev(args[0])
                for a in args[1:]:
                    if isinstance(out, (bool, np.bool_)) and bool(out) == (op == "or"):
                        return out  # the rest may not even have a meaning: x == None or len(x) == 0
                    v = ev(a)
                    out = np.logical_and(out, v) if op == "and" else np.logical_or(out, v)
                return out
            case F.Compare(op=op, left=a, right=b):
                x, y = ev(a), ev(b)
                if x is None or y is None:
                    return (x is y) if op == "==" else (x is not y)
                if isinstance(x, np.dtype) or isinstance(y, np.dtype):
                    x, y = (_dtype(v) for v in (x, y))
                found = _COMPARE[op](x, y)
                return self.compared(found) if self.compared else found
            case F.Binary(op=op, left=a, right=b):
                x, y = ev(a), ev(b)
                if op == "**" and type(x) is int and type(y) is int and y < 0:
                    x = float(x)
                if op in ("**", "//", "%"):
                    return self.function({"**": "pow", "//": "floor_divide", "%": "remainder"}[op])(x, y)
                if op in _BITS:
                    return _BITS[op](x, y)
                if op == "/" and not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray):
                    return np.true_divide(x, y)
                return _ARITH[op](x, y)
        raise TypeError(f"not a formula node: {n!r}")


def _dtype(v: Any) -> Any:
    """NumPy's dtype, also of one named as in a formula."""
    import numpy as np

    from .reference import NP_DTYPE

    return np.dtype(NP_DTYPE.get(v, v) if isinstance(v, str) else v)


class MpmathEvaluator:
    """Scalars to many digits. Conditions choose their branch, as `where` on one element does."""

    def __init__(self) -> None:
        import mpmath

        self.mp: Any = mpmath
        self.table: Table = mpmath_functions()

    def __call__(self, n: F.Node, env: Mapping[str, Any]) -> Any:
        mp = self.mp

        def ev(c: F.Node) -> Any:
            return self(c, env)

        match n:
            case F.Num(value=v):
                return mp.mpmathify(v)
            case F.Bool(value=v) | F.Str(value=v):
                return v
            case F.NoneLit():
                return None
            case F.Name(id=i):
                if i in env:
                    return env[i]
                if i in CONSTANTS:
                    return +mp.pi if i == "pi" else +mp.e if i == "e" else mp.mpf(CONSTANTS[i])
                raise Unavailable(f"no value for '{i}'")
            case F.Call(func="where", args=(c, a, b)):
                return ev(a) if ev(c) else ev(b)
            case F.Call(func=f, args=args):
                if f not in self.table:
                    raise Unavailable(f"no mpmath form of '{f}'")
                return self.table[f](*map(ev, args))
            case F.Unary(op="not", arg=a):
                return not ev(a)
            case F.Unary(op=op, arg=a) if op in "+-":
                return -ev(a) if op == "-" else ev(a)
            case F.BoolOp(op="and", args=args):
                return all(ev(a) for a in args)
            case F.BoolOp(args=args):
                return any(ev(a) for a in args)
            case F.Compare(op=op, left=a, right=b):
                return _COMPARE[op](ev(a), ev(b))
            case F.Binary(op="**", left=a, right=b):
                return mp.power(ev(a), ev(b))
            case F.Binary(op=("//" | "%") as op, left=a, right=b):
                return self.table["floor_divide" if op == "//" else "remainder"](ev(a), ev(b))
            case F.Binary(op=op, left=a, right=b) if op in _ARITH and op != "@":
                return _ARITH[op](ev(a), ev(b))
        raise Unavailable(f"no mpmath form of {type(n).__name__}")
