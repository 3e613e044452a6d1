"""The commands: explain, new, list, mutate, fuzz, schema."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from codegen.check import run
from codegen.cli import main
from codegen.fuzz import Fuzzer
from codegen.model import OpFile
from codegen.mutate import mutate_file
from codegen.pipeline import checked, renders
from codegen.resolve import load_string

GOOD = Path(__file__).parent / "cases" / "good.yaml"


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    return Path(shutil.copy(GOOD, tmp_path / "ops.yaml"))


def model(path: Path) -> OpFile:
    file, diags, _ = checked(str(path), draft=True)
    assert not diags, diags.render()
    return file


def test_explain(ops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "tanh", "--no-code", "--ops", str(ops)]) == 0
    text = capsys.readouterr().out
    assert "dout/dinput = 1 - out**2   (given)" in text
    assert "saved       out: read by the derivative of input" in text
    assert "tanh_: no derivative reads the overwritten input" in text
    assert main(["explain", "sum", "--no-code", "--ops", str(ops)]) == 0
    assert "saved       shape of input only" in capsys.readouterr().out
    assert main(["explain", "tahn", "--ops", str(ops)]) == 1
    assert "did you mean 'tanh'?" in capsys.readouterr().err


def test_new_goes_to_its_alphabetical_place(ops: Path) -> None:
    assert (
        main(["new", "mish", "--family", "unary", "--expr", "input * tanh(log1p(exp(input)))", "--ops", str(ops)]) == 0
    )
    assert main(["new", "zz", "--expr", "input * other", "--doc", "Product: of two.", "--ops", str(ops)]) == 0
    assert main(["new", "aa", "--family", "reduction", "--ops", str(ops)]) == 0
    file = model(ops)
    names = [e.op for e in file.entries]
    assert names[names.index("exp") + 1] == "mish" and names[names.index("mish") + 1] == "silu"
    assert names[names.index("swish") + 1] == "zz" and names[names.index("max") - 1] == "aa"
    assert file.by_name["zz"].doc == "Product: of two."


def test_new_writes_down_what_the_formula_decides(ops: Path) -> None:
    assert main(["new", "leaky", "--expr", "where(x > 0, x, 0.1 * x)", "--ops", str(ops)]) == 0
    rows = model(ops).by_name["leaky"].special
    assert [dict(r.values) for r in rows] == [{"x": 0, "d_x": 0.1}]


def test_new_refuses(ops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = ops.read_text()
    assert main(["new", "exp", "--ops", str(ops)]) == 1
    assert "already" in capsys.readouterr().err
    assert main(["new", "bad", "--expr", "inputt **", "--ops", str(ops)]) == 1
    assert "error[E110]" in capsys.readouterr().err
    assert main(["new", "wrong", "--expr", "input * input", "--like", "numpy.sqrt", "--ops", str(ops)]) == 1
    assert "error[E314]" in capsys.readouterr().err
    assert ops.read_text() == before


LISTS = [[], ["--names"], ["--missing", "batch"], ["--missing", "doc"], ["--todo"], ["--python"], ["--handwritten"]]


@pytest.mark.parametrize("flags", LISTS)
def test_list(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", *flags, "--ops", str(GOOD)]) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("flags", "last"),
    [
        (["--missing", "tangent"], "0 of "), (["--missing", "doc"], "0 of "), (["--todo"], "0 derivatives are missing"),
        (["--python"], "public ops are written in Python"), (["--handwritten"], "entries have no line of their own"),
    ],
)  # fmt: skip
def test_list_of_the_library(
    flags: list[str], last: str, capsys: pytest.CaptureFixture[str], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lists read the sources beside the entries too."""
    monkeypatch.chdir(root)
    assert main(["list", *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert last in lines[-1] and not (last[0] == "0" and lines[1:]), lines


def test_schema_prints_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    from codegen.schema import KEYS

    assert main(["schema"]) == 0
    text = capsys.readouterr().out
    assert all(k in text for k in KEYS)
    page = (Path(__file__).parents[2] / "docs" / "ops_yaml.md").read_text()
    assert all(f"`{k}`" in page for k in KEYS)


def test_mutate_is_deterministic_and_visible(capsys: pytest.CaptureFixture[str]) -> None:
    file = model(GOOD)
    (a, said), (b, again), (_, other) = mutate_file(file, 1), mutate_file(file, 1), mutate_file(file, 2)
    assert a == b and said == again and said != other
    for e in a.entries:
        assert (e != file.by_name[e.op]) == (e.op in said)
    assert set(said) == {e.op for e in file.entries} - {"zeros"}
    assert main(["mutate", "--dry", "--json", "--seed", "1", "--ops", str(GOOD)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == mutate_file(file, 1, renders(file))[1]
    assert printed and set(printed) <= set(said)


@pytest.mark.parametrize("seed", [0, 1])
def test_fuzz_smoke(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert Fuzzer(model(GOOD), seed).run(150) == 0, capsys.readouterr().out


def test_fuzz_sees_a_blind_checker(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file = model(GOOD)
    monkeypatch.setattr("codegen.check.run", lambda *_, **__: [])
    assert Fuzzer(file, 0).run(150) == 1
    assert "silent" in capsys.readouterr().out


def test_fuzz_knows_which_kernels_there_are() -> None:
    fuzzer = Fuzzer(model(GOOD), 0)
    text = GOOD.read_text()
    assert not load_string(text, declared=fuzzer.declared)[1]
    line = text[: text.index("kernel: matmul")].count("\n") + 1
    _, diags = load_string(text.replace("kernel: matmul", "kernel: matmlu"), declared=fuzzer.declared)
    assert [(d.code, d.loc.line) for d in diags.items] == [("E404", line)], diags.render()


def test_the_catalogue_tells_entries_from_names_written_by_hand(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (
        "name\tdtypes\tmethod\tinplace\tgrad\tgradgrad\tforward\taliases",
        "half\tfloat\ty\t-\ty\ty\ty\t-",  # a method, no entry
        "igamma\tfloat\ty\ty\ty\ty\ty\tpackage.special.gammainc",
        "polygamma\tfloat\ty\ty\ty\ty\ty\t-",  # its method is an entry of its own
        "bitwise_and\tfloat\ty\ty\t-\t-\t-\t-",
        "no_such_name\tfloat\t-\t-\t-\t-\t-\t-",
    )
    table = tmp_path / "table.tsv"
    table.write_text("\n".join(rows))
    assert main(["list", "--catalogue", str(table), "--ops", str(root / "ops.yaml")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[:2]] == ["bitwise_and", "no_such_name"]
    assert said[2].startswith("1 names are no entries") and said[2].endswith(": half")
    assert said[3].startswith("2 of 5 names are short of something")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("os", "is a module of Python"), ("test", "is a module of Python"), ("_io", "cannot name a package"),
        ("numpy", "is a module that a pack, its build or its tests import"), ("scikit-build-core", "is a module that"),
        ("tensorplay", "is a module of the library"), ("class", "cannot name a package"),
    ],
)  # fmt: skip
def test_a_pack_stands_in_front_of_no_module(
    name: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pack", "init", name, "--where", str(tmp_path)]) == 1
    assert why in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_pack_shadows_nothing_that_its_files_import(root: Path) -> None:
    from codegen.pack import NEEDED

    project = (root / "codegen" / "templates" / "pack" / "pyproject.toml.j2").read_text()
    requires = re.findall(r'"([a-z0-9-]+)>=', project)
    assert {{"pyyaml": "yaml"}.get(r, r.replace("-", "_")) for r in requires} <= NEEDED


def test_a_derivative_in_halves_is_compared(root: Path) -> None:
    """Halves are too coarse for differences; their formulas are compared in double."""
    text = (root / "ops.yaml").read_text()
    right = "vjp: {input: 'sum_to(where(input == other, zeros_like(g), g), shape(input))'}"
    for formula, codes in ((right, []), (right.replace("zeros_like(g), g", "g, zeros_like(g)"), ["E311"])):
        assert right in text
        file, diags = load_string(text.replace(right, formula))
        run(file, diags, only="nextafter_half")
        assert [d.code for d in diags.items] == codes, diags.render()
