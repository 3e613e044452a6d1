"""`explain OP`: what an entry says, what is derived from it and why. Text only; decides nothing."""

from __future__ import annotations

from . import formula as F
from .model import Deriv, Diff, Entry, OpFile, Overload
from .plan_batch import rule_of
from .plan_compute import share_work
from .resolve import reads_values


def explain(file: OpFile, e: Entry, code: bool = True) -> str:
    out = [f"{e.op}   family {e.family.name}, {file.path}:{e.loc.line}", *(f"  {line}" for line in e.doc.split("\n"))]
    for o in e.overloads:
        out += ["", f"  {o.sig.text}", *(f"    {line}" for line in _overload(e, o))]
    out += ["", *(f"  {line}" for line in _facts(e))]
    if code:
        out += ["", *_code(file, e)]
    return "\n".join(out) + "\n"


def _overload(e: Entry, o: Overload) -> list[str]:
    out = []
    result = ", ".join(r.name for r in o.sig.results)
    if o.expr is not None:
        out.append(f"value       {result} = {o.expr.text}")
        if o.inlined is not None and o.inlined != o.expr.node:
            out.append(f"fused       {result} = {F.to_text(o.inlined)}")
    out += [f"value       {name} = {f.text}" for name, f in o.compose]
    if o.kernel:
        out.append(f"value       kernel {o.kernel}")
    for r, f in zip(o.sig.results, o.shapes, strict=False):
        out.append(f"shape       {r.name}: {f.text}")
    if e.elementwise and len([a for a in o.sig.args if a.type.is_tensor]) > 1:
        out.append("shape       operands broadcast; each gradient is summed back to its operand")
    out += _traffic(e, o)
    for name, d in o.deriv.items():
        out.append(f"derivative  {_derivative(e, o, name, d)}")
    for arg, per in o.tangent.items():
        out += [f"tangent     {r} += {f.text}   where t is the tangent of {arg}" for r, f in per.items()]
    if o.tangent_rule:
        out.append(f"tangent     {o.tangent_rule}: the op itself on the tangents")
    elif e.elementwise and o.diff_args:
        out.append("tangent     the partials times the tangents")
    if not e.python:
        rule = rule_of(e, o)
        out.append(f"batching    {rule.name}: {rule.words}")
    return out + _saved(o)


def _traffic(e: Entry, o: Overload) -> list[str]:
    """Bytes between memory and processor for one float32 element: as one loop, and as one op after another."""
    if o.inlined is None:
        return []
    tensors = {a.name for a in o.sig.args if a.type.is_tensor}
    rows = [("forward", o.inlined, len(tensors & {*F.names(o.inlined)}) + 1, 0)]
    for a in o.diff_args:
        d = o.deriv[a.name].formula
        if d is not None:
            read = (tensors | {r.name for r in o.sig.results}) & {*F.names(d.node)}
            rows.append((f"grad {a.name}", d.node, len(read) + 2, 12))  # g is read, the gradient written
    out = []
    for what, node, fused, extra in rows:
        names = tensors | {r.name for r in o.sig.results}
        ops, apart = steps(node, names)
        apart += extra + (4 if extra and not ops else 0)
        if ops + bool(extra) > 1:
            count = ops + bool(extra)
            text = f"{4 * fused} bytes an element in one loop, {apart} in {count} ops one by one"
            out.append(f"memory      {what}: {text}")
    gradients = [f.node for a in o.diff_args if (f := o.deriv[a.name].formula) is not None]
    read = (tensors | {r.name for r in o.sig.results}) & {i for d in gradients for i in F.names(d)}
    if e.elementwise and share_work(gradients, len(read)):
        text = f"{4 * (len(read) + 1 + len(gradients))} bytes an element in one loop; what they share is computed once"
        out.append(f"memory      all gradients at once: {text}")
    return out


def steps(n: F.Node, tensors: set[str]) -> tuple[int, int]:
    """Ops that compute n one after another, and the bytes they move for an element of float32."""
    count = moved = 0
    for x in dict.fromkeys(F.walk(n)):
        kids = F.children(x)
        if not kids or not tensors & {*F.names(x)}:
            continue
        count += 1
        moved += 4 * (sum(bool(tensors & {*F.names(k)}) for k in kids) + 1)
    return count, moved


def _derivative(e: Entry, o: Overload, name: str, d: Deriv) -> str:
    match d.kind:
        case Diff.ZERO:
            return f"{name}: zero"
        case Diff.NONDIFF:
            return f"{name}: none ({'by family' if e.family.nondiff else 'not differentiable'})"
        case Diff.TODO:
            return f"{name}: missing, raises when reached: {d.why}"
        case Diff.DERIVED if d.formula is None:
            return f"{name}: through the ops it is composed of"
    assert d.formula is not None
    how = "derived from expr" if d.kind is Diff.DERIVED else "given"
    if e.elementwise and "vjp" not in e.keys:
        return f"d{o.sig.results[0].name}/d{name} = {d.formula.text}   ({how})"
    return f"grad {name} = {d.formula.text}   ({how})"


def _saved(o: Overload) -> list[str]:
    """What each name costs: its elements, its shape, or nothing, and who reads it."""
    readers: dict[str, list[str]] = {}
    shapes: dict[str, list[str]] = {}
    for name, d in o.deriv.items():
        if d.formula is not None and d.differentiable:
            values = reads_values(d.formula.node)
            for n in F.names(d.formula.node):
                (readers if n in values else shapes).setdefault(n, []).append(name)
    out = []
    for x in o.sig.members:
        if x.type.has_tensor and x.name in readers:
            out.append(f"saved       {x.name}: read by the derivative of {', '.join(readers[x.name])}")
        elif x.type.has_tensor and x.name in shapes:
            out.append(f"saved       shape of {x.name} only: read by the derivative of {', '.join(shapes[x.name])}")
        elif x.name in readers:
            out.append(f"saved       {x.name}, a plain value")
    if not out and any(d.formula for d in o.deriv.values()):
        out.append("saved       nothing")
    return out


def _facts(e: Entry) -> list[str]:
    out = [f"promotion   {e.promote}"]
    if e.inplace:
        first = e.overloads[0].sig.args[0].name
        why = "a copy is kept" if e.inplace == "save_copy" else f"no derivative reads the overwritten {first}"
        out.append(f"in place    {e.op}_: {why}")
    homes = [f"{'' if h == 'tensorplay' else h + '.'}{e.op}" for h in e.home]
    names = homes + [f"Tensor.{m}" for m in e.method] + [f"operator {o}" for o in e.operator] + list(e.aliases)
    out.append(f"names       {', '.join(names)}")
    if e.view_of:
        out.append(f"view        shares the memory of {e.view_of}")
    if e.dtypes:
        out.append(f"dtypes      {' '.join(e.dtypes)}")
    for like in e.like:
        if like is not None:
            out.append(f"reference   {like.text or like.source}")
    if e.ref:
        out.append(f"source      {e.ref}")
    return out


def _code(file: OpFile, e: Entry) -> list[str]:
    try:
        from .render import code_of
    except ImportError:
        return ["(no C++: the back half of the generator is not here)"]
    sections: dict[str, str] = code_of(file, e.op)
    out = []
    for name, text in sections.items():
        out += [f"---- {name}", text.rstrip(), ""]
    return out
