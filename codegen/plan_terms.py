"""Structured formulas as C++: a typed walk of the AST that calls ops and the helpers of the vocabulary.

The text works in both worlds (Storage and TensorRef) through the template parameter V. Knows nothing of nodes or loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from . import cpp_types as C
from .cpp_types import BOOL, DIMS, DTYPE, FLOAT, INT, SCALAR, STR, TENSOR, TENSORS
from .formula import (
    Binary,
    Bool,
    BoolOp,
    Call,
    Compare,
    Each,
    List,
    Name,
    Node,
    NoneLit,
    Num,
    Span,
    Str,
    Subscript,
    Tuple,
    Unary,
    map_children,
    names,
)  # fmt: skip
from .functions import CONSTANTS, OPERATOR_OPS
from .model import REQUIRED, Base, Entry, Overload, Type
from .vocabulary import DTYPE_ONLY, HELPERS, SHAPES, SIZE_ONLY, Param

NONE = Type(Base.STR, optional=True, size=-1)  # the type of the literal None


def _results(count: int) -> Type:
    """Several results of one call: a std::array, told from a list of tensors by its size below zero."""
    return Type(Base.TENSOR, is_list=True, size=-count)


def result_count(t: Type) -> int:
    return -t.size if t.base is Base.TENSOR and t.is_list and t.size is not None and t.size < 0 else 0


_STATIC = (Base.INT, Base.FLOAT, Base.BOOL, Base.SCALAR)
_ALIASES = {"sum_dims": "sum", "log_sigmoid": "logsigmoid"}


class TermError(Exception):
    """A formula that does not type."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message, self.span = message, span


@dataclass(frozen=True)
class Value:
    text: str
    type: Type
    items: tuple[Value, ...] = ()  # of a literal list
    literal: bool = False
    atom: bool = True

    @property
    def wrapped(self) -> str:
        return self.text if self.atom else f"({self.text})"

    @property
    def held(self) -> Value:
        """What an optional value holds, where it is asked for only when there is one."""
        kept = replace(self.type, optional=False)
        return Value(f"*{self.wrapped}", kept, atom=False) if self.type.optional else self


@dataclass(frozen=True, order=True)
class Use:
    """An overload that a formula calls."""

    op: str
    overload: int


@dataclass
class Ops:
    """The ops a formula may call."""

    entries: Mapping[str, Entry]

    def overloads(self, name: str) -> tuple[Overload, ...]:
        e = self.entries.get(name)
        return e.overloads if e is not None and e.python is None else ()


def reads(n: Node) -> set[str]:
    """Names whose elements a formula reads: not those that only stand in shape(x), dtype(x) and kin."""
    if isinstance(n, Call) and n.func in SIZE_ONLY | DTYPE_ONLY | {"len"} and n.args and isinstance(n.args[0], Name):
        return {i for a in n.args[1:] for i in reads(a)}
    if isinstance(n, Call) and n.func == "split_like" and len(n.args) > 1:
        return {i for a in (n.args[0], *n.args[2:]) for i in reads(a)}
    if isinstance(n, Compare) and (isinstance(n.left, NoneLit) or isinstance(n.right, NoneLit)):
        return set()
    if isinstance(n, Name):
        return {n.id}
    from .formula import children

    return {i for c in children(n) for i in reads(c)}


def split_meta(n: Node, keep: set[str], tensors: Iterable[str]) -> Node:
    """shape(x) -> x_shape and dtype(x) -> x_dtype for tensors x that `keep` does not hold; x == None -> has_x."""
    plain = set(tensors) - keep

    def go(n: Node) -> Node:
        if isinstance(n, Call) and n.args and isinstance(n.args[0], Name) and n.args[0].id in plain:
            x = n.args[0].id
            if n.func == "shape":
                return Name(f"{x}_shape", n.span)
            if n.func == "dtype":
                return Name(f"{x}_dtype", n.span)
            if n.func in SIZE_ONLY or n.func == "len":
                return Call(n.func, (Name(f"{x}_shape", n.span), *map(go, n.args[1:])), n.kwargs, n.span, n.func_span)
        if isinstance(n, Call) and n.func == "split_like" and isinstance(n.args[1], Name) and n.args[1].id in plain:
            lengths = Name(f"{n.args[1].id}_shape", n.args[1].span)
            return Call(n.func, (go(n.args[0]), lengths, *map(go, n.args[2:])), n.kwargs, n.span, n.func_span)
        if isinstance(n, Compare):
            for a, b in ((n.left, n.right), (n.right, n.left)):
                if isinstance(b, NoneLit) and isinstance(a, Name) and a.id in plain:
                    has: Node = Name(f"has_{a.id}", n.span)
                    return has if n.op == "!=" else Unary("not", has, n.span)
        return map_children(n, go)

    return go(n)


