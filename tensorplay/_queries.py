"""Questions about tensors and sizes as functions. Knows nothing of values but in is_nonzero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _C

__all__ = ["broadcast_shapes", "is_complex", "is_floating_point", "is_inference", "is_nonzero", "numel"]


def _tensor(name: str, input: Any) -> Any:
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"{name}: input must be a Tensor, not {type(input).__name__}; wrap it with tensor()")
    return input


def is_floating_point(input: Any) -> bool:
    """Whether the dtype is float16, bfloat16, float32 or float64."""
    return bool(_tensor("is_floating_point", input).is_floating_point())


def is_complex(input: Any) -> bool:
    """Whether the dtype is complex64 or complex128."""
    return bool(_tensor("is_complex", input).is_complex())


def is_inference(input: Any) -> bool:
    """Whether the tensor was made under inference_mode."""
    return bool(_tensor("is_inference", input).is_inference())


def numel(input: Any) -> int:
    """Number of elements."""
    return int(_tensor("numel", input).numel())


def is_nonzero(input: Any) -> bool:
    """Whether the only element of a tensor differs from zero.

    Raises:
        RuntimeError: the tensor has no element or several.
    """
    if _tensor("is_nonzero", input).numel() != 1:
        raise RuntimeError(f"is_nonzero: needs exactly one element, got {input.numel()}; use any() or all()")
    return bool(input.item())


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The size that tensors of these sizes have together.

    Raises:
        RuntimeError: two sizes of one dimension differ and neither is 1.
    """
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    out = [1] * max((len(s) for s in sizes), default=0)
    for size in sizes:
        for i, n in enumerate(reversed(size), 1):
            if n < 0:
                raise RuntimeError(f"broadcast_shapes: {list(size)} has a negative size")
            if n == 1 or n == out[-i]:
                continue
            if out[-i] != 1:
                raise RuntimeError(
                    f"broadcast_shapes: the sizes {[list(s) for s in sizes]} don't go together at dimension -{i}: "
                    f"{out[-i]} and {n}"
                )
            out[-i] = n
    return tuple(out)
