"""The commands for one op, and files of ops beside the library's: their formulas may call ours."""

from __future__ import annotations

import io
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codegen import pipeline
from codegen.checked import Passed
from codegen.cli import main
from codegen.schema import KEYS

PACK = """schema: 1
ops:
- op: gated
  family: binary
  sig: gated(Tensor x, Tensor y) -> Tensor out
  expr: silu(x) * y
  like: numpy.multiply(x * scipy.special.expit(x), y)
  doc: One operand through the gate of the other.
- op: tanh
  family: unary
  sig: tanh(Tensor input) -> Tensor out
  expr: tanh(2 * input)
  out: true
  like: numpy.tanh(2 * input)
  doc: The hyperbolic tangent of twice the input.
- op: both
  family: composite
  sig: both(Tensor x, Tensor y) -> Tensor out
  compose: tanh(gated(x, y))
  like: numpy.tanh(x * scipy.special.expit(x) * y)
  test: {cases: [{x: [2], y: [2]}]}
  doc: The library's tangent of the gated product.
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    path = tmp_path / "ops.yaml"
    path.write_text(PACK)
    return path


@pytest.fixture(autouse=True)
def _from_the_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def test_formulas_of_a_pack_call_the_librarys_ops(pack: Path) -> None:
    file, diags, _ = pipeline.checked(str(pack))
    assert not diags, diags.render()
    files = pipeline.outputs(file)
    assert "cpp/tests/node_factories.h" not in files and "TP_OP_LIBRARY(_ops)" in files["cpp/bind/library.cpp"]
    # The file's own tanh has another symbol, and the composition calls the library's.
    assert "Storage tanh_own(const Storage& input)" in files["cpp/ops/unary.cpp"]
    assert "tanh_own_out(const TensorRef& input" in files["cpp/ops/unary.cpp"]
    composed = files["cpp/ops/composite.cpp"]
    assert "tanh(gated(x, y))" in composed and "TensorRef tanh(const TensorRef& input);" in composed


def test_a_fault_in_a_pack_names_its_own_lines_alone(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(PACK.replace("silu(x) * y", "silu() * x * y"))
    _, diags, _ = pipeline.checked(str(path), numeric=False)
    assert [d.code for d in diags.sorted()] == ["E203"]
    assert all(line <= PACK.count("\n") for d in diags.items for line in d.lines)


def test_new_takes_the_arguments_of_the_formula(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "kinetic", "--ops", str(pack), "--expr", "0.5 * m * v**2 + relu(m)"]) == 0
    text = capsys.readouterr().out
    assert "family: binary" in text and "sig: kinetic(Tensor m, Tensor v) -> Tensor out" in text
    assert not pipeline.checked(str(pack))[1]


def test_an_entry_is_checked_when_it_or_what_it_calls_changes(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORPLAY_CACHE_DIR", str(pack.parent / "cache"))
    assert not pipeline.checked(str(pack), again=False)[1]
    assert Passed(pipeline.checked(str(pack), numeric=False)[0]).new() == set()
    pack.write_text(PACK.replace("One operand through", "One factor through"))
    assert Passed(pipeline.checked(str(pack), numeric=False)[0]).new() == {"gated", "both"}
    pack.write_text(PACK.replace("like: numpy.tanh(2 * input)", "like: numpy.tanh(3 * input)"))
    for _ in range(2):  # what failed is not remembered
        assert [d.code for d in pipeline.checked(str(pack), again=False)[1].items] == ["E314"]


def test_explain_counts_the_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "silu", "--no-code"]) == 0
    text = capsys.readouterr().out
    # input is read and out written: 8 bytes; sigmoid and a product apart: 8 + 12.
    assert "memory      forward: 8 bytes an element in one loop, 20 in 2 ops one by one" in text


def test_doc_and_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doc", "silu"]) == 0
    assert capsys.readouterr().out.startswith("## silu\n")
    assert main(["doc", "sillu"]) == 1
    assert "did you mean 'silu'?" in capsys.readouterr().err
    assert main(["schema", "--json"]) == 0
    entry = json.loads(capsys.readouterr().out)["properties"]["ops"]["items"]
    assert set(entry["properties"]) == set(KEYS) and "pointwise" in entry["properties"]["family"]["enum"]


@pytest.mark.parametrize(
    ("op", "result"),
    [("argsort", "int64"), ("rand", None), ("sort", "indices is int64"), ("eq", "is bool"), ("tanh", "as common")],
)
def test_a_page_says_of_a_result_what_the_entry_says(
    op: str, result: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doc", op]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("- **result**")]
    assert (result in said[0] and len(said) == 1) if result else not said, said


def test_a_picture_of_an_op(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main(["explain", "silu", "--png", str(tmp_path / "silu.png")]) == 0
    assert (tmp_path / "silu.png").read_bytes().startswith(b"\x89PNG")
    assert main(["explain", "matmul", "--png", str(tmp_path / "x.png")]) == 1
    assert "there is no curve to draw" in capsys.readouterr().err


@pytest.mark.parametrize(("what", "said"), [("test", "silu: every check passed"), ("bench", "one by one")])
def test_one_op_is_checked_and_timed(root: Path, tmp_path: Path, what: str, said: str) -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-m", "tensorplay.testing.one", what, str(root / "ops.yaml"), "silu"],
        cwd=tmp_path, env=env, text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0 and said in done.stdout, done.stdout + done.stderr


OWN = """
schema: 1
ops:
- op: weighed
  family: binary
  sig: weighed(Tensor x, Tensor? w=None, bool twice=True) -> Tensor out
  expr: where(w != None, x * w, x) * (2 if twice else 1)
  like: numpy.multiply(x, 1 if w is None else w) * (2 if twice else 1)
  test: {skip: {third: it is zero}}
  doc: The input, weighed where weights are given, twice or once.
