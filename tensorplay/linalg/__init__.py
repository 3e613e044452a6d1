"""Functions of tensorplay.linalg; every one is an entry of ops.yaml."""

from __future__ import annotations

from .. import _C

_table = getattr(_C, "linalg", None)
if _table is not None:
    globals().update({_name: getattr(_table, _name) for _name in dir(_table) if not _name.startswith("_")})

LinAlgError = _C._LinAlgError  # a RuntimeError
