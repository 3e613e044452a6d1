"""Plans forward mode of one overload: the function that gives results their tangents.

By rule (linear, multilinear), by formula, by the partials of an elementwise op, or by transposing the vjp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from . import cpp_types as C
from .cpp_types import TENSOR
from .formula import Node
from .model import LINEAR, MULTILINEAR, Arg, Base, Diff
from .plan_formulas import Formula, Input, words
from .plan_node import NodePlanner
from .plan_terms import TermError, Terms, Value
from .plan_types import Function


class Backward(NodePlanner):
    """Everything backward and forward mode of one overload."""

    def tangent(self) -> tuple[str, Function | None]:
        """(the call that sets the results' tangents, the function it calls)."""
        x = self.x
        if not x.has_node:
            return "", None
        name = f"{x.base}_set_tangent"
        body = self.tangent_body()
        if not body:
            return "", None
        used = words(" ".join(body))
        params, args = [], []
        known = {r.name: r.type for r in x.results} | x.types
        for v, t in [(C.cpp_name(name), t) for name, t in known.items()]:
            if v in used:
                params.append(f"{C.param_type(replace(t, optional=False) if t.is_tensor else t, 'TensorRef')} {v}")
                args.append(v)
        call = f"{name}({', '.join(args)})"
        return call, Function(f"TP_COLD void {name}({', '.join(params)})", tuple(body))

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
            return (
                f"{v} ? wiring::tangent_or_zeros({v}) : TensorRef()"
                if a.type.optional
                else f"wiring::tangent_or_zeros({v})"
            )

        return lines + self.set_results(self.op_call(one))

    def tangent_multilinear(self, live: list[Arg]) -> list[str]:
        v = C.cpp_name(self.x.results[0].name)
        lines = ["TensorRef sum;"]
        for a in live:
            t = C.cpp_name(a.name)
            args = [f"wiring::tangent({t})" if b.name == a.name else self.primal(b) for b in self.x.sig.args]
            call = f"{self.x.call(self.x.fn)}({', '.join(args)})"
            lines += [f"if (wiring::tangent({t}))", f"  sum = plus(std::move(sum), {call});"]
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
            call = f"{f.name}({', '.join(self.partial_input(i, t) for i in f.inputs)})"
            if f.conjugates:  # the vjp multiplies by the conjugate of what the tangent is multiplied by
                call = f"conj_of({f.name}({', '.join(self.partial_input(i, t, 'conj_of') for i in f.inputs)}))"
            lines += [f"if (wiring::tangent({t}))", f"  sum = plus(std::move(sum), {call});"]
        return [*lines, f"wiring::set_tangent({v}, as_tangent(std::move(sum), {v}));"]

    def partial_input(self, i: Input, t: str, change: str = "") -> str:
        """An argument of an elementwise vjp that is given the tangent of `t` in the place of its cotangent."""
        if i.kind == "g":
            return f"{change}(wiring::tangent({t}))" if change else f"wiring::tangent({t})"
        return self.forward_input(i)

    def tangent_function(self, name: str, a: Arg, node: Node) -> Formula:
        """A formula over arguments, results and t, as a function of tensors; t comes last."""
        own = {"t", f"{a.name}_t"}
        node, scope, inputs = self.scope(node, a.name, {}, "TensorRef")
        scope |= {n: Value("t", TENSOR) for n in own}
        terms = Terms(self.ctx.ops, scope, "TensorRef", "dtype(t)")
        text = terms.tensor(node)
        params = ", ".join([*(i.param for i in inputs), "const TensorRef& t"])
        f = Formula(
            a.name, Function(f"TensorRef {name}({params})", (f"return {text};",)), name, tuple(inputs), terms.used
        )
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
                lines += [
                    f"if (wiring::tangent({t}))",
                    f"  sum{suffix} = plus(std::move(sum{suffix}), {name}({inputs}));",
                ]
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
                call = f"{f.call('TensorRef')}({', '.join(self.transposed_input(i) for i in f.inputs)})"
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
                inner.append(
                    f"  if (tangents[{index}]) grads[{index}] = fit(parts_{v}[k], {v}[k]->sizes(), {v}[k]->dtype());"
                )
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
            lines.append(
                "const std::vector<TensorRef> t ="
                " wiring::tangent_by_transpose(outs, [&](std::span<const TensorRef> us) {"
            )
            if self.list_result:
                inner.insert(0, "std::span<const TensorRef> g = us;")
            else:
                inner[:0] = [f"const TensorRef& g_{r.name} = us[{k}];" for k, r in enumerate(diff)]
        else:
            lines.append(f"TensorRef t = wiring::tangent_by_transpose({results[0]}, [&](const TensorRef& g) {{")
        lines += ["  " + s for s in inner]
        lines.append("}, tangents);")
        if self.multi or self.list_result:
            lines.append(
                "for (std::size_t i = 0; i < outs.size(); ++i) wiring::set_tangent(outs[i], as_tangent(t[i], outs[i]));"
            )
        else:
            lines.append(f"wiring::set_tangent({results[0]}, as_tangent(std::move(t), {results[0]}));")
        return lines

    def transposed_input(self, i: Input) -> str:
        if i.kind == "g":
            return "g" if not self.multi else f"g_{i.of}"
        return self.forward_input(i)
