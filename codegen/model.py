"""The model of ops.yaml: frozen dataclasses that the stages hand on. Owns vocabulary; decides and checks nothing.

`load.py` builds it from located YAML; `derive.py` fills in derivatives; the planner reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .formula import Node, parse

# ---- places ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Loc:
    """1-based line and column of the first character, and the width of the marked text."""

    line: int
    col: int
    width: int = 1

    def at(self, start: int, end: int) -> Loc:
        """The place of characters [start, end) of a one-line scalar that begins here."""
        return Loc(self.line, self.col + start, max(1, end - start))


NOWHERE = Loc(0, 0)


@dataclass(frozen=True)
class Formula:
    """A formula as written (or derived: then loc is that of the op's name)."""

    text: str
    node: Node = field(repr=False)
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)

    def __getattr__(self, name: str) -> Node:
        """The node of one that was kept without it."""
        if name != "node":
            raise AttributeError(name)
        node = parse(self.text)
        object.__setattr__(self, "node", node)
        return node


# ---- signatures -----------------------------------------------------------------------------------------------------


class Base(Enum):
    """The closed set of argument types."""

    TENSOR = "Tensor"
    SCALAR = "Scalar"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    STR = "str"
    DTYPE = "dtype"
    DEVICE = "device"
    GENERATOR = "generator"
    ANY = "any"  # of an op written in Python alone: a function, a nested list


@dataclass(frozen=True)
class Type:
    base: Base
    optional: bool = False  # Tensor? : None is accepted
    is_list: bool = False  # int[]
    size: int | None = None  # int[2]: a bare int is repeated
    optional_items: bool = False  # Tensor?[]
    dtype: str | None = None  # Tensor<i64>
    or_scalar: bool = False  # Tensor|Scalar: a Python number is accepted

    @property
    def is_tensor(self) -> bool:
        """A single tensor (optional or not)."""
        return self.base is Base.TENSOR and not self.is_list

    @property
    def has_tensor(self) -> bool:
        """A tensor or a list of them."""
        return self.base is Base.TENSOR

    def __str__(self) -> str:
        text = self.base.value + (f"<{self.dtype}>" if self.dtype else "") + ("|Scalar" if self.or_scalar else "")
        if self.is_list:
            text += "?" * self.optional_items + f"[{self.size or ''}]"
        return text + "?" * self.optional


class _Required:
    """Marks an argument without a default."""

    def __repr__(self) -> str:
        return "REQUIRED"

    def __reduce__(self) -> str:
        return "REQUIRED"  # there is one, in a model read from a pickle too


REQUIRED = _Required()


@dataclass(frozen=True)
class Arg:
    name: str
    type: Type
    default: Any = REQUIRED  # a Python literal: None, bool, int, float, str, or a tuple of them for lists
    kwonly: bool = False
    starred: bool = False  # Tensor *tensors: a list whose items may also come one by one
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Result:
    name: str
    type: Type
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Signature:
    name: str
    args: tuple[Arg, ...]
    results: tuple[Result, ...]
    text: str = field(default="", compare=False)
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)

    def arg(self, name: str) -> Arg | None:
        return next((a for a in self.args if a.name == name), None)

    def result(self, name: str) -> Result | None:
        return next((r for r in self.results if r.name == name), None)

    @property
    def members(self) -> tuple[Arg | Result, ...]:
        """Arguments, then results."""
        return (*self.args, *self.results)

    @property
    def tensor_args(self) -> tuple[Arg, ...]:
        """Arguments that are a tensor, an optional tensor or a list of tensors, in order."""
        return tuple(a for a in self.args if a.type.has_tensor)


# ---- what an entry says ---------------------------------------------------------------------------------------------


class Diff(Enum):
    """What an entry says about one tensor argument's derivative."""

    FORMULA = "formula"  # written in d or vjp
    DERIVED = "derived"  # from expr (then `formula` holds the derived partial) or through compose (no formula)
    ZERO = "zero"
    NONDIFF = "nondiff"
    TODO = "todo"  # raises, with `why`


@dataclass(frozen=True)
class Deriv:
    kind: Diff
    formula: Formula | None = None  # partial of an elementwise op; vjp of a structured one
    why: str = ""  # for TODO
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)

    @property
    def differentiable(self) -> bool:
        return self.kind in (Diff.FORMULA, Diff.DERIVED)


@dataclass(frozen=True)
class Requirement:
    """A condition, and the error where it does not hold: text with {} for the value of each shown formula."""

    test: Formula
    error: str  # Value | Type | Index | Runtime | NotImplemented
    message: str
    shown: tuple[Formula, ...]
    after: int = 0  # how many lets of compose it reads


