"""Rows of the generated tests: an op as plain data, and how it is called and compared. Checks nothing by itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorplay as tp

from .inputs import COMPLEX, FLOATS, INTEGERS, Sample


@dataclass(frozen=True)
class Form:
    """One signature: (name, type[, default[, "kwonly"]]) of each argument, and the reference of its results."""

    args: tuple[tuple[Any, ...], ...]
    results: tuple[str, ...]  # "out", "out[]" for a list
    diff: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    diff_results: tuple[str, ...] | None = None
    saved: tuple[str, ...] = ()
    composed: bool = False  # of several ops, where the entry's other signatures are one loop
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
    package: str = ""  # of an op pack; "" for the library's own ops

    @property
    def function(self) -> Callable[..., Any]:
        """The public function; an internal op is found in the compiled module."""
        top: Any = importlib.import_module(self.package) if self.package else tp
        place: Any = tp._C.internal if self.home == "internal" else top
        for part in self.home.split(".") if self.home not in ("", "internal") else ():
            place = getattr(place, part)
        return getattr(place, self.name)

    @property
    def called(self) -> tuple[str, ...]:
        """Its names in messages: of the public function that an internal entry stands behind, and of methods."""
        return (str(tp._C._public_name(self.name)), *self.methods, *self.inplace)

    def inplace_form(self, name: str) -> Callable[..., Any]:
        """The in-place form under a name: a method of Tensor, or a function of the op's home."""
        if hasattr(tp.Tensor, name):
            method: Callable[..., Any] = getattr(tp.Tensor, name)
            return method
        place: Any = tp
        for part in self.home.split(".") if self.home else ():
            place = getattr(place, part)
        form: Callable[..., Any] = getattr(place, name)
        return form

    @property
    def unchecked_derivative(self) -> str:
        """Why differences say nothing here: `skip` names grad, or an argument or result that is not free."""
        names = {"grad", *(a[0] for f in self.forms for a in f.args), *(r for f in self.forms for r in f.results)}
        return next((why for k, why in self.skip.items() if k in names), "")

    def allows(self, dtype: str) -> bool:
        return not self.dtypes or dtype in self.dtypes


def tensor(value: Any, dtype: Any = None) -> Any:
    """An array (or a list of them) as tensors; anything else as it is."""
    if isinstance(value, np.ndarray):
        t = tp.tensor(value)
        return t if dtype is None or value.dtype.kind in "biu" else t.to(dtype)
    if isinstance(value, list):
        return [tensor(v, dtype) for v in value]
    return value


def call(op: Op, s: Sample, given: dict[str, Any]) -> Any:
    """The op on named arguments, positional ones by position. What it draws is the same at every call."""
    tp.manual_seed(0)
    positional, named = arguments(s, given)
    return op.function(*positional, **named)


def arguments(s: Sample, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Named arguments as a call takes them: by position, and by name."""
    given = plain(s, given)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, _, *rest in s.form.args:
        if name not in given:
            continue
        if "kwonly" in rest[1:] or len(positional) < [a[0] for a in s.form.args].index(name):
            named[name] = given[name]
        else:
            positional.append(given[name])
    return positional, named


def plain(s: Sample, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments as the op takes them: names of dtypes become dtypes."""
    names = {**INTEGERS, **FLOATS, **COMPLEX}
    types = {a[0]: a[1] for a in s.form.args}
    return {
        k: getattr(tp, names[v]) if types[k].startswith("dtype") and isinstance(v, str) else v for k, v in given.items()
    }


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


def held_to(s: Sample, got: Any) -> str:
    """The dtype whose precision results on float64 values have: the results' own where no operand has a float one."""
    if any(a.dtype.kind in "fc" for v in s.given.values() for a in results(v) if isinstance(a, np.ndarray)):
        return "f64"
    own = {str(t.dtype).rpartition(".")[2] for t in results(got) if isinstance(t, tp.Tensor)}
    return next((k for k, name in {**FLOATS, **COMPLEX}.items() if name in own), "f64")


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
            if not op.forms[0].diff and a.dtype.kind == w.dtype.kind == "f" and not w.any():
                # Zeros that are made, not computed, have the sign they were asked for.
                np.testing.assert_array_equal(np.signbit(a), np.signbit(w), err_msg=f"{op.name} {note}: signs of zero")
