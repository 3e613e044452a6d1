"""ops.yaml -> the model, second half: names inside formulas, what is said of each derivative, cross-op facts.

Takes the converted entries of `load.py`; gives an OpFile whose elementwise derivatives are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import derive, kinds
from . import formula as F
from . import load as L
from .errors import Diagnostics, did_you_mean
from .functions import FUNCTIONS
from .markers import Declared, disagreement
from .model import (
    OPERATORS, Base, Deriv, Diff, Entry, Formula, Like, Loc, OpFile, Overload, Signature, Special, TestSpec, Type,
)  # fmt: skip
from .scope import Callee, Checker, Scope, elementwise_callees, op_callee, shape_callees, structured_callees

_FOLLOW_UPS = ("E105", "E211", "E301", "E302")
_INTEGERS = ("bool", "u8", "i8", "i16", "i32", "i64")
Exprs = dict[str, tuple[tuple[tuple[str, F.Node | None], ...], F.Node]]


def load(path: str, declared: Declared | None = None) -> tuple[OpFile, Diagnostics]:
    """Read, convert and resolve a file. With diagnostics, the OpFile holds the entries that are fine."""
    diags = Diagnostics(path)
    return resolve(L.read(path, diags), diags, declared), diags


def load_string(text: str, path: str = "ops.yaml", declared: Declared | None = None) -> tuple[OpFile, Diagnostics]:
    diags = Diagnostics(path)
    return resolve(L.read_string(text, diags), diags, declared), diags


@dataclass
class _World:
    """What entries know of each other."""

    ops: dict[str, tuple[Callee, ...]]
    elementwise: dict[str, tuple[Callee, ...]]
    exprs: Exprs
    declared: Declared


def resolve(raws: list[L.Raw], diags: Diagnostics, declared: Declared | None = None) -> OpFile:
    world = _World({}, {}, {}, declared or Declared())
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
    _across(entries, diags)
    return OpFile(diags.path, 1, tuple(entries), diags.source)


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


class _EntryResolver:
    def __init__(self, raw: L.Raw, diags: Diagnostics, world: _World) -> None:
        self.raw, self.diags, self.world = raw, diags, world
        self.bad = raw.bad
        self.check = Checker(diags, raw.op)
        self.spoken: dict[str, tuple[str, Loc]] = {}  # argument -> (key, place)

    def fault(self, code: str, loc: Loc, message: str, hint: str = "", notes: Any = ()) -> None:
        self.bad = True
        if self.raw.bad and code in _FOLLOW_UPS:
            return  # a value of this entry was refused already; what is missing may be what it was
        self.diags.add(code, loc, f"op '{self.raw.op}': {message}", hint, notes)

    def per(self, key: str, i: int) -> Any:
        return self.raw.per_overload[key][i] if key in self.raw.per_overload else None

    def key_loc(self, key: str) -> Loc:
        return self.raw.keys.get(key, self.raw.loc)

    # ---- the entry ----

    def resolve(self) -> Entry | None:
        raw = self.raw
        self.family_keys()
        self.standard_names()
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
            op=raw.op, family=raw.family, overloads=tuple(overloads), doc=v["doc"][0], home=v.get("home", ("tensorplay",)),
            method=v.get("method", ()), operator=v.get("operator", ()), out=v.get("out", False), inplace=v.get("inplace", ""),
            view_of=v["view_of"][0] if v.get("view_of") else None, promote=self.promote(overloads), dtypes=v.get("dtypes", ()),
            deterministic=v.get("deterministic", True), amp=v.get("amp", "keep"),
            aliases=tuple(n for n, _ in v.get("aliases", ())), version=v.get("version", 1),
            batch=v["batch"][0] if v.get("batch") else None, python=v.get("python"), ref=v.get("ref", ""), like=likes,
            test=v.get("test") or TestSpec(), special=v.get("special", ()), loc=raw.loc, keys=raw.keys, end_line=raw.end_line,
        )  # fmt: skip
        self.inplace(entry)
        self.like_names(entry)
        self.mentioned(entry)
        self.declared(entry)
        return None if self.bad else entry

    def family_keys(self) -> None:
        raw, fam = self.raw, self.raw.family
        has = raw.keys
        for a, b, why in (
            ("d", "vjp", "an elementwise op gives partials (d), a structured one its gradient (vjp)"),
            ("expr", "compose", "one formula defines the op"),
            ("expr", "kernel", "expr makes its own loop"),
            ("compose", "vjp", "the derivative follows from compose"),
            ("compose", "tangent", "the derivative follows from compose"),
            ("compose", "shape", "the shape follows from compose"),
        ):
            if a == "expr" and not fam.elementwise:
                continue  # refused below
            both = any(self.per(a, i) and self.per(b, i) for i in range(len(raw.sigs)))
            if a in has and b in has and both:
                self.fault("E208", has[b], f"'{a}' and '{b}' do not go together", why, [(has[a], f"'{a}' is here")])
        if fam.elementwise:
            if "shape" in has:
                self.fault("E208", has["shape"], f"family '{fam.name}' decides the shape", "drop 'shape'")
            for i, sig in enumerate(raw.sigs):
                self.operands(sig, self.per("expr", i))
        else:
            for key in ("expr", "d"):
                if key in has:
                    hint = "elementwise families: unary binary ternary comparison logical; others give kernel and vjp, or compose"
                    self.fault("E208", has[key], f"'{key}' is for elementwise families, not '{fam.name}'", hint)
        if not any(k in has for k in ("expr", "compose", "kernel", "python")):
            hint = "give expr (elementwise), compose (over other ops), kernel or python"
            self.fault("E105", raw.loc, "nothing computes it", hint)
            raw.bad = True
        if fam.name == "view" and "view_of" not in has:
            self.fault("E105", raw.loc, "a view without 'view_of'", "view_of: input")

    def operands(self, sig: Signature, expr: Formula | None) -> None:
        tensors = [a for a in sig.args if a.type.is_tensor]
        for a in sig.args:
            if a.type.is_list and a.type.has_tensor:
                self.fault("E207", a.loc, f"'{a.name}' is a list: not an elementwise operand")
        n = {"unary": 1, "binary": 2, "ternary": 3}.get(self.raw.family.name, 3)
        exact = self.raw.family.name == "unary"
        if not tensors or len(tensors) > n or (exact and len(tensors) != n):
            want = {"unary": "one tensor", "binary": "one or two tensors"}.get(
                self.raw.family.name, "one to three tensors"
            )
            self.fault(
                "E210", sig.loc, f"family '{self.raw.family.name}' takes {want}, the signature has {len(tensors)}"
            )
        operands = [a for a in sig.args if a.type.is_tensor or (a.type.base is Base.SCALAR and not a.type.is_list)]
        if self.raw.family.name == "binary" and len(operands) < 2 and tensors:
            self.fault("E210", sig.loc, "family 'binary' takes two operands, the signature has 1", "family: unary?")
        if len(sig.results) != 1 or not sig.results[0].type.is_tensor:
            self.fault("E210", sig.loc, f"family '{self.raw.family.name}' has one tensor result")

    # ---- nondiff, zero, todo ----

    def lists(self) -> set[str] | None:
        """Names under nondiff (None: all); fills `spoken` for arguments."""
        v = self.raw.values
        args = {a.name for s in self.raw.sigs for a in s.tensor_args}
        plain = {a.name for s in self.raw.sigs for a in s.args} - args
        results = {r.name for s in self.raw.sigs for r in s.results}
        nondiff = v.get("nondiff")
        names: set[str] = set()
        everything = nondiff is True
        for key, items in (
            ("zero", v.get("zero", ())),
            ("nondiff", nondiff if isinstance(nondiff, list) else ()),
            ("todo", [(n, loc) for n, (_, loc) in (v.get("todo") or {}).items()]),
        ):
            allowed = args | (results if key == "nondiff" else set())
            for name, loc in items:
                if name in plain:
                    self.fault(
                        "E304", loc, f"{key}: '{name}' is not a tensor, it has no derivative", f"drop it from '{key}'"
                    )
                elif name not in allowed:
                    what = "a tensor argument or a result" if key == "nondiff" else "a tensor argument"
                    self.fault(
                        "E204",
                        loc,
                        f"{key}: '{name}' is not {what}",
                        did_you_mean(name, allowed, True),
                        self.sig_notes(),
                    )
                elif name in args:
                    self.speak(name, key, loc)
                if key == "nondiff":
                    names.add(name)
        return None if everything else names

    def sig_notes(self) -> list[tuple[Loc, str]]:
        return [(s.loc, "the signature") for s in self.raw.sigs]

    def speak(self, arg: str, key: str, loc: Loc) -> None:
        if arg in self.spoken:
            other, place = self.spoken[arg]
            if place != loc and not (other == key and key in L.PER_OVERLOAD):  # a list says it once for each overload
                self.fault(
                    "E303", loc, f"'{arg}' is under '{key}' and under '{other}'", "keep one", [(place, f"'{other}'")]
                )
            return
        self.spoken[arg] = (key, loc)

    def standard_names(self) -> None:
        """An argument of type dtype, device or generator has that name: it is the same word in every op."""
        for sig in self.raw.sigs:
            for a in sig.args:
                if a.type.base in (Base.DTYPE, Base.DEVICE, Base.GENERATOR) and a.name != a.type.base.value:
                    self.fault(
                        "E205",
                        a.loc,
                        f"an argument of type {a.type.base.value} is called '{a.name}'",
                        f"call it '{a.type.base.value}'",
                    )

    # ---- one overload ----

    def overload(self, i: int, sig: Signature, nondiff: set[str] | None) -> Overload | None:
        self.check.notes = ((sig.loc, "the signature"),)
        args = tuple(a.name for a in sig.args)
        expr: Formula | None = self.per("expr", i)
        inlined = self.expr(expr, args, sig) if expr else None
        compose = self.compose(self.per("compose", i), args, sig)
        shapes = self.shapes(self.per("shape", i), args, sig)
        no_results = self.nondiff_results(sig, nondiff)
        o = Overload(
            i, sig, expr, inlined, compose, (self.per("kernel", i) or (None,))[0], shapes, nondiff_results=no_results
        )
        deriv = self.derivs(i, o, nondiff)
        o = replace(o, deriv=deriv)
        return self.tangent(self.per("tangent", i), o)

    def expr(self, expr: Formula, args: tuple[str, ...], sig: Signature) -> F.Node | None:
        scope = Scope(
            args, elementwise_callees(self.world.elementwise), True, tensors=tensor_names(sig), types=types_of(sig)
        )
        if not self.check.check(expr, scope, "expr"):
            return None
        self.unread(sig, {*F.names(expr.node)}, "expr", [(expr.loc, "expr")])
        try:
            return derive.inline(expr.node, self.world.exprs, (self.raw.op,))
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
            if a.name not in read and a.type.base not in (Base.DTYPE, Base.DEVICE, Base.GENERATOR):
                text = f"argument '{a.name}' is read by nothing in {what}"
                self.fault("E211", a.loc, text, "use it, or drop it from the signature", notes)

    def compose(self, lets: Any, args: tuple[str, ...], sig: Signature) -> tuple[tuple[str, Formula], ...]:
        if not lets:
            return ()
        scope_names = list(args)
        tensors = {a.name for a in sig.args if a.type.is_tensor}
        callees = structured_callees(self.world.ops)
        read: set[str] = set()
        for name, f, loc in lets:
            scope = Scope(
                tuple(scope_names),
                callees,
                what_names="an argument or an earlier value",
                tensors=frozenset(tensors),
                types={a.name: a.type for a in sig.args},
            )
            self.check.check(f, scope, f"compose '{name}'")
            if scope.is_tensor(f.node):
                tensors.add(name)
            if name in args:
                self.fault("E206", loc, f"compose: '{name}' is an argument", "give the value another name")
            read |= set(F.names(f.node))
            scope_names.append(name)
            if self.raw.op in F.calls(f.node):
                self.fault("E406", f.loc, "composed through itself", "write it over other ops")
        if "kernel" not in self.raw.keys:  # a kernel takes them all; compose is then what its derivatives follow from
            self.unread(sig, read, "compose", [(f.loc, f"'{name}'") for name, f, _ in lets])
        for r in sig.results:
            if r.name not in scope_names[len(args) :]:
                last = lets[-1]
                self.fault(
                    "E204",
                    last[2],
                    f"compose does not define the result '{r.name}'",
                    f"the last lines are: {r.name}: formula",
                )
        results = {r.name for r in sig.results}
        for name, f, loc in lets:
            if name not in read and name not in results:
                self.fault("E211", loc, f"compose: '{name}' is read by nothing", "drop it")
        return tuple((name, f) for name, f, _ in lets)

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
                or r.type.dtype in _INTEGERS
                or not r.type.has_tensor
            ):
                out.append(r.name)
        return tuple(out)

    # ---- derivatives ----

    def derivs(self, i: int, o: Overload, nondiff: set[str] | None) -> dict[str, Deriv]:
        given: dict[str, tuple[Formula, Loc]] = {}
        for key in ("d", "vjp"):
            given |= self.formulas(key, self.per(key, i) or {}, o)
        out: dict[str, Deriv] = {}
        todo = self.raw.values.get("todo") or {}
        none_differ = not o.diff_results
        for a in o.sig.tensor_args:
            said = self.spoken.get(a.name)
            if said and said[0] == "zero":
                out[a.name] = Deriv(Diff.ZERO, loc=said[1])
            elif said and said[0] == "todo":
                out[a.name] = Deriv(Diff.TODO, why=todo[a.name][0], loc=said[1])
            elif nondiff is None or none_differ or (said and said[0] == "nondiff") or a.type.dtype in _INTEGERS:
                out[a.name] = Deriv(Diff.NONDIFF, loc=a.loc)
                if a.name in given:
                    why = "its results carry no gradient" if none_differ else "it has no derivative"
                    self.fault("E304", given[a.name][1], f"a derivative for '{a.name}': {why}", "drop the formula")
            elif a.name in given:
                out[a.name] = Deriv(Diff.FORMULA, given[a.name][0], loc=given[a.name][0].loc)
            elif o.expr is not None:
                d = self.derived(o, a.name)
                if d is not None:
                    out[a.name] = d
            elif o.compose or self.raw.values.get("python"):
                out[a.name] = Deriv(Diff.DERIVED, loc=a.loc)
            else:
                key = "d" if self.raw.family.elementwise else "vjp"
                self.fault(
                    "E302", a.loc, f"nothing is said of the derivative of '{a.name}'",
                    f"give {key}: {{{a.name}: formula}}, or list it under zero, nondiff or todo",
                )  # fmt: skip
        return out

    def formulas(
        self, key: str, given: Mapping[str, tuple[Formula, Loc]], o: Overload
    ) -> dict[str, tuple[Formula, Loc]]:
        """The formulas that belong to this overload, checked."""
        everywhere = {a.name: a for s in self.raw.sigs for a in s.args}
        tensor_somewhere = {a.name for s in self.raw.sigs for a in s.tensor_args}
        out = {}
        for name, (f, loc) in given.items():
            if name not in everywhere:
                known = tuple(tensor_somewhere)
                self.fault(
                    "E204",
                    loc,
                    f"{key}: '{name}' is not an argument",
                    did_you_mean(name, known, True),
                    self.sig_notes(),
                )
                continue
            if name not in tensor_somewhere:
                self.fault("E304", loc, f"{key}: '{name}' is not a tensor, it has no derivative", "drop the formula")
                continue
            self.speak(name, key, loc)
            arg = o.sig.arg(name)
            if arg is None or not arg.type.has_tensor:
                continue
            if self.check.check(f, self.gradient_scope(key, o), f"{key} of '{name}'"):
                out[name] = (f, loc)
                reads = {n for n in F.names(f.node) if n == "g" or n.startswith("g_")}
                if key == "vjp" and not reads:
                    self.fault(
                        "E307",
                        f.loc,
                        f"vjp of '{name}' does not read the gradient",
                        "multiply by g, or list it under 'zero'",
                    )
        return out

    def gradient_scope(self, key: str, o: Overload) -> Scope:
        args = tuple(a.name for a in o.sig.args)
        results = tuple(r.name for r in o.sig.results)
        if key == "d":
            known = elementwise_callees(self.world.elementwise)
            what = "an argument or a result"
            return Scope(args + results, known, True, what, tensors=tensor_names(o.sig), types=types_of(o.sig))
        single = len(o.sig.results) == 1
        grads = tuple(f"g_{r.name}" for r in o.diff_results)
        hidden = {f"g_{n}": f"is the gradient of '{n}', which carries none" for n in o.nondiff_results}
        if single and grads:
            grads = ("g",)
        elif not single:
            hidden["g"] = f"is for a single result; here: {', '.join(grads) or 'none'}"
        return Scope(
            args + results + grads, structured_callees(self.world.ops), what_names="an argument, a result or a gradient",
            hidden=hidden, tensors=tensor_names(o.sig) | {n for n in grads if self.plain_gradient(n, o)},
            types=types_of(o.sig) | {f"g_{r.name}": r.type for r in o.sig.results} | {"g": o.sig.results[0].type},
        )  # fmt: skip

    @staticmethod
    def plain_gradient(name: str, o: Overload) -> bool:
        """Whether a gradient's name stands for one tensor: a list result has a list of gradients."""
        of = name.removeprefix("g_")
        return all(r.type.is_tensor for r in o.sig.results if of in ("g", r.name))

    def derived(self, o: Overload, arg: str) -> Deriv | None:
        if o.inlined is None or o.expr is None:
            return None
        if only_condition(o.inlined, arg):
            at = o.sig.arg(arg)
            text = f"'{arg}' is only a condition in expr, and nothing is said of its derivative"
            self.fault("E302", at.loc if at else o.sig.loc, text, f"nondiff: [{arg}]", [(o.expr.loc, "expr")])
            return None
        tensors = [a.name for a in o.sig.tensor_args]
        real = bool(self.raw.values.get("dtypes")) and not any(d in ("c64", "c128") for d in self.raw.values["dtypes"])
        try:
            node = derive.partial(o.inlined, arg, o.sig.results[0].name, tensors, real)
        except derive.NoRule as e:
            hint = f"give d: {{{arg}: formula}}, or list '{arg}' under zero, nondiff or todo"
            self.fault(
                "E305",
                o.expr.loc.at(*e.span) if e.span != F.NO_SPAN else o.expr.loc,
                f"'{e.what}' has no derivative rule",
                hint,
            )
            return None
        return Deriv(Diff.DERIVED, Formula(F.to_text(node), node, o.expr.loc), loc=o.expr.loc)

    def tangent(self, value: Any, o: Overload) -> Overload:
        if value is None:
            return o
        loc = self.key_loc("tangent")
        if self.raw.family.elementwise and self.per("vjp", o.index) is None:
            self.fault("E208", loc, "the tangent of an elementwise op follows from its partials", "drop 'tangent'")
            return o
        if isinstance(value, str):
            return replace(o, tangent_rule=value)
        args = tuple(a.name for a in o.sig.args)
        results = tuple(r.name for r in o.sig.results)
        names = (*args, *results, "t")
        known = structured_callees(self.world.ops)
        scope = Scope(names, known, what_names="an argument, a result or t", types=types_of(o.sig))
        table: dict[str, dict[str, Formula]] = {}
        for name, (inner, at) in value.items():
            if name not in {a.name for s in self.raw.sigs for a in s.tensor_args}:
                tensors = [a.name for a in o.sig.tensor_args]
                self.fault(
                    "E204",
                    at,
                    f"tangent: '{name}' is not a tensor argument",
                    did_you_mean(name, tensors, True),
                    self.sig_notes(),
                )
                continue
            if o.sig.arg(name) is None:
                continue
            per_result = (
                inner if isinstance(inner, dict) else {o.diff_results[0].name: (inner, at)} if o.diff_results else {}
            )
            table[name] = {}
            for rname, (f, rloc) in per_result.items():
                if rname not in {r.name for r in o.diff_results}:
                    self.fault(
                        "E204",
                        rloc,
                        f"tangent of '{name}': '{rname}' is not a differentiable result",
                        did_you_mean(rname, results, True),
                    )
                elif self.check.check(f, scope, f"tangent of '{name}'"):
                    table[name][rname] = f
                    if "t" not in F.names(f.node):
                        self.fault("E307", f.loc, f"tangent of '{name}' does not read the tangent", "multiply by t")
        for a in o.diff_args:
            if a.name not in table and not self.bad:
                self.fault(
                    "E302", loc, f"tangent says nothing of '{a.name}'", f"add {a.name}: formula, or drop 'tangent'"
                )
        return replace(o, tangent=table)

    # ---- the rest ----

    def view(self) -> None:
        named = self.raw.values.get("view_of")
        if named:
            name, loc = named
            for sig in self.raw.sigs:
                arg = sig.arg(name)
                if arg is None or not arg.type.is_tensor or arg.type.optional:
                    tensors = [a.name for a in sig.tensor_args]
                    self.fault(
                        "E204",
                        loc,
                        f"view_of: '{name}' is not a tensor argument",
                        did_you_mean(name, tensors, True),
                        self.sig_notes(),
                    )
                    return

    def promote(self, overloads: list[Overload]) -> str:
        said = self.raw.values.get("promote")
        implied = {kinds.promotion(o.inlined, o.sig) for o in overloads if o.inlined is not None}
        if not implied:
            return str(said or ("bool" if self.raw.family.name == "comparison" else "common"))
        rule = "float" if "float" in implied else sorted(implied)[0]
        if said == "common" and rule == "float":
            loc = self.key_loc("promote")
            self.fault(
                "E207",
                loc,
                "promote: common would truncate: expr is a float for integer inputs",
                "drop 'promote', or say float",
            )
        if rule == "bool" and said not in (None, "bool"):
            self.fault("E207", self.key_loc("promote"), f"promote: {said}, but expr is bool", "drop 'promote'")
        if self.raw.family.name == "comparison" and rule != "bool":
            expr = next(o.expr for o in overloads if o.expr)
            self.fault("E207", expr.loc, "a comparison whose expr is not bool", "family: binary?")
        return str(said or rule)

    def inplace(self, e: Entry) -> None:
        if not e.inplace:
            return
        loc = self.key_loc("inplace")
        fits = [
            o for o in e.overloads if o.sig.args and o.sig.args[0].type.is_tensor and not o.sig.args[0].type.optional
        ]
        if not fits or any(len(o.sig.results) != 1 or not o.sig.results[0].type.is_tensor for o in e.overloads):
            self.fault("E306", loc, f"{e.op}_ needs a tensor as first argument and one tensor result", "drop 'inplace'")
            return
        if e.view_of:
            return
        if e.inplace != "true":
            return
        for o in fits:
            first = o.sig.args[0].name
            for name, d in o.deriv.items():
                if d.formula is not None and first in reads_values(d.formula.node):
                    key = "vjp" if "vjp" in e.keys else "d"
                    what = (
                        f"{key} of '{name}'"
                        if d.kind is Diff.FORMULA
                        else f"the derivative of '{name}', {d.formula.text},"
                    )
                    hint = "write the formula with the result, or say 'inplace: save_copy' to pay for a copy, or drop 'inplace'"
                    self.fault(
                        "E301", loc, f"{e.op}_ overwrites '{first}', but {what} reads it", hint, [(d.loc, "read here")]
                    )
                    return

    def used_names(self, overloads: list[Overload]) -> None:
        test: TestSpec | None = self.raw.values.get("test")
        if test is None:
            needs_cases = any(d.kind is Diff.FORMULA for o in overloads for d in o.deriv.values())
            likes = [x for x in self.raw.per_overload.get("like", ()) if x is not None]
            if needs_cases and not self.raw.family.elementwise and any(x.kind != "tests" for x in likes):
                hint = "test: {cases: [{input: [2, 3], dim: 0}]}"
                self.fault("E105", self.raw.loc, "a vjp without test cases cannot be checked", hint)

    def mentioned(self, e: Entry) -> None:
        """A required argument of a kernel that neither formula nor reference nor test names is a slip of the signature."""
        for o in e.overloads:
            like = e.like_of(o.index)
            if not o.kernel or like is None or like.kind != "expr" or e.test.cases:
                continue
            text = (
                like.text
                + " "
                + " ".join(f.text for f in o.shapes)
                + " ".join(d.formula.text for d in o.deriv.values() if d.formula)
            )
            said = set(re.findall(r"[A-Za-z_]\w*", text)) | set(e.test.domains) | set(e.test.params)
            for a in o.sig.args:
                if a.required and not a.type.optional and a.name not in said:
                    hint = "use it, or drop it from the signature"
                    self.fault(
                        "E211",
                        a.loc,
                        f"argument '{a.name}' is in no formula, reference or test",
                        hint,
                        [(like.loc, "the reference")],
                    )

    def order(self) -> None:
        """Mappings list the required arguments as the signature does: so a swapped signature contradicts itself."""
        test: TestSpec | None = self.raw.values.get("test")
        listed: list[tuple[str, Loc, list[str]]] = []
        if test is not None:
            listed += [("test", test.loc, list(test.domains))]
            listed += [("a test case", test.loc, list(case)) for case in test.cases]
        for key in ("d", "vjp"):
            for given in self.raw.per_overload.get(key, ()):
                if given:
                    listed.append((key, self.key_loc(key), list(given)))
        for what, loc, names in listed:
            for sig in self.raw.sigs:
                required = [a.name for a in sig.args if a.required]
                order = [required.index(n) for n in names if n in required]
                if order == sorted(order):
                    break
            else:
                shown = ", ".join(n for n in names if n in required)
                self.fault(
                    "E212",
                    loc,
                    f"{what} lists {shown}, the signature {', '.join(required)}",
                    "keep one order",
                    self.sig_notes(),
                )
                return

    def like_names(self, e: Entry) -> None:
        """Names in a reference expression are arguments or the libraries."""
        import ast

        modules = {"numpy", "np", "scipy", "math", "mpmath", "mp"}
        likes = e.like if len(e.like) > 1 else e.like[:1]
        for i, like in enumerate(likes):
            if like is None or like.kind not in ("expr", "mpmath") or re.fullmatch(r"[\w.]+", like.text):
                continue
            sigs = [e.overloads[i].sig] if len(e.like) > 1 else [o.sig for o in e.overloads]
            scope = modules | {a.name for s in sigs for a in s.args}
            tree = ast.parse(like.text, mode="eval")
            bound = {x.arg for n in ast.walk(tree) if isinstance(n, ast.Lambda) for x in n.args.args}
            bound |= {
                x.id
                for n in ast.walk(tree)
                if isinstance(n, ast.comprehension)
                for x in ast.walk(n.target)
                if isinstance(x, ast.Name)
            }
            builtins = {"abs", "len", "int", "float", "bool", "complex", "tuple", "list", "range", "min", "max", "sum", "round", "sorted",
                        "slice", "zip", "map", "enumerate", "isinstance", "all", "any", "reversed", "set", "dict", "str"}  # fmt: skip
            for n in ast.walk(tree):
                if isinstance(n, ast.Name) and n.id not in scope | bound | builtins:
                    loc = like.loc.at(n.col_offset, n.end_col_offset or n.col_offset + 1)
                    hint = did_you_mean(n.id, scope, True)
                    self.fault(
                        "E201",
                        loc,
                        f"like: '{n.id}' is not an argument",
                        hint,
                        [(s.loc, "the signature") for s in sigs],
                    )
        for like in likes:
            if like is not None and like.kind in ("name", "expr", "mpmath"):
                self._resolvable(like)

    def _resolvable(self, like: Like) -> None:
        """Every numpy.x, scipy.special.x and so on in a reference exists."""
        for m in re.finditer(r"(?<![\w.])(?:numpy|np|scipy|math|mpmath|mp)(?:\.[A-Za-z_]\w*)+", like.text):
            # The longest part that is a module or a function; methods of results come after a call and are not matched.
            if not like_exists(m[0]):
                parent, _, last = m[0].rpartition(".")
                hint = did_you_mean(last, like_members(parent))
                self.fault("E201", like.loc.at(*m.span()), f"like: {parent} has no '{last}'", hint)

    def declared(self, e: Entry) -> None:
        known = self.world.declared
        for o in e.overloads:
            if o.kernel and known.kernels and o.kernel not in known.kernels:
                loc = self.raw.per_overload["kernel"][o.index][1]
                hint = (
                    did_you_mean(o.kernel, known.kernels) or "declare it in csrc/kernels with '// kernel: name' above"
                )
                self.fault("E404", loc, f"no kernel '{o.kernel}'", hint)
            if o.kernel in known.parameters and (why := disagreement(o.sig, known.parameters[o.kernel])):
                text = f"kernel '{o.kernel}' ({known.kernels.get(o.kernel, 'header')}): {why}"
                at = self.raw.per_overload["kernel"][o.index][1]
                self.fault("E408", o.sig.loc, text, "change the header or the signature", [(at, "the kernel")])
        if e.batch and known.batches and e.batch not in known.batches:
            self.fault(
                "E407",
                self.raw.values["batch"][1],
                f"no batching rule '{e.batch}'",
                did_you_mean(e.batch, known.batches),
            )


