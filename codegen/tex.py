"""A formula as TeX, for pages that people read. Knows how formulas are written, nothing of ops."""

from __future__ import annotations

import math
import re

from .formula import Binary, Bool, BoolOp, Call, Compare, List, Name, Node, NoneLit, Num, Str, Subscript, Tuple, Unary

_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega".split()  # noqa: SIM905
)
_NAMED = frozenset("exp log sin cos tan sinh cosh tanh".split())  # noqa: SIM905
_COMPARE = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "==": "=", "!=": r"\ne"}
_SIGN = {"*": r" \, ", "@": r" \, ", "%": r" \bmod ", "&": r" \mathbin{\&} ", "|": r" \mathbin{|} ", "^": r" \oplus ",
         "<<": r" \ll ", ">>": r" \gg "}  # fmt: skip
# Levels: how tightly a text holds together.
_OR, _AND, _CMP, _SUM, _PRODUCT, _SIGNED, _POWER, _ATOM = range(8)


def tex(n: Node) -> str:
    return _tex(n)[0]


def name_tex(name: str) -> str:
    if name in _GREEK:
        return f"\\{name}"
    if len(name) == 1:
        return name
    m = re.fullmatch(r"([a-zA-Z])_?(\d+)", name)
    return f"{m[1]}_{{{m[2]}}}" if m else r"\mathrm{" + name.replace("_", r"\_") + "}"


def _in(n: Node, least: int) -> str:
    text, level = _tex(n)
    return text if level >= least else rf"\left({text}\right)"


def _first(n: Node) -> str:
    """The first factor of a product: a minus before it stands for all of it."""
    signed = (isinstance(n, Unary) and n.op == "-") or (isinstance(n, Binary) and n.op == "*")
    return tex(n) if signed else _in(n, _PRODUCT)


def _tex(n: Node) -> tuple[str, int]:
    match n:
        case Num(value=v):
            return _number(v)
        case Bool(value=b):
            return rf"\mathrm{{{b}}}", _ATOM
        case Str(value=s):
            return rf"\text{{{s}}}", _ATOM
        case NoneLit():
            return r"\mathrm{None}", _ATOM
        case Name(id="inf"):
            return r"\infty", _ATOM
        case Name(id=i):
            return name_tex(i), _ATOM
        case Unary(op="not", arg=a):
            return rf"\lnot {_in(a, _SIGNED)}", _SIGNED
        case Unary(op=op, arg=a):
            return {"-": "-", "+": "", "~": r"{\sim}"}[op] + _in(a, _PRODUCT), _SUM
        case Binary(op="/", left=a, right=b):
            return rf"\frac{{{tex(a)}}}{{{tex(b)}}}", _PRODUCT
        case Binary(op="//", left=a, right=b):
            return rf"\left\lfloor \frac{{{tex(a)}}}{{{tex(b)}}} \right\rfloor", _ATOM
        case Binary(op="**", left=a, right=b):
            return f"{{{_in(a, _ATOM)}}}^{{{tex(b)}}}", _POWER
        case Binary(op=("+" | "-") as op, left=a, right=b):
            return f"{_in(a, _SUM)} {op} {_in(b, _SUM if op == '+' else _PRODUCT)}", _SUM
        case Binary(op=op, left=a, right=b):
            sign = r" \cdot " if isinstance(b, Num) else _SIGN.get(op, op)
            left = _first(a)
            return f"{left}{sign}{_in(b, _SIGNED)}", _SUM if left.startswith("-") else _PRODUCT
        case Compare(op=op, left=a, right=b):
            return f"{_in(a, _SUM)} {_COMPARE[op]} {_in(b, _SUM)}", _CMP
        case BoolOp(op=op, args=args):
            word = r" \land " if op == "and" else r" \lor "
            return word.join(_in(a, _CMP) for a in args), _AND if op == "and" else _OR
        case Call(func="where", args=(c, a, b)):
            return _cases([(a, c)], b), _ATOM
        case Call(func="sqrt", args=(a,)):
            return rf"\sqrt{{{tex(a)}}}", _ATOM
        case Call(func="abs", args=(a,)):
            return rf"\left|{tex(a)}\right|", _ATOM
        case Call(func="square", args=(a,)):
            return f"{{{_in(a, _ATOM)}}}^{{2}}", _POWER
        case Call(func="reciprocal", args=(a,)):
            return rf"\frac{{1}}{{{tex(a)}}}", _PRODUCT
        case Call(func="rsqrt", args=(a,)):
            return rf"\frac{{1}}{{\sqrt{{{tex(a)}}}}}", _PRODUCT
        case Call(func="floor" | "ceil" as f, args=(a,)):
            return rf"\left\l{f} {tex(a)} \right\r{f}", _ATOM
        case Call(func="conj", args=(a,)):
            return rf"\overline{{{tex(a)}}}", _ATOM
        case Call(func=f, args=args, kwargs=kwargs):
            word = f"\\{f}" if f in _NAMED else r"\operatorname{" + f.replace("_", r"\_") + "}"
            inner = [tex(a) for a in args] + [f"{name_tex(k)}={tex(v)}" for k, v in kwargs]
            return rf"{word}\left({', '.join(inner)}\right)", _ATOM
        case Subscript(value=v, index=i):
            return f"{{{_in(v, _ATOM)}}}_{{{tex(i)}}}", _ATOM
        case Tuple(items=items) | List(items=items):
            return rf"\left({', '.join(map(tex, items))}\right)", _ATOM
    raise TypeError(f"not a formula node: {n!r}")


def _cases(rows: list[tuple[Node, Node]], rest: Node) -> str:
    """Nested choices as one brace."""
    while isinstance(rest, Call) and rest.func == "where" and len(rest.args) == 3:
        c, a, rest = rest.args
        rows.append((a, c))
    lines = [rf"{tex(a)} & {tex(c)}" for a, c in rows] + [rf"{tex(rest)} & \text{{otherwise}}"]
    return r"\begin{cases}" + r" \\ ".join(lines) + r"\end{cases}"


def _number(v: int | float | complex) -> tuple[str, int]:
    if isinstance(v, complex):
        return (r"\mathrm{i}" if v.imag == 1 else rf"{_number(v.imag)[0]}\,\mathrm{{i}}"), _ATOM
    if isinstance(v, float) and not math.isfinite(v):
        return (r"\mathrm{nan}" if math.isnan(v) else r"\infty" if v > 0 else r"-\infty"), _ATOM
    text = f"{v:.6g}" if isinstance(v, float) else str(v)
    digits, _, power = text.partition("e")
    if power:
        text = rf"{digits} \cdot 10^{{{int(power)}}}"
    return text, _ATOM if v >= 0 and not power else _SUM
