"""ops.yaml -> the model, second half: names inside formulas, what is said of each derivative, cross-op facts.

Takes the converted entries of `load.py`; gives an OpFile whose elementwise derivatives are filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import derive, kinds, presence
from . import formula as F
from . import load as L
from .across import across, check_kernels, kernels_reached
from .cycles import endless
from .errors import Diagnostics
from .functions import FUNCTIONS
from .holomorphic import serves_complex
from .markers import Declared
from .model import (
    DTYPE_GROUPS,
    Base,
    Diff,
    Entry,
    Formula,
    Loc,
    OpFile,
    Overload,
    Requirement,
    Signature,
    TestSpec,
)  # fmt: skip
from .reads import reads_values, tensor_names, types_of
from .resolve_base import INTEGERS, World
from .resolve_diff import Differentiation
from .resolve_facts import Facts
from .scope import Callee, Scope, elementwise_callees, op_callee, shape_callees, structured_callees


def load(path: str, declared: Declared | None = None, base: OpFile | None = None) -> tuple[OpFile, Diagnostics]:
    """Read, convert and resolve a file. With diagnostics, the OpFile holds the entries that are fine. `base`: the ops
    of another library that its formulas may call; a name that both have means the library's."""
    diags = Diagnostics(path)
    return resolve(L.read(path, diags), diags, declared, base), diags


def load_string(
    text: str, path: str = "ops.yaml", declared: Declared | None = None, base: OpFile | None = None
) -> tuple[OpFile, Diagnostics]:
    diags = Diagnostics(path)
    return resolve(L.read_string(text, diags), diags, declared, base), diags


def resolve(
    raws: list[L.Raw], diags: Diagnostics, declared: Declared | None = None, base: OpFile | None = None
) -> OpFile:
    world = World({}, {}, {}, declared or Declared(), frozenset(base.by_name) if base else frozenset())
    for e in base.entries if base else ():
        if e.batch:
            world.rules = {**world.rules, e.batch: (*world.rules.get(e.batch, ()), *(o.sig for o in e.overloads))}
        # Of another file: its lines are not this one's.
        world.ops[e.op] = tuple(replace(op_callee(o.sig), loc=None) for o in e.overloads)
        first_expr = next((o for o in e.overloads if o.expr is not None), None)
        if first_expr is not None and first_expr.expr is not None and e.elementwise:
            world.elementwise[e.op] = world.ops[e.op]
            world.exprs[e.op] = (
                tuple((a.name, default_node(a)) for a in first_expr.sig.args), first_expr.expr.node,
            )  # fmt: skip
    unique: list[L.Raw] = []
    first: dict[str, Loc] = {}
    for raw in raws:
        if raw.op in first:
            notes = [(first[raw.op], "first defined here")]
            diags.add(
                "E401", raw.loc, f"op '{raw.op}' is defined twice", "rename one, or write overloads in one entry", notes
            )
            continue
        first[raw.op] = raw.loc
        unique.append(raw)
        if raw.op in world.base:
            continue
        world.ops[raw.op] = tuple(map(op_callee, raw.sigs))
        expr = next(((s, f) for s, f in zip(raw.sigs, raw.per_overload.get("expr", ()), strict=False) if f), None)
        if expr and raw.family.elementwise:
            world.elementwise[raw.op] = world.ops[raw.op]
            world.exprs[raw.op] = (tuple((a.name, default_node(a)) for a in expr[0].args), expr[1].node)
    entries = []
    for raw in unique:
        entry = _EntryResolver(raw, diags, world).resolve()
        if entry is not None:
            entries.append(entry)
    bad = endless(entries, world.base, diags)
    entries = [e for e in entries if e.op not in bad]
    across(entries, diags, base.by_name if base else {})
    return OpFile(diags.path, 1, tuple(entries), diags.source, base)


def default_node(a: Any) -> F.Node | None:
    if a.required:
        return None
    match a.default:
        case None:
            return F.NoneLit()
        case bool(b):
            return F.Bool(b)
        case str(s):
            return F.Str(s)
        case int() | float():
            return F.Num(a.default)
    return None