"""


@pytest.mark.timeout(600)
def test_an_op_of_ones_own_is_checked_and_timed_without_pytest(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TENSORPLAY_CACHE_DIR": str(tmp_path / "cache"),
        "TENSORPLAY_CXXFLAGS": "-O0", "TENSORPLAY_PRECOMPILED_HEADERS": "0",
    }  # fmt: skip
    program = "import sys; sys.modules['pytest'] = None\nfrom tensorplay.testing.one import main; sys.exit(main())"
    said = {}
    for what in ("test", "bench"):
        command = [sys.executable, "-c", program, what, "own.yaml", "weighed"]
        done = subprocess.run(command, cwd=tmp_path, env=env, text=True, capture_output=True)
        assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
        said[what] = done.stdout
    assert "skipped: it is zero" in said["test"] and "weighed: every check passed" in said["test"]
    assert "weighed = x * w * 2, " in said["bench"]
    rows = [line.split() for line in said["bench"].splitlines() if line.startswith(("fused", "one by one"))]
    assert [len(r) for r in rows] == [7, 9], said["bench"]
    assert all(float(cell) > 0 for r in rows for cell in r[-6:])


def test_the_model_that_ships_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that its reader refuses would cost every first define_op seconds, silently."""
    from codegen import base, resolve

    base.ship(tmp_path / base.SHIPPED)
    monkeypatch.setattr(base, "__file__", str(tmp_path / "base.py"))  # where the shipped one is looked for
    data = lzma.decompress((tmp_path / base.SHIPPED).read_bytes())
    key = base._Unpickler(io.BytesIO(data), Path("ops.yaml").read_text()).load()[0]
    monkeypatch.setattr(base, "_key", lambda _: key)
    monkeypatch.setattr(base, "library_path", lambda: Path("ops.yaml"))
    monkeypatch.setattr(resolve, "load", lambda *_: pytest.fail("the entries were read"))
    base.library.cache_clear()
    try:
        found = base.library()
    finally:
        base.library.cache_clear()
    assert found is not None and len(found.entries) > 500


def test_a_model_with_anything_else_in_it_is_not_loaded(tmp_path: Path) -> None:
    from codegen import base

    class Evil:
        def __reduce__(self) -> object:
            return (open, (str(tmp_path / "made"), "w"))

    path = tmp_path / base.SHIPPED
    path.write_bytes(lzma.compress(base.pickle.dumps(("key", Evil()))))
    assert base._read(path, "key", "") is None
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("formula", "want"),
    [
        ("input / (1 + exp(-beta * input))", r"\frac{\mathrm{input}}{1 + \exp\left(-\beta \, \mathrm{input}\right)}"),
        ("-(x - y)**2", r"-{\left(x - y\right)}^{2}"),
        ("x - (y - z)", r"x - \left(y - z\right)"),
        ("(x + y) * z", r"\left(x + y\right) \, z"),
        ("a if x > 0 else b if x == 0 else -inf", r"\begin{cases}a & x > 0 \\ b & x = 0 \\ -\infty & \text{otherwise}"),
        ("sqrt(abs(x_1)) * 2", r"\sqrt{\left|x_{1}\right|} \cdot 2"),
        ("floor(x) // 3", r"\left\lfloor \frac{\left\lfloor x \right\rfloor}{3} \right\rfloor"),
    ],
)
def test_a_formula_typeset(formula: str, want: str) -> None:
    from codegen.formula import parse
    from codegen.tex import tex

    assert tex(parse(formula)).startswith(want), tex(parse(formula))


def test_every_formula_of_the_library_can_be_typeset(root: Path) -> None:
    from codegen import resolve
    from codegen.tex import tex

    file, _ = resolve.load(str(root / "ops.yaml"))
    formulas = [o.expr.node for e in file.entries for o in e.overloads if o.expr is not None]
    assert len(formulas) > 150
    for f in formulas:
        text = tex(f)
        assert text.count("{") == text.count("}") and text.count(r"\left") == text.count(r"\right"), text


