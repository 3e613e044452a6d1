"""Plans the Python bindings of a shard: functions of each home, methods, in-place methods, operators, docstrings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import cpp_types as C
from .model import OPERATORS, TOP, Arg, Base, Entry, Overload
from .plan_docs import docstring

_KINDS = {
    Base.TENSOR: "Tensor", Base.SCALAR: "Scalar", Base.INT: "Int", Base.FLOAT: "Float", Base.BOOL: "Bool",
    Base.STR: "Str", Base.DTYPE: "Dtype", Base.DEVICE: "Device", Base.GENERATOR: "Generator",
    Base.ANY: "Any",
}  # fmt: skip
_CONVERT = {
    Base.SCALAR: "scalar", Base.INT: "int", Base.FLOAT: "double", Base.BOOL: "bool", Base.STR: "str",
    Base.DTYPE: "dtype", Base.DEVICE: "device",
}  # fmt: skip
SLOTS = {
    "+": "Add", "-": "Sub", "*": "Mul", "/": "TrueDiv", "//": "FloorDiv", "%": "Mod", "**": "Pow", "@": "MatMul",
    "&": "And", "|": "Or", "^": "Xor", "<<": "LShift", ">>": "RShift", "==": "Eq", "!=": "Ne", "<": "Lt",
    "<=": "Le", ">": "Gt", ">=": "Ge", "neg": "Neg", "pos": "Pos", "~": "Invert", "abs": "Abs",
}  # fmt: skip
_UNARY = ("neg", "pos", "~", "abs")
FACTORIES = ("factory", "random")


@dataclass(frozen=True)
class BindParam:
    name: str
    kind: str
    has_default: bool
    kwonly: bool

    @property
    def text(self) -> str:
        tail = ", true, true" if self.kwonly and self.has_default else ", false, true" if self.kwonly else ""
        tail = tail or (", true" if self.has_default else "")
        return f'{{"{self.name}", Kind::{self.kind}{tail}}}'


@dataclass(frozen=True)
class BindOverload:
    spec: str
    params: tuple[BindParam, ...]
    signature: str
    lines: tuple[str, ...]  # statements of the functional form, ending in return
    inplace: tuple[str, ...]  # of the in-place form; () where there is none


@dataclass(frozen=True)
class Bound:
    """One entry's bindings."""

    op: str  # as messages name it
    fn: str  # stem of the C++ functions
    slots: int
    overloads: tuple[BindOverload, ...]
    inplace: tuple[BindOverload, ...]  # those with an in-place form
    fields: tuple[tuple[str, str], ...]  # (name of the result type, its fields as text)
    is_method: bool
    is_function: bool
    python: tuple[str, str] | None = None  # module and function of an op written in Python
    checked: bool = True  # whether the binding checks the arguments of such an op
    has_inplace: bool = False
    inplace_function: bool = False


@dataclass(frozen=True)
class Operator:
    name: str  # C++ function
    op: str
    slot: str
    unary: bool
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    name: str
    function: str
    doc: str


@dataclass(frozen=True)
class Bindings:
    shard: str
    declares: tuple[str, ...]
    entries: tuple[Bound, ...]
    tables: tuple[tuple[str, str, tuple[Row, ...]], ...]  # (C++ table, home, rows)
    methods: tuple[Row, ...]
    operators: tuple[Operator, ...]


def home_text(home: str) -> str:
    return "" if home == TOP else home


def plan_bindings(shard: str, entries: tuple[Entry, ...]) -> Bindings:
    bound: list[Bound] = []
    tables: dict[str, list[Row]] = {}
    methods: list[Row] = []
    operators: list[Operator] = []
    for e in entries:
        b = bind(e)
        bound.append(b)
        for home, name in public_names(e):
            tables.setdefault(home, []).append(Row(name, f"{b.fn}_function", docstring(e, name)))
        for home, name in inplace_functions(e):
            tables.setdefault(home, []).append(Row(name, f"{b.fn}_inplace_function", docstring(e, name, inplace=True)))
        for name in method_names(e):
            methods.append(Row(name, f"{b.fn}_method", docstring(e, name, method=True)))
        for name in inplace_names(e):
            methods.append(Row(name, f"{b.fn}_inplace", docstring(e, name, method=True, inplace=True)))
        operators += [o for sym in e.operator for o in operator(e, sym)]
    rows = tuple(
        (f"functions_{home.replace('.', '_') or 'top'}", home, tuple(sorted(r, key=lambda x: x.name)))
        for home, r in sorted(tables.items())
    )
    return Bindings(shard, (), tuple(bound), rows, tuple(sorted(methods, key=lambda r: r.name)), tuple(operators))


