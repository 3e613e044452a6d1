"""Transforms inside transforms: every order to depth 3, and random programs, against loops of plain backward passes."""

from __future__ import annotations

import pytest
import tensorplay as tp
from tensorplay import func
from tensorplay.testing import transforms as T

NESTINGS = list(T.nestings(3))
NAMES = list(T.FUNCTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_through_every_transform(name) -> None:
    for names in T.nestings(1):
        T.check_function(name, names)


@pytest.mark.parametrize("start", range(0, len(NESTINGS), 43))
def test_every_nesting(start) -> None:
    for k, names in enumerate(NESTINGS[start : start + 43], start):
        T.check_function(NAMES[k % len(NAMES)], names)
        T.check_function(NAMES[(7 * k + 11) % len(NAMES)], names)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed) -> None:
    assert T.check_random(40, seed, show=False) == []


@pytest.mark.filterwarnings("ignore:.*runs it once per sample:UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_against_differences(name) -> None:
    """The reference of the other tests is the engine itself; this one is not."""
    f, x, step = T.FUNCTIONS[name], T.POINT, 1e-5
    jac = func.jacfwd(f)(x)
    second = func.jacfwd(func.jacrev(f))(x)
    for j in range(3):
        d = tp.zeros(3, dtype=tp.float64)
        d[j] = step
        assert tp.allclose((f(x + d) - f(x - d)) / (2 * step), jac[..., j], atol=1e-8, rtol=1e-7)
        slope = (func.jacrev(f)(x + d) - func.jacrev(f)(x - d)) / (2 * step)
        assert tp.allclose(slope, second[..., j], atol=1e-7, rtol=1e-6)


def test_the_checks_can_fail() -> None:
    with pytest.raises(AssertionError, match="grad: differs"):
        T.compare(lambda x: x * (2.0 if x.is_leaf else 1.0), T.POINT, ("grad",))
