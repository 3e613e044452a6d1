"""The signature grammar."""

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path

import pytest

from codegen.model import REQUIRED, Loc
from codegen.plan_bind import kind
from codegen.signature import SignatureError, parse


def sig(text: str):  # type: ignore[no-untyped-def]
    return parse(text, Loc(1, 1))


def test_every_kind_of_argument() -> None:
    s = sig(
        "f(Tensor input, Tensor? weight=None, Tensor[] tensors, Scalar alpha=1, Scalar? lo=None, int n=3, int? "
        "dim=None, "
        "int[] dims=[], int[2] pads=1, int[]? axes=None, float eps=1e-5, float[] scales=[1, 2], bool keep=False, "
        "str mode='mean', *, dtype? dtype=None, device? device=None, generator? generator=None, Tensor|Scalar value=0, "
        "Tensor?[] indices) -> (Tensor values, Tensor<i64> indices_out)"
        .replace("Tensor[] tensors, ", "").replace("Tensor?[] indices) ", "Tensor?[] indices) ")
    )  # fmt: skip
    got = {a.name: (str(a.type), a.default, a.kwonly) for a in s.args}
    assert got["input"] == ("Tensor", REQUIRED, False)
    assert got["weight"] == ("Tensor?", None, False)
    assert got["dims"] == ("int[]", (), False)
    assert got["pads"] == ("int[2]", (1, 1), False)
    assert got["axes"] == ("int[]?", None, False)
    assert got["eps"] == ("float", 1e-5, False)
    assert got["scales"] == ("float[]", (1.0, 2.0), False)
    assert got["mode"] == ("str", "mean", False)
    assert got["dtype"] == ("dtype?", None, True)
    assert got["value"] == ("Tensor|Scalar", 0, True)
    assert got["indices"] == ("Tensor?[]", REQUIRED, True)
    assert [(r.name, str(r.type)) for r in s.results] == [("values", "Tensor"), ("indices_out", "Tensor<i64>")]


def test_defaults_are_typed() -> None:
    assert isinstance(sig("f(Tensor x, float a=1) -> Tensor out").args[1].default, float)
    assert sig("f(Tensor x, Scalar a=inf) -> Tensor out").args[1].default == math.inf
    assert sig("f(Tensor x, float a=-inf) -> Tensor out").args[1].default == -math.inf
    assert sig("f() -> Tensor[] outs").results[0].type.is_list


@pytest.mark.parametrize(
    ("text", "marked", "word"),
    [
        ("f(Tensro x) -> Tensor out", "Tensro", "did you mean 'Tensor'"),
        ("f(Tensor x, Tensor x) -> Tensor out", "x", "already an argument"),
        ("f(Tensor x) -> Tensor x", "x", "already an argument"),
        ("f(Tensor x, int n=1.5) -> Tensor out", "1.5", "not an int"),
        ("f(Tensor x, int n=None) -> Tensor out", "None", "not an int"),
        ("f(Tensor x, bool b=true) -> Tensor out", "true", "write True"),
        ("f(Tensor x, int a=1, int b) -> Tensor out", "b", "follows 'a'"),
        ("f(Tensor x, *, *) -> Tensor out", "*", "twice"),
        ("f(Tensor x, *) -> Tensor out", ")", "nothing follows"),
        ("f(Tensor x) -> Tensor", None, "expected a name"),
        ("f(Tensor x) Tensor out", "Tensor", "expected '->'"),
        ("f(Tensor x", None, "expected"),
        ("f(str[] x) -> Tensor out", "str", "no list of str"),
        ("f(int<i64> x) -> Tensor out", "i64", "only Tensor"),
        ("f(Tensor<i65> x) -> Tensor out", "i65", "unknown dtype"),
        ("f(Tensor self) -> Tensor out", "self", "cannot name"),
        ("f(int[2] p=[1]) -> Tensor out", "[1]", "not an int[2]"),
        ("f(Tensor x) -> Tensor? out", "Tensor?", "cannot be a result"),
        ("f(Tensor x) -> Tensor out extra", "extra", "unexpected"),
        ("f(Tensor x) -> Tensor out; g", ";", "unexpected character"),
        ("class(Tensor x) -> Tensor out", "class", "keyword"),
        ("f(dtype d='f23') -> Tensor out", "'f23'", "not a dtype"),
        ("", None, "expected"),
    ],
)
def test_errors_are_located(text: str, marked: str | None, word: str) -> None:
    with pytest.raises(SignatureError) as e:
        sig(text)
    assert word in f"{e.value.message} {e.value.hint}"
    if marked:
        assert text[e.value.start : e.value.end] == marked


def test_tensors_one_by_one_and_sizes_of_ones_own() -> None:
    s = sig("f(Tensor *tensors, int?[2] size) -> Tensor[] out")
    assert [(str(a.type), a.starred) for a in s.args] == [("Tensor[]", True), ("int?[2]", False)]
    with pytest.raises(SignatureError, match="only 'Tensor \\*name'"):
        sig("f(int *sizes) -> Tensor out")


def test_every_type_is_one_that_the_bindings_parse(root: Path) -> None:
    """A type that the grammar takes and the parser of arguments does not know would be the compiler's to refuse."""
    known = re.search(r"enum class Kind.*?\{(.*?)\}", (root / "csrc/python/args.h").read_text(), re.DOTALL)
    assert known is not None
    kinds = set(re.findall(r"^  (\w+)", known[1], re.MULTILINE))
    taken = 0
    bases = ("Tensor", "Scalar", "int", "float", "bool", "str", "dtype", "device", "generator")
    for base, item, items, whole in product(bases, ("", "?"), ("", "[]", "[2]"), ("", "?")):
        if whole and not items:
            continue
        try:
            args = sig(f"f({base}{item}{items}{whole} x) -> Tensor out").args
        except SignatureError:
            continue
        assert kind(args[0]) in kinds, str(args[0].type)
        taken += 1
    assert taken >= 25
