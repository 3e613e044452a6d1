"""Plain NumPy forms of short-time Fourier transforms: references for `check`, as in `numpy_ops.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


def window_of(x: Array, window: Array | None, width: int, n_fft: int) -> Array:
    """The window in the middle of n_fft zeros, an odd one at the end."""
    out = np.zeros(n_fft, dtype=float if window is None else np.asarray(window).dtype)
    start = (n_fft - width) // 2
    out[start : start + width] = 1 if window is None else window
    return out


def stft(
    x: Array, n_fft: int, hop_length: int | None, win_length: int | None, window: Array | None, center: bool,
    pad_mode: str, normalized: bool, onesided: bool | None, return_complex: bool | None,
) -> Array:  # fmt: skip
    hop = n_fft // 4 if hop_length is None else hop_length
    taper = window_of(x, window, n_fft if win_length is None else win_length, n_fft)
    if np.ndim(x) == 2:
        rest = (onesided, return_complex)
        return np.stack(
            [stft(row, n_fft, hop_length, win_length, window, center, pad_mode, normalized, *rest) for row in x]
        )
    mode: Any = {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode)
    signal = np.pad(x, n_fft // 2, mode=mode) if center else x
    whole = np.iscomplexobj(signal) or np.iscomplexobj(taper)
    half = not whole if onesided is None else onesided
    columns = []
    for start in range(0, len(signal) - n_fft + 1, hop):
        spectrum = np.fft.fft(signal[start : start + n_fft] * taper) / (np.sqrt(n_fft) if normalized else 1)
        columns.append(spectrum[: n_fft // 2 + 1] if half else spectrum)
    out = np.stack(columns, axis=-1)
    return np.stack([out.real, out.imag], axis=-1) if return_complex is False else out


def istft(
    spectra: Array, n_fft: int, hop_length: int | None, win_length: int | None, window: Array | None, center: bool,
    normalized: bool, onesided: bool | None, length: int | None, return_complex: bool,
) -> Array:  # fmt: skip
    """Frames weighed by the window once more, over the sum of its squares: the signal nearest to all frames."""
    if np.ndim(spectra) == 3:
        rest = (hop_length, win_length, window, center, normalized, onesided, length, return_complex)
        return np.stack([istft(s, n_fft, *rest) for s in spectra])
    hop = n_fft // 4 if hop_length is None else hop_length
    taper = window_of(spectra, window, n_fft if win_length is None else win_length, n_fft)
    half = len(spectra) != n_fft if onesided is None else onesided
    frames = spectra.shape[-1]
    points = n_fft + hop * (frames - 1)
    total, overlap = np.zeros(points, dtype=complex), np.zeros(points)
    for k in range(frames):
        column = spectra[:, k] * (np.sqrt(n_fft) if normalized else 1)
        frame = np.fft.irfft(column, n_fft) if half else np.fft.ifft(column)
        total[k * hop : k * hop + n_fft] += (frame if half or return_complex else frame.real) * taper
        overlap[k * hop : k * hop + n_fft] += np.abs(taper) ** 2
    start = n_fft // 2 if center else 0
    end = points - start if length is None else min(points, start + length)
    with np.errstate(all="ignore"):
        out = (total / overlap)[start:end]
    out = np.pad(out, (0, length - len(out))) if length is not None else out
    return out if return_complex or np.iscomplexobj(taper) else out.real


OPS: dict[str, Callable[..., Any]] = {"window_of": window_of, "stft": stft, "istft": istft}
