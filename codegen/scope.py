"""What a formula may name and call, and the check of one formula against it. Knows no YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from . import formula as F
from .errors import Diagnostics, did_you_mean
from .functions import CONSTANTS, FUNCTIONS, INTERNAL
from .model import Formula, Loc, Signature, Type
from .structured import META, SHAPES, TENSOR, parameters

Notes = Iterable[tuple[Loc, str]]


@dataclass(frozen=True)
class Callee:
    """What is known of a callable: least and most positional arguments (-1: any number), keyword names."""

    least: int
    most: int
    keywords: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict)  # of an op's arguments
    tensor: bool = False  # gives one tensor


@dataclass(frozen=True)
class Scope:
    """Names and functions of one kind of formula."""

    names: tuple[str, ...]
    callees: Mapping[str, tuple[Callee, ...]]
    elementwise: bool = False
    what_names: str = "an argument"
    hidden: Mapping[str, str] = field(default_factory=dict)  # name -> why it is not in scope
    tensors: frozenset[str] = frozenset()  # names that stand for one tensor

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
    return Callee(0, len(positional), tuple(a.name for a in sig.args), required, types, tensor)


def elementwise_callees(ops: Mapping[str, tuple[Callee, ...]]) -> dict[str, tuple[Callee, ...]]:
    out = dict(ops)
    for name, f in FUNCTIONS.items():
        if name not in INTERNAL:
            out[name] = (Callee(f.arity - f.optional, f.arity),)
    return out


def structured_callees(ops: Mapping[str, tuple[Callee, ...]]) -> dict[str, tuple[Callee, ...]]:
    """Elementwise functions, the tables, and every op: an op's own signature is accepted beside the table's."""
    out = elementwise_callees({})
    for table in (META, TENSOR):
        for name, f in table.items():
            least, most, keywords = parameters(f)
            out[name] = (Callee(least, most, keywords, tensor=table is TENSOR),)
    for name, callees in ops.items():
        out[name] = out.get(name, ()) + callees
    return out


def shape_callees(declared: Iterable[str] = ()) -> dict[str, tuple[Callee, ...]]:
    """Shape rules, and the metadata of arguments; rules declared in headers are taken at their word."""
    out: dict[str, tuple[Callee, ...]] = {name: (Callee(0, -1),) for name in declared}
    for name, f in {**META, **SHAPES}.items():
        least, most, keywords = parameters(f)
        out[name] = (Callee(least, most, keywords),)
    return out


class Checker:
    """Checks formulas of one op; `fault` puts a diagnostic at a node of a formula."""

    def __init__(self, diags: Diagnostics, op: str, notes: Notes = ()) -> None:
        self.diags = diags
        self.op = op
        self.notes = tuple(notes)
        self.bad = False

    def fault(self, code: str, f: Formula, span: F.Span, message: str, hint: str = "", notes: Notes = ()) -> None:
        self.bad = True
        loc = f.loc.at(*span) if f.loc.width == len(f.text) or f.loc.line == 0 else f.loc
        self.diags.add(code, loc, f"op '{self.op}', {message}", hint, (*self.notes, *notes))

    def check(self, f: Formula, scope: Scope, where: str) -> bool:
        """True when every name and call of f is fine."""
        before = len(self.diags)
        for n in F.walk(f.node):
            match n:
                case F.Name(id=i) if i not in scope.names and i not in CONSTANTS:
                    why = scope.hidden.get(i, f"is not {scope.what_names}")
                    hint = "" if i in scope.hidden else did_you_mean(i, scope.names, True)
                    self.fault("E201", f, n.span, f"{where}: '{i}' {why}", hint)
                case F.Call():
                    self.call(f, n, scope, where)
                case F.Binary(op="@") if scope.elementwise:
                    self.fault("E202", f, n.span, f"{where}: '@' is not elementwise", "use a vjp or compose")
                case F.Subscript() | F.Tuple() | F.List() if scope.elementwise:
                    self.fault("E207", f, n.span, f"{where}: {type(n).__name__.lower()} in an elementwise formula")
        return len(self.diags) == before

    def call(self, f: Formula, n: F.Call, scope: Scope, where: str) -> None:
        callees = scope.callees.get(n.func)
        if callees is None:
            span = n.func_span
            kind = "function" if scope.elementwise else "function or op"
            hint = did_you_mean(n.func, scope.callees)
            self.fault(
                "E202", f, span, f"{where}: no {kind} '{n.func}' here", hint or "see docs/ops_yaml.md, Functions"
            )
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
        if misfit:
            self.fault("E207", f, n.span, f"{where}: {n.func}(): {misfit}")
            return
        unknown = [k for k, _ in n.kwargs if all(k not in c.keywords for c in callees)]
        if unknown:
            known = [k for c in callees for k in c.keywords]
            message = f"{where}: {n.func}() has no argument '{unknown[0]}'"
            self.fault("E203", f, n.span, message, did_you_mean(unknown[0], known, True))
            return
        wants = " or ".join(dict.fromkeys(_wants(c) for c in callees))
        got = given + len(n.kwargs)
        self.fault("E203", f, n.span, f"{where}: {n.func}() takes {wants}, got {got}")


def _misfit(c: Callee, n: F.Call, scope: Scope) -> str:
    """A tensor where an op wants a plain value."""
    for name, arg in [*zip(c.keywords, n.args, strict=False), *n.kwargs]:
        t = c.types.get(name)
        if t is not None and not t.has_tensor and scope.is_tensor(arg):
            return f"'{name}' is {t}, not a tensor"
        if t is not None and t.is_tensor and isinstance(arg, (F.Str, F.Tuple, F.List)):
            return f"'{name}' is a tensor"
    return ""


def _wants(c: Callee) -> str:
    least = len(c.required) if c.required else c.least
    if c.most == -1:
        return f"{least} or more arguments"
    most = max(c.most, len(c.keywords))
    n = str(least) if least == most else f"{least} to {most}"
    return f"{n} argument{'s' * (n != '1')}"
