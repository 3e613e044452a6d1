"""Chooses one mutation per entry, by seed: a constant, a sign, a dropped reduction, a wrong slot. Entry -> Entry.

Only mutations that change a value somewhere are chosen, so that a surviving one is a hole in the tests.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from . import edits
from .check_elementwise import ElementwiseCheck
from .equivalent import _same_structured
from .errors import Diagnostics
from .formula import Node, to_text
from .functions import Unavailable
from .model import Deriv, Diff, Entry, Formula, OpFile, Overload
from .reference import World, elementwise_inputs, rng_for

Accept = Callable[[Entry], bool]


def mutate_file(file: OpFile, seed: int, accept: Accept = lambda _: True) -> tuple[OpFile, dict[str, str]]:
    """Every entry with a formula carries one mutation; also what was done to each. `accept`: whether it compiles."""
    world = World(file)
    entries, done = [], {}
    for e in file.entries:
        with np.errstate(all="ignore"):
            mutated = mutate(e, world, seed, accept)
        entries.append(mutated[0] if mutated else e)
        if mutated:
            done[e.op] = mutated[1]
    return replace(file, entries=tuple(entries)), done


def mutate(e: Entry, world: World, seed: int, accept: Accept = lambda _: True) -> tuple[Entry, str] | None:
    """The entry with one formula mutated, and the description. None where it has no formula."""
    rng = random.Random(seed * 1_000_003 + zlib.crc32(e.op.encode()))
    # A derivative is the harder test: values are compared in every test, so they come second.
    places = _derivatives(e)
    rng.shuffle(places)
    others = _values(e)
    rng.shuffle(others)
    if others and (not places or rng.random() < 0.2):
        places = [*others, *places]
    else:
        places = [*places, *others]
    for where, o, f in places:
        for what, node in _choices(e, o, where, f, world, rng):
            mutated = _with(e, o, where, Formula(to_text(node), node, f.loc))
            if accept(mutated):
                return mutated, f"{where}: {what} ({to_text(f.node)} -> {to_text(node)})"
    return None


def _derivatives(e: Entry) -> list[tuple[str, Overload, Formula]]:
    out = []
    for o in e.overloads:
        for name, d in o.deriv.items():
            if d.differentiable and d.formula is not None:
                out.append((f"derivative of {name}", o, d.formula))
    return out


def _values(e: Entry) -> list[tuple[str, Overload, Formula]]:
    out = []
    for o in e.overloads:
        if o.expr is not None and o.inlined is not None:
            out.append(("expr", o, Formula(to_text(o.inlined), o.inlined, o.expr.loc)))
        out += [(f"compose {name}", o, f) for name, f in o.compose]
    return out


def _choices(e: Entry, o: Overload, where: str, f: Formula, world: World, rng: random.Random) -> Iterator[edits.Edit]:
    tensors = [a.name for a in o.sig.args if a.type.is_tensor]
    scope = tensors + [r.name for r in o.sig.results] if where.startswith("derivative") else tensors
    kinds = [
        list(edits.constants(f.node)), list(edits.signs(f.node)), list(edits.reductions(f.node)),
        list(edits.slots(f.node, scope)),
    ]  # fmt: skip
    rng.shuffle(kinds)
    for group in kinds:
        rng.shuffle(group)
        for edit in group[:6]:
            if _visible(e, o, f.node, edit[1], world, where):
                yield edit


def _visible(e: Entry, o: Overload, before: Node, after: Node, world: World, where: str) -> bool:
    """Whether the mutation changes a value at ordinary points, by more than any tolerance of a test."""
    if where.startswith("compose"):
        return True
    if not e.elementwise or "vjp" in e.keys:
        return not _same_structured(e, o, before, after, world, world, {r.name: r.name for r in o.sig.results})
    probe = ElementwiseCheck(e, o, Diagnostics(""), world, [])
    try:
        with np.errstate(all="ignore"):
            for env in elementwise_inputs(e, o, rng_for(e.op + "/mutate"), 64):
                full = dict(env)
                if o.inlined is not None:
                    full[o.sig.results[0].name] = probe.value(env)
                a = np.asarray(world.evaluate(probe.inlined(before), full)) * 1.0
                b = np.asarray(world.evaluate(probe.inlined(after), full)) * 1.0
                a, b = np.broadcast_arrays(a, b)
                off = np.abs(a - b) > 1e-2 * np.maximum(1, np.abs(a))
                seen = np.where(np.isfinite(a) & np.isfinite(b), off, np.isfinite(a))
                if seen.mean() > 0.2:
                    return True
    except (Unavailable, TypeError):
        return False
    return False


def _with(e: Entry, o: Overload, where: str, f: Formula) -> Entry:
    kind, _, name = where.partition(" of ") if where.startswith("derivative") else where.partition(" ")
    if kind == "derivative":
        new = replace(o, deriv={**o.deriv, name: replace(o.deriv[name], kind=Diff.FORMULA, formula=f)})
    elif kind == "expr":
        new = replace(o, expr=f, inlined=f.node, deriv=_frozen(o))
    else:
        new = replace(o, compose=tuple((n, f if n == name else g) for n, g in o.compose))
    return replace(e, overloads=tuple(new if x.index == o.index else x for x in e.overloads))


def _frozen(o: Overload) -> dict[str, Deriv]:
    """The derivatives of the true expr, kept as they are: the mutation is in the value alone."""
    return {k: replace(d, kind=Diff.FORMULA) if d.formula is not None else d for k, d in o.deriv.items()}
