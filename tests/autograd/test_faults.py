"""What is refused, and as what: programs written for this API catch these types."""

from __future__ import annotations

import collections
import importlib
import os
from collections.abc import Callable
from typing import Any

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
checkpoint = importlib.import_module(f"{tp.__name__}.utils.checkpoint")
ag, fw, graph = tp.autograd, tp.autograd.forward_ad, tp.autograd.graph
Function = ag.Function
row = pytest.mark.row


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), requires_grad=True)


def refused(error: type[Exception], text: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error, match=text) as raised:
        call()
    assert raised.type is error


@row("2.grad")
@pytest.mark.parametrize("wrong", [3, "x", None])
def test_what_is_differentiated_with_respect_to(wrong: Any) -> None:
    x = leaf(1.0)
    refused(RuntimeError, "cannot be empty", lambda: ag.grad(x.sum(), []))
    refused(RuntimeError, "must be a Tensor or a GradientEdge|have to be Tensors", lambda: ag.grad(x.sum(), [x, wrong]))
    refused(
        RuntimeError, "must be a Tensor or a GradientEdge|have to be Tensors",
        lambda: ag.backward(x.sum(), inputs=[x, wrong]),
    )  # fmt: skip
    for mapping in (collections.OrderedDict(x=x), collections.UserDict(x=x), collections.ChainMap({"x": x})):
        refused(TypeError, type(mapping).__name__, lambda m=mapping: ag.grad(x.sum(), m))


@row("1.requires_grad")
@pytest.mark.parametrize("wrong", [1, None, "yes", 0.0])
def test_flags(wrong: Any) -> None:
    x = tp.ones(2)
    refused(RuntimeError, "must be a bool", lambda: setattr(x, "requires_grad", wrong))
    refused(RuntimeError, "bool|deleted", lambda: delattr(x, "requires_grad"))
    assert not x.requires_grad


@row("1.grad_dtype")
def test_grad_dtype() -> None:
    x = leaf(1.0)
    for wrong in (3, "x"):
        refused(RuntimeError, "grad_dtype", lambda w=wrong: setattr(x, "grad_dtype", w))
    y = x * 2
    refused(RuntimeError, "leaf", lambda: y.grad_dtype)
    refused(RuntimeError, "leaf", lambda: setattr(y, "grad_dtype", tp.float64))
    assert x.grad_dtype is tp.float32


@row("5.increment_version")
@pytest.mark.parametrize("wrong", [3, [3], (1, tp.ones(1))])
def test_increment_version(wrong: Any) -> None:
    refused(RuntimeError, "increment_version", lambda: graph.increment_version(wrong))


@row("5.register_hook / register_prehook")
@pytest.mark.parametrize("kind", ["one tensor", "list", "number"])
@pytest.mark.parametrize("when", ["pre", "post"])
def test_hooks_of_nodes_return_tuples(kind: str, when: str) -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    wrong = {"one tensor": tp.ones(2), "list": [tp.ones(2)], "number": 3}[kind]
    if when == "pre":
        y.grad_fn.register_prehook(lambda outputs: wrong)
    else:
        y.grad_fn.register_hook(lambda inputs, outputs: wrong)
    refused(TypeError, "expected tuple, but hook returned '(.*Tensor|list|int)'", lambda: y.sum().backward())
    assert x.grad is None


@row("3.return-kind rules")
@pytest.mark.parametrize("wrong", [3, "s", [1.0]])
def test_what_backward_gives(wrong: Any) -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return wrong

    y = F.apply(leaf(1.0))
    refused(RuntimeError, f"expected Variable or None .got {type(wrong).__name__}", lambda: y.backward())


@row("3.mark_dirty")
@pytest.mark.parametrize("mark", ["mark_dirty", "mark_non_differentiable"])
@pytest.mark.parametrize("wrong", [3, None, "s"])
@pytest.mark.parametrize("recorded", [True, False])
def test_marks_are_tensors(mark: str, wrong: Any, recorded: bool) -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            getattr(ctx, mark)(wrong)
            return x * 1

    if not recorded and tp.__name__ == "torch":
        pytest.skip("PyTorch looks at marks only where something is recorded")
    refused(RuntimeError, mark, lambda: F.apply(tp.ones(1, requires_grad=recorded)))


