"""Small deliberate faults in a formula, for `mutate` and `fuzz`: each is one edit of the AST with a description."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from .formula import Binary, Call, Compare, Name, Node, Num, Unary, children, map_children, to_text, walk

Edit = tuple[str, Node]  # what was done, and the formula after it

_REDUCTIONS = ("sum_to", "sum", "sum_dims", "expand_to", "restore_dims", "mH", "mT", "transpose", "conj")
_SWAPS = {"+": "-", "-": "+", "*": "/", "/": "*", "**": "*", "//": "/", "%": "/", "@": "*"}
_COMPARE = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "!=", "!=": "=="}
_FUNCTIONS = (
    ("sin", "cos", "tanh", "exp", "log", "sqrt", "erf", "sigmoid", "abs", "log1p", "expm1", "floor"),
    ("maximum", "minimum", "atan2", "hypot", "pow", "fmod"),
)


def at(root: Node, target: Node, new: Node) -> Node:
    """root with the one node that is `target` (by identity) replaced."""
    if root is target:
        return new
    return map_children(root, lambda c: at(c, target, new))


def constants(root: Node) -> Iterator[Edit]:
    for n in walk(root):
        if isinstance(n, Num) and not isinstance(n.value, complex):
            v = n.value + 1 if isinstance(n.value, int) else n.value * 1.25 + 0.01
            yield f"constant {to_text(n)} is {v:.6g}", at(root, n, Num(v))


def signs(root: Node) -> Iterator[Edit]:
    yield "sign of the whole formula", Unary("-", root)
    for n in walk(root):
        if isinstance(n, Binary) and n.op in "+-":
            new = Binary("-" if n.op == "+" else "+", n.left, n.right)
            yield f"sign: {to_text(n)} is {to_text(new)}", at(root, n, new)
        elif isinstance(n, Unary) and n.op == "-":
            yield f"sign: {to_text(n)} is {to_text(n.arg)}", at(root, n, n.arg)


def reductions(root: Node) -> Iterator[Edit]:
    for n in walk(root):
        if isinstance(n, Call) and n.func in _REDUCTIONS and n.args:
            yield f"dropped {n.func}(...)", at(root, n, n.args[0])


def slots(root: Node, scope: Sequence[str]) -> Iterator[Edit]:
    """A tensor read where another belongs."""
    for n in walk(root):
        if isinstance(n, Name) and n.id in scope:
            for other in scope:
                if other != n.id:
                    yield f"slot: {other} instead of {n.id}", at(root, n, Name(other))


def operators(root: Node) -> Iterator[Edit]:
    for n in walk(root):
        if isinstance(n, Binary) and n.op in _SWAPS:
            new: Node = Binary(_SWAPS[n.op], n.left, n.right)
            yield f"operator: {to_text(n)} is {to_text(new)}", at(root, n, new)
        elif isinstance(n, Compare):
            new = Compare(_COMPARE[n.op], n.left, n.right)
            yield f"comparison: {to_text(n)} is {to_text(new)}", at(root, n, new)


def functions(root: Node) -> Iterator[Edit]:
    for n in walk(root):
        if isinstance(n, Call):
            for group in _FUNCTIONS:
                if n.func in group:
                    for other in group:
                        if other != n.func:
                            yield f"function: {other} instead of {n.func}", at(root, n, Call(other, n.args, n.kwargs))


def swapped(root: Node) -> Iterator[Edit]:
    """Two arguments exchanged."""
    for n in walk(root):
        if isinstance(n, Call):
            for i in range(len(n.args) - 1):
                args = list(n.args)
                args[i], args[i + 1] = args[i + 1], args[i]
                if args[i] != args[i + 1]:
                    yield f"swapped arguments of {n.func}", at(root, n, Call(n.func, tuple(args), n.kwargs))
        elif isinstance(n, Binary) and n.left != n.right:
            yield f"swapped sides of {n.op}", at(root, n, Binary(n.op, n.right, n.left))


def arity(root: Node) -> Iterator[Edit]:
    for n in walk(root):
        if isinstance(n, Call) and n.args:
            yield f"{n.func} loses an argument", at(root, n, Call(n.func, n.args[:-1], n.kwargs))
            yield f"{n.func} gains an argument", at(root, n, Call(n.func, (*n.args, n.args[-1]), n.kwargs))


def misspelt(word: str, rng: random.Random) -> str:
    """A letter dropped, doubled, or two exchanged."""
    for _ in range(8):
        i = rng.randrange(len(word))
        kind = rng.randrange(3)
        if kind == 0 and len(word) > 2:
            out = word[:i] + word[i + 1 :]
        elif kind == 1 or len(word) < 3:
            out = word[:i] + word[i] + word[i:]
        else:
            j = (i + 1) % len(word)
            a, b = min(i, j), max(i, j)
            out = word[:a] + word[b] + word[a + 1 : b] + word[a] + word[b + 1 :]
        if out != word and out.isidentifier():
            return out
    return word + "x"


def leaves(root: Node) -> int:
    return sum(1 for n in walk(root) if not children(n))
