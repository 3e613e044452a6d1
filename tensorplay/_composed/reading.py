"""Values of tensors, read where they can be: inside vmap a batched tensor holds one for each sample."""

from __future__ import annotations

from typing import Any

import tensorplay as tp

Tensor = Any


def readable(*tensors: Any) -> bool:
    """Whether the values can be read. A check of values is left out where they can't."""
    return not any(tp._C._is_batched(x) for x in tensors)


def need_values(op: str, name: str, x: Any, what: str) -> None:
    """Raises for a batched tensor whose values `what` depends on."""
    if not readable(x):
        raise RuntimeError(
            f"{op}: vmap: {what} depends on the values of {name}, which differ from sample to sample; map over the "
            "other arguments only, or loop over the samples"
        )
