"""Autocast: which ops run in the autocast dtype, which in float32, and how gradients come back through the casts."""

from __future__ import annotations

import pytest
import tensorplay as tp

F = tp.nn.functional
SQUARE, STACK, VECTOR = (4, 4), (2, 4, 4), (4,)


def ones(shape, dtype=tp.float32):
    return tp.ones(shape, dtype=dtype)


LOWERED = {
    "matmul": lambda a: a(SQUARE) @ a(SQUARE),
    "mm": lambda a: tp.mm(a(SQUARE), a(SQUARE)),
    "bmm": lambda a: tp.bmm(a(STACK), a(STACK)),
    "addmm": lambda a: tp.addmm(a(SQUARE), a(SQUARE), a(SQUARE)),
    "baddbmm": lambda a: tp.baddbmm(a(STACK), a(STACK), a(STACK)),
    "addbmm": lambda a: tp.addbmm(a(SQUARE), a(STACK), a(STACK)),
    "linear": lambda a: F.linear(a(SQUARE), a(SQUARE), a(VECTOR)),
    "conv1d": lambda a: F.conv1d(a(STACK), a((3, 4, 2))),
    "conv2d": lambda a: F.conv2d(a((1, 2, 5, 5)), a((3, 2, 2, 2)), a((3,))),
    "conv3d": lambda a: F.conv3d(a((1, 2, 4, 4, 4)), a((3, 2, 2, 2, 2))),
    "conv_transpose2d": lambda a: F.conv_transpose2d(a((1, 2, 5, 5)), a((2, 3, 2, 2))),
    "scaled_dot_product_attention": lambda a: F.scaled_dot_product_attention(a(STACK), a(STACK), a(STACK)),
    "prelu": lambda a: F.prelu(a(SQUARE), a((1,))),
}
KEPT = {
    "mv": lambda a: tp.mv(a(SQUARE), a(VECTOR)),
    "add": lambda a: a(SQUARE) + a(SQUARE),
    "exp": lambda a: a(SQUARE).exp(),
    "sum": lambda a: a(SQUARE).sum(),
    "gelu": lambda a: F.gelu(a(SQUARE)),
}
RAISED = {
    "prod": lambda a: a(SQUARE).prod(),
    "trace": lambda a: tp.trace(a(SQUARE)),
    "mse_loss": lambda a: F.mse_loss(a(SQUARE), a(SQUARE)),
    "l1_loss": lambda a: F.l1_loss(a(SQUARE), a(SQUARE)),
    "binary_cross_entropy_with_logits": lambda a: F.binary_cross_entropy_with_logits(a(SQUARE), a(SQUARE)),
    "cross_entropy": lambda a: F.cross_entropy(a(SQUARE), tp.zeros(4, dtype=tp.int64)),
    "logsumexp": lambda a: tp.logsumexp(a(SQUARE), 0),
}


