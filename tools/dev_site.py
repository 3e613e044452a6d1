"""Makes SITE/tensorplay look like the installed package by linking the sources, stubs and generator file by file.

The compiler puts the binaries into the same folder, so SITE can be imported. Linked files stay where they are edited:
a change is seen by the next import, and only a new file needs another run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".py", ".pyi", ".jinja", ".j2", ".yaml", ".typed", ".cmake"}


def sources(root: Path) -> dict[str, Path]:
    """Where each file of the package comes from: CMake's install rules and the wheel's packages say the same."""
    found: dict[str, Path] = {}
    for top, prefix in ((root / "tensorplay", ""), (root / "generated" / "stubs", ""), (root / "codegen", "codegen/")):
        for path in top.rglob("*"):
            if path.is_file() and path.suffix in SUFFIXES:
                found[prefix + path.relative_to(top).as_posix()] = path
    return found | {"codegen/ops.yaml": root / "ops.yaml"}


def main(site: Path, root: Path = ROOT) -> int:
    package = site / "tensorplay"
    wanted = sources(root)
    for folder, _, names in os.walk(package):
        for old in (Path(folder) / name for name in names):
            if old.is_symlink() and old.suffix in SUFFIXES and old.relative_to(package).as_posix() not in wanted:
                old.unlink()
    for name, target in wanted.items():
        at = package / name
        if at.is_symlink():
            if at.readlink() == target:
                continue
            at.unlink()
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(target)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*(Path(argument).resolve() for argument in sys.argv[1:])))
