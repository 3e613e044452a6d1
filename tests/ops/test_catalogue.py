"""Ops whose reference is no single NumPy call: order statistics, scatters of views, attention, losses of pairs."""

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional
RNG = np.random.default_rng(0)


def test_order_statistics():
    a = RNG.permutation(15).reshape(3, 5) * 1.0
    x = tp.tensor(a)
    np.testing.assert_array_equal(x.median(1)[0].numpy(), np.median(a, 1))
    np.testing.assert_array_equal(x.median(1)[1].numpy(), np.argsort(a, 1)[:, 2])
    np.testing.assert_array_equal(x.kthvalue(2, 1)[0].numpy(), np.sort(a, 1)[:, 1])
    np.testing.assert_array_equal(tp.tensor([[2.0, 1.0, 2.0, 1.0]]).mode(1)[0].numpy(), [1.0])
    np.testing.assert_array_equal(x.cummax(1)[0].numpy(), np.maximum.accumulate(a, 1))
    np.testing.assert_array_equal(x.cummin(0)[0].numpy(), np.minimum.accumulate(a, 0))


def test_median_shares_ties():
    x = tp.tensor([2.0, 1.0, 2.0, 5.0, 2.0], requires_grad=True)
    x.median().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 / 3, 0, 1 / 3, 0, 1 / 3], rtol=1e-6)


def test_parts_replaced():
    a, row = RNG.normal(size=(4, 4)), RNG.normal(size=4)
    x, src = tp.tensor(a), tp.tensor(row)
    want = a.copy()
    want[:, 1] = row
    np.testing.assert_array_equal(tp.select_scatter(x, src, 1, 1).numpy(), want)
    want = a.copy()
    want[1:3] = 7.0
    np.testing.assert_array_equal(tp.slice_scatter(x, tp.full((2, 4), 7.0, dtype=tp.float64), 0, 1, 3).numpy(), want)
    want = a.copy()
    np.fill_diagonal(want, row)
    np.testing.assert_array_equal(tp.diagonal_scatter(x, src).numpy(), want)
    want = a.copy()
    want[[2, 0]] = a[:2]
    at = tp.tensor([2, 0])
    np.testing.assert_array_equal(x.index_copy(0, at, x[:2]).numpy(), want)
    want[[2, 0]] = 3.0
    np.testing.assert_array_equal(x.index_fill(0, at, 3.0).numpy(), want)


def test_diagonal_matrices():
    a = RNG.normal(size=(2, 3))
    for offset in (-2, 0, 1):
        want = np.stack([np.diag(row, offset) for row in a])
        np.testing.assert_array_equal(tp.diag_embed(tp.tensor(a), offset).numpy(), want)


def test_windows_add_up():
    x = tp.arange(6.0, dtype=tp.float64).requires_grad_(True)
    w = x.unfold(0, 3, 1)
    np.testing.assert_array_equal(w.detach().numpy(), np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3))
    w.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 2, 3, 3, 2, 1])


