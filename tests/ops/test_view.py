"""Views: shared memory and version, gradients through any geometry, errors."""

import numpy as np
import pytest
import tensorplay as tp


def leaf(*size):
    return tp.tensor(np.random.default_rng(0).normal(size=size), requires_grad=True)


VIEWS = {
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(1, 0),
    "select": lambda x: x.select(1, -1),
    "slice": lambda x: x[1:, ::2],
    "narrow": lambda x: x.narrow(0, 1, 2),
    "diagonal": lambda x: x.diagonal(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "expand": lambda x: x.unsqueeze(0).expand(2, -1, -1),
    "view": lambda x: x.view(4, 3),
    "flatten": lambda x: x.flatten(),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2), 1),
    "overlapping": lambda x: x.as_strided((3, 3), (1, 1), 0),
    "movedim": lambda x: x.movedim(0, 1),
    "chunk": lambda x: x.chunk(2, 1)[1],
    "split": lambda x: x.split([1, 2])[1],
    "unbind": lambda x: x.unbind(0)[2],
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_to_second_order(name):
    x = leaf(3, 4)
    assert tp.autograd.gradcheck(VIEWS[name], (x,))
    assert tp.autograd.gradgradcheck(VIEWS[name], (x,))


@pytest.mark.parametrize("name", sorted(set(VIEWS) - {"overlapping"}))
def test_memory_and_version_are_shared(name):
    x = tp.arange(12, dtype=tp.float64).reshape(3, 4).clone()
    v = VIEWS[name](x)
    before = x._version
    x.mul_(2)
    assert v._version == x._version == before + 1
    np.testing.assert_array_equal(v.numpy(), VIEWS[name](x.clone()).numpy())


def test_view_refuses_what_strides_do_not_allow():
    with pytest.raises(RuntimeError, match="view"):
        tp.ones(3, 4).t().view(12)
    assert tp.ones(3, 4).t().reshape(12).shape == (12,)


def test_dimension_errors_tell_the_range():
    x = tp.ones(2, 3)
    with pytest.raises(IndexError, match="transpose"):
        x.transpose(0, 2)
    with pytest.raises((IndexError, RuntimeError)):
        x.select(0, 2)
    with pytest.raises((ValueError, RuntimeError), match=r"reshape|shape"):
        x.reshape(4, 2)


def test_gradient_of_a_scatter_whose_cotangent_is_a_view():
    x = tp.zeros(6, dtype=tp.float64, requires_grad=True)
    src = tp.zeros(2, dtype=tp.float64, requires_grad=True)
    out = tp.as_strided_scatter(x, src, (2,), (3,), 1)  # elements 1 and 4
    g = tp.arange(20, dtype=tp.float64)[4:10]
    for cotangent in (g, tp.stack([g, g], 1)[:, 0]):
        a, b = tp.autograd.grad(out, (x, src), cotangent, retain_graph=True)
        assert a.tolist() == [4, 0, 6, 7, 0, 9]
        assert b.tolist() == [5, 8]
    # And of the gradient of a strided view.
    y = tp.arange(6, dtype=tp.float64).requires_grad_()
    view = y.as_strided((2,), (3,), 1)
    u = tp.ones(2, dtype=tp.float64, requires_grad=True)
    (first,) = tp.autograd.grad(view, y, u, create_graph=True)
    (second,) = tp.autograd.grad(first, u, g)
    assert second.tolist() == [5, 8]
