"""Names in NumPy, SciPy, math and mpmath that references mention: do they exist here?"""

from __future__ import annotations

from typing import Any

_MISSING = object()


def like_exists(path: str) -> bool:
    """Whether numpy.x, scipy.special.y, math.z exist here; True where the package is not installed."""
    obj = _module(path)
    return obj is None or obj is not _MISSING


def like_members(path: str) -> list[str]:
    obj = _module(path)
    return [] if obj is None or obj is _MISSING else [n for n in dir(obj) if not n.startswith("_")]


def _module(path: str) -> Any:
    import importlib

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
