"""Linear algebra over complex and batched matrices: values, derivatives by differences, singular input."""

import numpy as np
import pytest
import tensorplay as tp

L = tp.linalg


def matrix(*shape, complex_=True, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if complex_:
        x = x + 1j * rng.normal(size=shape)
    return x + shift * np.eye(shape[-2], shape[-1])


def hermitian(x):
    return x @ x.mH + 3 * tp.eye(x.shape[-1], dtype=x.dtype)


def check(f, *arrays, second=True):
    tensors = tuple(tp.tensor(a, requires_grad=True) for a in arrays)
    assert tp.autograd.gradcheck(f, tensors)
    if second:
        assert tp.autograd.gradgradcheck(f, tensors)


KINDS = pytest.mark.parametrize("complex_", [False, True])


@KINDS
@pytest.mark.parametrize(
    "f",
    [
        lambda a: L.det(a), lambda a: L.slogdet(a)[1], lambda a: L.inv(a), lambda a: L.inv_ex(a)[0],
        lambda a: L.pinv(a), lambda a: L.matrix_power(a, 3), lambda a: L.matrix_power(a, -2),
        lambda a: tp.matrix_exp(a), lambda a: L.lu_factor(a)[0], lambda a: L.lu(a)[1:], lambda a: L.cond(a),
        lambda a: L.cond(a, 1), lambda a: L.cond(a, "fro"), lambda a: L.matrix_norm(a, "nuc"), lambda a: L.norm(a, 2),
        lambda a: L.svdvals(a), lambda a: L.matrix_norm(a, 1), lambda a: L.vector_norm(a, 3), lambda a: tp.norm(a),
        lambda a: tp.trace(a @ a),
    ],
)  # fmt: skip
def test_derivatives_of_square_matrices(f, complex_):
    check(f, matrix(3, 3, complex_=complex_, shift=2.0))


@KINDS
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)])
def test_derivatives_of_rectangular_matrices(shape, complex_):
    a = matrix(*shape, complex_=complex_)
    check(lambda x: L.pinv(x), a)
    check(lambda x: L.qr(x), a)
    check(lambda x: L.lu_factor(x)[0], a)
    check(lambda x: L.lu(x)[1:], a)
    check(lambda x: L.svdvals(x), a)
    # Singular vectors are free to turn their phase together: only what does not see it has a derivative.
    check(lambda x: tuple(abs(v) for v in L.svd(x, full_matrices=False)), a)


@KINDS
def test_derivatives_of_hermitian_matrices(complex_):
    a = matrix(3, 3, complex_=complex_)
    check(lambda x: L.cholesky(hermitian(x)), a)
    check(lambda x: L.cholesky(hermitian(x), upper=True), a)
    check(lambda x: tp.cholesky(hermitian(x)), a)
    check(lambda x: L.cholesky_ex(hermitian(x))[0], a)
    check(lambda x: tp.cholesky_inverse(L.cholesky(hermitian(x))), a)
    check(lambda x: L.eigvalsh(hermitian(x)), a)
    check(lambda x: abs(L.eigh(hermitian(x))[1]), a)
    check(lambda x: tp.logdet(hermitian(x)).real, a)


@KINDS
def test_derivatives_of_general_eigenvalues(complex_):
    a = matrix(3, 3, complex_=complex_, seed=3)
    check(lambda x: L.eigvals(x), a)
    check(lambda x: L.eig(x)[0], a)
    check(lambda x: abs(L.eig(x)[1]), a)


@KINDS
@pytest.mark.parametrize("left", [True, False])
def test_derivatives_of_systems(left, complex_):
    a, b = matrix(3, 3, complex_=complex_, shift=2.0), matrix(3, 3, complex_=complex_, seed=1)
    check(lambda x, y: L.solve(x, y, left=left), a, b)
    check(lambda x, y: L.solve_ex(x, y, left=left)[0], a, b)
    for upper in (True, False):
        for unit in (True, False):
            check(lambda x, y, u=upper, v=unit: L.solve_triangular(x, y, upper=u, left=left, unitriangular=v), a, b)
    for adjoint in (True, False):
        check(lambda x, y, c=adjoint: L.lu_solve(*L.lu_factor(x), y, left=left, adjoint=c), a, b)
    if left:
        check(lambda x, y: tp.cholesky_solve(y, L.cholesky(hermitian(x))), a, b)
        check(lambda x, y: tp.triangular_solve(y, x, transpose=True)[0], a, b)
        check(lambda x, y: tp.lu_solve(y, *L.lu_factor(x)), a, b)


