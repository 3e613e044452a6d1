"""Whether one partial derivative serves complex numbers: the slope must be the same in every direction.

Looks at a formula alone; `check` looks at numbers.
"""

from __future__ import annotations

from collections.abc import Collection

from .formula import BoolOp, Call, Compare, Name, Node, Unary, children, walk
from .functions import REAL_VALUED

_TURNS = frozenset({"abs", "angle", "conj", "imag", "real", "sgn", "sign"})  # their slope depends on the direction
_REAL_LAST = frozenset({"abs", "real"})  # as the last step their partial is that of a real result


def serves_complex(n: Node, tensors: Collection[str]) -> bool:
    return _holomorphic(n.args[0] if isinstance(n, Call) and n.func in _REAL_LAST else n, tensors)


def orders(n: Node, tensors: Collection[str]) -> bool:
    """Whether the formula compares values by size, which complex numbers have not."""
    compared = (c for c in walk(n) if isinstance(c, Compare) and c.op not in ("==", "!="))
    return any(_moves(side, tensors) for c in compared for side in children(c) if not _is_real(side))


def _is_real(n: Node) -> bool:
    return isinstance(n, Call) and n.func in REAL_VALUED


def _holomorphic(n: Node, tensors: Collection[str]) -> bool:
    match n:
        case Compare() | BoolOp() | Unary(op="not"):
            return True  # a choice, which does not move
        case Call(func="where", args=(_, a, b)):
            return _holomorphic(a, tensors) and _holomorphic(b, tensors)
        case Call(func=f) if f in _TURNS and _moves(n, tensors):
            return False
    return all(_holomorphic(c, tensors) for c in children(n))


def _moves(n: Node, tensors: Collection[str]) -> bool:
    return n.id in tensors if isinstance(n, Name) else any(_moves(c, tensors) for c in children(n))
