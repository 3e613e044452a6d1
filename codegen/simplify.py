"""Simplification of derivatives: constants folded, sums and products flattened, stable logistic forms kept.

Only derivatives pass through here; an `expr` is computed as it is written.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable

from .formula import (
    Binary,
    Bool,
    BoolOp,
    Call,
    Compare,
    Node,
    NoneLit,
    Num,
    Str,
    Unary,
    map_children,
    substitute,
)  # fmt: skip
from .functions import FUNCTIONS, MACROS, Unavailable, numpy_functions

Number = int | float | complex
Factors = dict[Node, int | float]  # base -> exponent

ZERO = Num(0)
ONE = Num(1)


def expand(n: Node) -> Node:
    """Macros gone: pow(x, y) is x**y, neg(x) is -x, trailing None of clamp is written out."""
    n = map_children(n, expand)
    if isinstance(n, Call):
        if n.func in MACROS and not n.kwargs:
            params, body = MACROS[n.func]
            if len(params) == len(n.args):
                return expand(substitute(body, dict(zip(params, n.args, strict=True))))
        f = FUNCTIONS.get(n.func)
        if f and f.arity - f.optional <= len(n.args) < f.arity and not n.kwargs:
            return Call(n.func, n.args + (NoneLit(),) * (f.arity - len(n.args)), (), n.span, n.func_span)
    return n


def is_num(n: Node, value: Number | None = None) -> bool:
    return isinstance(n, Num) and (value is None or n.value == value)


def num(v: Number) -> Num:
    """A number; a float that is whole and small is an int, which reads better and means the same in a derivative."""
    if isinstance(v, float) and v.is_integer() and abs(v) < 1 << 31:
        return Num(int(v))
    return Num(v)


def simplify(n: Node) -> Node:
    n = map_children(n, simplify)
    match n:
        case Binary(op="+" | "-") | Unary(op="-" | "+"):
            return _from_sum(n)
        case Binary(op="*" | "/"):
            return from_product(*product(n))
        case Binary(op="**", left=a, right=b):
            return _power(a, b)
        case Call(func="square", args=(a,)):
            return _power(a, Num(2))
        case Call(func="reciprocal", args=(a,)):
            return _power(a, Num(-1))
        case Call(func="where", args=(c, a, b)):
            return _where(c, a, b)
        case Call():
            return _fold_call(n)
        case Compare(op=op, left=a, right=b):
            return _compare(op, a, b)
        case BoolOp(op=op, args=args):
            return _bool(op, args)
        case Unary(op="not", arg=Bool(value=v)):
            return Bool(not v)
    return n


def _where(c: Node, a: Node, b: Node) -> Node:
    if isinstance(c, Bool):
        return a if c.value else b
    if a == b:
        return a
    # The inner branch of the same condition can never be taken.
    if isinstance(a, Call) and a.func == "where" and a.args[0] == c:
        return _where(c, a.args[1], b)
    if isinstance(b, Call) and b.func == "where" and b.args[0] == c:
        return _where(c, a, b.args[2])
    return Call("where", (c, a, b))


def _compare(op: str, a: Node, b: Node) -> Node:
    if isinstance(a, NoneLit) or isinstance(b, NoneLit):
        if op in ("<", "<=", ">", ">="):
            return Bool(True)  # an absent bound does not bind
        if isinstance(a, NoneLit) and isinstance(b, NoneLit):
            return Bool(op == "==")
        return Compare(op, a, b)
    if isinstance(a, Str) and isinstance(b, Str) and op in ("==", "!="):
        return Bool((a.value == b.value) == (op == "=="))
    if (
        isinstance(a, Num)
        and isinstance(b, Num)
        and not isinstance(a.value, complex)
        and not isinstance(b.value, complex)
    ):
        x, y = a.value, b.value
        return Bool({"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}[op])
    return Compare(op, a, b)


def _bool(op: str, args: Iterable[Node]) -> Node:
    absorbing = op == "or"
    kept: list[Node] = []
    for a in args:
        if isinstance(a, Bool):
            if a.value == absorbing:
                return Bool(absorbing)
        elif a not in kept:
            kept.append(a)
    if not kept:
        return Bool(not absorbing)
    return kept[0] if len(kept) == 1 else BoolOp(op, tuple(kept))


def _fold_call(n: Call) -> Node:
    f = FUNCTIONS.get(n.func)
    if f is None or n.kwargs or f.kind != "float" or not n.args or not all(isinstance(a, Num) for a in n.args):
        return n
    try:
        import numpy as np

        with np.errstate(all="ignore"):
            v = numpy_functions()[n.func](*(a.value for a in n.args if isinstance(a, Num)))
        value = complex(v) if np.iscomplexobj(v) else float(v)
    except (Unavailable, KeyError, TypeError, ValueError):
        return n
    return num(value) if cmath.isfinite(value) else n


# ---- sums -----------------------------------------------------------------------------------------------------------


def _terms(n: Node, sign: int, out: list[tuple[Number, Node]]) -> None:
    match n:
        case Binary(op="+", left=a, right=b):
            _terms(a, sign, out)
            _terms(b, sign, out)
        case Binary(op="-", left=a, right=b):
            _terms(a, sign, out)
            _terms(b, -sign, out)
        case Unary(op="-", arg=a):
            _terms(a, -sign, out)
        case Unary(op="+", arg=a):
            _terms(a, sign, out)
        case _:
            c, factors = product(n)
            out.append((sign * c, from_product(1, factors)))


def _from_sum(n: Node) -> Node:
    raw: list[tuple[Number, Node]] = []
    _terms(n, 1, raw)
    merged: dict[Node, Number] = {}
    for c, body in raw:
        merged[body] = merged.get(body, 0) + c
    terms = [(c, body) for body, c in merged.items() if c != 0 or _special(c)]
    if not terms:
        return ZERO
    # A positive term first reads as b - a instead of -a + b.
    first = next((i for i, (c, _) in enumerate(terms) if not _negative(c)), 0)
    terms.insert(0, terms.pop(first))
    out = _scaled(*terms[0])
    for c, body in terms[1:]:
        out = Binary("-", out, _scaled(-c, body)) if _negative(c) else Binary("+", out, _scaled(c, body))
    return out


def _negative(c: Number) -> bool:
    return not isinstance(c, complex) and c < 0


def _special(c: Number) -> bool:
    return isinstance(c, complex) or not math.isfinite(c)


def _scaled(c: Number, body: Node) -> Node:
    return from_product(*product(Binary("*", num(c), body)))


# ---- products -------------------------------------------------------------------------------------------------------


def product(n: Node) -> tuple[Number, Factors]:
    """n as coefficient times powers. Exponents are numbers; a symbolic power is a base of its own."""
    match n:
        case Num(value=v):
            return v, {}
        case Unary(op="-", arg=a):
            c, f = product(a)
            return -c, f
        case Binary(op="*", left=a, right=b):
            (c, f), (d, h) = product(a), product(b)
            return c * d, _merge(f, h, 1)
        case Binary(op="/", left=a, right=b):
            (c, f), (d, h) = product(a), product(b)
            if d == 0:
                return 1, {n: 1}
            return _divide(c, d), _merge(f, h, -1)
        case Binary(op="**", left=a, right=Num(value=e)) if isinstance(e, (int, float)) and math.isfinite(e):
            if isinstance(e, float) and e.is_integer():
                e = int(e)
            if isinstance(e, int) and abs(e) <= 64:
                c, f = product(a)
                if c == 0 and e <= 0:
                    return 1, {n: 1}
                try:
                    return _divide(1, c**-e) if e < 0 else c**e, {b: x * e for b, x in f.items()}
                except (OverflowError, ZeroDivisionError):
                    return 1, {n: 1}
            return 1, {a: e}
    return 1, {n: 1}


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and a % b == 0:
        return a // b
    return a / b


def _merge(f: Factors, h: Factors, sign: int) -> Factors:
    out = dict(f)
    for base, e in h.items():
        out[base] = out.get(base, 0) + sign * e
        if out[base] == 0:
            del out[base]
    return out


def from_product(c: Number, factors: Factors) -> Node:
    if c == 0:
        return ZERO
    factors = _logistic(factors)
    top = [_pow_node(b, e) for b, e in factors.items() if e > 0]
    bottom = [_pow_node(b, -e) for b, e in factors.items() if e < 0]
    negative = _negative(c)
    size = -c if negative else c
    if (not top and bottom) or size != 1 or not factors:
        top.insert(0, num(size))
    out = _chain(top)
    if bottom:
        out = Binary("/", out, _chain(bottom))
    if not negative:
        return out
    if isinstance(out, Num):
        return num(-out.value)
    # The sign goes to a leading number, where it costs nothing.
    return _negate(out)


def _negate(n: Node) -> Node:
    match n:
        case Num(value=v):
            return num(-v)
        case Binary(op=("*" | "/") as op, left=a, right=b):
            return Binary(op, _negate(a), b)
    return Unary("-", n)


def _chain(items: list[Node]) -> Node:
    out = items[0]
    for x in items[1:]:
        out = Binary("*", out, x)
    return out


def _pow_node(base: Node, e: int | float) -> Node:
    return base if e == 1 else Binary("**", base, num(e))


def _power(a: Node, b: Node) -> Node:
    if is_num(b, 0):
        return ONE
    if is_num(b, 1):
        return a
    if is_num(a, 1):
        return ONE
    if isinstance(b, Num):
        return from_product(*product(Binary("**", a, b)))
    return Binary("**", a, b)


def _logistic(factors: Factors) -> Factors:
    """1/(1 + exp(w)) is sigmoid(-w) and exp(w) * sigmoid(-w) is sigmoid(w): neither overflows."""
    out: Factors = {}
    for base, e in factors.items():
        w = _one_plus_exp(base)
        if w is not None and isinstance(e, int) and e < 0:
            key: Node = Call("sigmoid", (simplify(Unary("-", w)),))
            e = -e
        else:
            key = base
        out[key] = out.get(key, 0) + e
    for base in list(out):
        if isinstance(base, Call) and base.func == "exp" and base in out:
            partner = Call("sigmoid", (simplify(Unary("-", base.args[0])),))
            k = min(out[base], out.get(partner, 0))
            if isinstance(k, int) and k > 0:
                joined: Node = Call("sigmoid", base.args)
                for key, change in ((base, -k), (partner, -k), (joined, k)):
                    out[key] = out.get(key, 0) + change
    return {b: e for b, e in out.items() if e != 0}


def _one_plus_exp(n: Node) -> Node | None:
    if isinstance(n, Binary) and n.op == "+":
        for one, other in ((n.left, n.right), (n.right, n.left)):
            if is_num(one, 1) and isinstance(other, Call) and other.func == "exp":
                return other.args[0]
    return None
