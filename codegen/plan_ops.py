"""Plans one overload in C++: names, specs, loops, the forward functions and what they record. Renders nothing.

The backward half (gradient formulas, nodes, tangents) is planned by plan_backward.py on top of the names fixed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import cpp_types as C
from .derive import times_g
from .formula import Call, Name, Node, names
from .model import DTYPE_GROUPS, Arg, Base, Diff, Entry, Overload, Result, Type
from .plan_compute import SERVES, is_mask_use, share_work
from .plan_loop_forms import Loop
from .plan_loops import LoopBuilder
from .plan_static import LoopError
from .plan_terms import Ops, Terms, Use, Value
from .plan_terms import reads as elements_read
from .plan_types import Function, PlanFault, Spec
from .simplify import expand

AMP = {"promote": "Promote", "keep": "Keep", "force_fp32": "ForceFp32", "lower": "Lower"}
_FLOATING = {"F32", "F64", "C64", "C128"}


class Fault(Exception):
    """A formula that cannot be rendered, with its place."""

    def __init__(self, fault: PlanFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True)
class Context:
    """What the planner of one overload knows of the rest."""

    ops: Ops
    kernels: Mapping[str, str]  # kernel -> header
    shard: str


class OverloadNames:
    """The decided C++ names of one overload, and the questions every part of the plan asks."""

    def __init__(self, entry: Entry, o: Overload) -> None:
        self.entry, self.o, self.sig = entry, o, o.sig
        self.op = entry.op
        self.stem = entry.stem
        self.fn = C.function_name(entry.stem)
        self.base = entry.stem if o.index == 0 else f"{entry.stem}_{o.index}"
        self.cls = f"{C.pascal(entry.op)}Backward{o.index or ''}"
        self.types: dict[str, Type] = {a.name: a.type for a in o.sig.args}
        self.results: tuple[Result, ...] = o.sig.results
        self.composed = bool(o.compose)
        self.tensor_args = o.sig.tensor_args
        self.singles = tuple(a for a in self.tensor_args if not a.type.is_list)
        self.elementwise_vjp = "vjp" in entry.keys
        said = {a.name: o.deriv[a.name].kind for a in self.tensor_args if a.name in o.deriv}
        self.recorded: tuple[Arg, ...] = (
            tuple(a for a in self.tensor_args if said.get(a.name, Diff.NONDIFF) is not Diff.NONDIFF)
            if o.diff_results
            else ()
        )
        self.has_node = bool(self.recorded) and not self.composed and entry.python is None
        self.list_node = any(a.type.is_list for a in self.recorded)
        self.schema = f"{self.cls}::schema_v1" if self.has_node else f"k{C.pascal(self.base)}Schema"
        self.kernel = o.kernel or (entry.op if o.inlined is None and not o.compose and entry.python is None else None)
        self.has_loop = o.inlined is not None
        self.tensor_result = all(r.type.has_tensor for r in self.results)

    @property
    def schema_init(self) -> str:
        e = self.entry
        parts = [C.string_literal(e.op), C.string_literal(self.sig.text or str(self.sig)), str(e.version)]
        parts += [f"Amp::{AMP[e.amp]}", "true" if e.deterministic else "false"]
        return "{" + ", ".join(parts) + "}"

    def shadowed(self, name: str) -> bool:
        return name in {C.cpp_name(n) for n in [*self.types, *(r.name for r in self.results)]}

    def call(self, name: str) -> str:
        """A function of namespace ops, qualified where an argument has its name."""
        return f"ops::{name}" if self.shadowed(name) else name

    def slot(self, arg: str) -> int:
        """The number of a single tensor argument among the inputs."""
        return next(i for i, a in enumerate(self.singles) if a.name == arg)

    def fault(self, where: str, message: str, loc: object = None) -> Fault:
        line, col, width = (getattr(loc, k, d) for k, d in (("line", 0), ("col", 0), ("width", 1)))
        return Fault(PlanFault(self.op, where, message, line, col, width))

    # ---- argument text ----

    def storage_args(self) -> list[str]:
        """The arguments of a TensorRef function as those of the Storage function."""
        out = []
        for a in self.sig.args:
            v = C.cpp_name(a.name)
            if not a.type.has_tensor:
                out.append(v)
            elif a.type.is_list:
                out.append(f"storages_of({v})")
            elif a.type.optional:
                out.append(f"storage_or_absent({v})")
            else:
                out.append(f"{v}->storage()")
        return out

    def records(self) -> str:
        """The condition under which a result gets history."""
        single = [a for a in self.recorded if not a.type.is_list]
        lists = [C.cpp_name(a.name) for a in self.recorded if a.type.is_list]
        tests = [f"wiring::records({v})" for v in lists]
        plain = [C.cpp_name(a.name) for a in single]
        if single and len(single) <= 3 and not any(a.type.optional for a in single):
            tests.insert(0, f"wiring::records({', '.join(plain)})")
        elif single:
            tests.insert(0, f"wiring::records({{{', '.join('&' + v for v in plain)}}})")
        test = " || ".join(tests)
        if any(a.type.base is Base.DTYPE for a in self.sig.args):
            name = C.cpp_name(self.results[0].name)
            test = f"({test}) && is_differentiable({name}->dtype())"
        return test

    def has_tangents(self) -> str:
        single = [C.cpp_name(a.name) for a in self.recorded if not a.type.is_list]
        tests = [f"wiring::has_tangents({C.cpp_name(a.name)})" for a in self.recorded if a.type.is_list]
        if single:
            tests.insert(0, f"wiring::has_tangents({{{', '.join('&' + v for v in single)}}})")
        return tests[0] if len(tests) == 1 else f"({' || '.join(tests)})"

    def tangent_inputs(self) -> str:
        """The arguments whose tangents count, as each_level takes them."""
        single = ", ".join("&" + C.cpp_name(a.name) for a in self.recorded if not a.type.is_list)
        lists = ", ".join(C.cpp_name(a.name) for a in self.recorded if a.type.is_list)
        return f"{{{single}}}, {{{lists}}}"


class Elementwise:
    """Loops and specs of an elementwise overload."""

    def __init__(self, x: OverloadNames) -> None:
        self.x = x
        expr = x.o.inlined
        self.masks = frozenset(
            a.name
            for a in x.singles
            if a.type.dtype == "bool" or (expr is not None and a.name in names(expr) and is_mask_use(a.name, expr))
        )
        if expr is not None and len(self.masks) == len(x.singles) and x.singles:
            self.masks = frozenset()  # without a value operand there would be no common dtype
        promote = x.entry.promote
        self.promote = "Float" if promote in ("float", "float_real") else "Common"
        self.out = {"bool": "Bool", "real": "Real", "float_real": "Real"}.get(promote, "Common")
        self.allowed = {c for d in x.entry.dtypes for c in SERVES[d]} if x.entry.dtypes else set(C_ALL)
        if self.promote == "Float":
            self.allowed &= _FLOATING

    def mask_bits(self, inputs: tuple[str, ...]) -> int:
        return sum(1 << i for i, n in enumerate(inputs) if n in self.masks)

    def forward(self) -> tuple[Loop, Spec]:
        x = self.x
        expr = x.o.inlined
        assert expr is not None and x.o.expr is not None
        inputs = tuple(a.name for a in x.singles)
        out = {"Bool": "bool", "Real": "real_t<T>", "Common": "T"}[self.out]
        comment = f"{x.base}: {x.results[0].name} = {x.o.expr.text}"
        loop = self.build(x.base, comment, [expr], inputs, out, self.allowed)
        spec = Spec(f"k{C.pascal(x.base)}Spec", x.schema, len(inputs), self.mask_bits(inputs), self.promote, self.out)
        return loop, spec

    def gradient(self, arg: str, d: Node, text: str, suffix: str = "_") -> tuple[Loop, Spec, tuple[str, ...]]:
        """The fused loop strong_mul(conj(d), g): loop, spec, and the names it reads after g. Arguments that it passes
        are members of the node, with a suffix."""
        x = self.x
        tensors = [*(a.name for a in x.singles), *(r.name for r in x.results)]
        reads = tuple(i for i in tensors if i in elements_read(d))
        inputs = ("g", *reads)
        allowed = (self.allowed if self.allowed & _FLOATING else set(C_ALL)) & _FLOATING
        complex_too = bool(allowed & {"C64", "C128"})
        name = f"{x.base}_vjp_{arg}"
        shown = f"conj({text})" if complex_too else text
        comment = f"{x.base}, gradient of {arg}: strong_mul({shown}, g)"
        loop = self.build(name, comment, [self.times_g(d, complex_too)], inputs, "T", allowed, suffix)
        spec = Spec(f"k{C.pascal(name)}Spec", x.schema, len(inputs), self.mask_bits(inputs), "Common", "Common")
        return loop, spec, reads

    def gradients(self, ds: dict[str, Node]) -> tuple[Loop, Spec, tuple[str, ...]] | None:
        """One loop for all gradients, where two of them share what is costly; for real elements alone, as nearly all
        are. As `gradient` otherwise."""
        x = self.x
        tensors = [*(a.name for a in x.singles), *(r.name for r in x.results)]
        read = set().union(*map(elements_read, ds.values()))
        reads = tuple(i for i in tensors if i in read)
        if any(i in self.masks or (i in x.types and x.types[i].optional) for i in reads):
            return None
        if not share_work([*ds.values()], len(reads)):
            return None
        name = f"{x.base}_vjps"
        comment = f"{x.base}, gradients of {', '.join(ds)} at once"
        allowed = self.allowed & {"F32", "F64"}
        values = [self.times_g(d) for d in ds.values()]
        loop = self.build(name, comment, values, ("g", *reads), "T", allowed, "_")
        return loop, Spec(f"k{C.pascal(name)}Spec", x.schema, len(reads) + 1, 0, "Common", "Common"), reads

    def times_g(self, d: Node, conj: bool = False) -> Node:
        return times_g(expand(d), lambda b: Call("strong_mul", (Call("conj", (b,)) if conj else b, Name("g"))))

    def build(
        self, name: str, comment: str, exprs: list[Node], inputs: tuple[str, ...], out: str, allowed: set[str],
        suffix: str | None = None,
    ) -> Loop:  # fmt: skip
        """`suffix`: of members of the node, where the loop is one of its gradients."""
        try:
            builder = LoopBuilder(self.x.types, self.masks, suffix or "")
            return builder.build(name, comment, exprs, inputs, out, allowed)
        except LoopError as e:
            where = "expr" if suffix is None else "d"
            loc = self.x.o.expr.loc if self.x.o.expr else self.x.entry.loc
            raise self.x.fault(where, str(e), loc) from None


C_ALL = ("B8", "I32", "I64", "U64", "F32", "F64", "C64", "C128")


def allowed_dtypes(listed: tuple[str, ...]) -> str:
    """The dtypes of an entry's list as C++ masks, group by group."""
    groups = [g for g, members in DTYPE_GROUPS.items() if all(d in listed for d in members)]
    rest = [d for d in listed if not any(d in DTYPE_GROUPS[g] for g in groups)]
    return " | ".join(
        [*(f"k{C.pascal(g)}Dtypes" for g in groups), *(f"dtype_bit(Dtype::{C.DTYPE_CPP[d]})" for d in rest)]
    )


