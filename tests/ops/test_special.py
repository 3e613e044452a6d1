"""Special functions against mpmath, at ordinary points, at zeros and at the ends of their domains."""

import math

import numpy as np
import pytest
import scipy.special
import tensorplay as tp

mpmath = pytest.importorskip("mpmath")
S = tp.special

# name, reference, where, largest error in units of the last place of max(|value|, floor)
ONE = [
    ("airy_ai", mpmath.airyai, [-1e3, -40, -12, -9.3, -2.5, -1.99, -0.1, 0, 0.7, 0.99, 1.01, 9, 60], 2, 0.1),
    ("bessel_j0", lambda x: mpmath.besselj(0, x), [0, 1e-9, 0.3, 1.7, 1.99, 2.01, 5, 30, 1e4, 3e9], 2, 0.01),
    ("bessel_j1", lambda x: mpmath.besselj(1, x), [0, 1e-9, 0.3, 1.7, 1.99, 2.01, 5, 30, 1e4, 3e9], 2, 0.01),
    ("bessel_y0", lambda x: mpmath.bessely(0, x), [1e-9, 0.3, 1.7, 1.99, 2.01, 5, 30, 1e4, 3e9], 2, 0.1),
    ("bessel_y1", lambda x: mpmath.bessely(1, x), [1e-9, 0.3, 1.7, 1.99, 2.01, 5, 30, 1e4, 3e9], 4, 0.1),
    ("modified_bessel_i0", lambda x: mpmath.besseli(0, x), [-3, 0, 0.5, 7, 30], 4, 0),
    ("modified_bessel_i1", lambda x: mpmath.besseli(1, x), [-3, 0, 0.5, 7, 30], 4, 0),
    ("modified_bessel_k0", lambda x: mpmath.besselk(0, x), [1e-300, 1e-5, 0.4, 0.99, 1.01, 17, 600], 2, 0),
    ("modified_bessel_k1", lambda x: mpmath.besselk(1, x), [1e-300, 1e-5, 0.4, 0.99, 1.01, 17, 600], 2, 0),
    ("scaled_modified_bessel_k0", lambda x: mpmath.besselk(0, x) * mpmath.exp(x), [1e-5, 0.4, 0.99, 1.01, 1e3], 2, 0),
    ("scaled_modified_bessel_k1", lambda x: mpmath.besselk(1, x) * mpmath.exp(x), [1e-5, 0.4, 0.99, 1.01, 1e3], 2, 0),
    ("spherical_bessel_j0", lambda x: mpmath.sin(x) / x, [1e-8, 0.1, 1, 3, 50, -2], 3, 0),
    ("erfcx", lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [-20, -3, -0.5, 0, 0.4, 3, 30, 1e9], 3, 0),
    ("ndtri", lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), [1e-9, 0.01, 0.06, 0.3, 0.67, 0.99], 2, 0),
]  # fmt: skip

BLOCKS = [r[0] for r in ONE if r[0] not in ("erfcx", "modified_bessel_i0", "modified_bessel_i1")]
BLOCKS += ["gammaln", "digamma", "erfinv"]


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
def test_blocks(name, dtype):
    """An element has one value, whatever its place, its neighbours (far ones, poles) and the layout are."""
    f = getattr(S, name)
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [rng.uniform(0, 1, 700), rng.uniform(-9, 9, 300), [-3.5, 0.0, 5e9, -5e9, 1e-300, -2.7, math.nan]]
    )
    t = tp.tensor(x, dtype=dtype)
    want = np.array([f(t[i]).item() for i in range(0, len(x), 7)])
    np.testing.assert_array_equal(f(t).numpy()[::7], want)
    np.testing.assert_array_equal(f(t[::7]).numpy(), want)
    np.testing.assert_array_equal(f(t[3:1005]).numpy(), f(t).numpy()[3:1005])


def test_block_ends():
    tiny = tp.tensor([5e-324, -5e-324, 1e-310], dtype=tp.float64)
    np.testing.assert_allclose(S.gammaln(tiny).numpy(), [744.4400719213812, 744.4400719213812, 713.8013788281542])
    for f in (S.bessel_j1, S.erfinv):
        assert np.signbit(f(tp.tensor([-0.0], dtype=tp.float64)).numpy()).all()
    np.testing.assert_allclose(
        S.bessel_y1(tp.tensor([4e-309, 3e-309], dtype=tp.float64)).numpy(), [-1.59154943091895e308, -math.inf]
    )
    assert np.isposinf(
        tp.lgamma(tp.tensor([0.0, -0.0, -1.0, -7.0, -1e300, -math.inf, math.inf], dtype=tp.float64)).numpy()
    ).all()


