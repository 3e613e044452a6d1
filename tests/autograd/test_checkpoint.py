"""checkpoint runs a function again: under the conditions of the first time, or not at all."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import tensorplay as tp
from tensorplay.autograd.graph import saved_tensors_hooks
from tensorplay.utils.checkpoint import checkpoint


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), requires_grad=True)


def change_after(x: Any, z: Any) -> Any:
    y = checkpoint(lambda t: t * t, z, use_reentrant=False)
    z.zero_()
    return y


def change_inside(x: Any, z: Any) -> Any:
    return checkpoint(lambda t: t.mul_(2).sin(), z, use_reentrant=False)


def change_the_leaf(x: Any, z: Any) -> Any:
    y = checkpoint(lambda t, *, w: t * w, z, w=x, use_reentrant=False)
    with tp.no_grad():
        x.add_(1)
    return y


@pytest.mark.parametrize("run", [change_after, change_inside, change_the_leaf])
def test_an_argument_changed_in_place_is_reported(run: Callable[[Any, Any], Any]) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: argument \d, of sizes \[2\]"):
        run(x, x * 1).sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_autocast_is_as_it_was(reentrant: bool, first: bool) -> None:
    a = tp.full((2, 2), 1.001, requires_grad=True)
    seen = []

    def f(t: Any) -> Any:
        out = t @ t
        seen.append(out.dtype)
        return out

    with tp.autocast("cpu", dtype=tp.bfloat16, enabled=first):
        y = checkpoint(f, a, use_reentrant=reentrant)
    with tp.autocast("cpu", dtype=tp.bfloat16, enabled=not first):
        y.float().sum().backward()
    assert set(seen) == {tp.bfloat16 if first else tp.float32}


def test_hooks_around_a_checkpoint_see_its_arguments() -> None:
    x, w, n = leaf(1.0, 2.0), leaf(3.0, 4.0), tp.ones(2)
    packed, unpacked = [], []

    def pack(t: Any) -> Any:
        packed.append(t)
        return t.tolist(), t.dtype

    def unpack(kept: Any) -> Any:
        unpacked.append(kept)
        return tp.tensor(kept[0], dtype=kept[1])

    with saved_tensors_hooks(pack, unpack):
        y = checkpoint(lambda a, k, *, b, c: (a * b).sin() * c * k, x, 3, b=w, c=n, use_reentrant=False)
    assert len(packed) == 3 and packed[0] is x and packed[1] is w and packed[2] is n and not unpacked
    y.sum().backward()
    assert len(unpacked) == 3
    cos = (x * w).cos().detach() * 3
    assert tp.allclose(x.grad, cos * w) and tp.allclose(w.grad, cos * x)


def test_hooks_keep_the_arguments_of_a_checkpoint_alive_as_they_please() -> None:
    x = leaf(1.0, 2.0)
    z = x * 1
    seen = weakref.ref(z)
    with saved_tensors_hooks(lambda t: t.tolist(), tp.tensor):
        y = checkpoint(lambda t: t * t, z, use_reentrant=False)
    with tp.no_grad():
        z.zero_()  # what the hook kept does not change
    del z
    assert seen() is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_checkpoint_inside_another_keeps_no_argument() -> None:
    inner_arguments, runs = [], []

    def inner(t: Any) -> Any:
        runs.append("inner")
        return t.sin() * t

    def outer(t: Any) -> Any:
        runs.append("outer")
        z = t.exp()
        inner_arguments.append(weakref.ref(z))
        return checkpoint(inner, z, use_reentrant=False).cos()

    x = leaf(0.1, 0.2)
    y = checkpoint(outer, x, use_reentrant=False)
    assert inner_arguments[0]() is None and runs == ["outer", "inner"]
    (first,) = tp.autograd.grad(y.sum(), x, create_graph=True)
    plain = (x.exp().sin() * x.exp()).cos().sum()
    (want,) = tp.autograd.grad(plain, x, create_graph=True)
    assert tp.allclose(first, want)
    assert tp.allclose(tp.autograd.grad(first.sum(), x)[0], tp.autograd.grad(want.sum(), x)[0])


def test_what_is_not_here_says_so() -> None:
    from tensorplay.utils import checkpoint as module

    for name in ("create_selective_checkpoint_contexts", "CheckpointPolicy"):
        with pytest.raises(AttributeError, match=f"{name}.*op by op"):
            getattr(module, name)
    first, again = module.noop_context_fn()
    with first, again:
        assert checkpoint(tp.sin, tp.zeros(1), use_reentrant=False, context_fn=module.noop_context_fn).item() == 0.0
