"""The formula parser and printer."""

from __future__ import annotations

import pytest

from codegen import formula as F
from codegen.formula import FormulaError, parse, to_text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1-out**2", "1 - out**2"),
        ("-x**2", "-x**2"),
        ("(-x)**2", "(-x)**2"),
        ("x**-y", "x**-y"),
        ("x**(y**z)", "x**y**z"),
        ("(x**y)**z", "(x**y)**z"),
        ("a-(b-c)", "a - (b - c)"),
        ("a-b-c", "a - b - c"),
        ("a/(b*c)", "a / (b * c)"),
        ("a if c > 0 else b", "where(c > 0, a, b)"),
        ("0 < x < 1", "0 < x and x < 1"),
        ("not (a and b) or c", "not (a and b) or c"),
        ("f(x, dim=[1, -2])[0]", "f(x, dim=[1, -2])[0]"),
        ("(a,)", "(a,)"),
        ("~a & b | c ^ d", "~a & b | c ^ d"),
        ("1e-3 * x", "0.001 * x"),
        ("2j * x", "2j * x"),
        ("mode == 'tanh'", "mode == 'tanh'"),
        ("x if m == None else y", "where(m == None, x, y)"),
        ("g @ mH(other)", "g @ mH(other)"),
        ("[-1 if i==k else 1 for i in range(n)]", "[where(i == k, -1, 1) for i in range(n)]"),
    ],
)
def test_round_trip(text: str, printed: str) -> None:
    node = parse(text)
    assert to_text(node) == printed
    assert parse(printed) == node


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("x +", None),
        ("x.T", (0, 3)),
        ("lambda: x", (0, 9)),
        ("[i for i in x if i]", (0, 19)),
        ("f(*x)", (2, 4)),
        ("f(**x)", (2, 5)),
        ("x is y", (0, 6)),
        ("a\u00e9", (1, 2)),
        ("", None),
        ("x\ny", None),
        ("(" * 500 + ")" * 500, None),
        ("-" * 3000 + "x", None),
        ("x" * 5000, None),
        ("f(x, a=1, a=2)", None),
        ("x[1:2]", (0, 6)),
        ("99999999999999999999999", (0, 23)),
        ("x = 1", None),
        ("f'{x}'", (0, 6)),
    ],
)
def test_refused_with_a_place(text: str, span: tuple[int, int] | None) -> None:
    with pytest.raises(FormulaError) as e:
        parse(text)
    if span:
        assert e.value.span == span


def test_spans_are_columns() -> None:
    node = parse("  1 - output**2")
    name = next(n for n in F.walk(node) if isinstance(n, F.Name))
    assert "  1 - output**2"[slice(*name.span)] == "output"


def test_numbers_keep_their_kind() -> None:
    assert parse("1") != parse("1.0")
    assert parse("1") != parse("True")
    assert len({parse("1"), parse("1.0"), parse("True")}) == 3


def test_traversal() -> None:
    node = parse("where(x > 0, f(x, k=y), x)")
    assert F.names(node) == ("x", "y")
    assert F.calls(node) == ("where", "f")
    assert to_text(F.substitute(node, {"x": parse("a + b")})) == "where(a + b > 0, f(a + b, k=y), a + b)"
    assert F.replace(parse("sin(x) + sin(x)"), parse("sin(x)"), F.Name("s")) == parse("s + s")


def test_items_of_a_list_are_no_free_names() -> None:
    assert F.names(parse("[f(x, y) for x in xs]")) == ("y", "xs")