def only_condition(n: F.Node, name: str) -> bool:
    """Whether every read of a name is as the condition of where: then it is a mask."""
    reads = sum(1 for x in F.walk(n) if isinstance(x, F.Name) and x.id == name)
    masks = sum(1 for x in F.walk(n) if isinstance(x, F.Call) and x.func == "where" and x.args[0] == F.Name(name))
    return reads > 0 and reads == masks


def types_of(sig: Signature) -> dict[str, Type]:
    return {x.name: x.type for x in (*sig.args, *sig.results)}


def tensor_names(sig: Signature) -> frozenset[str]:
    """Names that stand for one tensor: arguments and results that are no list."""
    return frozenset(x.name for x in (*sig.args, *sig.results) if x.type.is_tensor)


def reads_values(n: F.Node) -> set[str]:
    """Names whose elements a formula reads; shape(x), dtype(x) and kin do not count."""
    from .structured import META

    if isinstance(n, F.Call) and n.func in META:
        return set()
    out = {n.id} if isinstance(n, F.Name) else set()
    for c in F.children(n):
        out |= reads_values(c)
    return out


def like_exists(path: str) -> bool:
    """Whether numpy.x, scipy.special.y, math.z exist here; True where the package is not installed."""
    obj = _module(path)
    return obj is None or obj is not _MISSING


