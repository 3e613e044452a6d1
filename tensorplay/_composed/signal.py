"""Short-time Fourier transforms over the ops they are made of."""

from __future__ import annotations

from typing import Any

from .. import _C


def _window_of(op: str, window: Any, win_length: int, n_fft: int, like: Any) -> Any:
    """The window padded with zeros on both sides to n_fft, ones where there is none."""
    f = _C.functions
    if window is None:
        window = f.ones((win_length,), dtype=like.real.dtype)
    elif window.dim() != 1 or window.shape[0] != win_length:
        raise ValueError(
            f"{op}: window must have {win_length} elements (win_length); its sizes are {list(window.shape)}"
        )
    left = (n_fft - win_length) // 2
    return window if win_length == n_fft else f.constant_pad_nd(window, (left, n_fft - win_length - left))


def _frames_of(op: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if n_fft < 1:
        raise ValueError(f"{op}: n_fft must be positive; it is {n_fft}")
    if hop < 1:
        raise ValueError(f"{op}: hop_length must be positive; it is {hop}")
    if not 0 < width <= n_fft:
        raise ValueError(f"{op}: win_length must lie between 1 and n_fft ({n_fft}); it is {width}")
    return hop, width


def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Any:  # fmt: skip
    """Spectra of overlapping windows of a signal."""
    f = _C.functions
    hop, width = _frames_of("stft", n_fft, hop_length, win_length)
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise ValueError("stft: return_complex must be given for a real signal; True gives complex numbers")
        return_complex = True
    if input.dim() not in (1, 2):
        raise ValueError(f"stft: input must be a signal or a batch of them; its sizes are {list(input.shape)}")
    if onesided is None:
        onesided = not is_complex
    elif onesided and is_complex:
        raise ValueError("stft: onesided must be False for complex input, whose spectrum has no symmetry")
    window = _window_of("stft", window, width, n_fft, input)
    batch = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        half = n_fft // 2
        batch = _C.nn_functional.pad(batch.unsqueeze(0), (half, half), pad_mode).squeeze(0)
    if batch.shape[-1] < n_fft:
        raise ValueError(f"stft: n_fft is {n_fft}, longer than the signal of {batch.shape[-1]} points")
    frames = batch.unfold(-1, n_fft, hop) * window
    norm = "ortho" if normalized else None
    spectra = _C.fft.rfft(frames, None, -1, norm) if onesided else _C.fft.fft(frames, None, -1, norm)
    spectra = spectra.transpose(1, 2)
    if input.dim() == 1:
        spectra = spectra.squeeze(0)
    return spectra if return_complex else f.view_as_real(spectra)


def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """The signal with the given spectra, by least squares where windows overlap."""
    f = _C.functions
    hop, width = _frames_of("istft", n_fft, hop_length, win_length)
    if not input.is_complex():
        raise ValueError("istft: input must be complex spectra; view_as_complex makes them of pairs")
    if input.dim() not in (2, 3) or 0 in input.shape:
        raise ValueError(f"istft: input must be [frequencies, frames] or a batch; its sizes are {list(input.shape)}")
    if onesided is None:
        onesided = input.shape[-2] != n_fft
    if return_complex and onesided:
        raise ValueError("istft: onesided spectra belong to real signals; return_complex=True needs onesided=False")
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if input.shape[-2] != wanted:
        raise ValueError(f"istft: {wanted} frequencies belong to n_fft {n_fft}; input has {input.shape[-2]}")
    window = _window_of("istft", window, width, n_fft, input)
    spectra = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)
    norm = "ortho" if normalized else None
    frames = _C.fft.irfft(spectra, n_fft, -1, norm) if onesided else _C.fft.ifft(spectra, None, -1, norm)
    if not return_complex and not onesided:
        frames = frames.real
    batch, count = frames.shape[0], frames.shape[1]
    points = n_fft + hop * (count - 1)
    add = _C.internal.unfold_backward
    total = add(frames * window, (batch, points), 1, n_fft, hop)
    weight = add((window * window.conj()).expand((1, count, n_fft)), (1, points), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = points - start if length is None else min(start + length, points)
    total, weight = total[:, start:end], weight[:, start:end]
    if float(abs(weight.detach()).min()) < 1e-11:
        raise RuntimeError("istft: the windows leave a gap or vanish where they overlap; use a smaller hop_length")
    out = total / weight
    if length is not None and out.shape[1] < length:
        out = f.constant_pad_nd(out, (0, length - out.shape[1]))
    return out if input.dim() == 3 else out.squeeze(0)
