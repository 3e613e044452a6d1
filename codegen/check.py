"""Wrong maths does not generate: formulas against the symbolic derivative, the reference and each other, numerically.

What cannot be evaluated here (no reference, a package missing) is listed, and left to the generated tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from . import derive
from . import formula as F
from .errors import Diagnostics
from .evaluate import MpmathEvaluator, NumpyEvaluator
from .functions import Unavailable
from .holomorphic import orders
from .model import Deriv, Diff, Entry, Like, Loc, OpFile, Overload
from .plan_compute import supported
from .reads import types_of
from .reference import Env, World, call_like, elementwise_inputs, integers_only, results_of, rng_for
from .simplify import expand

TOLERANCE = 1e-8  # of formulas against formulas; what exceeds it is asked again to 40 digits
REFERENCE = 1e-6  # against a reference, which may cancel


def run(file: OpFile, diags: Diagnostics, only: str | None = None, among: Collection[str] | None = None) -> list[str]:
    """Check every entry, or one, or some; returns the lines of what was left unchecked."""
    from .check_structured import check_structured

    skipped: list[str] = []
    world = World(file)
    with np.errstate(all="ignore"):
        for e in file.entries:
            if (only is not None and e.op != only) or (among is not None and e.op not in among):
                continue
            for o in e.overloads:
                if e.elementwise:
                    ElementwiseCheck(e, o, diags, world, skipped).run()
            check_structured(e, diags, world, skipped)
    return skipped


def told(skipped: Sequence[str]) -> list[str]:
    """What was left unchecked, each op and reason once."""
    out = []
    for line in skipped:
        op, _, why = line.partition(": ")
        out.append(f"not compared: {op} ({re.sub(r'^case [0-9]+(: |, )', '', why)})")
    return [*dict.fromkeys(out)]


def attempt(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), or Unavailable with the reason: a reference may fail in any way."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(*args)
    except Unavailable:
        raise
    except Exception as ex:
        raise Unavailable(f"{type(ex).__name__}: {ex}"[:160]) from None


def point(env: Mapping[str, Any], i: int | None = None) -> str:
    parts = []
    for k, v in env.items():
        x = np.asarray(v).ravel()[i] if i is not None and isinstance(v, np.ndarray) else v
        parts.append(f"{k}={x:.6g}" if isinstance(x, (float, np.floating)) else f"{k}={x}")
    return ", ".join(parts)


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

    def run(self) -> None:
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
        try:
            self.special()
            self.points()
            self.kinks()
        except Unavailable as ex:
            self.skip(f"special: {ex}")

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

    # ---- singular points ----

    def special(self) -> None:
        names = {a.name for a in self.o.sig.args}
        for row in self.e.special:
            given = {k: v for k, v in row.values.items() if k in names}
            if any(k not in names and k != self.result and k[2:] not in names for k in row.values):
                continue  # a row of another overload
            if any(a.required and a.name not in given for a in self.o.sig.args):
                continue
            env: Env = {a.name: given.get(a.name, None if a.required else a.default) for a in self.o.sig.args}
            env = {
                k: np.asarray(v, dtype=float) if k in self.tensors and isinstance(v, (int, float)) else v
                for k, v in env.items()
            }
            value = attempt(self.value, env) if self.o.inlined is not None else self.like_value(env)
            notes = [(self.o.expr.loc, "expr")] if self.o.expr else []
            if self.result in row.values and not same(value, row.values[self.result], REFERENCE):
                got = np.asarray(value)
                self.fault(
                    "E313",
                    row.loc,
                    f"special: {self.result} is {got:.10g} at {point(given)}, not {row.values[self.result]}",
                    "a row says what the formula gives, it does not replace it: put the value there, "
                    "where(x == 0, 1, ...), and the slope into d; or a series near it, where(abs(x) < 0.01, ..., ...)"
                    if self.o.inlined is not None
                    else "",
                    notes=notes,
                )
                continue
            for name, d in self.o.deriv.items():
                want = row.values.get(f"d_{name}")
                if want is None or d.formula is None:
                    continue
                scope = {**env, self.result: np.asarray(value), "g": 1.0}
                got = np.asarray(attempt(self.evaluate, self.inlined(d.formula.node), scope))
                if not same(got, want, REFERENCE):
                    text = f"special: the derivative by '{name}' is {got * 1.0:.10g} at {point(given)}, not {want}"
                    self.fault(
                        "E313",
                        row.loc,
                        text,
                        f"the derivative is {d.formula.text}; d: {{{name}: ...}} chooses another",
                        [(d.formula.loc, "the derivative"), *notes],
                    )

    def like_value(self, env: Env) -> Any:
        like = self.like()
        if like is None:
            raise Unavailable("no reference")
        return attempt(call_like, like, self.o, env)

    def points(self) -> None:
        """`where(x == 0, limit, ...)` gives x = 0 a value, and the slope of a constant: seldom that of the function."""
        if self.o.inlined is None or self.o.expr is None or integers_only(self.e, self.o):
            return
        for name in self.tensors:
            d = self.o.deriv.get(name)
            if d is None or d.formula is None or d.kind is not Diff.DERIVED:
                continue
            slope = self.inlined(d.formula.node)
            env = next(iter(self.envs()))
            written = self.compared(name, ("==", "!="), derivative=False)
            for p in sorted(self.compared(name, ("==", "!="))):
                h = 1e-6 * (1 + abs(p))
                left, at, right = (self.slope_at(slope, env, name, x) for x in (p - h, p, p + h))
                if p in written:
                    beside = self.beside(slope, env, name, p, left, right)
                else:  # only the rule of an op compares there (0 ** x), which knows its own edge
                    beside = left if np.isfinite([left, right]).all() and alike(right, left) else None
                if beside is not None and not alike(at, beside):
                    if p in self.decided(name):
                        continue
                    text = f"the derivative by '{name}' is {at:.6g} at {name}={p:g} and {beside:.6g} beside it"
                    row = f"special: [{{{name}: {p:g}, d_{name}: {at:g}}}]"
                    hint = f"give the derivative, d: {{{name}: ...}}; if {at:g} is meant, {row}"
                    self.fault("E317", self.o.expr.loc, text, hint)

    def beside(self, slope: F.Node, env: Env, name: str, p: float, left: float, right: float) -> float | None:
        """The slope beside a point: that of both sides, or of the only one where there is a function; infinite where it
        grows without end. None where the sides differ, which is a kink."""
        sides = []
        for sign, near in ((-1, left), (1, right)):
            if np.isnan(near):
                continue
            far, nearer = (abs(self.slope_at(slope, env, name, p + sign * h * (1 + abs(p)))) for h in (1e-2, 1e-4))
            grows = abs(near) > max(1, 1.2 * nearer) and nearer > 1.2 * far  # also as slowly as a logarithm
            sides.append(float(np.copysign(np.inf, near)) if grows else near)
        if not sides or not all(alike(s, sides[0]) for s in sides):
            return None
        return sides[0]

    def decided(self, name: str) -> list[float]:
        """Where a special row gives the derivative."""
        rows = (s.values for s in self.e.special if name in s.values and f"d_{name}" in s.values)
        return [float(np.real(row[name])) for row in rows]

    def kinks(self) -> None:
        """Points where the one-sided slopes differ must be decided by a special row."""
        if len(self.tensors) != 1 or self.o.inlined is None or integers_only(self.e, self.o):
            return
        name = self.tensors[0]
        d = self.o.deriv.get(name)
        if d is None or d.formula is None:
            return
        decided = self.decided(name)
        slope = self.inlined(d.formula.node)
        env = next(iter(self.envs()))
        for p in sorted(self.candidates(name)):
            h = 1e-6 * (1 + abs(p))
            left, right = (self.slope_at(slope, env, name, x) for x in (p - h, p + h))
            if not (np.isfinite(left) and np.isfinite(right)) or abs(left - right) <= 1e-3 * max(1, abs(left)):
                continue
            nearer = self.slope_at(slope, env, name, p + h / 10)
            pole = abs(nearer - right) > 0.5 * abs(right) and abs(right) > 10
            if p not in decided and not pole:
                now = self.slope_at(slope, env, name, p)
                row = f"{{{name}: {p:g}, d_{name}: {now:.6g}}}"
                hint = f"the formula gives {now:.6g} there; if that is meant: special: [{row}]"
                text = f"the slope jumps from {left:.6g} to {right:.6g} at {name}={p:g}, and no special row decides it"
                loc = d.formula.loc if d.kind is Diff.FORMULA else self.o.expr.loc if self.o.expr else self.e.loc
                notes = [(self.o.expr.loc, "expr")] if self.o.expr and self.o.expr.loc != loc else []
                self.fault("E316", loc, text, hint, notes)

    def slope_at(self, slope: F.Node, env: Env, name: str, x: float) -> float:
        full = {**env, name: np.array([x]), "g": 1.0}  # so that a vjp is a slope
        full[self.result] = self.value(full)
        return float(np.real(np.asarray(attempt(self.evaluate, slope, full)).ravel()[0]))

    def candidates(self, name: str) -> set[float]:
        lo, hi = self.e.test.domains.get(name, (-3.0, 3.0))
        out = {float(x) for x in self.e.test.edges.get(name, self.e.test.edges.get("", ())) if np.isfinite(x)}
        out |= {k / 2 for k in range(-12, 13) if lo < k / 2 < hi}
        return out | self.compared(name) | self.bends(name)

    def bends(self, name: str) -> set[float]:
        """Where a line in the argument alone is compared with another, or its sign or size is asked for: they cross."""
        d = self.o.deriv[name].formula
        out = set()
        for root in (self.o.inlined, d.node if d else None):
            for n in F.walk(root) if root is not None else ():
                if isinstance(n, F.Compare):
                    apart: F.Node = F.Binary("-", n.left, n.right)
                elif isinstance(n, F.Call) and n.func in ("abs", "sgn", "sign"):
                    apart = n.args[0]
                else:
                    continue
                if {*F.names(apart)} != {name}:
                    continue
                try:
                    at = [float(attempt(self.evaluate, apart, {name: np.float64(x)})) for x in (0.0, 1.0, 2.0)]
                except (Unavailable, TypeError, ValueError):
                    continue
                slope = at[1] - at[0]
                if slope and abs(at[2] - at[1] - slope) < 1e-12 * max(map(abs, at)):
                    out.add(round(-at[0] / slope, 12))
        return out

    def compared(
        self, name: str, ops: tuple[str, ...] = ("<", "<=", ">", ">=", "==", "!="), derivative: bool = True
    ) -> set[float]:
        """The numbers that the formula or (unless said otherwise) its derivative compares the argument with."""
        d = self.o.deriv[name].formula if derivative else None
        out = set()
        for root in (self.o.inlined, d.node if d else None):
            for n in F.walk(root) if root is not None else ():
                if isinstance(n, F.Compare) and n.op in ops:
                    for a, b in ((n.left, n.right), (n.right, n.left)):
                        if a == F.Name(name) and isinstance(b, F.Num) and isinstance(b.value, (int, float)):
                            out.add(float(b.value))
        return out


def same(got: Any, want: Any, tol: float) -> bool:
    got, want = np.asarray(got) * 1.0, np.asarray(want) * 1.0
    if np.isnan(want).any() or np.isnan(got).any():
        return bool(np.isnan(want).all() and np.isnan(got).all())
    if np.isinf(want).any() or np.isinf(got).any():
        return bool((got == want).all())
    if (want == 0).all() and np.signbit(np.real(want)).all() and not np.signbit(np.real(got)).all():
        return False
    return bool((np.abs(got - want) <= tol * np.maximum(1, np.abs(want))).all())


def alike(a: float, b: float) -> bool:
    """Whether two slopes are one, up to what a step beside a point makes of it."""
    return a == b or bool(np.isfinite(b) and abs(a - b) <= 1e-3 * max(1, abs(b)))


def _is_number(v: Any) -> bool:
    return isinstance(v, (int, float, np.number, np.ndarray)) and not isinstance(v, bool)


def _literal(a: Any) -> F.Node | None:
    from .resolve import default_node

    return default_node(a)


__all__ = ["attempt", "point", "results_of", "run", "same"]
