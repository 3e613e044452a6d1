"""From a file of entries to the model; what is derived and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen import check, pipeline
from codegen.formula import to_text
from codegen.model import Diff, OpFile
from codegen.resolve import load_string

GOOD = Path(__file__).parent / "cases" / "good.yaml"


@pytest.fixture(scope="module")
def good() -> OpFile:
    file, diags, skipped = pipeline.checked(str(GOOD), draft=True)
    assert not diags, diags.render()
    assert skipped == []
    return file


def entry(text: str, numeric: bool = False):  # type: ignore[no-untyped-def]
    file, diags = load_string("schema: 1\nops:\n" + text)
    if numeric and not diags:
        check.run(file, diags)
    return file, diags


def test_overloads_share_what_fits(good: OpFile) -> None:
    pow_ = good.by_name["pow"]
    assert [sorted(o.deriv) for o in pow_.overloads] == [["exponent", "input"], ["input"], ["exponent"]]
    assert all(d.kind is Diff.DERIVED for o in pow_.overloads for d in o.deriv.values())


def test_operators_are_those_of_the_library() -> None:
    text = (
        "- op: power\n  family: binary\n  sig: power(Tensor x, Tensor y) -> Tensor out\n  expr: x ** y\n"
        "  operator: ['**', '^']\n  like: numpy.power\n  doc: A power, under two operators.\n"
    )
    file, diags = entry(text)
    assert not diags and file.by_name["power"].operator == ("**", "^")


def test_results_and_gradients_by_name(good: OpFile) -> None:
    o = good.by_name["max"].overloads[0]
    assert o.nondiff_results == ("indices",)
    assert [r.name for r in o.diff_results] == ["values"]
    assert o.deriv["input"].formula is not None and "g_values" in o.deriv["input"].formula.text


def test_fusion_inlines_other_entries(good: OpFile) -> None:
    o = good.by_name["swish"].overloads[0]
    assert o.expr is not None and o.expr.text == "silu(input * slope) / slope"
    assert o.inlined is not None
    assert to_text(o.inlined) == "input * slope * sigmoid(input * slope) / slope"


def test_promotion_follows_from_expr(good: OpFile) -> None:
    rules = {e.op: e.promote for e in good.entries}
    assert rules["silu"] == "float" and rules["add"] == "common" and rules["gt"] == "bool" and rules["abs"] == "real"


def test_values_are_converted_by_schema() -> None:
    file, diags = entry(
        "- op: sq\n  family: unary\n  sig: sq(Tensor input, float alpha=1e-3) -> Tensor out\n  expr: alpha * input**2\n"
        "  version: 3\n  dtypes: [float, c128]\n  amp: force_fp32\n  home: [tensorplay, special]\n"
        "  method: [sq, square_it]\n"
        "  aliases: [linalg.sq2]\n  like: alpha * input**2\n  special:\n  - {input: -0.0, out: 0.0, d_input: 0}\n"
        "  - {input: inf, out: inf}\n  test: {input: [-pi, 1e1], alpha: [1e-3, 2], edges: [0, nan], tol: 1e-4}\n"
        "  doc: 'on: not a boolean'\n"
    )  # fmt: skip
    assert not diags, diags.render()
    e = file.entries[0]
    assert e.version == 3 and e.dtypes == ("f32", "f64", "c128") and e.method == ("sq", "square_it")
    assert e.test.domains["input"][1] == 10.0 and e.test.params["alpha"] == (0.001, 2)
    assert e.overloads[0].sig.args[1].default == 0.001
    assert e.doc == "on: not a boolean"
    assert e.special[1].values["out"] == float("inf")


def test_silence_is_an_error_and_each_word_speaks() -> None:
    base = (
        "- op: s\n  family: reduction\n  sig: s(Tensor input, Tensor other) -> Tensor out\n  kernel: s\n"
        "  shape: same(input)\n{}  like: {{tests: t.py}}\n  doc: An example of a reduction.\n"
    )
    for words in (
        "  zero: [input]\n  nondiff: [other]\n",
        "  todo: {input: not yet known, other: neither}\n",
        "  nondiff: true\n",
    ):
        _, diags = entry(base.format(words))
        assert not diags, diags.render()
    _, diags = entry(base.format("  zero: [input]\n"))
    assert [d.code for d in diags.items] == ["E302"]


def test_in_place_legality() -> None:
    base = (
        "- op: f\n  family: unary\n  sig: f(Tensor input) -> Tensor out\n  expr: {}\n  inplace: {}\n"
        "  like: {}\n  doc: An example of an operation.\n"
    )
    for expr, like, how, fine in (
        ("tanh(input)", "numpy.tanh", "true", True),
        ("exp(input)", "numpy.exp", "true", True),
        ("sin(input)", "numpy.sin", "true", False),
        ("sin(input)", "numpy.sin", "save_copy", True),
        ("-input", "numpy.negative", "true", True),
        ("2 * input + 1", "2 * input + 1", "true", True),
    ):
        _, diags = entry(base.format(expr, how, like))
        assert bool(diags) is not fine, diags.render()


def test_compose_with_named_values() -> None:
    file, diags = entry(
        "- op: total\n  family: reduction\n  sig: total(Tensor input) -> Tensor out\n  kernel: total\n"
        "  shape: scalar()\n"
        "  vjp: {input: 'expand_to(g, shape(input))'}\n  like: numpy.sum\n  test: {cases: [{input: [2, 3]}]}\n"
        "  doc: Sum of all elements.\n"
        "- op: norm2\n  family: composite\n  sig: norm2(Tensor input) -> (Tensor out, Tensor square)\n"
        "  compose: {square: total(input * input), out: sqrt(square)}\n"
        "  like: (numpy.sqrt(numpy.sum(input * input)), numpy.sum(input * input))\n"
        "  test: {cases: [{input: [2, 3]}]}\n  doc: Euclidean norm and its square.\n",
        numeric=True,
    )  # fmt: skip
    assert not diags, diags.render()
    assert [n for n, _ in file.by_name["norm2"].overloads[0].compose] == ["square", "out"]


@pytest.mark.parametrize("family", ["linalg", "view"])
def test_complex_inputs_are_checked_too(family: str) -> None:
    text = (
        f"- op: m\n  family: {family}\n  sig: m(Tensor input, Tensor other) -> Tensor out\n  kernel: m\n"
        "  view_of: input\n  shape: matmul(input, other)\n"
        "  vjp: {input: 'sum_to(g @ mT(other), shape(input))', other: 'sum_to(mH(input) @ g, shape(other))'}\n"
        "  like: numpy.matmul\n  test: {cases: [{input: [2, 3], other: [3, 4]}]}\n"
        "  doc: A product whose gradient forgets conj.\n"
    )  # fmt: skip
    _, diags = entry(text, numeric=True)
    assert [d.code for d in diags.items] == ["E311"]
    _, diags = entry(text.replace("mT(other)", "mH(other)"), numeric=True)
    assert not diags, diags.render()


@pytest.mark.parametrize(
    ("sig", "expr", "fine"),
    [
        ("f(Tensor x, Tensor? lo=None, Tensor? hi=None)", "clamp(x, lo, hi) * 2", True),
        ("f(Tensor x, float? lo=None, float? hi=None)", "clamp(x, lo, hi) * 2", True),
        ("f(Tensor x, Tensor y)", "maximum(x, y) * 2", True), ("f(Tensor x, Tensor y)", "where(x < y, x, y) * 2", True),
        ("f(Tensor x)", "exp(x) * (x + 1)", True),
        ("f(Tensor x)", "x**2", False),  # a slope by size, of what complex numbers have
    ],
)  # fmt: skip
def test_what_has_no_complex_loop_needs_no_dtypes(sig: str, expr: str, fine: bool) -> None:
    slope = "" if fine else "  d: {x: 'where(x < 0, 2 * x, 2 * x)'}\n"
    family = ("unary", "binary", "ternary")[sig.count("Tensor") - 1]
    text = f"- op: f\n  family: {family}\n  sig: '{sig} -> Tensor out'\n  expr: {expr}\n{slope}"
    rest = "  like: {tests: t.py}\n  doc: Twice the clamped value, and others.\n"
    _, diags = entry(text + rest, numeric=True)
    assert [d.code for d in diags.items] == ([] if fine else ["E310"]), diags.render()


def test_the_project_file_is_fine() -> None:
    ops = Path(__file__).parents[2] / "ops.yaml"
    file, diags, _ = pipeline.checked(str(ops))
    assert not diags, diags.render()
    assert len(file.entries) > 100


NAMESAKE = """- op: put
  family: composite
  sig: 'put(Tensor input, float by) -> Tensor out'
  compose: input * by
  like: {tests: tests/mine.py}
  test: {cases: [{input: [2], by: 2.0}]}
  doc: An op named as one of the library is.
- op: mul
  family: binary
  sig: mul(Tensor input, Tensor other) -> Tensor out
  expr: input * other
  like: numpy.multiply
  doc: Product of two tensors, as an example.
"""


def test_an_op_named_as_one_of_ours_is_not_compared_with_it(good: OpFile) -> None:
    file, diags = load_string("schema: 1\nops:\n" + NAMESAKE)
    check.run(file, diags)
    assert "put" in diags.render()
    file, diags = load_string("schema: 1\nops:\n" + NAMESAKE, base=good)
    check.run(file, diags)
    assert not diags, diags.render()