@dataclass
class Terms:
    """One formula's walk. `scope` gives the C++ value of each name."""

    ops: Ops
    scope: Mapping[str, Value]
    world: str = "V"
    like: str = ""  # C++ of the dtype that a bare constant takes
    used: set[Use] = field(default_factory=set)
    missing: Callable[[str, Node], Value] | None = None

    def __post_init__(self) -> None:
        self.shadow = {v.text for v in self.scope.values()}

    # ---- entry points ----

    def tensor(self, n: Node) -> str:
        return self.to(self.walk(n), TENSOR, n)

    def of_type(self, n: Node, t: Type) -> str:
        return self.to(self.walk(n), t, n)

    # ---- coercion ----

    def to(self, v: Value, t: Type, n: Node) -> str:
        got = self.coerce(v, t)
        if got is None:
            raise TermError(f"expected {describe(t)}, found {describe(v.type)}", n.span)
        return got[0]

    def coerce(self, v: Value, t: Type) -> tuple[str, int] | None:
        """(text, cost) of v where a t is wanted; None when it does not fit."""
        s = v.type
        if s == NONE:
            return (C.literal(None, t, self.world), 0) if t.optional else None
        if t.base is Base.TENSOR and t.is_list:
            if s.base is Base.TENSOR and s.is_list and not v.literal:
                return v.text, 0
            if v.items and (texts := [self.coerce(i, replace(TENSOR, optional=True)) for i in v.items]) and all(texts):
                return f"std::vector<{self.world}>{{{', '.join(x[0] for x in texts if x)}}}", 0
            return None
        if t.base is Base.TENSOR:
            if s.base is Base.TENSOR and not s.is_list:
                return v.text, 0
            if s.base in _STATIC and not s.is_list:
                return f"number<{self.world}>({self.scalar(v)})", 3
            return None
        if t.is_list:
            if v.literal and s.is_list:
                inner = [self.coerce(i, replace(t, is_list=False, optional=False, size=None)) for i in v.items]
                kept = C.member_type(replace(t, optional=False))
                return (f"{kept}{{{', '.join(x[0] for x in inner if x)}}}", 0) if all(inner) else None
            if s == t or (s.base is t.base and s.is_list and not result_count(s) and t != SHAPES):
                if s.optional and not t.optional:
                    return f"{v.wrapped}.value_or({C.member_type(replace(t, optional=False))}{{}})", 1
                return v.text, 0
            if t.base is Base.INT and s.base is Base.INT and not s.is_list:
                return f"Dims{{{v.held.text}}}", 1
            return None
        if s.is_list or s.base is Base.TENSOR:
            return None
        if t.base is Base.DTYPE and s.base is Base.STR and v.literal:  # a dtype by its name
            name = v.text.split('"')[1]
            return (f"Dtype::{C.DTYPE_CPP[name]}", 0) if name in C.DTYPE_CPP else None
        if s.base is t.base:
            if s.optional and not t.optional:
                return v.held.text, 1
            if t.base is Base.SCALAR and v.literal:
                return self.scalar(v), 0
            return v.text, 0
        v = v.held
        if t.base is Base.SCALAR and s.base in _STATIC:
            return self.scalar(v), 1
        if t.base is Base.FLOAT and s.base in (Base.INT, Base.SCALAR):
            return (f"double({v.text})" if s.base is Base.INT else f"{v.wrapped}.to_double()"), 1
        if t.base is Base.INT and s.base is Base.SCALAR:
            return f"{v.wrapped}.to_int()", 2
        if t.base is Base.BOOL and s.base in _STATIC:
            return f"{v.wrapped} != 0", 2
        if t.base is Base.INT and s.base is Base.BOOL:
            return f"std::int64_t({v.text})", 2
        return None

    def scalar(self, v: Value) -> str:
        return v.held.text if v.type.base is Base.SCALAR else f"Scalar({v.held.text})"

    # ---- the walk ----

    def walk(self, n: Node) -> Value:
        match n:
            case Num(value=complex() as c):
                return Value(f"Scalar({C.scalar_literal(c)})", SCALAR)
            case Num(value=int() as i):
                return Value(f"std::int64_t({C.number_literal(i)})", INT, literal=True)
            case Num(value=float() as x):
                return Value(C.number_literal(x), FLOAT, literal=True)
            case Bool(value=b):
                return Value("true" if b else "false", BOOL, literal=True)
            case Str(value=s):
                return Value(f"std::string_view({C.string_literal(s)})", STR, literal=True)
            case NoneLit():
                return Value("std::nullopt", NONE)
            case Name(id=i):
                return self.name(i, n)
            case Tuple(items=items) | List(items=items):
                vs = tuple(map(self.walk, items))
                tensors = any(v.type.base is Base.TENSOR for v in vs)
                return Value("", TENSORS if tensors else DIMS, vs, True)
            case Each(body=body, var=var, over=over):
                return self.each(body, var, over, n)
            case Unary(op=op, arg=a):
                return self.unary(op, a, n)
            case Binary(op=op, left=a, right=b):
                return self.binary(op, a, b, n)
            case Compare(op=op, left=a, right=b):
                return self.compare(op, a, b, n)
            case BoolOp(op=op, args=args):
                vs = tuple(map(self.walk, args))
                if any(self.is_tensor(v) for v in vs):
                    out = vs[0]
                    for v in vs[1:]:
                        out = self.call_op(OPERATOR_OPS[op], (out, v), {}, n)
                    return out
                sign = " && " if op == "and" else " || "
                return Value(sign.join(f"({self.to(v, BOOL, n)})" for v in vs), BOOL, atom=False)
            case Subscript(value=x, index=i):
                return self.subscript(x, i, n)
            case Call(func="where", args=(c, a, b), kwargs=()):
                return self.where(c, a, b, n)
            case Call(func=f, args=args, kwargs=kwargs):
                return self.call(f, tuple(map(self.walk, args)), {k: self.walk(v) for k, v in kwargs}, n)
        raise TermError(f"{type(n).__name__} has no C++ form", n.span)

    def each(self, body: Node, var: str, over: Node, n: Node) -> Value:
        """[body for var in over] as a call of each(): the count or the list, and a lambda of one item."""
        name = C.cpp_name(var)
        if isinstance(over, Call) and over.func == "range" and len(over.args) == 1:
            items, item, param = self.of_type(over.args[0], INT), INT, f"std::int64_t {name}"
        else:
            v = self.walk(over)
            if v.type.base is Base.TENSOR and v.type.is_list and not v.literal and not result_count(v.type):
                items, item, param = v.text, TENSOR, f"const {self.world}& {name}"
            else:
                items, item, param = self.to(v, DIMS, over), INT, f"std::int64_t {name}"
        inner = replace(self, scope={**self.scope, var: Value(name, item)})
        v = inner.walk(body)
        if not self.is_tensor(v):
            made = inner.to(v, INT, body)
            return Value(f"each_int({items}, [&]({param}) -> std::int64_t {{ return {made}; }})", DIMS)
        text = f"each<{self.world}>({items}, [&]({param}) -> {self.world} {{ return {v.text}; }})"
        return Value(text, TENSORS)

    def name(self, i: str, n: Node) -> Value:
        if i in self.scope:
            return self.scope[i]
        if i in CONSTANTS:
            return Value(C.number_literal(CONSTANTS[i]), FLOAT, literal=True)
        raise TermError(f"'{i}' is not in scope", n.span)

    @staticmethod
    def is_tensor(v: Value) -> bool:
        return v.type.base is Base.TENSOR and not v.type.is_list

    def unary(self, op: str, a: Node, n: Node) -> Value:
        if op == "-" and isinstance(a, Num) and not isinstance(a.value, complex):
            return self.walk(Num(-a.value, n.span))
        v = self.walk(a)
        if v.type.is_list:
            raise TermError(f"'{op}' is for one value, not for {describe(v.type)}", n.span)
        if self.is_tensor(v):
            return (
                v
                if op == "+"
                else self.call_op({"-": "neg", "~": "bitwise_not", "not": "logical_not"}[op], (v,), {}, n)
            )
        if op == "not":
            return Value(f"!({self.to(v, BOOL, n)})", BOOL)
        v = self.plain(v)
        return v if op == "+" else Value(f"{op}{v.wrapped}", v.type, atom=False)

    def plain(self, v: Value) -> Value:
        """A number that C++ computes with: Scalars become double, optionals are read."""
        v = v.held
        if v.type.base is Base.SCALAR:
            return Value(f"{v.wrapped}.to_double()", FLOAT)
        if v.type.base is Base.BOOL:
            return Value(f"std::int64_t({v.text})", INT)
        return v

    def binary(self, op: str, a: Node, b: Node, n: Node) -> Value:
        x, y = self.walk(a), self.walk(b)
        if self.is_tensor(x) or self.is_tensor(y):
            if op == "**" and isinstance(b, Num) and b.value == 2 and self.ops.overloads("square"):
                return self.call_op("square", (x,), {}, n)
            return self.call_op(OPERATOR_OPS[op], (x, y), {}, n)
        if op == "+" and x.type.is_list and y.type.is_list:
            return Value(f"concat({self.to(x, DIMS, a)}, {self.to(y, DIMS, b)})", DIMS)
        x, y = self.plain(x), self.plain(y)
        if x.type.base not in _STATIC or y.type.base not in _STATIC or x.type.is_list or y.type.is_list:
            raise TermError(f"'{op}' of {describe(x.type)} and {describe(y.type)}", n.span)
        both = INT if x.type.base is y.type.base is Base.INT else FLOAT
        if op in "+-*":
            return Value(f"{x.wrapped} {op} {y.wrapped}", both, atom=False)
        if op == "/":
            return Value(f"double({x.text}) / double({y.text})", FLOAT, atom=False)
        if op == "**" and both == INT and isinstance(b, Num) and isinstance(b.value, int) and b.value >= 0:
            return Value(f"std::int64_t(std::pow(double({x.text}), double({y.text})))", INT)
        if op == "**":
            return Value(f"std::pow(double({x.text}), double({y.text}))", FLOAT)
        if op in ("//", "%") and both == INT:
            return Value(f"{'floor_div' if op == '//' else 'floor_mod'}({x.text}, {y.text})", INT)
        raise TermError(f"'{op}' of {describe(x.type)} and {describe(y.type)}", n.span)

    def compare(self, op: str, a: Node, b: Node, n: Node) -> Value:
        x, y = self.walk(a), self.walk(b)
        if NONE in (x.type, y.type):
            v = y if x.type == NONE else x
            if self.is_tensor(v):
                absent = f"is_absent({v.text})"
                return Value(absent if op == "==" else f"!{absent}", BOOL)
            if not v.type.optional:
                return Value("false" if op == "==" else "true", BOOL)
            return Value(f"{'!' if op == '==' else ''}{v.wrapped}.has_value()", BOOL)
        if self.is_tensor(x) or self.is_tensor(y):
            out = self.call_op(OPERATOR_OPS[op], (x, y), {}, n)
            for v in (x, y):
                # An absent bound does not bind.
                if v.type.optional and op in ("<", "<=", ">", ">="):
                    given = f"!is_absent({v.text})" if self.is_tensor(v) else f"{v.wrapped}.has_value()"
                    out = Value(f"({given} ? {out.text} : number<{self.world}>(Scalar(true)))", TENSOR)
            return out
        for v, w in ((x, y), (y, x)):  # a dtype beside its name
            if v.type.base is Base.DTYPE and w.literal and w.type.base is Base.STR:
                return Value(f"{v.wrapped} {op} {self.to(w, DTYPE, n)}", BOOL, atom=False)
        if x.type.base is Base.BOOL and y.type.base is Base.BOOL:
            return Value(f"({x.text}) {op} ({y.text})", BOOL, atom=False)
        if x.type.base is Base.STR or y.type.base is Base.STR or x.type.base is Base.DTYPE or x.type.is_list:
            return Value(f"{x.wrapped} {op} {y.wrapped}", BOOL, atom=False)
        x, y = self.plain(x), self.plain(y)
        return Value(f"{x.wrapped} {op} {y.wrapped}", BOOL, atom=False)

    def subscript(self, x: Node, i: Node, n: Node) -> Value:
        v, k = self.walk(x), self.walk(i)
        if count := result_count(v.type):
            if not isinstance(i, Num) or not isinstance(i.value, int) or not 0 <= i.value < count:
                raise TermError(f"the results of a call are numbered by a literal from 0 to {count - 1}", n.span)
            return Value(f"std::get<{i.value}>({v.text})", TENSOR)
        index = self.to(k, INT, i)
        if v.type == SHAPES:
            return Value(f"{v.wrapped}[std::size_t({index})]", DIMS)
        if v.type.is_list and v.type.base is Base.TENSOR:
            return Value(f"item({v.text}, {index})", TENSOR)
        if v.type.is_list:
            item = replace(v.type, is_list=False, optional=False, size=None)
            text = self.to(v, replace(v.type, optional=False), n) if v.type.base is Base.INT else v.text
            return Value(f"at({text}, {index})", item)
        raise TermError(f"{describe(v.type)} has no items", n.span)

    def where(self, c: Node, a: Node, b: Node, n: Node) -> Value:
        cond = self.walk(c)
        x, y = self.walk(a), self.walk(b)
        if not self.is_tensor(cond):
            test = self.to(cond, BOOL, c)
            if self.is_tensor(x) or self.is_tensor(y):
                return Value(f"({test} ? {self.own(x, a)} : {self.own(y, b)})", TENSOR)
            t = x.type if x.type == y.type else self.unify(x, y, n)
            if t == DIMS:
                return Value(f"({test} ? Dims({self.to(x, t, a)}) : Dims({self.to(y, t, b)}))", t)
            if t.optional:
                kept = C.member_type(t)
                return Value(f"({test} ? {kept}({self.to(x, t, a)}) : {kept}({self.to(y, t, b)}))", t)
            return Value(f"({test} ? {self.to(x, t, a)} : {self.to(y, t, b)})", t)
        if not self.is_tensor(x) and not self.is_tensor(y):
            # Two numbers have no dtype of their own: without one, 0.1 would be rounded to the default type.
            x = self.constant(x, a)
        return self.call_op("where", (cond, x, y), {}, n)

    def own(self, v: Value, n: Node) -> str:
        """A value of the world's type (not a reference), so that both branches of ?: have one type."""
        text = self.to(v, TENSOR, n)
        return f"{self.world}({text})" if v.type.base is Base.TENSOR and text.isidentifier() else text

    def constant(self, v: Value, n: Node) -> Value:
        if not self.like:
            return v
        return Value(f"constant<{self.world}>({self.scalar(v)}, {self.like})", TENSOR)

    def unify(self, x: Value, y: Value, n: Node) -> Type:
        for t in (INT, FLOAT, SCALAR, STR, DTYPE, BOOL, DIMS):
            if self.coerce(x, t) and self.coerce(y, t):
                return t
        for v, w in ((x, y), (y, x)):
            t = replace(v.type, optional=True)
            if w.type == NONE:
                return t
        raise TermError(f"branches of {describe(x.type)} and {describe(y.type)}", n.span)

    # ---- calls ----

    def call(self, f: str, args: tuple[Value, ...], kwargs: dict[str, Value], n: Node) -> Value:
        f = _ALIASES.get(f, f)
        if f == "len" and args and args[0].type == SHAPES:
            return Value(f"std::int64_t({args[0].wrapped}.size())", INT)
        if f in SIZE_ONLY | {"shape"} and args and args[0].type == DIMS:
            args = (Value(args[0].text, DIMS), *args[1:])
            if f == "shape":
                return args[0]
            return self.helper(f, args, kwargs, n, sized=True)
        tensors = any(v.type.base is Base.TENSOR for v in (*args, *kwargs.values()))
        numbers = args and not tensors and not any(v.type.is_list for v in args)
        if numbers and f in ("abs", "min", "max", "floor", "ceil"):
            return self.plain_call(f, args, n)
        if f in HELPERS and (got := self.try_helper(f, args, kwargs, n)):
            return got
        if self.ops.overloads(f) and (tensors or any(a.type.has_tensor for a in self.ops.overloads(f)[0].sig.args)):
            return self.call_op(f, args, kwargs, n)
        if self.ops.overloads(f):
            return self.call_op(f, args, kwargs, n)
        if f in ("int", "float", "bool") and not tensors and len(args) == 1:
            return self.plain_cast(f, args[0])
        if f == "float" and len(args) == 1:
            return args[0]
        if f == "bool" and len(args) == 1:
            return self.call_op("ne", (args[0], Value("std::int64_t(0)", INT, literal=True)), {}, n)
        if self.missing is not None:
            return self.missing(f, n)
        raise TermError(f"no op or helper '{f}' takes these arguments", n.span)

    def plain_call(self, f: str, args: tuple[Value, ...], n: Node) -> Value:
        vs = [self.plain(a) for a in args]
        t = INT if all(v.type.base is Base.INT for v in vs) else FLOAT
        if f in ("min", "max"):
            inner = ", ".join(v.text if v.type == t else f"double({v.text})" for v in vs)
            return Value(f"std::{f}<{C.member_type(t)}>({inner})", t)
        return Value(f"std::{f}({vs[0].text})", t)

    def plain_cast(self, f: str, v: Value) -> Value:
        v = self.plain(v)
        t = {"int": INT, "float": FLOAT, "bool": BOOL}[f]
        return Value(f"{C.member_type(t)}({v.text})", t)

    def bind(
        self, params: tuple[Param, ...], args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> tuple[list[str], int] | None:
        if len(args) > len(params) or any(k not in {p.name for p in params} for k in kwargs):
            return None
        texts, cost = [], 0
        for i, p in enumerate(params):
            v = args[i] if i < len(args) else kwargs.get(p.name)
            if v is None:
                if p.default is REQUIRED:
                    return None
                texts.append(C.literal(p.default, p.type, self.world))
                continue
            if i < len(args) and p.name in kwargs:
                return None
            got = self.coerce(v, p.type)
            if got is None:
                return None
            texts.append(got[0])
            cost += got[1]
        return texts, cost

    def try_helper(self, f: str, args: tuple[Value, ...], kwargs: dict[str, Value], n: Node) -> Value | None:
        for h in HELPERS[f]:
            bound = self.bind(h.params, args, kwargs)
            if bound is not None:
                break
        else:
            return None
        texts = bound[0]
        if h.template and h.params[-1].name == "dtype" and texts[-1] == "std::nullopt":
            if not self.like:
                raise TermError(f"{f}() without a dtype where nothing tells one", n.span)
            texts[-1] = self.like
        name = f"{f}<{self.world}>" if h.template else f
        return Value(f"{self.qualify(f, name)}({', '.join(texts)})", h.result)

    def helper(self, f: str, args: tuple[Value, ...], kwargs: dict[str, Value], n: Node, sized: bool = False) -> Value:
        h = HELPERS[f][0]
        params = h.params
        if sized:
            params = (replace_param(params[0], DIMS), *params[1:])
        bound = self.bind(params, args, kwargs)
        if bound is None:
            raise TermError(f"{f}() does not take these arguments", n.span)
        return Value(f"{self.qualify(f, f)}({', '.join(bound[0])})", h.result)

    def qualify(self, name: str, text: str) -> str:
        return f"ops::{text}" if C.cpp_name(name) in self.shadow else text

    def call_op(self, f: str, args: tuple[Value, ...], kwargs: dict[str, Value], n: Node) -> Value:
        best: tuple[int, Overload, list[str]] | None = None
        for o in self.ops.overloads(f):
            params = tuple(Param(a.name, a.type, a.default) for a in o.sig.args)
            positional = sum(not a.kwonly for a in o.sig.args)
            if len(args) > positional:
                continue
            bound = self.bind(params, args, kwargs)
            if bound is not None and (best is None or bound[1] < best[0]):
                best = (bound[1], o, bound[0])
        if best is None:
            if not self.ops.overloads(f) and self.missing is not None:
                return self.missing(f, n)
            what = "no op" if not self.ops.overloads(f) else "no overload of"
            kinds = ", ".join(describe(v.type) for v in args)
            raise TermError(f"{what} '{f}' for ({kinds})", n.span)
        _, o, texts = best
        self.used.add(Use(f, o.index))
        name = C.function_name(f)
        text = f"{self.qualify(f, name)}({', '.join(texts)})"
        if not o.sig.tensor_args:
            # Nothing in the arguments tells the world.
            text = f"lift<{self.world}>({self.qualify(f, 'make_' + f)}({', '.join(texts)}))"
        results = o.sig.results
        if len(results) > 1:
            return Value(text, _results(len(results)))
        return Value(text, results[0].type)


def replace_param(p: Param, t: Type) -> Param:
    return Param(p.name, t, p.default)


def describe(t: Type) -> str:
    if t == NONE:
        return "None"
    if t == SHAPES:
        return "shapes"
    if result_count(t):
        return "several results"
    return str(t)


__all__ = [
    "BOOL", "DTYPE", "NONE", "SHAPES", "TENSOR", "TENSORS", "TermError", "Terms", "Use", "Value", "names",
    "reads", "split_meta",
]  # fmt: skip
