"""Ops registered from Python: schemas from annotations, derivatives, mutation, aliasing, and opcheck."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorplay as tp
from tensorplay import Tensor
from tensorplay.library import custom_op, infer_schema, opcheck


@custom_op("tests::cube", mutates_args=())
def cube(x: Tensor) -> Tensor:
    """Third power, by NumPy."""
    return tp.from_numpy(x.numpy() ** 3)


def keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


cube.register_autograd(lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g, setup_context=keep_inputs)


def leaf(*values: float) -> Tensor:
    return tp.tensor(values, dtype=tp.float64, requires_grad=True)


def test_value_and_two_derivatives() -> None:
    x = leaf(2.0, -1.0)
    (g,) = tp.autograd.grad(cube(x).sum(), x, create_graph=True)
    (h,) = tp.autograd.grad(g.sum(), x)
    assert cube(x).tolist() == [8.0, -1.0]
    assert g.tolist() == [12.0, 3.0]
    assert h.tolist() == [12.0, -6.0]


def test_found_by_name_documented_and_pickled() -> None:
    assert tp.ops.tests.cube is cube
    assert "cube" in dir(tp.ops.tests)
    assert cube.__doc__ == "Third power, by NumPy."
    assert pickle.loads(pickle.dumps(cube)) is cube
    with pytest.raises(AttributeError, match="tests::absent"):
        _ = tp.ops.tests.absent


def test_a_list_of_tensors_gets_a_list_of_gradients() -> None:
    @custom_op("tests::scaled_sum", mutates_args=())
    def scaled_sum(xs: Sequence[Tensor], k: float = 2.0) -> Tensor:
        return sum(xs[1:], xs[0]) * k

    seen: list[Any] = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.n, ctx.k = len(inputs[0]), inputs[1]

    def backward(ctx: Any, g: Tensor) -> Any:
        seen.append(ctx.needs_input_grad)
        return [g * ctx.k] * ctx.n, None

    scaled_sum.register_autograd(backward, setup_context=setup)
    a, b = leaf(1.0), leaf(2.0)
    c = b.detach()
    assert [g.item() for g in tp.autograd.grad(scaled_sum([a, b, c], 5.0), (a, b))] == [5.0, 5.0]
    assert seen == [([True, True, False], False)]


def test_keyword_only_arguments_reach_setup_context() -> None:
    @custom_op("tests::times", mutates_args=())
    def times(x: Tensor, *, k: float = 2.0) -> Tensor:
        return x * k

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        assert len(inputs) == 1
        ctx.k = keyword_only_inputs["k"]

    times.register_autograd(lambda ctx, g: g * ctx.k, setup_context=setup)
    x = leaf(1.0)
    assert tp.autograd.grad(times(x, k=3.0), x)[0].item() == 3.0
    assert tp.autograd.grad(times(x), x)[0].item() == 2.0
    with pytest.raises(TypeError, match=r"tests::times: takes 1 positional arguments, 2 were given"):
        times(x, 3.0)


def test_without_a_formula_backward_names_the_remedy() -> None:
    @custom_op("tests::opaque", mutates_args=())
    def opaque(x: Tensor) -> Tensor:
        return x * 2

    y = opaque(leaf(1.0))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match=r"tests::opaque but no autograd formula was registered.*register_autograd"):
        y.backward()


def test_several_results_lists_and_none() -> None:
    @custom_op("tests::pair", mutates_args=())
    def pair(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2

    @custom_op("tests::pieces", mutates_args=())
    def pieces(x: Tensor, n: int) -> list[Tensor]:
        return [x * i for i in range(n)]

    pieces.register_autograd(
        lambda ctx, grads: (sum(i * g for i, g in enumerate(grads)), None),
        setup_context=lambda ctx, inputs, output: None,
    )
    assert [t.item() for t in pair(tp.tensor(1.0))] == [2.0, 3.0]
    x = leaf(1.0)
    out = pieces(x, 4)
    assert isinstance(out, list)
    assert tp.autograd.grad(sum(out), x)[0].item() == 6.0


def test_mutation_moves_the_version() -> None:
    @custom_op("tests::wipe", mutates_args=("x",))
    def wipe(x: Tensor) -> None:
        x.numpy()[...] = 0

    x = tp.ones(3)
    y = leaf(1.0, 2.0, 3.0)
    z = (y * x).sum()
    assert wipe(x) is None
    assert x.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="modified"):
        z.backward()
    with pytest.raises(RuntimeError, match="'x' requires grad"):
        wipe(leaf(1.0))
    with pytest.raises(RuntimeError, match=r"non-functional operator.*tests::wipe\(Tensor\(a0!\) x\) -> \(\)"):
        wipe.register_autograd(lambda ctx, g: g)


def test_what_a_kernel_may_not_do() -> None:
    @custom_op("tests::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    @custom_op("tests::viewed", mutates_args=())
    def viewed(x: Tensor) -> Tensor:
        return x.view(-1)

    @custom_op("tests::undeclared", mutates_args=())
    def undeclared(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    @custom_op("tests::wrong_kind", mutates_args=())
    def wrong_kind(x: Tensor) -> Tensor:
        return 3.0  # type: ignore[return-value]

    for op in (same, viewed):
        with pytest.raises(RuntimeError, match="may not alias any inputs"):
            op(tp.ones(3))
    with pytest.raises(RuntimeError, match=r"'x' was changed in place.*x\.clone"):
        undeclared(tp.ones(3))
    with pytest.raises(RuntimeError, match="returned float where"):
        wrong_kind(tp.ones(3))


def test_schemas_say_what_is_missing() -> None:
    def no_type(x, y: int) -> Tensor: ...  # type: ignore[no-untyped-def]
    def no_result(x: Tensor): ...  # type: ignore[no-untyped-def]
    def odd(x: dict[str, int]) -> Tensor: ...
    def many(x: Tensor | None, d: tp.dtype, s: str = "a", n: Sequence[int] = (1, 2)) -> list[Tensor]: ...

    with pytest.raises(ValueError, match="parameter x .* must have a type annotation"):
        infer_schema(no_type)
    with pytest.raises(ValueError, match="no return type annotation"):
        infer_schema(no_result)
    with pytest.raises(ValueError, match="parameter x of odd has type dict"):
        infer_schema(odd)
    with pytest.raises(ValueError, match="mutates_args names"):
        infer_schema(many, mutates_args=("absent",))
    with pytest.raises(ValueError, match="not a Tensor"):
        infer_schema(many, mutates_args=("d",))
    assert infer_schema(many) == "(Tensor? x, ScalarType d, str s='a', int[] n=(1, 2)) -> Tensor[]"
    with pytest.raises(ValueError, match="'namespace::name', not 'cube'"):
        custom_op("cube", cube._init_fn, mutates_args=())
    with pytest.raises(ValueError, match="no device 'cuda'"):
        custom_op("tests::x", cube._init_fn, mutates_args=(), device_types="cuda")


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "'x' is missing"),
        ((3.0,), {}, "'x' must be Tensor, not float"),
        ((1, 2), {}, "takes 1 positional"),
        ((tp.ones(1),), {"x": tp.ones(1)}, "'x' is given twice"),
        ((tp.ones(1),), {"k": 1}, "no argument 'k'"),
    ],
)
def test_calls_that_do_not_fit(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"tests::cube: .*{message}"):
        cube(*args, **kwargs)


def test_kernels_can_be_replaced_and_switched_off() -> None:
    @custom_op("tests::one", mutates_args=())
    def one(x: Tensor) -> Tensor:
        return x + 1

    one.register_kernel("cpu", lambda x: x + 10)
    assert one(tp.zeros(1)).item() == 10
    with one.set_kernel_enabled("cpu", False):
        assert one(tp.zeros(1)).item() == 1
    assert one(tp.zeros(1)).item() == 10


def test_opcheck_tells_right_from_wrong() -> None:
    cube.register_fake(tp.empty_like)
    x = leaf(1.0, 2.0)
    assert set(opcheck(cube, (x,)).values()) == {"SUCCESS"}

    @custom_op("tests::sly", mutates_args=())
    def sly(x: Tensor) -> Tensor:
        x.numpy()[...] += 1  # unseen by the version counter
        return x.clone()

    sly.register_fake(lambda x: tp.empty(7))
    found = opcheck(sly, (tp.ones(2),), raise_exception=False)
    assert "mutates_args does not name it" in str(found["test_schema"])
    assert "the fake gives" in str(found["test_faketensor"])
    with pytest.raises(tp.library.OpCheckError, match="test_schema failed"):
        opcheck(sly, (tp.ones(2),))

    @custom_op("tests::raw", mutates_args=())
    def raw(x: Tensor) -> Tensor:
        flat = np.lib.stride_tricks.as_strided(x.numpy(), x.shape, [x.element_size()] * x.dim())
        return tp.from_numpy(flat.copy())

    with pytest.raises(tp.library.OpCheckError, match="memory layout"):
        opcheck(raw, (tp.arange(4.0),), test_utils="test_aot_dispatch_dynamic")
    with pytest.raises(ValueError, match="no check 'test_x'"):
        opcheck(cube, (x,), test_utils="test_x")
