"""Every error code: a wrong file under cases/, whose first line says what is expected and where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codegen import pipeline
from codegen.cli import main
from codegen.errors import CODES, Diagnostics
from codegen.resolve import load

CASES = Path(__file__).parent / "cases"
FILES = sorted(p for p in [*CASES.glob("e*.yaml"), *CASES.glob("e*/ops.yaml")])


def expected(path: Path) -> list[tuple[str, int, int]]:
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    found = []
    for item in first.removeprefix("# expect: ").split(", "):
        code, place = item.split()
        line, col = place.split(":")
        found.append((code, int(line), int(col)))
    return found


def diagnose(path: Path) -> Diagnostics:
    return pipeline.checked(str(path), unreached=True, draft=not (path.parent / "csrc").is_dir())[1]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem if p.stem != "ops" else p.parent.name)
def test_case(path: Path) -> None:
    diags = diagnose(path)
    assert sorted((d.code, d.loc.line, d.loc.col) for d in diags.items) == sorted(expected(path)), diags.render()
    assert ":0:0:" not in diags.render()


def test_every_code_has_a_case() -> None:
    covered = {code for p in FILES for code, _, _ in expected(p)} | {"E100", "E409"}  # no file; the planner's
    assert covered == set(CODES)


def test_rendering_shows_line_caret_and_hint() -> None:
    text = diagnose(CASES / "e201_vjp.yaml").render()
    lines = text.split("\n")
    assert (
        "e201_vjp.yaml:8:18: error[E201]: op 'tanh', d of 'input': 'output' is not an argument or a result" in lines[0]
    )
    assert lines[1].index("output") == lines[2].index("^")
    assert lines[2].count("^") == len("output")
    assert "did you mean 'out'?" in text
    assert "in scope: input, out" in text
    assert text.endswith("1 error, nothing written")


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("e101_tab", "YAML takes no tab there; indent with spaces"), ("e101_scanner", "quote values that hold"),
        ("e101_control", "character '\\x00' is not text"),
    ],
)  # fmt: skip
def test_what_is_not_yaml_is_told_apart(case: str, says: str) -> None:
    assert says in diagnose(CASES / f"{case}.yaml").render()


VJP = """schema: 1
ops:
- op: a
  family: unary
  sig: a(Tensor x) -> Tensor out
  expr: x**2
  vjp: {x: 3 * g * x}
  like: LIKE
  doc: Two times the input and more.
"""


@pytest.mark.parametrize(
    ("like", "says", "note"),
    [("{tests: t.py}", "expr", "6:9: expr"), ("numpy.power(x, 2)", "the reference", "8:9: the reference")],
)
def test_a_derivative_is_told_what_it_was_compared_with(tmp_path: Path, like: str, says: str, note: str) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(VJP.replace("LIKE", like))
    lines = diagnose(path).render().split("\n")
    assert lines[0].startswith(f"{path}:7:12: error[E311]: op 'a': vjp of 'x' gives ")
    assert f"differences of {says} " in lines[0] and "test case" not in lines[0]
    notes = [line for line in lines if line.startswith("  note: ")]
    assert notes == [f"  note: {path}:5:8: the signature gives the order of arguments", f"  note: {path}:{note}"]


def test_all_faults_of_a_file_in_one_run(tmp_path: Path) -> None:
    good = (CASES / "good.yaml").read_text()
    bad = good.replace("expr: exp(input)", "expr: exq(input)").replace("like: numpy.tanh", "lik: numpy.tanh")
    path = tmp_path / "ops.yaml"
    path.write_text(bad)
    assert {d.code for d in diagnose(path).items} == {"E202", "E104", "E105"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "E101"),
        (b"   \n\n", "E101"),
        (b"# only a comment\n", "E101"),
        (b"\xff\xfe\x00\x01", "E100"),
        (b"schema: 1\nops: [\n", "E101"),
        (b"\x00\x01\x02", "E101"),
        (b"[" * 100000, "E101"),
        (b"- " * 5000 + b"a", "E107"),
        (b"a: " * 2000, "E101"),
        (b"just words", "E102"),
        (b"%YAML 9.9\n---\na: b\n", None),
        (b"a: *b\n", "E107"),
        (b"a: b\n---\nc: d\n", "E107"),
        (b"{[a]: b}", "E107"),
        (b"!!python/object:os.system x", "E107"),
    ],
)
def test_not_an_ops_file(tmp_path: Path, content: bytes, code: str | None) -> None:
    path = tmp_path / "ops.yaml"
    path.write_bytes(content)
    _, diags = load(str(path))
    assert diags
    if code:
        assert [d.code for d in diags.items] == [code]
    assert diags.render()


def test_noise_of_five_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "noise.yaml"
    path.write_bytes(os.urandom(5 << 20))
    _, diags = load(str(path))
    assert [d.code for d in diags.items] == ["E100"]


def test_noise_of_half_a_megabyte_as_text(tmp_path: Path) -> None:
    path = tmp_path / "noise.yaml"
    path.write_text(os.urandom(250_000).hex() + ": [")
    _, diags = load(str(path))
    assert len(diags) == 1
    assert len(diags.render()) < 2000


@pytest.mark.parametrize("command", ["write", "check", "list", "mutate", "fuzz"])
def test_commands_refuse_what_is_no_file(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path, tmp_path / "missing.yaml"):
        assert main([command, "--ops", str(path), "--out", str(tmp_path / "out")]) == 1
        shown = capsys.readouterr().err
        assert "error[E100]" in shown
        assert "Traceback" not in shown
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text("schema: 1\nops: []\n")
    path.chmod(0)
    _, diags = load(str(path))
    assert [d.code for d in diags.items] == ["E100"]


@pytest.mark.parametrize(
    ("key", "formula", "hint"),
    [
        ("expr", "mean(input)", "'mean' sees whole tensors, expr one element: say compose in place of expr"),
        ("expr", "matmul(input, input)", "'matmul' sees whole tensors"),
        ("expr", "expp(input)", "did you mean 'exp'?"),
        ("expr", "zzzzzz(input)", "python -m codegen schema lists the functions"),
        ("expr", "conj(input) * input", "or compose in place of expr"),
    ],
)
def test_the_hint_is_a_way_out(tmp_path: Path, key: str, formula: str, hint: str) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(
        "schema: 1\nops:\n- op: f\n  family: unary\n  sig: f(Tensor input) -> Tensor out\n"
        f"  {key}: {formula}\n  dtypes: [complex]\n  like: numpy.abs\n  doc: Some function of each element.\n"
        "- op: mean\n  family: composite\n  sig: mean(Tensor input) -> Tensor out\n"
        "  compose: sum(input) / numel(input)\n  like: numpy.mean\n  test: {cases: [{input: [3]}]}\n"
        "  doc: The mean of all elements.\n"
    )
    diags = pipeline.checked(str(path), numeric=False)[1]
    assert hint in diags.render()
