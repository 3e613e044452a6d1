"""Structured entries against their reference: shapes, values of compose, vjp and tangent against differences.

A vjp is compared along random directions, so a wrong element anywhere shows; complex inputs too where the family
takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import numpy as np

from . import formula as F
from .check import attempt
from .errors import Diagnostics
from .functions import Unavailable, is_absent
from .model import LINEAR, NOWHERE, Diff, Entry, Formula, Loc, Overload, TensorCase
from .numpy_linalg import PHASE_FREE
from .reference import Env, Still, World, call_like, callable_like, case_inputs, results_of, rng_for
from .shape_rules import SHAPES
from .structured import META

STEP = 1e-5
TOL = 1e-5  # of derivatives against differences
EXACT = 1e-8  # of values against values
_PHYSICAL = ("is_contiguous", "readable")
_COMPLEX_FAMILIES = ("linalg", "view", "shape", "memory")


def check_structured(e: Entry, diags: Diagnostics, world: World, skipped: list[str]) -> None:
    # What elementwise formulas say is checked in `check.py`, but for overloads that are compositions.
    partial = e.elementwise and "vjp" not in e.keys
    mine = {o.index for o in e.overloads if o.compose or not partial}
    if not mine:
        return
    covered: dict[int, set[str]] = {}  # overload -> arguments that a case gives
    world.evaluate.seen = set()
    if not partial:
        declared_integers(e, diags)
    blind: set[int] = set()
    for i, case in enumerate(cases_of(e)):
        rng = rng_for(f"{e.op}/{i}")
        picked = case_inputs(e, case, rng)
        if picked is None:
            notes = [(o.sig.loc, "the signature") for o in e.overloads]
            text = f"op '{e.op}': case {i + 1} of test fits no overload"
            diags.add("E207", e.test.loc, text, "give every required argument", notes)
            continue
        if picked[0].index not in mine:
            continue
        covered.setdefault(picked[0].index, set()).update(k for k, v in picked[1].items() if v is not None)
        told = len(skipped)
        _CaseCheck(e, picked[0], picked[1], diags, world, skipped, rng, i).run()
        if len(skipped) > told:  # a callee without a numeric form ended the run: what follows was not reached
            blind.add(picked[0].index)
        numbers = e.family.name in _COMPLEX_FAMILIES or (e.elementwise and not partial)
        takes_complex = "c128" in e.dtypes if e.dtypes else numbers
        takes_complex = takes_complex and "complex" not in e.test.skip
        if takes_complex and any(isinstance(v, np.ndarray) and v.dtype == np.float64 for v in picked[1].values()):
            again = case_inputs(e, case, rng_for(f"{e.op}/{i}c"), True)
            if again is not None and not diags:
                _CaseCheck(e, again[0], again[1], diags, world, [], rng, i).run()
    world.evaluate.seen, seen = None, world.evaluate.seen
    for o in (e.overloads[k] for k in sorted(mine)):
        like = e.like_of(o.index)
        witness = callable_like(like, o) or callable_like(None, o)
        if witness and o.index in covered and o.index not in blind and seen and not diags:
            unrun(e, o, seen, diags)
        formulas = o.compose or any(d.formula for d in o.deriv.values())
        if o.compose and not o.foreign and e.home != ("internal",) and not callable_like(like, o):
            hint = "name a reference (like), or write a form of it in codegen/numpy_*.py"
            text = f"op '{e.op}': compose is compared with nothing here: like names tests alone"
            diags.add("E105", o.compose[-1][1].loc, text, hint, [(o.sig.loc, "the signature")])
        if formulas and o.index not in covered and not o.compose and not callable_like(like, o):
            skipped.append(f"{e.op}: like names tests alone, and check can't call them")
        if formulas and o.index not in covered and callable_like(like, o):
            args = ", ".join(f"{a.name}: ..." for a in o.sig.args if a.required)
            text = f"op '{e.op}': no test case checks the formulas of {o.sig.text}"
            diags.add("E105", o.sig.loc, text, f"test: {{cases: [{{{args}}}]}}")
        for name, d in o.deriv.items():
            if o.index in covered and name not in covered[o.index] and d.kind is Diff.FORMULA and d.formula:
                text = f"op '{e.op}': no test case of {o.sig.text} gives '{name}', so its formula is not checked"
                diags.add("E105", d.formula.loc, text, f"add {name}: [...] to a case", [(e.test.loc, "the cases")])


def unrun(e: Entry, o: Overload, seen: set[int], diags: Diagnostics) -> None:
    """A branch that no case runs could say anything. Where there is no reference, the callers' cases run it."""
    formulas = [(f"'{n}' of compose", f) for n, f in o.compose]
    formulas += [(f"vjp of '{n}'", d.formula) for n, d in o.deriv.items() if d.formula]
    formulas += [(f"tangent of '{n}'", f) for n, per in o.tangent.items() for f in per.values()]
    for what, f in formulas:
        for n in _outermost(f.node, seen):
            text = f"op '{e.op}': no test case runs '{F.to_text(n)[:80]}' in {what}"
            hint = "test: {check: [{...}]} has cases for check alone"
            diags.add("E105", f.loc, text, hint, [(o.sig.loc, "the signature"), (e.test.loc, "the cases")])
            return


