"""Transforms inside transforms: every order to depth 3, and random programs, against loops of plain backward passes
and against differences of values."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize("start", range(0, len(NESTINGS), 43))
def test_nestings_against_differences(start) -> None:
    """The reference of the other tests is the engine itself; this one's is not."""
    for k, names in enumerate(NESTINGS[start : start + 43], start):
        T.check_function(NAMES[(11 * k + 5) % len(NAMES)], names, differences=True)


def test_the_checks_can_fail() -> None:
    with pytest.raises(AssertionError, match="grad: differs"):
        T.compare(lambda x: x * (2.0 if x.is_leaf else 1.0), T.POINT, ("grad",))
    with pytest.raises(AssertionError, match="jvp: differs"):
        T.compare(lambda x: x * x.detach(), T.POINT, ("jvp",), 1e-5, T.by_differences)
