"""The language of random programs, and its interpreter on any module with PyTorch's names.

A program is plain data (JSON): leaves, steps, and weights of the values its loss sums. The interpreter knows NumPy and
the module it is given, nothing else of this package, so that another Python with another library runs it from its path:

    python language.py torch < programs.jsonl > outcomes.jsonl
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import math
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Program = dict[str, Any]  # leaves, steps, weights, backward


# ---- arrays in JSON --------------------------------------------------------------------------------------------------
def encode(a: Array) -> dict[str, Any]:
    if a.dtype.kind == "c":
        return encode(a.real) | {"dtype": str(a.dtype), "im": a.imag.ravel().tolist()}
    return {"dtype": str(a.dtype), "shape": list(a.shape), "re": a.ravel().tolist()}


def decode(d: dict[str, Any]) -> Array:
    flat = np.asarray(d["re"], dtype=d["dtype"] if "im" not in d else np.float64)
    if "im" in d:
        flat = (flat + 1j * np.asarray(d["im"])).astype(d["dtype"])
    return flat.reshape(d["shape"])


# ---- Python Functions, one family for each module --------------------------------------------------------------------
@functools.cache
def functions(tp: Any) -> dict[str, Any]:
    """Functions with the right derivative, each written in another of the ways the contract allows."""
    Function: Any = tp.autograd.Function

    class Scale(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, c: float) -> Any:
            ctx.c = c
            return x * c

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.c, None

        @staticmethod
        def jvp(ctx: Any, t: Any, _: Any) -> Any:
            return t * ctx.c

    class Product(Function):
        """Saves inputs; separate style."""

        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return (g * y if ctx.needs_input_grad[0] else None), (g * x if ctx.needs_input_grad[1] else None)

        @staticmethod
        def jvp(ctx: Any, tx: Any, ty: Any) -> Any:
            x, y = ctx.saved_tensors
            terms = [t * v for t, v in ((tx, y), (ty, x)) if t is not None]
            return sum(terms[1:], terms[0])

    class Tanh(Function):
        """Saves its output."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.tanh()
            ctx.save_for_backward(y)
            ctx.save_for_forward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * (1 - y * y)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            (y,) = ctx.saved_tensors
            return t * (1 - y * y)

    class Split(Function):
        """Two outputs, either of which may go unused."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            terms = [t for t in (None if g is None else g * 2, None if h is None else h * 3) if t is not None]
            return sum(terms[1:], terms[0]) if terms else None

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2, t * 3

    class Double_(Function):
        """Changes its input."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t.mul_(2)

    return {"Scale": Scale, "Product": Product, "Tanh": Tanh, "Split": Split, "Double_": Double_}


# ---- running ---------------------------------------------------------------------------------------------------------
@dataclass
class Replay:
    """What differences must hold fixed: values as the program's own run had them, by step."""

    values: dict[int, Any] = field(default_factory=dict)
    recording: bool = True
    tangents: bool = False  # forward mode: no_grad and hooks do not count, detach does
    constants: dict[int, Any] = field(default_factory=dict)  # the program's arrays as tensors, by their place in it


@dataclass
class Outcome:
    loss: float = 0.0
    grads: list[Array | None] = field(default_factory=list)
    kept: dict[str, Array | None] = field(default_factory=dict)  # .grad of values that retain it
    hooks: int = 0
    tangent: float | None = None
    second: float | None = None
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "loss": self.loss, "grads": [None if g is None else encode(g) for g in self.grads], "hooks": self.hooks,
            "kept": {k: None if g is None else encode(g) for k, g in self.kept.items()},
            "tangent": self.tangent, "second": self.second, "error": self.error,
        }  # fmt: skip


