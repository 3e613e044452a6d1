"""Reductions and scans beyond the generated tables: ties, zeros, empties, every way of naming dimensions."""

import math

import numpy as np
import pytest
import tensorplay as tp

F64 = tp.float64


def leaf(v):
    return tp.tensor(v, dtype=F64, requires_grad=True)


def grads(f, *xs):
    return [g.tolist() for g in tp.autograd.grad(f(*xs).sum(), xs)]


def test_sum_names_dimensions_as_int_tuple_none_and_negative():
    x = tp.arange(24, dtype=F64).reshape(2, 3, 4)
    a = x.numpy()
    assert x.sum().item() == a.sum()
    assert x.sum(1).tolist() == a.sum(1).tolist()
    assert x.sum((0, -1), keepdim=True).tolist() == a.sum((0, 2), keepdims=True).tolist()
    assert tp.sum(x, dim=None).item() == a.sum()
    with pytest.raises(IndexError, match="sum"):
        x.sum(3)


def test_sum_of_integers_is_int64_and_of_halves_keeps_its_dtype():
    assert tp.ones(3, dtype=tp.int8).sum().dtype == tp.int64
    assert tp.ones(3, dtype=tp.bool).sum().item() == 3
    assert tp.ones(3, dtype=tp.float16).sum().dtype == tp.float16


def test_long_sums_do_not_lose_digits():
    x = tp.full((1 << 22,), 0.1, dtype=tp.float32)
    assert abs(x.sum().item() - 0.1 * (1 << 22)) < 1.0


def test_empty_reductions():
    e = tp.zeros(0, 3, dtype=F64)
    assert e.sum(0).tolist() == [0.0] * 3
    assert e.prod(0).tolist() == [1.0] * 3
    assert e.any().item() is False and e.all().item() is True
    assert math.isnan(e.mean().item())
    for f in (tp.amax, tp.argmax):
        with pytest.raises((RuntimeError, IndexError, ValueError)):
            f(e)


def test_product_with_zeros_to_second_order():
    assert grads(lambda x: x.prod(), leaf([5.0, 0.0, 2.0, 3.0])) == [[0.0, 30.0, 0.0, 0.0]]
    assert grads(lambda x: x.prod(), leaf([0.0, 7.0, 0.0])) == [[0.0, 0.0, 0.0]]
    assert tp.autograd.gradgradcheck(lambda x: x.prod(), (leaf([2.0, 0.0, 3.0]),))


def test_cumprod_with_zeros():
    assert grads(lambda x: x.cumprod(0), leaf([3.0, 0.0, 2.0, 4.0])) == [[1.0, 33.0, 0.0, 0.0]]
    assert tp.autograd.gradgradcheck(lambda x: x.cumprod(0), (leaf([2.0, 0.0, 3.0]),))


@pytest.mark.parametrize("shape", [(1, 40), (3, 21), (37, 20), (18, 7, 5)])
def test_scans_along_every_dimension_with_ties_and_nans(shape):
    a = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)
    a[0, -1], a[-1, 2] = np.nan, np.nan
    for d in range(a.ndim):
        values, places = tp.cummax(tp.tensor(a), d)
        np.testing.assert_array_equal(values.numpy(), np.maximum.accumulate(a, d))
        # The latest of equals and of nans.
        here = np.expand_dims(np.arange(a.shape[d]), tuple(range(1, a.ndim - d)))
        last = np.where((a == values.numpy()) | np.isnan(a), here, 0)
        np.testing.assert_array_equal(places.numpy(), np.maximum.accumulate(last, d))
        product = np.cumprod(a.astype(float), d).astype(a.dtype)
        np.testing.assert_array_equal(tp.cumprod(tp.tensor(a), d).numpy(), product)
        np.testing.assert_array_equal(tp.cumsum(tp.tensor(a), d).numpy(), np.cumsum(a, d))


def test_ties_share_and_indices_take_all():
    assert grads(lambda x: x.max(), leaf([2.0, 1.0, 2.0])) == [[0.5, 0.0, 0.5]]
    assert grads(lambda x: x.amin(0), leaf([1.0, 1.0, 2.0])) == [[0.5, 0.5, 0.0]]
    x = leaf([2.0, 1.0, 2.0])
    values, indices = x.max(0)
    (g,) = tp.autograd.grad(values, x)
    assert g[indices].item() == 1.0 and g.sum().item() == 1.0


def test_max_has_three_forms_and_named_results():
    x = tp.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert x.max().item() == 7.0
    r = x.max(dim=1)
    assert r.values.tolist() == [5.0, 7.0] and r.indices.tolist() == [1, 0]
    assert tp.max(x, tp.zeros(2, 2) + 4).tolist() == [[4.0, 5.0], [7.0, 4.0]]


def test_nan_wins_in_maximum():
    x = tp.tensor([1.0, math.nan, 3.0])
    assert math.isnan(x.max().item()) and x.argmax().item() == 1


@pytest.mark.parametrize("order", [1, 2, 3, math.inf, -math.inf, 0.5])
def test_norms(order):
    a = np.array([[3.0, -4.0, 1.0], [0.5, 2.0, -2.0]])
    got = tp.linalg.vector_norm(tp.tensor(a), order, 1).numpy()
    if order == 0.5:
        want = (np.abs(a) ** 0.5).sum(1) ** 2
    else:
        want = np.linalg.norm(a, order, 1)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert tp.autograd.gradcheck(lambda x: tp.linalg.vector_norm(x, order, 1), (leaf(a),))