@pytest.mark.parametrize(("low", "high"), [(0, 0.5), (0.5, 1.5), (1.5, 2.5), (2.5, 40), (-2, 0), (-9, -2), (-60, -9)])
def test_lgamma(low, high):
    rng = np.random.default_rng(5)
    x = rng.uniform(low, high, 60)
    with mpmath.workdps(40):
        for v, y in zip(x, tp.lgamma(tp.tensor(x)).numpy(), strict=True):
            want = mpmath.log(abs(mpmath.gamma(mpmath.mpf(v))))
            assert abs(mpmath.mpf(float(y)) - want) <= 2 * math.ulp(float(want)), (v, y, want)


@pytest.mark.parametrize(("name", "reference", "points", "ulps", "floor"), ONE, ids=[r[0] for r in ONE])
def test_values(name, reference, points, ulps, floor):
    with mpmath.workdps(40):
        got = getattr(S, name)(tp.tensor(np.array(points, dtype=float))).numpy()
        for x, y in zip(points, got, strict=True):
            want = reference(mpmath.mpf(x))
            scale = max(abs(float(want)), floor)
            assert abs(mpmath.mpf(float(y)) - want) <= ulps * math.ulp(scale), (x, y, want)


INSIDE = {"airy_ai": (-5, 4), "bessel_j0": (-6, 6), "bessel_j1": (-6, 6), "erfcx": (-2, 3), "ndtri": (0.1, 0.9),
          "spherical_bessel_j0": (-4, 4)}  # fmt: skip


@pytest.mark.parametrize("name", [r[0] for r in ONE])
def test_derivatives(name):
    low, high = INSIDE.get(name, (0.3, 5))
    x = tp.tensor(np.linspace(low, high, 9), requires_grad=True)
    f = getattr(S, name)
    assert tp.autograd.gradcheck(f, (x,))
    assert tp.autograd.gradgradcheck(f, (x,))


def test_derivatives_near_zero_do_not_cancel():
    x = tp.tensor([0.0, 1e-7, 1e-3], dtype=tp.float64, requires_grad=True)
    for f, want in [(S.bessel_j1, lambda v: 0.5 - 3 * v * v / 16), (S.spherical_bessel_j0, lambda v: -v / 3)]:
        (g,) = tp.autograd.grad(f(x).sum(), x)
        np.testing.assert_allclose(g.numpy(), want(x.detach().numpy()), rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("airy_ai", math.inf, 0.0), ("bessel_y0", 0.0, -math.inf), ("bessel_y1", -1.0, math.nan),
        ("modified_bessel_k0", 0.0, math.inf), ("modified_bessel_k1", -1.0, math.nan), ("erfcx", math.inf, 0.0),
        ("erfcx", -math.inf, math.inf), ("ndtri", 0.0, -math.inf), ("ndtri", 1.0, math.inf), ("ndtri", 1.5, math.nan),
        ("spherical_bessel_j0", 0.0, 1.0), ("spherical_bessel_j0", math.inf, 0.0), ("bessel_j0", math.nan, math.nan),
    ],
)  # fmt: skip
def test_ends_of_the_domain(name, at, value):
    np.testing.assert_equal(float(getattr(S, name)(tp.tensor(at, dtype=tp.float64))), value)


@pytest.mark.parametrize(
    ("name", "reference"), [("gammainc", scipy.special.gammainc), ("gammaincc", scipy.special.gammaincc)]
)
def test_incomplete_gamma(name, reference):
    a = np.array([0.01, 0.5, 1, 3, 20, 80, 300, 5e3])[:, None]
    x = a * np.array([0.01, 0.4, 0.9, 1, 1.05, 1.6, 4])
    got = getattr(S, name)(tp.tensor(a), tp.tensor(x)).numpy()
    np.testing.assert_allclose(got, reference(a, x), rtol=1e-11, atol=1e-300)
    edges = [(0, 1), (1, 0), (0, 0), (-1, 1), (1, -1), (math.inf, 1), (1, math.inf), (math.inf, math.inf)]
    for order, at in edges:
        f = getattr(S, name)
        got = float(f(tp.tensor(float(order), dtype=tp.float64), tp.tensor(float(at), dtype=tp.float64)))
        np.testing.assert_equal(got, float(reference(order, at)), str((order, at)))
    t = tp.tensor(np.array([0.4, 2.0, 5.0]), requires_grad=True)
    f = getattr(tp, {"gammainc": "igamma", "gammaincc": "igammac"}[name])
    assert tp.autograd.gradcheck(lambda v: f(tp.tensor(2.5, dtype=tp.float64), v), (t,))
    y = tp.tensor(np.array([1.0, 2.5, 0.3]), requires_grad=True)
    assert tp.autograd.gradcheck(f, (t, y))
    assert tp.autograd.gradgradcheck(f, (t, y))