def _outermost(n: F.Node, seen: set[int]) -> Iterator[F.Node]:
    if isinstance(n, F.Call) and n.func == "refused":
        return  # has nothing to say
    if isinstance(n, F.Call) and n.func == "where" and any(c in _PHYSICAL for c in F.calls(n.args[0])):
        return  # arrays are in order and can be read
    if id(n) not in seen:
        yield n
        return
    for c in F.children(n):
        yield from _outermost(c, seen)


def declared_integers(e: Entry, diags: Diagnostics) -> None:
    """A differentiable argument whose every test case is said to be indices or a mask: `nondiff` is missing."""
    if e.family.name == "memory":
        return
    for o in e.overloads:
        for name, d in o.deriv.items():
            given = [c[name] for c in e.test.cases if isinstance(c.get(name), TensorCase)]
            integers = [c for c in given if c.kind in ("index", "mask", "permutation") or _dtype_kind(c) in "iub"]
            if d.differentiable and given and len(integers) == len(given):
                text = f"op '{e.op}': '{name}' is integers in every test case, but is said to be differentiable"
                diags.add(
                    "E304", d.loc, text, f"nondiff: [{name}], or type it Tensor<i64>", [(o.sig.loc, "the signature")]
                )


def _dtype_kind(c: TensorCase) -> str:
    if c.dtype or c.values is None:
        return (c.dtype or "f")[0]
    return np.asarray(c.values).dtype.kind


def cases_of(e: Entry) -> tuple[Any, ...]:
    """The cases of test; an elementwise op needs none, any operands of one shape and the parameters to try do."""
    if e.test.cases or not e.elementwise:
        return (*e.test.cases, *e.test.check)
    out: list[dict[str, Any]] = []
    for o in e.overloads:
        tensors = {a.name: TensorCase((3,)) for a in o.sig.args if a.type.is_tensor and a.required}
        tried = [a.name for a in o.sig.args if a.name in e.test.params]
        combinations = islice(product(*(e.test.params[n] for n in tried)), 12)
        out += [{**tensors, **dict(zip(tried, values, strict=True))} for values in combinations]
    return (*out, *e.test.check)


