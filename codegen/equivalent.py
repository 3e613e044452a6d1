"""Do two versions of an entry mean the same? Formulas are compared by value at many points, all else exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from . import formula as F
from .check_elementwise import ElementwiseCheck
from .check_structured import _CaseCheck, cases_of
from .errors import Diagnostics
from .functions import Unavailable
from .model import Deriv, Diff, Entry, Formula, Overload, Signature
from .reference import World, case_inputs, elementwise_inputs, rng_for

# What an entry may choose freely: nothing else in the file says what it ought to be.
CHOICES = (
    "home", "method", "operator", "out", "inplace", "promote", "dtypes", "deterministic", "amp", "aliases", "version",
    "batch",
)  # fmt: skip
# What only tests and readers see.
PROSE = ("doc", "ref", "like", "test", "special")


def differences(a: Entry, b: Entry, world_a: World, world_b: World) -> tuple[list[str], list[str]]:
    """(names of what differs in meaning, names of free choices that differ)."""
    choices = [name for name in CHOICES if getattr(a, name) != getattr(b, name)]
    pairs = list(zip(a.overloads, b.overloads, strict=False))
    if any(bool(x.tangent or x.tangent_rule) > bool(y.tangent or y.tangent_rule) for x, y in pairs):
        choices.append("tangent")  # `list --missing tangent` names it
    if any(x.compose and y.compose and x.kernel and not y.kernel for x, y in pairs):
        choices.append("kernel")  # the composition is what the kernel computes
    if any(x.require != y.require for x, y in pairs):
        choices.append("require")  # no case is one that it refuses
    handled = {*CHOICES, *PROSE, "overloads", "loc", "keys", "end_line"}
    meaning = [f.name for f in fields(a) if f.name not in handled and getattr(a, f.name) != getattr(b, f.name)]
    if len(a.overloads) != len(b.overloads):
        return [*meaning, "overloads"], choices
    for x, y in zip(a.overloads, b.overloads, strict=True):
        with np.errstate(all="ignore"):
            meaning += _overload(a, x, b, y, world_a, world_b)
    if (
        meaning
        and all(m == "sig" for m in meaning)
        and all(_reordered(x, y) for x, y in zip(a.overloads, b.overloads, strict=True))
    ):
        return [], [*choices, "order of arguments"]
    return meaning, choices


def _reordered(x: Overload, y: Overload) -> bool:
    """The same signature but for the order of its arguments, which callers see and nothing here can know."""
    (p, a, r), (q, b, s) = _signature(x.sig), _signature(y.sig)
    return bool(p == q and r == s and sorted(map(str, a)) == sorted(map(str, b)))


def _signature(s: Signature) -> Any:
    """What callers see: the name of a single result is not API."""
    results = [(r.name if len(s.results) > 1 else "", r.type) for r in s.results]
    return s.name, [(a.name, a.type, repr(a.default), a.kwonly) for a in s.args], results


def _overload(a: Entry, x: Overload, b: Entry, y: Overload, wa: World, wb: World) -> list[str]:
    out = []
    if _signature(x.sig) != _signature(y.sig):
        return ["sig"]
    rename = {r.name: q.name for r, q in zip(x.sig.results, y.sig.results, strict=True)}
    if x.kernel != y.kernel and not (x.compose and y.compose and y.kernel is None):
        out.append("kernel")
    still = all(d.kind is Diff.NONDIFF for o in (x, y) for d in o.deriv.values())  # then no result carries a gradient
    if not still and tuple(rename[r] for r in x.nondiff_results) != y.nondiff_results:
        out.append("nondiff")
    if (x.inlined is None) != (y.inlined is None) or bool(x.compose) != bool(y.compose):
        return [*out, "expr"]
    if (
        x.inlined is not None
        and y.inlined is not None
        and not _same_elementwise(a, x, x.inlined, y.inlined, wa, rename)
    ):
        out.append("expr")
    if x.compose and not _same_compose(a, x, y, wa, wb):
        out.append("compose")
    if not _same_shapes(a, x, y, wa):
        out.append("shape")
    for name in x.deriv:
        d, e = x.deriv[name], y.deriv.get(name)
        if e is not None and _is_zero(d) and _is_zero(e):
            continue
        if (
            (
                e is None
                or d.differentiable != e.differentiable
                or (not d.differentiable and (d.kind, d.why) != (e.kind, e.why))
            )
            or not _same_formula(a, x, d.formula, e.formula, wa, wb, rename)
            or ({d.kind, e.kind} == {Diff.FORMULA, Diff.DERIVED} and (d.formula is None) != (e.formula is None))
        ):
            out.append(f"derivative of {name}")
    if (x.tangent or x.tangent_rule) and not (y.tangent or y.tangent_rule):
        return out
    if x.tangent_rule != y.tangent_rule or set(x.tangent) != set(y.tangent):
        out.append("tangent")
    else:
        for arg, per in x.tangent.items():
            other = y.tangent[arg]
            renamed = {rename.get(k, k): v for k, v in per.items()}
            if set(renamed) != set(other) or not all(
                _same_formula(a, x, renamed[r], other[r], wa, wb, rename) for r in renamed
            ):
                out.append("tangent")
    return out


def _is_zero(d: Deriv) -> bool:
    return d.kind is Diff.ZERO or (d.formula is not None and d.formula.node == F.Num(0))


def _same_formula(
    e: Entry, o: Overload, f: Formula | None, g: Formula | None, wa: World, wb: World, rename: Mapping[str, str]
) -> bool:
    if f is None or g is None:
        return f is g
    if f.node == g.node:
        return True
    if e.elementwise and "vjp" not in e.keys:
        probe = ElementwiseCheck(e, o, Diagnostics(""), wa, [])
        try:
            return _same_elementwise(e, o, probe.inlined(f.node), probe.inlined(g.node), wa, rename)
        except Unavailable:
            return False
    return _same_structured(e, o, f.node, g.node, wa, wb, rename)


def _same_elementwise(e: Entry, o: Overload, f: F.Node, g: F.Node, world: World, rename: Mapping[str, str]) -> bool:
    """Equal in values: inside the domain, at the edges, and far outside of it."""
    if f == g:
        return True
    result = o.sig.results[0].name
    probe = ElementwiseCheck(e, o, Diagnostics(""), world, [])
    try:
        for env in elementwise_inputs(e, o, rng_for(e.op + "/same"), 160):
            for _, trial in probe.with_edges(env):
                full = {**trial}
                if o.inlined is not None:
                    full[result] = full[rename[result]] = probe.value(trial)
                try:
                    a, b = np.asarray(world.evaluate(f, full)) * 1.0, np.asarray(world.evaluate(g, full)) * 1.0
                except TypeError:
                    if any(v is None for v in full.values()):
                        continue  # a derivative by what is left out
                    raise
                a, b = np.broadcast_arrays(a, b)
                finite = np.isfinite(a) & np.isfinite(b)
                if np.any(np.isfinite(a) != np.isfinite(b)):
                    return False
                if np.any(finite & (np.abs(a - b) > 1e-9 * np.maximum(1, np.abs(a)))):
                    return False
    except Unavailable:
        return False
    return True


def _same_structured(
    e: Entry, o: Overload, f: F.Node, g: F.Node, wa: World, wb: World, rename: Mapping[str, str]
) -> bool:
    for i, env, check, scope in _cases(e, o, wa):
        del i, env, check
        renamed = scope | {rename[k]: v for k, v in scope.items() if k in rename}
        renamed |= {f"g_{rename[k]}": scope[f"g_{k}"] for k in rename if f"g_{k}" in scope}
        try:
            a, b = wa.evaluate(f, scope), wb.evaluate(g, renamed)
        except Exception:
            return False
        if not _equal(a, b):
            return False
    return bool(cases_of(e))


def _cases(e: Entry, o: Overload, world: World) -> Any:
    for i, case in enumerate(cases_of(e)):
        for complex_ in (False, True):
            if complex_ and not (e.elementwise or e.family.name in ("linalg", "view", "shape")):
                continue
            rng = rng_for(f"{e.op}/{i}/same")
            picked = case_inputs(e, case, rng, complex_)
            if picked is None or picked[0].index != o.index:
                continue
            check = _CaseCheck(e, o, picked[1], Diagnostics(""), world, [], rng, i)
            try:
                out = check.forward(picked[1])
            except Unavailable:
                continue
            scope = {**check.full(picked[1]), **{r.name: v for r, v in zip(o.sig.results, out, strict=False)}}
            grads = {f"g_{r.name}": check.like_value(v) for r, v in zip(o.sig.results, out, strict=False)}
            scope |= grads
            if len(grads) == 1:
                scope["g"] = next(iter(grads.values()))
            scope["t"] = next((check.like_value(v) for k, v in picked[1].items() if isinstance(v, np.ndarray)), 1.0)
            yield i, picked[1], check, scope


def _same_compose(e: Entry, x: Overload, y: Overload, wa: World, wb: World) -> bool:
    if [(n, f.node) for n, f in x.compose] == [(n, f.node) for n, f in y.compose]:
        return True
    seen = False
    for _, env, check, _ in _cases(e, x, wa):
        try:
            a = wa.formula_value(e, x, check.full(env))
            b = wb.formula_value(e, y, check.full(env))
        except Exception:
            return False
        seen = True
        if not all(_equal(p, q) for p, q in zip(a, b, strict=True)):
            return False
    return seen


def _same_shapes(e: Entry, x: Overload, y: Overload, world: World) -> bool:
    if [f.node for f in x.shapes] == [f.node for f in y.shapes]:
        return True
    if not x.shapes or not y.shapes:
        return True  # the kernel decides; a shape rule that is there is checked against the reference
    if len(x.shapes) != len(y.shapes):
        return False
    seen = False
    from .check_structured import _shape_of

    for _, env, check, _ in _cases(e, x, world):
        shapes = {k: _shape_of(v) for k, v in check.full(env).items()}
        for f, g in zip(x.shapes, y.shapes, strict=True):
            try:
                if check.shape_value(f, shapes) != check.shape_value(g, shapes):
                    return False
            except Unavailable:
                return False
            seen = True
    return seen


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)) and not isinstance(b, np.ndarray):
        return (
            isinstance(b, (tuple, list)) and len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
        )
    try:
        return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, 1e-7, 1e-9, equal_nan=True))
    except (TypeError, ValueError):
        return False
