"""Ops composed through themselves without an end. Knows formulas and names, no types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from . import formula as F
from .errors import Diagnostics
from .model import Entry, Formula, Overload

Places = Mapping[str, tuple[Formula, F.Call]]  # an op that is called -> where


def always_called(n: F.Node) -> dict[str, F.Call]:
    """Functions that a formula calls whatever a condition says, each with a place where it does."""
    match n:
        case F.Call(func="where", args=(test, yes, no)):
            either = always_called(yes)
            return always_called(test) | {f: either[f] for f in either.keys() & always_called(no).keys()}
        case F.BoolOp(args=args):
            return always_called(args[0])
        case F.Each(over=over):  # perhaps over nothing
            return always_called(over)
    found = {n.func: n} if isinstance(n, F.Call) else {}
    for c in F.children(n):
        found |= always_called(c)
    return found


def _formulas(o: Overload) -> Iterable[Formula]:
    yield from (f for _, f in o.compose)
    yield from (r.test for r in o.require)


def endless(entries: Iterable[Entry], foreign: Collection[str], diags: Diagnostics) -> set[str]:
    """E406: ops whose composition calls itself whatever a condition says. `foreign`: ops of another library, which a
    name means before one of these."""
    own = {e.op: e for e in entries if e.op not in foreign}
    calls: dict[str, list[Places]] = {
        op: [
            {n: (f, c) for f in _formulas(o) for n, c in always_called(f.node).items() if n in own} for o in e.overloads
        ]
        for op, e in own.items()
    }
    ends: set[str] = set()  # ops with an overload that does; which one a call means, only types tell
    while found := {
        op for op in calls.keys() - ends if any(op not in called and called.keys() <= ends for called in calls[op])
    }:
        ends |= found
    bad = set()
    for op, e in own.items():
        for called in calls[op]:
            if op in called:
                path = [op, op]
            elif op in ends:
                continue
            else:
                path = [op]
                while path.count(path[-1]) == 1:
                    at = called if len(path) == 1 else calls[path[-1]][0]
                    path.append(next(n for n in at if n not in ends))
                if path[-1] != op:  # it calls such ops, and is none
                    continue
            f, call = called[path[1]]
            loc = f.loc.at(*call.span) if f.loc.width == len(f.text) else f.loc
            hint = "write it over other ops, or call it behind a condition that fails some time"
            text = f"op '{op}': composed through itself: {' -> '.join(path)}"
            diags.add("E406", loc, text, hint, [(e.loc, "the op")])
            bad.add(op)
    return bad
