"""Nested transforms against the same derivatives taken by loops of plain backward passes, or by differences of values.
Knows no op's formula.

Run it: `python -m tensorplay.testing.transforms --all` takes every function through every nesting to depth 3, with
`--differences` against differences of values; `--random 5000 --seed 0` takes random programs through random nestings.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorplay as tp
from tensorplay import func

Fn = Callable[[Any], Any]
F64 = tp.float64


def _pattern(shape: Any, phase: float) -> Any:
    """Fixed numbers of mixed sign: directions and weights that hide nothing by symmetry."""
    n = 1
    for s in shape:
        n *= s
    return (tp.arange(n, dtype=F64) * 1.7 + phase).cos().reshape(tuple(shape))


# ---- the transforms, and what each means in terms of grad alone ------------------------------------------------------


def _weighted(g: Fn, x: Any) -> Any:
    y = g(x)
    return (y * _pattern(y.shape, 0.3)).sum()


def _samples(x: Any) -> Any:
    return tp.stack([x, x * 0.5 + 0.1, -x])


def _grad(g: Fn) -> Fn:
    return func.grad(lambda x: _weighted(g, x))


def _jvp(g: Fn) -> Fn:
    return lambda x: func.jvp(g, (x,), (_pattern(x.shape, 0.9),))[1]


def _vjp(g: Fn) -> Fn:
    def transformed(x: Any) -> Any:
        y, pull = func.vjp(g, x)
        return pull(_pattern(y.shape, 1.3))[0]

    return transformed


def _vmap(g: Fn) -> Fn:
    return lambda x: func.vmap(g)(_samples(x))


# (g, x) -> g(x) and its Jacobian, [elements of g(x), *x.shape]
Jacobian = Callable[[Fn, Any], tuple[Any, Any]]


def by_backward(g: Fn, x: Any) -> tuple[Any, Any]:
    """Row by row, one plain backward pass each."""
    x = x if x.requires_grad else x.detach().requires_grad_()
    with tp.enable_grad():
        y = g(x)
        rows = []
        for i in range(y.numel()):
            out = y.reshape(-1)[i]
            if out.requires_grad:
                rows.append(tp.autograd.grad(out, x, create_graph=True, materialize_grads=True)[0])
            else:
                rows.append(tp.zeros_like(x))
        whole = tp.stack(rows) if rows else tp.zeros((0, *x.shape), dtype=x.dtype)
    return y, whole


# Six values each way keep three differences of differences right to about 1e-6: the error is of the sixth order.
STEP = 0.02
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


def by_differences(g: Fn, x: Any) -> tuple[Any, Any]:
    """Column by column, from values of g alone."""
    y = g(x)
    columns = []
    for j in range(x.numel()):
        d = tp.zeros(x.numel(), dtype=F64)
        d[j] = STEP
        d = d.reshape(tuple(x.shape))
        slope = sum(((g(x + k * d) - g(x - k * d)) * (w / STEP) for k, w in STENCIL), start=tp.zeros((), dtype=F64))
        columns.append(slope.reshape(-1))
    whole = tp.stack(columns, 1) if columns else tp.zeros((y.numel(), 0), dtype=x.dtype)
    return y, whole.reshape((y.numel(), *x.shape))


def _ref_jac(g: Fn, jacobian: Jacobian) -> Fn:
    def reference(x: Any) -> Any:
        y, rows = jacobian(g, x)
        return rows.reshape((*y.shape, *x.shape))

    return reference


def _ref_pull(g: Fn, jacobian: Jacobian, phase: float) -> Fn:
    def reference(x: Any) -> Any:
        y, rows = jacobian(g, x)
        return (rows * _pattern((y.numel(),), phase).reshape((-1, *[1] * x.ndim))).sum(0)

    return reference


def _ref_jvp(g: Fn, jacobian: Jacobian) -> Fn:
    def reference(x: Any) -> Any:
        y, rows = jacobian(g, x)
        return (rows.reshape((y.numel(), -1)) @ _pattern(x.shape, 0.9).reshape(-1)).reshape(y.shape)

    return reference


def _ref_vmap(g: Fn, _: Jacobian) -> Fn:
    return lambda x: tp.stack([g(s) for s in _samples(x)])


TRANSFORMS: dict[str, tuple[Callable[[Fn], Fn], Callable[[Fn, Jacobian], Fn]]] = {
    "grad": (_grad, lambda g, jacobian: _ref_pull(g, jacobian, 0.3)),
    "jvp": (_jvp, _ref_jvp),
    "vjp": (_vjp, lambda g, jacobian: _ref_pull(g, jacobian, 1.3)),
    "vmap": (_vmap, _ref_vmap),
    "jacrev": (func.jacrev, _ref_jac),
    "jacfwd": (func.jacfwd, _ref_jac),
}


def nestings(depth: int) -> Iterator[tuple[str, ...]]:
    """Every order of every 1 to `depth` transforms, innermost first."""
    for d in range(1, depth + 1):
        yield from itertools.product(TRANSFORMS, repeat=d)


def compare(
    g: Fn, x: Any, names: tuple[str, ...], tol: float = 1e-7, jacobian: Jacobian = by_backward
) -> None:
    """Raises AssertionError where the nested transforms of `g` at `x` differ from the reference."""
    got: Fn = g
    want: Fn = g
    for name in names:
        transform, reference = TRANSFORMS[name]
        got, want = transform(got), reference(want, jacobian)
    tp._C._vmap_warn_of_loops(False)
    try:
        a, b = got(x).detach(), want(x).detach()
    finally:
        tp._C._vmap_warn_of_loops(True)
    label = " of ".join(reversed(names))
    assert tuple(a.shape) == tuple(b.shape), f"{label}: sizes {tuple(a.shape)}, expected {tuple(b.shape)}"
    if a.numel():
        scale = max(1.0, float(b.abs().max()))
        gap = float((a - b).abs().max())
        assert gap <= tol * scale, f"{label}: differs by {gap:.3g} at scale {scale:.3g}"


# ---- thirty functions of a vector ------------------------------------------------------------------------------------


def _matrix(x: Any) -> Any:
    return x.reshape(3, 1) * x.reshape(1, 3) + 2.0 * tp.eye(3, dtype=F64)


def _inplace(x: Any) -> Any:
    y = x * 2.0
    y.add_(x.sin())
    y.sub_(x * x)
    return y.neg_() * x


def _through_a_view(x: Any) -> Any:
    y = x * 1.5
    return y[1:].reshape(2, 1).expand(2, 2) * y.unfold(0, 2, 1)


def _inner_gradient(x: Any) -> Any:
    return x * func.grad(lambda z: (z * z * x).sum())(x * 0.5)


FUNCTIONS: dict[str, Fn] = {
    "sin": lambda x: x.sin(),
    "exp": lambda x: (x * 0.5).exp(),
    "cube": lambda x: x * x * x,
    "rational": lambda x: x / (1.0 + x * x),
    "tanh": lambda x: x.tanh() * x,
    "sigmoid": lambda x: x.sigmoid(),
    "log1p": lambda x: (x * x).log1p(),
    "sqrt": lambda x: (x * x + 1.0).sqrt(),
    "sum": lambda x: x.sin().sum(),
    "mean": lambda x: (x * x).mean(),
    "matvec": lambda x: _pattern((2, 3), 0.2) @ x.tanh(),
    "outer": lambda x: x.reshape(3, 1) @ x.sin().reshape(1, 3),
    "cumsum": lambda x: (x * x).cumsum(0),
    "cumprod": lambda x: (x + 2.0).cumprod(0),
    "softmax": lambda x: tp.softmax(x, 0) * x,
    "logsumexp": lambda x: tp.logsumexp(x * 2.0, 0),
    "prod": lambda x: (x + 1.5).prod(),
    "max": lambda x: x.max() * x,
    "sort": lambda x: tp.sort(x)[0] * x,
    "index": lambda x: x[tp.tensor([2, 0, 0])] * x,
    "slices": lambda x: x[1:] * x[:-1].sin(),
    "cat": lambda x: tp.cat([x.sin(), x * x]),
    "stack": lambda x: tp.stack([x, x.cos()], 1) @ _pattern((2, 2), 0.4),
    "where": lambda x: tp.where(x > 0.2, x * x, x.sin()),
    "flip": lambda x: x.flip(0) * x.exp(),
    "norm": lambda x: tp.linalg.vector_norm(x) * x,
    "solve": lambda x: tp.linalg.solve(_matrix(x), x),
    "inplace": _inplace,
    "view": _through_a_view,
    "inner_gradient": _inner_gradient,
}

POINT = tp.tensor([0.7, -0.4, 1.1], dtype=F64)


def check_function(name: str, names: tuple[str, ...], differences: bool = False) -> None:
    """One function of the table through one nesting."""
    if differences:
        compare(FUNCTIONS[name], POINT, names, 1e-5, by_differences)
    else:
        compare(FUNCTIONS[name], POINT, names)


def check_all(depth: int = 3, show: bool = True, differences: bool = False) -> list[str]:
    """Every function through every nesting; the failures as lines of text."""
    failures = []
    cases = list(itertools.product(FUNCTIONS, nestings(depth)))
    for k, (name, names) in enumerate(cases):
        try:
            check_function(name, names, differences)
        except Exception as error:
            failures.append(f"{name}: {'('.join(reversed(names))}: {type(error).__name__}: {error}")
            if show:
                print(failures[-1], flush=True)
        if show and k % 500 == 499:
            print(f"{k + 1} of {len(cases)}, {len(failures)} failed", flush=True)
    return failures


# ---- random programs -------------------------------------------------------------------------------------------------

_UNARY: tuple[Fn, ...] = (
    lambda a: a.sin(), lambda a: a.tanh(), lambda a: a * a, lambda a: (a * 0.3).exp(), lambda a: a.sigmoid(),
    lambda a: (a * a + 1.0).log(), lambda a: (a * a + 0.5).sqrt(), lambda a: -a, lambda a: a / (2.0 + a.cos()),
    lambda a: a.relu(), lambda a: a.abs() + a, lambda a: a.clamp(-0.8, 0.9), lambda a: tp.where(a > 0.1, a, a * a),
    lambda a: a.detach() * a, lambda a: a.clone().sub_(a * a), lambda a: (a * 1.0).add_(a.sin()),
    lambda a: tp.nn.functional.softplus(a), lambda a: tp.nn.functional.gelu(a), lambda a: a.atan(),
)  # fmt: skip
_REDUCTIONS: tuple[Callable[[Any, int], Any], ...] = (
    lambda a, d: a.sum(d), lambda a, d: a.mean(d, keepdim=True), lambda a, d: tp.logsumexp(a, d),
    lambda a, d: tp.softmax(a, d), lambda a, d: a.cumsum(d), lambda a, d: a.amax(d), lambda a, d: a.flip(d),
    lambda a, d: tp.cat([a, a.sin()], d), lambda a, d: a.unsqueeze(d), lambda a, d: a.select(d, 0),
    lambda a, d: a.narrow(d, 0, 1), lambda a, d: tp.log_softmax(a, d), lambda a, d: a.var(d) if a.shape[d] > 1 else a,
    lambda a, d: tp.sort(a, d)[0], lambda a, d: tp.stack([a, a * a], d), lambda a, d: a.roll(1, d),
    lambda a, d: tp.index_select(a, d, tp.tensor([0, 0])), lambda a, d: (a + 2.0).prod(d),
)  # fmt: skip
_BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - 0.5 * b, lambda a, b: a / (b * b + 1.0),
    lambda a, b: tp.maximum(a, b), lambda a, b: tp.atan2(a, b * b + 1.0), lambda a, b: tp.hypot(a, b + 3.0),
    lambda a, b: a + b.sum(), lambda a, b: (a * a + 0.5) ** (0.2 * b), lambda a, b: tp.where(a > b, a, b * b),
)  # fmt: skip
_SHAPES: tuple[Fn, ...] = (
    lambda a: a.reshape(-1), lambda a: a.mT if a.ndim >= 2 else a, lambda a: a @ a.mT if a.ndim >= 2 else a * a.sum(),
    lambda a: a.reshape(-1) @ a.reshape(-1), lambda a: a.expand(2, *a.shape), lambda a: a[..., :1] if a.ndim else a,
    lambda a: a[..., tp.tensor([0, 0])] if a.ndim else a, lambda a: a.unsqueeze(0) + a.unsqueeze(-1),
    lambda a: tp.linalg.vector_norm(a + 0.1), lambda a: a.reshape(-1).diag() if a.numel() < 5 else a,
)  # fmt: skip


def random_program(rng: random.Random) -> tuple[Fn, str]:
    """A function of a tensor, made of random ops, and how to read it."""
    steps: list[tuple[str, int, int, int]] = []
    for _ in range(rng.randint(2, 6)):
        kind = rng.choice("uuurrbbs")
        table: Any = {"u": _UNARY, "r": _REDUCTIONS, "b": _BINARY, "s": _SHAPES}[kind]
        steps.append((kind, rng.randrange(len(table)), rng.randrange(8), rng.randrange(8)))

    def program(x: Any) -> Any:
        values = [x]
        for kind, op, p, q in steps:
            a = values[-1 - p % min(2, len(values))]
            if kind == "u":
                r = _UNARY[op](a)
            elif kind == "s":
                r = _SHAPES[op](a)
            elif kind == "r":
                r = _REDUCTIONS[op](a, q % a.ndim - (a.ndim if q > 4 else 0)) if a.ndim else a.sin()
            else:
                b = values[q % len(values)]
                try:
                    tp.broadcast_shapes(a.shape, b.shape)
                except (RuntimeError, ValueError):
                    b = b.sum()
                r = _BINARY[op](a, b)
            values.append(r if r.numel() <= 40 else r.mean())
        return values[-1]

    return program, " ".join(f"{k}{op}.{p}.{q}" for k, op, p, q in steps)


def check_random(count: int, seed: int, show: bool = True) -> list[str]:
    """Random programs through random nestings; program k depends on (seed, k) alone."""
    failures = []
    for k in range(count):
        rng = random.Random(f"{seed}/{k}")
        program, text = random_program(rng)
        names = tuple(rng.choice(list(TRANSFORMS)) for _ in range(rng.choice((1, 2, 2, 3))))
        shape = rng.choice(((3,), (2, 2), (2, 1, 2), ()))
        n = 1
        for s in shape:
            n *= s
        x = tp.tensor([rng.uniform(-1.2, 1.2) for _ in range(n)], dtype=F64).reshape(shape)
        size = n
        for name in names:  # Jacobians of Jacobians of many elements say no more than those of few
            size *= n if name.startswith("jac") else 3 if name == "vmap" else 1
        if size > 600:
            names = names[:2]
        try:
            program(x), program(_samples(x)[1])
        except (RuntimeError, ValueError, IndexError):
            continue  # sizes that do not fit: no program
        try:
            compare(program, x, names, 1e-6)
        except Exception as error:
            line = f"{seed}/{k}: {text} at {tuple(shape)}: {'('.join(reversed(names))}: {type(error).__name__}: {error}"
            failures.append(line)
            if show:
                print(line, flush=True)
        if show and k % 500 == 499:
            print(f"{k + 1} programs, {len(failures)} failed", flush=True)
    return failures


def main(argv: list[str] | None = None) -> int:
    """The command line; 1 where something differed."""
    p = argparse.ArgumentParser(prog="python -m tensorplay.testing.transforms", description=__doc__)
    p.add_argument("--all", action="store_true", help="every function through every nesting")
    p.add_argument("--depth", type=int, default=3)
    p.add_argument("--differences", action="store_true", help="the reference of --all: differences of values alone")
    p.add_argument("--random", type=int, default=0, metavar="N", help="random programs")
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args(argv)
    failures: list[str] = []
    if args.all:
        failures += check_all(args.depth, differences=args.differences)
    if args.random:
        failures += check_random(args.random, args.seed)
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
