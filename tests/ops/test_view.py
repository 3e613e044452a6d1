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


def test_bytes_under_another_dtype_share_memory_and_version():
    a = np.arange(8, dtype=np.float32).reshape(2, 4)
    x = tp.tensor(a)
    for name in ("int32", "uint8", "int16", "float64", "complex64", "complex128", "float32"):
        got = x.view(getattr(tp, name))
        want = a.view(getattr(np, name))
        assert got.dtype == getattr(tp, name) and tuple(got.shape) == want.shape
        np.testing.assert_array_equal(got.numpy(), want)
        assert got.data_ptr() == x.data_ptr() and x.view(dtype=getattr(tp, name)).shape == got.shape
    bits = x.view(tp.int32)
    before = x._version
    bits[0, 1] = 0x40490FDB
    assert x._version > before and x[0, 1].item() == np.float32(np.pi)
    assert x.view(size=(4, 2)).shape == (4, 2)
    assert tp.tensor(1.0).view(tp.int32).item() == 0x3F800000
    assert tp.zeros(0, 3).view(tp.uint8).shape == (0, 12)
    assert tp.tensor([1, 0], dtype=tp.uint8).view(tp.bool).tolist() == [True, False]


def test_bytes_have_no_gradient():
    x = leaf(2, 4)
    y = x * 1
    assert not y.view(tp.int64).requires_grad and not y.view(tp.complex128).requires_grad
    assert not tp.func.vmap(lambda r: r.view(tp.float32))(y).requires_grad
    np.testing.assert_array_equal(
        tp.func.vmap(lambda r: r.view(tp.int32))(x).numpy(), x.detach().numpy().view(np.int32)
    )


@pytest.mark.parametrize(
    ("make", "dtype", "text"),
    [
        (lambda: tp.zeros(2, 3), tp.float64, r"view.*size 3, which must be a multiple of 2 to view float32 as float64"),
        (lambda: tp.zeros(2, 4)[:, 1:3], tp.float64, r"1 elements into its memory"),
        (lambda: tp.zeros(2, 4).t(), tp.float64, r"last dimension has stride 4"),
        (lambda: tp.zeros(2, 4).t(), tp.int16, r"last dimension has stride 4"),
        (lambda: tp.zeros(2, 4)[:, ::2], tp.int16, r"last dimension has stride 2"),
        (lambda: tp.zeros(2, 3)[:, :2], tp.float64, r"dimension 0 has stride 3, which must be a multiple of 2"),
        (lambda: tp.tensor(1.0), tp.uint8, r"view: a 0-d tensor of float32"),
        (lambda: tp.tensor(1.0), tp.float64, r"multiple of 2"),
    ],
)
def test_bytes_that_do_not_fit(make, dtype, text):
    with pytest.raises(RuntimeError, match=text):
        make().view(dtype)


def test_samples_without_dimensions_are_not_joined_into_larger_elements():
    with pytest.raises(RuntimeError, match="view"):
        tp.func.vmap(lambda s: s.view(tp.float64))(tp.zeros(4))
    with pytest.raises(RuntimeError, match="0-d tensor"):
        tp.func.vmap(lambda s: s.view(tp.uint8))(tp.zeros(4))


def test_bytes_at_an_odd_address():
    raw = np.zeros(17, dtype=np.uint8)
    x = tp.from_numpy(raw[1:])
    with pytest.raises(RuntimeError, match="address that is no multiple of 8"):
        x.view(tp.float64)
    assert x.clone().view(tp.float64).tolist() == [0.0, 0.0]