# In the tails, in the middle, where the series gives way to the continued fraction, and for orders from 0 to 1e6.
@pytest.mark.parametrize(
    ("a", "x"),
    [
        (0, 0.7), (1e-3, 2.0), (0.3, 1e-6), (0.5, 30.0), (2.5, 3.4), (2.5, 3.6), (40, 9), (40, 41.5), (300, 420),
        (1e6, 1e6 + 800),
    ],
)  # fmt: skip
def test_incomplete_gamma_in_its_order(a, x):
    def upper_tail(v):
        # Through whichever function is small, so that the difference does not cancel.
        lower = mpmath.gammainc(v, 0, x, regularized=True)
        return lower if x < a else -mpmath.gammainc(v, x, mpmath.inf, regularized=True)

    order, at = tp.tensor(float(a), dtype=tp.float64, requires_grad=True), tp.tensor(float(x), dtype=tp.float64)
    with mpmath.workdps(40):
        want = float(mpmath.diff(upper_tail, mpmath.mpf(a), direction=1 if a == 0 else 0))
    (lower,) = tp.autograd.grad(tp.igamma(order, at), order)
    (upper,) = tp.autograd.grad(tp.igammac(order, at), order)
    np.testing.assert_allclose([float(lower), -float(upper)], want, rtol=1e-11)


@pytest.mark.parametrize(("s", "q"), [(1.001, 0.5), (1.5, 1.0), (3.0, 0.02), (7.5, 20.0), (40.0, 2.0)])
def test_zeta_in_its_exponent(s, q):
    x = tp.tensor(s, dtype=tp.float64, requires_grad=True)
    y = tp.tensor(q, dtype=tp.float64, requires_grad=True)
    (slope,) = tp.autograd.grad(S.zeta(x, y), x, create_graph=True)
    bend, mixed = tp.autograd.grad(slope, (x, y))
    with mpmath.workdps(30):
        z = mpmath.zeta
        want = z(s, q, 1), z(s, q, 2), -z(s + 1, q) - s * z(mpmath.mpf(s) + 1, q, 1)
    np.testing.assert_allclose([float(slope), float(bend), float(mixed)], [float(w) for w in want], rtol=1e-12)


def test_zeta_has_no_slope_in_its_exponent_left_of_the_origin():
    s = tp.tensor([3.0, 3.0, 0.5], dtype=tp.float64, requires_grad=True)
    S.zeta(s, tp.tensor([0.0, -1.5, 2.0], dtype=tp.float64)).sum().backward()
    assert np.isnan(s.grad.numpy()).all()


def test_zeta():
    for s, q in [(1.1, 1), (2, 1), (3, 0.25), (5, 17.5), (30, 2), (4, -2.5), (2, 1e6)]:
        got = float(S.zeta(tp.tensor(float(s), dtype=tp.float64), tp.tensor(float(q), dtype=tp.float64)))
        np.testing.assert_allclose(got, float(mpmath.zeta(s, q)), rtol=1e-15)
    for s, q, want in [(1, 2, math.inf), (0.5, 2, math.nan), (2, -3, math.inf), (2.5, -0.5, math.nan)]:
        got = float(S.zeta(tp.tensor(float(s), dtype=tp.float64), tp.tensor(float(q), dtype=tp.float64)))
        np.testing.assert_equal(got, want)


def test_multivariate_gamma():
    x = np.array([2.5, 4.0, 10.0])
    want = [scipy.special.multigammaln(v, 4) for v in x]
    np.testing.assert_allclose(tp.mvlgamma(tp.tensor(x), 4).numpy(), want, rtol=1e-14)
    np.testing.assert_allclose(S.multigammaln(tp.tensor(x), 4).numpy(), want, rtol=1e-14)
    t = tp.tensor(x, requires_grad=True)
    assert tp.autograd.gradcheck(lambda v: tp.mvlgamma(v, 3), (t,))


