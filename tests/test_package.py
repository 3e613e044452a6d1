"""The installed package: what it holds, what importing it costs, and that tests run on it, not on the sources."""

from __future__ import annotations

import subprocess
import sys
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


def test_generator_is_installed() -> None:
    command = [sys.executable, "-m", "tensorplay.codegen", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert run.returncode == 0, run.stderr
    assert "write" in run.stdout
