"""Convolutions against a direct sum, with every option; gradients to second order."""

import itertools

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional


def direct(x, w, b, stride, padding, dilation, groups):
    """Sum over taps, written from the definition."""
    n = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    size = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(n)]
    out = np.zeros((x.shape[0], w.shape[0], *size))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for tap in itertools.product(*(range(k) for k in w.shape[2:])):
        cut = tuple(
            slice(t * d, t * d + s * (m - 1) + 1, s) for t, d, s, m in zip(tap, dilation, stride, size, strict=True)
        )
        for g in range(groups):
            part = x[(slice(None), slice(g * per_in, (g + 1) * per_in), *cut)]
            weight = w[(slice(g * per_out, (g + 1) * per_out), slice(None), *tap)]
            out[:, g * per_out : (g + 1) * per_out] += np.einsum("oi,ni...->no...", weight, part)
    return out if b is None else out + b.reshape(1, -1, *(1,) * n)


CASES = [
    (1, 2, 0, 1, 1), (1, 1, 1, 2, 1), (2, 1, 0, 1, 1), (2, 2, 1, 1, 1),
    (2, 1, 1, 2, 1), (2, 1, 1, 1, 2), (3, 1, 1, 1, 1), (3, 2, 0, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(("n", "stride", "padding", "dilation", "groups"), CASES)
def test_values_and_gradients(n, stride, padding, dilation, groups):
    rng = np.random.default_rng(0)
    f = getattr(F, f"conv{n}d")
    x = rng.normal(size=(2, 4, *(6, 5, 6)[:n]))
    w, b = rng.normal(size=(4, 4 // groups, *(3, 2, 2)[:n])), rng.normal(size=4)
    got = f(tp.tensor(x), tp.tensor(w), tp.tensor(b), stride=stride, padding=padding, dilation=dilation, groups=groups)
    want = direct(x, w, b, *([v] * n for v in (stride, padding, dilation)), groups)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-12)
    leaves = [tp.tensor(v, requires_grad=True) for v in (x[:1], w, b)]
    g = lambda x, w, b: f(x, w, b, stride, padding, dilation, groups)  # noqa: E731
    assert tp.autograd.gradcheck(g, leaves, fast_mode=True)
    assert tp.autograd.gradgradcheck(g, leaves, fast_mode=True)


def test_padding_by_name_keeps_the_size():
    x, w = tp.ones(1, 2, 7, 6), tp.ones(3, 2, 3, 4)
    assert F.conv2d(x, w, padding="same").shape == (1, 3, 7, 6)
    assert F.conv2d(x, w, padding="valid").shape == (1, 3, 5, 3)
    with pytest.raises((RuntimeError, ValueError)):
        F.conv2d(x, w, padding="full")


def test_without_batch_dimension():
    assert F.conv2d(tp.ones(2, 5, 5), tp.ones(3, 2, 3, 3)).shape == (3, 3, 3)


def test_errors_name_sizes():
    with pytest.raises((RuntimeError, ValueError), match="conv2d"):
        F.conv2d(tp.ones(1, 3, 5, 5), tp.ones(2, 4, 3, 3))
