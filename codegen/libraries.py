"""Names in NumPy, SciPy, math and mpmath that references mention, and modules of the user's: do they exist here?"""

from __future__ import annotations

import hashlib
import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

from . import cache as kept

_MISSING = object()


def like_exists(path: str) -> bool:
    """Whether numpy.x, scipy.special.y, math.z exist here; True where the package is not installed."""
    found = _found()
    if path in found:
        return True
    obj = _module(path)
    if obj is not None and obj is not _MISSING:
        found.add(path)
        _keep(path)
    return obj is None or obj is not _MISSING


def module_exists(name: str, file: Path) -> bool:
    """Whether the package of a module could be imported, or is beside an ops file, in a folder above or its src.

    Nothing is imported: the module may be the one that defines the op.
    """
    from importlib.util import find_spec

    top = name.partition(".")[0]
    if top in sys.modules or find_spec(top) is not None:
        return True
    folders = [d for p in file.resolve().parents[:4] for d in (p, p / "src")] if file.is_file() else []
    return any((d / top).is_dir() or (d / f"{top}.py").is_file() for d in folders)


def versions() -> str:
    """What is installed of the libraries that references name."""
    import importlib.metadata  # 50 ms, which a definition without a reference need not pay

    parts = [sys.version]
    for name in ("numpy", "scipy", "mpmath"):
        try:
            parts.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            parts.append(f"no {name}")
    return "; ".join(parts)


def _path() -> Path:
    return kept.folder() / f"names-{hashlib.sha256(versions().encode()).hexdigest()[:24]}.txt"


@cache
def _found() -> set[str]:
    """Names that were there before, with these versions: importing SciPy to look again costs a second."""
    try:
        return set(_path().read_text().split())
    except (kept.CacheError, OSError):
        return set()


def _keep(name: str) -> None:
    try:
        with open(_path(), "a") as f:
            f.write(name + "\n")
    except (kept.CacheError, OSError):
        pass


def like_members(path: str) -> list[str]:
    obj = _module(path)
    return [] if obj is None or obj is _MISSING else [n for n in dir(obj) if not n.startswith("_")]


def _module(path: str) -> Any:
    parts = path.split(".")
    parts[0] = {"np": "numpy", "mp": "mpmath"}.get(parts[0], parts[0])
    try:
        obj: Any = importlib.import_module(parts[0])
    except ImportError:
        return None
    for k, p in enumerate(parts[1:], 2):
        if not hasattr(obj, p):
            try:
                importlib.import_module(".".join(parts[:k]))
            except ImportError:
                return _MISSING
        obj = getattr(obj, p, _MISSING)
        if obj is _MISSING:
            return _MISSING
    return obj