def weights(q, k, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    s = s if mask is None else s + mask
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("masked", [None, "causal", "added", "bool"])
def test_attention(masked):
    q, k, v = (RNG.normal(size=(2, 4, 3)) for _ in range(3))
    hidden = np.triu(np.full((4, 4), -np.inf), 1)
    kw = {}
    mask = None
    if masked == "causal":
        kw, mask = {"is_causal": True}, hidden
    elif masked == "added":
        mask = RNG.normal(size=(4, 4))
        kw = {"attn_mask": tp.tensor(mask)}
    elif masked == "bool":
        kw, mask = {"attn_mask": tp.tensor(hidden == 0)}, hidden
    args = [tp.tensor(a, requires_grad=True) for a in (q, k, v)]
    got = F.scaled_dot_product_attention(*args, **kw)
    np.testing.assert_allclose(got.detach().numpy(), weights(q, k, mask) @ v, rtol=1e-12, atol=1e-12)
    assert tp.autograd.gradcheck(lambda *a: F.scaled_dot_product_attention(*a, **kw), args)
    assert tp.autograd.gradgradcheck(lambda *a: F.scaled_dot_product_attention(*a, **kw), args)


def test_pixels_and_channels():
    a = np.arange(24.0).reshape(1, 4, 2, 3)
    up = F.pixel_shuffle(tp.tensor(a), 2)
    want = a.reshape(1, 1, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 1, 4, 6)
    np.testing.assert_array_equal(up.numpy(), want)
    np.testing.assert_array_equal(F.pixel_unshuffle(up, 2).numpy(), a)
    shuffled = F.channel_shuffle(tp.tensor(a), 2).numpy()
    np.testing.assert_array_equal(shuffled, a[:, [0, 2, 1, 3]])


@pytest.mark.parametrize("stride", [1, 2])
def test_transposed_convolution_is_the_adjoint(stride):
    x, w = RNG.normal(size=(2, 3, 5)), RNG.normal(size=(3, 2, 3))
    y = F.conv_transpose1d(tp.tensor(x), tp.tensor(w), stride=stride)
    u = RNG.normal(size=tuple(y.shape))
    back = F.conv1d(tp.tensor(u), tp.tensor(w), stride=stride)
    np.testing.assert_allclose((y.numpy() * u).sum(), (back.numpy() * x).sum())


def test_blocks_of_an_image():
    a = RNG.normal(size=(1, 2, 3, 4))
    cols = F.unfold(tp.tensor(a), 2)
    view = np.lib.stride_tricks.sliding_window_view(a, (2, 2), axis=(2, 3))
    np.testing.assert_array_equal(cols.numpy(), view.transpose(0, 1, 4, 5, 2, 3).reshape(1, 8, 6))
    count = F.fold(tp.ones_like(cols), (3, 4), 2).numpy()
    np.testing.assert_array_equal(count[0, 0], np.outer([1, 2, 1], [1, 2, 2, 1]))


def test_losses_of_pairs():
    a, b, c = (RNG.normal(size=(3, 4)) for _ in range(3))
    near, far = np.linalg.norm(a - b + 1e-6, axis=1), np.linalg.norm(a - c + 1e-6, axis=1)
    got = F.triplet_margin_loss(tp.tensor(a), tp.tensor(b), tp.tensor(c))
    np.testing.assert_allclose(got.numpy(), np.maximum(near - far + 1, 0).mean())
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    got = F.cosine_embedding_loss(tp.tensor(a), tp.tensor(b), tp.tensor([1.0, -1.0, 1.0]))
    np.testing.assert_allclose(got.numpy(), np.where([True, False, True], 1 - cosine, np.maximum(cosine, 0)).mean())


def test_instance_norm():
    a = RNG.normal(size=(2, 3, 6))
    want = (a - a.mean(2, keepdims=True)) / np.sqrt(a.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(F.instance_norm(tp.tensor(a)).numpy(), want)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
def test_svd(shape):
    a = RNG.normal(size=shape)
    u, s, vh = tp.linalg.svd(tp.tensor(a), full_matrices=False)
    np.testing.assert_allclose((u.numpy() * s.numpy()[..., None, :]) @ vh.numpy(), a, atol=1e-12)
    x = tp.tensor(a, requires_grad=True)

    def squares(x):
        u, s, vh = tp.linalg.svd(x, full_matrices=False)
        return u * u, s, vh * vh  # free of the vectors' signs

    assert tp.autograd.gradcheck(squares, (x,))
    assert tp.autograd.gradgradcheck(squares, (x,))


def test_symmetric_factors():
    a = RNG.normal(size=(4, 4))
    x = tp.tensor(a, requires_grad=True)

    def vectors(x):
        values, vectors = tp.linalg.eigh(x + x.mT)
        return values, vectors * vectors

    def lower(x):
        return tp.linalg.cholesky(x @ x.mT + tp.eye(4, dtype=tp.float64))

    for f in (vectors, lower):
        assert tp.autograd.gradcheck(f, (x,))
        assert tp.autograd.gradgradcheck(f, (x,))
    L = lower(x).detach().numpy()
    np.testing.assert_allclose(L @ L.T, a @ a.T + np.eye(4))


def test_repeated_values_have_finite_gradients():
    x = tp.eye(3, dtype=tp.float64).requires_grad_(True)
    for f in (tp.linalg.svdvals, tp.linalg.eigvalsh, lambda a: tp.linalg.svd(a)[1]):
        (g,) = tp.autograd.grad(f(x).sum(), x)
        np.testing.assert_allclose(g.numpy(), np.eye(3), atol=1e-12)


def test_determinant_of_singular_matrices():
    for a, want in (
        ([[3.0, 6.0], [1.0, 2.0]], [[2.0, -1.0], [-6.0, 3.0]]),
        ([[0.0, 2.0], [0.0, 3.0]], [[3.0, 0.0], [-2.0, 0.0]]),
        ([[1.0] * 3] * 3, np.zeros((3, 3))),
        ([[0.0]], [[1.0]]),
    ):
        x = tp.tensor(a, dtype=tp.float64, requires_grad=True)
        (g,) = tp.autograd.grad(tp.linalg.det(x), x)
        np.testing.assert_allclose(g.numpy(), want, atol=1e-9)


@pytest.mark.parametrize("f", [tp.linalg.inv, tp.linalg.det, lambda a: tp.linalg.slogdet(a)[1]])
def test_square_matrices(f):
    x = tp.tensor(RNG.normal(size=(2, 3, 3)), requires_grad=True)
    assert tp.autograd.gradcheck(f, (x,))
    assert tp.autograd.gradgradcheck(f, (x,))


def test_qr_and_solve():
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 2))
    q, r = tp.linalg.qr(tp.tensor(a))
    np.testing.assert_allclose(q.numpy() @ r.numpy(), a)
    x, y = tp.tensor(a, requires_grad=True), tp.tensor(b, requires_grad=True)
    assert tp.autograd.gradcheck(lambda x: tp.linalg.qr(x), (x,))
    assert tp.autograd.gradcheck(lambda x, y: tp.linalg.solve(x[:3], y), (x, y))
    assert tp.autograd.gradgradcheck(lambda x, y: tp.linalg.solve(x[:3], y), (x, y))