class _CaseCheck:
    def __init__(
        self, e: Entry, o: Overload, env: Env, diags: Diagnostics, world: World, skipped: list[str], rng: Any, i: int
    ) -> None:
        self.e, self.o, self.env, self.diags, self.world = e, o, env, diags, world
        self.skipped, self.rng, self.i = skipped, rng, i
        self.like = e.like_of(o.index)
        if i >= len(cases_of(e)) - len(e.test.check) and callable_like(None, o):
            self.like = None  # a form of ours, where there is one: what is written in the entry can't draw

    def fault(self, code: str, loc: Loc, message: str, hint: str = "", notes: Any = ()) -> None:
        case = f" (test case {self.i + 1})" if self.e.test.cases or self.e.test.check else ""
        self.diags.add(code, loc, f"op '{self.e.op}': {message}{case}", hint, notes)

    def places(self) -> list[tuple[Loc, str]]:
        out = [(self.o.sig.loc, "the signature gives the order of arguments"), *self.world.helpers(self.o)]
        return [*out, self.compared, (self.e.test.loc, "the inputs")]

    @property
    def compared(self) -> tuple[Loc, str]:
        """What the rest of the entry is compared with, and where it stands; a form of ours has no place."""
        if callable_like(self.like, self.o):
            return self.like.loc if self.like is not None else NOWHERE, "the reference"
        if self.o.compose:
            return self.o.compose[-1][1].loc, "compose"
        return self.o.expr.loc if self.o.expr is not None else NOWHERE, "expr"

    @property
    def truth(self) -> str:
        return self.compared[1]

    def full(self, env: Env) -> Env:
        return {a.name: env.get(a.name, None if a.required else a.default) for a in self.o.sig.args}

    def forward(self, env: Env) -> tuple[Any, ...]:
        """Result values by the reference; by compose where there is none to call."""
        if callable_like(self.like, self.o):
            return results_of(attempt(call_like, self.like, self.o, env), self.o)
        return tuple(attempt(self.world.formula_value, self.e, self.o, self.full(env)))

    def run(self) -> None:
        try:
            out = self.forward(self.env)
        except Unavailable as ex:
            if self.o.compose or callable_like(self.like, self.o):
                self.unavailable(ex, self.reference_loc())
            else:
                self.skipped.append(f"{self.e.op}: case {self.i + 1}: {ex}")
            return
        if len(out) != len(self.o.sig.results):
            message = f"the reference gives {len(out)} results, the signature {len(self.o.sig.results)}"
            self.fault("E314", self.reference_loc(), message, notes=self.places())
            return
        for step in (self.shapes, self.values, self.gradients, self.tangents):
            try:
                if step == self.gradients and (wide := self.widened()) is not None:
                    self.env, out = wide, self.forward(wide)
                step(out)
            except Unavailable as ex:
                self.skipped.append(f"{self.e.op}: case {self.i + 1}, {step.__name__}: {ex}")

    def widened(self) -> Env | None:
        """Halves as double, where there are any: too coarse for differences, and formulas hold in every dtype."""
        halves = {k for k, v in self.env.items() if isinstance(v, np.ndarray) and v.dtype == np.float16}
        return {k: v.astype(np.float64) if k in halves else v for k, v in self.env.items()} if halves else None

    def reference_loc(self) -> Loc:
        loc, _ = self.compared
        return self.e.loc if loc == NOWHERE else loc

    def unavailable(self, ex: Unavailable, loc: Loc) -> None:
        """A formula or reference that fails on its own test case is a fault; one that this machine lacks is not."""
        if _is_missing(str(ex)):
            self.skipped.append(f"{self.e.op}: case {self.i + 1}: {ex}")
        else:
            lets = [(f.loc, f"'{n}'") for n, f in self.o.compose if f.loc != loc]
            lets += [(r.test.loc, "what it asks") for r in self.o.require]
            self.fault("E314", loc, f"cannot be computed: {ex}", notes=[*self.places(), *lets])

    # ---- shapes and values ----

    def shapes(self, out: tuple[Any, ...]) -> None:
        env = {k: _shape_of(v) for k, v in self.full(self.env).items()}
        for f, r, value in zip(self.o.shapes, self.o.sig.results, out, strict=False):
            try:
                got = self.shape_value(f, env)
            except Unavailable as ex:
                if not _is_missing(str(ex)):
                    self.fault("E312", f.loc, f"shape of '{r.name}' cannot be computed: {ex}", notes=self.places())
                continue
            want = tuple(np.shape(v) for v in value) if r.type.is_list else np.shape(value)
            got = tuple(tuple(x) for x in got) if r.type.is_list else tuple(got)
            if got != want:
                self.fault(
                    "E312",
                    f.loc,
                    f"shape of '{r.name}' is {list(got)}, {self.truth} has {list(want)}",
                    notes=self.places(),
                )

    def shape_value(self, f: Formula, env: Env) -> Any:
        from .evaluate import NumpyEvaluator

        plain = {"shape": lambda s: s, "ndim": len, "size": lambda s, d: s[d], "numel": lambda s: int(np.prod(s))}

        def find(name: str) -> Any:
            found = plain.get(name) or SHAPES.get(name) or META.get(name)
            if found is None:
                raise Unavailable(f"shape rule '{name}' is C++ only")
            return found

        return attempt(NumpyEvaluator(find), f.node, env)

    def values(self, out: tuple[Any, ...]) -> None:
        if not self.o.compose:
            return
        last = self.o.compose[-1][1]
        self.world.still = held = Still()
        try:
            got = attempt(self.world.formula_value, self.e, self.o, self.full(self.env))
        except Unavailable as ex:
            self.unavailable(ex, last.loc)
            return
        finally:
            self.world.still = None
        faults = len(self.diags.items)
        for r, a, b in zip(self.o.sig.results, got, out, strict=True):
            loc = next((f.loc for n, f in self.o.compose if n == r.name), last.loc)
            others = [(f.loc, f"'{n}'") for n, f in self.o.compose if n != r.name]
            pairs = list(zip(a, b, strict=False)) if r.type.is_list else [(a, b)]
            if any(np.shape(x) != np.shape(y) for x, y in pairs) or (r.type.is_list and len(a) != len(b)):
                self.fault(
                    "E312",
                    loc,
                    f"compose gives '{r.name}' another shape than the reference",
                    notes=[*self.places(), *others],
                )
            elif any(not np.allclose(x, y, tol := _exact(y), tol, equal_nan=True) for x, y in pairs):
                self.fault(
                    "E314",
                    loc,
                    f"compose gives '{r.name}' other values than the reference",
                    notes=[*self.places(), *others],
                )
        agrees = len(self.diags.items) == faults and callable_like(self.like, self.o)
        if agrees and held.matters and "grad" not in self.e.test.skip:
            self.slopes(out, held)

    def slopes(self, out: tuple[Any, ...], held: Still) -> None:
        """A composition's derivative is not that of its value where it calls detach, or an op that has none: what such
        calls gave stands still."""
        cotangents = {r.name: self.like_value(v) for r, v in zip(self.o.sig.results, out, strict=True)}

        def still(env: Env) -> tuple[Any, ...]:
            self.world.still = held.replay()
            try:
                return tuple(attempt(self.world.formula_value, self.e, self.o, self.full(env)))
            finally:
                self.world.still = None

        for name, d in self.o.deriv.items():
            x = self.env.get(name)
            if not d.differentiable or not _differentiable(x):
                continue
            for v in self.directions(x):
                got, want = self.slope(name, v, cotangents, still), self.slope(name, v, cotangents)
                if not np.isclose(got, want, TOL, TOL * 10):
                    text = f"compose moves by {got:.8g} with '{name}' along a direction, the reference by {want:.8g}"
                    others = [(f.loc, f"'{n}'") for n, f in self.o.compose[:-1]]
                    self.fault("E311", self.o.compose[-1][1].loc, text, notes=[*self.places(), *others])
                    break

    # ---- derivatives ----

    def gradients(self, out: tuple[Any, ...]) -> None:
        cotangents = {r.name: self.like_value(v) for r, v in zip(self.o.sig.results, out, strict=True)}
        scope = {**self.full(self.env), **{r.name: v for r, v in zip(self.o.sig.results, out, strict=True)}}
        if len(self.o.sig.results) == 1:
            scope["g"] = cotangents[self.o.sig.results[0].name]
        free = PHASE_FREE.get(self.o.kernel or "")
        if free is not None:
            cotangents[free] = _blind_to_phase(cotangents[free], scope[free])
        scope |= {f"g_{k}": v for k, v in cotangents.items()}
        for name, d in self.o.deriv.items():
            x = self.env.get(name)
            if x is None or not _differentiable(x):
                continue
            if d.kind is Diff.ZERO:
                # detach and kin cut the gradient on purpose.
                if self.e.family.name not in ("memory", "view") and any(
                    abs(self.slope(name, v, cotangents)) > 1e-4 for v in self.directions(x)
                ):
                    self.fault(
                        "E311", d.loc, f"'{name}' is under zero, but {self.truth} depends on it", notes=self.places()
                    )
                continue
            if d.kind is not Diff.FORMULA or d.formula is None:
                continue
            try:
                grad = attempt(self.world.evaluate, d.formula.node, scope)
            except Unavailable as ex:
                if _is_missing(str(ex)):
                    raise
                self.fault("E311", d.formula.loc, f"vjp of '{name}' cannot be computed: {ex}", notes=self.places())
                continue
            if _shape_of(grad) != _shape_of(x):
                text = f"vjp of '{name}' has shape {_show(grad)}, '{name}' has {_show(x)}"
                self.fault("E312", d.formula.loc, text, "reduce with sum_to(..., shape(" + name + "))", self.places())
                continue
            for v in self.directions(x):
                got = _inner(grad, v)
                want = self.slope(name, v, cotangents)
                if not np.isclose(got, want, TOL, TOL * 10):
                    text = f"vjp of '{name}' gives {got:.8g} along a direction, differences of {self.truth} {want:.8g}"
                    self.fault("E311", d.formula.loc, text, notes=self.places())
                    break

    def tangents(self, out: tuple[Any, ...]) -> None:
        if not self.o.tangent_rule and not self.o.tangent:
            return
        args = [a.name for a in self.o.diff_args if _differentiable(self.env.get(a.name))]
        if not args:
            return
        moves = {n: next(self.directions(self.env[n])) for n in args}
        ends = [
            self.forward({**self.env, **{n: _move(self.env[n], moves[n], s * STEP) for n in args}}) for s in (1, -1)
        ]
        results = {r.name: (a, b) for r, a, b in zip(self.o.sig.results, *ends, strict=True)}
        if self.o.tangent_rule == LINEAR:
            got = dict(zip((r.name for r in self.o.sig.results), self.forward({**self.env, **moves}), strict=True))
        elif self.o.tangent_rule:
            parts = [self.forward({**self.env, n: moves[n]}) for n in args]
            got = {r.name: _add([p[k] for p in parts]) for k, r in enumerate(self.o.sig.results)}
        else:
            scope = {**self.full(self.env), **{r.name: v for r, v in zip(self.o.sig.results, out, strict=True)}}
            got = {}
            for n in args:
                for rname, f in self.o.tangent.get(n, {}).items():
                    try:
                        v = attempt(self.world.evaluate, f.node, {**scope, "t": moves[n]})
                    except Unavailable as ex:
                        if _is_missing(str(ex)):
                            raise
                        self.fault("E315", f.loc, f"tangent of '{n}' cannot be computed: {ex}", notes=self.places())
                        return
                    got[rname] = v if rname not in got else _add([got[rname], v])
        for r in self.o.diff_results:
            a, b = results[r.name]
            want = _sub(a, b, 2 * STEP)
            if r.name in got and not _close(got[r.name], want):
                locs = [f.loc for per in self.o.tangent.values() for f in per.values()] or [self.e.keys["tangent"]]
                text = f"the tangent of '{r.name}' differs from differences of {self.truth}"
                self.fault("E315", locs[0], text, notes=[*((p, "another part") for p in locs[1:]), *self.places()])

    def directions(self, x: Any) -> Iterator[Any]:
        for _ in range(3):
            yield tuple(self.like_value(v) for v in x) if isinstance(x, tuple) else self.like_value(x)

    def like_value(self, v: Any) -> Any:
        if isinstance(v, tuple):
            return tuple(self.like_value(x) for x in v)
        shape = np.shape(v)
        r = self.rng.standard_normal(shape)
        return np.asarray(r + 1j * self.rng.standard_normal(shape) if np.iscomplexobj(v) else r)

    def slope(self, name: str, v: Any, cotangents: Env, of: Callable[[Env], tuple[Any, ...]] | None = None) -> float:
        ends = [(of or self.forward)({**self.env, name: _move(self.env[name], v, s * STEP)}) for s in (1, -1)]
        diff = {r.name for r in self.o.diff_results}
        total = 0.0
        for r, a, b in zip(self.o.sig.results, *ends, strict=True):
            if r.name in diff:
                total += _inner(cotangents[r.name], _sub(a, b, 2 * STEP))
        return total


