"""Section 11 of the autograd checklist: in which order hooks and nodes run."""

from __future__ import annotations

import importlib
import os

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
row = pytest.mark.row
F64 = tp.float64


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


def note(order, text, result=None):
    def hook(*args):
        order.append(text)
        return result(args[0]) if result else None

    return hook


class Noted(tp.autograd.Function):
    @staticmethod
    def forward(ctx, x, order, text):
        ctx.order, ctx.text = order, text
        return x * 1

    @staticmethod
    def backward(ctx, g):
        ctx.order.append(ctx.text)
        return g, None, None


@row("11.one node")
def test_hooks_around_one_node() -> None:
    x, order = leaf(1.0), []
    y = Noted.apply(x, order, "apply")
    y.retain_grad()
    y.grad_fn.register_hook(note(order, "node post"))
    y.grad_fn.register_prehook(note(order, "node pre"))
    y.register_hook(note(order, "tensor 1"))
    y.register_hook(note(order, "tensor 2", lambda g: g * 10))
    y.grad_fn.register_prehook(lambda gs: order.append(("retained", y.grad.item())))
    accumulate = y.grad_fn.next_functions[0][0]
    x.register_post_accumulate_grad_hook(note(order, "leaf accumulated"))
    accumulate.register_hook(note(order, "leaf post"))
    accumulate.register_prehook(note(order, "leaf pre"))
    x.register_hook(note(order, "leaf tensor"))
    y.sum().backward()
    assert order == [
        "tensor 1", "tensor 2", "node pre", ("retained", 10.0), "apply", "node post",
        "leaf tensor", "leaf pre", "leaf accumulated", "leaf post",
    ]  # fmt: skip
    assert x.grad.item() == 10.0


@row("11.captured nodes")
def test_captured_nodes_run_only_their_tensor_hooks() -> None:
    x, order = leaf(1.0), []
    y = Noted.apply(x, order, "apply")
    y.register_hook(note(order, "tensor"))
    y.grad_fn.register_prehook(note(order, "node pre"))
    y.grad_fn.register_hook(note(order, "node post"))
    tp.autograd.grad((y * 2).sum(), y)
    assert order == ["tensor"]
    assert x.grad is None
    order.clear()
    x.register_hook(note(order, "leaf tensor"))
    x.register_post_accumulate_grad_hook(note(order, "leaf accumulated"))
    tp.autograd.grad((y * 2).sum(), x)
    assert order == ["tensor", "node pre", "apply", "node post", "leaf tensor"]


@row("11.captured nodes")
def test_a_non_leaf_among_the_inputs_of_backward_runs_its_node() -> None:
    x, order = leaf(1.0), []
    y = Noted.apply(x, order, "apply")
    z = y * 3
    y.grad_fn.register_hook(note(order, "post"))
    y.grad_fn.register_prehook(note(order, "pre"))
    y.register_hook(note(order, "tensor"))
    z.sum().backward(inputs=[y], retain_graph=True)
    assert order == ["tensor", "pre", "apply", "post"] and y.grad.item() == 3.0 and x.grad is None
    order.clear()
    tp.autograd.grad(z.sum(), y, retain_graph=True)
    assert order == ["tensor"]
    y.grad = None
    y.retain_grad()
    z.sum().backward(inputs=[x, y])
    assert y.grad.item() == 3.0 and x.grad.item() == 3.0


@row("11.several outputs")
def test_tensor_hooks_of_each_output() -> None:
    x, order = leaf(1.0, 2.0), []
    a, b = tp.unbind(x * 1)
    a.register_hook(note(order, "a"))
    b.register_hook(note(order, "b"))
    a.grad_fn.register_prehook(note(order, "node"))
    (b + a).backward()
    assert sorted(order[:2]) == ["a", "b"] and order[2] == "node"


@row("11.ready order")
def test_latest_first_and_accumulators_at_once() -> None:
    x, w, order = leaf(1.0), leaf(1.0), []
    first = Noted.apply(x, order, "first")
    second = Noted.apply(w, order, "second")
    third = Noted.apply(x, order, "third")
    w.register_post_accumulate_grad_hook(note(order, "w"))
    x.register_post_accumulate_grad_hook(note(order, "x"))
    (first + second + third).sum().backward()
    assert order == ["third", "second", "w", "first", "x"]


@row("11.sums before a node runs")
def test_a_node_runs_once_with_the_sum() -> None:
    x, seen = leaf(1.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3 + y * 4 + y).sum().backward()
    assert seen == [8.0] and x.grad.item() == 16.0