class Machine:
    """One run of a program on a module."""

    def __init__(self, tp: Any, program: Program, replay: Replay | None = None) -> None:
        self.tp, self.program, self.replay = tp, program, replay
        self.values: dict[str, Any] = {}
        self.hooks = 0

    # -- arguments --
    def argument(self, a: Any) -> Any:
        match a:
            case {"v": name}:
                return self.values[name]
            case {"list": items}:
                return [self.argument(x) for x in items]
            case {"array": data}:
                return self.constant(data)
            case {"dtype": name}:
                return getattr(self.tp, name)
            case {"tuple": items}:
                return tuple(self.argument(x) for x in items)
            case {"slice": (start, stop, step)}:
                return slice(start, stop, step)
        return a

    def constant(self, data: dict[str, Any]) -> Any:
        if self.replay is None:
            return self.tp.tensor(decode(data))
        known = self.replay.constants
        if id(data) not in known:
            known[id(data)] = self.tp.tensor(decode(data))
        return known[id(data)]

    def function(self, home: str, name: str) -> Any:
        place: Any = self.tp._C.internal if home == "internal" else self.tp
        for part in home.split(".") if home not in ("", "internal") else ():
            place = getattr(place, part)
        # A name that only a method has there (expand) takes its first argument as self.
        return getattr(place, name) if hasattr(place, name) else getattr(self.tp.Tensor, name)

    def feed(self, step: dict[str, Any]) -> Any:
        """A base value moved a little by another value, bent into its sizes."""
        tp, shape = self.tp, tuple(step["shape"])
        size = math.prod(shape)
        flat = self.values[step["from"]].reshape(-1)
        if flat.shape[0] < size:
            flat = tp.cat([flat] * (-(-size // flat.shape[0])))
        t = (flat[:size].reshape(shape) if flat.shape[0] > size else flat.reshape(shape)).sin() * step["scale"]
        if step.get("symmetric"):
            t = t + t.transpose(-1, -2)
        base = self.constant(step["base"])
        return base + t * (1 + 0.5j) if base.is_complex() else base + t

    def settle(self, step: dict[str, Any]) -> Any:
        """An output as a value of the pool: real, of moderate size."""
        t = self.values[step["from"]]
        if t.is_complex():
            t = self.tp.view_as_real(t)
        return t * step["by"] if step["by"] != 1 else t

    # -- steps --
    def run(self, leaves: list[Any]) -> Any:
        for leaf, t in zip(self.program["leaves"], leaves, strict=True):
            self.values[leaf["name"]] = t
        for i, step in enumerate(self.program["steps"]):
            self.step(i, step)
        total = None
        for name, w in self.program["weights"].items():
            t = self.values[name]
            term = (t * self.constant(w)).sum()
            total = term if total is None else total + term
        return total

    def step(self, i: int, step: dict[str, Any]) -> None:
        do = step["do"]
        frozen = self.replay is not None and not self.replay.recording
        tangents = self.replay is not None and self.replay.tangents
        quiet = step.get("no_grad", False)
        if do == "inplace" and quiet:
            self.change_unrecorded(i, step, frozen and not tangents)
            return
        fixed = do == "detach" or (quiet and not tangents)
        with self.tp.no_grad() if quiet else contextlib.nullcontext():
            out = list(getattr(self, f"do_{do}")(step))
        for k, (name, t) in enumerate(zip(step["out"], out, strict=False)):
            if self.replay is not None and fixed and _real(t):
                t = self.fix(1000 * i + k, t)
            if k == 0 and "hook" in step and not tangents:
                t = self.hook(1000 * i + 999, t, step["hook"], frozen)
            self.values[name] = t
            if k == 0 and step.get("retain") and self.replay is None and t.requires_grad:
                t.retain_grad()

    def fix(self, key: int, t: Any) -> Any:
        assert self.replay is not None
        if self.replay.recording:  # as it is: its strides decide which later values are views
            self.replay.values[key] = t.detach()
        return self.replay.values[key]

    def hook(self, key: int, t: Any, c: float, frozen: bool) -> Any:
        """A hook that scales the gradient is a function that keeps the value and scales the differences."""
        if self.replay is None:
            if t.requires_grad:
                t.register_hook(functools.partial(self.scale, c=c))
            return t
        if not frozen:
            self.replay.values[key] = t.detach().clone()  # strides too, as in `fix`
            return t
        at = self.replay.values[key]
        return at + (t - at) * c

    def scale(self, g: Any, c: float) -> Any:
        self.hooks += 1
        return g * c

    def change_unrecorded(self, i: int, step: dict[str, Any], fixed: bool) -> None:
        """An in-place op under no_grad: to reverse mode the change is a constant."""
        t = self.values[step["self"]]
        with self.tp.no_grad():
            if fixed:
                assert self.replay is not None
                t.add_(self.tp.tensor(self.replay.values[1000 * i]))
                return
            before = _array(t).copy()
            getattr(t, step["method"])(*[self.argument(a) for a in step["pos"]])
            if self.replay is not None and self.replay.recording:
                self.replay.values[1000 * i] = _array(t) - before

    # -- what a step does; each gives its outputs --
    def do_op(self, step: dict[str, Any]) -> Any:
        self.tp.manual_seed(0)
        f = self.function(step["home"], step["op"])
        pos = [self.argument(a) for a in step["pos"]]
        result = f(*pos, **{k: self.argument(a) for k, a in step["kw"].items()})
        out = result if isinstance(result, (tuple, list)) else [result]
        # Some ops have no derivative in the other library, which does not say so.
        followed = [any(getattr(t, "requires_grad", False) for t in some) for some in (pos, out)]
        if step.get("follows") and self.tp.is_grad_enabled() and followed == [True, False]:
            raise NotImplementedError(f"{step['op']} is not differentiable here")
        return out

    def do_method(self, step: dict[str, Any]) -> Any:
        out = getattr(self.values[step["self"]], step["method"])(*[self.argument(a) for a in step["pos"]])
        return out if isinstance(out, (tuple, list)) else [out]

    def do_inplace(self, step: dict[str, Any]) -> Any:
        t, name = self.values[step["self"]], step["method"]
        pos = [self.argument(a) for a in step["pos"]]
        kw = {k: self.argument(a) for k, a in step.get("kw", {}).items()}
        if hasattr(t, name):
            out = getattr(t, name)(*pos, **kw)
        else:  # of nn.functional
            out = getattr(self.tp.nn.functional, name[:-1])(t, *pos, **kw, inplace=True)
        assert out is t, f"{step['method']} does not return its tensor"
        return [t]

    def do_setitem(self, step: dict[str, Any]) -> Any:
        self.values[step["self"]][self.argument(step["at"])] = self.argument(step["value"])
        return [self.values[step["self"]]]

    def do_getitem(self, step: dict[str, Any]) -> Any:
        return [self.values[step["self"]][self.argument(step["at"])]]

    def do_detach(self, step: dict[str, Any]) -> Any:
        return [self.values[step["self"]].detach()]

    def do_feed(self, step: dict[str, Any]) -> Any:
        return [self.feed(step)]

    def do_settle(self, step: dict[str, Any]) -> Any:
        return [self.settle(step)]

    def do_function(self, step: dict[str, Any]) -> Any:
        out = functions(self.tp)[step["name"]].apply(*[self.argument(a) for a in step["pos"]])
        return out if isinstance(out, (tuple, list)) else [out]


def _real(t: Any) -> bool:
    return hasattr(t, "is_floating_point") and bool(t.is_floating_point())


def _array(t: Any) -> Array:
    return np.asarray(t.detach().numpy())


def _dot(grads: list[Any], along: list[Array], tp: Any) -> Any:
    total = None
    for g, d in zip(grads, along, strict=True):
        if g is not None:
            term = (g * tp.tensor(d)).sum()
            total = term if total is None else total + term
    return total


def _leaves(tp: Any, program: Program, grad: bool) -> list[Any]:
    return [tp.tensor(decode(leaf["value"])).requires_grad_(grad) for leaf in program["leaves"]]


def backward(tp: Any, program: Program) -> Outcome:
    """The program's gradients, by the entry it names: backward(), backward(inputs=), twice, or grad()."""
    out = Outcome()
    machine = Machine(tp, program)
    leaves = _leaves(tp, program, True)
    loss = machine.run(leaves)
    out.loss = float(_array(loss))
    how = program.get("backward", "backward")
    if not loss.requires_grad:
        out.grads = [None for _ in leaves]
        return out
    if how == "grad":
        found = tp.autograd.grad(loss, leaves, allow_unused=True)
        out.grads = [None if g is None else _array(g).copy() for g in found]
    else:
        if how == "twice":
            loss.backward(retain_graph=True)
            loss.backward()
        elif how == "inputs":
            loss.backward(inputs=leaves)
        else:
            loss.backward()
        half = 0.5 if how == "twice" else 1.0
        out.grads = [None if x.grad is None else half * _array(x.grad) for x in leaves]
    scale = 0.5 if how == "twice" else 1.0
    for step in program["steps"]:
        if step.get("retain"):
            t = machine.values[step["out"][0]]
            g = t.grad if t.requires_grad and not t.is_leaf else None
            out.kept[step["out"][0]] = None if g is None else scale * _array(g)
    out.hooks = machine.hooks
    return out


def tangent(tp: Any, program: Program, along: list[Array]) -> float:
    """The loss's tangent by forward mode."""
    fwd = tp.autograd.forward_ad
    with fwd.dual_level():
        duals = [
            fwd.make_dual(tp.tensor(decode(leaf["value"])), tp.tensor(d))
            for leaf, d in zip(program["leaves"], along, strict=True)
        ]
        t = fwd.unpack_dual(Machine(tp, program).run(duals)).tangent
        return 0.0 if t is None else float(_array(t))


def second(tp: Any, program: Program, along: list[Array], then: list[Array]) -> float:
    """The second derivative along two directions, by a recorded backward."""
    leaves = _leaves(tp, program, True)
    loss = Machine(tp, program).run(leaves)
    if not loss.requires_grad:
        return 0.0
    value = _dot(tp.autograd.grad(loss, leaves, create_graph=True, allow_unused=True), along, tp)
    if value is None or not value.requires_grad:
        return 0.0
    value = _dot(tp.autograd.grad(value, leaves, allow_unused=True), then, tp)
    return 0.0 if value is None else float(_array(value))


def outcome(tp: Any, program: Program) -> Outcome:
    """Everything another library is asked for."""
    try:
        return backward(tp, program)
    except Exception as fault:
        return Outcome(error=f"{type(fault).__name__}: {fault}")


def main() -> None:
    tp = importlib.import_module(sys.argv[1])
    importlib.import_module(f"{sys.argv[1]}.nn.functional")
    for line in sys.stdin:
        print(json.dumps(outcome(tp, json.loads(line)).as_json()), flush=True)


if __name__ == "__main__":
    main()
