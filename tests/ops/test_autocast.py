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
