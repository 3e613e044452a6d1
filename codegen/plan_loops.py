"""Element loops: which compute types an expression has a loop for, and its C++ text over one element.

Everything is typed here: T (the loop's type), R (its real type), bool. Knows nothing of ops, tensors or gradients.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import cpp_types as C
from .derive import cse
from .formula import (
    Binary,
    Bool,
    BoolOp,
    Call,
    Compare,
    Name,
    Node,
    NoneLit,
    Num,
    Str,
    Unary,
    children,
    names,
    substitute,
    to_text,
    walk,
)  # fmt: skip
from .functions import CONSTANTS, REAL_VALUED
from .model import DTYPE_GROUPS, Base, Type
from .plan_compute import COMPUTE, CPP, SERVES, supported
from .plan_loop_forms import Loop, LoopInput, LoopParam
from .plan_static import LoopError, StaticText
from .simplify import expand

_RENAMED = {
    "bitwise_and": "bit_and", "bitwise_or": "bit_or", "bitwise_xor": "bit_xor", "bitwise_left_shift": "shl",
    "bitwise_right_shift": "shr", "bitwise_not": "bit_not",
}  # fmt: skip
_TO_BOOL = frozenset({"isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf"})
_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "/"}
_OPERATOR_FUNCTIONS = {
    "//": "floor_divide", "%": "remainder", "&": "bit_and", "|": "bit_or", "^": "bit_xor", "<<": "shl", ">>": "shr",
}  # fmt: skip
_BITWISE = frozenset("&|^")
# What every loop says itself, beside the arguments.
_OWN = re.compile(r"data|end|far|from|i|n|params|to\d*|[cps]\d+")


@dataclass(frozen=True)
class _Text:
    text: str
    kind: str  # T value, R real of T, B bool, N number literal
    atom: bool = True
    value: float | int | complex | bool | None = None  # of N

    @property
    def wrapped(self) -> str:
        return self.text if self.atom else f"({self.text})"


class LoopBuilder:
    """Builds loops of one op. `types` are the op's arguments; tensors (and results, g) are elements."""

    def __init__(self, types: Mapping[str, Type], masks: frozenset[str], suffix: str = "") -> None:
        """`suffix` is put behind arguments that the op passes: members of a node end in an underscore."""
        self.types = types
        self.masks = masks
        self.suffix = suffix
        self.hoisting = False
        self.static_text = StaticText(types, suffix)

    def unsupported(self, e: Node, allowed: set[str]) -> str:
        """Why no compute type of those allowed has a loop for e."""
        if not allowed:
            return "its values are floats, and dtypes has none: add float, or compute in whole numbers (//, %, floor)"
        groups = {g: {c for d in names for c in SERVES[d]} for g, names in DTYPE_GROUPS.items()}
        known = ", ".join(g for g, served in groups.items() if served & allowed)
        parts = [x for x in walk(e) if not supported(x, self.types, self.masks) & allowed]
        if not parts:
            return f"its parts are of different dtypes: none of {known} has all of them"
        return f"'{to_text(parts[-1])}' is not defined for {known}"

    def build(
        self, name: str, comment: str, exprs: Sequence[Node], inputs: tuple[str, ...], out: str, allowed: set[str],
    ) -> Loop:  # fmt: skip
        """A loop with one result for each expression."""
        exprs = [expand(e) for e in exprs]
        lets, bodies = cse(exprs)
        self.params: dict[str, LoopParam] = {}
        self.static: dict[Node, str] = {}
        self.locals: dict[str, str] = {}
        self.hoisted: dict[str, str] = {}  # apart: a formula may have an argument of that name
        self.pre: list[str] = []
        ok = set(allowed)
        for e in exprs:
            ok &= supported(e, self.types, self.masks)
            if not ok:
                raise LoopError(self.unsupported(e, allowed), e)
        statements: list[str] = []
        # A shared subexpression of static arguments alone is hoisted where it is used.
        for i, (let, value) in enumerate(lets):
            if self.is_static(value):
                static_value = value
                bodies = [substitute(b, {let: static_value}) for b in bodies]
                lets = [(m, substitute(v, {let: static_value})) for m, v in lets]
            else:
                value = lets[i][1]
                t = self.emit(value)
                self.locals[let] = t.kind if t.kind != "N" else "T"
                ctype = {"T": "T", "R": "R", "B": "bool", "N": "T"}[t.kind]
                statements.append(f"const {ctype} {let} = {t.text if t.kind != 'N' else self.typed(t, 'T')};")
        values = [self.result(self.emit(b), out) for b in bodies]
        ins = tuple(LoopInput(self.var(i), "std::uint8_t" if i in self.masks else "T") for i in inputs)
        text = " ".join([*self.pre, *statements, *values])
        pre = list(self.pre)
        if re.search(r"\bR\b", text):
            pre.insert(0, "using R = real_t<T>;")
        table = tuple(
            f"{C.function_name(name)}<{cpp}>" if c in ok else "nullptr" for c, cpp in zip(COMPUTE, CPP, strict=True)
        )
        return Loop(
            C.function_name(name),
            comment,
            out,
            ins,
            tuple(self.params.values()),
            tuple(pre),
            tuple(statements),
            values[0],
            table,
            tuple(values[1:]),
        )

    def result(self, t: _Text, out: str) -> str:
        if out == "bool":
            return self.as_bool(t).text
        if out == "T":
            return self.cast(t, "T")
        return self.typed(t, "R") if t.kind in "RNB" else f"m::real({t.text})"

    # ---- names ----

    def var(self, name: str) -> str:
        return f"{name}_" if _OWN.fullmatch(name) else C.cpp_name(name)

    def element(self, name: str) -> str:
        return f"{self.var(name)}[i]"

    def is_tensor(self, name: str) -> bool:
        return name not in self.types or self.types[name].has_tensor

    def is_static(self, n: Node) -> bool:
        """Only arguments that are not tensors, and at least one of them."""
        if self.hoisting:
            return False
        found = [i for i in names(n) if i not in CONSTANTS]
        return bool(found) and all(i in self.types and not self.types[i].has_tensor for i in found)

    def is_static_bool(self, n: Node) -> bool:
        match n:
            case Compare(left=a, right=b):
                if isinstance(a, NoneLit) or isinstance(b, NoneLit):
                    return True
                return self.is_static(n) and (isinstance(a, Str) or isinstance(b, Str) or not self.floats(n))
            case BoolOp(args=args):
                return all(map(self.is_static_bool, args))
            case Unary(op="not", arg=a):
                return self.is_static_bool(a)
            case Name(id=i):
                return i in self.types and self.types[i].base is Base.BOOL
        return False

    def floats(self, n: Node) -> bool:
        return any(self.types[i].base is Base.SCALAR for i in names(n) if i in self.types)

    def param(self, key: str, decl: str, argument: str) -> str:
        """Parameter `key` of the loop, made at first use."""
        if key not in self.params:
            k = len(self.params)
            self.params[key] = LoopParam(decl.replace("@", f"params[{k}]"), argument)
        return key

    # ---- expressions ----

    def emit(self, n: Node) -> _Text:
        if self.is_static_bool(n):
            return self.hoist_bool(n)
        if children(n) and self.is_static(n) and not isinstance(n, (Compare, BoolOp)):
            return self.hoist_value(n)
        match n:
            case Num(value=v):
                return self.number(v)
            case Bool(value=v):
                return _Text("true" if v else "false", "B", value=v)
            case Name(id=i):
                return self.name(i, n)
            case Unary(op="-", arg=Num(value=v)):
                return self.number(-v)
            case Unary(op="-", arg=a):
                t = self.number_free(self.emit(a))
                return _Text(f"-{t.wrapped}", t.kind, False)
            case Unary(op="+", arg=a):
                return self.emit(a)
            case Unary(op="not", arg=a):
                return _Text(f"!{self.as_bool(self.emit(a)).wrapped}", "B")
            case Unary(op="~", arg=a):
                return self.call("bit_not", (a,), n)
            case BoolOp(op=op, args=args):
                sign = " & " if op == "and" else " | "
                return _Text(sign.join(self.as_bool(self.emit(a)).wrapped for a in args), "B", False)
            case Compare(op=op, left=a, right=b):
                return self.compare(op, a, b)
            case Binary(op="**", left=a, right=b):
                return self.power(a, b, n)
            case Binary(op=op, left=a, right=b) if op in _OPERATORS:
                return self.arithmetic(op, a, b)
            case Binary(op=op, left=a, right=b) if op in _OPERATOR_FUNCTIONS:
                return self.call(_OPERATOR_FUNCTIONS[op], (a, b), n)
            case Call(func="where", args=(c, a, b)):
                return self.where(c, a, b)
            case Call(func="clamp", args=args):
                return self.clamp(args)
            case Call(func=f, args=args):
                return self.call(f, args, n)
        what = {"Str": "text", "NoneLit": "None"}.get(type(n).__name__, type(n).__name__.lower())
        raise LoopError(f"{what} has no meaning for one element", n)

    def number(self, v: int | float | complex) -> _Text:
        if isinstance(v, complex):
            return _Text(f"m::imaginary<T>({C.number_literal(v.imag)})", "T")
        return _Text(C.number_literal(v), "N", value=v)

    def name(self, i: str, n: Node) -> _Text:
        if i in self.locals:
            return _Text(i, self.locals[i])
        if i in CONSTANTS:
            if i == "inf":
                return _Text("std::numeric_limits<double>::infinity()", "N", value=math.inf)
            if i == "nan":
                return _Text("std::numeric_limits<double>::quiet_NaN()", "N", value=math.nan)
            return self.number(CONSTANTS[i])
        if self.is_tensor(i):
            # Masks are read as bytes: gcc does not vectorise a selection by bool loads.
            return _Text(f"{self.element(i)} != 0", "B", False) if i in self.masks else _Text(self.element(i), "T")
        t = self.types[i]
        if t.base is Base.BOOL:
            return self.hoist_bool(n)
        if t.base in (Base.SCALAR, Base.FLOAT, Base.INT) and not t.is_list:
            key = self.var(i)
            passed = C.cpp_name(i) + self.suffix
            absent = f"{passed}.value_or({'0' if t.base is not Base.SCALAR else 'Scalar(0)'})" if t.optional else passed
            return _Text(self.param(key, f"const T {key} = scalar_to<T>(@);", absent), "T")
        raise LoopError(f"'{i}' is a {t}: it may only stand in a comparison that does not depend on elements", n)

    def hoist_bool(self, n: Node) -> _Text:
        if isinstance(n, Name):
            key = self.var(n.id)
        else:
            key = self.static.setdefault(n, f"c{len(self.static)}")
        self.param(key, f"const bool {key} = @.to_bool();", self.static_text(n))
        return _Text(key, "B")

    def hoist_value(self, n: Node) -> _Text:
        key = self.static.get(n)
        if key is None:
            t = self.emit_inner(n)
            if t.kind == "B" or t.text.isidentifier():
                return t
            key = self.static.setdefault(n, f"c{len(self.static)}")
            ctype = {"T": "T", "R": "R", "N": "T"}[t.kind]
            self.pre.append(f"const {ctype} {key} = {t.text};")
            self.hoisted[key] = "R" if ctype == "R" else "T"
        return _Text(key, self.hoisted[key])

    def emit_inner(self, n: Node) -> _Text:
        """The value itself, not hoisted again part by part."""
        self.hoisting = True
        try:
            return self.emit(n)
        finally:
            self.hoisting = False

    # ---- kinds ----

    def typed(self, t: _Text, kind: str) -> str:
        """The text as a value of kind T or R."""
        if t.kind == kind:
            return t.text
        return f"{kind}({t.text})"

    def cast(self, t: _Text, kind: str) -> str:
        return self.typed(t, kind)

    def number_free(self, t: _Text) -> _Text:
        return _Text(self.typed(t, "T"), "T") if t.kind in "NB" else t

    def as_bool(self, t: _Text) -> _Text:
        if t.kind == "B":
            return t
        zero = "R(0)" if t.kind == "R" else "T(0)"
        return _Text(f"{t.wrapped} != {zero}", "B", False)

    def common(self, *ts: _Text) -> str:
        kinds = {t.kind for t in ts} - {"N"}
        if "T" in kinds:
            return "T"
        if "R" in kinds:
            return "R"
        return "T"

    def arithmetic(self, op: str, a: Node, b: Node) -> _Text:
        x, y = self.emit(a), self.emit(b)
        if x.kind == y.kind == "N" and not isinstance(x.value, complex) and not isinstance(y.value, complex):
            return self.fold(op, x, y)
        # A real operand meets a complex one through the mixed operators of complex.h.
        kind = self.common(x, y)

        def side(t: _Text) -> str:
            if t.kind in "NB":
                other = y if t is x else x
                return self.typed(t, "R" if other.kind == "R" else "T")
            return t.wrapped

        left = x.text if x.kind in "TR" and (x.atom or (op in "+-" and _loose(x.text))) else side(x)
        return _Text(f"{left} {op} {side(y)}", kind, False)

    def fold(self, op: str, x: _Text, y: _Text) -> _Text:
        a, b = x.value, y.value
        assert isinstance(a, (int, float)) and isinstance(b, (int, float))
        if op == "/" and b == 0:
            return _Text(f"T({x.text}) / T({y.text})", "T", False)
        return self.number({"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0}[op])

    def compare(self, op: str, a: Node, b: Node) -> _Text:
        guards = [i for n in (a, b) if (i := self.optional_name(n))] if op in ("<", "<=", ">", ">=") else []
        x, y = self.emit(a), self.emit(b)
        kind = "R" if "R" in (x.kind, y.kind) and "T" not in (x.kind, y.kind) else "T"
        if x.kind == y.kind == "B":
            kind = "B"
        xs = x.wrapped if kind == "B" or x.kind == kind else self.typed(x, kind)
        ys = y.wrapped if kind == "B" or y.kind == kind else self.typed(y, kind)
        text = _Text(f"{xs} {op} {ys}", "B", False)
        for i in guards:
            # An absent bound does not bind.
            given = self.given(i)
            text = _Text(f"!{given} | ({text.text})", "B", False)
        return text

    def optional_name(self, n: Node) -> str | None:
        return n.id if isinstance(n, Name) and n.id in self.types and self.types[n.id].optional else None

    def given(self, name: str) -> str:
        test = self.static_text(Compare("!=", Name(name), NoneLit()))
        return self.param(f"has_{name}", f"const bool has_{name} = @.to_bool();", test)

    def power(self, a: Node, b: Node, n: Node) -> _Text:
        x = self.emit(a)
        if isinstance(b, Num) and not isinstance(b.value, complex):
            e = b.value
            x = self.number_free(x)
            special = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
            if e in special:
                return _Text(f"m::{special[e]}({x.text})", x.kind)
            if float(e).is_integer() and abs(e) <= 64:
                return _Text(f"m::powi<{int(e)}>({x.text})", x.kind)
        return self.call("pow", (a, b), n)

    def where(self, c: Node, a: Node, b: Node) -> _Text:
        cond = self.as_bool(self.emit(c))
        x, y = self.emit(a), self.emit(b)
        if x.kind == y.kind == "B":
            return _Text(f"m::where<bool>({cond.text}, {x.text}, {y.text})", "B")
        kind = self.common(x, y)
        return _Text(f"m::where<{kind}>({cond.text}, {self.typed(x, kind)}, {self.typed(y, kind)})", kind)

    def clamp(self, args: tuple[Node, ...]) -> _Text:
        x = self.number_free(self.emit(args[0]))
        text = x.text
        for bound, f in zip(args[1:], ("m::at_least", "m::at_most"), strict=False):
            if isinstance(bound, NoneLit):
                continue
            limit = self.typed(self.emit(bound), x.kind)
            name = self.optional_name(bound)
            text = f"{f}({text}, {limit}, {self.given(name) if name else 'true'})"
        return _Text(text, x.kind)

    def call(self, f: str, args: tuple[Node, ...], n: Node) -> _Text:
        if f == "polygamma":
            order, x = args[0], self.number_free(self.emit(args[1]))
            o = self.emit(order)
            return _Text(f"m::polygamma(int({o.text}), {x.text})", x.kind)
        ts = [self.emit(a) for a in args]
        if f == "float":
            return self.number_free(ts[0])
        if f == "bool":
            return self.as_bool(ts[0])
        if f == "int":
            x = self.number_free(ts[0])
            return _Text(f"m::trunc({x.text})", x.kind)
        if f == "logical_not":
            return _Text(f"!{self.as_bool(ts[0]).wrapped}", "B")
        if f in ("logical_and", "logical_or", "logical_xor"):
            sign = {"logical_and": "&", "logical_or": "|", "logical_xor": "!="}[f]
            x, y = (self.as_bool(t) for t in ts)
            return _Text(f"{x.wrapped} {sign} {y.wrapped}", "B", False)
        name = "m::" + _RENAMED.get(f, f)
        if len(ts) == 1:
            x = ts[0] if ts[0].kind == "B" and f in ("bit_not", "bitwise_not") else self.number_free(ts[0])
            if f in _TO_BOOL:
                kind = "B"
            elif f in REAL_VALUED:
                kind = "R"
            else:
                kind = x.kind
            return _Text(f"{name}({x.text})", kind)
        if all(t.kind == "B" for t in ts) and _RENAMED.get(f, f).startswith("bit_"):
            return _Text(f"{name}({', '.join(t.text for t in ts)})", "B")
        kind = self.common(*ts)
        return _Text(f"{name}({', '.join(self.typed(t, kind) for t in ts)})", kind)


def _loose(text: str) -> bool:
    """Whether an unparenthesised left operand of + or - reads right: anything but & | != and kin."""
    return not any(s in text for s in (" & ", " | ", " != ", " == ", " < ", " > ", " <= ", " >= "))
