"""What a formula reads of its names: elements, metadata, or only a condition."""

from __future__ import annotations

from . import formula as F
from .model import (
    Signature,
    Type,
)  # fmt: skip


def only_condition(n: F.Node, name: str) -> bool:
    """Whether every read of a name is as the condition of where: then it is a mask."""
    reads = sum(1 for x in F.walk(n) if isinstance(x, F.Name) and x.id == name)
    masks = sum(1 for x in F.walk(n) if isinstance(x, F.Call) and x.func == "where" and x.args[0] == F.Name(name))
    return reads > 0 and reads == masks


def types_of(sig: Signature) -> dict[str, Type]:
    return {x.name: x.type for x in sig.members}


def tensor_names(sig: Signature) -> frozenset[str]:
    """Names that stand for one tensor: arguments and results that are no list."""
    return frozenset(x.name for x in sig.members if x.type.is_tensor)


def reads_values(n: F.Node) -> set[str]:
    """Names whose elements a formula reads; shape(x), dtype(x) and kin do not count."""
    from .structured import META

    if isinstance(n, F.Call) and n.func in META:
        return set()
    out = {n.id} if isinstance(n, F.Name) else set()
    for c in F.children(n):
        out |= reads_values(c)
    return out
