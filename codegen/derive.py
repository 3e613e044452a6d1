"""Symbolic partial derivatives of elementwise formulas, in terms of the result where that saves an operand.

Owns the chain rule and shared subexpressions. The rule of each function stands in `functions.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from .formula import (
    Binary,
    Bool,
    BoolOp,
    Call,
    Compare,
    Name,
    Node,
    NoneLit,
    Num,
    Span,
    Str,
    Unary,
    children,
    map_children,
    names,
    replace,
    size,
    substitute,
    walk,
)  # fmt: skip
from .functions import FUNCTIONS, OPERATORS, PLACES
from .simplify import ONE, ZERO, expand, from_product, is_num, product, simplify


class NoRule(Exception):
    """A function on the way has no derivative rule."""

    def __init__(self, what: str, span: Span) -> None:
        super().__init__(what)
        self.what, self.span = what, span


def partial(expr: Node, name: str, out: str = "out", tensors: Sequence[str] = (), real: bool = False) -> Node:
    """d expr / d name, simplified; reads `out` where that does not add a saved tensor.

    `expr` holds whitelisted functions only. `tensors` are the names that cost a saved slot; `real` drops conj.
    """
    own = simplify(expand(expr))
    d = simplify(_d(own, name))
    d = simplify(expand(d))
    if real:
        d = simplify(drop_conj(d))
    with_out = simplify(_in_terms_of(d, own, Name(out)))
    cost = lambda n: sum(1 for x in names(n) if x == out or x in tensors)  # noqa: E731
    return with_out if with_out != d and cost(with_out) <= cost(d) else d


def drop_conj(n: Node) -> Node:
    n = map_children(n, drop_conj)
    return n.args[0] if isinstance(n, Call) and n.func == "conj" else n


def _d(n: Node, x: str) -> Node:
    match n:
        case Name(id=i):
            return ONE if i == x else ZERO
        case Num() | Bool() | Str() | NoneLit() | Compare() | BoolOp():
            return ZERO
        case Unary(op="-", arg=a):
            return _mul(Num(-1), _d(a, x))
        case Unary(op="+", arg=a):
            return _d(a, x)
        case Unary():
            return ZERO
        case Binary(op="+" | "-" as op, left=a, right=b):
            return Binary(op, _d(a, x), _d(b, x))
        case Binary(op="*", left=a, right=b):
            return Binary("+", _mul(_d(a, x), b), _mul(_d(b, x), a))
        case Binary(op="**", left=a, right=Num(value=e)):
            # A constant exponent needs no guard: x**0 was folded before.
            da = _d(a, x)
            return ZERO if is_num(da, 0) else _mul(Binary("*", Num(e), Binary("**", a, Num(e - 1))), da)
        case Binary(op="**", left=Num(value=b) as base, right=a) if not isinstance(b, complex) and b > 0:
            return _mul(Binary("*", n, Call("log", (base,))), _d(a, x))
        case Binary(op=op, left=a, right=b) if op in OPERATORS:
            return _chain(n, op, (a, b), OPERATORS[op].rules, x)
        case Call(func="where", args=(c, a, b)):
            da, db = _d(a, x), _d(b, x)
            return ZERO if is_num(da, 0) and is_num(db, 0) else Call("where", (c, da, db))
        case Call(func=f, args=args) if f in FUNCTIONS:
            return _chain(n, f, args, FUNCTIONS[f].rules, x)
    raise NoRule(n.func if isinstance(n, Call) else type(n).__name__, n.span)


def _chain(n: Node, what: str, args: tuple[Node, ...], rules: tuple[Node | None, ...], x: str) -> Node:
    scope: dict[str, Node] = {"out": n, **dict(zip(PLACES, args, strict=False))}
    total: Node = ZERO
    for a, rule in zip(args, rules, strict=True):
        da = simplify(_d(a, x))
        if is_num(da, 0):
            continue
        if rule is None:
            raise NoRule(what, n.span)
        term = _mul(simplify(expand(substitute(rule, scope))), da)
        total = term if is_num(total, 0) else Binary("+", total, term)
    return total


def _mul(a: Node, b: Node) -> Node:
    """a * b, multiplied into the branches of where: a masked branch must not make 0 * inf."""
    if is_num(a, 0) or is_num(b, 0):
        return ZERO
    if is_num(a, 1):
        return b
    if is_num(b, 1):
        return a
    for w, other in ((a, b), (b, a)):
        if isinstance(w, Call) and w.func == "where":
            c, p, q = w.args
            return Call("where", (c, _mul(p, other), _mul(q, other)))
    return Binary("*", a, b)


def times_g(d: Node, times: Callable[[Node], Node]) -> Node:
    """A partial derivative times the incoming gradient g, multiplied into the branches of where as above: what a branch
    that is not taken does not depend on, an infinite g does not change. `times` makes the product of a branch."""
    if is_num(d, 0):
        return ZERO
    if is_num(d, 1):
        return Name("g")
    if isinstance(d, Call) and d.func == "where" and any(is_num(b, 0) or is_num(b, 1) for b in _branches(d)):
        c, p, q = d.args
        return Call("where", (c, times_g(p, times), times_g(q, times)))
    return times(d)


def _branches(n: Node) -> Iterator[Node]:
    if isinstance(n, Call) and n.func == "where":
        yield from _branches(n.args[1])
        yield from _branches(n.args[2])
    else:
        yield n


def _in_terms_of(d: Node, own: Node, out: Node) -> Node:
    """Replace the op's own value inside its derivative, also as part of a power."""
    if isinstance(own, (Name, Num)):
        return d
    d = replace(d, own, out)
    if isinstance(own, Call) and own.func == "expm1":
        d = replace(d, Call("exp", own.args), Binary("+", out, ONE))
    coef, factors = product(own)
    if coef == 1 and len(factors) == 1:
        ((base, e),) = factors.items()
        if e != 1:
            d = _powers(d, base, e, out)
    return d


