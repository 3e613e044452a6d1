"""Facts of an entry that follow from several of its keys: family, promotion, in-place legality, references."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from . import kinds
from .errors import did_you_mean
from .libraries import like_exists, like_members, module_exists
from .markers import disagreement
from .model import (
    TOP,
    Base,
    Diff,
    Entry,
    Formula,
    Like,
    Loc,
    Overload,
    Signature,
    TestSpec,
)  # fmt: skip
from .reads import reads_values
from .resolve_base import Resolver


class Facts(Resolver):
    """Checks of one entry beyond its formulas."""

    def family_keys(self) -> None:
        raw, fam = self.raw, self.raw.family
        has = raw.keys
        for a, b, why in (
            ("d", "vjp", "an elementwise op gives partials (d), a structured one its gradient (vjp)"),
            ("expr", "compose", "one formula defines the op"),
            ("expr", "kernel", "expr makes its own loop"),
            ("compose", "vjp", "the derivative follows from compose; for another, an autograd.Function"),
            ("compose", "tangent", "the derivative follows from compose"),
            ("compose", "shape", "the shape follows from compose"),
            ("expr", "python", "one of them computes it"),
            ("compose", "python", "one of them computes it"),
            ("kernel", "python", "one of them computes it"),
            ("expr", "view_of", "a loop writes its result into memory of its own"),
            ("compose", "view_of", "what the result shares, the ops of compose decide; family view does"),
        ):
            if a == "expr" and not fam.elementwise:
                continue  # refused below
            if a == "compose" and b == "view_of" and fam.name == "view":
                continue
            whole = b in ("python", "view_of")  # said once for all overloads
            both = any(self.per(a, i) and (whole or self.per(b, i)) for i in range(len(raw.sigs)))
            if a in has and b in has and both:
                self.fault("E208", has[b], f"'{a}' and '{b}' do not go together", why, [(has[a], f"'{a}' is here")])
        if fam.elementwise:
            if "shape" in has:
                self.fault("E208", has["shape"], f"family '{fam.name}' decides the shape", "drop 'shape'")
            for i, sig in enumerate(raw.sigs):
                self.operands(sig, self.per("expr", i))
        else:
            for key in ("expr", "d"):
                if key in has:
                    hint = "elementwise: unary binary ternary comparison logical; others give kernel, vjp or compose"
                    self.fault("E208", has[key], f"'{key}' is for elementwise families, not '{fam.name}'", hint)
        hint = "give expr (elementwise), compose (over other ops), kernel or python"
        if not any(k in has for k in ("expr", "compose", "kernel", "python")):
            self.fault("E105", raw.loc, "nothing computes it", hint)
            raw.bad = True
        elif "python" not in has:
            for i, sig in enumerate(raw.sigs):
                if not any(self.per(k, i) for k in ("expr", "compose", "kernel")):
                    self.fault("E105", sig.loc, f"nothing computes {sig.text}", hint, [(raw.loc, "the op")])
        if raw.values.get("operator") and self.world.base:
            hint = "the operators of tensors are the library's; method: name gives tensors a method"
            self.fault("E208", has["operator"], "'operator' is for ops of the library", hint)
        if fam.name == "view" and "view_of" not in has:
            self.fault("E105", raw.loc, "a view without 'view_of'", "view_of: input")

    def operands(self, sig: Signature, expr: Formula | None) -> None:
        tensors = [a for a in sig.args if a.type.is_tensor]
        for a in sig.args:
            if a.type.is_list and a.type.has_tensor:
                self.fault("E207", a.loc, f"'{a.name}' is a list: not an elementwise operand")
        name = self.raw.family.name
        least, most = {"unary": (1, 1), "binary": (1, 2), "pointwise": (4, 12)}.get(name, (1, 3))
        if not least <= len(tensors) <= most:
            want = {"unary": "one tensor", "binary": "one or two tensors", "pointwise": "four to twelve tensors"}.get(
                name, "one to three tensors"
            )
            self.fault(
                "E210", sig.loc, f"family '{self.raw.family.name}' takes {want}, the signature has {len(tensors)}"
            )
        operands = [a for a in sig.args if a.type.is_tensor or (a.type.base is Base.SCALAR and not a.type.is_list)]
        if self.raw.family.name == "binary" and len(operands) < 2 and tensors:
            self.fault("E210", sig.loc, "family 'binary' takes two operands, the signature has 1", "family: unary?")
        for r in sig.results:
            if r.type.dtype is not None and not (r.type.dtype == "bool" and self.is_bool(expr, sig)):
                text = f"'{r.name}' is {r.type}, but the operands decide the dtype of an elementwise result"
                self.fault("E207", r.loc, text, f"Tensor {r.name}; an op with compose: cast(x, '{r.type.dtype}')")
        if expr is not None and (len(sig.results) != 1 or not sig.results[0].type.is_tensor):
            several = len(sig.results) > 1
            hint = "several are a composition: compose: {first: formula, second: formula}" if several else ""
            self.fault("E210", sig.loc, f"family '{self.raw.family.name}' has one tensor result", hint)

    def is_bool(self, expr: Formula | None, sig: Signature) -> bool:
        given = {a.name: kinds.of_type(a.type) for a in sig.args}
        return self.raw.family.nondiff or (expr is not None and kinds.of(expr.node, given) == "bool")

    def public_names(self) -> None:
        """Names that stand for two things, or for one thing twice."""
        raw = self.raw
        homes = raw.values.get("home", (TOP,))
        taken = {f"{home}.{raw.op}" for home in homes} | {f"Tensor.{m}" for m in raw.values.get("method", ())}
        for name, loc in raw.values.get("aliases", ()):
            full = {name} if "." in name else {f"{home}.{name}" for home in homes}
            if twice := full & taken:
                text = f"aliases: '{name}' is {'the name of the op' if name == raw.op else f'{min(twice)} already'}"
                self.fault("E206", loc, text, "drop it")
            taken |= full
        for sig in raw.sigs if raw.values.get("out") else ():
            if (a := sig.arg("out")) is not None:
                hint = "give the argument another name, or drop 'out'"
                self.fault("E206", a.loc, "an argument 'out' beside out=, which says where the result goes", hint)

    def standard_names(self) -> None:
        """An argument of type dtype, device or generator has that name: it is the same word in every op."""
        for sig in self.raw.sigs:
            for a in sig.args:
                if a.type.base is Base.ANY and "python" not in self.raw.keys:
                    self.fault(
                        "E207", a.loc, f"'{a.name}' may be anything: only Python knows such values", "give python"
                    )
                if a.type.base in (Base.DTYPE, Base.DEVICE, Base.GENERATOR) and a.name != a.type.base.value:
                    self.fault(
                        "E205",
                        a.loc,
                        f"an argument of type {a.type.base.value} is called '{a.name}'",
                        f"call it '{a.type.base.value}'",
                    )

    def view(self) -> None:
        named = self.raw.values.get("view_of")
        if named:
            name, loc = named
            for sig in self.raw.sigs:
                arg = sig.arg(name)
                if arg is None or not arg.type.is_tensor or arg.type.optional:
                    tensors = [a.name for a in sig.tensor_args]
                    self.fault(
                        "E204",
                        loc,
                        f"view_of: '{name}' is not a tensor argument",
                        did_you_mean(name, tensors, True),
                        self.sig_notes(),
                    )
                    return

    def promote(self, overloads: list[Overload]) -> str:
        said = self.raw.values.get("promote")
        implied = {kinds.promotion(o.inlined, o.sig) for o in overloads if o.inlined is not None}
        if not implied:
            return str(said or ("bool" if self.raw.family.name == "comparison" else "common"))
        rule = "float" if "float" in implied else sorted(implied)[0]
        if said in ("sum", "int64", "given") or (said == "input" and rule != "common"):
            hint = 'drop it; for integers: family: composite, compose: cast(..., "i64"), and a result Tensor<i64>'
            text = f"promote: {said} has no effect on a formula over elements, whose operands promote together"
            self.fault("E207", self.key_loc("promote"), text, hint)
        if said == "common" and rule == "float":
            loc = self.key_loc("promote")
            self.fault(
                "E207",
                loc,
                "promote: common would truncate: expr is a float for integer inputs",
                "drop 'promote', or say float",
            )
        if rule == "bool" and said not in (None, "bool"):
            self.fault("E207", self.key_loc("promote"), f"promote: {said}, but expr is bool", "drop 'promote'")
        if self.raw.family.name == "comparison" and rule != "bool":
            expr = next(o.expr for o in overloads if o.expr)
            self.fault("E207", expr.loc, "a comparison whose expr is not bool", "family: binary?")
        return str(said or rule)

    def inplace(self, e: Entry) -> None:
        if not e.inplace:
            return
        loc = self.key_loc("inplace")
        fits = [
            o for o in e.overloads if o.sig.args and o.sig.args[0].type.is_tensor and not o.sig.args[0].type.optional
        ]
        if not fits or any(len(o.sig.results) != 1 or not o.sig.results[0].type.is_tensor for o in e.overloads):
            text = f"{e.op}_ needs a tensor as first argument and one tensor result"
            self.fault("E306", loc, text, "drop 'inplace'", self.sig_notes())
            return
        if e.view_of:
            return
        if e.inplace != "true":
            return
        for o in fits:
            first = o.sig.args[0].name
            for name, d in o.deriv.items():
                if d.formula is not None and first in reads_values(d.formula.node):
                    key = "vjp" if "vjp" in e.keys else "d"
                    what = (
                        f"{key} of '{name}'"
                        if d.kind is Diff.FORMULA
                        else f"the derivative of '{name}', {d.formula.text},"
                    )
                    hint = "write the formula with the result, or pay for a copy: 'inplace: save_copy', or drop it"
                    notes = [(d.loc, "read here"), *self.sig_notes()]
                    self.fault("E301", loc, f"{e.op}_ overwrites '{first}', but {what} reads it", hint, notes)
                    return

    def used_names(self, overloads: list[Overload]) -> None:
        test: TestSpec | None = self.raw.values.get("test")
        if test is None:
            needs_cases = any(d.kind is Diff.FORMULA for o in overloads for d in o.deriv.values())
            likes = [x for x in self.raw.per_overload.get("like", ()) if x is not None]
            if needs_cases and not self.raw.family.elementwise and any(x.kind != "tests" for x in likes):
                hint = "test: {cases: [{input: [2, 3], dim: 0}]}"
                self.fault("E105", self.raw.loc, "a vjp without test cases cannot be checked", hint)

    def mentioned(self, e: Entry) -> None:
        """A required argument of a kernel that neither formula nor reference nor test names is a slip."""
        for o in e.overloads:
            like = e.like_of(o.index)
            if not o.kernel or like is None or like.kind != "expr" or e.test.cases:
                continue
            text = (
                like.text
                + " "
                + " ".join(f.text for f in o.shapes)
                + " ".join(d.formula.text for d in o.deriv.values() if d.formula)
            )
            said = set(re.findall(r"[A-Za-z_]\w*", text)) | set(e.test.domains) | set(e.test.params)
            for a in o.sig.args:
                if a.required and not a.type.optional and a.name not in said:
                    hint = "use it, or drop it from the signature"
                    self.fault(
                        "E211",
                        a.loc,
                        f"argument '{a.name}' is in no formula, reference or test",
                        hint,
                        [(like.loc, "the reference")],
                    )

    def order(self) -> None:
        """Mappings list the required arguments as the signature does: so a swapped signature contradicts itself."""
        test: TestSpec | None = self.raw.values.get("test")
        listed: list[tuple[str, Loc, list[str]]] = []
        if test is not None:
            listed += [("test", test.loc, list(test.domains))]
            listed += [("a test case", test.loc, list(case)) for case in (*test.cases, *test.check)]
        for key in ("d", "vjp"):
            for given in self.raw.per_overload.get(key, ()):
                if given:
                    listed.append((key, self.key_loc(key), list(given)))
        for what, loc, names in listed:
            for sig in self.raw.sigs:
                required = [a.name for a in sig.args if a.required]
                order = [required.index(n) for n in names if n in required]
                if order == sorted(order):
                    break
            else:
                shown = ", ".join(n for n in names if n in required)
                self.fault(
                    "E212",
                    loc,
                    f"{what} lists {shown}, the signature {', '.join(required)}",
                    "keep one order",
                    self.sig_notes(),
                )
                return

    def like_names(self, e: Entry) -> None:
        """Names in a reference expression are arguments or the libraries."""
        import ast

        modules = {"numpy", "np", "scipy", "math", "mpmath", "mp"}
        likes = e.like if len(e.like) > 1 else e.like[:1]
        for i, like in enumerate(likes):
            if like is None or like.kind not in ("expr", "mpmath") or re.fullmatch(r"[\w.]+", like.text):
                continue
            sigs = [e.overloads[i].sig] if len(e.like) > 1 else [o.sig for o in e.overloads]
            scope = modules | {a.name for s in sigs for a in s.args}
            tree = ast.parse(like.text, mode="eval")
            bound = {x.arg for n in ast.walk(tree) if isinstance(n, ast.Lambda) for x in n.args.args}
            bound |= {
                x.id
                for n in ast.walk(tree)
                if isinstance(n, ast.comprehension)
                for x in ast.walk(n.target)
                if isinstance(x, ast.Name)
            }
            builtins = {"abs", "len", "int", "float", "bool", "complex", "tuple", "list", "range", "min", "max",
            "sum", "round", "sorted",
                        "slice", "zip", "map", "enumerate", "isinstance", "all", "any", "reversed", "set", "dict",
                        "str"}  # fmt: skip
            for n in ast.walk(tree):
                if isinstance(n, ast.Name) and n.id not in scope | bound | builtins:
                    loc = like.loc.at(n.col_offset, n.end_col_offset or n.col_offset + 1)
                    hint = did_you_mean(n.id, scope, True)
                    self.fault(
                        "E201",
                        loc,
                        f"like: '{n.id}' is not an argument",
                        hint,
                        [(s.loc, "the signature") for s in sigs],
                    )
        for like in likes:
            if like is not None and like.kind in ("name", "expr", "mpmath"):
                self._resolvable(like)

    def _resolvable(self, like: Like) -> None:
        """Every numpy.x, scipy.special.x and so on in a reference exists."""
        for m in re.finditer(r"(?<![\w.])(?:numpy|np|scipy|math|mpmath|mp)(?:\.[A-Za-z_]\w*)+", like.text):
            # The longest part that is a module or a function; methods of results come after a call and are not matched.
            if not like_exists(m[0]):
                parent, _, last = m[0].rpartition(".")
                hint = did_you_mean(last, like_members(parent))
                self.fault("E201", like.loc.at(*m.span()), f"like: {parent} has no '{last}'", hint)

    def declared(self, e: Entry) -> None:
        known = self.world.declared
        for o in e.overloads:
            if o.kernel and known.scanned and o.kernel not in known.kernels:
                loc = self.raw.per_overload["kernel"][o.index][1]
                self.fault("E404", loc, f"no header declares kernel '{o.kernel}'", self.undeclared(o.kernel))
            if o.kernel and o.kernel in known.parameters and (why := disagreement(o.sig, known.parameters[o.kernel])):
                text = f"kernel '{o.kernel}' ({known.kernels.get(o.kernel, 'header')}): {why}"
                at = self.raw.per_overload["kernel"][o.index][1]
                self.fault("E408", o.sig.loc, text, "change the header or the signature", [(at, "the kernel")])
        if e.python and self.world.base and not module_exists(e.python.partition(":")[0], Path(self.diags.path)):
            text = f"no module '{e.python.partition(':')[0]}' here, beside the file, or among those installed"
            self.fault("E404", self.key_loc("python"), text, "module:function, as it is imported")
        if e.python and known.functions and e.python not in known.functions:
            hint = did_you_mean(e.python, known.functions) or "define it at the top of that module"
            self.fault("E404", self.key_loc("python"), f"no function '{e.python}'", hint)
        for o in e.overloads if e.python in known.functions and len(e.overloads) == 1 else ():
            takes, names = known.functions[e.python or ""], tuple(a.name for a in o.sig.args)
            if takes != names:
                text = f"'{e.python}' takes {', '.join(takes)}, the signature has {', '.join(names)}"
                at = [(self.key_loc("python"), "the function")]
                self.fault("E408", o.sig.loc, text, "change the function or the signature", at)
        if e.batch and e.batch not in ("loop", "rows", *known.batches):
            self.rule_of_library(e, e.batch)

    def undeclared(self, kernel: str) -> str:
        if near := did_you_mean(kernel, self.world.declared.kernels):
            return near
        if not self.world.base:
            return "declare it in csrc/kernels with '// kernel: name' above"
        own = f"a header in csrc/ beside the file declares it under '// kernel: {kernel}'; "
        own += "define_op(..., sources=, header=) names the files"
        composed = f"the library's op is called by its name, compose: {kernel}(...); or "
        return composed + own if kernel in self.world.base else own

    def rule_of_library(self, e: Entry, name: str) -> None:
        """A rule is a function of C++: a named one is that of an op with the same arguments and results."""
        loc = self.raw.values["batch"][1]
        rules, own = self.world.rules, self.world.declared.batches
        if name not in rules:
            if own or self.world.base:
                hint = did_you_mean(name, {*own, *rules, "loop", "rows"}) or "batch: loop runs each sample for itself"
                self.fault("E407", loc, f"no batching rule '{name}'", hint)
            return

        def types(sig: Signature) -> tuple[str, ...]:
            return tuple(str(replace(x.type, dtype=None)) for x in sig.members)

        fits = {types(sig) for sig in rules[name]}
        for o in e.overloads:
            if types(o.sig) not in fits:
                text = f"the batching rule '{name}' is one of ops like {rules[name][0].text}"
                self.fault("E408", loc, text, "batch: loop runs each sample for itself", [(o.sig.loc, "the signature")])
