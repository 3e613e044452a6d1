"""What the generated tests check of an op, given its row of plain data: values, derivatives to third order, tangents,
dtypes, shapes, layouts, in-place forms, edges, messages, memory.

The row names a reference (`like`); nothing here is computed from the op's own formulas. `inputs.py` draws the inputs.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tensorplay as tp

from .inputs import COMPLEX, FLOATS, INTEGERS, Sample, argument_types, draw, reference, samples

__all__ = ["Check", "Form", "Op", "checks"]


@dataclass(frozen=True)
class Form:
    """One signature: (name, type[, default[, "kwonly"]]) of each argument, and the reference of its results."""

    args: tuple[tuple[Any, ...], ...]
    results: tuple[str, ...]  # "out", "out[]" for a list
    diff: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    diff_results: tuple[str, ...] | None = None
    saved: tuple[str, ...] = ()
    like: str = ""
    kind: str = ""  # name | expr | mpmath
    values: tuple[tuple[Any, ...], ...] = ()
    tests: str = ""  # a file of hand-written tests that has the values


@dataclass(frozen=True)
class Op:
    """One entry of ops.yaml, as far as its tests need it."""

    name: str
    forms: list[Form]
    home: str = ""
    elementwise: bool = False
    promote: str = "common"
    dtypes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    inplace: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    out: bool = False
    view_of: str | None = None
    python: bool = False
    domains: dict[str, tuple[float, float]] = field(default_factory=dict)
    edges: dict[str, tuple[float, ...]] = field(default_factory=dict)
    params: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    shapes: tuple[tuple[int, ...], ...] = ()
    cases: tuple[dict[str, Any], ...] = ()
    tol: float | None = None
    skip: dict[str, str] = field(default_factory=dict)
    special: tuple[dict[str, Any], ...] = ()

    @property
    def function(self) -> Callable[..., Any]:
        """The public function; an internal op is found in the compiled module."""
        place: Any = tp._C.internal if self.home == "internal" else tp
        for part in self.home.split(".") if self.home not in ("", "internal") else ():
            place = getattr(place, part)
        return getattr(place, self.name)  # type: ignore[no-any-return]

    def allows(self, dtype: str) -> bool:
        return not self.dtypes or dtype in self.dtypes


@dataclass(frozen=True)
class Check:
    """One thing checked of one op. Its text is the test's id and begins with the op's name."""

    op: Op
    what: str
    body: Callable[[Op], None]

    def __str__(self) -> str:
        return f"{self.op.name}-{self.what}"

    def run(self) -> None:
        import pytest

        why = self.op.skip.get(self.what) or self.op.skip.get("all")
        if why:
            pytest.skip(why)
        self.body(self.op)


def checks(ops: Sequence[Op]) -> list[Check]:
    return [Check(op, what, body) for op in ops for what, body in _applicable(op)]


def _applicable(op: Op) -> Iterator[tuple[str, Callable[[Op], None]]]:
    drawn = bool(op.cases) or op.elementwise
    diff = any(f.diff for f in op.forms)
    values = any(f.like or f.values for f in op.forms)
    if drawn and values:
        yield "values", check_values
        if op.elementwise:
            yield "shapes", check_shapes
            yield "dtypes", check_dtypes
        yield "layouts", check_layouts
    if op.edges and values:
        yield "edges", check_edges
    if op.special:
        yield "special", check_special
    if drawn and diff:
        for order, what in ((1, "grad"), (2, "gradgrad"), (3, "third")):
            yield what, lambda op, order=order: check_order(op, order)
        yield "tangent", check_tangent
        yield "saved", check_saved
        yield "leak", check_leak
        if any(op.allows(d) for d in ("c64", "c128")) and op.elementwise:
            yield "complex", check_complex
    if op.inplace and drawn:
        yield "inplace", check_inplace
    if (op.methods or op.operators or op.out) and drawn:
        yield "faces", check_faces
    yield "messages", check_messages


# ---- calling --------------------------------------------------------------------------------------------------------


def tensor(value: Any, dtype: Any = None) -> Any:
    """An array (or a list of them) as tensors; anything else as it is."""
    if isinstance(value, np.ndarray):
        t = tp.tensor(value)
        return t if dtype is None or value.dtype.kind in "biu" else t.to(dtype)
    if isinstance(value, list):
        return [tensor(v, dtype) for v in value]
    return value


def call(op: Op, s: Sample, given: dict[str, Any]) -> Any:
    """The op on named arguments, positional ones by position."""
    positional, named = [], {}
    for name, _, *rest in s.form.args:
        if name not in given:
            continue
        if "kwonly" in rest[1:] or len(positional) < [a[0] for a in s.form.args].index(name):
            named[name] = given[name]
        else:
            positional.append(given[name])
    return op.function(*positional, **named)


def results(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return list(value)
    return [value]


def array(t: Any) -> np.ndarray[Any, Any]:
    if not isinstance(t, tp.Tensor):
        return np.asarray(t)
    t = t.detach()
    return np.asarray((t.to(tp.float32) if t.dtype == tp.bfloat16 else t).numpy())


def tolerance(op: Op, dtype: str = "f64") -> tuple[float, float]:
    loose = {"f64": 1e-10, "c128": 1e-10, "f32": 2e-5, "c64": 2e-5, "f16": 4e-3, "bf16": 3e-2}.get(dtype, 1e-10)
    tol = max(loose, op.tol or 0.0)
    return tol, tol


def compare(op: Op, got: Any, want: Any, note: str, dtype: str = "f64") -> None:
    rtol, atol = tolerance(op, dtype)
    got_all, want_all = results(got), want if isinstance(want, list) else [want]
    assert len(got_all) == len(want_all), f"{op.name}: {len(got_all)} results, the reference has {len(want_all)}"
    for g, w in zip(got_all, want_all, strict=True):
        a, w = array(g), np.asarray(w)
        assert a.shape == w.shape, f"{op.name} {note}: sizes {a.shape}, the reference has {w.shape}"
        if a.dtype.kind in "biu" and w.dtype.kind in "biu":
            np.testing.assert_array_equal(a, w, err_msg=f"{op.name} {note}")
        else:
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(a, w, rtol=rtol, atol=atol, equal_nan=True, err_msg=f"{op.name} {note}")


# ---- values ---------------------------------------------------------------------------------------------------------


def check_values(op: Op) -> None:
    seen = 0
    for s in samples(op):
        want = reference(op, s)
        if want is None:
            continue
        compare(op, call(op, s, {k: tensor(v) for k, v in s.given.items()}), want, s.text)
        seen += 1
    assert seen or not any(f.like for f in op.forms), f"{op.name}: no sample could be compared with its reference"


def check_shapes(op: Op) -> None:
    """0-d, empty and broadcast operands."""
    for shapes in (((),), ((0,),), ((2, 0, 3),), ((2, 3), (3,), ()), ((2, 1), (1, 3), (2, 3)), ((3,), (4, 3), (1, 1))):
        for s in samples(op, shapes=shapes, limit=1):
            want = reference(op, s)
            if want is not None:
                compare(op, call(op, s, {k: tensor(v) for k, v in s.given.items()}), want, s.text)


def check_layouts(op: Op) -> None:
    """Transposed, stepped and reversed memory gives what contiguous memory gives."""
    for s in samples(op, limit=2):
        plain = [array(r) for r in results(call(op, s, {k: tensor(v) for k, v in s.given.items()}))]
        for what, layout in (("transposed", _transposed), ("stepped", _stepped), ("reversed", _reversed)):
            given = {k: layout(v) if isinstance(v, np.ndarray) else tensor(v) for k, v in s.given.items()}
            for got, want in zip(results(call(op, s, given)), plain, strict=True):
                np.testing.assert_allclose(
                    array(got), want, rtol=1e-12, atol=1e-12, err_msg=f"{op.name}: {what} {s.text}"
                )


def _transposed(a: np.ndarray[Any, Any]) -> Any:
    axes = tuple(range(a.ndim))[::-1]
    return tp.tensor(np.ascontiguousarray(a.transpose(axes))).permute(axes) if a.ndim > 1 else tp.tensor(a)


def _stepped(a: np.ndarray[Any, Any]) -> Any:
    if a.ndim == 0:
        return tp.tensor(a)
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    wide[..., ::2] = a
    return tp.from_numpy(wide)[..., ::2]


def _reversed(a: np.ndarray[Any, Any]) -> Any:
    return tp.tensor(np.ascontiguousarray(a[..., ::-1])[..., ::-1]) if a.ndim else tp.tensor(a)


def check_dtypes(op: Op) -> None:
    """Every dtype the entry takes works and gives the promised dtype; a dtype it does not take is a TypeError by name."""
    form = op.forms[0]
    for name in (*INTEGERS, *FLOATS, *COMPLEX):
        for s in samples(op, dtype=name, limit=1, only=form):
            given = {
                k: tensor(v, getattr(tp, FLOATS.get(name) or COMPLEX.get(name, ""), None)) for k, v in s.given.items()
            }
            if op.dtypes and not op.allows(name):
                if name in INTEGERS and op.promote.startswith("float"):
                    continue  # becomes the default float
                try:
                    call(op, s, given)
                except TypeError as e:
                    assert op.name in str(e), f"{op.name} on {name}: the message does not name the op: {e}"
                    continue
                raise AssertionError(f"{op.name} took {name}, which its entry does not list")
            try:
                got = call(op, s, given)
            except TypeError as e:
                assert not op.dtypes and op.name in str(e), f"{op.name} on {name}: {e}"
                continue  # its formula has no form for the type
            want = reference(op, s)
            if want is not None and name not in ("u8", "i8", "i16", "i32", "bool"):
                compare(op, got, want, f"on {name}", name if name not in INTEGERS else "f32")
            promised = _promised(op, name)
            if promised is not None and isinstance(got, tp.Tensor):
                assert got.dtype == promised, f"{op.name} on {name}: {got.dtype}, promised {promised}"


def _promised(op: Op, name: str) -> Any:
    own = getattr(tp, {**INTEGERS, **FLOATS, **COMPLEX}[name])
    real = {"c64": tp.float32, "c128": tp.float64}.get(name, own)
    match op.promote:
        case "common" | "input":
            return own if name != "bool" else None
        case "bool":
            return tp.bool
        case "float":
            return own if name not in INTEGERS else tp.get_default_dtype()
        case "real":
            return real if name != "bool" else None
        case "float_real":
            return real if name not in INTEGERS else tp.get_default_dtype()
    return None


def check_edges(op: Op) -> None:
    for arg, points in op.edges.items():
        for s in samples(op, limit=3):
            given = dict(s.given)
            names = [arg] if arg else [n for n in given if isinstance(given[n], np.ndarray)]
            for n in names:
                if n in given and isinstance(given[n], np.ndarray) and given[n].dtype.kind == "f":
                    edge = s.replace(
                        {
                            k: np.full(len(points), v.ravel()[0]) if isinstance(v, np.ndarray) else v
                            for k, v in given.items()
                        }
                    )
                    edge.given[n] = np.asarray(points, dtype=given[n].dtype)
                    with np.errstate(all="ignore"):
                        want = reference(op, edge)
                    if want is not None:
                        compare(
                            op,
                            call(op, edge, {k: tensor(v) for k, v in edge.given.items()}),
                            want,
                            f"at {n} = {points}",
                        )


def check_special(op: Op) -> None:
    """The rows of `special`: values and partial derivatives decided in the entry."""
    for row in op.special:
        form = next(
            f
            for f in op.forms
            if all(k in {a[0] for a in f.args} for k in row if not k.startswith("d_") and k not in f.results)
        )
        types = argument_types(form)
        given: dict[str, Any] = {}
        leaves: dict[str, Any] = {}
        for name, value in row.items():
            if name in types and types[name].startswith("Tensor"):
                # A point of one element: 0-d tensors would leave reductions and broadcasting out.
                leaves[name] = tp.tensor([value], dtype=tp.complex128 if isinstance(value, complex) else tp.float64)
                leaves[name].requires_grad_(f"d_{name}" in row)
                given[name] = leaves[name]
            elif name in types:
                given[name] = value
        out = call(op, Sample(form, {}), given)
        for name, want in row.items():
            if name in form.results:
                np.testing.assert_allclose(
                    array(out)[0], want, rtol=1e-12, equal_nan=True, err_msg=f"{op.name} at {row}"
                )
            elif name.startswith("d_") and name[2:] in leaves:
                (got,) = tp.autograd.grad(out.sum(), [leaves[name[2:]]], retain_graph=True)
                np.testing.assert_allclose(
                    array(got)[0], want, rtol=1e-12, equal_nan=True, err_msg=f"{op.name}, {name} at {row}"
                )


# ---- derivatives ----------------------------------------------------------------------------------------------------


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


def projected(p: Probe, xs: list[Any], dirs: Sequence[Sequence[np.ndarray[Any, Any]]]) -> Any:
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
        numeric = _central(
            lambda t, p=p, dirs=dirs: float(
                array(projected(p, p.leaves([a + t * v for a, v in zip(p.start, dirs[-1], strict=True)]), dirs[:-1]))
            )
        )
        assert math.isfinite(exact), f"{op.name}, order {order}, {s.text}: {exact}"
        tol = max(2e-6 * 10 ** (order - 1), op.tol or 0.0)
        assert abs(exact - numeric) <= tol * (1 + abs(exact) + abs(numeric)), (
            f"{op.name}, derivative of order {order}, {s.text}: {exact:.12g}, differences give {numeric:.12g}"
        )


def _central(f: Callable[[float], float], h: float = 1e-3) -> float:
    """Fourth-order central difference, extrapolated once."""

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
            numeric = _central(
                lambda t, p=p, dirs=dirs: float(
                    array(
                        projected(p, p.leaves([a + t * v for a, v in zip(p.start, dirs[-1], strict=True)]), dirs[:-1])
                    )
                )
            )
            tol = max(2e-5, op.tol or 0.0)
            assert abs(exact - numeric) <= tol * (1 + abs(exact)), (
                f"{op.name}, complex, order {order}, {s.text}: {exact}, {numeric}"
            )


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


# ---- memory and faces -----------------------------------------------------------------------------------------------


def check_saved(op: Op) -> None:
    """An in-place change of what the backward reads is refused; of what it does not read, allowed."""
    for s in list(differentiable(op))[:1]:
        for name in s.form.diff:
            if not isinstance(s.given.get(name), np.ndarray) or s.given[name].size == 0:
                continue
            p = Probe(op, s, np.random.default_rng(3))
            xs = p.leaves(p.start)
            inner = [x * 1 for x in xs]
            total = p.scalar(inner)
            changed = inner[[k for k, _ in p.places].index(name)]
            if not isinstance(total, tp.Tensor) or not total.requires_grad:
                continue
            with tp.no_grad():
                changed.mul_(1.5)
            if name in s.form.saved:
                try:
                    total.backward()
                except RuntimeError as e:
                    assert "version" in str(e) or "in-place" in str(e), f"{op.name}: {e}"
                else:
                    raise AssertionError(
                        f"{op.name}: '{name}' was changed after it was saved, and backward did not notice"
                    )


def check_leak(op: Op) -> None:
    """Repeated calls with and without backward leave no memory behind."""
    for s in list(differentiable(op))[:1]:
        p = Probe(op, s, np.random.default_rng(11))

        def once(p: Probe = p) -> None:
            total = p.scalar(p.leaves(p.start))
            if isinstance(total, tp.Tensor) and total.requires_grad:
                total.backward()

        def live() -> int:
            gc.collect()
            return int(tp.memory.stats()["blocks"])

        for _ in range(3):
            once()
        before = live()
        for _ in range(20):
            once()
        after = live()
        assert after <= before, f"{op.name}: {after - before} blocks of memory stayed after 20 runs"


def check_inplace(op: Op) -> None:
    """op_ leaves what op returns, and has its gradient."""
    for s in samples(op, limit=2):
        first = s.form.args[0][0]
        if not isinstance(s.given.get(first), np.ndarray):
            continue
        want = call(op, s, {k: tensor(v) for k, v in s.given.items()})
        if not isinstance(want, tp.Tensor) or tuple(want.shape) != s.given[first].shape:
            continue
        rest = {k: tensor(v) for k, v in s.given.items() if k != first}
        for name in op.inplace:
            x = tensor(s.given[first])
            if x.dtype != want.dtype:
                continue
            got = getattr(x, name)(*_positional(s, rest), **_keywords(s, rest))
            assert got is x, f"Tensor.{name} does not return its tensor"
            np.testing.assert_allclose(array(x), array(want), rtol=1e-12, atol=1e-12, err_msg=f"Tensor.{name}")
        if first in s.form.diff and s.given[first].dtype.kind == "f":
            grads = []
            for inplace in (False, True):
                leaf = tensor(s.given[first]).requires_grad_()
                x = leaf * 1
                method = getattr(x, op.inplace[0]) if inplace else None
                y = method(*_positional(s, rest), **_keywords(s, rest)) if method else call(op, s, {first: x, **rest})
                grads.append(array(tp.autograd.grad(y.sum(), [leaf])[0]))
            np.testing.assert_allclose(
                grads[1], grads[0], rtol=1e-12, atol=1e-12, err_msg=f"gradient of Tensor.{op.inplace[0]}"
            )


def _positional(s: Sample, given: dict[str, Any]) -> list[Any]:
    return [given[a[0]] for a in s.form.args[1:] if a[0] in given and "kwonly" not in a[3:]]


def _keywords(s: Sample, given: dict[str, Any]) -> dict[str, Any]:
    return {a[0]: given[a[0]] for a in s.form.args[1:] if a[0] in given and "kwonly" in a[3:]}


_UNARY = {"neg": lambda x: -x, "pos": lambda x: +x, "~": lambda x: ~x, "abs": abs}


def check_faces(op: Op) -> None:
    """Method, operator and out= agree with the function."""
    import operator as o

    binary = {
        "+": o.add, "-": o.sub, "*": o.mul, "/": o.truediv, "//": o.floordiv, "%": o.mod, "**": o.pow, "@": o.matmul, "&": o.and_,
        "|": o.or_, "^": o.xor, "<<": o.lshift, ">>": o.rshift, "==": o.eq, "!=": o.ne, "<": o.lt, "<=": o.le, ">": o.gt, ">=": o.ge,
    }  # fmt: skip
    for s in samples(op, limit=1):
        given = {k: tensor(v) for k, v in s.given.items()}
        want = [array(r) for r in results(call(op, s, given))]
        first = s.form.args[0][0]
        rest = {k: v for k, v in given.items() if k != first}
        if isinstance(given.get(first), tp.Tensor):
            for name in op.methods:
                got = results(getattr(given[first], name)(*_positional(s, rest), **_keywords(s, rest)))
                for g, w in zip(got, want, strict=True):
                    np.testing.assert_array_equal(array(g), w, err_msg=f"Tensor.{name}")
        tensors = [v for v in given.values() if isinstance(v, tp.Tensor)]
        defaults = all(len(a) > 2 and given.get(a[0], a[2]) == a[2] for a in s.form.args[len(tensors) :])
        for sym in op.operators if defaults else ():
            got = _UNARY[sym](tensors[0]) if sym in _UNARY else binary[sym](tensors[0], tensors[1])
            np.testing.assert_array_equal(array(got), want[0], err_msg=f"operator {sym} of {op.name}")
        if op.out and len(want) == 1:
            out = tp.empty(want[0].shape, dtype=results(call(op, s, given))[0].dtype)
            got = op.function(
                *[given[a[0]] for a in s.form.args if a[0] in given and "kwonly" not in a[3:]],
                **_keywords(s, given),
                out=out,
            )
            assert got is out, f"{op.name}: out= is not returned"
            np.testing.assert_array_equal(array(out), want[0], err_msg=f"out= of {op.name}")


def check_messages(op: Op) -> None:
    """Wrong calls raise TypeError or ValueError that begin with the op's name."""
    f = op.function
    for args, kwargs in (((), {"no_such_argument": 1}), ((object(),) * 12, {})):
        try:
            f(*args, **kwargs)
        except TypeError as e:
            assert op.name in str(e), f"{op.name}: the message does not name the op: {e}"
        else:
            raise AssertionError(f"{op.name} took {args} {kwargs}")
    form = op.forms[0]
    tensors = [a[0] for a in form.args if a[1] in ("Tensor", "Tensor?")]
    if op.elementwise and len(tensors) > 1:
        for s in samples(op, shapes=((2, 3), (4,), (5,)), limit=1, only=form, broadcast=False):
            try:
                call(op, s, {k: tensor(v) for k, v in s.given.items()})
            except ValueError as e:
                assert op.name in str(e) and "[4]" in str(e), f"{op.name}: sizes are not named: {e}"
            else:
                raise AssertionError(f"{op.name} broadcast [2, 3] with [4]")
