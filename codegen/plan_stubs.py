"""Plans the type stubs: functions of every home and the methods of Tensor, with the types a caller may pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .cpp_types import default_text
from .model import OPERATORS, Arg, Base, Entry, OpFile, Overload, Type
from .plan_bind import FACTORIES, inplace_functions, inplace_names, method_names, public_names, takes_out
from .plan_docs import WIDTH


@dataclass(frozen=True)
class StubDef:
    """One def; overloaded ones carry @overload."""

    name: str
    params: str
    returns: str
    doc: str
    overloaded: bool


@dataclass(frozen=True)
class Stub:
    path: str
    title: str
    defs: tuple[StubDef, ...]
    results: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # named tuples: class, fields


_SIMPLE = {
    Base.SCALAR: "Number", Base.INT: "int", Base.FLOAT: "float", Base.BOOL: "bool", Base.STR: "str",
    Base.DTYPE: "dtype", Base.DEVICE: "DeviceLike", Base.GENERATOR: "Generator",
    Base.ANY: "Any",
}  # fmt: skip


def arg_type(t: Type, operand: bool) -> str:
    """The annotation of an argument; an operand of an elementwise op may be a number."""
    if t.base is Base.TENSOR:
        if t.is_list:
            text = "Sequence[Tensor | None]" if t.optional_items else "Sequence[Tensor]"
        else:
            text = "Tensor | Number" if operand or t.or_scalar else "Tensor"
    elif t.is_list:
        item = _SIMPLE[t.base]
        several = f"{item} | None" if t.optional_items else item
        text = f"Sequence[{several}] | {item}" if t.base in (Base.INT, Base.FLOAT) else f"Sequence[{item}]"
    else:
        text = _SIMPLE[t.base]
    return f"{text} | None" if t.optional else text


def result_type(o: Overload, name: str, when: bool = False) -> str:
    if when:
        return "Any"  # one tensor or a tuple, as the flags say
    if len(o.sig.results) > 1:
        return result_class(name, o)
    t = o.sig.results[0].type
    if t.base is Base.TENSOR:
        return "tuple[Tensor, ...]" if t.is_list else "Tensor"
    return _SIMPLE[t.base]


def result_class(name: str, o: Overload) -> str:
    return f"_{name}_{o.index}_result"


def default(a: Arg) -> str:
    return "" if a.required else " = " + (default_text(a) if not isinstance(a.default, str) else repr(a.default))


def params(e: Entry, o: Overload, method: bool, inplace: bool = False) -> str:
    parts = ["self"] if method else []
    args = list(o.sig.args)
    if method:
        args = args[1:]
    operand = e.elementwise and len([a for a in o.sig.args if a.type.is_tensor]) > 1
    starred = False
    for a in args:
        if a.kwonly and not starred:
            parts.append("*")
            starred = True
        if a.starred:
            parts.append(f"*{a.name}: Tensor | Sequence[Tensor]")
            starred = True
            continue
        parts.append(f"{a.name}: {arg_type(a.type, operand)}{default(a)}")
    extra = []
    have = {a.name for a in o.sig.args}
    if takes_out(e, o) and not method and not inplace:
        kind = "Tensor" if len(o.sig.results) == 1 else "Sequence[Tensor]"
        extra.append(f"out: {kind} | None = None")
    if not method and (e.family.name in FACTORIES or (e.op.endswith("_like") and e.family.name == "memory")):
        extra += [
            x
            for x in ("device: DeviceLike | None = None", "requires_grad: bool = False")
            if x.split(":")[0] not in have
        ]
    if "nn.functional" in e.home and e.inplace and "inplace" not in have and not inplace and not method:
        parts.append("inplace: bool = False")
    if extra and not starred:
        parts.append("*")
    return ", ".join(parts + extra)


def defs(e: Entry, name: str, method: bool = False, inplace: bool = False) -> list[StubDef]:
    forms = [o for o in e.overloads if not method or (o.sig.args and o.sig.args[0].type.is_tensor)]
    out = []
    for o in forms:
        returns = "Tensor" if inplace else result_type(o, e.op, bool(e.when))
        if len(forms) > 1 and len(o.sig.args) == 1 and (a := o.sig.args[0]).starred:
            # Beside a form of one tensor: a sequence of them, or two and more.
            for given in (f"{a.name}: Sequence[Tensor], /", f"first: Tensor, second: Tensor, /, *{a.name}: Tensor"):
                out.append(StubDef(name, given, returns, first_line(e.doc), True))
            continue
        out.append(StubDef(name, params(e, o, method, inplace), returns, first_line(e.doc), len(forms) > 1))
    return out


def first_line(doc: str) -> str:
    text = " ".join(doc.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 3].rsplit(" ", 1)[0] + "..."


def plan_stubs(file: OpFile) -> tuple[Stub, ...]:
    homes: dict[str, list[tuple[str, Entry]]] = {}
    for e in file.entries:
        for home, name in public_names(e):
            homes.setdefault(home, []).append((name, e))
    changing: dict[str, list[StubDef]] = {}
    for e in file.entries:
        for home, name in inplace_functions(e):
            changing.setdefault(home, []).extend(defs(e, name, inplace=True))
    out = []
    for home, items in sorted(homes.items()):
        path = "_ops.pyi" if not home else f"_ops_{home.replace('.', '_')}.pyi"
        title = f"Functions of tensorplay{'.' + home if home else ''} that ops.yaml defines."
        ds = [d for name, e in items for d in defs(e, name)] + changing.get(home, [])
        ds.sort(key=lambda d: d.name)
        out.append(Stub(path, title, tuple(ds), results([e for _, e in items])))
    methods: list[StubDef] = []
    for e in file.entries:
        for name in method_names(e):
            methods += defs(e, name, method=True)
        for name in inplace_names(e):
            methods += defs(e, name, method=True, inplace=True)
        methods += operators(e)
    methods.sort(key=lambda d: d.name)
    used = [e for e in file.entries if e.method]
    out.append(
        Stub("_tensor.pyi", "Methods and operators of Tensor that ops.yaml defines.", tuple(methods), results(used))
    )
    return tuple(out)


def operators(e: Entry) -> list[StubDef]:
    out = []
    for sym in e.operator:
        name, reflected, inplace = OPERATORS[sym]
        if sym in ("neg", "pos", "~", "abs"):
            out.append(StubDef(name, "self", "Tensor", first_line(e.doc), False))
            continue
        kind = "object" if sym in ("==", "!=") else "Tensor" if sym == "@" else "Tensor | Number"
        names = [name, reflected] + ([inplace] if e.inplace else [])
        # CPython gives the slot of ** a third operand, in-place form excepted.
        third = {n: ", mod: None = None" for n in (name, reflected) if sym == "**"}
        out += [
            StubDef(n, f"self, other: {kind}{third.get(n, '')}, /", "Tensor", first_line(e.doc), False)
            for n in names
            if n
        ]
    return out


def results(entries: Iterable[Entry]) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    found = {}
    for e in entries:
        for o in e.overloads:
            if len(o.sig.results) > 1 and not e.when:
                found[result_class(e.op, o)] = tuple((r.name, "Tensor") for r in o.sig.results)
    return tuple(sorted(found.items()))