def public_names(e: Entry) -> list[tuple[str, str]]:
    """(home, name) of every function the entry provides; internal ops live in a home of that name."""
    out = [(home_text(h), e.op) for h in e.home]
    for a in e.aliases:
        home, _, name = a.rpartition(".")
        if home == "Tensor":
            continue
        out += [(home_text(home), name)] if home else [(home_text(h), name) for h in e.home]
    return list(dict.fromkeys(out))


def method_names(e: Entry) -> list[str]:
    out = list(e.method)
    for a in e.aliases:
        home, _, name = a.rpartition(".")
        if (home == "Tensor" and not name.endswith("_")) or (not home and e.method):
            out.append(name)
    return list(dict.fromkeys(out))


def inplace_names(e: Entry) -> list[str]:
    """In-place methods. Fills (uniform_, zero_) have one where the functional form is not public, of another name than
    the op's where an alias says so."""
    if not e.inplace:
        return []
    if named := [a.removeprefix("Tensor.") for a in e.aliases if a.startswith("Tensor.") and a.endswith("_")]:
        return named
    return [n + "_" for n in method_names(e) or ([e.op] if e.home == ("internal",) or e.op in FILLS else [])]


def shown_name(e: Entry) -> str:
    """The op as its users know it: fills by their method alone."""
    only_inplace = e.home == ("internal",) and e.inplace and not method_names(e)
    return inplace_names(e)[0] if only_inplace else e.op


# Ops of several operands whose in-place form is a function too.
INPLACE_FUNCTIONS = (
    "addmv", "as_strided", "clamp", "clamp_max", "clamp_min", "fill", "gcd", "index_put", "lcm", "ldexp", "nan_to_num",
    "xlogy", "zero",
)  # fmt: skip
FILLS = ("fill",)


def inplace_functions(e: Entry) -> list[tuple[str, str]]:
    """(home, name) of the in-place form as a function: that of ops of one tensor, and of activations (relu_)."""
    if not e.inplace or not (e.family.name == "unary" or e.op in INPLACE_FUNCTIONS or "nn.functional" in e.home):
        return []
    if e.op in INPLACE_FUNCTIONS:
        return [("", e.op + "_")]
    return [(home, name + "_") for home, name in public_names(e) if home in ("", "nn.functional")]


def extra_params(e: Entry, o: Overload) -> list[BindParam]:
    """Arguments of the binding alone: out=, and what every factory takes."""
    extra = []
    have = {a.name for a in o.sig.args}
    if takes_out(e, o):
        extra.append(BindParam("out", "OptTensor" if len(o.sig.results) == 1 else "Any", True, True))
    if "nn.functional" in e.home and e.inplace and "inplace" not in have:
        extra.insert(0, BindParam("inplace", "Bool", True, False))
    if e.family.name in FACTORIES or (e.op.endswith("_like") and e.family.name == "memory"):
        extra += [
            BindParam(n, k, True, True)
            for n, k in (("device", "OptDevice"), ("requires_grad", "OptBool"))
            if n not in have
        ]
    return extra


def takes_out(e: Entry, o: Overload) -> bool:
    """Whether the binding takes out=: one tensor, or a tuple with one for each result."""
    return e.out and all(r.type.is_tensor for r in o.sig.results)


