"""vmap and history: gradients and tangents through it and inside it, batched cotangents, hooks, in-place and views."""

from __future__ import annotations

from typing import Any

import pytest
import tensorplay as tp
from tensorplay import _C
from tensorplay.func import vmap


def rows(*shape: int) -> Any:
    return tp.randn(*shape, dtype=tp.float64)


def same(a: Any, b: Any) -> None:
    assert a.shape == b.shape and a.dtype == b.dtype
    assert tp.allclose(a, b), (a, b)



# ---- history ----------------------------------------------------------------------------------------------------


def test_gradients_run_through_a_vmap() -> None:
    x, w = rows(3, 4).requires_grad_(), rows(4).requires_grad_()
    out = vmap(lambda b: (b * w).sin(), in_dims=0)(x)
    assert out.requires_grad
    got = tp.autograd.grad(out.sum(), (x, w))
    want = tp.autograd.grad((x * w).sin().sum(), (x, w))
    same(got[0], want[0])
    same(got[1], want[1])


def test_grad_inside_a_vmap_is_per_sample() -> None:
    x, v = rows(3, 4), rows(3, 4)

    def f(b: Any, u: Any) -> Any:
        a = b.detach().requires_grad_()
        assert a.requires_grad and a.is_leaf
        y = (a * a * u).sum()
        assert y.grad_fn is not None and not y.is_leaf
        (g,) = tp.autograd.grad(y, a)
        assert _C._is_batched(g)
        return g

    same(vmap(f)(x, v), 2 * x * v)


def test_what_is_not_batched_is_expanded_first() -> None:
    x, v = rows(4), rows(3, 4)

    def f(u: Any) -> Any:
        a = _C._expand_to_levels(x).detach().requires_grad_()
        (g,) = tp.autograd.grad((a * a * u).sum(), a)
        return g

    same(vmap(f)(v), 2 * x * v)

    def ambiguous(u: Any) -> Any:
        a = x.detach().requires_grad_()
        return tp.autograd.grad((a * u).sum(), a)[0]

    with pytest.raises(RuntimeError, match="same for all samples"):
        vmap(ambiguous)(v)


def test_batched_cotangents_of_an_unbatched_graph() -> None:
    x = rows(4).requires_grad_()
    y = x.sin() * x
    rows_of_identity = tp.eye(4, dtype=tp.float64)
    jac = vmap(lambda g: tp.autograd.grad(y, x, g, retain_graph=True)[0])(rows_of_identity)
    same(jac, tp.diag((x.cos() * x + x.sin()).detach()))


def test_batched_cotangents_of_a_batched_graph() -> None:
    x = rows(3, 4)

    def jacobian(b: Any) -> Any:
        a = b.detach().requires_grad_()
        y = a.exp() * a.sum()
        return vmap(lambda g: tp.autograd.grad(y, a, g, retain_graph=True)[0])(tp.eye(4, dtype=tp.float64))

    out = vmap(jacobian)(x)
    e = x.exp()
    same(out, tp.diag_embed(e * x.sum(1, keepdim=True)) + e[:, :, None])


def test_second_order_inside() -> None:
    x = rows(3)

    def f(b: Any) -> Any:
        a = b.detach().requires_grad_()
        (g,) = tp.autograd.grad(a**3, a, create_graph=True)
        return tp.autograd.grad(g, a)[0]

    same(vmap(f)(x), 6 * x)


def test_tangents_at_both_levels() -> None:
    x, t = rows(3, 4), rows(3, 4)
    from tensorplay.autograd import forward_ad as fwd

    def f(b: Any, d: Any) -> Any:
        dual = fwd.make_dual(b, d)
        p, dot = fwd.unpack_dual((dual * dual).sin())
        return p, dot

    with fwd.dual_level():
        p, dot = vmap(f)(x, t)
    same(p, (x * x).sin())
    same(dot, (x * x).cos() * 2 * x * t)

    def basis(d: Any) -> Any:
        return fwd.unpack_dual(fwd.make_dual(x[0], d) ** 2).tangent

    with fwd.dual_level():
        same(vmap(basis)(tp.eye(4, dtype=tp.float64)), tp.diag(2 * x[0]))

    # The other order: duals go into the vmap.
    with fwd.dual_level():
        out = fwd.unpack_dual(vmap(lambda b: b.exp())(fwd.make_dual(x, t)))
    same(out.tangent, x.exp() * t)


# ---- views, copies, what depends on values ----------------------------------------------------------------------


def test_batched_cotangents_pass_a_view_changed_in_place() -> None:
    x = rows(4).requires_grad_()
    y = x * 1
    y[1:3].mul_(2)
    jac = vmap(lambda g: tp.autograd.grad(y, x, g, retain_graph=True)[0])(tp.eye(4, dtype=tp.float64))
    same(jac, tp.diag(tp.tensor([1.0, 2.0, 2.0, 1.0], dtype=tp.float64)))


def test_batched_tangents_follow_a_view_changed_in_place() -> None:
    x = rows(3, 4)

    def f(a: Any) -> Any:
        c = a * 1
        c[0] = a[1] * 2
        return c

    jacobian = tp.autograd.functional.jacobian
    want = jacobian(f, x)
    same(jacobian(f, x, vectorize=True), want)
    same(jacobian(f, x, vectorize=True, strategy="forward-mode"), want)


