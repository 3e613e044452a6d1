"""Losses and normalisers: every reduction, weights, ignored targets, stability far from zero, gradients."""

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional


def log_softmax(a, axis=1):
    m = a.max(axis, keepdims=True)
    return a - m - np.log(np.exp(a - m).sum(axis, keepdims=True))


def reference(a, t, weight=None, ignore=-100, reduction="mean", smoothing=0.0):
    logp = log_softmax(a)
    c = a.shape[1]
    w = np.ones(c) if weight is None else weight
    keep = t != ignore
    safe = np.where(keep, t, 0)
    picked = np.take_along_axis(logp, safe[:, None], 1)[:, 0]
    shape = (1, c) + (1,) * (a.ndim - 2)
    each = -(1 - smoothing) * w[safe] * picked - smoothing / c * (logp * w.reshape(shape)).sum(1)
    each = each * keep
    total = (w[safe] * keep).sum()
    return each.sum() / total if reduction == "mean" else each.sum() if reduction == "sum" else each


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4)])
def test_cross_entropy(reduction, weighted, smoothing, shape):
    rng = np.random.default_rng(0)
    a, w = rng.normal(size=shape), rng.uniform(0.5, 2, shape[1])
    t = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    t.flat[0] = -100
    weight = tp.tensor(w) if weighted else None
    f = lambda x: F.cross_entropy(x, tp.tensor(t), weight, reduction=reduction, label_smoothing=smoothing)  # noqa: E731
    x = tp.tensor(a, requires_grad=True)
    np.testing.assert_allclose(
        f(x).detach().numpy(),
        reference(a, t, w if weighted else None, reduction=reduction, smoothing=smoothing),
        rtol=1e-10,
        atol=1e-12,
    )
    assert tp.autograd.gradcheck(f, (x,))
    assert tp.autograd.gradgradcheck(f, (x,))


def test_cross_entropy_against_probabilities():
    rng = np.random.default_rng(1)
    a, p = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(3), 4)
    x, q = tp.tensor(a, requires_grad=True), tp.tensor(p, requires_grad=True)
    np.testing.assert_allclose(F.cross_entropy(x, q).item(), -(p * log_softmax(a)).sum(1).mean(), rtol=1e-12)
    assert tp.autograd.gradcheck(F.cross_entropy, (x, q))


def test_cross_entropy_errors_name_the_target():
    with pytest.raises((IndexError, ValueError, RuntimeError), match="7"):
        F.cross_entropy(tp.zeros(2, 3), tp.tensor([0, 7]))
    with pytest.raises(ValueError, match=r"reduction|average"):
        F.cross_entropy(tp.zeros(2, 3), tp.tensor([0, 1]), reduction="average")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss(reduction):
    rng = np.random.default_rng(2)
    logp, t, w = log_softmax(rng.normal(size=(5, 3))), np.array([0, 2, 1, 1, -100]), rng.uniform(0.5, 2, 3)
    x = tp.tensor(logp, requires_grad=True)
    f = lambda x: F.nll_loss(x, tp.tensor(t), tp.tensor(w), reduction=reduction)  # noqa: E731
    assert tp.autograd.gradcheck(f, (x,))
    assert tp.autograd.gradgradcheck(f, (x,))


def test_softmax_far_from_zero():
    x = tp.tensor([[1e4, 1e4 + 1, -1e4]], dtype=tp.float64)
    np.testing.assert_allclose(x.softmax(1).numpy(), [[1 / (1 + np.e), np.e / (1 + np.e), 0.0]], rtol=1e-12)
    assert np.isfinite(x.log_softmax(1).numpy()).all()


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_gradients(dim):
    x = tp.tensor(np.random.default_rng(0).normal(size=(3, 4)), requires_grad=True)
    for f in (lambda x: x.softmax(dim), lambda x: x.log_softmax(dim)):
        assert tp.autograd.gradcheck(f, (x,))
        assert tp.autograd.gradgradcheck(f, (x,))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_binary_cross_entropy_with_logits(reduction):
    rng = np.random.default_rng(3)
    a, t, w, p = rng.normal(size=(3, 4)), rng.uniform(size=(3, 4)), rng.uniform(size=(3, 4)), rng.uniform(0.5, 2, 4)
    sig = 1 / (1 + np.exp(-a))
    each = -w * (p * t * np.log(sig) + (1 - t) * np.log(1 - sig))
    want = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
    x = tp.tensor(a, requires_grad=True)

    def f(x):
        return F.binary_cross_entropy_with_logits(
            x, tp.tensor(t), tp.tensor(w), reduction=reduction, pos_weight=tp.tensor(p)
        )

    np.testing.assert_allclose(f(x).detach().numpy(), want, rtol=1e-10)
    assert tp.autograd.gradcheck(f, (x,))
    far = F.binary_cross_entropy_with_logits(tp.tensor([1000.0, -1000.0]), tp.tensor([1.0, 0.0]))
    assert far.item() == 0.0


def test_mse_loss_reductions():
    a, b = tp.tensor([1.0, 2.0]), tp.tensor([3.0, 2.5])
    assert F.mse_loss(a, b).item() == pytest.approx(2.125)
    assert F.mse_loss(a, b, reduction="sum").item() == pytest.approx(4.25)
    assert F.mse_loss(a, b, reduction="none").tolist() == pytest.approx([4.0, 0.25])
    with pytest.raises(ValueError, match="median"):
        F.mse_loss(a, b, reduction="median")