LINEAR = "linear"  # tangent: all differentiable arguments replaced by their tangents at once
MULTILINEAR = "multilinear"  # tangent: sum over arguments, one replaced at a time


@dataclass(frozen=True)
class Overload:
    """One signature with what the entry says for it. A key given once holds for every overload it fits."""

    index: int
    sig: Signature
    expr: Formula | None = None  # elementwise: as written
    inlined: Node | None = field(default=None, compare=False, repr=False)  # expr with other elementwise ops inlined
    compose: tuple[tuple[str, Formula], ...] = ()  # lets in order; the results' names come last
    require: tuple[Requirement, ...] = ()  # what the formula asks of its arguments and lets
    kernel: str | None = None
    shapes: tuple[Formula, ...] = ()  # one per result, () when the family decides
    deriv: Mapping[str, Deriv] = field(default_factory=dict)  # every tensor argument, in argument order
    tangent: Mapping[str, Mapping[str, Formula]] = field(default_factory=dict)  # argument -> result -> formula
    tangent_rule: str | None = None  # LINEAR | MULTILINEAR | None
    nondiff_results: tuple[str, ...] = ()
    foreign: bool = field(default=False, compare=False, repr=False)  # of another library: its name may be one of ours

    @property
    def diff_results(self) -> tuple[Result, ...]:
        return tuple(r for r in self.sig.results if r.type.has_tensor and r.name not in self.nondiff_results)

    @property
    def diff_args(self) -> tuple[Arg, ...]:
        return tuple(a for a in self.sig.tensor_args if a.name in self.deriv and self.deriv[a.name].differentiable)


@dataclass(frozen=True)
class TensorCase:
    """A tensor in a test case: a shape, and how to fill it."""

    shape: tuple[int, ...] = ()
    dtype: str | None = None
    range: tuple[float, float] | None = None
    kind: str | None = None  # distinct | psd | invertible | mask | index | contiguous ...
    values: Any = None


@dataclass(frozen=True)
class TestSpec:
    """`test:` of an entry: where the tests (and check) draw inputs."""

    domains: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # argument -> [low, high]
    edges: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict
    )  # argument -> points; '' for every tensor argument
    params: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # non-tensor argument -> values to try
    cases: tuple[Mapping[str, Any], ...] = ()  # argument -> TensorCase | list of them | literal
    check: tuple[Mapping[str, Any], ...] = ()  # cases for check alone: branches, and results that are drawn
    shapes: tuple[tuple[int, ...], ...] = ()  # shapes for elementwise operands
    tol: float | None = None
    skip: Mapping[str, str] = field(default_factory=dict)  # name of a test -> the reason
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Like:
    """The reference the tests compare with."""

    kind: str  # name (numpy.tanh) | expr (Python over the arguments) | mpmath (of scalars) | values | tests (a file)
    text: str = ""
    values: tuple[Any, ...] = ()  # rows: arguments..., results...
    source: str = ""
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Special:
    """One row of `special:`: values at a point. Keys: arguments, results, and d_<argument> for the partial there."""

    values: Mapping[str, float | bool | complex]
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)


TOP = "tensorplay"
HOMES = (TOP, "nn.functional", "linalg", "fft", "special", "random", "internal")

PROMOTE = {
    "common": "the result type of all tensor arguments and scalars",
    "float": "as common, integers and bool become the default float type",
    "sum": "integers and bool become int64",
    "real": "as common; a complex input gives the real type of its size",
    "float_real": "as float; a complex input gives the real type of its size",
    "bool": "operands promote together; the result is bool",
    "int64": "the result is int64 whatever the input",
    "input": "the dtype of the first tensor argument",
    "given": "the dtype argument decides; without it the default",
}
AMP = ("promote", "keep", "force_fp32", "lower")
DTYPES = (
    "bool", "u8", "i8", "i16", "i32", "i64", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "c64", "c128",
)  # fmt: skip
DTYPE_GROUPS: Mapping[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "int": ("u8", "i8", "i16", "i32", "i64", "u16", "u32", "u64"),
    "half": ("f16", "bf16"),
    "float": ("f32", "f64"),
    "complex": ("c64", "c128"),
}

