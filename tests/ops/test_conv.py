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


# ---- complex and whole numbers ------------------------------------------------------------------------------------


def _both(shape, rng):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@pytest.mark.parametrize("padding", [1, "same"])
def test_complex_convolution_is_that_of_its_parts(padding):
    rng = np.random.default_rng(7)
    x, w, b = _both((1, 2, 5, 4), rng), _both((3, 2, 3, 3), rng), _both(3, rng)
    got = tp.nn.functional.conv2d(tp.tensor(x), tp.tensor(w), tp.tensor(b), padding=padding).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = np.zeros((1, 3, 5, 4), complex) + b[None, :, None, None]
    for i, j in itertools.product(range(5), range(4)):
        want[:, :, i, j] += np.einsum("ncij,ocij->no", padded[:, :, i : i + 3, j : j + 3], w)
    np.testing.assert_allclose(got, want, atol=1e-12)
    args = [tp.tensor(a[..., :4] if a.ndim > 1 else a, requires_grad=True) for a in (x, w, b)]
    assert tp.autograd.gradcheck(lambda *a: tp.nn.functional.conv2d(*a, padding=padding), args)


def test_complex_transposed_convolution_is_the_adjoint():
    rng = np.random.default_rng(8)
    x, w = tp.tensor(_both((1, 2, 4), rng), requires_grad=True), tp.tensor(_both((2, 3, 3), rng), requires_grad=True)
    y = tp.nn.functional.conv_transpose1d(x, w, stride=2)
    z = tp.tensor(_both(tuple(y.shape), rng))
    # <z, T x> = <C conj(w) z, x>
    back = tp.nn.functional.conv1d(z, w.conj(), stride=2)
    left, right = (z.conj() * y).sum(), (back.conj() * x).sum()
    assert abs(complex((left - right).item())) < 1e-10
    assert tp.autograd.gradcheck(lambda x, w: tp.nn.functional.conv_transpose1d(x, w, stride=2), (x, w))


@pytest.mark.parametrize("dtype", [tp.uint8, tp.int32, tp.int64])
def test_convolution_of_whole_numbers(dtype):
    x, w = tp.arange(6).reshape(1, 1, 6), tp.tensor([[[1, 2, 1]]])
    got = tp.nn.functional.conv1d(x.to(dtype), w.to(dtype), tp.tensor([3]).to(dtype))
    assert got.dtype == dtype
    assert got.tolist() == [[[7, 11, 15, 19]]]


def test_convolution_of_other_dtypes_is_refused():
    with pytest.raises(TypeError, match="conv1d: does not take"):
        tp.nn.functional.conv1d(tp.ones(1, 1, 3, dtype=tp.bool), tp.ones(1, 1, 3, dtype=tp.bool))
    with pytest.raises(TypeError, match=r"weight is .*int32 and input .*int64"):
        tp.nn.functional.conv1d(tp.ones(1, 1, 3, dtype=tp.int64), tp.ones(1, 1, 3, dtype=tp.int32))
