"""Hooks where no gradient arrives: they are called with None all the same, and None can't become a gradient."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
graph = tp.autograd.graph
row = pytest.mark.row


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), requires_grad=True)


class Ends(tp.autograd.Function):
    """Has no gradient to give."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None


@row("1.register_hook")
def test_the_output_that_was_not_used() -> None:
    p, q = (leaf(1.0, 2.0, 3.0, 4.0) * 1).split(2)
    seen: list[Any] = []
    q.register_hook(seen.append)
    q.retain_grad()
    p.sum().backward()
    assert seen == [None] and q.grad is None


@row("11.order")
@pytest.mark.parametrize("create", [False, True])
@pytest.mark.filterwarnings("ignore:.*cycle")
def test_every_hook_on_the_way_runs(create: bool) -> None:
    seen: list[Any] = []
    x = leaf(3.0)
    y = x * 2
    node, end = y.grad_fn, graph.get_gradient_edge(x).node
    node.register_hook(lambda inputs, outputs: seen.append(("post", inputs, outputs)))
    node.register_prehook(lambda outputs: seen.append(("pre", outputs)))
    y.register_hook(lambda g: seen.append(("tensor", g)))
    x.register_hook(lambda g: seen.append(("leaf", g)))
    end.register_prehook(lambda outputs: seen.append(("end pre", outputs)))
    end.register_hook(lambda inputs, outputs: seen.append(("end post", inputs, outputs)))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", t.grad)))
    Ends.apply(y).sum().backward(create_graph=create)
    assert seen == [
        ("tensor", None), ("pre", (None,)), ("post", (None, None), (None,)), ("leaf", None), ("end pre", (None,)),
        ("end post", (), (None,)), ("accumulated", None),
    ] or seen == [  # PyTorch calls the last two the other way round
        ("tensor", None), ("pre", (None,)), ("post", (None, None), (None,)), ("leaf", None), ("end pre", (None,)),
        ("accumulated", None), ("end post", (), (None,)),
    ]  # fmt: skip
    assert x.grad is None


@row("1.register_post_accumulate_grad_hook")
def test_the_gradient_that_was_there_stays() -> None:
    x = leaf(1.0)
    x.grad = tp.tensor([5.0])
    seen: list[float] = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    Ends.apply(x).sum().backward()
    assert seen == [5.0] and x.grad.item() == 5.0


@row("2.grad")
def test_grad_calls_them_too() -> None:
    seen: list[Any] = []
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: seen.append("y" if g is None else g))
    x.register_hook(lambda g: seen.append("x" if g is None else g))
    assert tp.autograd.grad(Ends.apply(y).sum(), x, allow_unused=True) == (None,)
    assert seen == ["y", "x"]


@row("1.register_hook")
@pytest.mark.parametrize("where", ["tensor", "leaf", "pre", "post", "end"])
def test_nothing_becomes_a_gradient(where: str) -> None:
    one = tp.ones(1)
    x = leaf(1.0)
    y = x * 2
    if where == "tensor":
        y.register_hook(lambda g: one)
    elif where == "leaf":
        x.register_hook(lambda g: one)
    elif where == "pre":
        y.grad_fn.register_prehook(lambda outputs: (one,))
    elif where == "post":
        y.grad_fn.register_hook(lambda inputs, outputs: (one, None))
    else:
        graph.get_gradient_edge(x).node.register_prehook(lambda outputs: (one,))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        Ends.apply(y).sum().backward()
    assert x.grad is None


@row("5.register_multi_grad_hook")
def test_a_hook_of_several_tensors_gets_none_for_the_unused() -> None:
    p, q = (leaf(1.0, 2.0, 3.0, 4.0) * 1).split(2)
    seen: list[Any] = []
    graph.register_multi_grad_hook((p, q), seen.append)
    p.sum().backward()
    assert len(seen) == 1 and seen[0][0].tolist() == [1.0, 1.0] and seen[0][1] is None


@row("2.retain_graph")
def test_a_formula_is_not_asked_for_the_gradient_of_nothing() -> None:
    x = leaf(1.0)
    y = x.exp()
    seen: list[Any] = []
    y.register_hook(seen.append)
    Ends.apply(y).sum().backward()
    assert seen == [None]
    with pytest.raises(RuntimeError, match="second time"):  # but its saved values went with the pass
        y.sum().backward()
