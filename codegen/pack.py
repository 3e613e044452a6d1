"""`pack init NAME`: a project that pip installs, with ops of its own. Copies templates; decides nothing about ops."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from .render import template

# template -> file of the project; {package} is the name to import
FILES = {
    "CMakeLists.txt.j2": "CMakeLists.txt",
    "pyproject.toml.j2": "pyproject.toml",
    "ops.yaml.j2": "ops.yaml",
    "README.md.j2": "README.md",
    "init.py.j2": "src/{package}/__init__.py",
    "test.py.j2": "tests/test_ops.py",
    "ci.yml.j2": ".github/workflows/test.yml",
}
# Modules that a package must not stand in front of: of Python (its list leaves `test` out), and what the files import.
STANDARD = {*sys.stdlib_module_names, "test"}
NEEDED = {"jinja2", "markupsafe", "mpmath", "numpy", "pytest", "scikit_build_core", "scipy", "yaml"}
IGNORED = "__pycache__/\n*.so\nbuild/\ndist/\n"


class Refused(Exception):
    """The project cannot be made; the message says why."""


def init(name: str, where: Path) -> list[Path]:
    """Makes the project in a new folder `where`/NAME; returns its files. Raises Refused."""
    package = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", package) or keyword.iskeyword(package):
        raise Refused(f"codegen pack: '{name}' cannot name a package; lower-case letters, digits, - and _")
    whose = "the library" if package == "tensorplay" else "Python" if package in STANDARD else ""
    if whose or package in NEEDED:
        why = f"is a module of {whose}" if whose else "is a module that a pack, its build or its tests import"
        raise Refused(f"codegen pack: '{package}' {why}; a package would hide it: choose another name")
    top = where / name
    if top.exists() and any(top.iterdir()):
        raise Refused(f"codegen pack: {top} exists and is not empty; name another folder with --where")
    written = []
    for source, target in FILES.items():
        path = top / target.format(package=package)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template(f"pack/{source}", name=name, package=package), encoding="utf-8")
        written.append(path)
    (top / "csrc").mkdir()
    (top / ".gitignore").write_text(IGNORED, encoding="utf-8")
    return [*written, top / ".gitignore"]
