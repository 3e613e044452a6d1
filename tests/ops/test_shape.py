"""Copies into another shape: padding in every mode, repeats, joins of mixed dtypes."""

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional


@pytest.mark.parametrize(("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_padding_by_index(mode, numpy_mode):
    a = np.random.default_rng(0).normal(size=(2, 4))
    got = F.pad(tp.tensor(a), (2, 1), mode=mode)
    np.testing.assert_array_equal(got.numpy(), np.pad(a, [(0, 0), (2, 1)], mode=numpy_mode))
    x = tp.tensor(a, requires_grad=True)
    assert tp.autograd.gradcheck(lambda x: F.pad(x, (2, 1), mode=mode), (x,))
    assert tp.autograd.gradgradcheck(lambda x: F.pad(x, (2, 1), mode=mode), (x,))


def test_constant_padding_of_two_dimensions_and_cropping():
    a = np.arange(6.0).reshape(2, 3)
    got = F.pad(tp.tensor(a), (1, 0, 0, 2), value=7.0)
    np.testing.assert_array_equal(got.numpy(), np.pad(a, [(0, 2), (1, 0)], constant_values=7.0))
    assert F.pad(tp.tensor(a), (-1, 0)).tolist() == a[:, 1:].tolist()


def test_join_promotes():
    assert tp.cat([tp.ones(2, dtype=tp.int32), tp.ones(1)]).dtype == tp.float32
    with pytest.raises((RuntimeError, ValueError), match="cat"):
        tp.cat([tp.ones(2, 3), tp.ones(2, 4)])
    with pytest.raises((RuntimeError, ValueError), match="stack"):
        tp.stack([tp.ones(2), tp.ones(3)])


def test_repeat_with_leading_dimensions():
    x = tp.tensor(np.arange(3.0), requires_grad=True)
    assert x.repeat(2, 2).tolist() == np.tile(np.arange(3.0), (2, 2)).tolist()
    assert tp.autograd.gradcheck(lambda x: x.repeat(2, 2), (x,))


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1), (-1,)])
def test_flip_and_roll(dims):
    a = np.arange(6.0).reshape(2, 3)
    assert tp.tensor(a).flip(dims).tolist() == np.flip(a, dims).tolist()
    shifts = tuple(1 for _ in dims)
    assert tp.tensor(a).roll(shifts, dims).tolist() == np.roll(a, shifts, dims).tolist()
