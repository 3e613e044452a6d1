"""Inputs of the generated tests, and the references they are compared with. Knows rows and NumPy, no tensors."""

from __future__ import annotations

import ast
import importlib
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .generated import Form, Op

INTEGERS = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u16": "uint16",
    "u32": "uint32", "u64": "uint64",
}  # fmt: skip
FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
COMPLEX = {"c64": "complex64", "c128": "complex128"}
# bfloat16 values are drawn as float32 and cast by the caller.
_NUMPY: dict[str, Any] = {**INTEGERS, **FLOATS, **COMPLEX, "bf16": "float32"}


@dataclass
class Sample:
    """Arguments of one call: arrays, lists of arrays, plain values."""

    form: Form
    given: dict[str, Any]
    text: str = field(default="", compare=False)
    symmetric: frozenset[str] = frozenset()  # arguments that must stay symmetric (Hermitian) when they are varied

    def replace(self, given: dict[str, Any]) -> Sample:
        return Sample(self.form, given, self.text, self.symmetric)


def argument_types(form: Form) -> dict[str, str]:
    return {a[0]: a[1] for a in form.args}


def draw(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool = False) -> np.ndarray[Any, Any]:
    x = rng.uniform(-1, 1, shape)
    return np.asarray(x + 1j * rng.uniform(-1, 1, shape) if is_complex else x)


def samples(
    op: Op, shapes: tuple[tuple[int, ...], ...] | None = None, dtype: str | None = None, limit: int = 100,
    only: Form | None = None, broadcast: bool = True,
) -> Iterator[Sample]:  # fmt: skip
    """Calls of the op, at most `limit` of each form."""
    rng = np.random.default_rng(zlib.crc32(op.name.encode()))
    for form in op.forms if only is None else [only]:
        drawn = (
            elementwise(op, form, rng, shapes, dtype, broadcast) if op.elementwise else structured(op, form, rng, dtype)
        )
        for s in islice(drawn, limit):
            shown = {
                k: v.shape if isinstance(v, np.ndarray) else [x.shape for x in v] if _arrays(v) else v
                for k, v in s.given.items()
            }
            s.text = ", ".join(f"{k}={v}" for k, v in shown.items())
            yield s


def _arrays(v: Any) -> bool:
    return isinstance(v, list) and bool(v) and all(isinstance(x, np.ndarray) for x in v)


def base_dtype(op: Op) -> str:
    return "f64" if op.allows("f64") else next((d for d in ("i64", "i32", "bool") if op.allows(d)), "f64")


def elementwise(
    op: Op,
    form: Form,
    rng: np.random.Generator,
    shapes: tuple[tuple[int, ...], ...] | None,
    dtype: str | None,
    broadcast: bool,
) -> Iterator[Sample]:
    """Operands of the given shapes (one each, the last repeated); every combination of the parameters."""
    names = [a[0] for a in form.args if a[1].startswith("Tensor")]
    pools: list[list[tuple[str, Any]]] = []
    for name, type_, *rest in form.args:
        if name in names:
            continue
        if name in op.params:
            pools.append([(name, v) for v in op.params[name]])
        elif not rest:
            pools.append([(name, {"int": 2, "bool": True, "str": ""}.get(type_, 0.75))])
        elif rest[0] is not None and "kwonly" not in rest[1:]:
            pools.append([(name, rest[0])])
    for layout in (shapes,) if shapes else ((s,) for s in op.shapes or ((2, 3),)):
        for combo in islice(product(*pools), 6):
            given: dict[str, Any] = {}
            for i, name in enumerate(names):
                given[name] = operand(op, form, name, rng, layout[min(i, len(layout) - 1)], dtype)
            yield Sample(form, given | {k: v for k, v in combo if v is not None})


