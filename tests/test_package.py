"""The installed package: what it holds, what importing it costs, and that tests run on it, not on the sources."""

from __future__ import annotations

import importlib
import operator
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import tensorplay

PACKAGE = Path(tensorplay.__file__).parent
SOURCES = Path(__file__).resolve().parent.parent / "tensorplay"


def test_is_not_the_source_tree() -> None:
    assert PACKAGE != SOURCES
    assert list(PACKAGE.glob("_C.*")), f"no compiled module in {PACKAGE}"


@pytest.mark.parametrize("name", ["lib/libtensorplay.*", "lib/*scipy_openblas*", "codegen/__main__.py"])
def test_holds(name: str) -> None:
    assert list(PACKAGE.glob(name))


@pytest.mark.parametrize("module", ["numpy", "yaml", "jinja2", "scipy"])
def test_import_leaves_for_later(module: str) -> None:
    code = f"import sys, tensorplay; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd="/").returncode == 0


@pytest.mark.parametrize("told", [None, "3"])
def test_import_starts_no_threads(told: str | None) -> None:
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        pytest.skip("threads are counted in /proc")
    code = "import os, tensorplay; print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'))"
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    if told:
        environment["OPENBLAS_NUM_THREADS"] = told
    run = subprocess.run([sys.executable, "-c", code], env=environment, cwd="/", capture_output=True, text=True)
    assert run.stdout.split() == ["1", str(told)]


def test_generator_is_installed() -> None:
    command = [sys.executable, "-m", "tensorplay.codegen", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert run.returncode == 0, run.stderr
    assert "write" in run.stdout


def test_frozen_applications_get_what_is_loaded_on_demand() -> None:
    """PyInstaller reads imports; modules behind __getattr__ are named by our hook, or missing when asked for."""
    point = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())["project"]["entry-points"]["pyinstaller40"]
    module, _, function = point["hook-dirs"].partition(":")
    (folder,) = getattr(importlib.import_module(module), function)()
    code = f"""
import runpy, sys, tensorplay
names = runpy.run_path({str(Path(folder, "hook-tensorplay.py"))!r})["hiddenimports"]
before = set(sys.modules)
for name in set(dir(tensorplay)) - {{"testing"}}:
    value = getattr(tensorplay, name)
    for inner in getattr(value, "__all__", ()) if type(value) is type(sys) else ():
        getattr(value, inner)
asked = {{m for m in set(sys.modules) - before if m.startswith("tensorplay.") and ".codegen" not in m}}
assert len(names) > 30 and not asked - {{*names}}, asked - {{*names}}
assert not any(".codegen" in n or ".testing" in n for n in names)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nn.Conv2d", "nn.functional.conv2d"),
        ("nn.BatchNorm1d", "nn.functional.batch_norm"),
        ("nn.CrossEntropyLoss", "nn.functional.cross_entropy"),
        ("nn.MSELoss", "nn.functional.mse_loss"),
        ("nn.Module", "there are no modules here"),
        ("optim", "under no_grad"),
        ("cuda", "the CPU is the one device"),
    ],
)
def test_what_a_script_for_pytorch_misses_is_said(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        operator.attrgetter(name)(tensorplay)