POLYNOMIALS = {
    "chebyshev_polynomial_t": scipy.special.eval_chebyt,
    "chebyshev_polynomial_u": scipy.special.eval_chebyu,
    "shifted_chebyshev_polynomial_t": scipy.special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": scipy.special.eval_sh_chebyu,
    "hermite_polynomial_h": scipy.special.eval_hermite,
    "hermite_polynomial_he": scipy.special.eval_hermitenorm,
    "laguerre_polynomial_l": scipy.special.eval_laguerre,
    "legendre_polynomial_p": scipy.special.eval_legendre,
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x, n = np.linspace(-1.2, 1.2, 7)[:, None], np.array([0, 1, 2, 5, 12])
    f = getattr(S, name)
    got = f(tp.tensor(x), tp.tensor(n)).numpy()
    np.testing.assert_allclose(got, POLYNOMIALS[name](n, x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(f(tp.tensor(x), 3).numpy(), POLYNOMIALS[name](3, x), rtol=1e-12, atol=1e-12)
    assert float(f(tp.tensor(0.3), -2)) == 0
    t = tp.tensor(x, requires_grad=True)
    assert tp.autograd.gradcheck(lambda v: f(v, 4), (t,))
    assert tp.autograd.gradgradcheck(lambda v: f(v, 4), (t,))


def test_chebyshev_polynomials_of_the_third_and_fourth_kind():
    angle = np.linspace(0.1, 3, 6)
    x = tp.tensor(np.cos(angle))
    for n in (0, 1, 4, 9):
        v = np.cos((n + 0.5) * angle) / np.cos(angle / 2)
        w = np.sin((n + 0.5) * angle) / np.sin(angle / 2)
        np.testing.assert_allclose(S.chebyshev_polynomial_v(x, n).numpy(), v, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(S.chebyshev_polynomial_w(x, n).numpy(), w, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("order", [-1, -(2**31), -(2**63), 17, 2**40])
@pytest.mark.parametrize("family", ["chebyshev_t", "chebyshev_u", "hermite_h", "laguerre_l", "legendre_p"])
def test_polynomials_have_no_derivative_of_such_an_order(family: str, order: int) -> None:
    x, n = tp.tensor([0.3, -2.0]), tp.tensor([20.0, 3.0])
    assert getattr(tp._C.internal, family)(x, n, order).isnan().all()


def test_the_density_of_gamma_far_below_zero_ends() -> None:
    a, x = tp.tensor([-9e18, -(2.0**31), -0.5], dtype=tp.float64), tp.tensor([1.1, 2.0, 1.0], dtype=tp.float64)
    got = tp._C.internal.gamma_density(a, x, 0).tolist()
    assert math.isnan(got[0]) and math.isnan(got[1])
    assert got[2] == pytest.approx(float(mpmath.exp(-1) / mpmath.gamma(-0.5)), rel=1e-14)


def ulps(got: tp.Tensor, want: np.ndarray) -> float:
    """The largest error of float32 numbers in units of the last place, of subnormal numbers too."""
    unit = np.maximum(np.ldexp(1.0, np.frexp(np.abs(want))[1] - 24), 2.0**-149)
    return float((np.abs(got.numpy().astype(np.float64) - want) / unit).max())


@pytest.mark.parametrize("low, high", [(-14.5, -13), (-10.2, -3.8), (-5.1, 5.1), (3.8, 14)])
def test_normal_distribution_in_float32(low, high):
    """Where one form of it takes over from another, and gelu where results are subnormal."""
    x = tp.linspace(low, high, 200_001, dtype=tp.float32)
    wide = x.numpy().astype(np.float64)
    assert ulps(S.ndtr(x), scipy.special.ndtr(wide)) <= 2
    assert ulps(tp.nn.functional.gelu(x), wide * scipy.special.ndtr(wide)) <= 2


@pytest.mark.parametrize("f", [S.ndtr, tp.nn.functional.gelu])
def test_normal_distribution_of_one_element_and_of_many(f):
    x = np.random.default_rng(5).uniform(-6, 6, 531).astype(np.float32)
    edges = [np.inf, -np.inf, np.nan, 0.0, -0.0, -200.0, 200.0, -3.875, 3.875, 5.0, -5.0, -14.5, 1e-40, -1e-40, 4.9]
    x[: 35 * len(edges) : 35] = edges
    alone = np.array([f(tp.tensor([v], dtype=tp.float32)).item() for v in x], np.float32)
    many = f(tp.from_numpy(x)).numpy()
    assert np.array_equal(many, alone, equal_nan=True)
    assert np.array_equal(np.signbit(many), np.signbit(alone))
    assert np.array_equal(f(tp.from_numpy(x)[1:]).numpy(), many[1:], equal_nan=True)


def test_tanhshrink_in_float32():
    x = tp.exp(tp.linspace(-9, 2, 200_001))
    want = tp.nn.functional.tanhshrink(x.double()).numpy()
    assert ulps(tp.nn.functional.tanhshrink(x), want) <= 4
