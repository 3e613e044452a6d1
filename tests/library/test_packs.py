"""A pack made by `pack init`, installed by pip into its own environment; the ABI number; names that packs claim."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import tensorplay as tp
from tensorplay.library import NameTaken, _compile, _names, _store

ENTRY = """
- op: row_product
  family: reduction
  sig: row_product(Tensor input) -> Tensor out
  kernel: row_product
  vjp: {input: 'unsqueeze(g * out, -1) / input'}
  dtypes: [float]
  like: numpy.prod(input, axis=-1)
  test: {input: [0.5, 2], cases: [{input: [2, 3]}, {input: [4, 1]}]}
  doc: The product of each row.
"""
USE = """
import pickle, sys
import physics, tensorplay as tp
assert "yaml" not in sys.modules and "jinja2" not in sys.modules
x = tp.tensor([[0.5, 2.0], [3.0, 1.0]], dtype=tp.float64, requires_grad=True)
assert physics.row_product(x).tolist() == [1.0, 3.0]
assert tp.autograd.gradcheck(physics.row_product, (x,)) and tp.autograd.gradgradcheck(physics.softclip, (x,))
assert pickle.loads(pickle.dumps(physics.softclip)) is physics.softclip
assert physics.softclip.__module__ == "physics" and "physics" in physics.__file__
print("used")
"""
OLD = """
#include "core/abi.h"
#undef TP_ABI
#define TP_ABI 999
#include "python/op_library.h"
namespace tp::python { void register_all(Registry&) {} }
TP_OP_LIBRARY(_ops)
"""


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    env = {**os.environ, **more}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=env, text=True, capture_output=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_pack_installs_and_tests_itself(tmp_path: Path) -> None:
    if importlib.util.find_spec("scikit_build_core") is None:
        pytest.skip("needs scikit-build-core, as every build does")
    from .test_define import KERNEL_CPP, KERNEL_H

    here = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run(sys.executable, "-m", "tensorplay.codegen", "pack", "init", "physics", cwd=tmp_path, **here)
    top = tmp_path / "physics"
    with open(top / "ops.yaml", "a") as f:
        f.write(ENTRY)
    (top / "csrc" / "rows.h").write_text(KERNEL_H.split("// kernel: row_product_backward")[0] + "}\n")
    (top / "csrc" / "rows.cpp").write_text(KERNEL_CPP)
    # An environment of its own, which sees the packages of this one but installs into itself.
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=tmp_path)
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    (site / "outer.pth").write_text("\n".join(p for p in sys.path if p and os.path.isdir(p)) + "\n")
    python = tmp_path / "venv" / "bin" / "python"
    tools = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-build-isolation", "--no-deps"]
    run(*pip, str(top), cwd=tmp_path, PATH=tools)
    assert run(python, "-c", USE, cwd=tmp_path).strip() == "used"
    said = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=top)
    assert " passed" in said and "failed" not in said, said


def test_another_abi_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "oldpack"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from tensorplay.library import load_pack\nglobals().update(load_pack(__name__, '0.3'))\n"
    )
    source = tmp_path / "old.cpp"
    source.write_text(OLD)
    _compile.compile_library(tmp_path, [], (source,), (), package / f"_ops{_store.SUFFIX}")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as caught:
        __import__("oldpack")
    text = str(caught.value)
    assert f"pack oldpack 0.3 cannot be loaded beside tensorplay {tp.__version__} (ABI {tp._C._abi})" in text
    assert f"built for ABI 999 of tensorplay, the one installed has ABI {tp._C._abi}" in text
    assert "build it again: pip install" in text


def test_the_abi_number_stands_for_the_headers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(root / "tools")
    import abi

    assert abi.fault() == ""
    assert abi.number() == tp._C._abi


def test_a_header_that_changes_is_noticed(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(root / "tools")
    import shutil

    import abi

    shutil.copytree(root / "csrc", tmp_path / "csrc")
    (tmp_path / "cmake").mkdir()
    shutil.copy(root / "cmake" / "abi.json", tmp_path / "cmake")
    header = tmp_path / "csrc" / "core" / "storage.h"
    text = header.read_text()
    header.write_text(text + "\n// a comment changes nothing\n")
    assert abi.fault(tmp_path) == ""
    header.write_text(text.replace("std::int64_t numel_ = 0;", "std::int64_t numel_ = 0; int extra_ = 0;"))
    assert "headers changed" in abi.fault(tmp_path)
    before = abi.number(tmp_path)
    abi.update(tmp_path)
    assert abi.fault(tmp_path) == "" and abi.number(tmp_path) == before + 1


def test_methods_and_names_are_claimed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[ModuleType] = []
    monkeypatch.setattr(tp._C, "_library_methods", lambda library: ["relu" if library.__name__ == "a" else "curl"])
    monkeypatch.setattr(tp._C, "_install_methods", installed.append)
    monkeypatch.setattr(_names, "_methods", {})
    with pytest.raises(NameTaken, match=r"method Tensor\.relu: pack a would take the name from tensorplay"):
        _names.install_methods(ModuleType("a"), "pack a")
    _names.install_methods(ModuleType("b"), "pack b")
    with pytest.raises(NameTaken, match=r"method Tensor\.curl: pack c would take the name from pack b"):
        _names.install_methods(ModuleType("c"), "pack c")
    assert [m.__name__ for m in installed] == ["b"]
    _names.install_methods(ModuleType("c"), "pack c", replace=True)
    with pytest.raises(NameTaken, match="from tensorplay"):
        _names.install_methods(ModuleType("a"), "pack a", replace=True)
    monkeypatch.setattr(_names, "_taken", {})
    _names.claim("fields", ["curl"], "pack fields 1.0", "x")
    with pytest.raises(NameTaken, match=r"op 'curl' in namespace 'fields': pack other would .* from pack fields 1\.0"):
        _names.claim("fields", ["curl"], "pack other", "y")
    _names.claim("fields", ["curl"], "pack fields 1.0", "edited")


def test_a_pack_is_not_made_over_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from codegen.cli import main

    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    for name, why in (("taken", "is not empty"), ("tensorplay", "is a module of the library"), ("1st", "cannot name")):
        assert main(["pack", "init", name, "--where", str(tmp_path)]) == 1
        assert why in capsys.readouterr().err
