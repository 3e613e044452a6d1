"""Tools around training: checkpoint, and the handle of hooks."""

from __future__ import annotations

from typing import NoReturn

from .._absent import missing
from . import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]


def __getattr__(name: str) -> NoReturn:
    raise missing(__name__, name)
