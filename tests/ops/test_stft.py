"""Short-time transforms: values frame by frame, the way back, derivatives, errors."""

import numpy as np
import pytest
import tensorplay as tp


def signal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize(("hop", "width"), [(None, None), (3, 6), (8, 8)])
def test_frames_are_windowed_spectra(center, normalized, hop, width):
    x = signal(2, 33)
    window = tp.hann_window(width or 8, dtype=tp.float64)
    got = tp.stft(
        tp.tensor(x), 8, hop, width, window, center=center, normalized=normalized, return_complex=True
    ).numpy()  # fmt: skip
    wide = np.zeros(8)
    left = (8 - (width or 8)) // 2
    wide[left : left + (width or 8)] = window.numpy()
    padded = np.pad(x, ((0, 0), (4, 4)), mode="reflect") if center else x
    starts = range(0, padded.shape[1] - 7, hop or 2)
    want = np.stack([np.fft.rfft(padded[:, s : s + 8] * wide) for s in starts], -1)
    np.testing.assert_allclose(got, want / np.sqrt(8) if normalized else want, atol=1e-13)


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("width", [None, 10])
def test_the_way_back(onesided, width):
    x = signal(3, 64)
    window = tp.hann_window(width or 16, dtype=tp.float64)
    options = {"win_length": width, "window": window, "onesided": onesided}
    spectra = tp.stft(tp.tensor(x), 16, return_complex=True, **options)
    np.testing.assert_allclose(tp.istft(spectra, 16, **options, length=64).numpy(), x, atol=1e-13)
    one = tp.stft(tp.tensor(x[0]), 16, return_complex=True, **options)
    assert tuple(one.shape) == (9 if onesided else 16, 17)
    np.testing.assert_allclose(tp.istft(one, 16, **options).numpy(), x[0], atol=1e-13)
    if width is None:
        assert tuple(tp.istft(one, 16, **options, length=70).shape) == (70,)


def test_complex_signals():
    x = signal(40) + 1j * signal(40, seed=1)
    spectra = tp.stft(tp.tensor(x), 8)
    assert tuple(spectra.shape) == (8, 21)
    back = tp.istft(spectra, 8, return_complex=True, length=40)
    np.testing.assert_allclose(back.numpy(), x, atol=1e-13)
    pairs = tp.stft(tp.tensor(x.real.copy()), 8, return_complex=False)
    assert tuple(pairs.shape) == (5, 21, 2)


def test_derivatives():
    x = tp.tensor(signal(20), requires_grad=True)
    window = tp.tensor(signal(8) + 2, requires_grad=True)
    f = lambda a, w: tp.stft(a, 8, window=w, return_complex=True)  # noqa: E731
    assert tp.autograd.gradcheck(f, (x, window))
    assert tp.autograd.gradgradcheck(f, (x, window))
    spectra = tp.tensor(signal(5, 6) + 1j * signal(5, 6, seed=1), requires_grad=True)
    assert tp.autograd.gradcheck(lambda s, w: tp.istft(s, 8, window=w), (spectra, window))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: tp.stft(x, 8), "return_complex must be given"),
        (lambda x: tp.stft(x, 8, 0, return_complex=True), "hop_length must be positive; it is 0"),
        (lambda x: tp.stft(x, 8, win_length=9, return_complex=True), "win_length must lie between 1 and n_fft"),
        (lambda x: tp.stft(x, 8, window=tp.ones(5), return_complex=True), "window must have 8 elements"),
        (lambda x: tp.stft(x, 30, center=False, return_complex=True), "longer than the signal"),
        (lambda x: tp.istft(x, 8), "istft: input must be complex"),
        (lambda x: tp.istft(tp.zeros(4, 4, dtype=tp.complex64), 8, onesided=True), "5 frequencies belong to n_fft 8"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(tp.zeros(20))


def test_windows_that_vanish_are_refused():
    spectra = tp.stft(tp.ones(32), 8, 8, window=tp.hann_window(8), return_complex=True)
    with pytest.raises(RuntimeError, match="windows leave a gap"):
        tp.istft(spectra, 8, 8, window=tp.hann_window(8))
