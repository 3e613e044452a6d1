"""Formulas of an elementwise entry against its reference, its symbolic derivative and complex numbers, numerically.

Not its singular points: check_points.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import derive
from . import formula as F
from .check import attempt, point, same
from .errors import Diagnostics
from .evaluate import MpmathEvaluator, NumpyEvaluator
from .functions import Unavailable
from .holomorphic import orders
from .model import Deriv, Diff, Entry, Like, Loc, Overload
from .plan_compute import supported
from .reads import types_of
from .reference import Env, World, call_like, elementwise_inputs, integers_only, rng_for
from .simplify import expand

TOLERANCE = 1e-8  # of formulas against formulas; what exceeds it is asked again to 40 digits
REFERENCE = 1e-6  # against a reference, which may cancel


class ElementwiseCheck:
    """One overload of an elementwise entry."""

    def __init__(self, e: Entry, o: Overload, diags: Diagnostics, world: World, skipped: list[str]) -> None:
        self.e, self.o, self.diags, self.skipped = e, o, diags, skipped
        self.evaluate: NumpyEvaluator = world.evaluate
        self.result = o.sig.results[0].name
        self.tensors = [a.name for a in o.sig.args if a.type.is_tensor]
        self.world = world

    def fault(self, code: str, loc: Loc, message: str, hint: str = "", notes: Any = ()) -> None:
        self.diags.add(code, loc, f"op '{self.e.op}': {message}", hint, notes)

    def skip(self, why: str) -> None:
        self.skipped.append(f"{self.e.op}: {self.o.sig.text}: {why}")

    def formulas(self) -> None:
        try:
            self.values()
        except Unavailable as ex:
            self.skip(f"values: {ex}")
        for name, d in self.o.deriv.items():
            if d.kind is Diff.FORMULA and d.formula is not None and self.o.inlined is not None and "d" in self.e.keys:
                try:
                    self.derivative(name, d)
                except Unavailable as ex:
                    self.skip(f"d of '{name}': {ex}")
            if d.kind is Diff.ZERO and self.o.inlined is not None:
                self.zero(name, d)
        try:
            self.turned()
        except Unavailable as ex:
            self.skip(f"complex derivatives: {ex}")

    def like(self) -> Like | None:
        return self.e.like_of(self.o.index)

    def envs(self) -> Any:
        return elementwise_inputs(self.e, self.o, rng_for(self.e.op))

    def value(self, env: Env) -> Any:
        if self.o.inlined is None or self.o.expr is None:
            raise Unavailable("no expr")
        return self.compute(self.o.inlined, env, self.o.expr.loc, "expr")

    def compute(self, n: F.Node, env: Env, loc: Loc, what: str) -> Any:
        """A formula's value; one that NumPy refuses (a sign of a bool, a float shift) is a fault of the formula."""
        try:
            return self.evaluate(n, env)
        except (TypeError, ValueError) as ex:
            self.fault("E207", loc, f"{what} cannot be computed: {ex}")
            raise Unavailable("cannot be computed") from None

    # ---- values against the reference ----

    def values(self) -> None:
        like = self.like()
        if self.o.expr is None or like is None or like.kind == "tests":
            return
        if like.kind == "values":
            self.rows(like)
            return
        compared = False
        for env in self.envs():
            got = np.asarray(self.value(env))
            want = np.asarray(attempt(call_like, like, self.o, env))
            try:
                got, want = np.broadcast_arrays(got, want)
            except ValueError:
                raise Unavailable(f"reference has shape {want.shape}, not {got.shape}") from None
            if got.dtype.kind == "b" or want.dtype.kind == "b":
                bad = got.astype(bool) != want.astype(bool)
                compared = True
            else:
                both = np.isfinite(got) & np.isfinite(want)
                compared |= bool(both.any())
                tol = self.e.test.tol or REFERENCE
                off = np.abs(got - want) > tol * np.maximum(1, np.abs(want))
                bad = np.where(both, off, np.isfinite(got) != np.isfinite(want))
            if bad.any():
                i = int(np.argmax(bad.ravel()))
                self.differs(like, env, i, got.ravel()[i], want.ravel()[i])
                return
        if not compared:
            lo_hi = ", ".join(f"{t} in [-3, 3]" for t in self.tensors)
            hint = "state the domain: test: {input: [low, high]}"
            self.fault("E314", like.loc, f"no finite value to compare ({lo_hi} by default)", hint, self.places())

    def places(self) -> list[tuple[Loc, str]]:
        out = [(self.o.sig.loc, "the signature gives the order of arguments")]
        if self.o.expr is not None:
            out.insert(0, (self.o.expr.loc, "expr"))
        return out

    def differs(self, like: Like, env: Env, i: int, got: Any, want: Any) -> None:
        """Values differ: a third witness, the explicit derivative, says which of the two to blame."""
        loc, other = self.o.expr.loc if self.o.expr else like.loc, like.loc
        hint = "one of the two is wrong"
        if self.derivative_agrees():
            loc, other, hint = like.loc, loc, "expr and its derivative agree, so the reference is in doubt"
        notes = [(other, "the other one"), (self.o.sig.loc, "the signature gives the order of arguments")]
        if "test" in self.e.keys:
            notes.append((self.e.test.loc, "the inputs"))
        self.fault("E314", loc, f"expr is {got:.10g}, the reference {want:.10g} at {point(env, i)}", hint, notes)

    def derivative_agrees(self) -> bool:
        ds = [(n, d) for n, d in self.o.deriv.items() if d.kind is Diff.FORMULA]
        if not ds or "d" not in self.e.keys:
            return False
        scratch = Diagnostics("")
        probe = ElementwiseCheck(self.e, self.o, scratch, self.world, [])
        try:
            for n, d in ds:
                probe.derivative(n, d)
        except Unavailable:
            return False
        return not scratch

    def rows(self, like: Like) -> None:
        for row in like.values:
            args = [a.name for a in self.o.sig.args]
            if not isinstance(row, tuple) or not 2 <= len(row) <= len(args) + 1:
                self.fault("E102", like.loc, f"a row of values is arguments, then the result: {row}")
                return
            env: Env = {a.name: None if a.required else a.default for a in self.o.sig.args}
            env |= dict(zip(args, (np.float64(v) if isinstance(v, float) else v for v in row[:-1]), strict=False))
            got = np.asarray(self.value(env))
            if not same(got, row[-1], REFERENCE):
                at = point(dict(zip(args, row[:-1], strict=False)))
                self.fault(
                    "E314", like.loc, f"expr is {got:.10g}, the reference {row[-1]} at {at}", notes=self.places()
                )
                return

    # ---- an explicit derivative against the symbolic one ----

    def symbolic(self, name: str) -> F.Node:
        assert self.o.inlined is not None
        try:
            return derive.partial(self.o.inlined, name, self.result, self.tensors)
        except derive.NoRule as ex:
            raise Unavailable(f"'{ex.what}' has no rule") from None

    def inlined(self, n: F.Node) -> F.Node:
        ops = {
            e.op: (tuple((a.name, _literal(a)) for a in e.overloads[0].sig.args), e.overloads[0].expr.node)
            for e in self.world.ops.values()
            if e.elementwise and e.overloads[0].expr is not None
        }
        return expand(derive.inline(n, ops))

    def derivative(self, name: str, d: Deriv) -> None:
        assert d.formula is not None
        mine, truth = self.inlined(d.formula.node), self.symbolic(name)
        if mine == truth:
            return
        known = {
            round(float(np.real(v)), 12)
            for s in self.e.special
            if (v := s.values.get(name)) is not None and f"d_{name}" in s.values
        }
        for env in self.envs():
            if env[name] is None:
                continue
            for where, trial in self.with_edges(env):
                full = {**trial, self.result: self.value(trial)}
                got = np.asarray(self.compute(mine, full, d.formula.loc, f"d of '{name}'")) * 1.0
                want = np.asarray(self.evaluate(truth, full)) * 1.0
                got, want = np.broadcast_arrays(got, want)
                off = np.abs(got - want) > TOLERANCE * np.maximum(1, np.abs(want))
                both = np.isfinite(got) & np.isfinite(want)
                # At an edge the entry may decide a singular point; it may not turn a finite slope into nan.
                bad = np.where(
                    both,
                    off,
                    np.isfinite(want) & ~np.isfinite(got) if where == "edge" else np.isfinite(want) != np.isfinite(got),
                )
                if where == "edge":
                    at = np.broadcast_to(np.asarray(trial[name], dtype=float), got.shape)
                    bad = bad & ~np.isin(np.round(at, 12), list(known)) & np.isfinite(at)
                for i in np.flatnonzero(bad.ravel())[:3]:
                    if self.confirmed(mine, truth, full, int(i)):
                        hint = f"the derivative of expr is {F.to_text(truth)}"
                        if where == "edge":
                            hint += (
                                f"; if the entry decides this point, say so: special: [{{{name}: ..., d_{name}: ...}}]"
                            )
                        message = (
                            f"d of '{name}' is {got.ravel()[i]:.10g}, the derivative of expr is {want.ravel()[i]:.10g}"
                        )
                        notes = [(self.o.expr.loc, "expr")] if self.o.expr else []
                        self.fault("E310", d.formula.loc, f"{message} at {point(trial, int(i))}", hint, notes)
                        return

    def with_edges(self, env: Env) -> Any:
        yield "inside", env
        if integers_only(self.e, self.o):
            return
        for name in self.tensors:
            edges = [x for x in self.e.test.edges.get(name, self.e.test.edges.get("", ())) if np.isfinite(x)]
            if edges and env[name] is not None:
                yield "edge", {**env, name: np.resize(np.array(edges, dtype=float), np.shape(env[name]))}
        if len(self.tensors) > 1 and self.e.test.edges.get(""):
            edges = [x for x in self.e.test.edges[""] if np.isfinite(x)]
            if edges:
                grid = np.array([[a, b] for a in edges for b in edges], dtype=float)
                trial = dict(env)
                for k, name in enumerate(t for t in self.tensors if env[t] is not None):
                    trial[name] = np.resize(grid[:, k % 2], np.shape(env[name]))
                yield "edge", trial

    def confirmed(self, mine: F.Node, truth: F.Node, env: Env, i: int) -> bool:
        """Whether the two differ to 40 digits too, or cannot be asked and differ by more than rounding."""
        one = {k: v.ravel()[i] if isinstance(v, np.ndarray) and v.ndim else v for k, v in env.items()}
        try:
            import mpmath

            with mpmath.workdps(40):
                ev = MpmathEvaluator()
                point_ = {k: mpmath.mpf(float(v)) if _is_number(v) else v for k, v in one.items()}
                assert self.o.inlined is not None
                point_[self.result] = ev(expand(self.o.inlined), point_)
                a, b = ev(mine, point_), ev(truth, point_)
                return not (mpmath.isfinite(a) and mpmath.isfinite(b)) or bool(abs(a - b) > 1e-12 * max(1, abs(b)))
        except Exception:
            a, b = (np.asarray(self.evaluate(n, env)) * 1.0 for n in (mine, truth))
            a, b = np.broadcast_arrays(a, b)
            x, y = a.ravel()[i], b.ravel()[i]
            return bool(not np.isfinite(x) or not np.isfinite(y) or abs(x - y) > 1e-5 * max(1, abs(y)))

    def zero(self, name: str, d: Deriv) -> None:
        try:
            truth = self.symbolic(name)
        except Unavailable:
            return
        for env in self.envs():
            if env[name] is None:
                continue
            slope = np.asarray(self.evaluate(truth, {**env, self.result: self.value(env)})) * 1.0
            if np.any(np.isfinite(slope) & (slope != 0)):
                i = int(np.argmax((slope != 0).ravel()))
                self.fault(
                    "E310",
                    d.loc,
                    f"'{name}' is under zero, but its derivative is {F.to_text(truth)} (at {point(env, i)})",
                )
                return

    # ---- complex numbers ----

    def turned(self) -> None:
        """A partial serves complex numbers only where the slope is the same in every direction (holomorphic)."""
        takes_complex = "c128" in self.e.dtypes if self.e.dtypes else True
        if not takes_complex or "vjp" in self.e.keys or self.o.inlined is None or self.o.expr is None:
            return
        if not supported(expand(self.o.inlined), types_of(self.o.sig), frozenset()) & {"C64", "C128"}:
            return  # the op itself takes no complex numbers
        env = next(iter(self.envs()))
        rng = rng_for(self.e.op + "/complex")
        hint = "give its vjp, or leave complex out of dtypes"
        for name, d in self.o.deriv.items():
            if any(f.code == "E310" and d.formula and f.loc == d.formula.loc for f in self.diags.items):
                continue  # it is not the derivative of real numbers either
            if d.formula is None or not isinstance(env.get(name), np.ndarray) or env[name].dtype.kind != "f":
                continue
            slope = self.inlined(d.formula.node)
            loc = d.formula.loc if d.kind is Diff.FORMULA else self.o.expr.loc
            notes = [(self.o.expr.loc, "expr"), *self.dtype_notes()]
            if orders(slope, [*self.tensors, self.result]):
                text = f"the derivative by '{name}', {F.to_text(slope)}, compares complex numbers by size"
                self.fault("E310", loc, text, hint, notes)
                return
            z = env[name] + 1j * rng.uniform(0.1, 0.5, env[name].shape)
            for direction in (1, 1j):
                try:
                    with np.errstate(all="ignore"):
                        value, ahead, behind = (
                            np.asarray(self.evaluate(self.o.inlined, {**env, name: z + step * direction}))
                            for step in (0, 1e-5, -1e-5)
                        )
                        got = np.asarray(self.evaluate(slope, {**env, name: z, self.result: value})) * direction
                except (TypeError, ValueError):
                    return  # NumPy has no complex form of it
                if not np.iscomplexobj(value):
                    got = np.real(got)  # a real result moves by the real part (abs)
                want = (ahead - behind) / 2e-5
                got, want = np.broadcast_arrays(got, want)
                finite = np.isfinite(got) & np.isfinite(want)
                off = finite & (np.abs(got - want) > 1e-4 * np.maximum(1, np.abs(want)))
                # Here and there a difference spans a branch cut.
                if off.sum() > 0.3 * max(finite.sum(), 1):
                    i = int(np.argmax(off.ravel()))
                    text = f"the derivative by '{name}' fails for complex numbers (at {name}={z.ravel()[i]:.6g})"
                    self.fault("E310", loc, text, hint, notes)
                    return

    def dtype_notes(self) -> list[tuple[Loc, str]]:
        return [(self.e.keys["dtypes"], "the dtypes")] if "dtypes" in self.e.keys else []


def _is_number(v: Any) -> bool:
    return isinstance(v, (int, float, np.number, np.ndarray)) and not isinstance(v, bool)


def _literal(a: Any) -> F.Node | None:
    from .resolve import default_node

    return default_node(a)
