"""Rows of the checklist together: Functions, views, changes in place, hooks, checkpoints, transforms, threads."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
checkpoint = importlib.import_module(f"{tp.__name__}.utils.checkpoint").checkpoint
ag, fw, graph, func = tp.autograd, tp.autograd.forward_ad, tp.autograd.graph, tp.func
row = pytest.mark.row


def leaf(*values: float) -> Any:
    return tp.tensor([float(v) for v in values], requires_grad=True)


class Triple(ag.Function):
    """Three times its argument, in place."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t.mul_(3)


class Square(ag.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * t


@row("3.mark_dirty")
def test_in_place_through_a_transposed_view_of_a_view() -> None:
    x = leaf(1, 2, 3, 4)
    y = (x * 1).view(2, 2)
    other = y[0]
    Triple.apply(y.t())
    assert y.tolist() == [[3, 6], [9, 12]] and other.tolist() == [3, 6]
    (other * other).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0, 0.0, 0.0]


@row("3.mark_dirty")
def test_in_place_twice_on_parts_with_hooks_and_retained_gradients() -> None:
    x = leaf(1, 2, 3)
    seen = []
    y = x * 1
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.retain_grad()
    Triple.apply(y[1:])
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    Triple.apply(y[:2])
    y.sum().backward()
    assert y.tolist() == [3.0, 18.0, 9.0] and x.grad.tolist() == [3.0, 9.0, 3.0]
    assert seen == [("after", [3.0, 3.0, 1.0]), ("before", [3.0, 9.0, 3.0])]
    assert y.grad.tolist() == [1.0, 1.0, 1.0]


@row("7.checkpoint")
@pytest.mark.parametrize("reentrant", [False, True])
def test_in_place_functions_and_hooks_inside_a_checkpoint(reentrant: bool) -> None:
    seen = []

    def f(a: Any) -> Any:
        b = a * 1
        Triple.apply(b[1:])
        if b.requires_grad:
            b.register_hook(lambda g: seen.append(g.tolist()))
        return Square.apply(b)

    x = leaf(1, 2)
    checkpoint(f, x, use_reentrant=reentrant).sum().backward()
    assert x.grad.tolist() == [2.0, 36.0] and seen == [[2.0, 12.0]]


@row("5.saved_tensors_hooks")
def test_hooks_around_and_inside_a_checkpoint() -> None:
    order = []

    def noted(name: str) -> Any:
        return graph.saved_tensors_hooks(
            lambda t: (order.append(f"{name} pack"), t)[1], lambda t: (order.append(f"{name} unpack"), t)[1]
        )

    def f(a: Any) -> Any:
        with noted("inside"):
            b = a.exp()
        return b.sin()

    x = leaf(0)
    with noted("around"):
        y = checkpoint(f, x, use_reentrant=False)
        z = y * y
    assert order == ["around pack", "inside pack", "around pack", "around pack"]
    z.sum().backward()
    assert order[4:6] == ["around unpack", "around unpack"] and "inside unpack" in order
    assert abs(x.grad.item() - 2 * tp.tensor(1.0).sin().item() * tp.tensor(1.0).cos().item()) < 1e-6


@row("6.propagation rules")
def test_tangents_of_parts_changed_by_a_function() -> None:
    with fw.dual_level():
        d = fw.make_dual(tp.ones(2, 2), tp.arange(4.0).view(2, 2))
        Triple.apply(d[1])
        column = d[:, 0]
        column.add_(d[:, 1].clone())
        assert d.tolist() == [[2.0, 1.0], [6.0, 3.0]]
        assert fw.unpack_dual(d).tangent.tolist() == [[1.0, 1.0], [15.0, 9.0]]
        assert fw.unpack_dual(column).tangent.tolist() == [1.0, 15.0]


@row("6.propagation rules")
def test_a_hook_sees_the_tangent_of_a_gradient() -> None:
    x = leaf(1, 2)
    seen = []
    with fw.dual_level():
        y = Square.apply(fw.make_dual(x, tp.tensor([1.0, 10.0])))
        y.register_hook(lambda g: seen.append((g.tolist(), fw.unpack_dual(g).tangent.tolist())))
        (y * y).sum().backward()
    assert seen == [([2.0, 8.0], [4.0, 80.0])] and x.grad.tolist() == [4.0, 32.0]


@row("8.vmap")
@pytest.mark.ours  # PyTorch's vmap refuses to write a part of a clone
def test_changes_in_place_inside_transforms() -> None:
    def f(a: Any) -> Any:
        b = a.clone()
        b[0] = b[1] * 2
        b[1:].mul_(3)
        return Square.apply(b).sum()

    x = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    want = [[0.0, 52.0], [0.0, 104.0]]  # (2 b)^2 + (3 b)^2
    assert func.vmap(func.grad(f))(x).tolist() == want
    assert func.grad(lambda m: func.vmap(f)(m).sum())(x).tolist() == want
    assert func.vmap(lambda a: func.jvp(f, (a,), (tp.tensor([1.0, 1.0]),))[1])(x).tolist() == [52.0, 104.0]


@pytest.mark.ours  # there one dual level is open for all threads
@row("2.thread rules")
def test_threads_record_and_differentiate_apart() -> None:
    x = leaf(1, 2)
    parts: list[Any] = []
    seen: list[Any] = []

    def record(k: int) -> None:
        with fw.dual_level():
            d = Square.apply(fw.make_dual(tp.ones(1), tp.full((1,), float(k))))
            seen.append((k, fw.unpack_dual(d).tangent.item()))
        parts.append(checkpoint(lambda a: Triple.apply(a * k), x, use_reentrant=False).sum())

    threads = [threading.Thread(target=record, args=(k,)) for k in (1, 2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(seen) == [(1, 2.0), (2, 4.0), (3, 6.0)]
    x.register_hook(lambda g: g * 2)
    (parts[0] + parts[1] + parts[2]).backward()
    assert x.grad.tolist() == [36.0, 36.0]


@row("2.reentrancy")
def test_a_hook_runs_everything() -> None:
    x = leaf(2)
    seen = []

    def hook(g: Any) -> Any:
        with fw.dual_level():
            seen.append(fw.unpack_dual(Square.apply(fw.make_dual(g, g))).tangent.item())
        seen.append(func.vmap(func.grad(lambda a: Square.apply(a)))(g).item())
        with tp.enable_grad():
            seen.append(ag.grad(checkpoint(Square.apply, x, use_reentrant=False).sum(), x)[0].item())
        return g * 2

    y = x * 3
    y.register_hook(hook)
    (y * 5).sum().backward()
    assert seen == [50.0, 10.0, 4.0] and x.grad.tolist() == [30.0]
