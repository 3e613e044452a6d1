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


# ---- vectors of values that coincide ---------------------------------------------------------------------------------


def _near(a, d):
    """Where two values coincide a limit is what stands close by."""
    return tp.tensor(a + 1e-6 * d, requires_grad=True)


def test_projectors_onto_an_eigenspace_have_a_gradient():
    rng = np.random.default_rng(3)
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    w = tp.tensor(rng.normal(size=(3, 3)))

    def f(a):
        v = tp.linalg.eigh(a)[1][:, :2]
        return ((v @ v.mT) * w).sum()

    def slope(x):
        return tp.autograd.grad(f(x), x)[0].numpy()

    a = q @ np.diag([1.0, 1.0, 2.0]) @ q.T
    split = q @ np.diag([1.0, -1.0, 0.0]) @ q.T
    np.testing.assert_allclose(slope(tp.tensor(a, requires_grad=True)), slope(_near(a, split)), atol=1e-4)


def test_what_tells_coinciding_eigenvectors_apart_is_refused():
    x = tp.eye(3, dtype=tp.float64).requires_grad_()
    w = tp.arange(9, dtype=tp.float64).reshape(3, 3)
    with pytest.raises(RuntimeError, match="linalg.eigh: eigenvalues coincide, and the gradient tells"):
        (tp.linalg.eigh(x)[1] * w).sum().backward()
    # A function of the matrix is smooth, but its derivative follows from no gradient of values and vectors.
    values, vectors = tp.linalg.eigh(x)
    with pytest.raises(RuntimeError, match="linalg.eigh: eigenvalues coincide, and a function"):
        ((vectors @ tp.diag(values.exp()) @ vectors.mT) * w).sum().backward()
    (g,) = tp.autograd.grad(tp.linalg.eigvalsh(x).exp().sum(), x)
    np.testing.assert_allclose(g.numpy(), np.e * np.eye(3), atol=1e-12)
    y = tp.eye(2, dtype=tp.float64).requires_grad_()
    with pytest.raises(RuntimeError, match="linalg.eig: eigenvalues coincide"):
        (tp.linalg.eig(y)[1].real * w[:2, :2]).sum().backward()


def test_polar_factors_of_equal_singular_values():
    rng = np.random.default_rng(4)
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    w = tp.tensor(rng.normal(size=(3, 3)))

    def slope(x):
        u, _, vh = tp.linalg.svd(x)
        return tp.autograd.grad(((u @ vh) * w).sum(), x)[0].numpy()

    got = slope(tp.tensor(2 * q, requires_grad=True))
    np.testing.assert_allclose(got, slope(_near(2 * q, q @ np.diag([1.0, -1.0, 0.0]))), atol=1e-4)
    # The derivative of the polar factor of 2 q, by hand: (w - q w^T q) / 4.
    np.testing.assert_allclose(got, (w.numpy() - q @ w.numpy().T @ q) / 4, atol=1e-12)


def test_what_tells_coinciding_singular_vectors_apart_is_refused():
    x = tp.eye(3, dtype=tp.float64).requires_grad_()
    w = tp.arange(9, dtype=tp.float64).reshape(3, 3)
    with pytest.raises(RuntimeError, match="linalg.svd: singular values coincide"):
        (tp.linalg.svd(x)[0] * w).sum().backward()
    z = tp.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], dtype=tp.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="linalg.svd: .*0"):
        (tp.linalg.svd(z, full_matrices=False)[0] * w[:, :2]).sum().backward()
    with pytest.raises(RuntimeError, match="driver='gesvd' is for graphics processors"):
        tp.linalg.svd(x, driver="gesvd")


# ---- indefinite matrices, reflections -----------------------------------------------------------------------------


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("complex_", [False, True])
def test_systems_of_indefinite_matrices(hermitian, complex_):
    rng = np.random.default_rng(5)
    a = rng.normal(size=(2, 4, 4)) + 1j * rng.normal(size=(2, 4, 4)) * complex_
    a = a + (np.conj(a) if hermitian else a).swapaxes(-1, -2)
    a = a if complex_ else a.real
    b = rng.normal(size=(2, 4, 3)) + 1j * rng.normal(size=(2, 4, 3)) * complex_
    b = b if complex_ else b.real
    ld, pivots = tp.linalg.ldl_factor(tp.tensor(a), hermitian=hermitian)
    assert ld.shape == (2, 4, 4)
    assert not ld.triu(1).abs().max().item()
    x = tp.tensor(b, requires_grad=True)
    same = tp.linalg.ldl_solve(ld, pivots, x, hermitian=hermitian)
    np.testing.assert_allclose(same.detach().numpy(), np.linalg.solve(a, b), atol=1e-10)
    assert tp.autograd.gradcheck(lambda x: tp.linalg.ldl_solve(ld, pivots, x, hermitian=hermitian), (x,))
    _, _, info = tp.linalg.ldl_factor_ex(tp.zeros(2, 2), hermitian=hermitian)
    assert info.item() > 0
    with pytest.raises(RuntimeError, match="ldl_factor: .*singular"):
        tp.linalg.ldl_factor(tp.zeros(2, 2), hermitian=hermitian)