@KINDS
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_least_squares(shape, complex_):
    a, b = matrix(*shape, complex_=complex_), matrix(shape[0], 2, complex_=complex_, seed=1)
    got = L.lstsq(tp.tensor(a), tp.tensor(b))
    want = np.linalg.lstsq(a, b, rcond=None)
    np.testing.assert_allclose(got.solution.numpy(), want[0], atol=1e-12)
    np.testing.assert_allclose(got.residuals.numpy(), want[1], atol=1e-12)
    assert int(got.rank) == want[2]
    check(lambda x, y: L.lstsq(x, y)[0], a, b)
    check(lambda x, y: L.lstsq(x, y)[0], a, b[:, 0].copy())


@KINDS
def test_factors_multiply_to_the_matrix(complex_):
    for shape in [(3, 3), (4, 2), (2, 4), (2, 3, 3), (0, 0), (2, 0, 3)]:
        a = matrix(*shape, complex_=complex_)
        p, low, up = L.lu(tp.tensor(a))
        np.testing.assert_allclose((p @ low @ up).numpy(), a, atol=1e-13)
        lu, pivots = L.lu_factor_ex(tp.tensor(a))[:2]
        assert pivots.dtype == tp.int32
        for x, y in zip(tp.lu_unpack(lu, pivots), (p, low, up), strict=True):
            np.testing.assert_array_equal(x.numpy(), y.numpy())
        q, r = L.qr(tp.tensor(a))
        np.testing.assert_allclose((q @ r).numpy(), a, atol=1e-13)
    a = matrix(2, 3, 3, complex_=complex_)
    w, v = L.eig(tp.tensor(a))
    np.testing.assert_allclose((tp.tensor(a).to(tp.complex128) @ v).numpy(), (v * w.unsqueeze(-2)).numpy(), atol=1e-12)


def test_batches_broadcast():
    a, b = matrix(2, 1, 3, 3, shift=2.0), matrix(4, 3, 2)
    got = L.solve(tp.tensor(a), tp.tensor(b))
    np.testing.assert_allclose(got.numpy(), np.linalg.solve(a, b), atol=1e-13)
    got = L.solve_triangular(tp.tensor(a), tp.tensor(b), upper=True)
    np.testing.assert_allclose(got.numpy(), np.linalg.solve(np.triu(a), b), atol=1e-12)
    check(lambda x, y: L.solve_triangular(x, y, upper=True), a, b, second=False)
    check(lambda x, y: L.lu_solve(*L.lu_factor(x), y), a, b, second=False)


@KINDS
def test_norms_agree_with_numpy(complex_):
    a = matrix(3, 4, complex_=complex_)
    t = tp.tensor(a)
    for order in (None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2):
        np.testing.assert_allclose(L.norm(t, order).numpy(), np.linalg.norm(a, order), rtol=1e-13)
    for order in (0, 1, 2, 3.5, np.inf, -np.inf):
        np.testing.assert_allclose(L.norm(t, order, 1).numpy(), np.linalg.norm(a, order, 1), rtol=1e-13)
        np.testing.assert_allclose(L.vector_norm(t, order).numpy(), np.linalg.norm(a.ravel(), order), rtol=1e-13)
    assert tuple(L.matrix_norm(t.unsqueeze(0), 2, (1, 2), True).shape) == (1, 1, 1)
    assert L.norm(t, dtype=tp.complex128 if complex_ else tp.float64).dtype == tp.float64
    for order in (3, "half"):
        with pytest.raises(RuntimeError, match="matrix_norm: ord must be"):
            L.matrix_norm(t, order)
    with pytest.raises(RuntimeError, match="give dim"):
        L.norm(t.reshape(3, 2, 2), 2)


def test_exponentials():
    scipy_linalg = pytest.importorskip("scipy.linalg")
    for scale in (1e-3, 1.0, 30.0):
        a = scale * matrix(4, 4)
        want = scipy_linalg.expm(a)
        got = tp.matrix_exp(tp.tensor(a)).numpy()
        assert np.linalg.norm(got - want) < 1e-11 * np.linalg.norm(want)
    assert tuple(tp.matrix_exp(tp.zeros(2, 0, 0)).shape) == (2, 0, 0)
    nothing = tp.matrix_exp(tp.zeros(3, 3, dtype=tp.float64))
    np.testing.assert_array_equal(nothing.numpy(), np.eye(3))


