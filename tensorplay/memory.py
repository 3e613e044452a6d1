"""What tensors hold in memory: statistics of the block cache, its bound, and giving memory back."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = ["reset_peak", "set_cache_limit", "stats", "trim"]


def stats() -> dict[str, Any]:
    """Bytes in use, cached and at the peak, and how many blocks were made since the start."""
    return dict(_C._memory_stats())


def reset_peak() -> None:
    """Lets the peak start again from what is in use now."""
    _C._memory_reset_peak()


def trim() -> None:
    """Gives cached blocks back to the system."""
    _C._memory_trim()


def set_cache_limit(bytes: int) -> None:
    """The most that is kept for reuse; 0 switches the cache off.

    The environment variable TENSORPLAY_CACHE_MB sets it at start.
    """
    if bytes < 0:
        raise ValueError(f"set_cache_limit: the limit must not be negative, got {bytes}")
    _C._memory_set_cache_limit(bytes)
