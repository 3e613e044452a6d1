"""What a formula may name and call, and the check of one formula against it. Knows no YAML."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from . import COMMAND
from . import formula as F
from .errors import Diagnostics, did_you_mean
from .functions import CONSTANTS, FUNCTIONS, INTERNAL
from .model import DTYPES, REQUIRED, Base, Formula, Loc, Signature, Type
from .shape_rules import SHAPES
from .structured import META, TENSOR, parameters

if TYPE_CHECKING:
    from .vocabulary import Helper

Notes = Iterable[tuple[Loc, str]]


# What an elementwise formula, which sees one element at a time, cannot hold.
_LISTS: dict[type, str] = {
    F.Subscript: "a subscript", F.Tuple: "a tuple", F.List: "a list", F.Each: "a list built item by item",
}  # fmt: skip


WHERE_FUNCTIONS = f"{COMMAND} schema lists the functions; elementwise ops may be called too"


def whole(name: str, ops: Container[str]) -> str:
    """The hint for a name that only formulas over whole tensors know; empty for others."""
    if name in META or name in TENSOR or name in ops:
        return f"'{name}' sees whole tensors, expr one element: say compose in place of expr"
    return ""


@dataclass(frozen=True)
class Callee:
    """What is known of a callable: least and most positional arguments (-1: any number), keyword names."""

    least: int
    most: int
    keywords: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict)  # of an op's arguments
    tensor: bool = False  # gives one tensor
    result: Type | None = None  # of a single result, where it is known
    loc: Loc | None = None  # of an op's signature


@dataclass(frozen=True)
class Scope:
    """Names and functions of one kind of formula."""

    names: tuple[str, ...]
    callees: Mapping[str, tuple[Callee, ...]]
    elementwise: bool = False
    what_names: str = "an argument"
    hidden: Mapping[str, str] = field(default_factory=dict)  # name -> why it is not in scope
    tensors: frozenset[str] = frozenset()  # names that stand for one tensor
    types: Mapping[str, Type] = field(default_factory=dict)  # of arguments and results
    given: Mapping[str, Formula] = field(default_factory=dict)  # earlier values of a composition

    def behind(self, n: F.Node) -> Notes:
        """Where the tensors that n reads are given: what they are may be what is wrong."""
        found: dict[str, Loc] = {}
        ahead = [n]
        while ahead:
            for i in F.names(ahead.pop()):
                if i in self.given and i in self.tensors and i not in found:
                    found[i] = self.given[i].loc
                    ahead.append(self.given[i].node)
        return [(loc, f"'{i}' is a tensor") for i, loc in found.items()]

    def type_of(self, n: F.Node) -> Type | None:
        """The type of n where it is known."""
        match n:
            case F.Name(id=i):
                return self.types.get(i) or (Type(Base.TENSOR) if i in self.tensors else None)
            case F.Str():
                return Type(Base.STR)
            case F.Bool():
                return Type(Base.BOOL)
            case F.Num(value=v):
                return Type(Base.INT if isinstance(v, int) else Base.FLOAT)
            case F.Call(func=f, args=args):
                if f in META and any((t := self.type_of(a)) and t.has_tensor and t.is_list for a in args):
                    return None  # the shapes of a list
                kinds = {c.result for c in self.callees.get(f, ())}
                if len(kinds) == 1 and (only := kinds.pop()) is not None:
                    return only
        return Type(Base.TENSOR) if self.is_tensor(n) else None

    def is_tensor(self, n: F.Node) -> bool:
        """Whether n is surely one tensor (False where it is not known)."""
        match n:
            case F.Name(id=i):
                return i in self.tensors
            case F.Unary(arg=a):
                return self.is_tensor(a)
            case F.Binary(left=a, right=b) | F.Compare(left=a, right=b):
                return not isinstance(b, F.NoneLit) and (self.is_tensor(a) or self.is_tensor(b))
            case F.Call(func=f, args=args):
                known = self.callees.get(f, ())
                if f in FUNCTIONS:
                    return any(map(self.is_tensor, args))
                return bool(known) and all(c.tensor for c in known)
        return False


def op_callee(sig: Signature) -> Callee:
    positional = [a for a in sig.args if not a.kwonly]
    required = tuple(a.name for a in sig.args if a.required)
    types = {a.name: a.type for a in sig.args}
    tensor = len(sig.results) == 1 and sig.results[0].type.is_tensor
    result = sig.results[0].type if len(sig.results) == 1 else None
    return Callee(0, len(positional), tuple(a.name for a in sig.args), required, types, tensor, result, sig.loc)


def elementwise_callees(ops: Mapping[str, tuple[Callee, ...]]) -> dict[str, tuple[Callee, ...]]:
    out = dict(ops)
    for name, f in FUNCTIONS.items():
        if name not in INTERNAL:
            out[name] = (Callee(f.arity - f.optional, f.arity),)
    return out


def structured_callees(ops: Mapping[str, tuple[Callee, ...]]) -> dict[str, tuple[Callee, ...]]:
    """Elementwise functions, the tables, and every op: an op's own signature is accepted beside the table's."""
    known, others = _tables()
    out = known | {name: callees for name, callees in others.items() if name not in ops}
    for name, callees in ops.items():
        out[name] = out.get(name, ()) + callees
    return out


@cache
def _tables() -> tuple[dict[str, tuple[Callee, ...]], dict[str, tuple[Callee, ...]]]:
    """What formulas may call besides ops: what is known by type, and what an op of its name takes the place of."""
    from .vocabulary import HELPERS

    known = elementwise_callees({})
    others: dict[str, tuple[Callee, ...]] = {}
    for table in (META, TENSOR):
        for name, f in table.items():
            if name in HELPERS:
                known[name] = tuple(_helper_callee(h, table is META) for h in HELPERS[name])
            else:
                least, most, keywords = parameters(f)
                others[name] = (Callee(least, most, keywords, tensor=table is TENSOR),)
    return known, others


def _helper_callee(h: Helper, meta: bool) -> Callee:
    # Metadata takes lists of tensors as well as tensors; size -1 marks shapes of a list.
    types = {p.name: p.type for p in h.params if not (meta and p.type.has_tensor) and p.type.size != -1}
    required = tuple(p.name for p in h.params if p.default is REQUIRED)
    return Callee(0, len(h.params), tuple(p.name for p in h.params), required, types, h.result.is_tensor, h.result)


def shape_callees(declared: Iterable[str] = ()) -> dict[str, tuple[Callee, ...]]:
    """Shape rules, and the metadata of arguments; rules declared in headers are taken at their word."""
    out: dict[str, tuple[Callee, ...]] = {name: (Callee(0, -1),) for name in declared}
    for name, f in {**META, **SHAPES}.items():
        least, most, keywords = parameters(f)
        out[name] = (Callee(least, most, keywords),)
    return out


class Checker:
    """Checks formulas of one op; `fault` puts a diagnostic at a node of a formula."""

    def __init__(self, diags: Diagnostics, op: str, notes: Notes = (), ops: Container[str] = ()) -> None:
        self.diags = diags
        self.op = op
        self.ops = ops  # every op there is, whatever a formula may call
        self.notes = tuple(notes)
        self.bad = False

    def fault(self, code: str, f: Formula, span: F.Span, message: str, hint: str = "", notes: Notes = ()) -> None:
        self.bad = True
        loc = f.loc.at(*span) if f.loc.width == len(f.text) or f.loc.line == 0 else f.loc
        self.diags.add(code, loc, f"op '{self.op}', {message}", hint, (*self.notes, *notes))

    def check(self, f: Formula, scope: Scope, where: str) -> bool:
        """True when every name and call of f is fine."""
        before = len(self.diags)
        bound = {n.var: n for n in F.walk(f.node) if isinstance(n, F.Each)}
        for var, each in bound.items():
            if var in scope.names:
                text = f"{where}: '{var}' already names a value"
                self.fault("E206", f, each.span, text, "give the item another name")
        for n in F.walk(f.node):
            match n:
                case F.Name(id=i) if i not in scope.names and i not in CONSTANTS and i not in bound:
                    why = scope.hidden.get(i, f"is not {scope.what_names}")
                    hint = "" if i in scope.hidden else did_you_mean(i, scope.names, True)
                    self.fault("E201", f, n.span, f"{where}: '{i}' {why}", hint)
                case F.Name(id=i) if scope.elementwise and i in scope.names and i in CONSTANTS:
                    text = f"{where}: '{i}' is an argument, and the constant {CONSTANTS[i]:.6g}"
                    self.fault("E206", f, n.span, text, "give the argument another name")
                case F.Call():
                    self.call(f, n, scope, where)
                case F.Binary(op="@") if scope.elementwise:
                    self.fault("E202", f, n.span, f"{where}: '@' is not elementwise", "use a vjp or compose")
                case F.Subscript() | F.Tuple() | F.List() | F.Each() if scope.elementwise:
                    self.fault("E207", f, n.span, f"{where}: {_LISTS[type(n)]} in an elementwise formula")
        return len(self.diags) == before

    def call(self, f: Formula, n: F.Call, scope: Scope, where: str) -> None:
        callees = scope.callees.get(n.func)
        if callees is None:
            span = n.func_span
            kind = "function" if scope.elementwise else "function or op"
            hint = whole(n.func, self.ops) if where == "expr" else ""
            if n.func in scope.names:
                hint = f"a product has its sign: {n.func} * (...)"
            hint = hint or did_you_mean(n.func, scope.callees) or WHERE_FUNCTIONS
            self.fault("E202", f, span, f"{where}: no {kind} '{n.func}' here", hint)
            return
        given = len(n.args)
        misfit = ""
        for c in callees:
            if c.most != -1 and given > c.most:
                continue
            keywords = [k for k, _ in n.kwargs]
            if wrong := _misfit(c, n, scope):
                misfit = wrong
                continue
            if any(k not in c.keywords or k in c.keywords[:given] for k in keywords):
                continue
            if c.required or c.least == 0:
                covered = set(c.keywords[:given]) | set(keywords)
                if all(r in covered for r in c.required):
                    return
                continue
            if given + len(keywords) >= c.least:
                return
        notes = [(c.loc, f"the signature of '{n.func}'") for c in callees if c.loc is not None]
        if misfit:
            self.fault("E207", f, n.span, f"{where}: {n.func}(): {misfit}", notes=[*notes, *scope.behind(n)])
            return
        unknown = [k for k, _ in n.kwargs if all(k not in c.keywords for c in callees)]
        if unknown:
            known = [k for c in callees for k in c.keywords]
            message = f"{where}: {n.func}() has no argument '{unknown[0]}'"
            hint = did_you_mean(unknown[0], known, True) if known else f"arguments of {n.func} go by position alone"
            self.fault("E203", f, n.span, message, hint, notes)
            return
        wants = " or ".join(dict.fromkeys(_wants(c) for c in callees))
        got = given + len(n.kwargs)
        self.fault("E203", f, n.span, f"{where}: {n.func}() takes {wants}, got {got}", notes=notes)


def _misfit(c: Callee, n: F.Call, scope: Scope) -> str:
    """An argument whose type is known and not the one an op or helper wants."""
    for name, arg in [*zip(c.keywords, n.args, strict=False), *n.kwargs]:
        want = c.types.get(name)
        if want is not None and not _suits(want, arg, scope):
            return f"'{name}' is {want}, '{F.to_text(arg)[:40]}' is not"
    return ""


def _suits(want: Type, arg: F.Node, scope: Scope) -> bool:
    """False only where the type of arg is known and surely wrong."""
    if isinstance(arg, F.NoneLit):
        return want.optional or want.is_list
    if isinstance(arg, (F.Tuple, F.List, F.Each)):
        return want.is_list
    if want.base is Base.DTYPE and isinstance(arg, F.Str):
        return arg.value in DTYPES
    have = scope.type_of(arg)
    if have is None:
        return True
    if want.is_list or have.is_list:
        if want.is_list and have.is_list:
            return want.base is have.base
        return want.is_list and want.base is Base.INT and have.base is Base.INT
    if want.base is Base.TENSOR:
        return have.base in (Base.TENSOR, Base.SCALAR, Base.INT, Base.FLOAT)
    if have.base is Base.TENSOR:
        return False
    numbers = (Base.INT, Base.FLOAT, Base.SCALAR)
    if want.base is Base.SCALAR:
        return have.base in (*numbers, Base.BOOL)
    if want.base is Base.FLOAT:
        return have.base in numbers
    return want.base is have.base


def _wants(c: Callee) -> str:
    least = len(c.required) if c.required else c.least
    if c.most == -1:
        return f"{least} or more arguments"
    most = max(c.most, len(c.keywords))
    n = str(least) if least == most else f"{least} to {most}"
    return f"{n} argument{'s' * (n != '1')}"