def operand(op: Op, form: Form, name: str, rng: np.random.Generator, shape: tuple[int, ...], dtype: str | None) -> Any:
    nondiff = name not in form.diff and bool(form.diff)
    if (nondiff and name not in op.domains) or argument_types(form)[name] == "Tensor<bool>":
        return rng.random(shape) < 0.5
    low, high = op.domains.get(name, (-3.0, 3.0))
    kind = dtype or base_dtype(op)
    if kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if kind in INTEGERS:
        low, high = max(math.ceil(low), 0 if kind.startswith("u") else -100), max(math.floor(high), math.ceil(low))
        return np.asarray(rng.integers(low, max(high, low) + 1, shape)).astype(_NUMPY[kind])
    x = np.asarray(rng.uniform(low, high, shape))
    if not form.diff:
        # Comparisons want equal and zero elements now and then.
        x = np.where(rng.random(shape) < 0.3, np.round(x), x)
    if kind in COMPLEX:
        x = x + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(x).astype(_NUMPY[kind])


def structured(op: Op, form: Form, rng: np.random.Generator, dtype: str | None = None) -> Iterator[Sample]:
    types = argument_types(form)
    for case in op.cases:
        if form_of(op, case) is not form:
            continue
        given: dict[str, Any] = {}
        for k, v in case.items():
            span = op.domains.get(k)
            if isinstance(v, dict):
                given[k] = array_of(v, rng, span, dtype or base_dtype(op))
            elif isinstance(v, (list, tuple)) and "Tensor" in types[k]:
                given[k] = [None if x is None else array_of(x, rng, span, dtype or base_dtype(op)) for x in v]
            elif types[k].startswith("Tensor"):
                given[k] = np.asarray(v, dtype=np.float64 if isinstance(v, float) else None)
            elif types[k] == "Scalar" and dtype in INTEGERS and isinstance(v, float):
                given[k] = math.ceil(v)  # factors of whole numbers are whole
            else:
                given[k] = v
        for a in form.args:
            if a[0] not in given and len(a) == 2 and a[1].endswith("?"):
                given[a[0]] = None
        kinds = {k: v.get("kind") for k, v in case.items() if isinstance(v, dict)}
        yield Sample(form, given, "", frozenset(k for k, kind in kinds.items() if kind in ("psd", "symmetric")))


def form_of(op: Op, case: dict[str, Any]) -> Form | None:
    """The signature a case means: the first that fits; a number is a tensor only where nothing else takes it."""
    for numbers in (False, True):
        for form in op.forms:
            types = argument_types(form)
            required = {a[0] for a in form.args if len(a) == 2 and not a[1].endswith("?")}
            if required <= set(case) and all(k in types and takes(types[k], v, numbers) for k, v in case.items()):
                return form
    return None


def takes(type_: str, value: Any, numbers: bool) -> bool:
    """Whether an argument of the type takes the value of a case."""
    if value is None:
        return type_.endswith("?")
    base = type_.rstrip("?")
    if base.endswith("]"):
        one = isinstance(value, int) and not isinstance(value, bool) and base.startswith("int")
        tensors = isinstance(value, (list, tuple)) and any(isinstance(x, dict) for x in value)
        return one or (isinstance(value, (list, tuple)) and (not tensors or base.startswith("Tensor")))
    if base == "any":
        return not isinstance(value, dict)
    number = isinstance(value, (int, float, complex)) and not isinstance(value, bool)
    match base.partition("<")[0]:
        case "Tensor":
            return isinstance(value, dict) or (number and numbers)
        case "Tensor|Scalar":
            return isinstance(value, dict) or number
        case "int":
            return number and isinstance(value, int)
        case "float" | "Scalar":
            return number
        case "bool":
            return isinstance(value, bool)
    return isinstance(value, str)


