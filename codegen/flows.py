"""Which arguments of a composition a result moves with. Knows formulas and what the ops they call say, no numbers."""

from __future__ import annotations

from collections.abc import Mapping

from . import formula as F
from .model import DTYPE_GROUPS, Diff, Entry, Overload

Scope = Mapping[str, frozenset[str]]
_NONE: frozenset[str] = frozenset()


def moving(o: Overload, ops: Mapping[str, Entry]) -> dict[str, frozenset[str]]:
    """Of each result that carries a gradient: arguments with a path to it that is no comparison, condition, index or
    number of elements."""
    scope: dict[str, frozenset[str]] = {a.name: frozenset({a.name}) for a in o.sig.tensor_args}
    values = {name: f.node for name, f in o.compose}
    for name, f in o.compose:
        n = f.node
        if isinstance(n, F.Subscript) and _still(_called(n.value, values), n.index, ops):
            scope[name] = _NONE
        else:
            scope[name] = _flow(n, scope, ops)
    return {r.name: scope.get(r.name, _NONE) for r in o.diff_results}


def _called(n: F.Node, values: Mapping[str, F.Node]) -> F.Node:
    while isinstance(n, F.Name) and n.id in values:
        n = values[n.id]
    return n


def _still(call: F.Node, index: F.Node, ops: Mapping[str, Entry]) -> bool:
    """Whether one of several results of an op is of those that carry no gradient."""
    k = index.value if isinstance(index, F.Num) else None
    if not (isinstance(k, int) and isinstance(call, F.Call) and call.func in ops):
        return False
    of = [o for o in ops[call.func].overloads if 1 < len(o.sig.results) > k >= 0]
    return bool(of) and all(o.sig.results[k].name in o.nondiff_results for o in of)


def _flow(n: F.Node, scope: Scope, ops: Mapping[str, Entry]) -> frozenset[str]:
    def of(*nodes: F.Node) -> frozenset[str]:
        return _NONE.union(*(_flow(x, scope, ops) for x in nodes))

    match n:
        case F.Name(id=i):
            return scope.get(i, _NONE)
        case F.Compare() | F.BoolOp() | F.Unary(op="not") | F.Unary(op="~"):
            return _NONE
        case F.Subscript(value=v):
            return of(v)
        case F.Each(body=body, var=var, over=over):
            return _flow(body, {**scope, var: of(over)}, ops)
        case F.Call(func="where", args=(_, *rest)):
            return of(*rest)
        case F.Call(func="cast", args=(_, F.Str(value=v))) if v == "bool" or v in DTYPE_GROUPS["int"]:
            return _NONE
        case F.Call(func=f, args=args, kwargs=kwargs):
            given: list[tuple[int | str, F.Node]] = [*enumerate(args), *kwargs]
            return of(*(x for place, x in given if _carries(f, place, ops)))
    return of(*F.children(n))


def _carries(f: str, place: int | str, ops: Mapping[str, Entry]) -> bool:
    """Whether a function or op passes a gradient to an argument, by position or name. What is unknown does."""
    from .structured import META

    if f in META:
        return False
    if f in ops:
        said = []
        for o in ops[f].overloads:
            a = o.sig.arg(place) if isinstance(place, str) else o.sig.args[place] if place < len(o.sig.args) else None
            if a is not None and a.type.has_tensor:
                said.append(o.deriv[a.name].kind is not Diff.NONDIFF)  # zero is a derivative
        return any(said)
    return True
