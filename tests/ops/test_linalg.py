"""Matrix products: every rank case, gradients by differences, errors with sizes."""

import numpy as np
import pytest
import tensorplay as tp

CASES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)), ((3,), (5, 3, 2)), ((5, 2, 3), (3,)), ((2, 0), (0, 3)), ((0, 3), (3, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
def test_matmul_agrees_with_numpy(a, b, dtype):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 5, a).astype(dtype), rng.integers(-4, 5, b).astype(dtype)
    got = tp.matmul(tp.tensor(x), tp.tensor(y))
    np.testing.assert_array_equal(got.numpy(), np.matmul(x, y))


@pytest.mark.parametrize(("a", "b"), CASES)
def test_matmul_gradients(a, b):
    rng = np.random.default_rng(1)
    x = tp.tensor(rng.normal(size=a), requires_grad=True)
    y = tp.tensor(rng.normal(size=b), requires_grad=True)
    assert tp.autograd.gradcheck(tp.matmul, (x, y))
    assert tp.autograd.gradgradcheck(tp.matmul, (x, y))


def test_transposed_operands_need_no_copy_to_be_right():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(40, 30)), rng.normal(size=(50, 40))
    got = tp.tensor(a).t() @ tp.tensor(b).t()
    np.testing.assert_allclose(got.numpy(), a.T @ b.T, rtol=1e-12)


def test_errors_name_both_sizes():
    with pytest.raises((RuntimeError, ValueError), match=r"matmul.*\[2, 3\].*\[4, 5\]"):
        tp.ones(2, 3) @ tp.ones(4, 5)


def test_linear_with_and_without_bias():
    rng = np.random.default_rng(3)
    x, w, b = rng.normal(size=(4, 3)), rng.normal(size=(2, 3)), rng.normal(size=2)
    F = tp.nn.functional
    np.testing.assert_allclose(F.linear(tp.tensor(x), tp.tensor(w), tp.tensor(b)).numpy(), x @ w.T + b, rtol=1e-12)
    leaves = [tp.tensor(v, requires_grad=True) for v in (x, w, b)]
    assert tp.autograd.gradcheck(F.linear, leaves)
    assert tp.autograd.gradgradcheck(F.linear, leaves)
    wide = tp.tensor(rng.normal(size=(2, 4, 3)), requires_grad=True)
    assert tp.autograd.gradcheck(lambda x, w: F.linear(x, w), (wide, leaves[1]))


def test_addmm_with_beta_zero_ignores_nan():
    out = tp.addmm(tp.full((2, 2), float("nan")), tp.ones(2, 3), tp.ones(3, 2), beta=0)
    assert out.tolist() == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "m, n, k", [(130, 128, 200), (257, 250, 300), (9, 300, 1000), (20001, 80, 70), (20000, 64, 64)]
)
def test_products_above_the_small_sizes(dtype: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n), (n,)))
    want = a.astype("float64") @ b.astype("float64")
    bound = (1e-6 if dtype == "float32" else 1e-14) * k
    rows, columns = tp.tensor(a), tp.tensor(b)
    turned, crossed = tp.tensor(a.T.copy()).t(), tp.tensor(b.T.copy()).t()
    for left in (rows, turned):
        for right in (columns, crossed):
            assert np.abs((left @ right).numpy() - want).max() < bound
    assert np.abs(tp.nn.functional.linear(rows, crossed.t(), tp.tensor(c)).numpy() - want - c).max() < bound
