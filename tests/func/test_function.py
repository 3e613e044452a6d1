"""autograd.Function, hooks, no_grad and checkpoint inside transforms."""

from __future__ import annotations

import pytest
import tensorplay as tp
from tensorplay.autograd import Function
from tensorplay.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

F64 = tp.float64


def const(*values):
    return tp.tensor(values, dtype=F64)


class Combined(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Square(Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return 2 * ctx.saved_tensors[0] * t


class Generated(Square):
    generate_vmap_rule = True


class ByHand(Square):
    @staticmethod
    def vmap(info, in_dims, x):
        assert info.batch_size == x.shape[in_dims[0]] and info.randomness == "error"
        return ByHand.apply(x), in_dims[0]


class Scaled(Function):
    """Several arguments, one of them no tensor; two outputs, one saved, one not differentiable; a constant on ctx."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, power):
        y = (x * w) ** power
        return y, (y > 0).to(x.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.power = inputs
        ctx.save_for_backward(x, w, output[0])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        x, w, y = ctx.saved_tensors
        slope = ctx.power * y / (x * w) * g
        return slope * w, (slope * x).sum() if w.ndim == 0 else slope * x, None

    @staticmethod
    def jvp(ctx, tx, tw, _):
        x, w, y = ctx.saved_tensors
        return ctx.power * y / (x * w) * (tx * w + x * tw), tp.zeros_like(y)


def test_combined_style_is_refused() -> None:
    x = const(3.0)
    for call in (
        lambda: grad(lambda x: Combined.apply(x).sum())(x),
        lambda: vjp(Combined.apply, x),
        lambda: jvp(Combined.apply, (x,), (x,)),
        lambda: vmap(Combined.apply)(x),
    ):
        with pytest.raises(RuntimeError, match="setup_context"):
            call()
    assert Combined.apply(x).tolist() == [9.0]


def test_derivatives() -> None:
    x = tp.tensor(3.0, dtype=F64)
    assert grad(Square.apply)(x).item() == 6.0
    assert grad(grad(Square.apply))(x).item() == 2.0
    one = tp.ones_like(x)
    assert [t.item() for t in jvp(Square.apply, (x,), (one,))] == [9.0, 6.0]
    d = lambda f: lambda x: jvp(f, (x,), (one,))[1]  # noqa: E731
    for second in (d(d(Square.apply)), d(grad(Square.apply)), grad(d(Square.apply))):
        assert second(x).item() == 2.0
    cube = lambda x: Square.apply(x) * x  # noqa: E731
    for third in (d(d(d(cube))), d(grad(d(cube))), grad(d(grad(cube)))):
        assert third(x).item() == 6.0


@pytest.mark.parametrize("cls", [Generated, ByHand])
def test_vmap(cls) -> None:
    x = tp.arange(6, dtype=F64).reshape(2, 3)
    assert tp.equal(vmap(cls.apply)(x), x * x)
    assert tp.equal(vmap(cls.apply, in_dims=1, out_dims=1)(x), x * x)
    assert tp.equal(vmap(vmap(cls.apply))(x), x * x)
    assert tp.equal(vmap(grad(lambda x: cls.apply(x).sum()))(x), 2 * x)
    assert tp.equal(grad(lambda x: vmap(cls.apply)(x).sum())(x), 2 * x)
    assert tp.equal(vmap(lambda x: jvp(cls.apply, (x,), (tp.ones_like(x),))[1])(x), 2 * x)
    assert tp.equal(jvp(vmap(cls.apply), (x,), (tp.ones_like(x),))[1], 2 * x)
    for jac in (jacrev, jacfwd):
        assert tp.equal(jac(cls.apply)(x[1]), (2 * x[1]).diag())
        assert tp.equal(vmap(jac(cls.apply))(x)[1], (2 * x[1]).diag())
    assert tp.equal(hessian(lambda x: cls.apply(x).sum())(x[0]), 2 * tp.eye(3, dtype=F64))
    y = x.clone().requires_grad_()
    vmap(cls.apply)(y).sum().backward()
    assert tp.equal(y.grad, 2 * x)


def test_vmap_of_several_arguments() -> None:
    x, w = tp.arange(1, 7, dtype=F64).reshape(2, 3), tp.tensor(2.0, dtype=F64)
    f = lambda x, w: Scaled.apply(x, w, 3)  # noqa: E731
    y, sign = vmap(f, in_dims=(0, None))(x, w)
    assert tp.equal(y, (x * w) ** 3) and tp.equal(sign, tp.ones_like(x))
    loss = lambda x, w: f(x, w)[0].sum()  # noqa: E731
    gx, gw = vmap(grad(loss, (0, 1)), in_dims=(0, None))(x, w)
    assert tp.allclose(gx, 24 * x**2) and tp.allclose(gw, (12 * x**3).sum(1))
    total = grad(lambda w: vmap(loss, in_dims=(0, None))(x, w).sum())(w)
    assert total.item() == pytest.approx((12 * x**3).sum().item())
    t = jvp(lambda x: vmap(f, in_dims=(0, None))(x, w)[0], (x,), (tp.ones_like(x),))[1]
    assert tp.allclose(t, 24 * x**2)


def test_functions_without_a_rule() -> None:
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Square.apply)(const(1.0))

    class Both(ByHand):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="both generate_vmap_rule=True and an overridden vmap"):
        vmap(Both.apply)(const(1.0))

    class Short(Square):
        @staticmethod
        def vmap(info, in_dims, x):
            return x

    with pytest.raises(RuntimeError, match="two returns"):
        vmap(Short.apply)(const(1.0))
    assert tp.equal(vmap(lambda a: a + Square.apply(const(2.0)))(const(1.0, 2.0)), const(5.0, 6.0).unsqueeze(1))


def test_a_function_without_jvp() -> None:
    class Plain(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    with pytest.raises(NotImplementedError, match="jvp"):
        jvp(Plain.apply, (const(1.0),), (const(1.0),))


def test_hooks() -> None:
    seen = []

    def f(x):
        y = x * x
        y.register_hook(lambda g: (seen.append(g), g * 2)[1])
        return y.sum()

    assert grad(f)(const(3.0)).tolist() == [12.0]
    assert seen[0].tolist() == [1.0]


def test_detach_and_no_grad() -> None:
    f = lambda x: (x * x.detach()).sum()  # noqa: E731
    x = const(3.0)
    assert grad(f)(x).tolist() == [3.0] and jvp(f, (x,), (const(1.0),))[1].item() == 3.0

    def g(x):
        with tp.no_grad():
            y = x * x
        return (y * x).sum()

    assert grad(g)(x).tolist() == [9.0]


def test_checkpoint() -> None:
    from tensorplay.utils.checkpoint import checkpoint

    block = lambda x: (x.sin() * x).exp()  # noqa: E731
    f = lambda x: (checkpoint(block, x, use_reentrant=False) * x).sum()  # noqa: E731
    plain = lambda x: (block(x) * x).sum()  # noqa: E731
    x = const(0.3, -0.7)
    assert tp.allclose(grad(f)(x), grad(plain)(x))
    assert tp.allclose(vmap(grad(f))(x.unsqueeze(1)), vmap(grad(plain))(x.unsqueeze(1)))
    assert tp.allclose(jvp(grad(f), (x,), (x,))[1], jvp(grad(plain), (x,), (x,))[1])
    assert tp.allclose(grad(lambda x: grad(f)(x).sum())(x), grad(lambda x: grad(plain)(x).sum())(x))


def test_saved_tensor_hooks() -> None:
    packed = []
    with tp.autograd.graph.saved_tensors_hooks(lambda t: (packed.append(1), t)[1], lambda t: t):
        assert grad(lambda x: (x * x.sin()).sum())(const(0.0)).tolist() == [0.0]
    assert packed


class Broadcast(Function):
    """A product whose backward leaves the sum over what was broadcast to the engine."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_broadcast_gradient_is_summed_for_each_sample(n) -> None:
    y = tp.tensor([1.0, 10.0])
    x = tp.arange(1.0, n + 1)
    assert vmap(grad(lambda a: Broadcast.apply(a, y).sum()))(x).tolist() == [11.0] * n
    z = x.clone().requires_grad_()
    vmap(lambda a: Broadcast.apply(a, y))(z).sum().backward()
    assert z.grad.tolist() == [11.0] * n


def test_a_wrong_gradient_of_a_sample_names_the_function() -> None:
    class Wrong(Broadcast):
        gives = (tp.ones(5), None)

        @staticmethod
        def backward(ctx, g):
            return Wrong.gives

    slope = vmap(grad(lambda a: Wrong.apply(a, a).sum()))
    with pytest.raises(RuntimeError, match=r"WrongBackward returned an invalid gradient at index 0 - got \[5\]"):
        slope(tp.ones(3, 2))
    Wrong.gives = (tp.ones(2), None, tp.ones(2))
    with pytest.raises(RuntimeError, match=r"WrongBackward returned an incorrect number .*expected 2, got 3"):
        slope(tp.ones(3, 2))


def test_what_has_no_forward_rule_says_what_has() -> None:
    class Square(tp.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    @tp.library.custom_op("no_forward::square", mutates_args=())
    def square(x: tp.Tensor) -> tp.Tensor:
        return tp.from_numpy(x.detach().numpy() ** 2)

    square.register_autograd(
        lambda ctx, g: 2 * g * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = tp.tensor([1.0, 2.0])
    for f, says in ((Square.apply, "^Square: .*jvp"), (square, "^no_forward::square: .*custom_op")):
        total = lambda x, f=f: f(x).sum()  # noqa: E731
        says += r".*jacrev\(grad\(f\)\) or autograd\.functional\.hessian"
        for call in (tp.func.hessian(total), tp.func.jacfwd(f)):
            with pytest.raises(NotImplementedError, match=says):
                call(x)
        assert tp.func.jacrev(tp.func.grad(total))(x).tolist() == [[2.0, 0.0], [0.0, 2.0]]
        assert tp.autograd.functional.hessian(total, x).tolist() == [[2.0, 0.0], [0.0, 2.0]]
