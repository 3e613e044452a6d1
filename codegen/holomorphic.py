"""Whether one partial derivative serves complex numbers: the slope is the same in every direction, or the result real.
Looks at a formula alone; `check` looks at numbers.
"""

from __future__ import annotations

from collections.abc import Collection

from .formula import BoolOp, Call, Compare, Name, Node, Unary, children

CONSTANT, ANALYTIC, REAL, MIXED = range(4)
_PARTS = frozenset({"abs", "angle", "imag", "real"})  # of a complex number, each a real one
_TURNS = frozenset({"conj", "sgn", "sign"})


def serves_complex(n: Node, tensors: Collection[str]) -> bool:
    return _kind(n, frozenset(tensors)) != MIXED


def _kind(n: Node, tensors: frozenset[str]) -> int:
    match n:
        case Name(id=i):
            return ANALYTIC if i in tensors else CONSTANT
        case Compare() | BoolOp() | Unary(op="not"):
            return CONSTANT  # a choice, which does not move
        case Call(func="where", args=(_, a, b)):
            return _joined([_kind(a, tensors), _kind(b, tensors)])
        case Call(func=f, args=args):
            kind = _joined([_kind(a, tensors) for a in args])
            if f in _PARTS and kind == ANALYTIC:
                return REAL
            return MIXED if f in _TURNS and kind == ANALYTIC else kind
    return _joined([_kind(c, tensors) for c in children(n)])


def _joined(kinds: list[int]) -> int:
    found = {k for k in kinds if k != CONSTANT}
    return CONSTANT if not found else found.pop() if len(found) == 1 else MIXED