def test_norm_at_the_origin_has_the_zero_subgradient():
    for order in (1, 2, 3, math.inf):
        assert grads(lambda x, p=order: tp.linalg.vector_norm(x, p), leaf([0.0, 0.0])) == [[0.0, 0.0]]


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
def test_nan_at_any_place_of_a_row_wins_in_that_row_only(dtype):
    for n in (5, 40, 131, 256):
        x = tp.arange(n, dtype=dtype).repeat(n + 1, 1)
        x[tp.arange(n), tp.arange(n)] = float("nan")
        for f, number in ((tp.amax, n - 1), (tp.amin, 0)):
            out = f(x, 1)
            assert out[:-1].isnan().all() and out[-1].item() == number
        assert x.argmax(1).tolist() == [*range(n), n - 1]


def test_norms_of_floats_whose_squares_leave_their_range():
    for v in (1e30, 1e-30):
        x = tp.full((3, 300), v, dtype=tp.float32)
        for dims in (0, 1, (0, 1)):
            out = x.norm(dim=dims)
            count = x.numel() // out.numel()
            np.testing.assert_allclose(out.numpy(), v * math.sqrt(count), rtol=3e-7)


def test_products_of_floats_pass_through_values_beyond_their_range():
    x = tp.tensor([1e30, 1e-30], dtype=tp.float32).repeat(5)
    for out in (x.prod(), x.repeat(3, 1).prod(1)[2], x.unsqueeze(1).repeat(1, 9).prod(0)[8], x.cumprod(0)[-1]):
        np.testing.assert_allclose(out.item(), 1.0, rtol=1e-5)


def test_deviation_of_one_element():
    x = leaf([5.0])
    assert math.isnan(x.std().item()) and math.isnan(grads(lambda x: x.std(), x)[0][0])
    assert grads(lambda x: x.std(correction=0), x) == [[0.0]]
    assert x.var(0, False).item() == 0.0 and math.isnan(x.var(True).item())


def test_sum_reduces_broadcasts_of_any_kind():
    a, b = leaf([[1.0], [2.0]]), leaf([1.0, 2.0, 3.0])
    ga, gb = tp.autograd.grad((a * b).sum(), (a, b))
    assert ga.tolist() == [[6.0], [6.0]] and gb.tolist() == [3.0, 3.0, 3.0]


def test_a_recurrence_runs_both_ways_and_back() -> None:
    x = tp.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=tp.float64, requires_grad=True)
    a = tp.tensor([[9.0, 0.5, 0.0], [7.0, -1.0, 2.0]], dtype=tp.float64, requires_grad=True)
    run = tp._C.internal.linear_recurrence
    np.testing.assert_array_equal(run(x, a, 1).detach().numpy(), [[1, 2.5, 3], [4, 1, 8]])
    np.testing.assert_array_equal(run(x, a, 1, True).detach().numpy(), [[32.5, 3.5, 3], [-3, -1, 6]])
    np.testing.assert_array_equal(run(x, a, 0).detach().numpy(), [[1, 2, 3], [11, 3, 12]])
    for dim in (0, 1):
        for reverse in (False, True):
            assert tp.autograd.gradcheck(lambda p, q, d=dim, r=reverse: run(p, q, d, r), (x, a))
            assert tp.autograd.gradgradcheck(lambda p, q, d=dim, r=reverse: run(p, q, d, r), (x, a))
    with pytest.raises(ValueError, match="linear_recurrence: input is float64 \\[2, 3\\], factor float64 \\[3\\]"):
        run(x, a[0], 1)


def test_gradients_of_long_running_folds_take_memory_of_one_line() -> None:
    """100,000 elements: a table of all pairs would be 80 GB."""
    n = 100_000
    values = 1 + 0.01 * np.cos(np.arange(n, dtype=np.float64))
    weight = np.sin(np.arange(n, dtype=np.float64))
    x = tp.tensor(values, requires_grad=True)
    tp.cumprod(x, 0).backward(tp.tensor(weight))
    want = np.cumsum((weight * np.cumprod(values))[::-1])[::-1] / values
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6, atol=1e-6 * np.abs(want).max())
    x = tp.tensor(values, requires_grad=True)
    out = tp.logcumsumexp(x, 0)
    out.backward(tp.tensor(weight))
    want = np.exp(values) * np.cumsum((weight * np.exp(-out.detach().numpy()))[::-1])[::-1]
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6, atol=1e-9)


def test_gradients_of_running_folds_at_zeros_and_infinities() -> None:
    x = tp.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=tp.float64, requires_grad=True)
    tp.cumprod(x, 0).backward(tp.tensor([1.0, 10.0, 100.0, 1000.0, 10000.0], dtype=tp.float64))
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 2 * 10 + 6 * 100.0, 0.0, 0.0, 0.0])
    x = tp.tensor([-np.inf, 0.0, -np.inf, 1.0], dtype=tp.float64, requires_grad=True)
    tp.logcumsumexp(x, 0).sum().backward()
    part = 1 / (1 + np.e)
    np.testing.assert_allclose(x.grad.numpy(), [0.0, 2 + part, 0.0, 1 - part], rtol=1e-15)
    for op in (tp.cumprod, tp.logcumsumexp):
        x = tp.tensor(3.0, requires_grad=True)
        op(x, 0).backward(tp.tensor(2.0))
        assert x.grad.item() == 2.0
        x = tp.zeros(0, 3, requires_grad=True)
        op(x, 1).sum().backward()
        assert x.grad.shape == (0, 3)
