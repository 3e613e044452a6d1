"""Includes and imports run one way. Reads the sources only: nothing is built or imported."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# C++ rooms from the bottom up; generated rooms stand beside the hand-written ones they extend.
CPP_ROOMS = [
    ["csrc/core"],
    ["csrc/kernels", "generated/cpp/kernels"],
    ["csrc/autograd"],
    ["csrc/ops"],
    ["csrc/transforms"],
    ["generated/cpp/nodes"],
    ["generated/cpp/ops"],
    ["csrc/python"],
    ["generated/cpp/bind"],
    ["generated/cpp/tests"],
]
CPP_RANK = {room: rank for rank, rooms in enumerate(CPP_ROOMS) for room in rooms}
PYTHON_FLOOR = CPP_RANK["csrc/python"]
INCLUDE_ROOTS = ("csrc", "generated/cpp")

# Python rooms that have an order among themselves. The rest (nn, linalg, testing, ...) stands above them.
PY_RANK = {"_C": 0, "autograd": 1, "func": 2}
PY_TOP = 3

# The generator runs before anything is built, with YAML, Jinja and NumPy. What else it can use
# (SciPy, mpmath: more checks where they are there) it imports when it needs it.
CODEGEN_NEVER = {"tensorplay", "torch", "sympy"}
CODEGEN_REQUIRES = {"yaml", "jinja2", "numpy", "codegen", "__future__"} | sys.stdlib_module_names

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def room_of(path: str) -> str | None:
    return next((room for room in CPP_RANK if path.startswith(room + "/")), None)


def include_faults(path: str, text: str, exists: set[str]) -> Iterator[str]:
    """What is wrong with the includes of one file; `exists` holds the paths of all sources."""
    room = room_of(path)
    if room is None:
        yield f"{path}: in none of the rooms {', '.join(CPP_RANK)}"
        return
    for bracket, name in INCLUDE.findall(text):
        if name == "Python.h" or name.startswith("pybind11/"):
            if CPP_RANK[room] < PYTHON_FLOOR:
                yield f"{path}: includes {name}, but nothing below csrc/python knows CPython"
            continue
        if bracket == "<":
            continue
        found = [f"{root}/{name}" for root in INCLUDE_ROOTS if f"{root}/{name}" in exists]
        if len(found) != 1:
            yield f"{path}: '{name}' names {len(found)} files under {' and '.join(INCLUDE_ROOTS)}"
            continue
        target = room_of(found[0])
        if target is None or CPP_RANK[target] > CPP_RANK[room]:
            yield f"{path}: {room} includes upward: {found[0]}"


def imported_modules(nodes: Iterable[ast.AST], package: list[str]) -> Iterator[str]:
    """Absolute dotted names that the nodes import; `package` is where relative names start."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield stem
            # `from tensorplay import func` imports the room func.
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def import_faults(path: str, text: str) -> Iterator[str]:
    parts = path.removesuffix(".py").split("/")
    tree = ast.parse(text)
    imported = set(imported_modules(ast.walk(tree), parts[:-1]))
    if parts[0] == "codegen":
        for name in sorted({name.split(".")[0] for name in imported} & CODEGEN_NEVER):
            yield f"{path}: the generator imports {name}"
        first = {name.split(".")[0] for name in imported_modules(tree.body, parts[:-1])}
        for name in sorted(first - CODEGEN_REQUIRES - CODEGEN_NEVER):
            yield f"{path}: the generator imports {name} before it needs it"
        return
    rank = PY_RANK.get(parts[1], PY_TOP)
    for name in sorted(imported):
        top, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if top == "tensorplay" and PY_RANK.get(other, -1) > rank:
            yield f"{path}: imports upward: {name}"


def cpp_sources() -> dict[str, str]:
    files = [p for root in INCLUDE_ROOTS for p in (ROOT / root).rglob("*") if p.suffix in {".h", ".cpp", ".inc"}]
    return {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in sorted(files)}


def py_sources() -> dict[str, str]:
    files = [p for root in ("tensorplay", "codegen") for p in (ROOT / root).rglob("*.py")]
    return {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in sorted(files)}


def test_includes_run_one_way() -> None:
    sources = cpp_sources()
    assert sources
    faults = [fault for path, text in sources.items() for fault in include_faults(path, text, set(sources))]
    assert not faults, "\n".join(faults)


def test_imports_run_one_way() -> None:
    sources = py_sources()
    assert sources
    faults = [fault for path, text in sources.items() for fault in import_faults(path, text)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("csrc/core/a.h", '#include "kernels/b.h"', "upward"),
        ("csrc/ops/a.cpp", '#include "ops/unary.h"', "upward"),
        ("csrc/core/a.cpp", "#include <Python.h>", "CPython"),
        ("csrc/ops/a.cpp", '#include "core/missing.h"', "names 0 files"),
        ("csrc/misc/a.cpp", "", "in none of the rooms"),
    ],
)
def test_an_upward_include_is_found(path: str, text: str, word: str) -> None:
    exists = {"csrc/core/a.h", "csrc/kernels/b.h", "generated/cpp/ops/unary.h"}
    (fault,) = include_faults(path, text, exists)
    assert word in fault


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tensorplay/autograd/a.py", "from ..func import vmap"),
        ("tensorplay/autograd/a.py", "def f():\n    from tensorplay import func\n"),
        ("tensorplay/autograd/__init__.py", "import tensorplay.func.vmap"),
        ("codegen/a.py", "import tensorplay"),
        ("codegen/a.py", "import scipy.special"),
    ],
)
def test_an_upward_import_is_found(path: str, text: str) -> None:
    assert list(import_faults(path, text))


def test_downward_edges_pass() -> None:
    exists = {"csrc/core/a.h", "generated/cpp/ops/unary.h"}
    assert not list(include_faults("csrc/python/m.cpp", '#include "ops/unary.h"\n#include <Python.h>', exists))
    assert not list(import_faults("tensorplay/func/a.py", "from ..autograd import grad\nfrom .. import _C"))
    assert not list(import_faults("codegen/a.py", "import yaml\ndef f():\n    import mpmath\n"))