class _EntryResolver(Differentiation, Facts):
    """Resolves one entry."""

    def resolve(self) -> Entry | None:
        raw = self.raw
        self.family_keys()
        self.standard_names()
        self.public_names()
        nondiff = self.lists()
        overloads = []
        for i, sig in enumerate(raw.sigs):
            o = self.overload(i, sig, nondiff)
            if o is not None:
                overloads.append(o)
        self.view()
        self.used_names(overloads)
        self.order()
        if self.bad or self.check.bad or not overloads:
            return None
        v = raw.values
        likes = tuple(dict.fromkeys(x for x in raw.per_overload.get("like", ()) if x is not None))
        if len(likes) > 1:
            likes = tuple(raw.per_overload["like"])
        entry = Entry(
            op=raw.op, family=raw.family, overloads=tuple(overloads), doc=v["doc"][0], home=v.get("home",
            ("tensorplay",)),
            method=v.get("method", ()), operator=v.get("operator", ()), out=v.get("out", False),
            inplace=v.get("inplace", ""),
            view_of=v["view_of"][0] if v.get("view_of") else None, promote=self.promote(overloads),
            dtypes=v.get("dtypes", ()) or self.meant(overloads),
            deterministic=v.get("deterministic", True), amp=v.get("amp", "keep"),
            aliases=tuple(n for n, _ in v.get("aliases", ())), version=v.get("version", 1),
            batch=v["batch"][0] if v.get("batch") else None, python=v.get("python"),
            when={k: name for k, (name, _) in (v.get("when") or {}).items()}, ref=v.get("ref", ""), like=likes,
            test=v.get("test") or TestSpec(), special=v.get("special", ()), loc=raw.loc, keys=raw.keys,
            end_line=raw.end_line,
        )  # fmt: skip
        self.inplace(entry)
        self.like_names(entry)
        self.mentioned(entry)
        self.declared(entry)
        return None if self.bad else entry

    def overload(self, i: int, sig: Signature, nondiff: set[str] | None) -> Overload | None:
        self.check.notes = ((sig.loc, "the signature"),)
        args = tuple(a.name for a in sig.args)
        expr: Formula | None = self.per("expr", i)
        inlined = self.expr(expr, args, sig) if expr else None
        compose = self.compose(self.per("compose", i), args, sig)
        shapes = self.shapes(self.per("shape", i), args, sig)
        no_results = self.nondiff_results(sig, nondiff)
        o = Overload(
            i, sig, expr, inlined, compose, self.requirements(compose, sig), (self.per("kernel", i) or (None,))[0],
            shapes, nondiff_results=no_results, foreign=bool(self.world.base),
        )  # fmt: skip
        deriv = self.derivs(i, o, nondiff)
        o = replace(o, deriv=deriv)
        self.absent_operands(o)
        return self.tangent(self.per("tangent", i), o)

    def meant(self, overloads: list[Overload]) -> tuple[str, ...]:
        """The dtypes of an elementwise entry that names none: complex ones alone where the formula has such a number,
        no complex ones where its partials would be wrong for them."""
        for o in overloads:
            if o.expr and any(isinstance(n, F.Num) and isinstance(n.value, complex) for n in F.walk(o.expr.node)):
                return DTYPE_GROUPS["complex"]
            derived = o.inlined is not None and not ("d" in self.raw.keys or "vjp" in self.raw.keys)
            moves = any(d.kind in (Diff.FORMULA, Diff.DERIVED) for d in o.deriv.values())
            if derived and moves and o.inlined is not None and not serves_complex(o.inlined, tensor_names(o.sig)):
                return tuple(d for group, names in DTYPE_GROUPS.items() if group != "complex" for d in names)
        return ()

    def expr(self, expr: Formula, args: tuple[str, ...], sig: Signature) -> F.Node | None:
        scope = Scope(
            args, elementwise_callees(self.world.elementwise), True, tensors=tensor_names(sig), types=types_of(sig)
        )
        if not self.check.check(expr, scope, "expr"):
            return None
        xor = next((n for n in F.walk(expr.node) if isinstance(n, F.Binary) and n.op == "^"), None)
        if xor is not None and "dtypes" not in self.raw.keys:
            hint = "a power is written **; if bits are meant, say dtypes: [bool, int]"
            self.check.fault("E207", expr, xor.span, "expr: '^' is the exclusive or of integers", hint)
        given = {a.name: kinds.of_type(a.type) for a in sig.args}
        for n in F.walk(expr.node) if "dtypes" not in self.raw.keys else ():
            called = FUNCTIONS.get(n.func) if isinstance(n, F.Call) and n.func != "int" else None
            if called and called.kind == "int" and any(kinds.of(x, given) in ("any", "float") for x in F.children(n)):
                text = f"expr: '{F.to_text(n)}' is of whole numbers, and nothing says that the op takes no others"
                self.fault("E207", expr.loc, text, "dtypes: [bool, int]")
                break
        self.unread(sig, {*F.names(expr.node)}, "expr", [(expr.loc, "expr")])
        try:
            path = () if self.raw.op in self.world.base else (self.raw.op,)
            return derive.inline(expr.node, self.world.exprs, path)
        except derive.Cycle as e:
            self.fault(
                "E406",
                expr.loc,
                f"defined through itself: {' -> '.join(e.path)}",
                "write one of them without the other",
            )
            return None

    def unread(self, sig: Signature, read: set[str], what: str, notes: Any) -> None:
        for a in sig.args:
            if a.name not in read:
                text = f"argument '{a.name}' is read by nothing in {what}"
                self.fault("E211", a.loc, text, "use it, or drop it from the signature", notes)

    def compose(self, lets: Any, args: tuple[str, ...], sig: Signature) -> tuple[tuple[str, Formula], ...]:
        if not lets:
            return ()
        scope_names = list(args)
        tensors = {a.name for a in sig.args if a.type.is_tensor}
        callees = structured_callees(self.world.ops)
        read: set[str] = set()
        before: dict[str, Formula] = {}
        given, lets = lets, [let for let in lets if let[1] is not None]
        for name, f, loc in given:
            if f is None:
                scope_names.append(name)
                continue
            scope = Scope(
                tuple(scope_names),
                callees,
                what_names="an argument or an earlier value",
                tensors=frozenset(tensors),
                types={a.name: a.type for a in sig.args},
                given=before,
            )
            self.check.check(f, scope, f"compose '{name}'")
            if scope.is_tensor(f.node):
                tensors.add(name)
            if name in args:
                self.fault("E206", loc, f"compose: '{name}' is an argument", "give the value another name")
            read |= set(F.names(f.node))
            scope_names.append(name)
            before[name] = f
        self.left_out(lets, sig, callees)
        for test, _, _, shown, _ in self.raw.values.get("require", ()):
            read |= {n for f in (test, *shown) for n in F.names(f.node)}
        read |= {name for name, _ in (self.raw.values.get("when") or {}).values()}
        read |= {name for name, _ in self.raw.values.get("hints", ())}
        if "kernel" not in self.raw.keys:  # a kernel takes them all; compose is then what its derivatives follow from
            self.unread(sig, read, "compose", [(f.loc, f"'{name}'") for name, f, _ in lets])
        for r in sig.results:
            if r.name not in scope_names[len(args) :]:
                last = given[-1]
                self.fault(
                    "E204",
                    last[2],
                    f"compose does not define the result '{r.name}'",
                    f"the last lines are: {r.name}: formula",
                    [(sig.loc, "the signature")],
                )
        results = {r.name for r in sig.results}
        for name, _, loc in lets:
            if name not in read and name not in results:
                text = f"compose: '{name}' is read by nothing"
                self.fault("E211", loc, text, "drop it", [(sig.loc, "the results")], parsed=True)
        return tuple((name, f) for name, f, _ in lets)

    def left_out(self, lets: Any, sig: Signature, callees: Mapping[str, tuple[Callee, ...]]) -> None:
        """What may be None is read where a condition says that it is none: there is nothing to read else."""

        def takes(n: F.Call | F.Compare, where: int | str) -> bool:
            if isinstance(n, F.Compare):
                return False
            return n.func == "where" or _takes_none(callees.get(n.func, ()), where)

        optional = _may_be_none(sig)
        self.given = {name: f.loc for name, f, _ in lets}
        asked = [test.node for test, *_ in self.raw.values.get("require", ())]
        there = frozenset().union(*(presence.present(c, True) for c in asked))
        for name, f, _ in lets:
            self.read_absent(f, f"compose '{name}'", optional, takes, there)
            if presence.maybe(f.node, optional, there):
                optional |= {name}
        known: presence.Names = frozenset()  # conditions are asked in order
        for test, *_ in self.raw.values.get("require", ()):
            self.read_absent(test, "require", optional, takes, known)
            known |= presence.present(test.node, True)

    def read_absent(
        self, f: Formula, where: str, optional: presence.Names, takes: presence.Takes, there: presence.Names
    ) -> None:
        found = {n.id: n for n in reversed([*presence.absent(f.node, optional, takes, there)])}
        for n in reversed(found.values()):  # each once, at its first place
            also = f"; or require {n.id} != None" if "compose" in self.raw.keys else ""
            hint = f"ask first: ... if {n.id} == None else ...{also}"
            self.check.fault("E208", f, n.span, f"{where}: '{n.id}' may be None here", hint, self.asking(f, n))

    def asking(self, f: Formula, name: F.Name) -> list[tuple[Loc, str]]:
        """What may be wrong instead: where a value of the composition is given, the signature of what takes it."""
        calls = [c for c in F.walk(f.node) if isinstance(c, F.Call) and any(a is name for a in F.children(c))]
        callees = [(c.func, o) for c in calls for o in self.world.ops.get(c.func, ())]
        here = [(self.given[name.id], f"'{name.id}' is given here")] if name.id in self.given else []
        return [*here, *((o.loc, f"the signature of '{func}'") for func, o in callees if o.loc is not None)]

    def absent_operands(self, o: Overload) -> None:
        """The same of an element: only a bound may be None, which then does not bind."""
        callees = elementwise_callees(self.world.elementwise)
        optional = _may_be_none(o.sig)

        def takes(n: F.Call | F.Compare, where: int | str) -> bool:
            if isinstance(n, F.Compare):
                return n.op not in ("==", "!=")
            f = FUNCTIONS.get(n.func)
            if f is not None:
                return isinstance(where, int) and where >= f.arity - f.optional
            return _takes_none(callees.get(n.func, ()), where)

        if o.expr is not None:
            self.read_absent(o.expr, "expr", optional, takes, frozenset())
        key = "vjp" if "vjp" in self.raw.keys else "d"
        for name, d in o.deriv.items() if self.raw.family.elementwise else ():
            if d.kind is Diff.FORMULA and d.formula is not None:  # asked for where the argument itself is there
                self.read_absent(d.formula, f"{key} of '{name}'", optional, takes, frozenset({name}))

    def requirements(self, lets: tuple[tuple[str, Formula], ...], sig: Signature) -> tuple[Requirement, ...]:
        """Those of the entry whose names this overload has, each as soon as what it reads is there."""
        given = self.raw.values.get("require", ())
        known = [a.name for a in sig.args]
        everywhere = {a.name for s in self.raw.sigs for a in s.args}
        everywhere |= {n for each in self.raw.per_overload.get("compose", ()) for n, _, _ in each or ()}
        out = []
        for test, error, message, shown, loc in given:
            formulas = (test, *shown)
            reads = {n for f in formulas for n in F.names(f.node)}
            if not lets or (reads & everywhere) - {*known, *(n for n, _ in lets)}:
                if not any(self.raw.per_overload.get("compose", ())):
                    self.fault("E208", loc, "require goes with compose", "kernels check what they are given")
                continue
            scope = Scope(
                (*known, *(n for n, _ in lets)), structured_callees(self.world.ops),
                what_names="an argument or a value of compose", types={a.name: a.type for a in sig.args},
                tensors=frozenset(a.name for a in sig.args if a.type.is_tensor),
            )  # fmt: skip
            for f in formulas:
                self.check.check(f, scope, "require")
            after = max((k + 1 for k, (n, _) in enumerate(lets) if n in reads), default=0)
            out.append(Requirement(test, error, message, shown, after))
        return tuple(out)

    def shapes(self, shapes: tuple[Formula, ...] | None, args: tuple[str, ...], sig: Signature) -> tuple[Formula, ...]:
        if not shapes:
            return ()
        scope = Scope(args, shape_callees(self.world.declared.shapes))
        for f in shapes:
            if self.check.check(f, scope, "shape") and not isinstance(f.node, (F.Call, F.Tuple, F.List, F.Name)):
                self.fault(
                    "E207",
                    f.loc,
                    f"'{f.text}' is not a shape",
                    "call a shape rule: same(input), reduce(input, dim, keepdim)",
                )
        if len(shapes) not in (1, len(sig.results)):
            self.fault(
                "E203",
                shapes[0].loc,
                f"{len(shapes)} shapes for {len(sig.results)} results",
                "one for all, or one each",
            )
        return shapes if len(shapes) == len(sig.results) else shapes * len(sig.results)

    def nondiff_results(self, sig: Signature, nondiff: set[str] | None) -> tuple[str, ...]:
        out = []
        for r in sig.results:
            if (
                nondiff is None
                or self.raw.family.nondiff
                or r.name in nondiff
                or r.type.dtype in INTEGERS
                or not r.type.has_tensor
            ):
                out.append(r.name)
        return tuple(out)


def _may_be_none(sig: Signature) -> presence.Names:
    """Arguments that a formula computes with, and that a caller may leave out."""
    kinds_of = (Base.TENSOR, Base.SCALAR, Base.INT, Base.FLOAT, Base.BOOL)
    return frozenset(a.name for a in sig.args if a.type.optional and not a.type.is_list and a.type.base in kinds_of)


def _takes_none(callees: tuple[Callee, ...], where: int | str) -> bool:
    for c in callees:
        name = where if isinstance(where, str) else c.keywords[where] if where < len(c.keywords) else ""
        if (t := c.types.get(name)) is not None and (t.optional or t.is_list):
            return True
    return False


__all__ = ["check_kernels", "default_node", "kernels_reached", "load", "load_string", "reads_values", "resolve"]
