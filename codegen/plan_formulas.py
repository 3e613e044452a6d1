"""Plans the gradient formulas of one overload: each becomes a template over both worlds,
elementwise ones also a fused loop; and derives what a node must keep for them: tensors, sizes only, arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from . import cpp_types as C
from .cpp_types import BOOL, DIMS, DTYPE, TENSOR
from .derive import times_g
from .formula import Bool, Call, Name, Node, Num, Subscript, names, to_text
from .model import Arg, Base, Diff
from .plan_loop_forms import Loop
from .plan_ops import Context, Elementwise, OverloadNames
from .plan_terms import SHAPES, TermError, Terms, Use, Value, reads, split_meta
from .plan_types import Function, Spec
from .simplify import expand


@dataclass(frozen=True)
class Input:
    """One parameter of a formula's function: where its argument comes from is decided by the caller's world."""

    name: str  # C++ parameter
    kind: str  # g | tensor | list | shape | shapes | dtype | has | attr
    of: str  # the argument or result it belongs to
    param: str  # C++ parameter declaration with V


@dataclass
class Formula:
    """A gradient or tangent formula, rendered."""

    arg: str
    function: Function
    name: str
    inputs: tuple[Input, ...]
    uses: set[Use]
    loop: Loop | None = None
    spec: Spec | None = None
    loop_reads: tuple[str, ...] = ()
    constant: int | None = None  # 0: zeros, 1: g itself
    conjugates: bool = False  # the partial is conjugated
    factor: str = ""  # the whole partial is this Scalar argument: 1 as a rule
    text: str = ""

    def call(self, world: str) -> str:
        return f"{self.name}<{world}>" if self.function.template else self.name


@dataclass(frozen=True)
class Joint:
    """One call that gives the gradients of several arguments, each one of its results.

    The formulas differ in literals of `want_...` parameters alone; each becomes "is this gradient asked for".
    """

    function: Function
    name: str
    inputs: tuple[Input, ...]
    count: int  # results of the call
    results: dict[str, int]  # argument -> its result
    wants: dict[str, tuple[str, ...]]  # parameter -> the arguments that need it


@dataclass
class Slots:
    """The saved slots of a node: single tensors first, then lists."""

    tensors: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)  # arguments whose sizes are kept beside input_shape(i)
    list_shapes: list[str] = field(default_factory=list)
    has: list[str] = field(default_factory=list)
    attrs: list[str] = field(default_factory=list)
    users: dict[str, set[str]] = field(default_factory=dict)  # saved tensor -> arguments whose gradient reads it


class Formulas:
    """The gradient formulas of one overload, and what its node must keep for them."""

    def __init__(self, x: OverloadNames, ctx: Context, e: Elementwise | None) -> None:
        self.x, self.ctx, self.e = x, ctx, e
        self.multi = len(x.results) > 1
        self.list_result = len(x.results) == 1 and x.results[0].type.is_list
        self.formulas: dict[str, Formula] = {}
        self.slots = Slots()
        self.helpers: list[Function] = []
        self.uses: set[Use] = set()
        self.joints: list[Joint] = []
        self.together: tuple[Loop, Spec, tuple[str, ...]] | None = None
        if x.has_node:
            self.plan_formulas()
            self.plan_together()
            self.plan_joints()
            self.plan_slots()

    # ---- formulas ----

    def gradient_names(self) -> dict[str, str]:
        """Formula name of a gradient -> result."""
        if not self.multi:
            r = self.x.results[0].name
            return {"g": r, f"g_{r}": r}
        return {f"g_{r.name}": r.name for r in self.x.o.diff_results}

    def is_partial(self, arg: str) -> bool:
        """Whether the entry gives a partial derivative (elementwise) rather than a vjp."""
        d = self.x.o.deriv[arg]
        return self.x.entry.elementwise and not (d.kind is Diff.FORMULA and self.x.elementwise_vjp)

    def plan_formulas(self) -> None:
        x = self.x
        for a in x.recorded:
            d = x.o.deriv[a.name]
            if d.formula is None:
                continue
            node = d.formula.node
            text = to_text(node)
            try:
                if self.is_partial(a.name):
                    f = self.partial(a, node, text)
                else:
                    f = self.structured(f"{x.base}_vjp_{a.name}", a.name, node, a, self.gradient_names())
                    f.text = text
            except TermError as e:
                raise x.fault(f"derivative of '{a.name}'", e.message, d.formula.loc.at(*e.span)) from None
            self.formulas[a.name] = f
            self.uses |= f.uses
            if f.constant is None:
                self.helpers.append(f.function)

    def plan_together(self) -> None:
        """The loop that serves when every gradient is asked for."""
        if self.e is None or any(f.loop is None or f.factor for f in self.formulas.values()):
            return
        if self.formulas.keys() == {a.name for a in self.x.recorded}:
            deriv = ((a, self.x.o.deriv[a].formula) for a in self.formulas)
            self.together = self.e.gradients({a: d.node for a, d in deriv if d is not None})

    def partial(self, a: Arg, d: Node, text: str) -> Formula:
        """An elementwise partial: strong_mul(conj(d), g), fused for memory and as ops for tensors."""
        x = self.x
        assert self.e is not None
        d = expand(d)
        name = f"{x.base}_vjp_{a.name}"
        if isinstance(d, Num) and d.value in (0, 1) and not isinstance(d.value, complex):
            return Formula(a.name, Function("", ()), name, (), set(), constant=int(d.value), text=text)
        loop, spec, loop_reads = self.e.gradient(a.name, d, text)
        complex_too = "nullptr" not in loop.table[6:7]
        conjugates = complex_too and not isinstance(d, Num)
        body = times_g(d, lambda b: self.product(Call("conj_of", (b,)) if conjugates else b, Name("g"), b))
        f = self.structured(name, a.name, body, a, {"g": x.results[0].name}, world="TensorRef")
        f.loop, f.spec, f.loop_reads, f.text = loop, spec, loop_reads, text
        f.function = replace(f.function, body=(*self.fused(f, a, d), *f.function.body))
        f.conjugates = conjugates
        if isinstance(d, Name) and x.types.get(d.id) == C.SCALAR:
            f.factor = C.cpp_name(d.id)
        return f

    def fused(self, f: Formula, a: Arg, d: Node) -> list[str]:
        """The loop in place of the ops, where nothing but the value is asked for: a tangent under no_grad."""
        assert self.e is not None and f.loop is not None and f.spec is not None
        if any(b.type.optional and b.name in names(d) for b in self.x.singles):
            return []
        loop, _, _ = self.e.gradient(a.name, d, f.text, suffix="")
        operands = ", ".join(["&g", *("&" + C.cpp_name(n) for n in f.loop_reads)])
        params = f", {{{', '.join(p.argument for p in loop.params)}}}" if loop.params else ""
        call = f"fused({f.spec.name}, loops[{f.loop.enumerator}], {{{operands}}}{params})"
        return [f"if (TensorRef fast = {call}) return fast;"]

    def product(self, factor: Node, g: Node, d: Node) -> Node:
        strong = bool(self.ctx.ops.overloads("strong_mul")) and not isinstance(d, Num)
        return Call("strong_mul" if strong else "mul", (factor, g))

    def scope(
        self, node: Node, arg: str | None, gradients: dict[str, str], world: str
    ) -> tuple[Node, dict[str, Value], list[Input]]:
        """Names of the formula as C++ parameters, by kind: gradients, tensors, metadata, arguments."""
        x = self.x
        tensors = {a.name: a for a in x.tensor_args}
        results = {r.name: r for r in x.results}
        read = reads(node)
        node = split_meta(node, read, (*tensors, *results))
        found = names(node)
        scope: dict[str, Value] = {}
        inputs: list[Input] = []

        def add(i: str, kind: str, of: str, decl: str, v: Value) -> None:
            scope[i] = v
            inputs.append(Input(v.text, kind, of, decl))

        for i in found:
            if i in gradients:
                r = results[gradients[i]]
                v = C.cpp_name(i)
                if r.type.is_list:
                    add(i, "g", r.name, f"std::span<const {world}> {v}", Value(v, r.type))
                else:
                    add(i, "g", r.name, f"const {world}& {v}", Value(v, TENSOR))
        for i in found:
            known = tensors.get(i) or results.get(i)
            if known is not None and known.type.base is Base.TENSOR:
                v = C.cpp_name(i)
                if known.type.is_list:
                    add(i, "list", i, f"std::span<const {world}> {v}", Value(v, known.type))
                else:
                    add(i, "tensor", i, f"const {world}& {v}", Value(v, known.type))
        for i in found:
            of = i.rpartition("_")[0]
            if i.endswith("_shape") and (of in tensors or of in results) and i not in x.types:
                known = tensors.get(of) or results[of]
                if known.type.is_list:
                    add(i, "shapes", of, f"const Shapes& {i}", Value(i, SHAPES))
                else:
                    add(i, "shape", of, f"const Shape& {i}", Value(i, DIMS))
            elif i.endswith("_dtype") and (of in tensors or of in results) and i not in x.types:
                add(i, "dtype", of, f"Dtype {i}", Value(i, DTYPE))
            elif i.startswith("has_") and i[4:] in tensors:
                add(i, "has", i[4:], f"bool {i}", Value(i, BOOL))
        for i in found:
            if i in x.types and not x.types[i].has_tensor:
                v = C.cpp_name(i)
                add(i, "attr", i, f"{C.param_type(x.types[i], world)} {v}", Value(v, x.types[i]))
        return node, scope, inputs

    def structured(
        self, name: str, arg: str, node: Node, a: Arg | None, gradients: dict[str, str], world: str = "V",
        result: str | None = None,
    ) -> Formula:  # fmt: skip
        node, scope, inputs = self.scope(node, arg, gradients, world)
        first = next((i for i in inputs if i.kind in ("g", "tensor")), None)
        like = ""
        if first is not None:
            like = f"dtype({first.name})" if not self.is_list_input(first) else f"dtype({first.name}[0])"
        terms = Terms(self.ctx.ops, scope, world, like)
        is_list = a is not None and a.type.is_list
        if is_list:
            text = terms.of_type(node, C.TENSORS)
            returns = f"std::vector<{world}>"
        else:
            text = terms.tensor(node)
            returns = world
        params = ", ".join(i.param for i in inputs)
        cold = "" if world == "V" else "TP_COLD "  # of tangents, and of gradients that are differentiated again
        f = Function(f"{cold}{returns} {name}({params})", (f"return {text};",), template=world == "V")
        return Formula(arg, f, name, tuple(inputs), terms.used)

    # ---- several gradients from one call ----

    def plan_joints(self) -> None:
        x = self.x
        groups: dict[tuple[str, ...], list[tuple[str, int, Call]]] = {}
        for a in x.recorded:
            d = x.o.deriv[a.name].formula
            if a.name not in self.formulas or d is None or x.list_node or not self.multi:
                continue
            match d.node:
                case Subscript(value=Call(func=f, kwargs=()) as call, index=Num(value=int() as k)):
                    params = self.params_of(f)
                    same = (to_text(v) for p, v in zip(params, call.args, strict=False) if not is_want(p, v))
                    groups.setdefault((f, str(len(call.args)), *same), []).append((a.name, k, call))
        for members in groups.values():
            if len(members) > 1:
                self.joint(members)

    def params_of(self, f: str) -> tuple[str, ...]:
        overloads = self.ctx.ops.overloads(f)
        return tuple(a.name for a in overloads[0].sig.args) if len(overloads) == 1 else ()

    def joint(self, members: list[tuple[str, int, Call]]) -> None:
        first = members[0][2]
        args, wants = list(first.args), {}
        for j, p in enumerate(self.params_of(first.func)[: len(args)]):
            if is_want(p, args[j]):
                askers = tuple(a for a, _, call in members if call.args[j] == Bool(True, call.args[j].span))
                if askers:
                    wants[p] = askers
                    args[j] = Name(p, args[j].span)
        node, scope, inputs = self.scope(Call(first.func, tuple(args)), None, self.gradient_names(), "V")
        if any(i.kind not in ("g", "tensor", "has", "attr") for i in inputs) or wants.keys() & self.x.types.keys():
            return
        for p in wants:
            scope[p] = Value(p, BOOL)
            inputs.append(Input(p, "want", p, f"bool {p}"))
        terms = Terms(self.ctx.ops, scope, "V")
        text = terms.walk(node).text
        count = len(self.ctx.ops.overloads(first.func)[0].sig.results)
        name = f"{self.x.base}_vjp_joint{len(self.joints) or ''}"
        params = ", ".join(i.param for i in inputs)
        f = Function(f"std::array<V, {count}> {name}({params})", (f"return {text};",), template=True)
        self.joints.append(Joint(f, name, tuple(inputs), count, {a: k for a, k, _ in members}, wants))
        self.helpers.append(f)

    def is_list_input(self, i: Input) -> bool:
        known = self.x.sig.arg(i.of) or self.x.sig.result(i.of)
        return known is not None and known.type.is_list

    # ---- what the node keeps ----

    def plan_slots(self) -> None:
        s = self.slots
        order = [*(a.name for a in self.x.tensor_args), *(r.name for r in self.x.results)]
        wanted: dict[str, set[str]] = {}
        for arg, f in self.formulas.items():
            for i in f.inputs:
                if i.kind in ("tensor", "list"):
                    wanted.setdefault(i.of, set()).add(arg)
                elif i.kind == "shape" and not self.own_shape(i.of, arg) and not self.is_result(i.of):
                    add_once(s.shapes, i.of)
                elif i.kind in ("shapes", "dtype") and self.is_list_arg(i.of):
                    add_once(s.list_shapes, i.of)
                elif i.kind == "has":
                    add_once(s.has, i.of)
                elif i.kind == "attr":
                    add_once(s.attrs, i.of)
            if f.loop is not None:
                for p in f.loop.params:
                    for n in self.x.types:
                        if f"{C.cpp_name(n)}_" in words(p.argument):
                            add_once(s.attrs, n)
                        if f"has_{n}_" in words(p.argument):
                            add_once(s.has, n)
        for n in order:
            if n in wanted:
                s.users[n] = wanted[n]
                (s.lists if self.is_list_arg(n) else s.tensors).append(n)
                if self.optional(n):
                    add_once(s.has, n)
        if self.x.list_node and s.tensors:
            raise self.x.fault("vjp", f"an op over a list of tensors cannot read '{s.tensors[0]}' in its gradient")
        if self.x.list_node:
            for a in self.x.recorded:
                if a.type.is_list:
                    add_once(s.list_shapes, a.name)
                else:
                    add_once(s.shapes, a.name)

    def own_shape(self, of: str, arg: str) -> bool:
        return of == arg and not self.x.list_node

    def is_result(self, name: str) -> bool:
        return self.x.sig.result(name) is not None

    def is_list_arg(self, name: str) -> bool:
        known = self.x.sig.arg(name) or self.x.sig.result(name)
        return known is not None and known.type.is_list

    def optional(self, name: str) -> bool:
        a = self.x.sig.arg(name)
        return a is not None and a.type.optional and not a.type.is_list


def is_want(param: str, value: Node) -> bool:
    return param.startswith("want_") and isinstance(value, Bool)


def add_once(items: list[str], x: str) -> None:
    if x not in items:
        items.append(x)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", re.sub(r"(->|\.)\w+", "", text)))
