"""Plans the backward node of one overload: its class, what recording does, apply and apply_for_graph."""

from __future__ import annotations

from . import cpp_types as C
from .model import Arg, Diff
from .plan_formulas import Formula, Formulas, Input, Joint
from .plan_types import Function, Member, NodePlan


class NodePlanner(Formulas):
    """The node on top of its formulas."""

    def node(self) -> NodePlan:
        x, s = self.x, self.slots
        saved_inputs = tuple(
            -1 - [r.name for r in x.results].index(n) if self.is_result(n) else x.slot(n) for n in s.tensors
        )
        members: list[Member] = []
        for n in s.shapes:
            members.append(Member("Shape", f"{n}_shape_"))
        for n in s.list_shapes:
            members.append(Member("Shapes", f"{n}_shapes_"))
            members.append(Member("PooledVec<Dtype>", f"{n}_dtypes_"))
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
            tuple(members), tuple(s.lists), outputs, self.list_result, x.list_node, make,
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
        one = f"{out}.front()->storage()" if self.list_result else f"{out}->storage()"
        if inplace and x.entry.view_of:
            one = "shown"  # the tensor has its old sizes still
        lines.append(f"{f'if (!{out}.empty()) ' if self.list_result else ''}back.set_output({one});")
        for k in self.node().outputs:
            lines.append(
                f"back.output_like_[{k - 1}] = Storage(BlockRef(), {results[k]}->dtype(), {results[k]}->sizes());"
            )
        if self.list_result:
            lines.append(f"for (const TensorRef& t : {out})")
            lines.append("  back.output_like_.push_back(Storage(BlockRef(), t->dtype(), t->sizes()));")
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
            lines.append(f"back.{n}_dtypes_ = dtypes_of({v});")
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
                lines.append(f"for (std::size_t i = 0; i < {v}.size(); ++i)")
                lines.append(f"  if ({v}[i]) back.{n}_saved_[i].save({v}[i]);")
        if inplace:
            return lines
        diff = {r.name for r in x.o.diff_results}
        if self.list_result:
            lines.append(f"for (std::size_t i = 0; i < {out}.size(); ++i)")
            lines.append(f"  wiring::attach({out}[i], NodeRef::share(&back), std::uint32_t(i));")
        elif self.multi:
            for k, r in enumerate(x.results):
                if r.name in diff:
                    lines.append(f"wiring::attach({results[k]}, NodeRef::share(&back), {k});")
        else:
            lines.append(f"wiring::attach({out}, std::move(node));")
        # An output is saved under its own node, which it has only now.
        for k, n in enumerate(s.tensors):
            if self.is_result(n):
                lines.append(f"{self.result_guard(n, 'back.')}back.save({k}, {C.cpp_name(n)});")
        return lines

    def result_guard(self, n: str, node: str) -> str:
        """The test under which a gradient that reads result n can be asked for; empty where always.

        The node's edges tell, not requires_grad: an in-place op has changed that of its first argument by now.
        """
        readers = self.slots.users[n]
        if self.x.list_node or readers == {a.name for a in self.x.recorded}:
            return ""
        edges = [f"{node}next_edges()[{i}].node" for i, a in enumerate(self.x.singles) if a.name in readers]
        return f"if ({' || '.join(edges)}) " if edges else ""

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
        value = f"wiring::copied({v})" if overwritten else v
        readers = self.slots.users[n]
        tests = []
        everyone = {a.name for a in self.x.recorded}
        if readers != everyone and not self.x.list_node:
            users = [C.cpp_name(a.name) for a in self.x.recorded if a.name in readers]
            opts = {C.cpp_name(a.name) for a in self.x.recorded if a.type.optional}
            tests.append(
                " || ".join(f"({u} && {u}->requires_grad())" if u in opts else f"{u}->requires_grad()" for u in users)
            )
        if self.optional(n):
            tests.insert(0, v)
        if len(tests) > 1 and " || " in tests[1]:
            tests[1] = f"({tests[1]})"
        guard = f"if ({' && '.join(tests)}) " if tests else ""
        return [f"{guard}back.save({k}, {value});"]

    def after_inplace(self) -> list[str]:
        first = C.cpp_name(self.x.sig.args[0].name)
        lines = []
        for k, n in enumerate(self.slots.tensors):
            if self.is_result(n):
                guard = self.result_guard(n, "node->").removeprefix("if (").removesuffix(") ")
                test = f"node && ({guard})" if " || " in guard else f"node && {guard}" if guard else "node"
                lines.append(f"if ({test}) node->save({k}, {first});")
        return lines

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
        if memory:
            body += self.all_at_once()
        for j in self.joints:
            body += self.joint_call(j, world)
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

    def all_at_once(self) -> list[str]:
        """One loop in place of one for each gradient, where all are asked for."""
        if self.together is None:
            return []
        loop, spec, reads = self.together
        slots = [self.x.slot(a) for a in self.formulas]
        asked = " && ".join(f"needs(*this, {i})" for i in slots)
        operands = ", ".join(["&g", *(self.loop_operand(n) for n in reads)])
        params = f", {{{', '.join(p.argument for p in loop.params)}}}" if loop.params else ""
        call = f"kernels::elementwise_together({spec.name}, loops[{loop.enumerator}], all, {{{operands}}}{params})"
        lines = [f"std::array<Storage, {len(slots)}> all;", f"if ({asked} &&", f"    {call}) {{"]
        for k, i in enumerate(slots):
            lines.append(f"  fit_into(grads[{i}], std::move(all[{k}]), input_shape({i}), input_dtype({i}));")
        return [*lines, "  return grads;", "}"]

    def gradients(self, world: str) -> list[str]:
        """The incoming gradients by name; nothing to do where all are absent."""
        x = self.x
        defined = (lambda e: f"{e}.defined()") if world == "Storage" else (lambda e: f"bool({e})")
        used = {i.of for f in self.formulas.values() for i in f.inputs if i.kind == "g"}
        used |= {x.results[0].name for f in self.formulas.values() if f.constant == 1}
        if self.list_result:
            return [
                f"std::vector<{world}> g(grad_outputs.size());",
                "for (std::size_t i = 0; i < g.size(); ++i)",
                "  g[i] = or_zeros(grad_outputs[i], output_like(std::uint32_t(i)));",
            ]
        if not self.multi:
            if not used:
                return []
            return [
                f"const {world}& g = grad_outputs[0];",
                f"if ({'!g.defined()' if world == 'Storage' else '!g'}) return grads;",
            ]
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
            return [f"{guard} fit_into(grads[{i}], g, {sizes}, {dtype});"]
        if world == "Storage" and f.loop is not None and f.spec is not None:
            operands = ", ".join(["&g", *(self.loop_operand(n) for n in f.loop_reads)])
            params = f", {{{', '.join(p.argument for p in f.loop.params)}}}" if f.loop.params else ""
            loop = f"{f.spec.name}, loops[{f.loop.enumerator}], {{{operands}}}{params}"
            if not f.factor:
                made = f"kernels::elementwise_to(grads[{i}], {loop});"
                return [f"{guard} {{", f"  {made}", f"  refit(grads[{i}], {sizes}, {dtype});", "}"]
            value = f"is_one({f.factor}_) ? g : kernels::elementwise({loop})"
        elif j := next((j for j in self.joints if a.name in j.results), None):
            value = f"{j.name.removeprefix(f'{x.base}_vjp_')}[{j.results[a.name]}]"
        else:
            value = f"{f.call(world)}({', '.join(self.node_inputs(f, a.name, world))})"
        return [f"{guard}", f"  fit_into(grads[{i}], {value}, {sizes}, {dtype});"]

    def joint_call(self, j: Joint, world: str) -> list[str]:
        """One call for the gradients that are asked for; the others come back undefined, or are left aside."""
        asked = {a: f"needs(*this, {self.x.slot(a)})" for a in j.results}
        args = [
            " || ".join(asked[a] for a in j.wants[i.of]) if i.kind == "want" else self.node_input(i, "", world)
            for i in j.inputs
        ]
        var = j.name.removeprefix(f"{self.x.base}_vjp_")
        return [
            f"std::array<{world}, {j.count}> {var};",
            f"if ({' || '.join(asked.values())})",
            f"  {var} = {j.name}<{world}>({', '.join(args)});",
        ]

    def grad_of_list(self, a: Arg, offset: str, world: str) -> list[str]:
        f = self.formulas[a.name]
        call = f"{f.name}<{world}>({', '.join(self.node_inputs(f, a.name, world))})"
        at = f"{offset} + k" if offset else "k"
        return [
            f"std::vector<{world}> parts_{a.name} = {call};",
            f"for (std::size_t k = 0; k < parts_{a.name}.size(); ++k)",
            f"  if (needs(*this, {at}))",
            f"    fit_into(grads[{at}], std::move(parts_{a.name}[k]), {a.name}_shapes_[k], {a.name}_dtypes_[k]);",
        ]

    def loop_operand(self, n: str) -> str:
        k = self.slots.tensors.index(n)
        value = f"operand(saved({k}))"
        return f"has_{n}_ ? {value} : &g" if self.optional(n) else value

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
                # A result without a derivative has no history to come back with.
                plain = self.is_result(i.of) and i.of not in {r.name for r in x.o.diff_results}
                graph = f"wiring::wrap(saved({k}))" if plain else f"saved_tensor({k})"
                value = f"saved({k})" if world == "Storage" else graph
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
