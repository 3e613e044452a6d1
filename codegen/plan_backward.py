"""Plans the backward half of one overload: gradient formulas, the node that saves what they read, tangents.

Each formula becomes a template over both worlds; elementwise gradients also have a fused loop for plain memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from . import cpp_types as C
from .cpp_types import BOOL, DIMS, DTYPE, TENSOR
from .formula import Call, Name, Node, Num, names, to_text
from .model import LINEAR, MULTILINEAR, Arg, Base, Diff
from .plan_loops import Loop
from .plan_ops import Context, Elementwise, OverloadNames
from .plan_terms import SHAPES, TermError, Terms, Use, Value, reads, split_meta
from .plan_types import Function, Member, NodePlan, Spec
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
    factor: str = ""  # the whole partial is this Scalar argument: 1 as a rule
    text: str = ""


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


class Backward:
    def __init__(self, x: OverloadNames, ctx: Context, e: Elementwise | None) -> None:
        self.x, self.ctx, self.e = x, ctx, e
        self.multi = len(x.results) > 1
        self.list_result = len(x.results) == 1 and x.results[0].type.is_list
        self.formulas: dict[str, Formula] = {}
        self.slots = Slots()
        self.helpers: list[Function] = []
        self.uses: set[Use] = set()
        if x.has_node:
            self.plan_formulas()
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
        factor: Node = Call("conj_of", (d,)) if complex_too and not isinstance(d, Num) else d
        body: Node = self.product(factor, Name("g"), d)
        f = self.structured(name, a.name, body, a, {"g": x.results[0].name}, world="TensorRef")
        f.loop, f.spec, f.loop_reads, f.text = loop, spec, loop_reads, text
        if isinstance(d, Name) and x.types.get(d.id) == C.SCALAR:
            f.factor = C.cpp_name(d.id)
        return f

    def product(self, factor: Node, g: Node, d: Node) -> Node:
        strong = bool(self.ctx.ops.overloads("strong_mul")) and not isinstance(d, Num)
        return Call("strong_mul" if strong else "mul", (factor, g))

    def scope(
        self, node: Node, arg: str | None, gradients: dict[str, str], world: str
    ) -> tuple[Node, dict[str, Value], list[Input]]:
        """Names of the formula as C++ parameters, in order of first use by kind: gradients, tensors, metadata, arguments."""
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
                    add(i, "shapes", of, f"const std::vector<Shape>& {i}", Value(i, SHAPES))
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
        f = Function(f"{returns} {name}({params})", (f"return {text};",), template=world == "V")
        return Formula(arg, f, name, tuple(inputs), terms.used)

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
                    _add(s.shapes, i.of)
                elif i.kind in ("shapes", "dtype") and self.is_list_arg(i.of):
                    _add(s.list_shapes, i.of)
                elif i.kind == "has":
                    _add(s.has, i.of)
                elif i.kind == "attr":
                    _add(s.attrs, i.of)
            if f.loop is not None:
                for p in f.loop.params:
                    for n in self.x.types:
                        if f"{C.cpp_name(n)}_" in _words(p.argument):
                            _add(s.attrs, n)
                        if f"has_{n}_" in _words(p.argument):
                            _add(s.has, n)
        for n in order:
            if n in wanted:
                s.users[n] = wanted[n]
                (s.lists if self.is_list_arg(n) else s.tensors).append(n)
                if self.optional(n):
                    _add(s.has, n)
        if self.x.list_node and s.tensors:
            raise self.x.fault("vjp", f"an op over a list of tensors cannot read '{s.tensors[0]}' in its gradient")
        if self.x.list_node:
            for a in self.x.recorded:
                if a.type.is_list:
                    _add(s.list_shapes, a.name)
                else:
                    _add(s.shapes, a.name)

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

    def node(self) -> NodePlan:
        x, s = self.x, self.slots
        saved_inputs = tuple(
            -1 - [r.name for r in x.results].index(n) if self.is_result(n) else x.slot(n) for n in s.tensors
        )
        members: list[Member] = []
        for n in s.shapes:
            members.append(Member("Shape", f"{n}_shape_"))
        for n in s.list_shapes:
            members.append(Member("std::vector<Shape>", f"{n}_shapes_"))
            members.append(Member("std::vector<Dtype>", f"{n}_dtypes_"))
        if x.list_node:
            members += [Member("Dtype", f"{a.name}_dtype_", " = Dtype::F32") for a in x.recorded if not a.type.is_list]
        for n in s.has:
            members.append(Member("bool", f"has_{n}_", " = false"))
        for n in s.attrs:
            t = x.types[n]
            members.append(Member(C.member_type(t), f"{C.cpp_name(n)}_", C.member_init(t)))
        k = len(x.results)
        outputs: tuple[int, ...] = tuple(range(1, k)) if k > 1 else ()
        number = str(x.o.index) if x.o.index else ""
        kname = f"{C.pascal(x.op)}Backward"
        if x.list_node:
            ctor = ["std::size_t inputs"] + (["std::uint32_t outputs"] if self.list_result else [])
            ctor_base = "inputs" + (", outputs" if self.list_result else f", {k}" if k > 1 else "")
            base = f"ListNode<{x.cls}>"
            make = f"make_node<{x.cls}>({', '.join(['2'] * len(ctor))})"
        else:
            ctor = ["std::uint32_t outputs"] if self.list_result else []
            ctor_base = "outputs" if self.list_result else (str(k) if k > 1 else "")
            base = f"FuncOp<{x.cls}, {len(x.singles)}, {len(s.tensors)}>"
            make = f"make_node<{x.cls}>({'2' if ctor else ''})"
        return NodePlan(
            x.cls, number, kname, base, tuple(ctor), ctor_base, x.schema_init, tuple(s.tensors), saved_inputs,
            tuple(members), tuple(f"{n}_saved_" for n in s.lists), outputs, self.list_result, x.list_node, make,
        )  # fmt: skip

    # ---- recording ----

    def record(self, inplace: bool = False) -> list[str]:
        """Statements that make the node of a result; in place the node exists already as a null Ref."""
        x, s = self.x, self.slots
        results = [C.cpp_name(r.name) for r in x.results]
        first = C.cpp_name(x.sig.args[0].name) if x.sig.args else ""
        out = first if inplace else results[0]
        args: list[str] = []
        if x.list_node:
            sizes = [f"{C.cpp_name(a.name)}.size()" if a.type.is_list else "1" for a in x.tensor_args]
            args.append(" + ".join(sizes))
        if self.list_result:
            args.append(f"std::uint32_t({out}.size())")
        target = "node" if inplace else "auto node"
        lines = [f"{target} = make_node<{x.cls}>({', '.join(args)});", f"{x.cls}& back = *node;"]
        one = f"{out}.front()" if self.list_result else out
        if self.list_result:
            lines[:0] = []
        lines.append(f"back.set_output({one}->storage());")
        for k in self.node().outputs:
            lines.append(f"back.output_like_[{k - 1}] = Storage(BlockRef(), {results[k]}->dtype(), {results[k]}->sizes());")
        if self.list_result:
            lines.append(f"for (const TensorRef& t : {out}) back.output_like_.push_back(Storage(BlockRef(), t->dtype(), t->sizes()));")
        recorded = {a.name for a in x.recorded}
        if x.list_node:
            lines += self.list_edges(recorded)
        else:
            for i, a in enumerate(x.singles):
                if a.name in recorded:
                    lines.append(f"back.set_input({i}, {C.cpp_name(a.name)});")
        for n in s.shapes:
            v = C.cpp_name(n)
            test = f"if ({v}) " if self.optional(n) else ""
            lines.append(f"{test}back.{n}_shape_ = {v}->sizes();")
        for n in s.list_shapes:
            v = C.cpp_name(n)
            lines.append(f"back.{n}_shapes_ = shapes_of({v});")
            lines.append(f"for (const TensorRef& t : {v}) back.{n}_dtypes_.push_back(t ? t->dtype() : Dtype::F32);")
        for n in s.has:
            lines.append(f"back.has_{n}_ = bool({C.cpp_name(n)});")
        for n in s.attrs:
            lines.append(f"back.{C.cpp_name(n)}_ = {C.cpp_name(n)};")
        for k, n in enumerate(s.tensors):
            if not self.is_result(n):
                lines += self.save(k, n, inplace and C.cpp_name(n) == first)
        for n in s.lists:
            if not self.is_result(n):
                v = C.cpp_name(n)
                lines.append(f"back.{n}_saved_.resize({v}.size());")
                lines.append(f"for (std::size_t i = 0; i < {v}.size(); ++i) if ({v}[i]) back.{n}_saved_[i].save({v}[i]);")
        if inplace:
            return lines
        diff = {r.name for r in x.o.diff_results}
        if self.list_result:
            lines.append(f"for (std::size_t i = 0; i < {out}.size(); ++i) wiring::attach({out}[i], NodeRef::share(&back), std::uint32_t(i));")
        elif self.multi:
            for k, r in enumerate(x.results):
                if r.name in diff:
                    lines.append(f"wiring::attach({results[k]}, NodeRef::share(&back), {k});")
        else:
            lines.append(f"wiring::attach({out}, std::move(node));")
        # An output is saved under its own node, which it has only now.
        lines += [f"back.save({k}, {C.cpp_name(n)});" for k, n in enumerate(s.tensors) if self.is_result(n)]
        return lines

    def list_edges(self, recorded: set[str]) -> list[str]:
        lines = []
        offset = ""
        for a in self.x.tensor_args:
            v = C.cpp_name(a.name)
            at = offset or "0"
            if a.type.is_list:
                i = f"{offset} + i" if offset else "i"
                if a.name in recorded:
                    lines.append(f"for (std::size_t i = 0; i < {v}.size(); ++i) wiring::connect(back, {i}, {v}[i]);")
                offset = f"{offset} + {v}.size()" if offset else f"{v}.size()"
            else:
                if a.name in recorded:
                    lines.append(f"wiring::connect(back, {at}, {v});")
                    lines.append(f"if ({v}) back.{a.name}_dtype_ = {v}->dtype();")
                offset = f"{offset} + 1" if offset else "1"
        return lines

    def save(self, k: int, n: str, overwritten: bool) -> list[str]:
        """Save slot k, unless no gradient that reads it can be asked for."""
        v = C.cpp_name(n)
        value = f"wiring::wrap(copy_of({v}->storage()))" if overwritten else v
        readers = self.slots.users[n]
        tests = []
        everyone = {a.name for a in self.x.recorded}
        if readers != everyone and not self.x.list_node:
            users = [C.cpp_name(a.name) for a in self.x.recorded if a.name in readers]
            opts = {C.cpp_name(a.name) for a in self.x.recorded if a.type.optional}
            tests.append(" || ".join(f"({u} && {u}->requires_grad())" if u in opts else f"{u}->requires_grad()" for u in users))
        if self.optional(n):
            tests.insert(0, v)
        if len(tests) > 1 and " || " in tests[1]:
            tests[1] = f"({tests[1]})"
        guard = f"if ({' && '.join(tests)}) " if tests else ""
        return [f"{guard}back.save({k}, {value});"]

    def after_inplace(self) -> list[str]:
        first = C.cpp_name(self.x.sig.args[0].name)
        return [
            f"if (node) node->save({k}, {first});" for k, n in enumerate(self.slots.tensors) if self.is_result(n)
        ]

    # ---- apply ----

    def methods(self) -> tuple[Function, ...]:
        return self.apply("Storage"), self.apply("TensorRef")

    def apply(self, world: str) -> Function:
        x = self.x
        memory = world == "Storage"
        vec = "GradVec" if memory else "GraphGradVec"
        param = "std::span<Storage>" if memory else "std::span<const TensorRef>"
        name = "apply" if memory else "apply_for_graph"
        size = "edges_.size()" if x.list_node else str(len(x.singles))
        body = [f"{vec} grads({size});"]
        body += self.gradients(world)
        offset = ""
        for a in x.tensor_args:
            i = offset or "0"
            if a.name in {r.name for r in x.recorded}:
                body += self.grad_of(a, i, offset, world)
            if x.list_node and a.type.is_list:
                offset = f"{offset} + {a.name}_shapes_.size()" if offset else f"{a.name}_shapes_.size()"
            elif not a.type.is_list:
                offset = str(int(offset) + 1) if offset.isdigit() else (f"{offset} + 1" if offset else "1")
        body.append("return grads;")
        # A zero derivative asks for nothing that arrives.
        arrived = " grad_outputs" if "grad_outputs" in " ".join(body) else ""
        return Function(f"{vec} {x.cls}::{name}({param}{arrived})", tuple(body))

    def gradients(self, world: str) -> list[str]:
        """The incoming gradients by name; nothing to do where all are absent."""
        x = self.x
        defined = (lambda e: f"{e}.defined()") if world == "Storage" else (lambda e: f"bool({e})")
        used = {i.of for f in self.formulas.values() for i in f.inputs if i.kind == "g"}
        used |= {x.results[0].name for f in self.formulas.values() if f.constant == 1}
        if self.list_result:
            return [
                f"std::vector<{world}> g(grad_outputs.size());",
                "for (std::size_t i = 0; i < g.size(); ++i) g[i] = or_zeros(grad_outputs[i], output_like(std::uint32_t(i)));",
            ]
        if not self.multi:
            if not used:
                return []
            return [f"const {world}& g = grad_outputs[0];", f"if ({'!g.defined()' if world == 'Storage' else '!g'}) return grads;"]
        diff = {r.name for r in x.o.diff_results}
        any_given = " || ".join(defined(f"grad_outputs[{k}]") for k, r in enumerate(x.results) if r.name in diff)
        lines = [f"if (!({any_given})) return grads;"]
        for k, r in enumerate(x.results):
            if r.name in used:
                lines.append(f"const {world} g_{r.name} = or_zeros(grad_outputs[{k}], output_like({k}));")
        return lines

    def grad_of(self, a: Arg, i: str, offset: str, world: str) -> list[str]:
        x = self.x
        d = x.o.deriv[a.name]
        if a.type.is_list:
            return self.grad_of_list(a, offset, world)
        sizes = f"{a.name}_shape_" if x.list_node else f"input_shape({i})"
        dtype = f"{a.name}_dtype_" if x.list_node else f"input_dtype({i})"
        guard = f"if (needs(*this, {i}))"
        if d.kind is Diff.TODO:
            return [f"{guard} missing_derivative(schema_v1, {C.string_literal(a.name)}, {C.string_literal(d.why)});"]
        f = self.formulas.get(a.name)
        if d.kind is Diff.ZERO or (f is not None and f.constant == 0):
            return [f"{guard} grads[{i}] = zeros<{world}>({sizes}, {dtype});"]
        if f is None:
            return []
        if f.constant == 1:
            return [f"{guard} grads[{i}] = fit(g, {sizes}, {dtype});"]
        if world == "Storage" and f.loop is not None and f.spec is not None:
            operands = ", ".join(["&g", *(self.loop_operand(n) for n in f.loop_reads)])
            params = f", {{{', '.join(p.argument for p in f.loop.params)}}}" if f.loop.params else ""
            value = f"kernels::elementwise({f.spec.name}, loops[{f.loop.enumerator}], {{{operands}}}{params})"
            if f.factor:
                value = f"is_one({f.factor}_) ? g : {value}"
        else:
            value = f"{f.name}{'<' + world + '>' if f.function.template else ''}({', '.join(self.node_inputs(f, a.name, world))})"
        return [f"{guard}", f"  grads[{i}] = fit({value}, {sizes}, {dtype});"]

    def grad_of_list(self, a: Arg, offset: str, world: str) -> list[str]:
        f = self.formulas[a.name]
        call = f"{f.name}<{world}>({', '.join(self.node_inputs(f, a.name, world))})"
        at = f"{offset} + k" if offset else "k"
        return [
            f"std::vector<{world}> parts_{a.name} = {call};",
            f"for (std::size_t k = 0; k < parts_{a.name}.size(); ++k)",
            f"  if (needs(*this, {at})) grads[{at}] = fit(std::move(parts_{a.name}[k]), {a.name}_shapes_[k], {a.name}_dtypes_[k]);",
        ]

    def loop_operand(self, n: str) -> str:
        k = self.slots.tensors.index(n)
        return f"has_{n}_ ? &saved({k}) : &g" if self.optional(n) else f"&saved({k})"

    def node_inputs(self, f: Formula, arg: str, world: str) -> list[str]:
        """The arguments of a formula's function inside apply."""
        return [self.node_input(i, arg, world) for i in f.inputs]

    def node_input(self, i: Input, arg: str, world: str) -> str:
        x = self.x
        match i.kind:
            case "g":
                return "g" if not self.multi else f"g_{i.of}"
            case "tensor":
                k = self.slots.tensors.index(i.of)
                value = f"saved({k})" if world == "Storage" else f"saved_tensor({k})"
                return f"has_{i.of}_ ? {world}({value}) : {world}()" if self.optional(i.of) else value
            case "list":
                return f"unsaved<{world}>(*this, {i.of}_saved_, {C.string_literal(i.of)}, {self.first_edge(i.of)})"
            case "shape":
                if self.is_result(i.of):
                    k = [r.name for r in x.results].index(i.of)
                    return "out_shape_" if k == 0 else f"output_like_[{k - 1}].sizes()"
                return f"input_shape({x.slot(i.of)})" if self.own_shape(i.of, arg) else f"{i.of}_shape_"
            case "shapes":
                return f"{i.of}_shapes_"
            case "dtype":
                if self.is_result(i.of):
                    k = [r.name for r in x.results].index(i.of)
                    return "dtype_" if k == 0 else f"output_like_[{k - 1}].dtype()"
                if self.is_list_arg(i.of):
                    return f"{i.of}_dtypes_[0]"
                return f"{i.of}_dtype_" if x.list_node else f"input_dtype({x.slot(i.of)})"
            case "has":
                return f"has_{i.of}_"
        return f"{C.cpp_name(i.of)}_"

    def first_edge(self, name: str) -> int:
        """Where the edges of a saved list begin; -1 when it has none."""
        lists = [a for a in self.x.tensor_args if a.type.is_list]
        if not any(a.name == name for a in self.x.recorded):
            return -1
        if self.x.tensor_args[0].name != name or len(lists) > 1:
            raise self.x.fault("vjp", f"a saved list ('{name}') must be the first argument and the only list")
        return 0

    # ---- tangents ----

    def tangent(self) -> tuple[str, Function | None]:
        """(the call that sets the results' tangents, the function it calls)."""
        x = self.x
        if not x.has_node:
            return "", None
        name = f"{x.base}_set_tangent"
        body = self.tangent_body()
        if not body:
            return "", None
        used = _words(" ".join(body))
        params, args = [], []
        for v, t in [(C.cpp_name(y.name), y.type) for y in (*x.results, *x.sig.args)]:
            if v in used:
                params.append(f"{C.param_type(replace(t, optional=False) if t.is_tensor else t, 'TensorRef')} {v}")
                args.append(v)
        call = f"{name}({', '.join(args)})"
        return call, Function(f"void {name}({', '.join(params)})", tuple(body))

    def tangent_body(self) -> list[str]:
        x = self.x
        body = [
            f"if (wiring::tangent({C.cpp_name(a.name)})) missing_derivative({x.schema}, {C.string_literal(a.name)}, "
            f"{C.string_literal(x.o.deriv[a.name].why)});"
            for a in x.recorded
            if x.o.deriv[a.name].kind is Diff.TODO and not a.type.is_list
        ]
        live = [a for a in x.recorded if x.o.deriv[a.name].kind in (Diff.FORMULA, Diff.DERIVED)]
        if not live:
            return body
        try:
            if x.o.tangent:
                return body + self.tangent_formulas(live)
            if x.o.tangent_rule == LINEAR or (x.o.tangent_rule is None and self.linear(live)):
                return body + self.tangent_linear(live)
            if x.o.tangent_rule == MULTILINEAR:
                return body + self.tangent_multilinear(live)
            if all(self.is_partial(a.name) for a in live):
                return body + self.tangent_elementwise(live)
            return body + self.tangent_transposed(live)
        except TermError as e:
            raise x.fault("tangent", e.message, x.entry.keys.get("tangent", x.entry.loc)) from None

    def linear(self, live: list[Arg]) -> bool:
        """Whether the op is linear in its only tensor argument: its vjp does not read it and nothing else shifts it."""
        x = self.x
        if x.entry.elementwise or x.entry.family.name not in ("view", "reduction", "scan") or len(x.tensor_args) != 1:
            return False
        f = self.formulas.get(live[0].name)
        affine = any(a.type.base in (Base.SCALAR, Base.FLOAT) for a in x.sig.args)
        return f is not None and not affine and not any(i.kind in ("tensor", "list") for i in f.inputs)

    def set_results(self, call: str) -> list[str]:
        x = self.x
        if self.list_result:
            v = C.cpp_name(x.results[0].name)
            return [
                f"const std::vector<TensorRef> t = {call};",
                f"for (std::size_t i = 0; i < t.size(); ++i) wiring::set_tangent({v}[i], as_tangent(t[i], {v}[i]));",
            ]
        if self.multi:
            diff = {r.name for r in x.o.diff_results}
            return [f"const auto t = {call};"] + [
                f"wiring::set_tangent({C.cpp_name(r.name)}, as_tangent(t[{k}], {C.cpp_name(r.name)}));"
                for k, r in enumerate(x.results)
                if r.name in diff
            ]
        v = C.cpp_name(x.results[0].name)
        return [f"wiring::set_tangent({v}, as_tangent({call}, {v}));"]

    def op_call(self, replaced: Callable[[Arg], str]) -> str:
        x = self.x
        return f"{x.call(x.fn)}({', '.join(replaced(a) for a in x.sig.args)})"

    def primal(self, a: Arg) -> str:
        v = C.cpp_name(a.name)
        return f"wiring::primal({v})" if a.type.is_tensor else v

    def tangent_linear(self, live: list[Arg]) -> list[str]:
        names_ = {a.name for a in live}
        lines: list[str] = []
        for a in live:
            if a.type.is_list:
                v = C.cpp_name(a.name)
                lines.append(f"std::vector<TensorRef> {v}_t;")
                lines.append(f"for (const TensorRef& t : {v}) {v}_t.push_back(wiring::tangent_or_zeros(t));")

        def one(a: Arg) -> str:
            v = C.cpp_name(a.name)
            if a.name not in names_:
                return self.primal(a)
            if a.type.is_list:
                return f"{v}_t"
            if len(live) == 1:
                return f"wiring::tangent({v})"
            return f"{v} ? wiring::tangent_or_zeros({v}) : TensorRef()" if a.type.optional else f"wiring::tangent_or_zeros({v})"

        return lines + self.set_results(self.op_call(one))

    def tangent_multilinear(self, live: list[Arg]) -> list[str]:
        v = C.cpp_name(self.x.results[0].name)
        lines = ["TensorRef sum;"]
        for a in live:
            t = C.cpp_name(a.name)
            call = self.op_call(lambda b, a=a: f"wiring::tangent({C.cpp_name(b.name)})" if b.name == a.name else self.primal(b))  # type: ignore[misc]
            lines.append(f"if (wiring::tangent({t})) sum = plus(std::move(sum), {call});")
        return [*lines, f"wiring::set_tangent({v}, as_tangent(std::move(sum), {v}));"]

    def forward_input(self, i: Input) -> str:
        """An argument of a formula's function where the op itself runs."""
        v = C.cpp_name(i.of)
        match i.kind:
            case "tensor":
                return f"wiring::primal({v})"
            case "list":
                return v
            case "shape":
                return f"{v}->sizes()"
            case "shapes":
                return f"shapes_of({v})"
            case "dtype":
                return f"{v}[0]->dtype()" if self.is_list_arg(i.of) else f"{v}->dtype()"
            case "has":
                return f"bool({v})"
        return v

    def tangent_elementwise(self, live: list[Arg]) -> list[str]:
        """Sum of d * t over the inputs that have a tangent."""
        x = self.x
        v = C.cpp_name(x.results[0].name)
        lines = ["TensorRef sum;"]
        for a in live:
            f = self.formulas[a.name]
            t = C.cpp_name(a.name)
            if f.constant == 0:
                continue
            if f.constant == 1:
                lines.append(f"sum = plus(std::move(sum), wiring::tangent({t}));")
                continue
            d = x.o.deriv[a.name].formula
            assert d is not None
            node = expand(d.node)
            name = f"{x.base}_tangent_{a.name}"
            tf = self.tangent_function(name, a, self.product(node, Name("t"), node))
            inputs = ", ".join([*(self.forward_input(i) for i in tf.inputs if i.kind != "t"), f"wiring::tangent({t})"])
            lines.append(f"if (wiring::tangent({t})) sum = plus(std::move(sum), {name}({inputs}));")
        return [*lines, f"wiring::set_tangent({v}, as_tangent(std::move(sum), {v}));"]

    def tangent_function(self, name: str, a: Arg, node: Node) -> Formula:
        """A formula over arguments, results and t, as a function of tensors; t comes last."""
        own = {"t", f"{a.name}_t"}
        node, scope, inputs = self.scope(node, a.name, {}, "TensorRef")
        scope |= {n: Value("t", TENSOR) for n in own}
        terms = Terms(self.ctx.ops, scope, "TensorRef", "dtype(t)")
        text = terms.tensor(node)
        params = ", ".join([*(i.param for i in inputs), "const TensorRef& t"])
        f = Formula(a.name, Function(f"TensorRef {name}({params})", (f"return {text};",)), name, tuple(inputs), terms.used)
        self.helpers.append(f.function)
        self.uses |= terms.used
        return f

    def tangent_formulas(self, live: list[Arg]) -> list[str]:
        x = self.x
        lines = []
        for r in x.o.diff_results:
            v = C.cpp_name(r.name)
            suffix = f"_{r.name}" if self.multi else ""
            lines.append(f"TensorRef sum{suffix};")
            for a in live:
                formula = x.o.tangent.get(a.name, {}).get(r.name)
                if formula is None:
                    continue
                t = C.cpp_name(a.name)
                name = f"{x.base}_tangent_{a.name}{suffix}"
                tf = self.tangent_function(name, a, formula.node)
                inputs = ", ".join([*(self.forward_input(i) for i in tf.inputs), f"wiring::tangent({t})"])
                lines.append(f"if (wiring::tangent({t})) sum{suffix} = plus(std::move(sum{suffix}), {name}({inputs}));")
            lines.append(f"wiring::set_tangent({v}, as_tangent(std::move(sum{suffix}), {v}));")
        return lines

    def tangent_transposed(self, live: list[Arg]) -> list[str]:
        """The vjp, transposed: linear in the cotangent, its own derivative is the tangent."""
        x = self.x
        plain = all(not a.type.is_list for a in x.tensor_args)
        lines = []
        if plain:
            ts = ", ".join(f"wiring::tangent({C.cpp_name(a.name)})" for a in x.singles)
            lines.append(f"const std::vector<TensorRef> tangents = {{{ts}}};")
        else:
            lines.append("std::vector<TensorRef> tangents;")
            for a in x.tensor_args:
                v = C.cpp_name(a.name)
                if a.type.is_list:
                    lines.append(f"for (const TensorRef& t : {v}) tangents.push_back(wiring::tangent(t));")
                else:
                    lines.append(f"tangents.push_back(wiring::tangent({v}));")
        inner = ["GraphGradVec grads(tangents.size());"]
        offset = ""
        for a in x.tensor_args:
            v = C.cpp_name(a.name)
            f = self.formulas.get(a.name)
            at = offset or "0"
            if f is not None and a in live and not a.type.is_list:
                call = f"{f.name}{'<TensorRef>' if f.function.template else ''}({', '.join(self.transposed_input(i) for i in f.inputs)})"
                if f.constant == 1:
                    call = "g"
                if f.constant == 0:
                    call = f"zeros<TensorRef>({v}->sizes(), {v}->dtype())"
                inner.append(f"if (tangents[{at}]) grads[{at}] = fit({call}, {v}->sizes(), {v}->dtype());")
            elif f is not None and a in live:
                call = f"{f.name}<TensorRef>({', '.join(self.transposed_input(i) for i in f.inputs)})"
                inner.append(f"std::vector<TensorRef> parts_{v} = {call};")
                index = f"{offset} + k" if offset else "k"
                inner.append(f"for (std::size_t k = 0; k < parts_{v}.size(); ++k)")
                inner.append(f"  if (tangents[{index}]) grads[{index}] = fit(parts_{v}[k], {v}[k]->sizes(), {v}[k]->dtype());")
            if a.type.is_list:
                offset = f"{offset} + {v}.size()" if offset else f"{v}.size()"
            else:
                offset = str(int(offset) + 1) if offset.isdigit() else (f"{offset} + 1" if offset else "1")
        inner.append("return grads;")
        results = [C.cpp_name(r.name) for r in x.results]
        if self.multi or self.list_result:
            diff = [r for r in x.results if r.name in {d.name for d in x.o.diff_results}]
            if self.list_result:
                lines.append(f"const std::vector<TensorRef> outs({results[0]}.begin(), {results[0]}.end());")
            else:
                lines.append(f"const std::vector<TensorRef> outs = {{{', '.join(C.cpp_name(r.name) for r in diff)}}};")
            lines.append("const std::vector<TensorRef> t = wiring::tangent_by_transpose(outs, [&](std::span<const TensorRef> us) {")
            if self.list_result:
                inner.insert(0, "std::span<const TensorRef> g = us;")
            else:
                inner[:0] = [f"const TensorRef& g_{r.name} = us[{k}];" for k, r in enumerate(diff)]
        else:
            lines.append(f"TensorRef t = wiring::tangent_by_transpose({results[0]}, [&](const TensorRef& g) {{")
        lines += ["  " + s for s in inner]
        lines.append("}, tangents);")
        if self.multi or self.list_result:
            lines.append("for (std::size_t i = 0; i < outs.size(); ++i) wiring::set_tangent(outs[i], as_tangent(t[i], outs[i]));")
        else:
            lines.append(f"wiring::set_tangent({results[0]}, as_tangent(std::move(t), {results[0]}));")
        return lines

    def transposed_input(self, i: Input) -> str:
        if i.kind == "g":
            return "g" if not self.multi else f"g_{i.of}"
        return self.forward_input(i)


def _add(items: list[str], x: str) -> None:
    if x not in items:
        items.append(x)


def _words(text: str) -> set[str]:
    import re

    return set(re.findall(r"\w+", re.sub(r"(->|\.)\w+", "", text)))
