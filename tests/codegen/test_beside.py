"""A file beside the library's: a wrong formula is refused whatever ops it calls, what could not be compared is said.

And the commands work where the library is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codegen import pipeline
from codegen.cli import main
from codegen.define import Refused, define
from codegen.given import Given

VJP = """schema: 1
ops:
- op: same
  family: nn
  sig: same(Tensor input) -> Tensor out
  kernel: my_loop
  vjp: {input: "FORMULA"}
  like: 'input * 1'
  test: {cases: [{input: [3, 4]}]}
  doc: The input, by a loop of its own.
"""

# Each is the identity, by way of an op whose numeric form is that of the library's entry.
IDENTITIES = [
    "expand(g, shape(input))", "movedim(movedim(g, 0, 1), 0, 1)", "repeat(g, (1, 1))", "roll(g, 0)", "g + mean(g) * 0",
    "g + sum(g) * 0", "index_select(g, 0, arange(3))", "matmul(g, eye(4))", "cat([g], 0)", "narrow(g, 0, 0, 3)",
    "g + amax(g, (0,), True) * 0", "g + softmax(g, 1) * 0", "squeeze(unsqueeze(g, 0), 0)", "view(g, (3, 4))",
    "reshape(flatten(g, 0, 1), (3, 4))", "g + sum(diagonal(g)) * 0", "clone(g)", "masked_fill(g, input > 100, 0)",
    "mul(g, 1)", "pad(g, (0, 0))", "g + select(g, 0, 1) * 0", "expand_to(g, shape(input))",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _from_the_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


@pytest.mark.parametrize("formula", IDENTITIES)
def test_a_vjp_is_compared_whatever_it_calls(formula: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    codes = []
    for text in (formula, f"({formula}) * 2"):
        path.write_text(VJP.replace("FORMULA", text))
        _, diags, skipped = pipeline.checked(str(path), draft=True)
        assert not skipped
        codes.append([d.code for d in diags.items])
    assert codes == [[], ["E311"]]


@pytest.mark.parametrize(
    ("compose", "like"),
    [
        ("sum(x)", "numpy.sum(x)"), ("softmax(x, -1)", "scipy.special.softmax(x, -1)"),
        ("silu(x)", "x / (1 + numpy.exp(-x))"),
    ],
)  # fmt: skip
def test_a_composition_is_compared_whatever_it_calls(compose: str, like: str) -> None:
    keys: dict[str, Any] = {"sig": "tot(Tensor x) -> Tensor out", "like": like, "test": {"cases": [{"x": [2, 3]}]}}
    assert define([Given(keys | {"compose": compose}, {})], "train.py").unchecked == ()
    with pytest.raises(Refused) as e:
        define([Given(keys | {"compose": f"{compose} * 2"}, {})], "train.py")
    assert e.value.codes == ("E314",)


DRAWN = """schema: 1
ops:
- op: drawn
  family: composite
  sig: drawn(Tensor p) -> Tensor out
  compose: gather(p, -1, multinomial(p, 2))
  like: numpy.sort(p)[..., :2]
  test: {cases: [{p: {shape: [4, 3], range: [0.1, 1]}}]}
  doc: Two elements of each row, drawn by their size.
"""


def test_what_could_not_be_compared_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(DRAWN)
    for _ in range(2):  # what was left out is not remembered as checked
        assert main(["check", "--entries", "--ops", str(path)]) == 0
        said = capsys.readouterr().out
        assert "not compared: drawn (no numeric form of 'multinomial')" in said and "no fault" in said
    from codegen.define import define_file

    (line,) = define_file(str(path)).unchecked
    assert line.startswith("drawn: not compared with its reference: no numeric form of 'multinomial'; ")


@pytest.mark.parametrize(
    ("kernel", "hint"), [("my_loop", "define_op(..., sources=, header=)"), ("sum", "compose: sum(")]
)  # fmt: skip
def test_a_kernel_that_no_header_declares_is_refused(
    kernel: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the compiler says it, in its own words."""
    from codegen.define import define_file

    path = tmp_path / "mine.yaml"
    path.write_text(VJP.replace("FORMULA", "g").replace("my_loop", kernel))
    keys = {"sig": "same(Tensor input) -> Tensor out", "kernel": kernel, "vjp": {"input": "g"}}
    assert main(["check", "--entries", "--ops", str(path)]) == 1
    said = [capsys.readouterr().err]
    for define_it in (lambda: define_file(str(path)), lambda: define([Given(keys, {})], "train.py")):
        with pytest.raises(Refused) as e:
            define_it()
        said.append(str(e.value))
    for text in said:
        assert f"error[E404]: op 'same': no header declares kernel '{kernel}'" in text and hint in text