class Forward:
    """The functions of an overload: on memory, on tensors, in place, into out=."""

    def __init__(
        self, x: OverloadNames, ctx: Context, elementwise: Elementwise | None, loop: Loop | None, spec: Spec | None
    ) -> None:
        self.x, self.ctx, self.e, self.loop, self.spec = x, ctx, elementwise, loop, spec
        self.uses: set[Use] = set()

    # ---- on memory ----

    def storage_head(self) -> str:
        x = self.x
        name = x.fn if x.tensor_args else f"make_{x.stem}"
        return f"{C.result_type(x.results, 'Storage')} {name}({C.params_text(x.sig.args, 'Storage')})"

    def followers(self) -> list[str]:
        """Operands that are converted to the dtype of the first one, where the entry says that it decides."""
        if self.e is None or self.x.entry.promote != "input":
            return []
        return [a.name for a in self.x.singles if a.name not in self.e.masks][1:]

    def follow(self, ref: str = "{}") -> list[str]:
        if self.e is None or self.x.entry.promote != "input":
            return []
        first = ref.format(C.cpp_name(self.x.singles[0].name))
        checks = [
            f"kernels::check_held({self.x.schema}.name, {C.cpp_name(a.name)}, {first}.dtype());"
            for a in self.x.sig.args
            if a.type.base is Base.SCALAR
        ]
        return checks + [
            f"const Storage {C.cpp_name(n)}_held = kernels::held({self.x.schema}.name, {ref.format(C.cpp_name(n))}, "
            f"{first}.dtype());"
            for n in self.followers()
        ]

    def inputs(self, ref: str = "&{}") -> str:
        """The operand list of the forward loop; an absent operand is stood in for by the first."""
        first = C.cpp_name(next(a.name for a in self.x.singles if not a.type.optional))
        out = []
        followers = self.followers()
        for a in self.x.singles:
            v = C.cpp_name(a.name)
            one = f"&{v}_held" if a.name in followers else ref.format(v)
            if a.type.optional:
                test = f"{v}.defined()" if ref == "&{}" else f"{v}"
                one = f"{test} ? {one} : {ref.format(first)}"
            out.append(one)
        return ", ".join(out)

    def driver(self) -> str:
        """The first arguments of the elementwise driver."""
        assert self.loop is not None and self.spec is not None
        return f"{self.spec.name}, loops[{self.loop.enumerator}]"

    def params(self) -> str:
        assert self.loop is not None
        return f", {{{', '.join(p.argument for p in self.loop.params)}}}" if self.loop.params else ""

    def storage(self) -> Function:
        x = self.x
        body: list[str] = []
        if not x.entry.deterministic:
            body.append(f"modes::require_deterministic({C.string_literal(x.op)});")
        if not x.composed:
            body += self.check_dtypes()
        if self.loop is not None and self.spec is not None:
            body += self.follow()
            body += self.raise_operand()
            body.append(f"return kernels::elementwise({self.driver()}, {{{self.inputs()}}}{self.params()});")
        elif x.composed and not x.o.kernel:
            args = ", ".join(C.cpp_name(a.name) for a in x.sig.args)
            body.append(f"return {x.base}_compose<Storage>({args});")
        else:
            args = "".join(f", {C.cpp_name(a.name)}" for a in x.sig.args)
            body.append(f"return kernels::{C.function_name(x.kernel or x.op)}({x.schema}{args});")
        return Function(self.storage_head(), tuple(body))

    def through(self) -> Function | None:
        """A composition's form on memory through the one on tensors, so that the formula is compiled once: for those
        that no gradient formula calls on memory."""
        x = self.x
        if not x.composed or x.o.kernel or not x.tensor_args:
            return None
        args = [f"tensors_of({v})" if a.type.has_tensor else v for a in x.sig.args for v in [C.cpp_name(a.name)]]
        call = f"{x.call(x.fn)}({', '.join(args)})"
        return Function(self.storage_head(), (f"return on_tensors([&] {{ return {call}; }});",))

    def check_dtypes(self) -> list[str]:
        """A dtype that the entry does not list is refused by name, where no missing loop does that."""
        x = self.x
        listed = x.entry.dtypes
        if not listed or not x.singles:
            return self.fixed_dtypes()
        if self.e is not None and x.has_loop:
            # Integers become floats before a loop is looked for.
            if self.e.promote != "Float" or any(d in listed for d in ("bool", "i64")):
                return self.fixed_dtypes()
            checked = [a for a in x.singles if a.name not in self.e.masks and a.type.dtype is None]
        else:
            checked = [a for a in x.singles[:1] if a.type.dtype is None and not a.type.optional]
        lines = [f"check_dtype({x.schema}, {C.cpp_name(a.name)}, {allowed_dtypes(listed)});" for a in checked]
        return lines + self.fixed_dtypes()

    def fixed_dtypes(self, ref: str = "{}") -> list[str]:
        """An operand of a loop whose dtype the signature fixes; a kernel looks for itself."""
        if self.loop is None:
            return []
        lines = []
        for a in self.x.singles:
            if a.type.dtype is not None:
                v = C.cpp_name(a.name)
                given = f"{v}.defined()" if ref == "{}" else v
                check = f"check_dtype({self.x.schema}, {ref.format(v)}, {allowed_dtypes((a.type.dtype,))});"
                lines.append(f"if ({given}) {check}" if a.type.optional else check)
        return lines

    def scalars(self) -> list[str]:
        """Scalar arguments: like operands, they take part in promotion, where the first operand does not decide."""
        if self.x.entry.promote == "input":
            return []
        return [
            C.cpp_name(a.name)
            for a in self.x.sig.args
            if a.type.base is Base.SCALAR and not a.type.is_list and not a.type.optional
        ]

    def raise_operand(self) -> list[str]:
        """Where a Scalar outranks every operand (an integer tensor times 0.5), the first operand is cast up."""
        x = self.x
        first = C.cpp_name(next(a.name for a in x.singles if not a.type.optional))
        operands = ", ".join("&" + C.cpp_name(a.name) for a in x.singles if not a.type.optional)
        lines = []
        for v in self.scalars():
            args = [f"raised({first}, {v})" if C.cpp_name(a.name) == first else C.cpp_name(a.name) for a in x.sig.args]
            lines.append(f"if (TP_UNLIKELY(outranks({v}, {{{operands}}})))")
            lines.append(f"  return {x.call(x.fn)}({', '.join(args)});")
        return lines

    def refuse_scalars(self, operands: str) -> list[str]:
        """The same where the result goes into memory of a given dtype: an error."""
        name = self.x.schema
        return [f"refuse_outranked({name}, {C.string_literal(v)}, {v}, {{{operands}}});" for v in self.scalars()]

    # ---- on tensors ----

    def tensor_head(self, suffix: str = "", extra: str = "") -> str:
        x = self.x
        name = x.stem + suffix if suffix else x.fn
        params = C.params_text(x.sig.args, "TensorRef")
        return f"{C.result_type(x.results, 'TensorRef')} {name}({params}{extra})"

    def autocast(self) -> list[str]:
        x = self.x
        if x.entry.amp == "keep" or not x.singles:
            return []
        casts = []
        for a in x.sig.args:
            v = C.cpp_name(a.name)
            casts.append(f"wiring::autocast({x.schema}, {v})" if a.type.is_tensor and a.type.dtype is None else v)
        return [
            "if (TP_UNLIKELY(modes::any(modes::kAutocast))) {",
            "  modes::Guard off(0, modes::kAutocast);",
            f"  return {x.call(x.fn)}({', '.join(casts)});",
            "}",
        ]

    def tensor(self, record: list[str], set_tangent: str, batched: list[str]) -> Function:
        """The recording form. `record` is what happens once a result must get history, `batched` what inside vmap."""
        x = self.x
        body = [*batched, *self.autocast()]
        memory = f"{x.call(x.fn) if x.tensor_args else 'make_' + x.stem}({', '.join(x.storage_args())})"
        if x.composed:
            args = ", ".join(C.cpp_name(a.name) for a in x.sig.args)
            if x.o.kernel:  # the kernel where nothing is differentiated, the formula where something is
                body += self.plain_kernel(memory)
            return Function(self.tensor_head(), (*body, f"return {x.base}_compose<TensorRef>({args});"))
        if not x.tensor_result:
            return Function(self.tensor_head(), (*body, f"return {memory};"))
        names_ = [C.cpp_name(r.name) for r in x.results]
        # Without a derivative (detach) the memory is shared, but the result follows nobody's history.
        base = C.cpp_name(x.entry.view_of) if x.has_node and x.entry.view_of and x.entry.view_of in x.types else None
        op = C.string_literal(x.op)
        if len(x.results) > 1:
            body.append(f"std::array<Storage, {len(names_)}> results = {memory};")
            body += [f"TensorRef {v} = wiring::wrap(std::move(results[{i}]));" for i, v in enumerate(names_)]
        elif x.results[0].type.is_list:
            one = "TensorImpl::make(std::move(s))" if base else "wiring::wrap(std::move(s))"
            body.append(f"std::vector<TensorRef> {names_[0]};")
            body += [f"for (Storage& s : {memory})", f"  {names_[0]}.push_back({one});"]
            if base:
                body.append(f"for (const TensorRef& t : {names_[0]})")
                body.append(f"  settle_view(t, {base}, {op}, ViewKind::MultiOutput);")
        elif base:
            body.append(f"TensorRef {names_[0]} = view_of({base}, {op}, [&] {{ return {memory}; }});")
        else:
            body.append(f"TensorRef {names_[0]} = wiring::result_of([&] {{ return {memory}; }});")
            if x.entry.view_of:  # without history it still shows memory whose changes nobody counts
                body.append(f"if (TP_UNLIKELY({x.entry.view_of}->is_inference())) {names_[0]}->set_inference(true);")
        if x.has_node:
            body.append(f"if ({x.records()}) {{")
            body += ["  " + s for s in record]
            body.append("}")
            if set_tangent:
                body.append(f"if (TP_UNLIKELY(modes::any(modes::kForward)) && {x.has_tangents()})")
                body.append(f"  wiring::each_level({x.tangent_inputs()}, [&] {{ {set_tangent}; }});")
        body.append(f"return {names_[0]};" if len(names_) == 1 else f"return {{{', '.join(names_)}}};")
        return Function(self.tensor_head(), tuple(body))

    def plain_kernel(self, memory: str) -> list[str]:
        x = self.x
        followed = [x.records(), f"(modes::any(modes::kForward) && {x.has_tangents()})"] if x.recorded else []
        lines = [f"std::array<Storage, {len(x.results)}> results = {memory};"] if len(x.results) > 1 else []
        wrapped = [f"wiring::wrap(std::move(results[{i}]))" for i in range(len(x.results))]
        # A gradient that is not wanted comes back absent.
        wrapped = [f"results[{i}].defined() ? {w} : TensorRef()" for i, w in enumerate(wrapped)]
        lines.append(f"return {{{', '.join(wrapped)}}};" if len(x.results) > 1 else f"return wiring::wrap({memory});")
        if not followed:
            return lines
        return [f"if (!({' || '.join(followed)})) {{", *("  " + s for s in lines), "}"]

    def inplace(self, record: list[str], after: list[str], batched: list[str]) -> Function:
        """op_: the first argument is overwritten and takes the op's history."""
        x = self.x
        first = C.cpp_name(x.sig.args[0].name)
        args = ", ".join(C.cpp_name(a.name) for a in x.sig.args)
        head = self.tensor_head("_")
        memory = f"{first}->storage()"
        records = x.records() if x.recorded else ""
        if " && is_differentiable(" in records:
            records = records[1 : records.index(") && is_differentiable(")]
        body = [*batched, *([f"const bool record = {records};"] if records else [])]
        body.append(f"wiring::check_inplace({x.schema}, {first}, {'record' if records else 'false'});")
        if records:
            # The functional form gives the tangent: it may read the value that is about to be overwritten, and what is
            # recorded of it keeps that value.
            body.append("TensorRef dual;")
            body.append(f"if (TP_UNLIKELY(modes::any(modes::kForward)) && {x.has_tangents()})")
            before = ", ".join(self.before_change(a, first) for a in x.sig.args)
            body.append(f"  dual = {x.call(x.fn)}({before});")
        node = "nullptr"
        if x.entry.view_of:
            body.append(f"Storage shown = {x.call(x.fn)}({', '.join(x.storage_args())});")
        if x.composed:
            result = f"{x.call(x.fn)}({args})"
            if records:
                # The parts of the formula save what they read: of a copy, since this memory is about to change.
                terms = Terms(self.ctx.ops, {first: Value(first, C.TENSOR)}, "TensorRef")
                copy = terms.call_op("clone", (Value(first, C.TENSOR),), {}, x.o.compose[-1][1].node).text
                self.uses |= terms.used
                rest = "".join(f", {C.cpp_name(a.name)}" for a in x.sig.args[1:])
                result = f"record ? {x.call(x.fn)}({copy}{rest}) : {result}"
            body.append(f"TensorRef result = {result};")
            if not records and not x.sig.args[0].type.is_list:
                # Nothing of the old value is left, in the gradient either: recorded as a copy that overwrites it.
                body.append(f"if (wiring::records({first}) || {first}->has_tangent()) {{")
                body.append(f"  engine_ops.copy_graph({first}, result);")
                body.append(f"  return {first};")
                body.append("}")
            body.append(f"kernels::copy_broadcast({C.string_literal(x.op + '_')}, {memory}, result->storage());")
            node = "record ? NodeRef::share(grad_fn(result)) : NodeRef()" if records else "NodeRef()"
        else:
            if x.has_node:
                body.append(f"Ref<{x.cls}> node;")
                body.append("if (record) {")
                body += ["  " + s for s in record]
                body.append("}")
                node = "node"
            body += self.overwrite(first, memory)
        body.append(f"wiring::finish_inplace({first}, {node});")
        if records:
            body.append(f"if (dual) wiring::take_tangents({first}, dual);")
        if x.has_node and not x.composed:
            body += after  # with the tangents that the result has got
        body.append(f"return {first};")
        return Function(head, tuple(body))

    def before_change(self, a: Arg, first: str) -> str:
        """An argument of the functional form beside the in-place one, which writes into `first`."""
        v = C.cpp_name(a.name)
        writes = not self.x.entry.view_of and a.type.is_tensor and not a.type.is_list and a.type.dtype is None
        return f"wiring::before_change({v}, {first})" if writes else v

    def overwrite(self, first: str, memory: str) -> list[str]:
        x = self.x
        if self.loop is not None and self.spec is not None:
            inputs = self.inputs("&{}->storage()")
            loop = f"kernels::elementwise_into({self.driver()}, {memory}, {{{inputs}}}{self.params()});"
            ref = "{}->storage()"
            return [*self.fixed_dtypes(ref), *self.follow(ref), *self.refuse_scalars(inputs), loop]
        if x.entry.view_of:
            return [f"{first}->set_storage(std::move(shown));"]
        if f"{x.kernel}_" in self.ctx.kernels:
            rest = "".join(f", {s}" for s in x.storage_args()[1:])
            return [f"kernels::{x.kernel}_({x.schema}, {memory}{rest});"]
        op = C.string_literal(x.op + "_")
        return [f"kernels::copy_broadcast({op}, {memory}, {x.call(x.fn)}({', '.join(x.storage_args())}));"]

    def out(self, batched: list[str]) -> Function:
        """op_out of a loop: the result goes into `out`, which keeps its memory where the sizes agree. The results of
        other ops are written into out= by the bindings."""
        x = self.x
        assert self.loop is not None and self.spec is not None
        inputs = ", ".join("&" + C.cpp_name(a.name) for a in x.singles)
        head = self.tensor_head("_out", ", const TensorRef& out_")
        memory = f"{x.call(x.fn)}({', '.join(x.storage_args())})"
        operands = self.inputs("&{}->storage()")
        loop = f"{self.spec.name}, loops[{self.loop.enumerator}]"
        body = [
            *batched,
            f"wiring::check_out({x.schema}, out_, {{{inputs}}});",
            *self.fixed_dtypes("{}->storage()"),
            *self.follow("{}->storage()"),
            *self.refuse_scalars(operands),
            f"const Storage* const operands[] = {{{operands}}};",
            f"if (kernels::broadcast_shapes({x.schema}.name, operands) == out_->sizes()) {{",
            f"  kernels::elementwise_into({loop}, out_->storage(), {{{operands}}}{self.params()});",
            "  wiring::finish_inplace(out_, nullptr);",
            "} else {",
            f"  wiring::write_out({x.schema}, out_, {memory});",
            "}",
            "return out_;",
        ]
        return Function(head, tuple(body))