def kind(a: Arg) -> str:
    t = a.type
    if t.base is Base.ANY:
        return "Any"
    if t.base is Base.TENSOR and t.is_list:
        return "OptTensorList" if t.optional_items else "TensorArgs" if a.starred else "TensorList"
    if t.optional_items:
        return "SizeList"
    name = _KINDS[t.base] + ("List" if t.is_list else "")
    return ("Opt" if t.optional else "") + name


def convert(a: Arg, i: int) -> str:
    """The argument of slot i as the C++ value the op takes."""
    t = a.type
    if t.base is Base.TENSOR:
        if not a.required and a.default is not None:  # a number that stands for a tensor
            absent = f"TensorArg(ops::{C.literal(a.default, t, 'TensorRef')})"
            return f"(a.has({i}) ? to_tensor(spec, a, {i}) : {absent}).ref()"
        f = "to_tensor_list" if t.is_list else "to_opt_tensor" if t.optional else "to_tensor"
        return f"{f}(spec, a, {i})" + ("" if t.is_list else ".ref()")
    if t.base is Base.GENERATOR:
        return f"to_opt_generator(spec, a, {i})"
    stem = _CONVERT[t.base]
    if t.is_list:
        stem = {Base.INT: "dims", Base.FLOAT: "doubles"}.get(t.base, stem + "s")
    if t.optional:
        text = f"to_opt_{stem}(spec, a, {i})"
        if not a.required and a.default is not None:
            return f"a.has({i}) ? {text} : {C.member_type(t)}({C.literal(a.default, t)})"
        return text
    if a.required:
        return f"to_{stem}(spec, a, {i})"
    if t.base is Base.TENSOR:
        return f"to_tensor(spec, a, {i})"
    return f"to_{stem}(spec, a, {i}, {C.literal(a.default, t)})"


_RANK = {
    Base.BOOL: 0, Base.INT: 1, Base.FLOAT: 2, Base.SCALAR: 3, Base.TENSOR: 4, Base.STR: 0, Base.DTYPE: 0,
    Base.DEVICE: 0, Base.GENERATOR: 0, Base.ANY: 9,
}  # fmt: skip


def specificity(o: Overload) -> tuple[int, ...]:
    """The order in which signatures are tried: what takes fewer kinds of values first, a number before a tensor (which
    takes numbers too), a bool before an int, single values before lists."""
    return tuple(_RANK[a.type.base] + 10 * a.type.is_list for a in o.sig.args if not a.kwonly)


