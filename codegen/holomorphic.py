"""Whether one partial derivative serves complex numbers: the slope must be the same in every direction.

Looks at a formula alone; `check` looks at numbers.
"""

from __future__ import annotations

from collections.abc import Collection

from .formula import BoolOp, Call, Compare, Name, Node, Unary, children

_TURNS = frozenset({"abs", "angle", "conj", "imag", "real", "sgn", "sign"})  # their slope depends on the direction


def serves_complex(n: Node, tensors: Collection[str]) -> bool:
    match n:
        case Compare() | BoolOp() | Unary(op="not"):
            return True  # a choice, which does not move
        case Call(func="where", args=(_, a, b)):
            return serves_complex(a, tensors) and serves_complex(b, tensors)
        case Call(func=f) if f in _TURNS and _moves(n, tensors):
            return False
    return all(serves_complex(c, tensors) for c in children(n))


def _moves(n: Node, tensors: Collection[str]) -> bool:
    return n.id in tensors if isinstance(n, Name) else any(_moves(c, tensors) for c in children(n))