def like_members(path: str) -> list[str]:
    obj = _module(path)
    return [] if obj is None or obj is _MISSING else [n for n in dir(obj) if not n.startswith("_")]


_MISSING = object()


def _module(path: str) -> Any:
    import importlib

    parts = path.split(".")
    parts[0] = {"np": "numpy", "mp": "mpmath"}.get(parts[0], parts[0])
    try:
        obj: Any = importlib.import_module(parts[0])
    except ImportError:
        return None
    for k, p in enumerate(parts[1:], 2):
        if not hasattr(obj, p):
            try:
                importlib.import_module(".".join(parts[:k]))
            except ImportError:
                return _MISSING
        obj = getattr(obj, p, _MISSING)
        if obj is _MISSING:
            return _MISSING
    return obj


# ---- across ops -----------------------------------------------------------------------------------------------------


def _across(entries: list[Entry], diags: Diagnostics) -> None:
    names: dict[tuple[str, str], tuple[str, Loc]] = {}

    def claim(kind: str, name: str, e: Entry, loc: Loc) -> None:
        taken = names.get((kind, name))
        if taken and taken[0] != e.op:
            what = {"m": "method", "o": "operator"}.get(kind, "name")
            shown = name if kind in "mo" or kind == "tensorplay" else f"{kind}.{name}"
            diags.add(
                "E402",
                loc,
                f"op '{e.op}': {what} '{shown}' belongs to '{taken[0]}'",
                "choose another",
                [(taken[1], taken[0])],
            )
        names.setdefault((kind, name), (e.op, loc))

    for e in entries:
        for home in e.home:
            claim(home, e.op, e, e.loc)
    docs: dict[str, Entry] = {}
    for e in entries:
        for m in e.method:
            claim("m", m, e, e.keys.get("method", e.loc))
            if e.inplace:
                claim("m", m + "_", e, e.keys["inplace"])
        for o in e.operator:
            claim("o", o, e, e.keys["operator"])
            if (
                (OPERATORS[o][1] is None)
                and o in ("neg", "pos", "~", "abs")
                and e.family.name not in ("unary", "logical")
            ):
                diags.add(
                    "E208",
                    e.keys["operator"],
                    f"op '{e.op}': operator '{o}' takes one operand",
                    "the family is not unary",
                )
        for a in e.aliases:
            home, _, name = a.rpartition(".")
            for h in (home,) if home else e.home:
                claim("m" if h == "Tensor" else h, name, e, e.keys["aliases"])
        bare = re.sub(rf"\b{re.escape(e.op)}\b", "#", " ".join(e.doc.lower().split()))
        if bare in docs:
            other = docs[bare]
            loc = e.keys["doc"]
            diags.add(
                "E403",
                loc,
                f"op '{e.op}': doc is that of '{other.op}'",
                "say what sets it apart",
                [(other.keys["doc"], other.op)],
            )
        docs.setdefault(bare, e)


def kernels_reached(file: OpFile) -> set[str]:
    """Kernels that entries name; for an op with an in-place form also `name_`."""
    out = set()
    for e in file.entries:
        for o in e.overloads:
            if o.kernel:
                out |= {o.kernel, o.kernel + "_"} if e.inplace else {o.kernel}
    return out


def check_kernels(file: OpFile, diags: Diagnostics, declared: Declared) -> None:
    """E405: kernels that no entry reaches."""
    reached = kernels_reached(file)
    for name, where in sorted(declared.kernels.items()):
        if name not in reached and name not in declared.internal:
            diags.add(
                "E405",
                Loc(0, 0),
                f"kernel '{name}' ({where}) is reached by no entry",
                "add 'kernel: name' to an entry, or delete it",
            )


__all__ = ["load", "load_string", "resolve", "check_kernels", "kernels_reached", "reads_values", "FUNCTIONS"]
