"""A composition that reads a tensor left out by the caller would read memory that is not there: it is refused."""

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


@pytest.mark.parametrize("keys", RIGHT, ids=lambda k: str(k["compose"]))
def test_asked(keys: dict[str, Any]) -> None:
    assert define([Given({"sig": SIG, **keys}, {})], "x.py").ops == ("f",)


@pytest.mark.parametrize(("keys", "said"), WRONG, ids=lambda k: str(k["compose"]) if isinstance(k, dict) else "")
def test_not_asked(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as e:
        define([Given({"sig": SIG, **keys}, {})], "x.py")
    assert said in str(e.value) and "hint: ask first" in str(e.value)
    assert e.value.codes == ("E208",)
