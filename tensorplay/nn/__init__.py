"""Functions for networks."""

from . import functional

__all__ = ["functional"]
