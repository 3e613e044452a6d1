"""What the planner hands to the templates: frozen records of decided names and text. Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass

from .model import OpFile
from .plan_loop_forms import Loop
from .plan_terms import Use


@dataclass(frozen=True)
class Function:
    """A C++ function: its declaration without the semicolon, and the lines of its body."""

    head: str
    body: tuple[str, ...]
    comment: str = ""
    template: bool = False


@dataclass(frozen=True)
class Spec:
    """A constant of the elementwise driver."""

    name: str
    schema: str
    inputs: int
    masks: int
    promote: str  # Common | Float
    out: str  # Common | Bool | Real

    @property
    def tail(self) -> str:
        """The arguments after num_inputs, without trailing defaults."""
        values = [str(self.masks), f"Promote::{self.promote}", f"OutKind::{self.out}"]
        defaults = ["0", "Promote::Common", "OutKind::Common"]
        while values and values[-1] == defaults[len(values) - 1]:
            values.pop()
        return "".join(f", {v}" for v in values)


@dataclass(frozen=True)
class Member:
    type: str
    name: str
    init: str = ""


@dataclass(frozen=True)
class NodePlan:
    """One generated backward class."""

    cls: str
    number: str  # the number behind the class name in name(): "" keeps "0"
    kname: str
    base: str  # FuncOp<TanhBackward, 1, 1> or ListNode<CatBackward>
    ctor_args: tuple[str, ...]  # parameters of the constructor
    ctor_base: str  # arguments of the base's constructor; '' for none
    schema: str  # initialiser of schema_v1
    saved_names: tuple[str, ...]
    saved_inputs: tuple[int, ...]
    members: tuple[Member, ...]
    list_members: tuple[str, ...]  # saved lists: the arguments they hold
    outputs: tuple[int, ...]  # results whose sizes are kept in output_like_
    list_result: bool
    is_list: bool
    make: str  # expression that constructs one for the contract test

    @property
    def saved_names_text(self) -> str:
        return ", ".join(f'"{n}"' for n in self.saved_names)


@dataclass(frozen=True)
class OverloadPlan:
    """Everything generated in C++ for one signature."""

    op: str
    index: int
    title: str  # tanh(Tensor input) -> Tensor out
    notes: tuple[str, ...]  # formulas and what is saved, for the comment
    schema: str  # C++ expression of its OpSchema
    own_schema: str  # initialiser when no node carries it; '' otherwise
    node: NodePlan | None
    specs: tuple[Spec, ...]
    loops: tuple[Loop, ...]
    helpers: tuple[Function, ...]  # anonymous namespace: templates of vjp, compose, tangent
    functions: tuple[Function, ...]  # declared in the header
    methods: tuple[Function, ...]  # apply, apply_for_graph
    uses: tuple[Use, ...] = ()
    through: Function | None = None  # a composition: its form on memory that runs the one on tensors


@dataclass(frozen=True)
class PlanFault:
    """A formula the back half cannot render; reported like any other diagnostic."""

    op: str
    where: str
    message: str
    line: int = 0
    col: int = 0
    width: int = 1


@dataclass(frozen=True)
class Shard:
    name: str
    family: str
    overloads: tuple[OverloadPlan, ...]
    declares: tuple[str, ...]  # functions of other shards, as declarations
    kernels: tuple[str, ...]  # headers of csrc/kernels it includes
    ops: tuple[str, ...]

    @property
    def loops(self) -> tuple[Loop, ...]:
        return tuple(x for o in self.overloads for x in o.loops)

    @property
    def nodes(self) -> tuple[NodePlan, ...]:
        return tuple(o.node for o in self.overloads if o.node is not None)


@dataclass(frozen=True)
class Plan:
    shards: tuple[Shard, ...]
    file: OpFile
    library: bool = True  # the library itself, not one built outside
