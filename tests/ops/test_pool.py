"""Pooling against plain loops in NumPy, and pairs of gradients against each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorplay as tp
from tensorplay.nn import functional as F

SPACES = {1: (7,), 2: (6, 5), 3: (4, 5, 4)}


def windows(x: np.ndarray, kernel: tuple[int, ...], stride: tuple[int, ...]) -> np.ndarray:
    """[N, C, ...out, window elements]."""
    d = len(kernel)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=tuple(range(-d, 0)))
    view = view[(slice(None), slice(None), *(slice(None, None, s) for s in stride))]
    return view.reshape(*view.shape[: 2 + d], -1)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("stride", [None, 1])
def test_max_and_mean_of_windows(d: int, stride: int | None) -> None:
    x = np.random.default_rng(d).standard_normal((2, 3, *SPACES[d]))
    kernel = (2,) * d
    w = windows(x, kernel, kernel if stride is None else (stride,) * d)
    t = tp.tensor(x)
    assert np.array_equal(getattr(F, f"max_pool{d}d")(t, 2, stride).numpy(), w.max(-1))
    assert np.allclose(getattr(F, f"avg_pool{d}d")(t, 2, stride).numpy(), w.mean(-1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_places_in_windows_of_two_by_two(dtype: str) -> None:
    x = np.random.default_rng(0).integers(-3, 3, (2, 3, 7, 37)).astype(dtype)
    x.ravel()[::11] = np.nan
    x[0, 0, :2, :2] = -np.inf
    values, places = F.max_pool2d_with_indices(tp.tensor(x), 2, 2, 0, 1, False)
    for n, c, i, j in np.ndindex(*values.shape):
        at = [(2 * i + a) * 37 + 2 * j + b for a in (0, 1) for b in (0, 1)]
        window = [x[n, c].ravel()[k] for k in at]
        nans = [k for k, v in enumerate(window) if v != v]
        want = nans[-1] if nans else window.index(max(window))
        assert places[n, c, i, j].item() == at[want]
        assert np.array_equal(values[n, c, i, j].numpy(), window[want], equal_nan=True)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_adaptive_windows(d: int) -> None:
    x = np.random.default_rng(d).standard_normal((2, 3, *SPACES[d]))
    size = (3, 2, 3)[:d]
    mean, top = np.empty((2, 3, *size)), np.empty((2, 3, *size))
    for at in itertools.product(*map(range, size)):
        cut = tuple(slice(i * n // o, -(-(i + 1) * n // o)) for i, n, o in zip(at, SPACES[d], size, strict=True))
        part = x[(slice(None), slice(None), *cut)].reshape(2, 3, -1)
        mean[(..., *at)], top[(..., *at)] = part.mean(-1), part.max(-1)
    t = tp.tensor(x)
    assert np.allclose(getattr(F, f"adaptive_avg_pool{d}d")(t, list(size)).numpy(), mean)
    assert np.array_equal(getattr(F, f"adaptive_max_pool{d}d")(t, list(size)).numpy(), top)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gradient_of_max_goes_to_the_largest(d: int) -> None:
    x = tp.tensor(np.random.default_rng(d).standard_normal((1, 2, *SPACES[d])), requires_grad=True)
    out = getattr(F, f"max_pool{d}d")(x, 2)
    (g,) = tp.autograd.grad((out * out).sum(), x)
    hit = np.isin(x.detach().numpy(), out.detach().numpy())
    assert np.allclose(g.numpy(), np.where(hit, 2 * x.detach().numpy(), 0))


@pytest.mark.parametrize("name", ["adaptive_max_pool2d", "adaptive_avg_pool2d"])
def test_an_adaptive_size_that_is_left_open_is_the_inputs(name: str) -> None:
    x = tp.arange(48.0).reshape(2, 4, 6)
    pool = getattr(tp.nn.functional, name)
    assert pool(x, (None, 3)).tolist() == pool(x, (4, 3)).tolist()
    assert pool(x, (2, None)).tolist() == pool(x, (2, 6)).tolist()


def test_norms_of_windows():
    F = tp.nn.functional
    a = np.arange(6.0).reshape(1, 6)
    x = tp.tensor(a)
    np.testing.assert_allclose(F.lp_pool1d(x, 2, 2).numpy(), [[1, 13**0.5, 41**0.5]])
    # The last window holds two of its three elements, and counts as three of their mean.
    np.testing.assert_allclose(F.lp_pool1d(x, 2, 3, 4, ceil_mode=True).numpy(), [[5**0.5, (41 * 1.5) ** 0.5]])
    assert F.lp_pool1d(tp.tensor([[-1.0, -2.0, -3.0, 1.0]]), float("inf"), 2).tolist() == [[2, 3]]
    assert F.lp_pool1d(tp.tensor([[-1.0, -2.0, -3.0, 1.0]]), 1, 2).tolist() == [[-3, -2]]
    square = tp.tensor(np.arange(16.0).reshape(1, 1, 4, 4))
    want = [[np.linalg.norm([0, 1, 4, 5]), np.linalg.norm([2, 3, 6, 7])]]
    np.testing.assert_allclose(F.lp_pool2d(square, 2.0, 2)[0, 0, :1].numpy(), want)
    cube = square.reshape(1, 1, 2, 2, 4)
    want = np.sum(np.arange(16.0).reshape(2, 2, 2, 2) ** 3, axis=(0, 1, 3)) ** (1 / 3)
    np.testing.assert_allclose(F.lp_pool3d(cube, 3, 2).flatten().numpy(), want)
    with pytest.raises(ValueError, match="lp_pool1d: norm_type=0 has no root"):
        F.lp_pool1d(x, 0, 2)


def test_a_window_of_zeros_has_gradient_zero_in_its_norm():
    F = tp.nn.functional
    x = tp.tensor([[0.0, 0.0, 3.0, 4.0]], dtype=tp.float64, requires_grad=True)
    (g,) = tp.autograd.grad(F.lp_pool1d(x, 2, 2).sum(), x)
    np.testing.assert_allclose(g.numpy(), [[0, 0, 0.6, 0.8]])
    (g,) = tp.autograd.grad(F.lp_pool1d(x, 1, 2).sum(), x)
    assert g.tolist() == [[1, 1, 1, 1]]
