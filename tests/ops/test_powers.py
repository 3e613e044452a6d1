"""Powers with short forms: their accuracy, their ends, and that no exponent's result depends on those beside it."""

import numpy as np
import pytest
import tensorplay as tp

EXPONENTS = [-3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5]
ENDS = [
    0.0,
    -0.0,
    1,
    -1,
    2,
    -2,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    1e-38,
    1e-20,
    2.2e-13,
    1.7e16,
    -1.7e16,
    4e18,
    1e20,
    3e38,
]


def arguments(dtype: str) -> np.ndarray:
    g = np.random.default_rng(3)
    wide = np.exp(g.standard_normal(600) * 20)
    return np.concatenate([np.array(ENDS), g.standard_normal(200), wide]).astype(dtype)


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", EXPONENTS)
@np.errstate(all="ignore")
def test_within_two_ulp_and_at_the_ends(dtype: str, exponent: float) -> None:
    x = arguments(dtype)
    wide = np.power(x.astype(np.longdouble), np.longdouble(exponent))
    want, got = wide.astype(dtype), (tp.tensor(x) ** exponent).numpy()
    finite = np.isfinite(want)
    ulp = np.abs(got.astype(np.longdouble) - wide) / np.spacing(np.abs(np.where(finite, want, 1))).astype(np.longdouble)
    assert np.all(same(got, want) | finite & (ulp <= 2) & (np.signbit(got) == np.signbit(want)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_whatever_stands_beside(dtype: str, exponent: float) -> None:
    x = arguments(dtype)
    alone = (tp.tensor(x) ** exponent).numpy()
    exponents = np.full(x.shape, exponent, dtype)
    exponents[::7], exponents[3::11], exponents[5::13] = 2, 0.37, 1.5
    mixed = (tp.tensor(x) ** tp.tensor(exponents)).numpy()
    kept = exponents == np.array(exponent, dtype)
    assert same(mixed, alone)[kept].all()
    for n in (1, 5, 17):
        assert same((tp.tensor(x[:n]) ** exponent).numpy(), alone[:n]).all()


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_gradient(exponent: float) -> None:
    x = tp.tensor(np.random.default_rng(5).random(100) + 0.1, requires_grad=True)
    (slope,) = tp.autograd.grad((x**exponent).sum(), x)
    np.testing.assert_allclose(slope.numpy(), exponent * x.detach().numpy() ** (exponent - 1.0), rtol=1e-14)
