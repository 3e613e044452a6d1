"""Set functions of the standard, over a stable sort: equal elements become neighbours. Each nan is one of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

from ._ops import op

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """The different elements in order, where each comes first, which one each element is, and how often each occurs."""
    flat = x.reshape((-1,))
    order = _order(flat)
    row = flat[order]
    n = row.shape[0]
    begins = op("cat")([op("ones")((min(n, 1),), dtype=op("bool")), row[1:] != row[:-1]])
    starts = op("nonzero")(begins).reshape((-1,))
    ends = op("cat")([starts[1:], op("full")((min(n, 1),), n, dtype=op("int64"))])
    inverse = op("empty_like")(order)
    inverse[order] = op("cumsum")(begins.to(op("int64")), 0) - 1
    return UniqueAll(row[starts], order[starts], inverse.reshape(x.shape), ends - starts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different elements in order, and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different elements in order, and which one each element of x is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Any:
    """The different elements in order."""
    return unique_all(x).values


def _order(flat: Any) -> Any:
    """Complex numbers by their real parts, equal ones by their imaginary parts."""
    if not flat.is_complex():
        return op("argsort")(flat, 0, False, True)
    first = op("argsort")(flat.imag, 0, False, True)
    return first[op("argsort")(flat.real[first], 0, False, True)]