@row("5.allow_mutation_on_saved_tensors")
def test_backward_outside_of_the_block_that_allows_mutation() -> None:
    x = leaf(2.0, 3.0)
    with graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = (y * y).sum()
        y.mul_(10)
    y.mul_(2)  # nobody copies what was saved now
    error = AssertionError if tp.__name__ == "torch" else RuntimeError
    refused(error, "Trying to backward outside of the", lambda: z.backward())
    assert x.grad is None


@row("7.checkpoint")
@pytest.mark.parametrize("keyword", [{"debug": True}, {"context_fn": lambda: None}])
def test_reentrant_checkpoint_has_no_debug_and_no_contexts(keyword: dict[str, Any]) -> None:
    refused(
        ValueError, "use_reentrant=False",
        lambda: checkpoint.checkpoint(tp.sin, leaf(1.0), use_reentrant=True, **keyword),
    )  # fmt: skip


@row("5.saved_tensors_hooks")
def test_pack_hooks_change_nothing_in_place() -> None:
    def change(t: Any) -> Any:
        t.add_(1)
        return t

    x = leaf(1.0, 2.0)
    y = x.exp()
    refused(
        RuntimeError, "pack hook is modifying its input in place",
        lambda: y.grad_fn._raw_saved_result.register_hooks(change, lambda t: t),
    )  # fmt: skip
    z = tp.ones(2)

    def multiply() -> Any:
        with graph.saved_tensors_hooks(change, lambda t: t):
            return x * z

    refused(RuntimeError, "in.?place", multiply)


@row("7.jacobian")
@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
def test_functional_takes_tuples(name: str) -> None:
    x = tp.ones(2)
    refused(TypeError, "Tensor", lambda: getattr(ag.functional, name)(lambda a: (a * a).sum(), [x]))


@row("6.propagation rules")
def test_out_has_no_tangent_rule() -> None:
    with fw.dual_level():
        d = fw.make_dual(tp.ones(2), tp.ones(2))
        refused(NotImplementedError, "out", lambda: tp.add(d, d, out=tp.ones(2)))


def function(forward: Any, jvp: Any) -> Any:
    return type("F", (Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)}).apply


def dual(value: Any, tangent: Any) -> Any:
    return fw.make_dual(tp.tensor(value), tp.tensor(tangent))


def in_place(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


VIEWS = [lambda ctx, x: x.view(-1), lambda ctx, x: x[0], lambda ctx, x: x.t(), lambda ctx, x: x]


@row("3.jvp")
@pytest.mark.parametrize("view", VIEWS)
def test_the_tangent_of_a_view_is_a_view(view: Any) -> None:
    with fw.dual_level():
        d = dual([[1.0, 2.0]], [[3.0, 4.0]])
        refused(RuntimeError, "view", lambda: function(view, lambda ctx, t: view(ctx, t).clone())(d))
        out = function(view, lambda ctx, t: view(ctx, t) if view is not VIEWS[-1] else t.view_as(t))(d)
        assert fw.unpack_dual(out).tangent.tolist() == view(None, tp.tensor([[3.0, 4.0]])).tolist()


@row("3.jvp")
def test_the_tangent_of_what_was_changed_in_place_is_changed_in_place() -> None:
    with fw.dual_level():
        refused(RuntimeError, "in.?place", lambda: function(in_place, lambda ctx, t: t * 2)(dual([1.0], [3.0])))
        d = dual([1.0], [3.0])
        out = function(in_place, lambda ctx, t: t.mul_(2))(d)
        assert out is d and fw.unpack_dual(d).tangent.tolist() == [6.0]


@row("3.jvp")
@pytest.mark.ours
def test_a_view_of_an_input_without_a_tangent_has_any() -> None:
    with fw.dual_level():
        out = function(lambda ctx, x, y: (x.view(-1), y * 1), lambda ctx, s, t: (None, t))(
            tp.ones(1, 2), dual([1.0], [3.0])
        )
        assert fw.unpack_dual(out[0]).tangent is None and fw.unpack_dual(out[1]).tangent.tolist() == [3.0]