def bind(e: Entry) -> Bound:
    overloads = []
    fields: list[tuple[str, str]] = []
    slots = 0
    for o in sorted(e.overloads, key=specificity):
        suffix = str(o.index) if o.index else ""
        spec = f"k{C.pascal(e.op)}{suffix}Spec"
        extra = extra_params(e, o)
        params = [BindParam(a.name, kind(a), not a.required, a.kwonly) for a in o.sig.args] + extra
        slots = max(slots, len(params))
        args = [] if e.python is not None else [convert(a, i) for i, a in enumerate(o.sig.args)]
        lines: list[str] = []
        call = f"ops::{C.function_name(e.stem)}({', '.join(args)})"
        has_tensors = any(a.type.base is Base.TENSOR for a in o.sig.args)
        if e.when:
            # Only the results that are asked for: a plain tuple, or the first alone.
            at = {a.name: i for i, a in enumerate(o.sig.args)}
            asked = [convert(o.sig.args[at[e.when[r.name]]], at[e.when[r.name]]) if r.name in e.when else "true"
                     for r in o.sig.results]  # fmt: skip
            wrapped = f"wrap_chosen({call}, {{{', '.join(asked)}}})"
        elif len(o.sig.results) > 1:
            result = f"k{C.pascal(e.op)}{suffix}Result"
            wrapped = f"wrap_named({result}, {call})"
        else:
            wrapped = f"wrap({call})"
        for k, p in enumerate(extra, len(o.sig.args)):
            if p.name == "out" and o.inlined is not None:
                into = ", ".join([*args, f"to_tensor(spec, a, {k})"])
                lines.append(f"if (a.given({k})) return wrap(ops::{e.stem}_out({into}));")
            elif p.name == "out":
                lines.append(f"if (a.given({k})) return written_out(spec.op, {wrapped}, a[{k}]);")
            elif p.name == "inplace":
                lines += [
                    f"if (a.has({k}) && to_bool(spec, a, {k})) {{",
                    f"  ops::{e.stem}_({', '.join(args)});",
                    "  Py_INCREF(a[0]);",
                    "  return a[0];",
                    "}",
                ]
            elif p.name == "device":
                lines.append(f"if (a.given({k})) to_device(spec, a, {k});  // refuses what is not there")
        if len(o.sig.results) > 1 and e.python is None and not e.when:
            fields.append((result, ", ".join(f'"{r.name}"' for r in o.sig.results)))
            lines.append(returned(wrapped, has_tensors))
        elif any(p.name == "requires_grad" for p in extra):
            k = len(o.sig.args) + [p.name for p in extra].index("requires_grad")
            lines.append(returned(f"wrap_leaf({call}, a[{k}])", has_tensors))
        else:
            lines.append(returned(wrapped, has_tensors))
        first = o.sig.args[0] if o.sig.args else None
        inplace: tuple[str, ...] = ()
        if e.python is not None:
            lines = []
        elif e.inplace and first is not None and first.type.is_tensor and not first.type.optional:
            inplace = (f"ops::{e.stem}_({', '.join(args)});", "Py_INCREF(self);", "return self;")
        overloads.append(BindOverload(spec, tuple(params), o.sig.text or e.op, tuple(lines), inplace))
    return Bound(
        shown_name(e), C.function_name(e.op), slots, tuple(overloads), tuple(x for x in overloads if x.inplace),
        tuple(fields),
        bool(method_names(e)), bool(public_names(e)), python_target(e),
        not any(a.type.has_tensor and a.type.is_list for o in e.overloads for a in o.sig.args), bool(e.inplace),
        bool(inplace_functions(e)),
    )  # fmt: skip


def python_target(e: Entry) -> tuple[str, str] | None:
    """Module and function of an op written in Python. Where it takes a list of tensors, they may also come one by one,
    and the function checks them."""
    if e.python is None:
        return None
    module, _, name = e.python.partition(":")
    return module, name


def returned(value: str, has_tensors: bool) -> str:
    """The return of a result, in the class of the tensors it was made of."""
    return f"return kept({value}, spec, a);" if has_tensors else f"return {value};"


def operator(e: Entry, sym: str) -> list[Operator]:
    """The operator's function, and its in-place twin where the op has one."""
    unary = sym in _UNARY
    need = 1 if unary else 2
    for o in e.overloads:
        tensors = o.sig.args[:need]
        if (
            len(tensors) == need
            and all(a.type.is_tensor for a in tensors)
            and all(not a.required for a in o.sig.args[need:])
        ):
            break
    else:
        return []
    rest = [C.literal(a.default, a.type, "TensorRef") for a in o.sig.args[need:]]
    slot = SLOTS[sym]
    stem = f"{C.function_name(e.op)}_operator_{slot.lower()}"
    if unary:
        call = f"return kept(wrap(ops::{C.function_name(e.op)}({', '.join(['tensor_of(self)', *rest])})), self);"
        return [Operator(stem, e.op, slot, True, (call,))]
    head = (
        "OperandArg a = operator_operand(left), b = operator_operand(right);",
        "if (!a.ok || !b.ok) Py_RETURN_NOTIMPLEMENTED;",
    )
    args = ", ".join(["a.value", "b.value", *rest])
    call = f"return kept(wrap(ops::{C.function_name(e.op)}({args})), left, right);"
    out = [Operator(stem, e.op, slot, False, (*head, call))]
    if e.inplace and OPERATORS[sym][2]:
        lines = (*head, f"ops::{e.stem}_({args});", "Py_INCREF(left);", "return left;")
        out.append(Operator(stem + "_inplace", e.op, "I" + slot, False, lines))
    return out


def homes(bindings: Mapping[str, Bindings]) -> tuple[str, ...]:
    return tuple(sorted({home for b in bindings.values() for _, home, _ in b.tables}))
