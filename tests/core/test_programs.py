"""Compiles each C++ program of this folder as an op pack is compiled, against the installed headers and library, and
runs it. A program prints what failed and returns non-zero. The one that walks the backward classes, which the library
does not export, is linked from the objects that its build left."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAMS = sorted(Path(__file__).parent.glob("*.cpp"))
FROM_OBJECTS = "generated_nodes_test"


def package() -> Path:
    spec = find_spec("tensorplay")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def from_objects(build: Path, installed: Path) -> list[str]:
    """The options and objects that the library in `installed` was built with."""
    commands = build / "compile_commands.json"
    if not commands.is_file():
        pytest.skip(f"{FROM_OBJECTS}: no objects of the library in {build.name}")
    entries = json.loads(commands.read_text(encoding="utf-8"))
    of_library = [e for e in entries if "/tensorplay.dir/" in e["output"] or "/kernels_" in e["output"]]
    engine = next(e for e in of_library if e["file"].endswith("csrc/autograd/engine.cpp"))
    words = shlex.split(engine["command"])
    options = [w for w in words if w.startswith(("-D", "-I", "-m", "-f"))]
    options += [f"-isystem{w}" for before, w in itertools.pairwise(words) if before == "-isystem"]
    blas = sorted((installed / "lib").glob("libscipy_openblas*"))
    return [*options, *(str(build / e["output"]) for e in of_library), *map(str, blas), "-ldl"]


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
    if source.stem == FROM_OBJECTS:
        command += from_objects(root / "build" / "install", installed)
    else:
        command += [f"-I{installed / 'include'}", f"-L{installed / 'lib'}", "-ltensorplay"]
    command += ["-pthread"]
    command += [f"-Wl,-rpath,{installed / 'lib'}", f"-Wl,-rpath-link,{installed / 'lib'}"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    run = subprocess.run([str(program)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