# symbol -> (method, reflected method, in-place method)
OPERATORS: Mapping[str, tuple[str, str | None, str | None]] = {
    "+": ("__add__", "__radd__", "__iadd__"),
    "-": ("__sub__", "__rsub__", "__isub__"),
    "*": ("__mul__", "__rmul__", "__imul__"),
    "/": ("__truediv__", "__rtruediv__", "__itruediv__"),
    "//": ("__floordiv__", "__rfloordiv__", "__ifloordiv__"),
    "%": ("__mod__", "__rmod__", "__imod__"),
    "**": ("__pow__", "__rpow__", "__ipow__"),
    "@": ("__matmul__", "__rmatmul__", "__imatmul__"),
    "&": ("__and__", "__rand__", "__iand__"),
    "|": ("__or__", "__ror__", "__ior__"),
    "^": ("__xor__", "__rxor__", "__ixor__"),
    "<<": ("__lshift__", "__rlshift__", "__ilshift__"),
    ">>": ("__rshift__", "__rrshift__", "__irshift__"),
    "==": ("__eq__", None, None),
    "!=": ("__ne__", None, None),
    "<": ("__lt__", None, None),
    "<=": ("__le__", None, None),
    ">": ("__gt__", None, None),
    ">=": ("__ge__", None, None),
    "neg": ("__neg__", None, None),
    "pos": ("__pos__", None, None),
    "~": ("__invert__", None, None),
    "abs": ("__abs__", None, None),
}


@dataclass(frozen=True)
class Family:
    name: str
    elementwise: bool = False  # expr gives the loop; shape is the broadcast of the tensor arguments
    nondiff: bool = False  # no argument is differentiable, by family
    doc: str = ""


FAMILIES: Mapping[str, Family] = {
    f.name: f
    for f in (
        Family("unary", True, doc="elementwise, one tensor"),
        Family("binary", True, doc="elementwise, two tensors, broadcast"),
        Family("ternary", True, doc="elementwise, three tensors, broadcast"),
        Family("pointwise", True, doc="elementwise, four to twelve tensors, broadcast"),
        Family("comparison", True, True, "elementwise, bool result"),
        Family("logical", True, True, "elementwise, and or not and bits"),
        Family("reduction", doc="dimensions are reduced"),
        Family("scan", doc="cumulative along one dimension"),
        Family("linalg", doc="matrix products and factorisations"),
        Family("view", doc="shares memory with its input"),
        Family("shape", doc="copies into another shape: cat, repeat, pad"),
        Family("index", doc="gather, scatter, masks, advanced indexing"),
        Family("sort", doc="order and selection"),
        Family("factory", nondiff=True, doc="makes a tensor"),
        Family("random", doc="draws from a generator"),
        Family("memory", doc="clone, contiguous, to, detach"),
        Family("nn", doc="layers, normalisation, losses"),
        Family("conv", doc="convolution and pooling"),
        Family("fft", doc="Fourier transforms"),
        Family("composite", doc="formula over other ops (compose)"),
    )
}


@dataclass(frozen=True)
class Entry:
    """One op of ops.yaml."""

    op: str
    family: Family
    overloads: tuple[Overload, ...]
    doc: str
    home: tuple[str, ...] = (TOP,)
    method: tuple[str, ...] = ()  # method names on Tensor; () for none
    operator: tuple[str, ...] = ()  # keys of OPERATORS
    out: bool = False
    inplace: str = ""  # '' | 'true' | 'save_copy'
    view_of: str | None = None
    promote: str = "common"
    dtypes: tuple[str, ...] = ()  # () : the family's default
    deterministic: bool = True
    amp: str = "keep"
    aliases: tuple[str, ...] = ()  # bare (follows home and method) or qualified: linalg.matmul
    version: int = 1
    batch: str | None = None  # named batching rule; families bring theirs
    python: str | None = None  # module:function that implements it in Python
    when: Mapping[str, str] = field(default_factory=dict)  # result -> bool argument that asks for it
    ref: str = ""
    like: tuple[Like, ...] = ()  # one for all overloads, or one each
    test: TestSpec = field(default_factory=TestSpec)
    special: tuple[Special, ...] = ()
    loc: Loc = field(default=NOWHERE, compare=False, repr=False)  # of the op's name
    keys: Mapping[str, Loc] = field(default_factory=dict, compare=False, repr=False)  # key -> where it is written
    end_line: int = field(default=0, compare=False, repr=False)
    symbol: str = field(default="", compare=False, repr=False)  # stem of its C++ functions; '' : its name

    @property
    def stem(self) -> str:
        """What its C++ functions are called: the op's name, unless another library's function has it."""
        return self.symbol or self.op

    @property
    def elementwise(self) -> bool:
        return self.family.elementwise

    def like_of(self, overload: int) -> Like | None:
        if not self.like:
            return None
        return self.like[overload] if len(self.like) > 1 else self.like[0]


@dataclass(frozen=True)
class OpFile:
    path: str
    schema: int
    entries: tuple[Entry, ...]
    source: tuple[str, ...] = field(default=(), compare=False, repr=False)  # lines, for messages
    base: OpFile | None = field(default=None, compare=False, repr=False)  # the ops its formulas may call besides

    def get(self, op: str) -> Entry | None:
        return self.by_name.get(op)

    @property
    def by_name(self) -> dict[str, Entry]:
        return {e.op: e for e in self.entries}
