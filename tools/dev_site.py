"""Completes build/*/site, where the compiler puts the binaries, into an importable package by linking the sources.

Python files stay where they are edited: a change is seen by the next import, without a build.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def link(target: Path, at: Path) -> None:
    if at.is_symlink():
        if at.readlink() == target:
            return
        at.unlink()
    at.symlink_to(target)


def main(site: Path, root: Path = ROOT) -> int:
    package = site / "tensorplay"
    sources = {path.name: path for path in (root / "tensorplay").iterdir() if path.name != "__pycache__"}
    sources |= {"codegen": root / "codegen"}
    package.mkdir(parents=True, exist_ok=True)
    for old in package.iterdir():
        if old.is_symlink() and not old.resolve().exists():
            old.unlink()
    for name, target in sources.items():
        link(target, package / name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*(Path(argument).resolve() for argument in sys.argv[1:])))
