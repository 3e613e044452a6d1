"""Plans the batching rule of one overload: which rule, its C++ function, and the rule in words. Renders nothing.

A rule brings the operands to a common set of batch dimensions (csrc/transforms), runs the op itself on them and wraps
the result. Families bring theirs; `batch:` names one of csrc/transforms/rules.h, or is `rows`; what has none runs once
per sample.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from . import cpp_types as C
from .model import Arg, Base, Entry, Overload
from .plan_ops import OverloadNames
from .plan_types import Function


@dataclass(frozen=True)
class Rule:
    name: str  # broadcast, compose, leading, fold, random, loop, none, or a name of rules.h
    words: str
    args: dict[str, str] = field(
        default_factory=dict
    )  # argument -> its form behind the batch, a member of Leading or Fold
    rank: str = ""  # dimensions that one sample must have, in C++
    lift: bool = False  # a 0-d sample counts as a vector of one element
    unless: tuple[str, ...] = ()  # conditions under which the op runs once per sample all the same
    inplace: bool = False  # op_ works on the physical memory; others write the result of the functional form into it


BROADCAST = Rule(
    "broadcast", "batch dimensions stand in front of the logical ones, which broadcast behind them", inplace=True
)
COMPOSE = Rule("compose", "the formula runs on batched operands")
RANDOM = Rule("random", "draws once, or for each sample, as `randomness` says")
LOOP = Rule("loop", "no rule: the op runs once per sample")
FOLDED_WORDS = "the batch and the leading N become one dimension"
NONE = Rule("none", "no tensor goes in")

# Dimension arguments by name, where the family does not read them otherwise.
_DIMS = {"dim", "dim0", "dim1", "dim2", "dimension"}
_LISTS = {"source", "destination"}
_SIZES = {"size", "input_size"}
_OWN = {
    "permute": {"dims": "permutation"},
    "flip": {"dims": "dims"},
    "squeeze": {"dim": "squeezed"},
    "reshape": {"shape": "shape"},
    "view": {"shape": "shape"},
    "expand": {"size": "expanded"},
    "repeat": {"repeats": "repeats"},
    "sum_to": {"size": "summed"},
    "roll": {"dims": "rolled"},
    "stack": {"dim": "new_dim"},
    "unsqueeze": {"dim": "new_dim"},
    "diag_embed": {"dim1": "new_dim", "dim2": "new_dim"},
}
_LIFTED = ("reduction", "scan", "sort")
_MATRICES = {"linalg": "2"}
_RANKS = {
    "tril": "2", "triu": "2", "view_as_complex": "1", "lu_permutation": "1", "checked_pivots": "1", "checked_info": "0",
    "refused": "0", "diag_embed": "1",
    "constant_pad_nd": "pad.size() / 2", "pad_by_index": "pad.size() / 2",
}  # fmt: skip
# Structured ops without a dimension argument whose kernels work on trailing dimensions or element by element.
_TRAILING = {
    "cast", "clone", "compact", "detach", "real", "view_as_real", "view_as_complex", "constant_pad_nd", "pad_by_index",
    "tril", "triu", "checked_pivots", "frexp",
}  # fmt: skip
# Sizes among their arguments are those of memory, or of what all samples share.
_NEVER = {"as_strided_backward", "as_strided_scatter", "masked_select_backward", "nll_loss_backward"}
_GATHERS = {"gather", "scatter", "scatter_add"}
_FOLDED = {"im2col": "4", "col2im": "3"}
_POOL = re.compile(r"(adaptive_)?(avg|max)_pool([123])d(_plain|_backward|_with_indices)?$")
_UPSAMPLE = re.compile(r"upsample_\w+_(to|backward)$")


def rule_of(e: Entry, o: Overload) -> Rule:
    """The batching rule of an overload."""
    if e.batch == "loop":
        return LOOP
    if e.batch == "rows":
        return leading_rule(e, o, rows=True) or LOOP
    if e.batch:
        # copy_ is what the others write with.
        return Rule(e.batch, f"`{e.batch}` of csrc/transforms/rules.h", inplace=e.op == "copy")
    if o.compose:
        return COMPOSE
    if e.family.name == "random":
        return RANDOM
    if not o.sig.tensor_args:
        return NONE
    if e.elementwise:
        return BROADCAST
    return pool_rule(e) or leading_rule(e, o) or LOOP


def pool_rule(e: Entry) -> Rule | None:
    if m := _UPSAMPLE.match(e.op):
        # One kernel for all ranks, N never left out. `size` is that of space alone.
        (first,) = e.overloads[0].sig.tensor_args
        args = {"input_size": "sizes"} if m[1] == "backward" else {}
        return Rule("fold", FOLDED_WORDS, args, f"std::max({C.cpp_name(first.name)}->dim(), 1)")
    m = _POOL.match(e.op)
    rank = str(int(m[3]) + 2) if m else _FOLDED.get(e.op)
    if rank is None:
        return None
    args = {"size": "sizes"} if any(a.name == "size" for a in e.overloads[0].sig.args) else {}
    return Rule("fold", FOLDED_WORDS, args, rank)


def leading_rule(e: Entry, o: Overload, rows: bool = False) -> Rule | None:
    """Batch dimensions in front, arguments moved behind them; None where an argument can't be. `rows`: the entry says
    that its kernel works on the last dimension, whatever stands before it."""
    if e.op in _NEVER:
        return None
    own = _OWN.get(e.op, {})
    sized = next((a.name for a in o.sig.args if a.name in _SIZES and a.name not in own and a.type.is_list), None)
    args: dict[str, str] = {}
    for a in o.sig.args:
        how = own.get(a.name) or argument(e, a, sized)
        if how:
            args[a.name] = how
    # A kernel of linear algebra on one operand works on its last dimensions.
    trailing = rows or e.op in _TRAILING or (e.family.name in _MATRICES and len(o.sig.tensor_args) == 1)
    if not args and not trailing:
        return None
    lift = not rows and (e.family.name in _LIFTED or (e.family.name == "nn" and "dim" in args))
    unless = tuple(f"{C.cpp_name(a.name)}->dim() == 0" for a in o.sig.tensor_args if e.op in _GATHERS)
    rank = "1" if rows else _RANKS.get(e.op, _MATRICES.get(e.family.name, ""))
    moved = ", ".join(args)
    words = (
        f"batch dimensions in front; {moved} {'count' if len(args) > 1 else 'counts'} behind them"
        if args
        else ("batch dimensions in front: the op works on the last ones")
    )
    return Rule("leading", words, args, rank, lift, unless)


def argument(e: Entry, a: Arg, sized: str | None) -> str:
    """The member of Leading that moves an argument behind the batch; '' for one that stays as it is."""
    if a.type.base is not Base.INT:
        return ""
    if a.name in _DIMS:
        if not a.type.is_list:
            return "flat_dim" if a.type.optional else ("dim" if sized is None else f"dim of {sized}")
        return "all_dims"
    if a.name in _LISTS:
        return "dims"
    return "sizes" if a.name in _SIZES and a.type.is_list else ""


class Batching:
    """The rule of one overload in C++: the line every function begins with, and what it calls."""

    def __init__(self, x: OverloadNames, masks: int) -> None:
        self.x, self.masks = x, masks
        self.rule = rule_of(x.entry, x.o)
        self.has_rule = self.rule not in (COMPOSE, NONE) and x.tensor_result
        self.tensors = [C.cpp_name(a.name) for a in x.tensor_args]
        self.args = [C.cpp_name(a.name) for a in x.sig.args]

    # ---- the line a function begins with ----

    def hook(self, form: str = "") -> list[str]:
        """`form` is '', '_' or '_out'."""
        x = self.x
        args = ", ".join(self.args)
        result = f"{x.call(x.fn)}({args})"
        if form == "_out":
            if not self.tensors:
                return []
            return [self._test([*self.tensors, "out_"]), f"  return batch::assign_out({x.schema}, out_, {result});"]
        if form == "_":
            test = self._test(self.tensors)
            if self.rule.inplace:
                return [test, f"  return {self.name('_')}({args});"]
            if x.entry.view_of:
                return [test, f"  return batch::show({self.args[0]}, {result});"]
            kept = f"batch::kept({', '.join(self.tensors)})"
            result = f"{x.call(x.fn)}({', '.join([kept, *self.args[1:]])})"
            return [test, f"  return batch::assign({x.schema}, {self.args[0]}, {result});"]
        if self.rule is COMPOSE and x.o.kernel:
            return [self._test(self.tensors), f"  return {x.base}_compose<TensorRef>({args});"]
        if not self.has_rule:
            return []
        return [self._test(self.tensors), f"  return {self.name()}({args});"]

    def _test(self, tensors: list[str]) -> str:
        # Whatever thread it is: a batched tensor that got into another one than its vmap runs on must not be read.
        asked = f"batch::any({', '.join(tensors)})" if tensors else ""
        # Random ops ask even where no operand is batched: each sample may want numbers of its own.
        if self.x.entry.family.name == "random":
            drawn = "modes::any(modes::kTransform) && batch::depth()"
            asked = f"({drawn}) || {asked}" if asked else drawn
        return f"if (TP_UNLIKELY({asked}))"

    def name(self, form: str = "") -> str:
        return f"{self.x.base}{form}_batched"

    # ---- the functions ----

    def functions(self, inplace: bool) -> list[Function]:
        if not self.has_rule:
            return []
        body = {
            "broadcast": self.broadcast, "leading": self.leading, "fold": self.fold, "random": self.random,
            "loop": lambda: [f"return {self.loop()};"],
        }.get(self.rule.name, self.named)()  # fmt: skip
        out = [self._function("", body)]
        if inplace and self.rule.inplace:
            out.append(self._function("_", self.broadcast("_")))
        return out

    def _function(self, form: str, body: list[str]) -> Function:
        x = self.x
        result = "TensorRef" if form else C.result_type(x.results, "TensorRef")
        return Function(f"TP_COLD {result} {self.name(form)}({C.params_text(x.sig.args, 'TensorRef')})", tuple(body))

    def operands(self, of: str = "in") -> list[str]:
        """The arguments of the op, its tensors taken from `of`."""
        args: list[str] = []
        at = "0"
        for a in self.x.sig.args:
            v = C.cpp_name(a.name)
            if not a.type.has_tensor:
                args.append(f"{v}_" if a.name in self.rule.args and of == "in" else v)
            elif a.type.is_list:
                args.append(f"{of}.list({at}, {v}.size())")
                at = f"{v}.size()" if at == "0" else f"{at} + {v}.size()"
            else:
                args.append(f"{of}[{at}]")
                at = str(int(at) + 1) if at.isdigit() else f"{at} + 1"
        return args

    def call(self, of: str = "in") -> str:
        return f"ops::{self.x.fn}({', '.join(self.operands(of))})"

    def broadcast(self, form: str = "") -> list[str]:
        x = self.x
        # What is copied takes the dtype of the target, whatever it is.
        masks = self.masks if x.entry.elementwise else (1 << len(self.tensors)) - 1
        operands = "{" + ", ".join("&" + t for t in self.tensors) + "}" + (f", {masks}" if masks else "")
        if form:
            return [
                f"const batch::InPlace in({x.schema}, {operands});",
                f"ops::{x.entry.stem}_({', '.join(self.operands())});",
                f"return {self.tensors[0]};",
            ]
        return [f"const batch::Broadcast in({operands});", f"return in.wrap({self.call()});"]

    def leading(self) -> list[str]:
        x, rule = self.x, self.rule
        body = []
        if rule.unless:
            body += [f"if ({' || '.join(rule.unless)})", f"  return {self.loop()};"]
        const = (
            ""
            if rule.lift or set(rule.args.values()) & {"flat_dim", "expanded", "repeats", "summed", "rolled"}
            else "const "
        )
        body.append(f"{const}batch::Leading in({x.schema}, {{{', '.join(self.tensors)}}});")
        if rule.rank:
            body.append(f"in.need_rank({rule.rank}, {C.string_literal(x.tensor_args[0].name)});")
        if rule.lift:
            body.append("in.lift_scalars();")
        return [*body, *self.moved(), f"return in.wrap({self.call()});"]

    def moved(self) -> list[str]:
        """Each argument in its form behind the batch, as a local."""
        out = []
        for name, how in self.rule.args.items():
            v = C.cpp_name(name)
            member, _, of = how.partition(" of ")
            out.append(f"const auto {v}_ = in.{member}({v}{f', {C.cpp_name(of)}.size()' if of else ''});")
        return out

    def fold(self) -> list[str]:
        x = self.x
        head = f"const batch::Fold in({x.schema}, {{{', '.join(self.tensors)}}}, {self.rule.rank});"
        return [head, *self.moved(), f"return in.wrap({self.call()});"]

    def random(self) -> list[str]:
        x = self.x
        return [f"return batch::rules::{x.fn}({', '.join([x.schema, *self.args])});"]

    def named(self) -> list[str]:
        """A rule of rules.h: told of the op as a function of its tensors, and of the loop to fall back on."""
        x = self.x
        params = ", ".join(C.param_type(a.type, "TensorRef") + f" {C.cpp_name(a.name)}" for a in x.tensor_args)
        return [
            f"const auto call = [&]({params}) {{ return ops::{x.fn}({', '.join(self.args)}); }};",
            f"const auto loop = [&] {{ return {self.loop()}; }};",
            f"return batch::rules::{self.rule.name}({', '.join([x.schema, 'call', 'loop', *self.args])});",
        ]

    def loop(self) -> str:
        operands = ", ".join(self.tensors)
        lines = f"[&](const batch::Samples& samples) {{ return {self.call('samples')}; }}"
        return f"batch::loop({{{self.x.schema}, {{{operands}}}}}, {lines})"
