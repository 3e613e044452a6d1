"""x[key] and x[key] = value against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorplay as tp

A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
KEYS = [
    0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(5, 1), None, ..., (), (0, 1), (0, 1, 2),
    (..., 0), (0, ...), (slice(None), 1), (slice(None), None, slice(1, 3)), (None, 0, ..., None), True, False,
    (True, 0), [0, 2], ([0, 2], [1, 3]), (slice(None), [0, 2]), ([0, 2], slice(None), [1, 3]), (0, [1, 2], [3, 4]),
    (..., [0, 1]), [[0, 1], [2, 0]], np.array([1, 0]), np.int64(1), [True, False, True],
    (slice(None), [True, False, True, False]), A > 30, A[..., 0] > 20, (0, A[0] > 3),
    (slice(None), np.array([[0, 1], [2, 3]]), slice(0, 2)), (None, [0, 1]), [],
    np.array(True), np.array(False), (slice(None), np.array(False)), (np.array(True), [0, 2]),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=[str(k)[:40] for k in KEYS])
def test_get(key) -> None:
    x = tp.from_numpy(A.copy())
    want = A[key] if not isinstance(key, list) or key else A[np.array(key, dtype=int)]
    got = x[key]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("key", KEYS, ids=[str(k)[:40] for k in KEYS])
def test_set(key) -> None:
    x, a = tp.from_numpy(A.copy()), A.copy()
    k = np.array(key, dtype=int) if isinstance(key, list) and not key else key
    a[k] = -1
    x[key] = -1
    np.testing.assert_array_equal(x.numpy(), a)
    value = np.random.default_rng(0).normal(size=a[k].shape).astype(np.float32)
    a[k] = value
    x[key] = tp.from_numpy(value)
    np.testing.assert_array_equal(x.numpy(), a)


def test_tensor_keys() -> None:
    x = tp.from_numpy(A.copy())
    np.testing.assert_array_equal(x[tp.tensor([2, 0])].numpy(), A[[2, 0]])
    np.testing.assert_array_equal(x[tp.tensor(1)].numpy(), A[1])
    np.testing.assert_array_equal(x[x > 30].numpy(), A[A > 30])
    x[x > 30] = 0
    assert x.max().item() == 30


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ((0, 9), IndexError, "index 9 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0, 0), IndexError, "too many indices"),
        ((..., ...), IndexError, "single ellipsis"),
        (slice(None, None, 0), ValueError, "step cannot be zero"),
        (1.5, IndexError, "not float"),
        ("a", IndexError, "not str"),
        (np.ones((2, 4), bool), IndexError, "shape of the mask"),
    ],
)
def test_errors(key, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tp.from_numpy(A.copy())[key]


def test_zero_dimensional() -> None:
    x = tp.tensor(3.0)
    assert x[()].item() == x[...].item() == 3.0
    assert x[None].shape == (1,)
    with pytest.raises(IndexError, match=r"0-dim tensor.*item"):
        x[0]
    x[...] = 4
    assert x.item() == 4.0
    with pytest.raises(TypeError, match="deleted"):
        del x[...]


def test_views_and_history() -> None:
    x = tp.zeros(3, 4)
    x[1][2] = 5
    assert x[1, 2].item() == 5
    assert x[0]._base is x
    w = tp.ones(3, requires_grad=True)
    y = w * 2
    y[1] = w[0] * 3
    y.sum().backward()
    assert w.grad.tolist() == [5.0, 0.0, 2.0]
    z = tp.ones(4, requires_grad=True)
    z[tp.tensor([0, 0, 2])].sum().backward()
    assert z.grad.tolist() == [2.0, 0.0, 1.0, 0.0]


BACKWARDS = [
    slice(None, None, -1), slice(2, None, -2), slice(None, 0, -1), slice(-1, -9, -1), slice(0, 2, -1),
    slice(9, None, -3), (slice(None), slice(None, None, -1)), (slice(None, None, -1), 1),
    (..., slice(None, None, -2)), (None, slice(1, None, -1)),
    (slice(None, None, -1), slice(None, None, -1), slice(3, 0, -2)), (slice(None, None, -1), [0, 2]),
]  # fmt: skip


@pytest.mark.parametrize("key", BACKWARDS, ids=str)
def test_a_negative_step_gives_a_copy_in_reverse(key) -> None:
    x = tp.from_numpy(A.copy())
    got = x[key]
    np.testing.assert_array_equal(got.numpy(), A[key])
    got.zero_()
    np.testing.assert_array_equal(x.numpy(), A)
    y = tp.tensor(A, dtype=tp.float64, requires_grad=True)
    w = tp.tensor(np.arange(A[key].size, dtype=float).reshape(A[key].shape))
    (g,) = tp.autograd.grad((y[key] * w).sum(), y)
    want = np.zeros(A.shape)
    np.add.at(want, key, w.numpy())
    np.testing.assert_array_equal(g.numpy(), want)


@pytest.mark.parametrize("key", BACKWARDS[:-1], ids=str)
def test_assignment_through_a_negative_step(key) -> None:
    for value in (np.arange(A[key].size, dtype=A.dtype).reshape(A[key].shape), np.arange(A[key].shape[-1]), 7):
        want, x = A.copy(), tp.from_numpy(A.copy())
        want[key] = value
        x[key] = tp.tensor(value) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(x.numpy(), want)
    x = tp.arange(5)
    x[::-1] = x
    assert x.tolist() == [4, 3, 2, 1, 0]
    with pytest.raises(ValueError, match="setitem: a negative slice step beside an index"):
        tp.zeros(3, 4)[::-1, [0, 1]] = 1.0
