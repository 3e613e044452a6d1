"""Where a composition reads a tensor that the caller may leave out. Knows formulas and signatures alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import formula as F

Names = frozenset[str]
# Whether a call may hand None on as this argument (a position, or a name), or a comparison have it on this side (0, 1).
Takes = Callable[[F.Call | F.Compare, "int | str"], bool]


def absent(n: F.Node, optional: Names, takes: Takes, there: Names = frozenset()) -> Iterator[F.Name]:
    """The places where a name of `optional` stands for a value although nothing has asked whether it is one.

    `there`: names that are surely no None. A condition makes them so: `x == None or f(x)`, `f(x) if x != None else y`.
    """
    match n:
        case F.Name(id=i):
            if i in optional and i not in there:
                yield n
        case F.Compare(left=a, right=b) if isinstance(a, F.NoneLit) or isinstance(b, F.NoneLit):
            pass
        case F.Compare(left=a, right=b):
            for k, side in enumerate((a, b)):
                if not (isinstance(side, F.Name) and takes(n, k)):
                    yield from absent(side, optional, takes, there)
        case F.BoolOp(op=op, args=args):
            for a in args:
                yield from absent(a, optional, takes, there)
                there |= present(a, op == "and")
        case F.Call(func="where", args=(c, yes, no)):
            yield from absent(c, optional, takes, there)
            for k, branch, holds in ((1, yes, True), (2, no, False)):
                if not (isinstance(branch, F.Name) and takes(n, k)):  # handed on: the value may be None, see `maybe`
                    yield from absent(branch, optional, takes, there | present(c, holds))
        case F.Call(args=args, kwargs=kwargs):
            given: list[tuple[int | str, F.Node]] = [*enumerate(args), *kwargs]
            for where, a in given:
                if not (isinstance(a, F.Name) and takes(n, where)):
                    yield from absent(a, optional, takes, there)
        case F.Tuple() | F.List():  # whose items may be absent
            for a in F.children(n):
                if not isinstance(a, F.Name):
                    yield from absent(a, optional, takes, there)
        case _:
            for a in F.children(n):
                yield from absent(a, optional, takes, there)


def maybe(n: F.Node, optional: Names, there: Names = frozenset()) -> bool:
    """Whether the value of a formula may itself be None."""
    match n:
        case F.Name(id=i):
            return i in optional and i not in there
        case F.Call(func="where", args=(c, yes, no)):
            return maybe(yes, optional, there | present(c, True)) or maybe(no, optional, there | present(c, False))
    return False


def present(c: F.Node, holds: bool) -> Names:
    """Names that are no None where a condition holds, or where it does not."""
    match c:
        case (
            F.Compare(op=op, left=F.Name(id=i), right=F.NoneLit())
            | F.Compare(op=op, left=F.NoneLit(), right=F.Name(id=i))
        ):
            return frozenset({i}) if (op == "!=") == holds else frozenset()
        case F.Unary(op="not", arg=a):
            return present(a, not holds)
        case F.BoolOp(op=op, args=args) if (op == "and") == holds:
            return frozenset().union(*(present(a, holds) for a in args))
        case F.BoolOp(args=args):
            return frozenset.intersection(*(present(a, holds) for a in args))
    return frozenset()
