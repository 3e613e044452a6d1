"""The scripts of tools/: what they decide, without building anything."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tool_{name}", TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt-get", "apt-get install -y python3-venv python3-dev g++"),
        ("dnf", "dnf install -y python3-pip python3-devel gcc-c++"),
        ("brew", "brew install python@3.11 gcc"),
    ],
)
def test_doctor_prints_one_line(manager: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    doctor = load("doctor", monkeypatch)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/bin/{name}" if name == manager else None)
    remedy = doctor.remedy([("venv", "no venv"), ("header", "no Python.h"), ("c++", "no compiler")])
    assert remedy.endswith(line)
    assert "\n" not in remedy


def test_doctor_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    doctor = load("doctor", monkeypatch)
    monkeypatch.setattr(doctor, "compiler", lambda: None)
    monkeypatch.setattr(doctor, "has_venv", lambda: False)
    assert doctor.main() == 1
    text = capsys.readouterr().err
    assert "ensurepip" in text and "no C++ compiler" in text and "to install what is missing" in text


def test_requirements_follow_extras(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    requirements = load("requirements", monkeypatch)
    assert requirements.main(["run", "dev"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = {line.split(">")[0].split("=")[0] for line in lines}
    assert {"numpy", "pytest", "ruff", "ninja", "jinja2"} <= names
    assert not any(line.startswith("tensorplay") for line in lines)
    assert requirements.main(["nonsense"]) == 2


def test_mirror_touches_only_what_differs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    variant = load("variant", monkeypatch)
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "deep").mkdir(parents=True)
    (source / "same.cpp").write_text("1")
    (source / "deep" / "changed.cpp").write_text("1")
    variant.mirror(source, copy)
    stamps = {name: (copy / name).stat().st_mtime_ns for name in ("same.cpp", "deep/changed.cpp")}
    (source / "deep" / "changed.cpp").write_text("2")
    (copy / "stale.cpp").write_text("")
    variant.mirror(source, copy)
    assert (copy / "same.cpp").stat().st_mtime_ns == stamps["same.cpp"]
    assert (copy / "deep" / "changed.cpp").read_text() == "2"
    assert not (copy / "stale.cpp").exists()


def test_dev_site_links_files_and_drops_stale_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dev_site = load("dev_site", monkeypatch)
    root, site = tmp_path / "root", tmp_path / "site"
    for name in ("tensorplay/__init__.py", "tensorplay/func/__init__.py", "codegen/cli.py", "ops.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "generated" / "stubs").mkdir(parents=True)
    (root / "generated" / "stubs" / "_C.pyi").write_text("")
    dev_site.main(site, root)
    package = site / "tensorplay"
    assert (package / "codegen" / "cli.py").read_text() == "codegen/cli.py"
    assert (package / "_C.pyi").is_symlink()
    (root / "tensorplay" / "func" / "__init__.py").unlink()
    dev_site.main(site, root)
    assert not (package / "func" / "__init__.py").is_symlink()


def test_what_may_be_chosen_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    schemata = load("schemata", monkeypatch)

    def kinds(line: str) -> list[tuple[str, str]]:
        return [(r.kind, line[r.start : r.end]) for r in schemata.regions(line)]

    assert kinds("  if (a < b) c = d;") == [("condition", "a < b"), ("statement", "c = d;")]
    assert kinds("  for (int i = 0; i < n; ++i) f(i);")[:2] == [("value", "0"), ("condition", " i < n")]
    assert kinds("  const int n = size(x) + 1;") == [("value", "size(x) + 1")]
    assert kinds("  out.push_back(i);") == [("statement", "out.push_back(i);")]
    # A choice is a block of its own, which would end what is made in it.
    assert kinds("  Shape out(int(n) + 1, 1);") == kinds("  std::vector<int> rest{a + 1};") == []
