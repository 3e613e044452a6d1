"""A formula that reads what the caller left out has nothing to read: it is refused, in compose, expr and d."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.define import Refused, define
from codegen.given import Given

SIG = "f(Tensor a, Tensor? b=None) -> Tensor out"
RIGHT: list[dict[str, Any]] = [
    {"compose": "a if b == None else a / b"},
    {"compose": "a / b if b != None else a"},
    {"compose": "a if not (b != None) else a / b"},
    {"compose": "a / b", "require": {"b != None": "b is needed"}},
    {"compose": "a / b", "require": {"b != None": "b is needed", "greatest(b) < 5": "b is large"}},
    {"compose": "a if b == None else a * b", "require": {"b == None or greatest(b) < 5": "b is large"}},
    {"compose": {"w": "ones_like(a) if b == None else b", "out": "a * w"}},
    {"compose": "linear(a, a, b)"},
    {"compose": {"w": "b if b == None else 2 * b", "out": "a if w == None else a * w"}},
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"compose": "a / b"}, "compose 'out': 'b' may be None here"),
    ({"compose": "a if b != None else a / b"}, "compose 'out': 'b' may be None here"),
    ({"compose": "a / b if b != None or numel(a) > 1 else a"}, "compose 'out': 'b' may be None here"),
    ({"compose": "sum(stack([a * b]), 0)"}, "compose 'out': 'b' may be None here"),
    ({"compose": "linear(a, b, a)"}, "compose 'out': 'b' may be None here"),
    ({"compose": "a if b == None else b", "require": {"greatest(b) < 5": "large"}}, "require: 'b' may be None here"),
    ({"compose": {"w": "b if b == None else 2 * b", "out": "a * w"}}, "compose 'out': 'w' may be None here"),
]

E = "f(Tensor x, Tensor? w=None, float? n=None) -> Tensor out"
RIGHT_EXPR: list[dict[str, Any]] = [
    {"expr": "x + (w if w != None else 1) + (0 if n == None else exp(n))"},
    {"expr": "where(w == None or n == None, x, x * w * n)"},
    {"expr": "clamp(x, w, n)"},
    {"expr": "where(x < w and n <= x, x, 0)"},
    {"expr": "x if w == None or n == None else x * w + n", "d": {"w": "0 * w if n == None else x"}},
]
WRONG_EXPR: list[tuple[dict[str, Any], str]] = [
    ({"expr": "x + w + (0 if n == None else n)"}, "expr: 'w' may be None here"),
    ({"expr": "x + exp(n) + (0 if w == None else w)"}, "expr: 'n' may be None here"),
    ({"expr": "where(x > 0, x, w) * (1 if n == None else n)"}, "expr: 'w' may be None here"),
    ({"expr": "where(x == w, x, 0) * (1 if n == None else n)"}, "expr: 'w' may be None here"),
    ({"expr": "clamp(w, x, n)"}, "expr: 'w' may be None here"),
    ({"expr": "clamp(x, w, 2 * n)"}, "expr: 'n' may be None here"),
    ({"expr": "x * w if w == None else x + (0 if n == None else n)"}, "expr: 'w' may be None here"),
    ({"expr": "x if w == None or n == None else x * w * n", "d": {"x": "w * n", "w": "x * n"}}, "d of 'x': 'w' may be"),
]


@pytest.mark.parametrize("keys", RIGHT_EXPR, ids=lambda k: str(k["expr"]))
def test_asked_of_elements(keys: dict[str, Any]) -> None:
    assert define([Given({"sig": E, **keys, "dtypes": ["float"]}, {})], "x.py").ops == ("f",)


@pytest.mark.parametrize(("keys", "said"), WRONG_EXPR, ids=lambda k: str(k["expr"]) if isinstance(k, dict) else "")
def test_not_asked_of_elements(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as e:
        define([Given({"sig": E, **keys}, {})], "x.py")
    assert said in str(e.value) and "hint: ask first" in str(e.value) and "require" not in str(e.value)
    assert e.value.codes[0] == "E208"


def test_numbers_of_a_composition() -> None:
    sig = "f(Tensor a, float? n=None) -> Tensor out"
    assert define([Given({"sig": sig, "compose": "a if n == None else a * n"}, {})], "x.py").ops == ("f",)
    with pytest.raises(Refused, match="compose 'out': 'n' may be None here"):
        define([Given({"sig": sig, "compose": "a * n"}, {})], "x.py")


def test_the_reference_is_asked_without_it_too() -> None:
    """Where an operand is left out, and where an optional number is given."""
    sig = "f(Tensor x, Tensor? w=None, float? n=None) -> Tensor out"
    expr = "x * (2 if w == None else w) * (1 if n == None else n)"
    like = "x * ({} if w is None else w) * ({} if n is None else {})"
    right = like.format(2, 1, "n")
    assert define([Given({"sig": sig, "expr": expr, "like": right}, {})], "x.py").ops == ("f",)
    for wrong in (like.format(1, 1, "n"), like.format(2, 1, "2 * n"), like.format(2, 2, "n")):
        with pytest.raises(Refused) as e:
            define([Given({"sig": sig, "expr": expr, "like": wrong}, {})], "x.py")
        assert e.value.codes == ("E314",)


@pytest.mark.parametrize("keys", RIGHT, ids=lambda k: str(k["compose"]))
def test_asked(keys: dict[str, Any]) -> None:
    assert define([Given({"sig": SIG, **keys}, {})], "x.py").ops == ("f",)


@pytest.mark.parametrize(("keys", "said"), WRONG, ids=lambda k: str(k["compose"]) if isinstance(k, dict) else "")
def test_not_asked(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as e:
        define([Given({"sig": SIG, **keys}, {})], "x.py")
    assert said in str(e.value) and "hint: ask first" in str(e.value)
    assert e.value.codes == ("E208",)
