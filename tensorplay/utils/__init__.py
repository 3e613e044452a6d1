"""Tools around training: checkpoint, and the handle of hooks."""

from . import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]
