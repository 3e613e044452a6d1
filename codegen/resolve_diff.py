"""What an entry says of each derivative: formula, derived, zero, nondiff, todo. Silence is an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import derive
from . import formula as F
from .errors import did_you_mean
from .model import (
    Deriv,
    Diff,
    Formula,
    Loc,
    Overload,
)  # fmt: skip
from .reads import only_condition, reads_values, tensor_names, types_of
from .resolve_base import INTEGERS, Resolver
from .scope import Scope, elementwise_callees, structured_callees


class Differentiation(Resolver):
    """Derivatives and tangents of one entry."""

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
            elif (
                nondiff is None
                or none_differ
                or (said and said[0] == "nondiff")
                or a.type.dtype in INTEGERS
                or self.counts()
            ):
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
            elif self.only_sizes(o, a.name):
                text = f"compose reads only the sizes and dtype of '{a.name}', and nothing is said of its derivative"
                self.fault("E302", a.loc, text, f"nondiff: [{a.name}]", [(f.loc, f"'{n}'") for n, f in o.compose])
            elif o.compose or self.raw.values.get("python"):
                out[a.name] = Deriv(Diff.DERIVED, loc=a.loc)
            else:
                key = "d" if self.raw.family.elementwise else "vjp"
                self.fault(
                    "E302", a.loc, f"nothing is said of the derivative of '{a.name}'",
                    f"give {key}: {{{a.name}: formula}}, or list it under zero, nondiff or todo",
                )  # fmt: skip
        self.unread_gradients(o, out)
        return out

    def unread_gradients(self, o: Overload, derivs: Mapping[str, Deriv]) -> None:
        """A gradient that reaches a result and that no vjp reads would be lost without a word."""
        formulas = [d.formula.node for d in derivs.values() if d.kind is Diff.FORMULA and d.formula is not None]
        others = {d.kind for d in derivs.values()} - {Diff.FORMULA, Diff.ZERO, Diff.NONDIFF}
        if self.raw.family.elementwise or not formulas or others or len(o.sig.results) == 1:
            return
        read = {n for f in formulas for n in F.names(f)}
        for r in o.diff_results:
            if f"g_{r.name}" not in read:
                text = f"no vjp reads 'g_{r.name}', and nothing is said of the gradient of '{r.name}'"
                self.fault("E302", r.loc, text, f"nondiff: [{r.name}]")

    def counts(self) -> bool:
        """Whether the op takes nothing that a gradient could belong to."""
        taken = self.raw.values.get("dtypes") or ()
        return bool(taken) and all(d in INTEGERS for d in taken)

    def only_sizes(self, o: Overload, name: str) -> bool:
        """Whether a public composition never reads the elements of an argument. Helpers may: their callers know."""
        read = set().union(*(reads_values(f.node) for _, f in o.compose))
        helper = self.raw.values.get("home") == ("internal",) and any(a.name in read for a in o.sig.tensor_args)
        return bool(o.compose) and not helper and name not in read

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
            args + results + grads, structured_callees(self.world.ops),
            what_names="an argument, a result or a gradient",
            hidden=hidden,
            tensors=tensor_names(o.sig) | {n for n in grads if self.plain_gradient(n, o)},
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
            hint = f"give d: {{{arg}: formula}}, or compose in place of expr, or list it under zero, nondiff or todo"
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