def _blind_to_phase(g: Any, vectors: Any) -> Any:
    """A cotangent without its part that would see columns of unit length turn by a phase."""
    turn = np.imag(np.sum(np.conj(vectors) * g, axis=-2, keepdims=True))
    return g - 1j * turn * vectors


def _exact(x: Any) -> float:
    """How near a value comes to a value, in the dtype it is in."""
    kind = np.asarray(x).dtype
    return max(EXACT, 16 * float(np.finfo(kind).eps)) if kind.kind in "fc" else EXACT


def _is_missing(text: str) -> bool:
    missing = ("no numeric form", "no value", "like:", "no reference", "shape rule")
    return text.startswith(missing) or is_absent(text)


def _differentiable(x: Any) -> bool:
    if isinstance(x, tuple):
        return bool(x) and all(_differentiable(v) for v in x)
    return isinstance(x, np.ndarray) and x.dtype in (np.float64, np.complex128)  # others are too coarse for differences


def _shape_of(v: Any) -> Any:
    if isinstance(v, np.ndarray):
        return v.shape
    if isinstance(v, (tuple, list)) and v and all(isinstance(x, np.ndarray) for x in v):
        return tuple(x.shape for x in v)
    return v if not isinstance(v, np.generic) else ()


def _show(v: Any) -> Any:
    s = _shape_of(v)
    return list(s) if isinstance(s, tuple) else s


def _move(x: Any, v: Any, h: float) -> Any:
    return tuple(a + h * b for a, b in zip(x, v, strict=True)) if isinstance(x, tuple) else x + h * v


def _sub(a: Any, b: Any, h: float) -> Any:
    return tuple((p - q) / h for p, q in zip(a, b, strict=True)) if isinstance(a, tuple) else (a - b) / h


def _add(parts: list[Any]) -> Any:
    return tuple(sum(p) for p in zip(*parts, strict=True)) if isinstance(parts[0], tuple) else sum(parts)


def _inner(a: Any, b: Any) -> float:
    if isinstance(a, (tuple, list)):
        return sum(_inner(x, y) for x, y in zip(a, b, strict=True))
    return float(np.real(np.sum(np.conj(a) * b)))


def _close(a: Any, b: Any) -> bool:
    if isinstance(b, tuple):
        return (
            isinstance(a, (tuple, list)) and len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b, strict=True))
        )
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, TOL * 10, TOL * 10))
