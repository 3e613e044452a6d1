"""Checks of values: against the reference, by shape, layout, dtype, at edges and singular points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import SkipTest

import numpy as np
import tensorplay as tp
from tensorplay.codegen import numpy_ops
from tensorplay.codegen.numpy_random import GENERATOR

from .inputs import COMPLEX, FLOATS, INTEGERS, Sample, argument_types, reference, reference_or_none, samples
from .rows import Op, array, call, compare, held_to, results, tensor


def check_values(op: Op) -> None:
    seen = 0
    for s in samples(op):
        want = reference(op, s)
        if want is None:
            continue
        got = call(op, s, {k: tensor(v) for k, v in s.given.items()})
        compare(op, got, want, s.text, held_to(s, got))
        seen += 1
    assert seen or not any(f.like for f in op.forms), f"{op.name}: no sample could be compared with its reference"


def form_of(op: Op) -> Callable[..., Any] | None:
    """The plain NumPy form that `check` compares an entry with where no call of NumPy is its reference."""
    if op.package:
        return None
    form: Callable[..., Any] | None = numpy_ops.find(op.name, None)
    return form


def check_form(op: Op) -> None:
    """The compiled op against its NumPy form; of what draws, the cases that come out alike whatever is drawn."""
    form = form_of(op)
    assert form is not None
    seen = 0
    for s in samples(op):
        if s.form.like or s.form.values:
            continue
        given = _of_the_form(s)
        want = results(form(*given.values()))
        if "generator" in given:
            other = results(form(*{**given, "generator": GENERATOR}.values()))
            if not all(np.array_equal(a, b) for a, b in zip(want, other, strict=True)):
                continue
        got = call(op, s, {k: tensor(v) for k, v in s.given.items()})
        compare(op, got, want, s.text, held_to(s, got))
        seen += 1
    if not seen:
        raise SkipTest(f"{op.name}: every draw is another")


def _of_the_form(s: Sample) -> dict[str, Any]:
    """All arguments in order, one number for int[2] as two of them."""
    given: dict[str, Any] = {}
    for name, type_, *rest in s.form.args:
        v = s.given.get(name, rest[0] if rest else None)
        count = type_.replace("?", "").removeprefix("int[").removesuffix("]")
        if count.isdigit() and isinstance(v, int):
            v = (v,) * int(count)
        given[name] = v.astype(np.float64) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v
    return given


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
            try:
                out = results(call(op, s, given))
            except RuntimeError:
                if op.view_of is None:
                    raise
                continue  # this memory has no such view, and the op said so
            for got, want in zip(out, plain, strict=True):
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
    """A dtype the entry takes works and gives the promised dtype; one it does not take is refused by name."""
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
                except (TypeError, RuntimeError) as e:
                    assert op.name in str(e), f"{op.name} on {name}: the message does not name the op: {e}"
                    continue
                raise AssertionError(f"{op.name} took {name}, which its entry does not list")
            try:
                got = call(op, s, given)
            except (TypeError, RuntimeError) as e:
                assert not op.dtypes and op.name in str(e), f"{op.name} on {name}: {e}"
                continue  # its formula has no form for the type
            want = reference_or_none(op, s)
            if want is not None and (name == "i64" or name not in INTEGERS):
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
