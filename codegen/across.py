"""Facts between ops: names, methods and operators claimed twice, copied documentation, kernels nobody reaches,
arguments without a path to a result."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .cpp_types import pascal
from .errors import Diagnostics
from .flows import moving
from .markers import Declared
from .model import (
    OPERATORS,
    Diff,
    Entry,
    Loc,
    OpFile,
)  # fmt: skip


def across(entries: list[Entry], diags: Diagnostics, base: Mapping[str, Entry]) -> None:
    """`base`: entries of the library, where these are another file's; a formula that names one means it."""
    names: dict[tuple[str, str], tuple[str, Loc]] = {}

    def claim(kind: str, name: str, e: Entry, loc: Loc) -> None:
        taken = names.get((kind, name))
        if taken and taken[0] != e.op:
            what = {"m": "method", "o": "operator"}.get(kind, "name")
            shown = name if kind in "mo" or kind == "tensorplay" else f"{kind}.{name}"
            diags.add(
                "E402",
                loc,
                f"op '{e.op}': {what} '{shown}' belongs to '{taken[0]}'",
                "choose another",
                [(taken[1], taken[0])],
            )
        names.setdefault((kind, name), (e.op, loc))

    classes: dict[str, Entry] = {}
    for e in entries:
        for home in e.home:
            claim(home, e.op, e, e.loc)
        other = classes.setdefault(pascal(e.stem), e)
        if other is not e:
            text = f"op '{e.op}': the class of its nodes, {pascal(e.stem)}Backward, is that of '{other.op}'"
            diags.add("E402", e.loc, text, "choose another name", [(other.loc, other.op)])
    docs: dict[str, Entry] = {}
    for e in entries:
        for m in e.method:
            claim("m", m, e, e.keys.get("method", e.loc))
            if e.inplace:
                claim("m", m + "_", e, e.keys["inplace"])
        for o in e.operator:
            claim("o", o, e, e.keys["operator"])
            if (
                (OPERATORS[o][1] is None)
                and o in ("neg", "pos", "~", "abs")
                and e.family.name not in ("unary", "logical")
            ):
                diags.add(
                    "E208",
                    e.keys["operator"],
                    f"op '{e.op}': operator '{o}' takes one operand",
                    "the family is not unary",
                )
        for a in e.aliases:
            home, _, name = a.rpartition(".")
            for h in (home,) if home else e.home:
                claim("m" if h == "Tensor" else h, name, e, e.keys["aliases"])
        bare = re.sub(rf"\b{re.escape(e.op)}\b", "#", " ".join(e.doc.lower().split()))
        if bare in docs:
            other = docs[bare]
            loc = e.keys["doc"]
            diags.add(
                "E403",
                loc,
                f"op '{e.op}': doc is that of '{other.op}'",
                "say what sets it apart",
                [(other.keys["doc"], other.op)],
            )
        docs.setdefault(bare, e)
    ops = {**{e.op: e for e in entries}, **base}
    for e in entries:
        still(e, ops, diags)


def still(e: Entry, ops: Mapping[str, Entry], diags: Diagnostics) -> None:
    """An argument of a composition that nothing moves with, said to be differentiable (E304); such a result (E302)."""
    for o in e.overloads:
        if not o.compose or not o.diff_results:
            continue
        of = moving(o, ops)
        here = frozenset().union(*of.values())
        notes = [(f.loc, f"'{n}'") for n, f in o.compose]
        for r in o.diff_results:
            if here and not of[r.name]:
                text = f"op '{e.op}': no gradient passes from '{r.name}' to an argument, and nothing is said of it"
                diags.add("E302", r.loc, text, f"nondiff: [{r.name}]", notes)
        for name, d in o.deriv.items():
            if d.kind is Diff.DERIVED and name not in here:
                text = f"op '{e.op}': compose reads '{name}' for comparisons and indices alone: it has no derivative"
                diags.add("E304", d.loc, text, f"nondiff: [{name}]", notes)


def kernels_reached(file: OpFile) -> set[str]:
    """Kernels that entries name; for an op with an in-place form also `name_`."""
    out = set()
    for e in file.entries:
        for o in e.overloads:
            if o.kernel:
                out |= {o.kernel, o.kernel + "_"} if e.inplace else {o.kernel}
    return out


def check_kernels(file: OpFile, diags: Diagnostics, declared: Declared) -> None:
    """E405: kernels that no entry reaches."""
    reached = kernels_reached(file)
    for name, where in sorted(declared.kernels.items()):
        if name not in reached and name not in declared.internal:
            diags.add(
                "E405",
                Loc(0, 0),
                f"kernel '{name}' ({where}) is reached by no entry",
                "add 'kernel: name' to an entry, or delete it",
            )
