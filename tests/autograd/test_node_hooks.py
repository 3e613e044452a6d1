"""What hooks of nodes and Functions give back is checked: gradients of another size, dtype or kind are refused."""

from __future__ import annotations

from typing import Any

import pytest
import tensorplay as tp
from tensorplay.autograd import Function, grad
from tensorplay.autograd.graph import saved_tensors_hooks


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), requires_grad=True)


@pytest.mark.parametrize(
    ("given", "says"),
    [(tp.ones(3, 2), "changed the size"), (tp.ones(5), "changed the size"), (tp.ones(2).double(), "changed the type")],
)
def test_a_prehook_keeps_sizes_and_dtype(given: Any, says: str) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    for node in (y.grad_fn, y.grad_fn.next_functions[0][0]):
        handle = node.register_prehook(lambda outputs: (given,))
        with pytest.raises(RuntimeError, match=f"<lambda> has {says} of value"):
            y.sum().backward(retain_graph=True)
        handle.remove()
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((tp.ones(3, 2), None), "has changed the size of value"),
        ((tp.ones(2).double(), None), "has changed the type of value"),
        ((tp.ones(2), tp.ones(2)), "can't replace a None gradient with a non-None value"),
    ],
)
def test_a_hook_keeps_sizes_dtype_and_absence(given: Any, says: str) -> None:
    y = leaf(1.0, 2.0) * tp.ones(2)
    y.grad_fn.register_hook(lambda inputs, outputs: given)
    with pytest.raises(RuntimeError, match=says):
        y.sum().backward()


def test_a_leaf_of_other_sizes_than_its_gradient() -> None:
    w = leaf(2.0, 3.0)
    y = (w * w).sum()
    w.data = tp.ones(3)
    with pytest.raises(RuntimeError, match=r"a gradient of sizes \[2\] arrived for a leaf of sizes \[3\]"):
        y.backward()
    assert w.grad is None


def test_a_complex_gradient_of_real_numbers() -> None:
    class Turned(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g + 5j * g

    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="TurnedBackward returned an invalid gradient at index 0 - got complex64"):
        Turned.apply(x).sum().backward()


def test_a_pack_hook_computes_outside_the_graph() -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t * t, lambda t: t.sqrt()):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_memory_shown_without_history_stays_under_inference() -> None:
    x = leaf(1.0, 2.0)
    with tp.inference_mode():
        made = tp.tensor([2.0, 4.0])
    for shown in (made.detach(), made.data, tp.detach(made)):
        assert shown.is_inference()
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            _ = shown * x


def test_an_input_returned_twice_is_two_outputs() -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x, x

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g + 10 * h

    x = leaf(1.0, 2.0)
    a, b = Both.apply(x)
    assert a is not b
    assert grad(a.sum(), x)[0].tolist() == [1.0, 1.0]
    a, b = Both.apply(x)
    assert grad(b.sum(), x)[0].tolist() == [10.0, 10.0]


def test_a_leaf_is_written_by_a_function_under_no_grad() -> None:
    class Doubles(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1.0, 2.0)
    with tp.no_grad():
        assert Doubles.apply(x) is x
    assert x.tolist() == [2.0, 4.0] and x.is_leaf
