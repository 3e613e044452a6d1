"""What a pass does with gradients on the way: in which order nodes run, what is copied, and what it leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
import tensorplay as tp
from tensorplay import func
from tensorplay.autograd import Function, grad, graph


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), requires_grad=True)


def noted(order: list[int], k: int) -> Any:
    return lambda *_: order.append(k)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_of_many_roots_the_youngest_runs_first(n: int) -> None:
    x, order = leaf(2.0), list[int]()
    roots = [x * k for k in range(n)]
    for k, y in enumerate(roots):
        y.grad_fn.register_prehook(noted(order, k))
    tp.autograd.backward(roots)
    assert order == list(range(n))[::-1]
    assert x.grad.item() == sum(range(n))


def test_leaves_of_one_op_come_in_its_order() -> None:
    x, y, order = leaf(2.0), leaf(3.0), list[int]()
    x.register_hook(noted(order, 0))
    y.register_hook(noted(order, 1))
    (x * y).backward()
    (y * x).backward()
    assert order == [0, 1, 1, 0]


def test_a_root_given_twice_counts_twice() -> None:
    x = leaf(2.0)
    y = x * x
    tp.autograd.backward([y, y])
    assert x.grad.item() == 8.0
    tp.autograd.backward([x, x])
    assert x.grad.item() == 10.0


def test_a_view_made_anew_leads_to_the_base_it_is_as_old_as() -> None:
    x = leaf(1.0, 2.0)
    base = x * 1
    view = base[:1]
    base.mul_(3)
    (g,) = grad(view.sum(), base)
    assert g.tolist() == [1.0, 0.0]


def test_gradients_of_several_dtypes_meet_in_a_leaf_that_takes_any() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.double() * 2

    x = leaf(1.0, 2.0)
    x.grad_dtype = None
    (Double.apply(x) + x * 3 + Double.apply(x)).sum().backward()
    assert x.grad.dtype == tp.float64 and x.grad.tolist() == [7.0, 7.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16"])
def test_large_gradients_add_up(dtype: str) -> None:
    x = tp.ones(100_003, dtype=getattr(tp, dtype), requires_grad=True)
    (x * 2 + x * 3 + x * 4).backward(tp.ones_like(x))
    assert (x.grad == 9).all()


def test_sums_of_gradients_take_no_memory_of_their_own() -> None:
    x = tp.ones(1000, 1000, requires_grad=True)
    y = sum(x * k for k in range(1, 9)).sum()
    tp.memory.reset_peak()
    before = tp.memory.stats()["in_use"]
    made = tp.memory.stats()["allocations"]
    y.backward()
    assert tp.memory.stats()["peak"] - before < 3.5 * 4e6
    assert tp.memory.stats()["allocations"] - made < 8 + 4


def test_with_a_graph_nothing_is_copied_that_nobody_else_holds() -> None:
    x, seen = leaf(0.5), []
    y = x.exp()
    y.register_hook(lambda g: seen.append(g.grad_fn.name()))
    (g,) = grad(y * y, x, create_graph=True)
    assert seen == ["AddBackward0"] and g.grad_fn.name() == "StrongMulBackward0"


def test_a_gradient_with_a_graph_is_moved_into_a_leaf_that_nobody_else_sees() -> None:
    x, seen = leaf(1.0, 2.0), []
    x.register_hook(seen.append)
    with pytest.warns(UserWarning, match="reference cycle"):
        (x * x).sum().backward(create_graph=True)
    x.grad.detach().mul_(7)
    assert seen[0].tolist() == [2.0, 4.0]
    y = leaf(1.0, 2.0)
    with pytest.warns(UserWarning, match="reference cycle"):
        y.sum().backward(create_graph=True)
    assert y.grad.is_contiguous() and y.grad.tolist() == [1.0, 1.0]


def test_a_result_with_a_graph_shares_no_memory_with_the_seed() -> None:
    x, seed = leaf(1.0, 2.0), tp.ones(2, 1)
    (g,) = grad(x.view(2, 1), x, seed, create_graph=True)
    seed.mul_(7)
    assert g.tolist() == [1.0, 1.0]


def test_a_pass_inside_an_unpack_hook_leaves_the_wishes_of_the_outer_one() -> None:
    inner = leaf(3.0)

    def unpack(t: Any) -> Any:
        with tp.enable_grad():
            grad(inner * 2, inner)
        return t

    x, y = leaf(2.0), leaf(5.0)
    with graph.saved_tensors_hooks(lambda t: t, unpack):
        z = x * y
    z.backward()
    assert (x.grad.item(), y.grad.item()) == (5.0, 2.0)


def test_no_pass_begins_after_a_buffer_was_shown() -> None:
    class Shows(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (buffer,) = ctx.input_grad_buffers
            assert (buffer is None) == ctx.alone
            w = leaf(1.0)
            with tp.enable_grad():
                loss = w * w
            grad(loss, w)
            return g

    x = leaf(1.0)
    y = Shows.apply(x * 1)
    y.grad_fn.alone = True
    y.sum().backward()
    x = leaf(1.0)
    m = x * 1
    y = Shows.apply(m)
    y.grad_fn.alone = False
    with pytest.raises(RuntimeError, match="cannot run after input_grad_buffers was read"):
        tp.autograd.backward([y, m * 1 + m * 2])


def test_a_buffer_is_shown_only_where_it_can_be_added_to() -> None:
    shown = []

    class Shows(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            shown.append(ctx.input_grad_buffers[0] is not None)
            return g

    def run(f: Any) -> Any:
        x, w = leaf(1.0, 2.0), leaf(1.0, 1.0)
        m = x * 1
        y = Shows.apply(m)
        tp.autograd.backward([y.sum(), f(m, w).sum()])
        return x.grad.tolist()

    assert run(lambda m, w: m * w * 2) == [3.0, 3.0]  # memory of its own
    assert run(lambda m, w: m) == [2.0, 2.0]  # one element shown twice
    assert run(lambda m, w: (m + w) * 1) == [2.0, 2.0]  # shared with the gradient of another leaf
    assert shown == [True, False, False]


def test_a_gradient_of_more_rows_is_summed() -> None:
    class Wide(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.expand(2, 3)

    x = tp.ones(1, 3, requires_grad=True)
    Wide.apply(x).sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0, 2.0]]


def test_an_unpacked_value_has_the_tangent_the_hook_gave_it() -> None:
    with tp.autograd.forward_ad.dual_level():
        x = leaf(3.0)
        dual = tp.autograd.forward_ad.make_dual(x, tp.tensor([1.0]))
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
            y = dual * dual
        (g,) = grad(y, dual, tp.ones(1), create_graph=True)
        value, tangent = tp.autograd.forward_ad.unpack_dual(g)
    assert value.item() == 12.0 and tangent.item() == 4.0


def test_a_capture_made_just_before_is_followed() -> None:
    f = func.grad(lambda a: func.grad(lambda b: a * a * b)(tp.tensor(1.0)))
    assert f(tp.tensor(3.0)).item() == 6.0
    late = func.grad(lambda a: func.vjp(lambda b: b * a, tp.tensor(2.0))[1](tp.tensor(5.0))[0])
    assert late(tp.tensor(3.0)).item() == 5.0
    noop = func.grad(lambda a: func.vjp(lambda b: a, tp.tensor(2.0))[0])
    assert noop(tp.tensor(3.0)).item() == 1.0


def test_a_graph_of_many_paths_is_walked_once() -> None:
    def doubled(x: Any) -> Any:
        for _ in range(60):
            x = x + x
        return x

    assert func.grad(doubled)(tp.tensor(1.0)).item() == 2.0**60
    assert func.grad(lambda a: func.vjp(lambda b: doubled(b) * a, tp.tensor(1.0))[0])(tp.tensor(1.0)).item() == 2.0**60
    x = leaf(1.0)
    y = doubled(x)

    def refuse(g: Any) -> None:
        raise ValueError("not now")

    handle = y.register_hook(refuse)
    with pytest.raises(ValueError, match="not now"):
        y.backward()
    handle.remove()
    (g,) = grad(y, x, retain_graph=True)
    y.backward()
    assert g.item() == x.grad.item() == 2.0**60


@pytest.mark.parametrize("through", ["Function", "stack"])
def test_a_node_of_more_inputs_than_a_mask_has_bits(through: str) -> None:
    class Sum(Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            return sum(x.detach() for x in xs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return tuple(g * k for k in range(70))

    xs = [leaf(float(k)) for k in range(70)]
    hidden = [x * 1 for x in xs]
    if through == "Function":
        y = Sum.apply(*hidden).sum()
    else:
        y = (tp.stack(hidden) * tp.arange(70.0).view(70, 1)).sum()
    few = grad(y, [xs[3], xs[63], xs[66]], retain_graph=True)
    assert [g.item() for g in few] == [3.0, 63.0, 66.0]
    for k in (0, 63, 64):
        assert grad(y, xs[k], retain_graph=True)[0].item() == k
    seen: list[int] = []
    hidden[65].register_hook(noted(seen, 65))
    hidden[66].register_hook(noted(seen, 66))
    grad(y, xs[66], retain_graph=True)
    assert seen == [66]
    y.backward()
    assert [x.grad.item() for x in xs] == [float(k) for k in range(70)]


def test_gradients_of_many_inputs_are_checked() -> None:
    class Wide(Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            return sum(x.detach() for x in xs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return tuple(tp.ones(3) for _ in range(66))

    xs = [leaf(1.0, float(k)) for k in range(66)]
    y = Wide.apply(*xs)
    for k in (0, 63, 64, 65):  # those past the mask are always wanted
        with pytest.raises(RuntimeError, match=f"returned an invalid gradient at index {min(k, 64)} "):
            grad(y.sum(), xs[k], retain_graph=True)


def test_a_hook_on_one_output_leaves_the_others() -> None:
    for which in (0, 1):
        x = leaf(1.0, 2.0)
        parts = x.unbind()
        parts[which].register_hook(lambda g: g * 10)
        (parts[0] * 2 + parts[1] * 3).backward()
        assert x.grad.tolist() == [20.0 if which == 0 else 2.0, 30.0 if which == 1 else 3.0]


def test_saved_values_are_not_shown_after_a_change_in_place() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.grad_fn._saved_other  # noqa: B018


def test_an_input_that_is_listed_twice_gets_its_gradient_once() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    y, w = x * 2, x * 1
    (y * 3 + w).sum().backward(inputs=[y, y, w])
    assert y.grad.tolist() == [3.0, 3.0] and w.grad.tolist() == [1.0, 1.0]
