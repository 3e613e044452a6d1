"""Checks of derivatives: random projections to third order against differences, forward mode against reverse mode."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorplay as tp

from .inputs import Sample, draw, samples
from .rows import Op, array, call, results, tensor

Directions = Sequence[Sequence[np.ndarray[Any, Any]]]


def differentiable(op: Op) -> Iterator[Sample]:
    for s in samples(op, limit=4):
        if s.form.diff and any(_is_real(s.given.get(n)) for n in s.form.diff):
            yield s


def _is_real(v: Any) -> bool:
    if isinstance(v, list):
        return any(_is_real(x) for x in v)
    return isinstance(v, np.ndarray) and v.dtype.kind in "fc"


class Probe:
    """The op as a scalar function of its differentiable inputs along random directions."""

    def __init__(self, op: Op, s: Sample, rng: np.random.Generator) -> None:
        self.op, self.s, self.rng = op, s, rng
        self.fixed: dict[str, Any] = {}
        self.start: list[np.ndarray[Any, Any]] = []
        self.places: list[tuple[str, int | None]] = []
        for k, v in s.given.items():
            if k in s.form.diff and isinstance(v, np.ndarray) and v.dtype.kind in "fc":
                self.places.append((k, None))
                self.start.append(v)
            elif k in s.form.diff and isinstance(v, list):
                for i, x in enumerate(v):
                    self.places.append((k, i))
                    self.start.append(x)
                self.fixed[k] = list(v)
            else:
                self.fixed[k] = tensor(v)
        self.weights: list[Any] | None = None

    def outputs(self, xs: Sequence[Any]) -> list[Any]:
        given = {k: list(v) if isinstance(v, list) else v for k, v in self.fixed.items()}
        for (k, i), x in zip(self.places, xs, strict=True):
            if k in self.s.symmetric:
                x = (x + x.transpose(-2, -1).conj()) / 2  # any direction moves it to another symmetric matrix
            if i is None:
                given[k] = x
            else:
                given[k][i] = x
        out = results(call(self.op, self.s, given))
        names = [r.rstrip("[]") for r in self.s.form.results]
        if self.s.form.diff_results is not None:
            out = [o for n, o in zip(names, out, strict=True) if n in self.s.form.diff_results]
        return [o for o in out if isinstance(o, tp.Tensor) and (o.is_floating_point() or o.is_complex())]

    def scalar(self, xs: Sequence[Any]) -> Any:
        """Weighted sum of the outputs: its gradient is a random projection of the Jacobian."""
        out = self.outputs(xs)
        if self.weights is None:
            self.weights = [tp.tensor(draw(self.rng, tuple(o.shape), o.is_complex())) for o in out]
        total = None
        for o, w in zip(out, self.weights, strict=True):
            term = (o * w).sum()
            term = term.real if term.is_complex() else term
            total = term if total is None else total + term
        return total

    def leaves(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
        return [tp.tensor(a).requires_grad_() for a in arrays]

    def directions(self) -> list[np.ndarray[Any, Any]]:
        return [draw(self.rng, a.shape, a.dtype.kind == "c") for a in self.start]


def projected(p: Probe, xs: list[Any], dirs: Directions) -> Any:
    """The scalar differentiated once along each set of directions, still a function of xs."""
    value = p.scalar(xs)
    for d in dirs:
        if not (isinstance(value, tp.Tensor) and value.requires_grad):
            return tp.tensor(0.0, dtype=tp.float64)
        grads = tp.autograd.grad(value, xs, create_graph=True, allow_unused=True)
        value = None
        for g, v in zip(grads, d, strict=True):
            if g is None:
                continue
            term = (g.conj() * tp.tensor(v)).sum() if g.is_complex() else (g * tp.tensor(v)).sum()
            term = term.real if term.is_complex() else term
            value = term if value is None else value + term
        if value is None:
            return tp.tensor(0.0, dtype=tp.float64)
    return value


def check_order(op: Op, order: int) -> None:
    """The derivative of the given order, along random directions, against differences of the one below."""
    for k, s in enumerate(differentiable(op)):
        p = Probe(op, s, np.random.default_rng(17 + k))
        dirs = [p.directions() for _ in range(order)]
        exact = float(array(projected(p, p.leaves(p.start), dirs)))
        assert math.isfinite(exact), f"{op.name}, order {order}, {s.text}: {exact}"
        against_differences(op, p, dirs, exact, f"derivative of order {order}, {s.text}", 1e-7 * 10 ** (order - 1))


def against_differences(op: Op, p: Probe, dirs: Directions, exact: float, what: str, tol: float) -> None:
    """A wide step is the most exact; a kink it may step over is not met by a narrow one."""
    tol = max(tol, op.tol or 0.0)
    seen = []
    for h, loss in ((1e-3, 1.0), (1e-5, 10.0)):
        numeric = difference(p, dirs, h)
        seen.append(numeric)
        if abs(exact - numeric) <= loss * tol * (1 + abs(exact) + abs(numeric)):
            return
    raise AssertionError(f"{op.name}, {what}: {exact:.12g}, differences give {seen}")


def difference(p: Probe, dirs: Directions, h: float) -> float:
    """The derivative along the last direction as a fourth-order central difference, extrapolated once."""

    def f(t: float) -> float:
        moved = [np.asarray(a + t * v) for a, v in zip(p.start, dirs[-1], strict=True)]
        return float(array(projected(p, p.leaves(moved), dirs[:-1])))

    def d(h: float) -> float:
        return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)

    return (16 * d(h / 2) - d(h)) / 15


def check_complex(op: Op) -> None:
    """First and second derivative at complex points."""
    for s in samples(op, dtype="c128", limit=2):
        if not s.form.diff:
            continue
        try:
            call(op, s, {k: tensor(v) for k, v in s.given.items()})
        except TypeError:
            return  # no complex form
        p = Probe(op, s, np.random.default_rng(5))
        for order in (1, 2):
            dirs = [p.directions() for _ in range(order)]
            exact = float(array(projected(p, p.leaves(p.start), dirs)))
            against_differences(op, p, dirs, exact, f"complex, order {order}, {s.text}", 1e-6)


def check_tangent(op: Op) -> None:
    """<w, J v> by forward mode is <J^T w, v> by reverse mode."""
    fwd = tp.autograd.forward_ad
    for k, s in enumerate(differentiable(op)):
        p = Probe(op, s, np.random.default_rng(29 + k))
        v = p.directions()
        reverse = float(array(projected(p, p.leaves(p.start), [v])))
        with fwd.dual_level():
            duals = [fwd.make_dual(tp.tensor(a), tp.tensor(d)) for a, d in zip(p.start, v, strict=True)]
            tangent = fwd.unpack_dual(p.scalar(duals)).tangent
            forward = 0.0 if tangent is None else float(array(tangent))
        assert abs(forward - reverse) <= 1e-9 * (1 + abs(reverse)), (
            f"{op.name}, {s.text}: tangent {forward:.12g}, vjp {reverse:.12g}"
        )
