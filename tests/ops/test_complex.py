"""Complex values: parts, views as pairs, conjugate derivatives against differences."""

import numpy as np
import pytest
import tensorplay as tp


def leaf(*size):
    rng = np.random.default_rng(0)
    return tp.tensor(rng.normal(size=size) + 1j * rng.normal(size=size), requires_grad=True)


@pytest.mark.parametrize("name", ["abs", "sgn", "exp", "log", "sqrt", "sin", "tanh", "reciprocal", "square", "conj"])
def test_gradients_follow_the_conjugate_convention(name):
    assert tp.autograd.gradcheck(getattr(tp, name), (leaf(3),))


def test_views_as_pairs_share_memory():
    x = leaf(3).detach()
    pairs = tp.view_as_real(x)
    assert pairs.shape == (3, 2)
    pairs[0, 1] = 7.0
    assert x[0].item().imag == 7.0
    assert tp.view_as_complex(pairs).tolist() == x.tolist()


def test_products_and_parts():
    assert tp.autograd.gradcheck(lambda a, b: a * b + a / b, (leaf(3), leaf(3) * 1 + 2))
    assert tp.autograd.gradcheck(tp.real, (leaf(3),))
    assert tp.autograd.gradcheck(lambda a: tp.view_as_real(a) * 2, (leaf(3),))