def test_products_of_reflections():
    rng = np.random.default_rng(6)
    h, tau = rng.normal(size=(5, 3)), rng.normal(size=3)
    want = np.eye(5)
    for i in range(3):
        v = np.concatenate([np.zeros(i), [1.0], h[i + 1 :, i]])
        want = want @ (np.eye(5) - tau[i] * np.outer(v, v))
    got = tp.linalg.householder_product(tp.tensor(h), tp.tensor(tau))
    np.testing.assert_allclose(got.numpy(), want[:, :3], atol=1e-12)
    x, t = tp.tensor(h, requires_grad=True), tp.tensor(tau, requires_grad=True)
    assert tp.autograd.gradcheck(tp.linalg.householder_product, (x, t))
    with pytest.raises(ValueError, match="at least as many rows as columns"):
        tp.linalg.householder_product(tp.ones(2, 3), tp.ones(2))


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.complex64, tp.complex128])
@pytest.mark.parametrize(
    "op", ["svd", "svdvals", "eig", "eigvals", "pinv", "cond", "matrix_rank", "eigh", "eigvalsh", "lstsq"]
)
def test_values_that_are_not_finite_are_refused_where_lapack_iterates(op: str, dtype: tp.dtype, bad: float) -> None:
    """Its loop need not end on them, and a loop inside LAPACK cannot be interrupted."""
    a = tp.tensor([[1e-8, 88.8, -0.5], [bad, bad, 88.8], [-0.5, -1e-30, -1e-30]], dtype=dtype)
    f = getattr(tp.linalg, op)
    call = (lambda m: f(m, tp.ones(*m.shape[:-1], 1, dtype=dtype))) if op == "lstsq" else f
    with pytest.raises(tp.linalg.LinAlgError, match="holds NaN or infinite values"):
        call(a)
    with pytest.raises(tp.linalg.LinAlgError, match="matrix 1 of the batch"):
        call(tp.stack([tp.eye(3, dtype=dtype), a]))


def test_the_triangle_that_is_not_read_may_hold_anything() -> None:
    a = tp.tensor([[2.0, float("nan")], [1.0, 3.0]])
    want = np.linalg.eigvalsh([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(tp.linalg.eigvalsh(a).numpy(), want, rtol=1e-6)


def test_least_squares_of_two_dtypes_is_worked_out_in_the_wider():
    A = tp.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    b = tp.tensor([[1.0], [2.0], [1.0 / 3.0]], dtype=tp.float64)
    got = tp.linalg.lstsq(A, b).solution
    assert got.dtype == tp.float64
    np.testing.assert_allclose(got.numpy(), np.linalg.lstsq(A.double().numpy(), b.numpy(), rcond=None)[0], rtol=1e-12)


def test_results_are_written_where_they_are_wanted() -> None:
    a = tp.tensor([[4.0, 1.0], [1.0, 3.0]])
    x = tp.empty(0)
    assert tp.linalg.inv(a, out=x) is x
    np.testing.assert_allclose(x.numpy(), np.linalg.inv(a.numpy()), rtol=1e-6)
    parts = tuple(tp.empty(0) for _ in range(3))
    tp.linalg.svd(a, out=parts)
    np.testing.assert_allclose(parts[1].numpy(), np.linalg.svd(a.numpy())[1], rtol=1e-6)
    with pytest.raises(RuntimeError, match="can't be cast"):
        tp.fft.fft(a, out=tp.empty(2, 2))


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distances_of_near_rows_far_from_the_origin(p: float, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for rows, others, length in [(1, 1, 1), (5, 70, 3), (131, 33, 40), (3, 5, 100)]:
        x, y = (1000 + rng.normal(size=(n, length)).astype(dtype) for n in (rows, others))
        apart = np.abs(x[:, None].astype(float) - y[None].astype(float))
        want = apart.max(-1) if p == np.inf else (apart**p).sum(-1) ** (1 / p)
        got = tp.cdist(tp.tensor(x), tp.tensor(y), p).numpy()
        np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps)


def test_distances_beyond_the_range_of_squares() -> None:
    x = tp.tensor([[3e25, 0.0], [3e-30, 0.0], [float("inf"), 0.0], [float("nan"), 0.0]])
    y = tp.tensor([[0.0, 4e25], [0.0, 4e-30]])
    want = [[5e25, 3e25], [4e25, 5e-30], [float("inf")] * 2, [float("nan")] * 2]
    np.testing.assert_allclose(tp.cdist(x, y).numpy(), want, rtol=1e-6)
    np.testing.assert_array_equal(tp.cdist(x, x).diagonal().numpy()[:2], [0, 0])


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_gradients_and_samples_of_distances(p: float) -> None:
    rng = np.random.default_rng(4)
    x = tp.tensor(rng.normal(size=(2, 1, 5, 3)), requires_grad=True)
    y = tp.tensor(rng.normal(size=(4, 6, 3)), requires_grad=True)
    assert tp.autograd.gradcheck(lambda a, b: tp.cdist(a, b, p), (x, y))
    assert tp.autograd.gradgradcheck(lambda a, b: tp.cdist(a, b, p), (x, y))
    together = tp.func.vmap(lambda a, b: tp.cdist(a, b, p), in_dims=(None, 0))(x.detach(), y.detach())
    np.testing.assert_array_equal(together[1, 0, 0].numpy(), tp.cdist(x[0, 0], y[1], p).detach().numpy())


def test_the_slope_of_a_distance_of_nothing_is_nothing() -> None:
    x = tp.tensor([[1.0, 2.0], [4.0, 6.0]], requires_grad=True)
    tp.cdist(x, x.detach()).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[-0.6, -0.8], [0.6, 0.8]], rtol=1e-6)