def test_a_header_declares_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(VJP.replace("FORMULA", "g"))
    header = tmp_path / "csrc" / "loop.h"
    header.parent.mkdir()
    header.write_text("// kernel: my_loop\nStorage my_loop(const OpSchema& op, const Storage& input);\n")
    _, diags, _ = pipeline.checked(str(path))
    assert not diags, diags.render()


def test_new_begins_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    for before in (None, "schema: 1\nops: []\n", "schema: 1\nops:\n"):
        if before is not None:
            path.write_text(before)
        assert main(["new", "doubled", "--expr", "input * 2", "--ops", str(path)]) == 0
        assert main(["check", "--ops", str(path)]) == 0  # nothing was generated beside it: the entries alone
        assert "1 entries, no fault" in capsys.readouterr().out
    assert main(["new", "x", "--ops", str(tmp_path / "nowhere" / "mine.yaml")]) == 1
    assert "no folder" in capsys.readouterr().err


def test_a_fault_of_a_new_entry_is_not_placed_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("schema: 1\nops:\n")
    for args, said in (
        (["Bad-Name"], "the new entry 'Bad-Name':1:7: error[E205]"),
        (["halved", "--expr", "sinn(input)"], "the new entry 'halved':4:9: error[E202]"),
    ):
        assert main(["new", *args, "--ops", str(path)]) == 1
        err = capsys.readouterr().err
        assert said in err and "mine.yaml" not in err, err
    assert path.read_text() == "schema: 1\nops:\n"


def test_the_commands_work_where_the_library_is_installed(root: Path, tmp_path: Path) -> None:
    package = tmp_path / "site" / "tensorplay"
    shutil.copytree(root / "codegen", package / "codegen", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    shutil.copy(root / "ops.yaml", package / "codegen")
    empty = tmp_path / "empty"
    empty.mkdir()

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", "-m", "tensorplay.codegen", *args]
        env = os.environ | {"PYTHONPATH": str(package.parent)}
        return subprocess.run(command, cwd=empty, env=env, text=True, capture_output=True, check=False)

    done = run("list", "--missing", "batch")
    assert done.returncode == 0 and "lack batch" in done.stdout, done.stderr
    done = run("check")
    assert done.returncode == 0 and "entries, no fault" in done.stdout, done.stderr
    for args in (["write"], ["fuzz"], ["mutate"], ["new", "f"], ["list", "--python"]):
        done = run(*args)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
        assert "needs tensorplay's source tree" in done.stderr


@pytest.mark.parametrize(
    ("expr", "at"),
    [
        ("maximum(input - 0.3, 0)", [0.3]), ("abs(input - 0.3)", [0.3]), ("abs(1 - 4 * input) + input**2", [0.25]),
        ("minimum(2 * input, input + 0.7)", [0.7]), ("clamp(input, -0.3, 0.7)", [-0.3, 0.7]),
        ("where(input < 0.3, 0, input - 0.3)", [0.3]), ("maximum(input - 0.3, 0)**2", []), ("exp(input - 0.3)", []),
    ],
)  # fmt: skip
def test_kinks_are_found_where_lines_cross(expr: str, at: list[float], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = "schema: 1\nops:\n- op: bent\n  family: unary\n  sig: bent(Tensor input) -> Tensor out\n"
    path.write_text(text + f"  expr: {expr}\n  like: {{tests: here}}\n  doc: A bent line.\n")
    _, diags, _ = pipeline.checked(str(path))
    found = [float(d.message.partition("input=")[2].partition(",")[0]) for d in diags.items if d.code == "E316"]
    assert sorted(found) == at and len(found) == len(diags)


def test_single_edits_of_such_a_file_are_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "schema: 1\nops:\n- op: shares\n  family: composite\n  sig: shares(Tensor x) -> Tensor out\n"
        "  compose: softmax(x, -1) * mean(x)\n  like: scipy.special.softmax(x, -1) * numpy.mean(x)\n"
        "  test: {cases: [{x: [2, 3]}]}\n  doc: Shares of each row times the mean.\n"
    )
    assert main(["fuzz", "--seed", "3", "--count", "40", "--ops", str(path)]) == 0, capsys.readouterr().out