def _powers(n: Node, base: Node, e: int | float, out: Node) -> Node:
    n = map_children(n, lambda c: _powers(c, base, e, out))
    if isinstance(n, Binary) and n.op in ("*", "/", "**"):
        c, f = product(n)
        k = f.get(base)
        if k and isinstance(k, int) and isinstance(e, int) and k % e == 0 and k // e > 0:
            del f[base]
            f[out] = f.get(out, 0) + k // e
            return from_product(c, f)
    return n


# ---- shared subexpressions ------------------------------------------------------------------------------------------


def cse(nodes: Sequence[Node], prefix: str = "s") -> tuple[list[tuple[str, Node]], list[Node]]:
    """Name what occurs more than once: ([(name, expr)], nodes). Lets are in order of use, each used at least twice."""
    counts: Counter[Node] = Counter()
    for n in nodes:
        for sub in walk(n):
            if children(sub) and not isinstance(sub, (Compare, BoolOp)):
                counts[sub] += 1
    # Largest first; a part that only occurs inside a named whole is not named again.
    lets: list[tuple[str, Node]] = []
    work = list(nodes)
    taken = {i for n in nodes for i in names(n)}
    for sub in sorted((s for s, k in counts.items() if k > 1), key=size, reverse=True):
        uses = sum(1 for n in [*work, *(v for _, v in lets)] for s in walk(n) if s == sub)
        if uses < 2:
            continue
        k = len(lets)
        while f"{prefix}{k}" in taken:
            k += 1
        name = f"{prefix}{k}"
        taken.add(name)
        work = [replace(n, sub, Name(name)) for n in work]
        lets = [(m, replace(v, sub, Name(name))) for m, v in lets]
        lets.append((name, sub))
    return _ordered(lets), work


def _ordered(lets: list[tuple[str, Node]]) -> list[tuple[str, Node]]:
    bodies = dict(lets)
    done: dict[str, Node] = {}

    def visit(name: str) -> None:
        if name in done:
            return
        for dep in names(bodies[name]):
            if dep in bodies:
                visit(dep)
        done[name] = bodies[name]

    for name, _ in reversed(lets):
        visit(name)
    return list(done.items())


# ---- inlining of other elementwise ops ------------------------------------------------------------------------------


_LITERALS = (Bool, NoneLit, Num, Str)


class Cycle(Exception):
    """Ops that are defined through each other."""

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(" -> ".join(path))
        self.path = path


def inline(
    n: Node, ops: Mapping[str, tuple[tuple[tuple[str, Node | None], ...], Node]], path: tuple[str, ...] = ()
) -> Node:
    """Replace calls of other elementwise ops by their expr. `ops`: name -> ((argument, default), ...), expr."""
    n = map_children(n, lambda c: inline(c, ops, path))
    if not isinstance(n, Call) or n.func in FUNCTIONS or n.func not in ops:
        return n
    if n.func in path:
        raise Cycle((*path[path.index(n.func) :], n.func))
    params, body = ops[n.func]
    given: dict[str, Node] = dict(zip((p for p, _ in params), n.args, strict=False)) | dict(n.kwargs)
    scope = {p: given.get(p, default) for p, default in params}
    ready = {p: v for p, v in scope.items() if v is not None}
    return chosen(substitute(inline(body, ops, (*path, n.func)), ready))


def chosen(n: Node) -> Node:
    """Choices that literals decide, such as that of an argument left at None."""
    n = map_children(n, chosen)
    match n:
        case Call(func="where", args=(Compare(op=("==" | "!=") as op, left=a, right=b), yes, no)) if isinstance(
            a, _LITERALS
        ) and isinstance(b, _LITERALS):
            return yes if (a == b) == (op == "==") else no
    return n
