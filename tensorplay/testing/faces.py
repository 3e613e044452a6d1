"""Checks of what surrounds the value: in-place forms, methods, operators, out=, saved values, memory, messages."""

from __future__ import annotations

import gc
import operator
from itertools import takewhile
from typing import Any

import numpy as np
import tensorplay as tp

from .derivatives import Probe, differentiable
from .inputs import Sample, samples
from .rows import Op, array, call, plain, results, tensor


def check_saved(op: Op) -> None:
    """An in-place change of what the backward reads is refused; of what it does not read, allowed."""
    for s in list(differentiable(op))[:1]:
        for name in s.form.diff:
            value = s.given.get(name)
            if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.size == 0:
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
            return int(tp.memory.stats()["blocks_live"])

        for _ in range(3):
            once()
        before = live()
        for _ in range(20):
            once()
        after = live()
        assert after <= before, f"{op.name}: {after - before} blocks of memory stayed after 20 runs"


def check_blocks(op: Op) -> None:
    """The backward of an elementwise op makes one block of memory for each gradient that is wanted, no more."""
    for s in differentiable(op):
        if s.form.composed:
            continue
        p = Probe(op, s, np.random.default_rng(13))
        xs = p.leaves(p.start)
        out = p.outputs(xs)[0]
        if not out.requires_grad or any(tuple(x.shape) != tuple(out.shape) for x in xs):
            continue
        g = tp.tensor(np.ones(tuple(out.shape), array(out).dtype))
        before = tp.memory.stats()["blocks_made"]
        grads = tp.autograd.grad(out, xs, g, allow_unused=True)
        made = tp.memory.stats()["blocks_made"] - before
        assert made <= len(grads), f"{op.name}: {made} blocks for {len(grads)} gradients, {s.text}"


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
            got = op.inplace_form(name)(x, *_positional(s, rest), **_keywords(s, rest))
            assert got is x, f"Tensor.{name} does not return its tensor"
            np.testing.assert_allclose(array(x), array(want), rtol=1e-12, atol=1e-12, err_msg=f"Tensor.{name}")
        if first in s.form.diff and s.given[first].dtype.kind == "f":
            grads = []
            for inplace in (False, True):
                leaf = tensor(s.given[first]).requires_grad_()
                x = leaf * 1
                form = op.inplace_form(op.inplace[0]) if inplace else None
                y = form(x, *_positional(s, rest), **_keywords(s, rest)) if form else call(op, s, {first: x, **rest})
                grads.append(array(tp.autograd.grad(y.sum(), [leaf])[0]))
            np.testing.assert_allclose(
                grads[1], grads[0], rtol=1e-12, atol=1e-12, err_msg=f"gradient of Tensor.{op.inplace[0]}"
            )
            parts = [_through_part(op, s, first, rest, written) for written in (False, True)]
            np.testing.assert_allclose(
                parts[1], parts[0], rtol=1e-12, atol=1e-12, err_msg=f"gradient of a base, {op.inplace[0]} on its view"
            )


def _through_part(op: Op, s: Sample, first: str, rest: dict[str, Any], written: bool) -> np.ndarray[Any, Any]:
    """Gradient through a tensor of two parts; the first goes through the op, in place or not."""
    leaf = tensor(s.given[first]).requires_grad_()
    whole = tp.stack([leaf * 1, leaf * 2])
    if written:
        op.inplace_form(op.inplace[0])(whole[0], *_positional(s, rest), **_keywords(s, rest))
    else:
        whole = tp.stack([call(op, s, {first: whole[0], **rest}), whole[1]])
    weights = tp.tensor(np.linspace(0.5, 1.5, whole.numel())).reshape(whole.shape)
    return array(tp.autograd.grad((whole * weights).sum(), [leaf])[0])


def _positional(s: Sample, given: dict[str, Any]) -> list[Any]:
    """The arguments after the first up to one that is left out; those behind it need their names."""
    return [given[a[0]] for a in takewhile(lambda a: a[0] in given and "kwonly" not in a[3:], s.form.args[1:])]


def _keywords(s: Sample, given: dict[str, Any]) -> dict[str, Any]:
    rest = s.form.args[1 + len(_positional(s, given)) :]
    return {a[0]: given[a[0]] for a in rest if a[0] in given}


_UNARY = {"neg": lambda x: -x, "pos": lambda x: +x, "~": lambda x: ~x, "abs": abs}


def check_faces(op: Op) -> None:
    """Method, operator and out= agree with the function."""
    o = operator
    binary = {
        "+": o.add, "-": o.sub, "*": o.mul, "/": o.truediv, "//": o.floordiv, "%": o.mod, "**": o.pow, "@": o.matmul,
        "&": o.and_, "|": o.or_, "^": o.xor, "<<": o.lshift, ">>": o.rshift, "==": o.eq, "!=": o.ne, "<": o.lt,
        "<=": o.le, ">": o.gt, ">=": o.ge,
    }  # fmt: skip
    for s in samples(op, limit=1):
        given = plain(s, {k: tensor(v) for k, v in s.given.items()})
        want = [array(r) for r in results(call(op, s, given))]
        first = s.form.args[0][0]
        rest = {k: v for k, v in given.items() if k != first}
        if isinstance(given.get(first), tp.Tensor):
            for name in op.methods:
                tp.manual_seed(0)
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
            tp.manual_seed(0)
            got = op.function(
                *[given[first]] if first in given else [],
                *_positional(s, given) if first in given else [],
                **_keywords(s, given) if first in given else given,
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
            assert any(n in str(e) for n in op.called), f"{op.name}: the message does not name the op: {e}"
        else:
            raise AssertionError(f"{op.name} took {args} {kwargs}")
    form = op.forms[0]
    tensors = [a[0] for a in form.args if a[1] in ("Tensor", "Tensor?")]
    if op.elementwise and len(tensors) > 1:
        for s in samples(op, shapes=((2, 3), (4,), (5,)), limit=1, only=form, broadcast=False):
            try:
                call(op, s, {k: tensor(v) for k, v in s.given.items()})
            except ValueError as e:
                assert any(n in str(e) for n in op.called) and "[4]" in str(e), f"{op.name}: sizes are not named: {e}"
            else:
                raise AssertionError(f"{op.name} broadcast [2, 3] with [4]")
