"""Sorting and selection: order, ties, nan, every dtype, gradients to the chosen places."""

import math

import numpy as np
import pytest
import tensorplay as tp


@pytest.mark.parametrize("n", [0, 1, 2, 7, 100, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
def test_sort_agrees_with_numpy(n, dtype):
    a = np.random.default_rng(n).integers(-50 if dtype != "uint8" else 0, 50, n).astype(dtype)
    values, indices = tp.tensor(a).sort(stable=True)
    order = np.argsort(a, kind="stable")
    np.testing.assert_array_equal(values.numpy(), a[order])
    np.testing.assert_array_equal(indices.numpy(), order)
    down = tp.tensor(a).sort(descending=True).values.numpy()
    np.testing.assert_array_equal(down, np.sort(a)[::-1])


ROWS = [((37, 5), 1), ((19, 256), 1), ((24, 30), 0), ((3, 33, 12), 1), ((9, 1025), 1)]


@pytest.mark.parametrize(("shape", "dim"), ROWS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_rows_side_by_side_keep_the_order_of_ties(shape, dim, dtype):
    rng = np.random.default_rng(1)
    a = rng.integers(-9, 9, shape).astype(dtype)
    if dtype != "int32":
        a.ravel()[::7] = np.nan
        a.ravel()[::5] = -0.0
    values, indices = tp.tensor(a).sort(dim, stable=True)
    order = np.argsort(a, axis=dim, kind="stable")
    np.testing.assert_array_equal(indices.numpy(), order)
    want = np.take_along_axis(a, order, dim)
    np.testing.assert_array_equal(values.numpy(), want)
    np.testing.assert_array_equal(np.signbit(values.numpy()), np.signbit(want))
    down = tp.tensor(a).sort(dim, descending=True, stable=True)
    np.testing.assert_array_equal(np.take_along_axis(a, down.indices.numpy(), dim), down.values.numpy())
    np.testing.assert_array_equal(down.values.numpy(), np.flip(np.sort(a, dim), dim))


def test_nan_is_largest():
    v, i = tp.tensor([2.0, math.nan, 1.0, -math.inf]).sort()
    assert v.tolist()[:3] == [-math.inf, 1.0, 2.0] and math.isnan(v[3].item()) and i[3].item() == 1


@pytest.mark.parametrize(("k", "largest"), [(1, True), (3, True), (3, False), (10, True), (0, True)])
def test_topk(k, largest):
    a = np.random.default_rng(3).permutation(40).reshape(4, 10).astype(float)
    v, i = tp.tensor(a).topk(k, largest=largest)
    want = np.sort(a, 1)
    want = want[:, ::-1][:, :k] if largest else want[:, :k]
    np.testing.assert_array_equal(v.numpy(), want)
    np.testing.assert_array_equal(np.take_along_axis(a, i.numpy(), 1), want)


def test_gradients_follow_the_permutation():
    x = tp.tensor(np.random.default_rng(0).normal(size=(3, 5)), requires_grad=True)
    assert tp.autograd.gradcheck(lambda x: x.sort(1).values, (x,))
    assert tp.autograd.gradcheck(lambda x: x.topk(2, 0).values, (x,))
    with pytest.raises((RuntimeError, ValueError, IndexError), match="topk"):
        x.topk(6)
