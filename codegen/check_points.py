"""The points where an elementwise formula has no one slope: kinks, poles, points given a value of their own; each is
decided by a special row, or the entry is refused. Points of one tensor at a time: kinks of several are not searched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import formula as F
from .check import attempt, point, same
from .check_elementwise import REFERENCE, ElementwiseCheck
from .functions import Unavailable
from .model import Diff
from .reference import Env, call_like, integers_only


class PointCheck(ElementwiseCheck):
    """An overload's special rows, points written into the formula, and kinks."""

    def singular_points(self) -> None:
        try:
            self.special()
            self.points()
            self.kinks()
        except Unavailable as ex:
            self.skip(f"special: {ex}")

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


def alike(a: float, b: float) -> bool:
    """Whether two slopes are one, up to what a step beside a point makes of it."""
    return a == b or bool(np.isfinite(b) and abs(a - b) <= 1e-3 * max(1, abs(b)))
