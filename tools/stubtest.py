"""Compares each stub of the installed package with the module it describes, by mypy's stubtest."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path


def modules(package: Path) -> list[str]:
    """Dotted names of the modules of the package that have a stub.

    A private stub without a module (`_ops.pyi`) is part of the stubs that import from it, and checked there.
    """
    found = []
    for stub in sorted(package.rglob("*.pyi")):
        parts = stub.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not parts[-1].startswith("_") or parts[-1] == "__init__" or find_spec(name) is not None:
            found.append(name)
    return found


def main() -> int:
    # Run from elsewhere, so that the installed package is found and not the source tree.
    with tempfile.TemporaryDirectory() as folder:
        sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path.cwd()]
        spec = find_spec("tensorplay")
        if spec is None or spec.origin is None:
            print("stubtest: tensorplay is not installed; run `make install`", file=sys.stderr)
            return 1
        names = modules(Path(spec.origin).parent)
        if not names:
            print("stubtest: the installed package has no stubs", file=sys.stderr)
            return 1
        command = [sys.executable, "-m", "mypy.stubtest", "--ignore-missing-stub", "--concise", *names]
        return subprocess.run(command, cwd=folder).returncode


if __name__ == "__main__":
    raise SystemExit(main())
