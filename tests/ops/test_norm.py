"""Normalisations: values against NumPy, gradients to second order, running statistics, optional parameters."""

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional


def leaves(*arrays):
    return [tp.tensor(a, requires_grad=True) for a in arrays]


def rng():
    return np.random.default_rng(0)


def test_layer_norm_values():
    a, w, b = rng().normal(size=(4, 5)), rng().normal(size=5), rng().normal(size=5)
    want = (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * w + b
    got = F.layer_norm(tp.tensor(a), (5,), tp.tensor(w), tp.tensor(b))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10)
    np.testing.assert_allclose(
        F.layer_norm(tp.tensor(a), (4, 5)).numpy(), (a - a.mean()) / np.sqrt(a.var() + 1e-5), rtol=1e-10
    )


def test_layer_norm_gradients():
    x, w, b = leaves(rng().normal(size=(4, 5)), rng().normal(size=5), rng().normal(size=5))
    f = lambda x, w, b: F.layer_norm(x, (5,), w, b)  # noqa: E731
    assert tp.autograd.gradcheck(f, (x, w, b))
    assert tp.autograd.gradgradcheck(f, (x, w, b))
    assert tp.autograd.gradcheck(lambda x: F.layer_norm(x, (5,)), (x,))


def test_layer_norm_refuses_other_sizes():
    with pytest.raises((RuntimeError, ValueError), match="layer_norm"):
        F.layer_norm(tp.ones(2, 3), (4,))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5)])
def test_batch_norm(training, shape):
    a = rng().normal(size=shape)
    mean, var = rng().normal(size=3), rng().uniform(0.5, 2, 3)
    axes = tuple(i for i in range(len(shape)) if i != 1)
    view = tuple(-1 if i == 1 else 1 for i in range(len(shape)))
    m, v = (a.mean(axes), a.var(axes)) if training else (mean, var)
    want = (a - m.reshape(view)) / np.sqrt(v.reshape(view) + 1e-5)
    running_mean, running_var = tp.tensor(mean), tp.tensor(var)
    got = F.batch_norm(tp.tensor(a), running_mean, running_var, training=training)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)
    n = a.size / 3
    moved = 0.9 * var + 0.1 * a.var(axes) * n / (n - 1) if training else var
    np.testing.assert_allclose(running_var.numpy(), moved, rtol=1e-9)
    x, w, b = leaves(a, rng().normal(size=3), rng().normal(size=3))
    running = (None, None) if training else (tp.tensor(mean), tp.tensor(var))

    def f(x, w, b):
        return F.batch_norm(x, *running, w, b, training)

    assert tp.autograd.gradcheck(f, (x, w, b))
    assert tp.autograd.gradgradcheck(f, (x, w, b))


def test_group_norm():
    a = rng().normal(size=(2, 4, 3))
    g = a.reshape(2, 2, 6)
    want = ((g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + 1e-5)).reshape(2, 4, 3)
    np.testing.assert_allclose(F.group_norm(tp.tensor(a), 2).numpy(), want, rtol=1e-9)
    x, w, b = leaves(a, rng().normal(size=4), rng().normal(size=4))
    f = lambda x, w, b: F.group_norm(x, 2, w, b)  # noqa: E731
    assert tp.autograd.gradcheck(f, (x, w, b))
    assert tp.autograd.gradgradcheck(f, (x, w, b))


def test_rms_norm():
    a, w = rng().normal(size=(4, 5)), rng().normal(size=5)
    want = a / np.sqrt((a * a).mean(1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(F.rms_norm(tp.tensor(a), (5,), tp.tensor(w), 1e-6).numpy(), want, rtol=1e-9)
    f = lambda x, w: F.rms_norm(x, (5,), w)  # noqa: E731
    assert tp.autograd.gradcheck(f, leaves(a, w))
    assert tp.autograd.gradgradcheck(f, leaves(a, w))
