"""Corners of the engine that few programs reach: what accumulation meets, wide and pruned passes, passes that fail."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import tensorplay as tp
from tensorplay.autograd import Function, forward_ad, grad, gradcheck, gradgradcheck

F64 = tp.float64


def leaf(*values: float) -> Any:
    return tp.tensor(values, dtype=F64, requires_grad=True)


def const(*values: float) -> Any:
    return tp.tensor(values, dtype=F64)


class Fails(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise KeyError("mine")


# ---- what .grad may be -----------------------------------------------------------------------------------------------
def test_a_gradient_with_history_is_not_written_over() -> None:
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="cycle"):
        (x**3).sum().backward(create_graph=True)
    g = x.grad
    z = (g * g).sum()  # 9 x^4
    (x * 2).sum().backward()
    assert x.grad.item() == 14.0 and g.item() == 12.0
    assert grad(z, x)[0].item() == 36 * 8.0


def test_a_gradient_with_history_is_added_to_with_history() -> None:
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="cycle"):
        (x**2).sum().backward(create_graph=True)
        (x**3).sum().backward(create_graph=True)
    assert x.grad.item() == 16.0 and grad(x.grad.sum(), x)[0].item() == 14.0


def test_a_gradient_with_a_tangent_keeps_it() -> None:
    x = leaf(2.0)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, const(10.0))
        (d * d).sum().backward()
        assert forward_ad.unpack_dual(x.grad).tangent.item() == 20.0
        (x * 3).sum().backward()
        assert x.grad.item() == 7.0 and forward_ad.unpack_dual(x.grad).tangent.item() == 20.0
        (d * d).sum().backward()
        assert x.grad.item() == 11.0 and forward_ad.unpack_dual(x.grad).tangent.item() == 40.0


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.filterwarnings("ignore:.*cycle")
def test_gradients_come_in_the_dtype_the_leaf_asks_for(create: bool) -> None:
    x = tp.tensor([3.0], requires_grad=True)
    x.grad_dtype = F64
    for total in (6.0, 12.0):
        (x * x).sum().backward(create_graph=create)
        assert x.grad.dtype == F64 and x.grad.item() == total and x.grad.requires_grad == create
    y = tp.tensor([3.0], requires_grad=True)
    y.grad_dtype = None
    (y * y).sum().backward(create_graph=create)
    assert y.grad.dtype == tp.float32 and y.grad.item() == 6.0


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_a_gradient_is_laid_out_as_its_leaf(order: tuple[int, ...]) -> None:
    back = [order.index(k) for k in range(3)]
    x = tp.arange(24.0, dtype=F64).reshape(2, 3, 4).permute(order).contiguous().permute(back).detach().requires_grad_()
    w = tp.arange(24.0, dtype=F64).reshape(2, 3, 4) + 1
    for times in (1, 2):
        (x * w).sum().backward()
        assert x.grad.stride() == x.stride() and tp.equal(x.grad, times * w)
    (x.flip(0) * w).sum().backward(inputs=[x])
    assert tp.equal(x.grad, 2 * w + w.flip(0))


# ---- wide passes -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("at", [0, 63, 64, 65, 99])
def test_one_gradient_of_a_node_with_a_hundred_inputs(at: int) -> None:
    xs = [leaf(float(i)) for i in range(100)]
    ran = []
    parts = [x * 2 for x in xs]
    for i, p in enumerate(parts):
        p.grad_fn.register_hook(lambda *_, i=i: ran.append(i))
    out = (tp.cat(parts) * tp.arange(100.0, dtype=F64)).sum()
    (g,) = grad(out, xs[at], retain_graph=True)
    assert g.tolist() == [2.0 * at] and all(x.grad is None for x in xs)
    assert ran == [at]
    out.backward()
    assert [x.grad.item() for x in xs] == [2.0 * i for i in range(100)]


# ---- passes that fail ------------------------------------------------------------------------------------------------
def test_a_pass_that_fails_over_many_diamonds_ends() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(64):
        y = y * y
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            Fails.apply(y).sum().backward(retain_graph=True)
    (y * 1).sum().backward()
    assert x.grad.item() == 2.0**64


# ---- anomaly mode ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("at", [None, 0, 1, 5, 11, 23])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.complex64, tp.complex128, tp.float16, tp.bfloat16])
def test_a_nan_is_found_wherever_it_stands(at: int | None, order: tuple[int, ...], dtype: Any) -> None:
    values = tp.ones(24, dtype=F64)
    values[-1] = float("inf")  # which is a number
    if at is not None:
        values[at] = float("nan")
    g = values.reshape(2, 3, 4).to(dtype).permute(order)[:, :, 1:] if at is None else values.reshape(2, 3, 4).to(dtype)
    if at is not None:
        g = g.permute(order)

    class Gives(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, _: Any) -> Any:
            return g

    x = tp.ones(g.shape, dtype=dtype, requires_grad=True)
    with pytest.warns(UserWarning), tp.autograd.detect_anomaly():
        y = Gives.apply(x)
        if at is None:
            y.backward(tp.ones_like(y))
            assert tp.equal(x.grad, g)
        else:
            with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
                y.backward(tp.ones_like(y))


def test_the_line_of_an_op_in_place_is_named() -> None:
    y = leaf(-1.0) * 1
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with tp.autograd.detect_anomaly():
            y.sqrt_()
            with pytest.raises(RuntimeError, match="SqrtBackward"):
                y.backward()
    assert any("y.sqrt_()" in str(w.message) for w in told)


# ---- gradients of another size than their input's --------------------------------------------------------------------
def test_a_gradient_that_was_broadcast_is_summed() -> None:
    class Wide(Function):
        sizes: tuple[int, ...] = ()

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return tp.ones(Wide.sizes, dtype=F64)

    for Wide.sizes, each in (((3, 4), 3.0), ((2, 3, 4), 6.0)):
        x = tp.ones(1, 4, dtype=F64, requires_grad=True)
        Wide.apply(x).sum().backward()
        assert x.grad.tolist() == [[each] * 4]
    Wide.sizes = (1, 5)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        Wide.apply(x).sum().backward()


# ---- tangents --------------------------------------------------------------------------------------------------------
def test_a_view_reads_its_part_of_a_tangent_laid_out_otherwise() -> None:
    base = tp.zeros(2, 3, dtype=F64)
    row, column = base[1], base[:, 2]
    t = tp.arange(6.0, dtype=F64).reshape(3, 2)
    with forward_ad.dual_level():
        base.copy_(forward_ad.make_dual(tp.ones(3, 2, dtype=F64), t).t())
        assert forward_ad.unpack_dual(row).tangent.tolist() == t.t()[1].tolist()
        row.mul_(2)
        assert forward_ad.unpack_dual(column).tangent.tolist() == [4.0, 10.0]
        assert forward_ad.unpack_dual(base).tangent.tolist() == [[0.0, 2.0, 4.0], [2.0, 6.0, 10.0]]


def test_detach_in_place_takes_the_tangent_away() -> None:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(const(2.0), const(1.0)) * 1
        other = d * 3
        d.detach_()
        assert forward_ad.unpack_dual(d).tangent is None and forward_ad.unpack_dual(d * 2).tangent is None
        assert forward_ad.unpack_dual(other).tangent.item() == 3.0
    assert forward_ad.unpack_dual(other).tangent is None


def test_a_tangent_has_the_dtype_of_its_value() -> None:
    t = tp.tensor([1.0, 2.0])
    with forward_ad.dual_level():
        d = forward_ad.make_dual(tp.tensor([3.0, 4.0]), t)
        for y in (d + const(1.0, 1.0), const(1.0, 1.0) - d, d.double(), d * const(1.0, 1.0)):
            tangent = forward_ad.unpack_dual(y).tangent
            assert y.dtype == tangent.dtype == F64 and tangent.abs().tolist() == [1.0, 2.0]
        both = d + forward_ad.make_dual(const(1.0, 1.0), const(10.0, 20.0))
        assert forward_ad.unpack_dual(both).tangent.tolist() == [11.0, 22.0]
        assert forward_ad.unpack_dual(both).tangent.dtype == F64


# ---- views -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((3, 2), (1, 1), 0), ((2, 3), (2, 1), 1), ((3,), (0,), 2), ((2, 2, 2), (1, 2, 1), 0), ((2, 2), (3, 1), 0)],
)
@pytest.mark.parametrize("create", [False, True])
def test_a_view_whose_elements_coincide_adds_their_gradients(
    size: tuple[int, ...], stride: tuple[int, ...], offset: int, create: bool
) -> None:
    x = tp.arange(1.0, 7.0, dtype=F64).requires_grad_()
    places = tp.arange(6).as_strided(size, stride, offset).reshape(-1).tolist()
    base = x * 1
    v = base.as_strided(size, stride, offset)
    base.mul_(2)  # the history of the view is made anew
    weights = [float(k + 1) for k in range(len(places))]
    out = (v * tp.tensor(weights, dtype=F64).reshape(size)).sum()
    (g,) = grad(out, x, create_graph=create)
    want = [0.0] * 6
    for place, w in zip(places, weights, strict=True):
        want[place] += 2 * w
    assert g.tolist() == want


def test_a_view_of_an_inference_tensor_is_one() -> None:
    with tp.inference_mode():
        a = tp.ones(3)
    assert a[1:].is_inference() and a.view(3, 1).is_inference() and not tp.ones(3)[1:].is_inference()
    with pytest.raises(RuntimeError, match="nference"):
        a[1:].mul_(2)


def test_a_view_made_after_a_change_keeps_the_node_of_its_op() -> None:
    y = leaf(1.0, 2.0, 3.0) * 1
    before = y[1:]
    y.mul_(2)
    after = y[1:]
    assert after.grad_fn.name() == "SliceBackward0" and before.grad_fn.name() == "AsStridedBackward0"


# ---- seeds and scalars -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("create", [False, True])
def test_a_seed_is_cast_to_the_dtype_of_its_output(create: bool) -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.dtype))
    for seed in (tp.ones(2), tp.ones(2, dtype=tp.float16), tp.ones(2, dtype=tp.int64)):
        assert grad(y, y, seed, retain_graph=True, create_graph=create)[0].dtype == F64
        assert grad(y, x, seed, retain_graph=True, create_graph=create)[0].tolist() == [3.0, 3.0]
    assert set(seen) == {F64}


def test_a_scalar_that_outranks_its_tensors_raises_them() -> None:
    i, f, d = tp.tensor([1, 2]), tp.tensor([1.0, 2.0]), const(1.0, 2.0)
    for t, alpha, dtype in ((i, 0.5, tp.float32), (f, 1j, tp.complex64), (d, 1j, tp.complex128), (i, 1j, tp.complex64)):
        out = tp.add(t, t, alpha=alpha)
        assert out.dtype == dtype and out.tolist() == [1 + alpha, 2 + 2 * alpha]


@pytest.mark.parametrize(
    "change",
    [
        lambda t, w, inplace: t.clamp_(1.5, 3.5) if inplace else t.clamp(1.5, 3.5),
        lambda t, w, inplace: t.addcmul_(w, w) if inplace else t.addcmul(w, w),
        lambda t, w, inplace: t.lerp_(w, 0.25) if inplace else t.lerp(w, 0.25),
        lambda t, w, inplace: t.nan_to_num_() if inplace else t.nan_to_num(),
    ],
)
def test_second_order_through_a_view_that_several_ops_overwrote(change: Any) -> None:
    found = []
    for inplace in (True, False):
        x, w = leaf(1.0, 2.0, 3.0, 4.0), leaf(2.0, 3.0, 5.0)
        y = x**2 / 4
        if inplace:
            change(y[1:], w, True)
        else:
            y = tp.cat([y[:1], change(y[1:], w, False)])
        gx, gw = grad((y**3).sum(), (x, w), create_graph=True, allow_unused=True, materialize_grads=True)
        second = grad((gx**2).sum() + (gw**2).sum(), (x, w), allow_unused=True, materialize_grads=True)
        found.append([gx.tolist(), gw.tolist(), *(g.tolist() for g in second)])
    for mine, plain in zip(*found, strict=True):
        assert mine == pytest.approx(plain)


def test_a_saved_value_that_was_changed_is_not_shown() -> None:
    x = leaf(1.0, 2.0) * 1
    y = x.sin()
    node = y.grad_fn
    assert node._saved_input.tolist() == [1.0, 2.0]
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*version 1"):
        _ = node._saved_input


def test_a_change_after_an_in_place_transpose_of_a_view_reaches_the_base() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    base = x * 1
    v = base.view(2, 2)
    v.t_()
    v.mul_(tp.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=F64))
    assert base.tolist() == [1.0, 6.0, 6.0, 16.0]
    assert grad(base.sum(), x)[0].tolist() == [1.0, 3.0, 2.0, 4.0]


def test_a_real_result_has_no_place_in_complex_memory() -> None:
    z = tp.tensor([1 + 2j, -3j], dtype=tp.complex128, requires_grad=True)
    y = z * 1
    with pytest.raises(RuntimeError, match="abs_: In-place abs is not supported for complex tensors"):
        y.abs_()
    assert y.tolist() == [1 + 2j, -3j] and y.grad_fn.name() == "MulBackward0"
    y.abs().sum().backward()
    assert tp.allclose(z.grad, z.detach() / z.detach().abs())


# ---- gradients that meet in one buffer -------------------------------------------------------------------------------
class Buffered(Function):
    """Adds its gradient, three times the incoming one, to the buffer where it may."""

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        (buffer,) = ctx.input_grad_buffers
        if buffer is None:
            return g * 3
        buffer.add_(g * 3)
        return None


def test_a_buffer_that_another_gradient_shares_is_not_exposed() -> None:
    x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y, z2 = Buffered.apply(x), z * 2
    (y + (x + z2)).sum().backward()  # the gradients of x and z2 are one block
    assert x.grad.tolist() == [4.0, 4.0] and z.grad.tolist() == [2.0, 2.0]


class Typed(Function):
    """The identity, with a gradient of the dtype it is told."""

    @staticmethod
    def forward(ctx, x, dtype):
        ctx.dtype = dtype
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return (g.to(F64) / 3).to(ctx.dtype), None


@pytest.mark.parametrize("dtypes", [(tp.float32, F64), (F64, tp.float32)])
def test_gradients_of_two_dtypes_meet_in_the_wider_one(dtypes: tuple[object, object]) -> None:
    x = tp.ones(2, requires_grad=True)
    x.grad_dtype = None
    (Typed.apply(x, dtypes[0]) + Typed.apply(x, dtypes[1])).sum().backward()
    assert x.grad.dtype == F64 and x.grad.tolist() == [float(np.float32(1 / 3)) + 1 / 3] * 2


# ---- which node comes next -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_of_the_ready_nodes_the_youngest_runs_first(seed: int) -> None:
    x = leaf(1.0)
    parts = [x * float(k) for k in range(40)]
    ran: list[int] = []
    for k, p in enumerate(parts):
        p.grad_fn.register_prehook(lambda _, k=k: ran.append(k))
    order = np.random.default_rng(seed).permutation(40)
    tp.stack([parts[k] for k in order]).sum().backward()
    assert ran == list(range(39, -1, -1))


# ---- views of views, and what is written through them ----------------------------------------------------------------
def test_a_view_of_a_view_that_refuses_writing_refuses_it_too() -> None:
    part = (leaf(1.0, 2.0, 3.0, 4.0) * 1).chunk(2)[0]
    with pytest.raises(RuntimeError, match="chunk|multiple views|several"):
        part.view(2, 1).mul_(2)
    x = leaf(1.0, 2.0) * 1
    with tp.no_grad():
        quiet = x[0:2]
    with pytest.raises(RuntimeError, match="no_grad"):
        quiet[0:1].mul_(leaf(2.0))


def test_a_base_keeps_its_retained_gradient_when_a_view_is_written() -> None:
    x = leaf(1.0, 2.0)
    base = x * 2
    base.retain_grad()
    base[0:1].mul_(3)
    (base * tp.tensor([5.0, 7.0], dtype=F64)).sum().backward()
    assert base.grad.tolist() == [5.0, 7.0] and x.grad.tolist() == [30.0, 14.0]


def written_as_complex(x: Any) -> Any:
    y = x * 1
    view = tp.view_as_complex(y)[1:]
    view.mul_(view * (0.5 + 2j))
    return y * y


def written_as_real(x: Any) -> Any:
    y = x * 1
    part = tp.view_as_real(y)[1:, 1]
    part.mul_(part * 3)
    return y * y


def test_a_view_of_another_kind_of_numbers_is_written() -> None:
    x = tp.tensor([[0.3, -0.7], [1.1, 0.4], [-0.6, 0.9]], dtype=F64, requires_grad=True)
    assert gradcheck(written_as_complex, (x,)) and gradgradcheck(written_as_complex, (x,))
    z = tp.tensor([0.3 - 0.7j, 1.1 + 0.4j, -0.6 + 0.9j], dtype=tp.complex128, requires_grad=True)
    assert gradcheck(written_as_real, (z,)) and gradgradcheck(written_as_real, (z,))


def test_an_expanded_tangent_is_replaced_where_its_tensor_has_views() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tp.tensor([1.0, 2.0], dtype=F64), tp.ones(1, dtype=F64).expand(2))
        view = x[0:1]
        x.mul_(tp.tensor([3.0, 4.0], dtype=F64))
        assert forward_ad.unpack_dual(x).tangent.tolist() == [3.0, 4.0]
        assert forward_ad.unpack_dual(view).tangent.tolist() == [3.0]


def test_a_view_takes_other_sizes_in_place_again_and_again() -> None:
    x = tp.arange(6.0, dtype=F64).reshape(2, 3).requires_grad_()
    w = tp.arange(6.0, dtype=F64).reshape(1, 3, 2)
    view = (x * 2)[:]
    view.t_()
    view.unsqueeze_(0)
    view.squeeze_(0)
    view.unsqueeze_(0)
    (view * w).sum().backward()
    assert tp.equal(x.grad, 2 * w[0].t())


@pytest.mark.parametrize("write", [lambda a, to: tp.matmul(a, a, out=to), lambda a, to: tp.cumsum(a, 0, out=to)])
def test_what_out_overwrites_is_known_to_be_changed(write: Any) -> None:
    x = tp.ones(2, 2, dtype=F64, requires_grad=True)
    w = tp.full((2, 2), 3.0, dtype=F64)
    y = (x * w).sum()
    write(tp.ones(2, 2, dtype=F64), w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_gradient_does_not_share_the_memory_of_its_seed() -> None:
    x, seed = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (g,) = grad(x + 1, x, seed, create_graph=True)
    with tp.no_grad():
        g.mul_(2)
    assert seed.tolist() == [3.0, 4.0]


def test_the_tangent_of_an_op_in_place_keeps_the_dtype() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 1.0]))
        w = forward_ad.make_dual(tp.tensor([3.0, 4.0], dtype=F64), tp.tensor([5.0, 6.0], dtype=F64))
        for write in (lambda: x.mul_(w), lambda: tp.nn.functional.hardtanh(x, -50.0, 50.0, inplace=True)):
            write()
            tangent = forward_ad.unpack_dual(x).tangent
            assert tangent.dtype == tp.float32 and tangent.tolist() == [8.0, 16.0]


def test_what_a_backward_runs_names_the_forward_that_induced_it() -> None:
    class Steep(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * float("nan")

    class Rooted(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * Steep.apply(x)

    x = leaf(1.0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with tp.autograd.detect_anomaly():
            y = Rooted.apply(x)  # induced here
            (g,) = grad(y, x, create_graph=True)
            with pytest.raises(RuntimeError, match="nan values"):
                grad(g, x)
    text = "".join(str(w.message) for w in told)
    assert "in the backward of RootedBackward" in text and "# induced here" in text


def test_large_gradients_that_meet_are_added_everywhere() -> None:
    x = tp.ones(300_000, requires_grad=True)
    (x * 2 + x * 3).sum().backward()
    assert x.grad.min().item() == x.grad.max().item() == 5.0


def test_a_hook_of_a_node_that_returns_another_size_is_refused() -> None:
    y = leaf(1.0, 2.0) * 2
    z = y * 3
    z.grad_fn.register_hook(lambda inputs, outputs: (tp.ones(7, dtype=F64), None))
    with pytest.raises(RuntimeError, match="changed the size of value"):
        z.sum().backward()


@pytest.mark.parametrize("make", [tp.linalg.cholesky, tp.linalg.inv, lambda a: tp.linalg.qr(a)[0], lambda a: a.t()])
def test_a_tangent_is_laid_out_as_its_tensor(make: Any) -> None:
    """What shows one as a view shows the other so too, and writing through it reaches both."""
    a = tp.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=tp.float64)
    with forward_ad.dual_level():
        x = make(forward_ad.make_dual(a, tp.tensor([[1.0, 2.0], [2.0, 5.0]], dtype=tp.float64))) * 1.0
        assert forward_ad.unpack_dual(x).tangent.stride() == x.stride()
        flat = x.t().view(-1) if x.t().is_contiguous() else x.view(-1)
        flat[1:].zero_()
        assert tp.equal(forward_ad.unpack_dual(x).tangent.ne(0).sum(), tp.tensor(1))
        window = forward_ad.make_dual(a.view(-1).unfold(0, 2, 1), tp.arange(6.0, dtype=tp.float64).view(3, 2))
        assert forward_ad.unpack_dual(window * 1.0).tangent.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]


def test_anomaly_of_a_node_made_in_a_backward_names_both_forwards() -> None:
    x = tp.tensor([2.0], dtype=F64, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly"), tp.autograd.detect_anomaly():
        (slope,) = tp.autograd.grad((x**3).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="nan values") as raised, pytest.warns(UserWarning) as told:
            slope.backward(tp.tensor([float("nan")], dtype=F64))
    text = str(raised.value) + "".join(str(w.message) for w in told)
    assert "This ran in the backward of PowBackward0. Its forward ran here:" in text
    assert "(x**3).sum()" in text


def test_large_gradients_that_meet_are_added() -> None:
    n = 300_000
    x = tp.randn(n, dtype=F64).requires_grad_()
    y, a, b = x * 2, tp.randn(n, dtype=F64), tp.randn(n, dtype=F64)
    ((y * a).sum() + (y * b).sum()).backward()
    assert tp.equal(x.grad, (a + b) * 2)


def test_a_part_of_a_tangent_that_samples_share_becomes_each_samples_own() -> None:
    w, direction = tp.tensor([1.0, 2.0, 3.0, 4.0], dtype=F64), tp.tensor([0.1, 0.2, 0.3, 0.4], dtype=F64)
    rows = tp.arange(12, dtype=F64).reshape(3, 4) + 1

    def pushed(row):
        def change(w):
            c = w + row  # the value is each sample's own, the tangent one for all
            part = c[:2]
            part.mul_(row[:2])
            return c * c, part * 1

        return tp.func.jvp(change, (w,), (direction,))[1]

    together, alone = tp.vmap(pushed)(rows), [pushed(row) for row in rows]
    for i in range(2):
        assert tp.allclose(together[i], tp.stack([t[i] for t in alone]))