def test_ranks_and_condition_numbers():
    a = np.diag([1.0, 1e-3, 1e-20])
    t = tp.tensor(a)
    assert int(L.matrix_rank(t)) == 2
    assert int(L.matrix_rank(t, 0.5)) == 1
    assert int(L.matrix_rank(t, atol=0.0, rtol=1e-25)) == 3
    assert int(L.matrix_rank(t, hermitian=True)) == 2
    assert L.matrix_rank(tp.zeros(2, 0, 3)).tolist() == [0, 0]
    assert float(L.cond(tp.zeros(2, 2), 1)) == np.inf
    np.testing.assert_allclose(L.cond(tp.tensor(matrix(3, 3)), "nuc").numpy(), np.linalg.cond(matrix(3, 3), "nuc"))


def test_singular_matrices_raise_by_name():
    singular = tp.ones(2, 2)
    asked = {"check_errors": True}
    for f in (
        L.inv, L.lu_factor, lambda x: L.solve(x, x), lambda x: L.inv_ex(x, **asked),
        lambda x: L.solve_ex(x, x, **asked), lambda x: L.lu_factor_ex(x, **asked),
    ):  # fmt: skip
        with pytest.raises(L.LinAlgError, match="singular"):
            f(singular)
    with pytest.raises(L.LinAlgError, match="cholesky.*not positive definite"):
        L.cholesky(-tp.eye(2))
    with pytest.raises(L.LinAlgError, match="cholesky_ex.*not positive definite"):
        L.cholesky_ex(-tp.eye(2), check_errors=True)
    assert issubclass(L.LinAlgError, RuntimeError)
    assert int(L.inv_ex(singular).info) == 2
    assert int(L.cholesky_ex(-tp.eye(2)).info) == 1
    with pytest.raises(RuntimeError, match="pivot=False"):
        L.lu_factor(tp.eye(2), pivot=False)


def test_equal_singular_values_have_the_gradient_of_the_pseudoinverse():
    check(lambda x: L.pinv(x), np.eye(3) * 2)
    check(lambda x: L.pinv(x), np.diag([1.0, 1.0, 2.0]) + 0j)
    x = tp.tensor(np.eye(3), requires_grad=True)
    L.matrix_norm(x, "nuc").backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-14)


def test_a_factor_without_derivative_says_so():
    x = tp.tensor(matrix(4, 2, complex_=False), requires_grad=True)
    with pytest.raises(RuntimeError, match="linalg.qr: no derivative"):
        L.qr(x, mode="complete")[1].sum().backward()


def test_tensor_systems_and_chains():
    a = matrix(2, 3, 6, shift=0.0)
    np.testing.assert_allclose(L.tensorinv(tp.tensor(a)).numpy(), np.linalg.tensorinv(a), atol=1e-12)
    b = matrix(2, 3)
    np.testing.assert_allclose(L.tensorsolve(tp.tensor(a), tp.tensor(b)).numpy(), np.linalg.tensorsolve(a, b))
    check(lambda x: L.tensorinv(x), a)
    check(lambda x, y: L.tensorsolve(x, y), a, b)
    parts = [matrix(2, 3), matrix(3, 5), matrix(5, 1), matrix(1, 4)]
    got = L.multi_dot([tp.tensor(p) for p in parts])
    np.testing.assert_allclose(got.numpy(), np.linalg.multi_dot(parts), atol=1e-12)
    check(lambda *x: L.multi_dot(x), *parts)
    with pytest.raises(ValueError, match="do not multiply"):
        L.multi_dot([tp.ones(2, 3), tp.ones(2, 3)])
    x = np.array([1.0, 2.0, 0.0])
    np.testing.assert_array_equal(L.vander(tp.tensor(x)).numpy(), np.vander(x, increasing=True))
    np.testing.assert_array_equal(tp.vander(tp.tensor(x), 4).numpy(), np.vander(x, 4))
    check(lambda v: L.vander(v), x + 1)


def test_complex_determinants_of_singular_matrices():
    a = matrix(3, 3)
    a[2] = a[0] + 1j * a[1]
    x = tp.tensor(a, requires_grad=True)
    assert tp.autograd.gradcheck(L.det, (x,))
    sign, log = L.slogdet(tp.tensor(matrix(3, 3)))
    want = np.linalg.slogdet(matrix(3, 3))
    np.testing.assert_allclose(sign.numpy(), want[0])
    np.testing.assert_allclose(log.numpy(), want[1])
    check(lambda m: L.slogdet(m), matrix(3, 3))
    check(lambda m: tp.logdet(m), matrix(3, 3))