@pytest.mark.parametrize("dtype", [tp.bfloat16, tp.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("name", LOWERED)
def test_products_run_in_the_autocast_dtype(name: str, dtype) -> None:
    f = LOWERED[name]
    plain = f(ones)
    with tp.amp.autocast("cpu", dtype):
        lowered = f(ones)
        wide = f(lambda shape: ones(shape, tp.float64))
    assert plain.dtype == tp.float32 and lowered.dtype == dtype and wide.dtype == tp.float64
    assert lowered.float().allclose(plain, rtol=2e-2)


@pytest.mark.parametrize("name", KEPT)
def test_others_keep_their_dtype(name: str) -> None:
    with tp.amp.autocast("cpu"):
        assert KEPT[name](ones).dtype == tp.float32
        assert KEPT[name](lambda shape: ones(shape, tp.bfloat16)).dtype == tp.bfloat16


@pytest.mark.parametrize("name", RAISED)
def test_sums_that_need_it_run_in_float32(name: str) -> None:
    with tp.amp.autocast("cpu"):
        assert RAISED[name](lambda shape: ones(shape, tp.bfloat16)).dtype == tp.float32


def test_gradients_come_back_in_the_dtype_of_the_leaves() -> None:
    w = tp.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
    x = tp.tensor([[1.0, 2.0]], requires_grad=True)
    with tp.amp.autocast("cpu"):
        y = F.linear(x, w)
        with tp.amp.autocast("cpu", enabled=False):
            assert F.linear(x, w).dtype == tp.float32
    assert y.dtype == tp.bfloat16 and y.tolist() == [[-1.5, 2.5]]
    y.sum().backward()
    assert w.grad.dtype == x.grad.dtype == tp.float32
    assert w.grad.tolist() == [[1.0, 2.0], [1.0, 2.0]] and x.grad.tolist() == [[2.5, -0.75]]


def test_tangents_follow_the_cast() -> None:
    fwd = tp.autograd.forward_ad
    w = tp.tensor([[0.5, -1.0], [2.0, 0.25]])
    with fwd.dual_level(), tp.amp.autocast("cpu"):
        x = fwd.make_dual(tp.tensor([[1.0, 2.0]]), tp.tensor([[1.0, 0.0]]))
        y, t = fwd.unpack_dual(x @ w)
    assert y.dtype == t.dtype == tp.bfloat16 and t.tolist() == [[0.5, -1.0]]


# ---- Functions under autocast ----------------------------------------------------------------------------------------
def product(cast, seen):
    class Product(tp.autograd.Function):
        @staticmethod
        @tp.amp.custom_fwd(device_type="cpu", cast_inputs=cast)
        def forward(ctx, a, b, more=None):
            seen.append(("forward", a.dtype, tp.is_autocast_enabled(), more))
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @tp.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            out = g @ b.mT
            seen.append(("backward", out.dtype, tp.is_autocast_enabled()))
            return out, a.mT @ g, None

    return Product.apply


@pytest.mark.parametrize("dtype", [tp.bfloat16, tp.float16])
@pytest.mark.parametrize("around_backward", [True, False])
def test_backward_runs_under_the_autocast_of_its_forward(dtype, around_backward: bool) -> None:
    seen: list = []
    a = tp.ones(2, 2, requires_grad=True)
    with tp.autocast("cpu", dtype=dtype):
        y = product(None, seen)(a, tp.ones(2, 2))
    with tp.autocast("cpu", enabled=around_backward):
        y.sum().backward()
    assert y.dtype == dtype and a.grad.dtype == tp.float32 and a.grad.tolist() == [[2.0, 2.0]] * 2
    assert seen == [("forward", tp.float32, True, None), ("backward", dtype, True)]
    with tp.autocast("cpu"):
        with tp.autocast("cpu", enabled=False):
            z = product(None, seen)(a, tp.ones(2, 2))
        z.sum().backward()
    assert seen[2:] == [("forward", tp.float32, False, None), ("backward", tp.float32, False)]


@pytest.mark.parametrize("cast", [tp.float32, tp.bfloat16, tp.float64])
def test_inputs_cast_for_a_forward_without_autocast(cast) -> None:
    seen: list = []
    run = product(cast, seen)
    a, half = tp.ones(2, 2, requires_grad=True), tp.ones(2, 2, dtype=tp.float16)
    more = [half, {"k": (half.double(), half.int(), "s")}]
    with tp.autocast("cpu"):
        y = run(a, a, more)
    y.sum().backward()
    (_, dtype, on, got), (_, backward, backward_on) = seen
    assert (dtype, on, backward, backward_on, y.dtype) == (cast, False, cast, False, cast)
    assert type(got) is list and got[0].dtype == cast and type(got[1]["k"]) is tuple
    assert [t.dtype for t in got[1]["k"][:2]] == [tp.float64, tp.int32] and got[1]["k"][2] == "s"
    assert a.grad.dtype == tp.float32
    del seen[:]
    run(a, a, more).sum().backward()  # without autocast nothing is cast
    assert seen[0][1:3] == (tp.float32, False) and seen[0][3] is more and seen[1] == ("backward", tp.float32, False)


def test_custom_bwd_without_custom_fwd() -> None:
    class Alone(tp.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        @tp.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="custom_bwd: AloneBackward does not know .* custom_fwd"):
        Alone.apply(tp.ones(1, requires_grad=True)).backward()
    with pytest.raises(TypeError, match="device_type"):
        tp.amp.custom_fwd(lambda ctx, a: a)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tp.amp.custom_bwd(device_type=3)
    with pytest.raises(RuntimeError, match="only device_type 'cpu'"):
        tp.amp.custom_fwd(device_type="cuda")


def test_a_dtype_that_autocast_has_not() -> None:
    for dtype in (tp.float32, tp.int32, tp.complex64):
        with pytest.warns(UserWarning, match="dtype must be bfloat16 or float16, got .*; autocast is off"):
            block = tp.autocast("cpu", dtype=dtype)
        with block:
            assert not tp.is_autocast_enabled() and (ones(SQUARE) @ ones(SQUARE)).dtype == tp.float32
    with pytest.raises(ValueError, match="device_type"):
        tp.autocast(3)


def test_switches_of_the_thread() -> None:
    try:
        tp.set_autocast_dtype("cpu", tp.float16)
        tp.set_autocast_enabled("cpu", True)
        assert (ones(SQUARE) @ ones(SQUARE)).dtype == tp.float16
    finally:
        tp.set_autocast_enabled("cpu", False)
        tp.set_autocast_dtype("cpu", tp.bfloat16)
    assert not tp.is_autocast_enabled()
    with pytest.raises(RuntimeError, match="bfloat16 or float16"):
        tp.set_autocast_dtype("cpu", tp.float32)
    assert tp.amp.is_autocast_available("cpu") and not tp.amp.is_autocast_available("cuda")


def test_there_is_no_cache_of_casts() -> None:
    assert tp.is_autocast_cache_enabled() is False
    tp.set_autocast_cache_enabled(False)
    tp.clear_autocast_cache()
    with pytest.raises(RuntimeError, match="no cache"):
        tp.set_autocast_cache_enabled(True)
    w = ones(SQUARE).requires_grad_()
    with tp.autocast("cpu"):
        before = w @ w
        with tp.no_grad():
            w.add_(1)
        assert (w @ w)[0, 0].item() == 16.0 and before[0, 0].item() == 4.0