def test_parts_of_complex_samples() -> None:
    z = tp.randn(3, 4, dtype=tp.complex128).requires_grad_()
    for part in (lambda b: b.real, lambda b: b.imag):
        got = vmap(part)(z)
        same(got, part(z))
        same(tp.autograd.grad(got.sum(), z)[0], tp.autograd.grad(part(z).sum(), z)[0])


@pytest.mark.parametrize(
    "made",
    [
        lambda b: tp.zeros_like(b),
        lambda b: tp.empty_like(b).zero_(),
        lambda b: tp.full_like(b, 2.0).mul_(0),
        lambda b: b.new_zeros(4),
        lambda b: b.clone().fill_(0),
    ],
)
def test_what_is_made_like_a_sample_may_be_written(made: Any) -> None:
    x = rows(3, 4)
    same(vmap(lambda b: made(b).add_(b))(x), x)


def test_in_place_on_one_sample_alone() -> None:
    x, y = rows(3, 4).requires_grad_(), rows(3, 4)
    got = vmap(lambda b, c: (b * 1).cumsum_(0).clamp_(min=0.1).mul_(c))(x, y)
    want = (x.cumsum(1)).clamp(min=0.1) * y
    same(got, want)
    same(tp.autograd.grad(got.sum(), x)[0], tp.autograd.grad(want.sum(), x)[0])
    with pytest.raises(RuntimeError, match="mul_: vmap: inplace"):
        vmap(lambda b: tp.ones(4, dtype=tp.float64).mul_(b))(y)


@pytest.mark.parametrize("pick", [lambda b: tp.masked_select(b, b > 0), lambda b: tp.nonzero(b > 0)])
def test_results_whose_size_depends_on_values(pick: Any) -> None:
    x = tp.tensor([[1.0, -1.0, 2.0], [1.0, 3.0, 2.0]])
    _C._vmap_warn_of_loops(False)
    try:
        with pytest.raises(RuntimeError, match=r"vmap: the results of two samples have sizes .*tensorplay\.where"):
            vmap(pick)(x)
    finally:
        _C._vmap_warn_of_loops(True)


def test_the_loop_is_told_once_an_op() -> None:
    x = rows(3, 5)
    with pytest.warns(UserWarning, match="nanmedian_all: has no batching rule"):
        got = vmap(tp.nanmedian)(x)
    same(got, x.median(1).values)
    vmap(tp.nanmedian)(x)  # a second warning would be an error here


def test_out_takes_a_tensor_of_the_same_levels() -> None:
    x = rows(3, 4)
    same(vmap(lambda b: tp.add(b, 1, out=tp.zeros_like(b)))(x), x + 1)
    with pytest.raises(RuntimeError, match="add_: vmap: inplace"):
        vmap(lambda b: tp.add(b, 1, out=tp.zeros(4, dtype=tp.float64)))(x)


def test_batched_cotangents_reach_a_function_of_ones_own() -> None:
    class Square(tp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    x = rows(4).requires_grad_()
    y = Square.apply(x)
    jac = vmap(lambda g: tp.autograd.grad(y, x, g, retain_graph=True)[0])(tp.eye(4, dtype=tp.float64))
    same(jac, tp.diag(2 * x.detach()))


def test_backward_inside_is_refused() -> None:
    p, x = rows(4).requires_grad_(), rows(3, 4)

    def f(b: Any) -> Any:
        (b * p).sum().backward()
        return b

    with pytest.raises(RuntimeError, match="backward.*inside a func transform.*func.grad"):
        vmap(f)(x)
    assert p.grad is None
    (p * 2).sum().backward()
    same(p.grad, 2 * tp.ones(4, dtype=tp.float64))


def test_a_hook_sees_what_the_function_sees() -> None:
    x, scale = rows(3, 4), rows(3)
    seen = []

    def f(b: Any, s: Any) -> Any:
        a = b.detach().requires_grad_()
        y = a * a
        y.register_hook(lambda g: seen.append((tuple(g.shape), _C._is_batched(g))) or g * s)
        a.register_hook(lambda g: seen.append((tuple(g.shape), _C._is_batched(g))))
        return tp.autograd.grad(y.sum(), a)[0]

    same(vmap(f)(x, scale), 2 * x * scale[:, None])
    assert seen == [((4,), True)] * 2


def test_a_hook_may_return_the_same_for_all_samples() -> None:
    def f(b: Any) -> Any:
        a = b.detach().requires_grad_()
        a.register_hook(lambda g: tp.ones(4, dtype=tp.float64))
        return tp.autograd.grad((a * a).sum(), a)[0]

    same(vmap(f)(rows(3, 4)), tp.ones(3, 4, dtype=tp.float64))


def test_a_hook_of_a_vmap_that_has_ended_says_so() -> None:
    x = rows(3, 4).requires_grad_()

    def f(b: Any) -> Any:
        y = b * 2
        y.register_hook(lambda g: g)
        return y

    y = vmap(f)(x)
    with pytest.raises(RuntimeError, match="vmap that made it has ended.*outside vmap"):
        y.sum().backward()

    def g(b: Any) -> Any:
        b.register_post_accumulate_grad_hook(lambda p: None)
        return b

    with pytest.raises(RuntimeError, match="does not run inside vmap"):
        vmap(g)(x)
