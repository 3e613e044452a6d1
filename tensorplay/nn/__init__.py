"""Functions for networks."""

from __future__ import annotations

from typing import NoReturn

from .._absent import instead
from . import functional

__all__ = ["functional"]


def __getattr__(name: str) -> NoReturn:
    # What a script for PyTorch asks for first: a class of modules, whose function is here.
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    known = {n.replace("_", ""): n for n in dir(functional) if not n.startswith("_") and not n.endswith("_")}
    low = name.lower()
    tried = (low, low.removesuffix("loss"), low[:-2] if low[-2:] in ("1d", "2d", "3d") else low)
    function = next((f"; its function is nn.functional.{known[n]}" for n in tried if n in known), "")
    said = instead(__name__, name) or f": there are no modules here, only functions and tensors{function}"
    raise AttributeError(f"nn: no {name!r}{said}")
