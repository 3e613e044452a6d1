"""Compiles each C++ program of this folder as an op pack is compiled, against the installed headers and library, and
runs it. A program prints what failed and returns non-zero."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAMS = sorted(Path(__file__).parent.glob("*.cpp"))


def package() -> Path:
    spec = find_spec("tensorplay")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_program(source: Path, tmp_path: Path, root: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
    installed = package()
    program = tmp_path / source.stem
    headers = sorted((installed / "include" / "ops").glob("*.h"))
    (tmp_path / "all_ops.h").write_text("".join(f'#include "ops/{h.name}"\n' for h in headers), encoding="utf-8")
    command = [*compiler.split(), "-std=c++20", "-O1", str(source), "-o", str(program)]
    command += [f"-I{tmp_path}", f"-I{root / 'generated/cpp/tests'}"]
    command += [f"-I{installed / 'include'}", f"-L{installed / 'lib'}", "-ltensorplay", "-pthread"]
    command += [f"-Wl,-rpath,{installed / 'lib'}", f"-Wl,-rpath-link,{installed / 'lib'}"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    run = subprocess.run([str(program)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
