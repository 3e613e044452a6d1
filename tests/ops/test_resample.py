"""Interpolation and grids: values between the places, and at places outside."""

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional
RNG = np.random.default_rng(0)


def same(got, want, tol=1e-12):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tol, atol=tol)


def test_interpolation():
    a = RNG.normal(size=(1, 2, 3, 4))
    x = tp.tensor(a, requires_grad=True)
    np.testing.assert_array_equal(F.interpolate(x, scale_factor=2.0).detach().numpy(), a.repeat(2, 2).repeat(2, 3))
    assert F.interpolate(x, scale_factor=(2.0, 1.5)).shape == (1, 2, 6, 6)
    rows, cols = np.linspace(0, 2, 5), np.linspace(0, 3, 7)
    along = np.stack([[np.interp(rows, range(3), p[:, j]) for j in range(4)] for p in a[0]]).transpose(0, 2, 1)
    want = np.stack([[np.interp(cols, range(4), row) for row in p] for p in along])
    same(F.interpolate(x, (5, 7), mode="bilinear", align_corners=True)[0], want)
    same(F.upsample_bilinear(x, (5, 7))[0], want)
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
        assert tp.autograd.gradcheck(lambda x, mode=mode: F.interpolate(x, (5, 3), mode=mode), (x,))
    shrunk = F.interpolate(tp.ones(1, 1, 8, 8), (3, 3), mode="bicubic", antialias=True)
    same(shrunk, np.ones((1, 1, 3, 3)), 1e-6)
    with pytest.raises(ValueError, match="mode='linear' does not go with 2 dimensions"):
        F.interpolate(x, 4, mode="linear")
    with pytest.raises(ValueError, match="one of size and scale_factor"):
        F.interpolate(x)


def test_a_grid_of_the_same_places_is_the_input():
    a = RNG.normal(size=(2, 3, 4, 5))
    theta = tp.tensor(np.tile(np.eye(2, 3), (2, 1, 1)))
    for align in (True, False):
        grid = F.affine_grid(theta, (2, 3, 4, 5), align_corners=align)
        for mode in ("bilinear", "nearest", "bicubic"):
            same(F.grid_sample(tp.tensor(a), grid, mode, align_corners=align), a, 1e-10)
    volume = RNG.normal(size=(1, 1, 2, 3, 4))
    grid = F.affine_grid(tp.tensor(np.eye(3, 4)[None]), (1, 1, 2, 3, 4), align_corners=True)
    same(F.grid_sample(tp.tensor(volume), grid, align_corners=True), volume, 1e-10)


def test_places_outside_a_grid():
    x = tp.tensor([[[[1.0, 2.0, 3.0]]]])
    at = tp.tensor([[[[3.0, 0.0], [-3.0, 0.0], [1.5, 0.0]]]])

    def read(padding, align):
        return F.grid_sample(x, at, padding_mode=padding, align_corners=align).reshape(-1).tolist()

    assert read("zeros", True) == [0, 0, 1.5]
    assert read("border", True) == [3, 1, 3]
    assert read("reflection", True) == [1, 3, 2.5]
    with pytest.raises(ValueError, match="padding_mode='wrap'"):
        read("wrap", True)


def test_sizes_to_interpolate_to_are_checked():
    x = tp.ones(1, 1, 4, 4)
    for size in ((0, 4), (4, 4, 4)):
        with pytest.raises((ValueError, RuntimeError), match="interpolate"):
            tp.nn.functional.interpolate(x, size=size)
