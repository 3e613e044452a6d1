"""What another language, or paper, writes: the message says how it is written here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codegen import formula
from codegen.define import Refused, define
from codegen.from_python import given
from codegen.given import Given
from codegen.resolve import load_string

ENTRY = """schema: 1
ops:
- op: f
  family: unary
  sig: f(Tensor x, float c=1.0) -> Tensor out
  expr: EXPR
  like: numpy.abs
  doc: Some function.
"""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a && b", "write 'and'"), ("a || b", "write 'or'"), ("!a", "write 'not'"), ("c ? a : b", "a if c else b"),
        ("x if x > 0", "a if c else b"), ("2x", "write 2 * x"), ("1.5x + 1", "write 1.5 * x"), ("2(x+1)", "2 * (...)"),
        ("y = x*2; y+1", "compose"),
    ],
)  # fmt: skip
def test_a_formula_says_what_is_written_instead(text: str, hint: str) -> None:
    with pytest.raises(formula.FormulaError) as e:
        formula.parse(text)
    assert hint in e.value.hint


def said(text: str) -> str:
    return load_string(text)[1].render()


def test_a_product_has_its_sign() -> None:
    assert "a product has its sign: x * (...)" in said(ENTRY.replace("EXPR", "x(c + 1)"))


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ("  doc:", "  dtypes: [float32]\n  doc:", "write f32"), ("  doc:", "  dtypes: [double]\n  doc:", "write f64"),
        ("float c", "double c", "did you mean 'float'?"), ("  family: unary\n", "", "One of: unary, binary"),
        ("  doc:", "  inplace: yes\n  doc:", "one of: true, save_copy, false"),
        ("  expr: ", "    expr: ", "indented deeper than the key above"),
    ],
)  # fmt: skip
def test_an_entry_says_what_is_written_instead(before: str, after: str, hint: str) -> None:
    text = ENTRY.replace("EXPR", "x * c")
    assert load_string(text)[1].items == [] and hint in said(text.replace(before, after))


class Tensor:
    pass


weight = Tensor()


def helper(x: Any) -> Any:
    return x


def reads_a_global(x: Any) -> Any:
    return x * weight


def calls_a_function(x: Any) -> Any:
    return helper(x) + 1


def forgets_a_sign(x: Any) -> Any:
    return x(x + 1)


def takes_any_number(*xs: Any) -> Any:
    return xs


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (reads_a_global, "it is a Tensor, and only numbers are constants; make it an argument"),
        (calls_a_function, "it is a function of Python"), (forgets_a_sign, "x * (...)"),
        (takes_any_number, "'xs' takes any number of arguments"),
    ],
)  # fmt: skip
def test_a_function_says_what_is_written_instead(function: Any, hint: str) -> None:
    with pytest.raises(Refused) as e:
        given(function, {}, {})
    assert hint in str(e.value)


def test_a_lambda_is_no_formula(tmp_path: Path) -> None:
    with pytest.raises(Refused) as e:
        define([Given({"sig": "f(Tensor x) -> Tensor out", "expr": lambda x: x}, {})], "train.py")
    assert "E102" in e.value.codes and "decorate" in str(e.value)
