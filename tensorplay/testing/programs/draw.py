"""How random programs are drawn: ops by the inputs their entries state, views and in-place ops on what they share
memory with, Functions, hooks, no_grad regions.

Every step is run as it is drawn, so that sizes fit and values stay finite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import tensorplay as tp

from ..inputs import COMPLEX, FLOATS, INTEGERS, Sample, argument_types, elementwise, structured
from ..rows import Form, Op
from .language import Array, Machine, Program, encode

SHAPES = ((), (3,), (5,), (2, 3), (4, 2), (3, 3), (2, 3, 2))
NAMES = {**INTEGERS, **FLOATS, **COMPLEX}
# Where the others draw, they draw differently.
RANDOM = ("dropout", "native_dropout", "bernoulli", "multinomial", "rand_like", "randn_like")


def differentiable(ops: Sequence[Op]) -> list[Op]:
    """The ops that take part: a derivative, test inputs, and arguments that move freely, symmetric ones symmetrically.

    Where other arguments determine one (Op.unchecked_derivative), differences over all of them say nothing.
    """
    return [
        op for op in ops
        if any(f.diff for f in op.forms) and (op.cases or op.elementwise)
        and not op.unchecked_derivative
    ]  # fmt: skip


@dataclass
class Value:
    """What the drawer knows of a name: which values share its memory, and whether they may be written."""

    name: str
    shape: tuple[int, ...]
    group: int


class Drawer:
    def __init__(self, ops: Sequence[Op], rng: np.random.Generator, counts: Counter[str]) -> None:
        self.ops, self.rng, self.counts = ops, rng, counts
        self.inplace_ops = [op for op in ops if op.inplace]

    # -- one program --
    def program(self) -> Program:
        rng = self.rng
        self.steps: list[dict[str, Any]] = []
        self.pool: list[Value] = []
        self.sealed: set[int] = set()  # groups nobody may write to
        self.groups = self.names = 0
        self.used: list[str] = []
        leaves = []
        for _ in range(rng.integers(2, 5)):
            value = np.asarray(rng.uniform(-1.5, 1.5, SHAPES[rng.integers(len(SHAPES))]))
            v = self.add(self.name(), value.shape)
            self.sealed.add(v.group)
            leaves.append({"name": v.name, "value": encode(value)})
        self.machine = Machine(tp, {"leaves": leaves, "steps": [], "weights": {}})
        for leaf, v in zip(leaves, self.pool, strict=True):
            told: Any = leaf["value"]
            self.machine.values[v.name] = tp.tensor(np.asarray(told["re"]).reshape(v.shape)).requires_grad_()
        length = int(rng.integers(5, 41))
        kinds = (self.op, self.view, self.fresh_inplace, self.alias_inplace, self.custom, self.quiet, self.cut)
        weights = np.asarray((58, 12, 6, 11, 6, 4, 3)) / 100
        while len(self.steps) < length:
            kinds[rng.choice(len(kinds), p=weights)]()
        ends = {v.name: v for v in self.pool if rng.random() < 0.8 or v is self.pool[-1]}
        self.counts.update(self.used)
        return {
            "leaves": leaves,
            "steps": self.steps,
            "weights": {n: encode(np.asarray(rng.uniform(-1, 1, v.shape))) for n, v in ends.items()},
            "backward": str(rng.choice(["backward", "grad", "inputs", "twice"], p=[0.5, 0.25, 0.15, 0.1])),
            "ours": any(s.get("home") == "internal" or s.get("op") in RANDOM for s in self.steps),
        }

    # -- names and values --
    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def add(self, name: str, shape: tuple[int, ...], group: int | None = None) -> Value:
        if group is None:
            self.groups += 1
            group = self.groups
        v = Value(name, tuple(shape), group)
        self.pool.append(v)
        return v

    def pick(self, *, writable: bool = False) -> Value | None:
        some = [v for v in self.pool if not writable or v.group not in self.sealed]
        # Late values first: chains get long.
        return some[-1 - min(int(self.rng.exponential(4)), len(some) - 1)] if some else None

    def do(self, *steps: dict[str, Any]) -> bool:
        """Runs the steps; they stay only where all of them work and leave finite values."""
        values = dict(self.machine.values)
        for i, step in enumerate(steps):
            try:
                self.machine.step(len(self.steps) + i, step)
            except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, KeyError):
                self.machine.values = values
                return False
            if step["do"] == "op":  # how many results there are is known now
                step["out"] = [n for n in step["out"] if n in self.machine.values]
                step["follows"] = any(self.machine.values[n].requires_grad for n in step["out"])
            for name in step["out"]:
                t = self.machine.values.get(name)
                if t is None or (_float(t) and not np.isfinite(t.detach().numpy()).all()):
                    self.machine.values = values
                    return False
        self.steps.extend(steps)
        return True

    # -- arguments --
    def feed(
        self, base: Array, span: float, symmetric: bool = False, apart_from: Value | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        source = self.pick()
        while source is None or (apart_from is not None and source.group == apart_from.group):
            source = self.pool[self.rng.integers(len(self.pool))]
        name = self.name()
        step: dict[str, Any] = {
            "do": "feed", "from": source.name, "shape": list(base.shape), "base": encode(base),
            "scale": round(float(0.03 * span), 4), "out": [name],
        }  # fmt: skip
        if symmetric:
            step["symmetric"] = True
        elif self.rng.random() < 0.08 and base.dtype.kind == "f":
            step["hook"] = float(self.rng.choice([-1.0, 0.5, 2.0]))
        return [step], {"v": name}

    def plain(self, type_: str, v: Any) -> Any:
        """A value of the entry's test inputs that stays as it is."""
        if isinstance(v, np.ndarray):
            return {"array": encode(v)}
        if isinstance(v, list) and any(isinstance(x, np.ndarray) for x in v):
            return {"list": [self.plain(type_, x) for x in v]}
        if isinstance(v, str) and type_.startswith("dtype"):
            return {"dtype": NAMES[v]}
        if isinstance(v, (list, tuple)):
            return {"tuple": list(v)}
        return v

    def sample(self, op: Op) -> Sample | None:
        forms = [f for f in op.forms if f.diff]
        form = forms[self.rng.integers(len(forms))]
        # Complex values move freely here: not where they have to stay Hermitian, or leave a phase open.
        free = op.allows("c128") and "complex" not in op.skip
        complex_ = "c128" if free and self.rng.random() < 0.06 else None
        try:
            if op.elementwise:
                drawn = list(islice(elementwise(op, form, self.rng, None, complex_, True), 8))
            else:
                drawn = list(islice(structured(op, form, self.rng, complex_), 12))
        except (TypeError, ValueError):
            return None
        return drawn[self.rng.integers(len(drawn))] if drawn else None

    def call(self, op: Op, s: Sample) -> tuple[list[dict[str, Any]], list[Any], dict[str, Any]] | None:
        """The steps that make the arguments, and the arguments by position and by name."""
        before: list[dict[str, Any]] = []
        types = argument_types(s.form)
        given: dict[str, Any] = {}
        moved = False
        for k, v in s.given.items():
            low, high = op.domains.get(k, (-1.0, 1.0))
            span = min(float(high - low), 6.0)
            free = k in s.form.diff and (not moved or self.rng.random() < 0.7)
            if free and isinstance(v, np.ndarray) and v.dtype.kind in "fc" and v.size:
                base = v
                if op.elementwise and k in op.domains and v.dtype.kind == "f":
                    edge = 0.04 * span  # a domain may be open; no clipping, which would make ties
                    base = low + edge + (v - low) * (1 - 2 * edge / (high - low))
                steps, given[k] = self.feed(base, span, k in s.symmetric)
                before += steps
                moved = True
            elif free and isinstance(v, list) and all(isinstance(x, np.ndarray) and x.size for x in v):
                items = []
                for x in v:
                    steps, item = self.feed(x, 2.0)
                    before += steps
                    items.append(item)
                given[k] = {"list": items}
                moved = True
            else:
                given[k] = self.plain(types[k], v)
        if not moved:
            return None
        pos: list[Any] = []
        kw: dict[str, Any] = {}
        for i, (name, _, *rest) in enumerate(s.form.args):
            if name in given:
                if "kwonly" in rest[1:] or len(pos) < i:
                    kw[name] = given[name]
                else:
                    pos.append(given[name])
        return before, pos, kw

    # -- kinds of steps --
    def choose(self, ops: Sequence[Op]) -> Op:
        """Rarely used ones first."""
        some = [ops[i] for i in self.rng.integers(len(ops), size=3)]
        return min(some, key=lambda op: self.counts[op.name])

    def op(self, quiet: bool = False) -> None:
        op = self.choose(self.ops)
        s = self.sample(op)
        made = self.call(op, s) if s else None
        if s is None or made is None:
            return
        before, pos, kw = made
        outs = [self.name() for _ in range(8)]
        step: dict[str, Any] = {"do": "op", "op": op.name, "home": op.home, "pos": pos, "kw": kw, "out": outs}
        if quiet:
            step["no_grad"] = True
        if not self.do(*before, step):
            return
        self.settle(s.form, outs, quiet)
        self.used.append(op.name)

    def settle(self, form: Form, outs: list[str], quiet: bool = False) -> None:
        names = [r.rstrip("[]") for r in form.results]
        values = [(n, self.machine.values[n]) for n in outs if n in self.machine.values]
        for k, (n, t) in enumerate(values):
            if not (_float(t) or (hasattr(t, "is_complex") and t.is_complex())) or t.numel() == 0 or t.numel() > 256:
                continue
            if form.diff_results is not None and len(names) == len(values) and names[k] not in form.diff_results:
                continue
            top = float(np.abs(t.detach().numpy()).max())
            by = 1.0 if 0.05 < top < 3 else round(2 / top, 6) if top >= 3 else min(100.0, round(1 / max(top, 1e-6), 3))
            out = self.name()
            step: dict[str, Any] = {"do": "settle", "from": n, "by": 1.5 if quiet and by == 1 else by, "out": [out]}
            if quiet:
                step["no_grad"] = True
            elif by != 1 and self.rng.random() < 0.1:
                step["hook"] = 2.0
            elif self.rng.random() < 0.1:
                step["retain"] = True
            if self.do(step):
                v = self.add(out, tuple(self.machine.values[out].shape))
                self.sealed.add(v.group)  # may share memory with an argument

    def quiet(self) -> None:
        if self.rng.random() < 0.5:
            self.op(quiet=True)
            return
        # An in-place op that is not recorded, on a value that nothing has saved.
        copy = self.copy()
        if copy is None:
            return
        method, pos = (("mul_", [0.5]), ("add_", [0.25]), ("neg_", []), ("tanh_", []))[self.rng.integers(4)]
        self.do({"do": "inplace", "no_grad": True, "self": copy.name, "method": method, "pos": pos, "out": []})

    def cut(self) -> None:
        v = self.pick()
        if v is not None:
            name = self.name()
            if self.do({"do": "detach", "self": v.name, "out": [name]}):
                self.sealed.add(self.add(name, v.shape, v.group).group)

    def custom(self) -> None:
        which = str(self.rng.choice(["Scale", "Product", "Tanh", "Split", "Double_"]))
        target = self.copy() if which == "Double_" else self.pick()
        if target is None:
            return
        pos: list[Any] = [{"v": target.name}]
        outs = [self.name() for _ in range(2 if which == "Split" else 1)]
        before: list[dict[str, Any]] = []
        if which == "Scale":
            pos.append(-1.5)
        if which == "Product":
            before, other = self.feed(np.asarray(self.rng.uniform(-1, 1, target.shape)), 4.0)
            pos.append(other)
        step: dict[str, Any] = {"do": "function", "name": which, "pos": pos, "out": outs}
        if which not in ("Double_", "Split") and self.rng.random() < 0.3:
            step["hook"] = 0.5
        if self.do(*before, step):
            for n in outs:
                self.add(n, tuple(self.machine.values[n].shape), target.group if which == "Double_" else None)
            self.used.append(f"Function {which}")

    def copy(self) -> Value | None:
        """A fresh value equal to another one: nothing has saved it yet."""
        v = self.pick()
        if v is None:
            return None
        name = self.name()
        step = {"do": "op", "op": "mul", "home": "", "pos": [{"v": v.name}, 1.0], "kw": {}, "out": [name]}
        return self.add(name, v.shape) if self.do(step) else None

    def view(self, of: Value | None = None) -> Value | None:
        v = of or self.pick()
        if v is None:
            return None
        rng, n = self.rng, len(v.shape)
        size = int(np.prod(v.shape))
        dim = int(rng.integers(n)) if n else 0
        choices: list[tuple[str, list[Any]]] = [("reshape", [[-1]]), ("view", [[size]]), ("unsqueeze", [0])]
        if n:
            k = v.shape[dim]
            choices += [
                ("narrow", [dim, k // 2, k - k // 2]), ("select", [dim, k - 1]), ("transpose", [dim, 0]),
                ("flatten", []), ("movedim", [dim, 0]), ("permute", [[*rng.permutation(n).tolist()]]), ("squeeze", []),
                ("unfold", [dim, min(2, k), 1]), ("getitem", [{"slice": [None, None, 2]}]), ("getitem", [0]),
                ("getitem", [{"tuple": [{"slice": [None, None, None]}, None]}] if n > 1 else [None]),
                ("chunk", [2, dim]), ("unbind", [dim]), ("split", [1, dim]), ("expand", [[2, *v.shape]]),
            ]  # fmt: skip
        if n == 2:
            choices += [("diagonal", []), ("t", [])]
        method, pos = choices[rng.integers(len(choices))]
        pos = [{"tuple": p} if isinstance(p, list) else p for p in pos]
        outs = [self.name() for _ in range(5)]
        if method == "getitem":
            step: dict[str, Any] = {"do": "getitem", "self": v.name, "at": pos[0], "out": outs[:1]}
        else:
            step = {"do": "method", "self": v.name, "method": method, "pos": pos, "out": outs}
        made = self.try_view(step)
        if not made:
            return None
        if method in ("chunk", "unbind", "split", "expand", "unfold"):
            self.sealed.add(v.group)  # several of one view, or elements seen twice: writing is refused
        for name in made[1:]:
            self.add(name, tuple(self.machine.values[name].shape), v.group)
        self.used.append(f"view {method}")
        return self.add(made[0], tuple(self.machine.values[made[0]].shape), v.group)

    def try_view(self, step: dict[str, Any]) -> list[str]:
        wanted = step["out"]
        try:
            self.machine.step(len(self.steps), step)
        except (TypeError, ValueError, RuntimeError, IndexError):
            return []
        step["out"] = [n for n in wanted if n in self.machine.values and self.machine.values[n].numel() > 0]
        if step["out"] != wanted[: len(step["out"])] or not step["out"]:
            return []
        self.steps.append(step)
        return list(step["out"])

    def fresh_inplace(self) -> None:
        """Any in-place op, on a tensor of its own that its entry's inputs describe."""
        op = self.choose(self.inplace_ops)
        s = self.sample(op)
        if s is None or s.form.args[0][0] not in s.form.diff:
            return
        made = self.call(op, s)
        if made is None or not made[1] or "v" not in (made[1][0] if isinstance(made[1][0], dict) else {}):
            return
        before, pos, kw = made
        method = op.inplace[self.rng.integers(len(op.inplace))]
        name = pos[0]["v"]
        step = {"do": "inplace", "self": name, "method": method, "pos": pos[1:], "kw": kw, "out": [name]}
        if not any("hook" in b and b["out"] == [name] for b in before) and self.do(*before, step):
            self.settle(s.form, [name])
            self.used.append(op.name)

    def alias_inplace(self) -> None:
        """An in-place op on a value or on a view of it; both are used later."""
        target = self.copy() if self.rng.random() < 0.9 else self.pick(writable=True)
        if target is None or target.group in self.sealed:
            return
        for _ in range(int(self.rng.integers(0, 3))):
            target = self.view(target) or target
            if target.group in self.sealed:
                return
        rng = self.rng
        feed, other = self.feed(np.asarray(rng.uniform(-1, 1, target.shape)), 4.0, apart_from=target)
        mask = {"array": encode(rng.random(target.shape) < 0.4)}
        choices: list[tuple[str, list[Any]]] = [
            ("add_", [other]), ("mul_", [other]), ("sub_", [other]), ("copy_", [other]), ("sin_", []), ("tanh_", []),
            ("neg_", []), ("zero_", []), ("fill_", [0.5]), ("mul_", [-0.75]), ("masked_fill_", [mask, 0.3]),
            ("addcmul_", [other, other]), ("lerp_", [other, 0.3]), ("sigmoid_", []), ("clamp_", [-2.5, 2.5]),
        ]  # fmt: skip
        if target.shape and rng.random() < 0.3:
            part = target.shape[0] // 2
            base = np.asarray(rng.uniform(-1, 1, (target.shape[0] - part, *target.shape[1:])))
            value, other = self.feed(base, 4.0, apart_from=target)
            at = {"slice": [part, None, None]}
            if self.do(*value, {"do": "setitem", "self": target.name, "at": at, "value": other, "out": [target.name]}):
                self.used.append("setitem")
            return
        method, pos = choices[rng.integers(len(choices))]
        step = {"do": "inplace", "self": target.name, "method": method, "pos": pos, "out": [target.name]}
        if self.do(*(feed if any(p == other for p in pos) else []), step):
            self.used.append(f"alias {method}")


def _float(t: Any) -> bool:
    return isinstance(t, tp.Tensor) and bool(t.is_floating_point())
