"""Fourier transforms: every kind of length, norms, cut and padded input, derivatives of complex functions, errors."""

import numpy as np
import pytest
import scipy.fft
import tensorplay as tp

LENGTHS = [*range(1, 34), 49, 64, 97, 121, 128, 169, 210, 243, 1001, 1024, 2310, 10007, 20014]


def signal(*shape, dtype="complex128", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def distance(got, want):
    return np.linalg.norm(got - want) / np.linalg.norm(want)


@pytest.mark.parametrize("n", LENGTHS)
def test_every_length_is_accurate(n):
    x = signal(n)
    assert distance(tp.fft.fft(tp.tensor(x)).numpy(), np.fft.fft(x)) < 2e-15
    assert distance(tp.fft.ifft(tp.tensor(x)).numpy(), np.fft.ifft(x)) < 2e-15
    assert distance(tp.fft.rfft(tp.tensor(x.real.copy())).numpy(), np.fft.rfft(x.real)) < 2e-15
    half = np.fft.rfft(x.real)
    assert distance(tp.fft.irfft(tp.tensor(half), n).numpy(), x.real) < 2e-15
    narrow = x.astype("complex64")
    assert distance(tp.fft.fft(tp.tensor(narrow)).numpy(), np.fft.fft(narrow.astype("complex128"))) < 1e-6


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [None, 4, 9])
def test_norms_and_sizes_of_one_dimension(name, norm, n):
    real = name in ("rfft", "ihfft")
    x = signal(3, 6, 2, dtype="float64" if real else "complex128")
    want = getattr(np.fft, name)(x, n, 1, norm)
    got = getattr(tp.fft, name)(tp.tensor(x), n, 1, norm)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
@pytest.mark.parametrize(
    ("s", "dim"), [(None, None), (None, (0, 2)), ((4, 3), None), ((-1, 5), (2, 0)), ((6,), (1,))]
)  # fmt: skip
def test_several_dimensions(name, s, dim):
    real = name in ("rfftn", "ihfftn")
    x = signal(4, 3, 6, dtype="float64" if real else "complex128")
    dims = dim or range(-len(s or ()), 0)
    plain = None if s is None else [x.shape[d] if n == -1 else n for n, d in zip(s, dims, strict=True)]
    want = getattr(scipy.fft, name)(x, plain, dim, "ortho")
    got = getattr(tp.fft, name)(tp.tensor(x), s, dim, "ortho")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-13)


def test_strided_and_transposed_input_and_integers():
    x = signal(6, 8)
    t = tp.tensor(x)
    np.testing.assert_allclose(tp.fft.fft2(t.t()).numpy(), np.fft.fft2(x.T), atol=1e-13)
    np.testing.assert_allclose(tp.fft.fft(t[::2, 1::3]).numpy(), np.fft.fft(x[::2, 1::3]), atol=1e-13)
    counts = np.arange(6)
    out = tp.fft.fft(tp.tensor(counts))
    assert out.dtype == tp.complex64
    np.testing.assert_allclose(out.numpy(), np.fft.fft(counts), atol=1e-5)


def test_an_empty_batch_has_an_empty_spectrum():
    assert tuple(tp.fft.rfft(tp.zeros(0, 6)).shape) == (0, 4)
    assert tuple(tp.fft.fft(tp.zeros(2, 0, 3)).shape) == (2, 0, 3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tp.fft.fft(x, 7), lambda x: tp.fft.ifft(x, 3, norm="ortho"), lambda x: tp.fft.irfft(x, 9),
        lambda x: tp.fft.irfft(x, 4), lambda x: tp.fft.hfft(x), lambda x: tp.fft.fft2(x, (2, 5)),
        lambda x: tp.fft.irfftn(x, norm="forward"), lambda x: tp.fft.hfftn(x), lambda x: tp.fft.fftshift(x),
    ],
)  # fmt: skip
def test_derivatives_of_complex_input(f):
    x = tp.tensor(signal(3, 5), requires_grad=True)
    assert tp.autograd.gradcheck(f, (x,))
    assert tp.autograd.gradgradcheck(f, (x,))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tp.fft.fft(x), lambda x: tp.fft.rfft(x, 8), lambda x: tp.fft.rfft(x, 5), lambda x: tp.fft.ihfft(x),
        lambda x: tp.fft.rfftn(x, (4, 3)), lambda x: tp.fft.ihfft2(x), lambda x: tp.fft.irfft(tp.fft.rfft(x), 6),
    ],
)  # fmt: skip
def test_derivatives_of_real_input(f):
    x = tp.tensor(signal(3, 6, dtype="float64"), requires_grad=True)
    assert tp.autograd.gradcheck(f, (x,))
    assert tp.autograd.gradgradcheck(f, (x,))


def test_fit_size_cuts_and_pads():
    x = tp.tensor(np.arange(12.0).reshape(3, 4))
    got = tp._C.internal.fit_size(x, (5, 2)).numpy()
    np.testing.assert_array_equal(got, np.pad(np.arange(12.0).reshape(3, 4)[:, :2], ((0, 2), (0, 0))))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: tp.fft.fft(x, 0), "fft: n must be at least 1"),
        (lambda x: tp.fft.fft(x, norm="half"), "norm must be .*'half'"),
        (lambda x: tp.fft.fftn(x, dim=(0, 0)), "names dimension 0 twice"),
        (lambda x: tp.fft.fftn(x, (2,), (0, 1)), "as many"),
        (lambda x: tp.fft.fft(x, dim=5), "5"),
        (lambda x: tp.fft.irfft(x[:, :1]), "over 0 points"),
        (lambda x: tp.fft.fft(tp.zeros(0)), "over 0 points"),
    ],
)
def test_errors_say_what_was_wrong(call, message):
    with pytest.raises((ValueError, IndexError), match=message):
        call(tp.zeros(2, 3))


def test_half_precision_and_complex_input_to_real_transforms_are_refused_by_name():
    with pytest.raises(TypeError, match="fft.*float16"):
        tp.fft.fft(tp.zeros(4, dtype=tp.float16))
    with pytest.raises((TypeError, RuntimeError), match="rfft"):
        tp.fft.rfft(tp.zeros(4, dtype=tp.complex64))


@pytest.mark.parametrize("n", [1, 4, 7])
def test_frequencies(n):
    np.testing.assert_allclose(tp.fft.fftfreq(n, 0.5, dtype=tp.float64).numpy(), np.fft.fftfreq(n, 0.5))
    np.testing.assert_allclose(tp.fft.rfftfreq(n, 0.5, dtype=tp.float64).numpy(), np.fft.rfftfreq(n, 0.5))


def test_windows_take_the_factory_arguments():
    w = tp.hann_window(8, periodic=False, dtype=tp.float64, requires_grad=True)
    assert w.requires_grad
    np.testing.assert_allclose(w.detach().numpy(), np.hanning(8), atol=1e-16)
    np.testing.assert_allclose(tp.kaiser_window(9, False, 8.6, dtype=tp.float64).numpy(), np.kaiser(9, 8.6), rtol=1e-14)
    with pytest.raises(ValueError, match="window_length must not be negative; it is -1"):
        tp.hann_window(-1)
