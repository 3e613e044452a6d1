"""The plan of generated/: shards, and everything each of them holds. Every decision is made here or in plan_*.py.

`plan(file, kernels)` turns the checked model into records that the templates print.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from . import cpp_types as C
from . import formula as F
from . import markers
from .errors import Diagnostics
from .model import Diff, Entry, Loc, OpFile, Overload, Result
from .plan_batch import Batching
from .plan_formulas import words
from .plan_loop_forms import Loop
from .plan_ops import Context, Elementwise, Fault, Forward, OverloadNames
from .plan_tangent import Backward
from .plan_terms import Ops, TermError, Terms, Use, Value, describe, result_count
from .plan_types import Function, OverloadPlan, Plan, PlanFault, Shard, Spec
from .reserved import reserved_op

SHARD_SIZE = 40
# The loops of an entry are compiled once per instruction set: an edit of one recompiles its shard's.
LOOP_SHARD_SIZE = 20


def shards_of(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Family by family; one of more than SHARD_SIZE entries (with loops: LOOP_SHARD_SIZE) is split evenly, in
    alphabetical order."""
    families: dict[str, list[Entry]] = {}
    for e in entries:
        families.setdefault(e.family.name, []).append(e)
    out: dict[str, list[Entry]] = {}
    for family in sorted(families):
        items = sorted(families[family], key=lambda e: e.op)
        parts = -(-len(items) // (LOOP_SHARD_SIZE if items[0].elementwise else SHARD_SIZE))
        if parts == 1:
            out[family] = items
            continue
        # Cut by first letters at fixed shares: an entry more or less moves few others.
        size = -(-len(items) // parts)
        for k in range(parts):
            out[f"{family}_{k + 1}"] = items[k * size : (k + 1) * size]
    return out


class PlanError(Exception):
    """Formulas that have no C++ form, as diagnostics."""

    def __init__(self, diags: Diagnostics) -> None:
        super().__init__(f"{len(diags)} formulas cannot be rendered")
        self.diags = diags


def declared_kernels(path: str) -> dict[str, str]:
    """Kernel -> header to include, of the project an ops file belongs to."""
    root = Path(path).resolve().parent
    if not (root / "csrc").is_dir():
        return {}
    found = markers.scan(root).kernels
    return {name: where.rpartition(":")[0].removeprefix("csrc/") for name, where in found.items()}


def plan(file: OpFile, kernels: Mapping[str, str] | None = None, base: OpFile | None = None) -> Plan:
    """`kernels`: declared kernels and their headers (scanned by default). `base`: ops of another library that formulas
    may call. Raises PlanError with every formula that cannot be rendered."""
    if kernels is None:
        kernels = declared_kernels(file.path)
    taken = base.by_name if base else {}
    known = file.by_name | taken  # a name that both have means the library's
    own = tuple(replace(e, symbol=f"{e.op}_own") if e.op in taken or reserved_op(e.op) else e for e in file.entries)
    file = replace(file, entries=own)
    ops = Ops(known)
    where: dict[str, str] = {}
    grouped = shards_of(e for e in file.entries)
    for shard, entries in grouped.items():
        where |= {e.op: shard for e in entries if e.op not in taken}
    planned: dict[str, tuple[list[OverloadPlan], set[str]]] = {}
    faults: list[PlanFault] = []
    for shard, entries in grouped.items():
        ctx = Context(ops, kernels, shard)
        plans: list[OverloadPlan] = []
        headers: set[str] = set()
        for e in entries:
            if e.python is not None:
                continue
            for o in e.overloads:
                try:
                    plans.append(plan_overload(e, o, ctx))
                except Fault as fault:
                    faults.append(fault.fault)
                    continue
                headers |= kernel_headers(e, o, ctx)
        planned[shard] = plans, headers
    may_go_deep = recursive(file.entries, taken, planned)
    for plans, headers in planned.values():
        if any(Use(p.op, p.index) in may_go_deep for p in plans):
            headers.add("ops/recursion.h")
            plans[:] = [guarded(p) if Use(p.op, p.index) in may_go_deep else p for p in plans]
    on_memory = called_on_memory([p for plans, _ in planned.values() for p in plans])
    shards = []
    for shard, (plans, headers) in planned.items():
        entries = grouped[shard]
        plans = [
            p if p.through is None or Use(p.op, p.index) in on_memory
            else replace(p, functions=(p.through, *p.functions[1:]))
            for p in plans
        ]  # fmt: skip
        uses = {u for p in plans for u in p.uses if where.get(u.op) != shard}
        shards.append(
            Shard(
                shard, entries[0].family.name, tuple(plans), declarations(uses, known), tuple(sorted(headers)),
                tuple(e.op for e in entries),
            )
        )  # fmt: skip
    if faults:
        diags = Diagnostics(file.path)
        diags.source = file.source
        for f in faults:
            diags.add("E409", Loc(f.line, f.col, f.width), f"op '{f.op}', {f.where}: {f.message}")
        raise PlanError(diags)
    return Plan(tuple(shards), file, base is None)


def called_on_memory(plans: Iterable[OverloadPlan]) -> set[Use]:
    """What gradient formulas call on plain memory, and the compositions among it in turn."""
    by_use = {Use(p.op, p.index): p for p in plans}
    queue = [u for p in by_use.values() if p.node is not None for u in p.uses]
    found: set[Use] = set()
    while queue:
        u = queue.pop()
        if u in found:
            continue
        found.add(u)
        if u in by_use and by_use[u].through is not None:
            queue += by_use[u].uses
    return found


def recursive(
    entries: Iterable[Entry], foreign: Container[str], planned: Mapping[str, tuple[list[OverloadPlan], set[str]]]
) -> set[Use]:
    """Compositions that may call themselves, also by way of others: values decide how deep."""
    composed = {Use(e.op, o.index) for e in entries if e.op not in foreign for o in e.overloads if o.compose}
    calls = {u: composed & {*p.uses} for plans, _ in planned.values() for p in plans for u in [Use(p.op, p.index)]}

    def reached(u: Use) -> set[Use]:
        found: set[Use] = set()
        queue = [u]
        while queue:
            new = calls.get(queue.pop(), set()) - found
            found |= new
            queue += new
        return found

    return {u for u in composed if u in reached(u)}


def guarded(p: OverloadPlan) -> OverloadPlan:
    """A composition that asks for room on the stack before it calls itself."""
    ask = f"require_stack({p.schema}.name);"
    return replace(p, helpers=tuple(replace(f, body=(ask, *f.body)) if f.template else f for f in p.helpers))


def kernel_headers(e: Entry, o: Overload, ctx: Context) -> set[str]:
    name = o.kernel or e.op
    follows = {"kernels/number.h"} if e.elementwise and e.promote == "input" else set()
    return follows | {ctx.kernels[k] for k in (name, name + "_") if k in ctx.kernels}


def declarations(uses: set[Use], known: Mapping[str, Entry]) -> tuple[str, ...]:
    """Functions of other shards, declared where they are called: no header of theirs is included."""
    out = []
    for u in sorted(uses):
        sig = known[u.op].overloads[u.overload].sig
        worlds = ("Storage", "TensorRef") if sig.tensor_args else ("Storage",)
        for world in worlds:
            name = C.function_name(u.op) if sig.tensor_args else f"make_{u.op}"
            out.append(f"{C.result_type(sig.results, world)} {name}({C.params_text(sig.args, world)});")
    return tuple(out)


def plan_overload(e: Entry, o: Overload, ctx: Context) -> OverloadPlan:
    x = OverloadNames(e, o)
    elementwise = Elementwise(x) if e.elementwise else None
    loops: list[Loop] = []
    specs: list[Spec] = []
    loop = spec = None
    if elementwise is not None and x.has_loop:
        loop, spec = elementwise.forward()
        loops.append(loop)
        specs.append(spec)
    backward = Backward(x, ctx, elementwise)
    for f in backward.formulas.values():
        if f.loop is not None and f.spec is not None:
            loops.append(f.loop)
            specs.append(f.spec)
    if backward.together is not None:
        loops.append(backward.together[0])
        specs.append(backward.together[1])
    forward = Forward(x, ctx, elementwise, loop, spec)
    call, set_tangent = backward.tangent()
    record = backward.record() if x.has_node else []
    masks = elementwise.mask_bits(tuple(a.name for a in x.singles)) if elementwise else 0
    batching = Batching(x, masks)
    functions = [forward.storage(), forward.tensor(record, call, batching.hook())]
    inplace = bool(e.inplace and o.sig.args and o.sig.args[0].type.is_tensor and not o.sig.args[0].type.optional)
    if inplace:
        functions.append(
            forward.inplace(
                backward.record(inplace=True) if x.has_node else [],
                backward.after_inplace() if x.has_node else [],
                batching.hook("_"),
            )
        )
    if e.out and loop is not None:
        functions.append(forward.out(batching.hook("_out")))
    helpers = [*backward.helpers, *batching.functions(inplace)]
    uses = backward.uses | forward.uses
    if x.composed:
        composed, used = compose(x, ctx)
        helpers.append(composed)
        uses |= used
    if set_tangent is not None:
        helpers.append(set_tangent)
    node = backward.node() if x.has_node else None
    return OverloadPlan(
        op=e.op, index=o.index, title=o.sig.text or e.op, notes=notes(x, backward), schema=x.schema,
        own_schema="" if x.has_node else x.schema_init, node=node, specs=tuple(specs), loops=tuple(loops),
        helpers=tuple(helpers), functions=tuple(functions), methods=backward.methods() if x.has_node else (),
        uses=tuple(sorted(uses)), through=forward.through(),
    )  # fmt: skip


def _where_readable(test: F.Node, scope: Mapping[str, Value]) -> F.Node:
    """A condition that reads elements, left out where there are none to read: inside vmap."""
    read = {n for c in F.walk(test) if isinstance(c, F.Call) and c.func in ("least", "greatest") for n in F.names(c)}
    guards = []
    for n in sorted(read):
        kind = scope[n].type if n in scope else None
        if kind is not None and kind.is_tensor:
            there = f"not ({n} == None) and " if kind.optional else ""
            guards.append(F.parse(f"{there}not readable({n})"))
    return F.BoolOp("or", (*guards, test)) if guards else test


def compose(x: OverloadNames, ctx: Context) -> tuple[Function, set[Use]]:
    """The op as a template over both worlds: named values in order, the results last."""
    scope: dict[str, Value] = {}
    for a in x.sig.args:
        scope[a.name] = Value(C.cpp_name(a.name), a.type)
    first = next((C.cpp_name(a.name) for a in x.singles if not a.type.optional), "")
    body: list[str] = []
    used: set[Use] = set()
    results = {r.name for r in x.results}
    single_last = len(x.results) == 1

    def checks(count: int) -> None:
        """What is required once so many lets are there."""
        for r in x.o.require:
            if r.after != count:
                continue
            terms = Terms(ctx.ops, dict(scope), "V", f"dtype({first})" if first else "")
            f = r.test
            try:
                test = terms.of_type(_where_readable(r.test.node, scope), C.BOOL)
                shown = []
                for f in r.shown:
                    shown.append(terms.walk(f.node).text)
            except TermError as e:
                raise x.fault("require", e.message, f.loc.at(*e.span)) from None
            used.update(terms.used)
            values = f", {{{', '.join(shown)}}}" if shown else ""
            # Of an internal op's error the caller's name comes in front.
            name = '""' if x.entry.home == ("internal",) else f"{x.schema}.name"
            body.append(f"if (TP_UNLIKELY(!({test})))")
            body.append(f"  refuse({name}, ErrorKind::{r.error}, {C.string_literal(r.message)}{values});")

    checks(0)
    for k, (name, f) in enumerate(x.o.compose):
        terms = Terms(ctx.ops, dict(scope), "V", f"dtype({first})" if first else "")
        try:
            v = terms.walk(f.node)
            r = x.sig.result(name)
            if r is not None:
                v = as_result(terms, v, r, f.node)
            elif v.literal and v.type.is_list:  # a list as a value of its own
                v = Value(terms.to(v, v.type, f.node), v.type)
        except TermError as e:
            raise x.fault(f"compose '{name}'", e.message, f.loc.at(*e.span)) from None
        used |= terms.used
        last = k == len(x.o.compose) - 1
        if single_last and name in results and last and not any(r.after == k + 1 for r in x.o.require):
            body.append(f"return {v.text};")
        else:
            var = C.cpp_name(name)
            body.append(f"const auto {var} = {v.text};")
            scope[name] = Value(var, v.type)
        checks(k + 1)
    if single_last and not body[-1].startswith("return "):
        body.append(f"return {C.cpp_name(x.results[0].name)};")
    if not single_last:
        body.append(f"return {{{', '.join(C.cpp_name(r.name) for r in x.results)}}};")
    # A kernel beside the formula may take arguments that the formula has no use for.
    params = C.params_text(x.sig.args, "V", words(" ".join(body)))
    head = f"{C.result_type(x.results, 'V')} {x.base}_compose({params})"
    return Function(head, tuple(body), template=True), used


def as_result(terms: Terms, v: Value, r: Result, n: F.Node) -> Value:
    """The value of a formula as a result of the op; one of another type is the formula's fault."""
    if count := result_count(v.type):
        each = ", ".join(f"{F.to_text(n)}[{k}]" for k in range(count))
        say = f"[{each}]" if r.type.is_list else f"{F.to_text(n)}[0] for the first"
        raise TermError(f"{count} results where '{r.name}' is {describe(r.type)}; say {say}", n.span)
    if v.type.base is C.TENSOR.base and v.type.is_list == r.type.is_list and not v.literal:
        return v
    return Value(terms.to(v, r.type, n), r.type)


def notes(x: OverloadNames, b: Backward) -> tuple[str, ...]:
    """What a reader of the generated file wants to know: the formulas, and what is saved for them."""
    out = []
    if x.o.expr is not None:
        out.append(f"{x.results[0].name} = {x.o.expr.text}")
    for name, f in x.o.compose:
        out.append(f"{name} = {f.text}")
    for a in x.recorded:
        d = x.o.deriv[a.name]
        if d.kind is Diff.ZERO:
            out.append(f"d {a.name}: zero")
        elif d.kind is Diff.TODO:
            out.append(f"d {a.name}: missing, {d.why}")
        elif a.name in b.formulas:
            what = "d" if b.is_partial(a.name) else "vjp"
            out.append(f"{what} {a.name} = {b.formulas[a.name].text}")
    if x.has_node:
        kept = [*b.slots.tensors, *b.slots.lists, *(f"shape of {n}" for n in b.slots.shapes), *b.slots.attrs]
        out.append(f"saves: {', '.join(kept) or 'nothing'}")
    return tuple(out)
