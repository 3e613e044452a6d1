"""Products of several matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .. import _C


def multi_dot(tensors: Sequence[Any]) -> Any:
    """Product of several matrices in the order of multiplication that costs least."""
    for i, t in enumerate(tensors):
        if not isinstance(t, _C.Tensor):
            raise TypeError(f"multi_dot: argument {i} must be a Tensor, not {type(t).__name__}")
    count = len(tensors)
    if count < 2:
        raise ValueError(f"multi_dot: needs at least two tensors; it got {count}")
    for i, t in enumerate(tensors):
        if t.dim() != 2 and not (t.dim() == 1 and i in (0, count - 1)):
            raise ValueError(f"multi_dot: tensor {i} must be a matrix; it has sizes {list(t.shape)}")
    matmul = _C.functions.matmul
    row, column = tensors[0].dim() == 1, tensors[-1].dim() == 1
    parts = list(tensors)
    if row:
        parts[0] = parts[0].unsqueeze(0)
    if column:
        parts[-1] = parts[-1].unsqueeze(1)
    for a, b in pairwise(parts):
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"multi_dot: sizes {list(a.shape)} and {list(b.shape)} do not multiply")
    out = _product(parts, _splits([p.shape[0] for p in parts] + [parts[-1].shape[1]]), 0, count - 1, matmul)
    return out.reshape([n for n, gone in zip(out.shape, (row, column), strict=True) if not gone])


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices, by the classic dynamic program."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    best: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            tries = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], best[i, j] = min(tries)
    return best


def _product(parts: list[Any], best: dict[tuple[int, int], int], i: int, j: int, matmul: Any) -> Any:
    if i == j:
        return parts[i]
    k = best[i, j]
    return matmul(_product(parts, best, i, k, matmul), _product(parts, best, k + 1, j, matmul))