def test_random_fills():
    x = tp.empty(2000, dtype=tp.float64)
    assert 0.45 < x.uniform_().mean().item() < 0.55
    assert abs(x.normal_(1.0, 2.0).mean().item() - 1) < 0.3
    assert 0.4 < x.exponential_(2.0).mean().item() < 0.6


def test_sums_to_sizes_and_resolved_views() -> None:
    x = tp.arange(24.0).reshape(2, 3, 4).requires_grad_()
    assert x.sum_to_size(3, 1).tolist() == x.sum(0).sum(1, True).tolist()
    assert x.sum_to_size((2, 1, 4)).equal(x.sum(1, True))
    assert x.sum_to_size(2, 3, 4).equal(x)
    for sizes in ((4, 4), (1, 2, 3, 4), (2,)):
        with pytest.raises(ValueError, match="does not broadcast to the sizes"):
            x.sum_to_size(*sizes)
    z = tp.tensor([1 + 2j])
    assert z.conj().resolve_conj().tolist() == tp.conj_physical(z).tolist() == [1 - 2j]
    assert tp.resolve_neg(z).tolist() == z.tolist()
    reflectors = tp.tensor([[1.0], [0.5]])
    assert reflectors.orgqr(tp.tensor([1.6])).equal(tp.linalg.householder_product(reflectors, tp.tensor([1.6])))


def test_functions_that_torch_has_in_both_places() -> None:
    x = tp.tensor([[[-1.0, 0.3, 2.0, 4.0]]])
    F = tp.nn.functional
    for name, rest in (
        ("avg_pool1d", (2,)), ("adaptive_avg_pool1d", (2,)), ("celu", ()), ("hardshrink", ()), ("selu", ()),
        ("prelu", (tp.tensor([0.25]),)), ("threshold", (0.5, -1.0)),
    ):  # fmt: skip
        assert getattr(tp, name)(x, *rest).equal(getattr(F, name)(x, *rest)), name
    assert tp.celu_(x.clone()).equal(F.celu(x)) and tp.selu_(x.clone()).equal(F.selu(x))
    assert tp.dropout(x, 0.5, False).equal(x)


def test_settings_that_leave_no_choice() -> None:
    assert str(tp.get_default_device()) == "cpu"
    tp.set_default_device("cpu")
    tp.set_default_device(None)
    with pytest.raises((RuntimeError, ValueError, NotImplementedError), match="cuda"):
        tp.set_default_device("cuda")
    assert tp.get_float32_matmul_precision() == "highest"
    try:
        tp.set_float32_matmul_precision("high")
        assert tp.get_float32_matmul_precision() == "high"
    finally:
        tp.set_float32_matmul_precision("highest")
    with pytest.raises(ValueError, match="'low' is not one of highest, high, medium"):
        tp.set_float32_matmul_precision("low")
