"""Plans what people read: docstrings, and the reference page of a family."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from .cpp_types import default_text
from .formula import to_text
from .model import DTYPE_GROUPS, PROMOTE, TOP, Arg, Base, Diff, Entry, Overload, Type

WIDTH = 92
_WORDS = {"i64": "int64", "i32": "int32"}


def python_type(t: Type) -> str:
    """A type in words a Python user reads."""
    name = {Base.TENSOR: "Tensor", Base.SCALAR: "number"}.get(t.base, t.base.value)
    if t.dtype:
        name += f" of {t.dtype}"
    if t.is_list:
        name = f"list of {name}" + (f" ({t.size})" if t.size else "")
    return name + (" or None" if t.optional else "")


def call_text(o: Overload, name: str, method: bool = False) -> str:
    """name(input, other, *, alpha=1); name(*tensors) where a list of tensors may come one by one."""
    parts = []
    starred = False
    for k, a in enumerate(o.sig.args):
        if method and k == 0:
            parts.append("$self")
            continue
        if a.kwonly and not starred:
            parts.append("*")
            starred = True
        if a.starred:
            parts.append(f"*{a.name}")
            starred = True
            continue
        parts.append(a.name + (f"={default_text(a)}" if not a.required else ""))
    return f"{name}({', '.join(parts)})"


def docstring(e: Entry, name: str, method: bool = False, inplace: bool = False) -> str:
    """Text of help(): a signature line for inspect, the doc, the forms, types and derivatives."""
    lines = []
    if len(e.overloads) == 1:
        lines += [call_text(e.overloads[0], name, method), "--", ""]
    doc = e.doc if not inplace else f"{e.doc} In place: self is overwritten and returned."
    lines += textwrap.wrap(doc, WIDTH)
    if len(e.overloads) > 1:
        lines += ["", "Forms:"] + ["  " + o.sig.text for o in e.overloads]
    if not inplace:
        lines += details(e)
    return "\n".join(lines)


def details(e: Entry) -> list[str]:
    lines: list[str] = []
    args: dict[str, Arg] = {a.name: a for o in e.overloads for a in o.sig.args}
    if args:
        lines += ["", "Args:"]
        for a in args.values():
            default = f", default {default_text(a)}" if not a.required else ""
            lines.append(f"  {a.name}: {python_type(a.type)}{default}")
    formulas = derivatives(e)
    if formulas:
        lines += ["", "Derivative:"] + [f"  {f}" for f in formulas]
    if e.special:
        lines += ["", "Special values:"] + [
            "  " + ", ".join(f"{k} = {v}" for k, v in s.values.items()) for s in e.special
        ]
    if e.ref:
        lines += ["", f"Reference: {e.ref}"]
    return lines


def derivatives(e: Entry) -> list[str]:
    out = []
    for o in e.overloads:
        for a in o.sig.tensor_args:
            d = o.deriv.get(a.name)
            if d is None:
                continue
            if d.kind is Diff.ZERO:
                out.append(f"d {a.name} = 0")
            elif d.kind is Diff.TODO:
                out.append(f"d {a.name}: not implemented, {d.why}")
            elif d.formula is not None:
                word = "d" if e.elementwise and "vjp" not in e.keys else "gradient of"
                out.append(f"{word} {a.name} = {to_text(d.formula.node)}")
    return list(dict.fromkeys(out))


@dataclass(frozen=True)
class Page:
    """One entry on a reference page."""

    op: str
    title: str
    signatures: tuple[str, ...]
    doc: str
    facts: tuple[tuple[str, str], ...]


def public_name(e: Entry) -> str:
    home = next((h for h in e.home if h != "internal"), e.home[0])
    return f"tensorplay.{e.op}" if home == TOP else f"tensorplay.{home}.{e.op}"


def page(e: Entry) -> Page:
    facts: list[tuple[str, str]] = []
    also = [*(f"`{a}`" for a in e.aliases), *(f"`Tensor.{m}`" for m in e.method)]
    if e.inplace:
        also.append(f"`Tensor.{(e.method or (e.op,))[0]}_`")
    also += [f"operator `{o}`" for o in e.operator]
    if also:
        facts.append(("also", ", ".join(also)))
    for o in e.overloads:
        if o.expr is not None:
            facts.append(("value", f"`{o.sig.results[0].name} = {o.expr.text}`"))
        for name, f in o.compose:
            facts.append(("value", f"`{name} = {f.text}`"))
        if o.shapes:
            facts.append(("shape", ", ".join(f"`{f.text}`" for f in dict.fromkeys(o.shapes))))
    facts += [("derivative", f"`{f}`") for f in derivatives(e)]
    facts.append(("dtypes", dtypes(e)))
    if result := result_dtype(e):
        facts.append(("result", result))
    for s in e.special:
        facts.append(("special", "`" + ", ".join(f"{k} = {v}" for k, v in s.values.items()) + "`"))
    if not e.deterministic:
        facts.append(("deterministic", "no"))
    if e.ref:
        facts.append(("reference", e.ref))
    merged: dict[str, str] = {}
    for key, text in facts:
        merged[key] = f"{merged[key]}; {text}" if key in merged else text
    shown = next((a for a in e.aliases if "." in a and not a.startswith("Tensor.")), None)
    title = public_name(e)
    if "internal" in e.home:  # its own name is, an alias may be public
        title = f"tensorplay.{shown}" if shown else f"{e.op} (internal)"
    return Page(e.op, title, tuple(o.sig.text for o in e.overloads), e.doc, tuple(merged.items()))


def result_dtype(e: Entry) -> str:
    """What the entry says of the dtype of its results; where a kernel or a composition decides, nothing."""
    fixed = {r.name: r.type.dtype for o in e.overloads for r in o.sig.results if r.type.dtype}
    names = {r.name for o in e.overloads for r in o.sig.results}
    if fixed and names == {*fixed}:
        return ", ".join(dict.fromkeys(f"{_WORDS.get(d, d)}" for d in fixed.values()))
    said = [PROMOTE[e.promote]] if e.elementwise or "promote" in e.keys else []
    return "; ".join([*said, *(f"{name} is {_WORDS.get(d, d)}" for name, d in fixed.items())])


def dtypes(e: Entry) -> str:
    if not e.dtypes:
        return "all its formula allows" if e.elementwise or any(o.compose for o in e.overloads) else "all"
    groups = [g for g, names in DTYPE_GROUPS.items() if all(n in e.dtypes for n in names)]
    rest = [n for n in e.dtypes if not any(n in DTYPE_GROUPS[g] for g in groups)]
    return ", ".join([*groups, *rest])
