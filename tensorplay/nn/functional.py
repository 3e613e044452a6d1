"""Activations, losses, normalisation, convolutions; every one is an entry of ops.yaml."""

from __future__ import annotations

from .. import _C

globals().update(
    {_name: getattr(_C.nn_functional, _name) for _name in dir(_C.nn_functional) if not _name.startswith("_")}
)
