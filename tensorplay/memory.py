"""What tensors hold in memory: statistics of the block cache, its bound, and giving memory back."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = ["reset_peak", "set_cache_limit", "stats", "trim"]


def stats() -> dict[str, Any]:
    """What tensors hold, as numbers by name.

    Returns:
        in_use: bytes of all data blocks alive; large ones as they are rounded up, at most an eighth.
        cached: bytes of large blocks that wait for reuse.
        peak: the most `in_use` was when a large block was made, or `stats` was called.
        allocations, blocks_made: blocks since the start. blocks_live: those alive.
        cache_limit: the bound of `cached`.
        Memory that was borrowed from elsewhere (a NumPy array) is not counted.
    """
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