def array_of(case: dict[str, Any], rng: np.random.Generator, span: tuple[float, float] | None, base: str) -> Any:
    """An array as a test case describes it."""
    low, high = case.get("range") or span or (-1.0, 1.0)
    dtype = case.get("dtype")
    if "values" in case:
        return np.asarray(case["values"], dtype=_NUMPY[dtype] if dtype else None)
    shape = tuple(case.get("shape", ()))
    n, kind = math.prod(shape), case.get("kind")
    if kind == "mask" or dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if kind == "permutation":
        ordered = np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
        return rng.permuted(np.broadcast_to(ordered, shape), axis=0)
    if kind == "index" or dtype in INTEGERS:
        lo, hi = (math.ceil(low), int(high)) if case.get("range") or span else (0, 2)
        return np.asarray(rng.integers(lo, max(hi, lo + 1), shape)).astype(_NUMPY[dtype or "i64"])
    x = np.asarray(rng.uniform(low, high, shape))
    match kind:
        case "distinct" if (dtype or base) in INTEGERS:
            x = rng.permutation(n).reshape(shape)
        case "distinct":
            x = rng.permutation(np.sort(rng.uniform(low, high, n)) + np.arange(n) * 0.05).reshape(shape)
        case "nonzero":
            x = np.where(np.abs(x) < 0.1, 0.1 + np.abs(x), x)
        case "psd" | "symmetric":
            m = rng.standard_normal(shape)
            t = np.swapaxes(m, -1, -2)
            x = m @ t + shape[-1] * np.eye(shape[-1]) if kind == "psd" else m + t
        case "invertible":
            x = rng.uniform(-1, 1, shape) + 2 * np.eye(shape[-2], shape[-1])
        case "unit":
            x = rng.uniform(0.05, 0.95, shape)
        case "simplex":
            x = rng.uniform(0.1, 1, shape)
            x = x / x.sum(axis=-1, keepdims=True)
    if base in COMPLEX and kind != "unit":  # probabilities and weights are real
        turn = rng.uniform(-1, 1, shape)
        x = x + 1j * (turn - np.swapaxes(turn, -1, -2) if kind in ("psd", "symmetric") else turn)
    real = {"c64": "f32", "c128": "f64"}.get(base, base) if kind == "unit" else base
    return np.asarray(x).astype(_NUMPY[dtype or real])


# ---- references -----------------------------------------------------------------------------------------------------


@cache
def namespace(like: str) -> dict[str, Any]:
    """What a reference may call; of the packages, those it names."""
    out: dict[str, Any] = {"numpy": np, "np": np, "math": math}
    for name in {n.id for n in ast.walk(ast.parse(like, mode="eval")) if isinstance(n, ast.Name)}:
        package = {"mp": "mpmath"}.get(name, name)
        if package not in ("scipy", "mpmath"):
            continue
        try:
            out[name] = importlib.import_module(package)
        except ImportError as e:
            raise ImportError(f"the reference {like!r} needs {package}; run: pip install {package}") from e
    return out


def reference(op: Op, s: Sample) -> list[Any] | None:
    """The reference's results, or None where hand-written tests have the values."""
    return evaluate(op, s) if s.form.like else None


def reference_or_none(op: Op, s: Sample) -> list[Any] | None:
    """The same where the reference may not know the dtype (NumPy: no sign of bool, no negative integer powers)."""
    try:
        return reference(op, s)
    except (TypeError, ValueError):
        return None


def evaluate(op: Op, s: Sample) -> list[Any]:
    form = s.form
    exact = {
        k: v.astype(np.float64) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v for k, v in s.given.items()
    }
    space = namespace(form.like)
    with np.errstate(all="ignore"):
        if form.kind == "name" or (form.kind == "mpmath" and form.like.replace(".", "").replace("_", "").isalnum()):
            f = eval(form.like, dict(space))
            args = [exact[a[0]] for a in form.args if a[0] in exact]
            value = _each(f, args) if form.like.split(".")[0] in ("math", "mpmath", "mp") else f(*args)
        else:
            full = {a[0]: exact.get(a[0], a[2] if len(a) > 2 else None) for a in form.args}
            if form.kind == "mpmath":
                value = _each(eval(f"lambda {', '.join(full)}: {form.like}", dict(space)), list(full.values()))
            else:
                value = eval(form.like, {**space, **full})
    if isinstance(value, (tuple, list)):
        return [np.asarray(v) for v in value]
    return [np.asarray(value)]


def _each(f: Any, args: list[Any]) -> Any:
    """A function of numbers over arrays."""

    def one(*xs: Any) -> Any:
        v = f(*xs)
        return complex(v) if type(v).__name__ == "mpc" else float(v)

    return np.vectorize(one, otypes=[complex if any(np.iscomplexobj(a) for a in args) else float])(*args)