def test_unusable_places_are_messages(pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ops = ["--ops", str(pack)]
    (tmp_path / "noise.yaml").write_bytes(b"\xff\xfe\x00" * 1000)
    (tmp_path / "file").touch()
    for command, why in (
        (["write", *ops, "--out", str(tmp_path / "file")], "Not a directory"),
        (["pack", "init", "mine", "--where", str(tmp_path / "file")], "Not a directory"),
        (["new", "f", "--ops", str(tmp_path / "noise.yaml"), "--expr", "x"], "is not text in UTF-8"),
    ):
        assert main(command) == 1, command
        assert why in capsys.readouterr().err, command
    pytest.importorskip("matplotlib")
    assert main(["explain", "tanh", *ops, "--png", str(tmp_path / "x.nothing")]) == 1
    assert "a picture ends in" in capsys.readouterr().err
    assert main(["explain", "tanh", *ops, "--png", str(tmp_path / "no" / "x.png")]) == 1
    assert "No such file or directory" in capsys.readouterr().err


ONLY = """
import re, sys, tomllib
from pathlib import Path
names = {"scikit-build-core": "scikit_build_core", "pyyaml": "yaml", "scipy-openblas32": "scipy_openblas32"}
requires = tomllib.loads(Path("pyproject.toml").read_text())["build-system"]["requires"]
found = [re.match(r"[\\w-]+", r)[0] for r in requires]
allowed = {names.get(n, n) for n in found} | {"codegen", "markupsafe"} | sys.stdlib_module_names
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].lstrip("_") not in allowed and name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"{name} is no requirement of the build", name=name)
sys.meta_path.insert(0, Refuse())
from codegen.base import ship
ship(Path(sys.argv[1]))
"""


def test_the_model_is_made_with_what_the_build_requires(root: Path, tmp_path: Path) -> None:
    """A build in isolation has these packages and no others."""
    made = tmp_path / "model.pickle.xz"
    done = subprocess.run(
        [sys.executable, "-c", ONLY, str(made)], cwd=root, text=True, capture_output=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert made.stat().st_size > 30_000


def test_a_message_names_the_program_as_it_is_run(root: Path, pack: Path, tmp_path: Path) -> None:
    """`python -m codegen` is there in the source tree alone."""
    package = tmp_path / "site" / "tensorplay"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "codegen").symlink_to(root / "codegen")
    for program, folder, name, op in (
        ("codegen", root, "python -m codegen", "area"),
        ("tensorplay.codegen", package.parent, "tensorplay-codegen", "third"),
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-B", "-m", program, "new", op, "--ops", str(pack), "--expr", f"x * y / {len(op)}"],
            cwd=folder, text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert f"next: {name} explain {op} --ops {pack}, {name} test {op}" in done.stderr, done.stderr


def test_schema_lists_what_formulas_may_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    words = capsys.readouterr().out.split()
    assert {"log1p", "reduced_count", "matmul", "within", "append_dim"} <= {*words}


def test_without_its_package_a_reference_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from codegen import reference
    from codegen.define import define
    from codegen.given import Given

    space = {k: v for k, v in reference._namespace().items() if k != "scipy"}
    monkeypatch.setattr(reference, "_namespace", lambda: space)
    keys = {"sig": "halved(Tensor x) -> Tensor out", "expr": "x / 2", "like": "x / scipy.special.gamma(3)"}
    made = define([Given(keys, {})], "train.py")
    left_out = "not compared with its reference: scipy is not installed; install it, or leave `like` out"
    assert made.unchecked == (f"halved: {left_out}",)
    keys = {
        "sig": "halves(Tensor x, int n=2) -> Tensor out", "compose": "sum(x, (0,)) / n",
        "like": "[scipy.special.gamma(2) * x.sum(0) / n for _ in range(1)][0]",
        "test": {"cases": [{"x": [2, 3]}]},
    }  # fmt: skip
    made = define([Given(keys, {})], "train.py")
    assert made.unchecked == (f"halves: {left_out}",)


def test_a_slope_at_a_single_point_is_looked_at_without_a_reference_too() -> None:
    from codegen.define import Refused, define
    from codegen.given import Given

    sig = "bose(Tensor x) -> Tensor out"
    with pytest.raises(Refused) as e:
        define([Given({"sig": sig, "expr": "where(x == 0, 1, x / expm1(x))"}, {})], "train.py")
    assert e.value.codes == ("E317",) and "the derivative by 'x' is 0 at x=0 and -0.5 beside it" in str(e.value)
    series = "where(abs(x) < 0.02, 1 - x / 2 + x**2 / 12 - x**4 / 720, x / expm1(x))"
    assert define([Given({"sig": sig, "expr": series}, {})], "train.py").ops == ("bose",)
    with pytest.raises(Refused, match=r"special: out is nan at x=0, not 1") as e:
        define([Given({"sig": sig, "expr": "x / expm1(x)", "special": [{"x": 0, "out": 1}]}, {})], "train.py")
    assert "a row says what the formula gives, it does not replace it" in str(e.value)
