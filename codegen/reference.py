"""Turns `like` into a callable and `test` into inputs, for `check`. NumPy only; never asks the entry's own formulas.

The world of structured formulas is here too: table functions first, then the ops of the file by their references.
"""

from __future__ import annotations

import ast
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice, product
from typing import Any

import numpy as np

from .evaluate import NumpyEvaluator
from .functions import FUNCTIONS, MACROS, OPERATOR_OPS, Unavailable, numpy_functions
from .model import DTYPE_GROUPS, Arg, Base, Entry, Like, Loc, OpFile, Overload, TensorCase
from .numpy_ops import find as numpy_form
from .numpy_random import GENERATOR
from .structured import META, TENSOR, parameters

Env = dict[str, Any]
NP_DTYPE = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128, "f16": np.float16,
    "bf16": np.float32,
}  # fmt: skip


def callable_like(like: Like | None, o: Overload) -> bool:
    """Whether there is a reference that check can call."""
    if like is None or like.kind in ("tests", "values"):
        return _form(o) is not None
    return True


def _form(o: Overload) -> Callable[..., Any] | None:
    return None if o.foreign else numpy_form(o.sig.name, o.kernel)


def rng_for(name: str) -> np.random.Generator:
    """The same points for the same op, whatever else is in the file."""
    return np.random.default_rng(zlib.crc32(name.encode()))


# ---- references -----------------------------------------------------------------------------------------------------


PACKAGES = ("scipy", "mpmath")  # what references may call where it is installed


@cache
def _namespace() -> dict[str, Any]:
    import importlib

    out: dict[str, Any] = {"numpy": np, "np": np, "math": math}
    for name in PACKAGES:
        try:
            out[name] = importlib.import_module(name)
        except ImportError:
            continue
    if "mpmath" in out:
        out["mp"] = out["mpmath"]
    return out


@cache
def _compiled(text: str) -> Any:
    return compile(text, "<like>", "eval")


@cache
def _names(text: str) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name))


def call_like(like: Like | None, o: Overload, given: Mapping[str, Any]) -> Any:
    """The reference's value for arguments by name. Raises Unavailable where it cannot be evaluated here."""
    if like is None or like.kind in ("tests", "values"):
        form = _form(o)
        if form is None:
            raise Unavailable(f"like: {like.kind}" if like else "no reference")
        return form(*_per_dim(o, given).values())
    space = _namespace()
    root = {"np": "numpy", "mp": "mpmath"}.get(like.text.split(".")[0], like.text.split(".")[0])
    if like.kind == "name" or (like.kind == "mpmath" and like.text.replace(".", "").replace("_", "").isalnum()):
        if root not in space:
            raise Unavailable(f"{root} is not installed")
        f = eval(_compiled(like.text), dict(space))
        args = [given[a.name] for a in o.sig.args if a.name in given]
        return _vectorised(f, args) if root in ("math", "mpmath") else f(*args)
    full = {a.name: given.get(a.name, None if a.required else a.default) for a in o.sig.args}
    if like.kind == "mpmath":
        if "mpmath" not in space:
            raise Unavailable("mpmath is not installed")
        names = list(full)
        f = eval(_compiled(f"lambda {', '.join(names)}: {like.text}"), dict(space))
        return _vectorised(f, [full[n] for n in names])
    for name in _names(like.text) - {*full}:
        root = {"mp": "mpmath"}.get(name, name)
        if root in PACKAGES and root not in space:
            raise Unavailable(f"{root} is not installed")
    # One scope for both, so that comprehensions see the arguments.
    return eval(_compiled(like.text), {**space, **full})


def _per_dim(o: Overload, given: Mapping[str, Any]) -> Env:
    """All arguments in order; one number for all dimensions of int[2] as two of them."""
    full = {a.name: given.get(a.name, None if a.required else a.default) for a in o.sig.args}
    return {
        a.name: (v,) * a.type.size if a.type.size and isinstance(v := full[a.name], int) else full[a.name]
        for a in o.sig.args
    }


def _vectorised(f: Callable[..., Any], args: list[Any]) -> Any:
    def one(*xs: Any) -> Any:
        v = f(*(x.item() if isinstance(x, np.generic) else x for x in xs))
        return complex(v) if type(v).__name__ == "mpc" else float(v) if type(v).__name__ == "mpf" else v

    arrays = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]
    if not arrays:
        return one(*args)
    grid = np.broadcast_arrays(*(args[i] for i in arrays))
    out = []
    for values in zip(*(g.ravel() for g in grid), strict=True):
        now = list(args)
        for i, v in zip(arrays, values, strict=True):
            now[i] = v
        out.append(one(*now))
    return np.array(out).reshape(grid[0].shape)


def results_of(value: Any, o: Overload) -> tuple[Any, ...]:
    """The reference's value as one item per result."""
    if len(o.sig.results) == 1:
        return (tuple(value),) if o.sig.results[0].type.is_list else (np.asarray(value),)
    return tuple(np.asarray(v) for v in value)


# ---- functions in structured formulas -------------------------------------------------------------------------------


def called(o: Overload) -> set[str]:
    """Functions and ops that an overload's formulas call."""
    from . import formula as F

    nodes = [f.node for _, f in o.compose] + [d.formula.node for d in o.deriv.values() if d.formula]
    nodes += [f.node for per in o.tangent.values() for f in per.values()] + ([o.expr.node] if o.expr else [])
    operators = {OPERATOR_OPS[x.op] for n in nodes for x in F.walk(n) if isinstance(x, F.Binary)}
    return {c for n in nodes for c in F.calls(n)} | operators


class Still:
    """What comparisons and calls without a derivative gave in a composition's first run, given again in later ones."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.again: Iterator[Any] | None = None
        self.matters = False  # whether more than comparisons, which seldom change, stood still

    def keep(self, x: Any) -> Any:
        if self.again is not None:
            return next(self.again)
        self.kept.append(x)
        return x

    def detached(self, x: Any) -> Any:
        self.matters = True
        return self.keep(x)

    def replay(self) -> Still:
        self.again = iter(self.kept)
        return self


class World:
    """Finds the numeric form of any function a formula of this file may call: those of the library it is beside too."""

    def __init__(self, file: OpFile) -> None:
        self.base = frozenset(file.base.by_name) if file.base else frozenset()
        self.ops = file.by_name | (file.base.by_name if file.base else {})  # a name that both have means the library's
        self.depth = 0
        self.still: Still | None = None
        self.evaluate = NumpyEvaluator(self.find, self.compared)

    def find(self, name: str) -> Callable[..., Any] | None:
        if name == "detach" and self.still is not None:
            return self.still.detached
        table = META.get(name) or TENSOR.get(name)
        entry = self.ops.get(name)
        if table and entry:
            return lambda *a, **k: table(*a, **k) if _fits(table, a, k) else self.op(entry, *a, **k)
        if table:
            return table
        if name in MACROS and name not in numpy_functions():
            params, body = MACROS[name]
            return lambda *a: self.evaluate(body, dict(zip(params, a, strict=True)))
        if name in FUNCTIONS and (entry is None or name in numpy_functions()):
            f = numpy_functions().get(name)
            if f is not None and entry is not None:
                known = FUNCTIONS[name]
                return lambda *a, **k: f(*a) if not k and len(a) <= known.arity else self.op(entry, *a, **k)
            return f
        return (lambda *a, **k: self.op(entry, *a, **k)) if entry else None

    def compared(self, x: Any) -> Any:
        return self.still.keep(x) if self.still is not None and isinstance(x, np.ndarray) else x

    def op(self, e: Entry, *args: Any, **kwargs: Any) -> Any:
        """An op of the file: by its reference, else by its own formula."""
        o = pick_overload(e, args, kwargs)
        if o is None:
            raise Unavailable(f"no overload of '{e.op}' fits")
        given = dict(zip((a.name for a in o.sig.args), args, strict=False)) | kwargs
        given = {k: _as_list(o.sig.arg(k), v) for k, v in given.items()}
        like = e.like_of(o.index)
        # A helper's own formula runs where others call it: that is what its callers' references then witness.
        if callable_like(like, o) and not (o.compose and e.home == ("internal",)):
            out = results_of(call_like(like, o, given), o)
        else:
            out = self.formula_value(e, o, given)
        value = out[0] if len(out) == 1 else out
        if self.still is None or not o.deriv or o.diff_args or np.asarray(out[0]).dtype.kind not in "fc":
            return value
        return self.still.detached(value)

    def helpers(self, o: Overload) -> list[tuple[Loc, str]]:
        """Formulas of other ops that o's formulas stand on and no reference of their own has confirmed."""
        out: list[tuple[Loc, str]] = []
        seen: set[str] = set()
        queue = [o]
        while queue:
            for name in called(queue.pop()):
                e = self.ops.get(name)
                if e is None or name in seen or name in self.base:
                    continue
                seen.add(name)
                out += [(x.sig.loc, f"the signature of '{name}'") for x in e.overloads if name not in FUNCTIONS]
                for x in e.overloads:
                    if x.compose and (e.home == ("internal",) or not callable_like(e.like_of(x.index), x)):
                        out += [(f.loc, f"through '{name}'") for _, f in x.compose]
                        queue.append(x)
        return out

    def asked(self, o: Overload, after: int, env: Env) -> None:
        """What a composition asks of its arguments as soon as it has so many of its values."""
        for r in o.require:
            if r.after == after and not np.all(self.evaluate(r.test.node, env)):
                raise ValueError(f"it asks for {r.test.text}")

    def formula_value(self, e: Entry, o: Overload, given: Mapping[str, Any]) -> tuple[Any, ...]:
        """expr or compose evaluated."""
        if self.depth > 20:
            raise Unavailable(f"'{e.op}' calls itself")
        env = {a.name: given.get(a.name, None if a.required else a.default) for a in o.sig.args}
        self.depth += 1
        try:
            if o.inlined is not None:
                return (np.asarray(self.evaluate(o.inlined, env)),)
            if o.compose:
                self.asked(o, 0, env)
                for k, (name, f) in enumerate(o.compose):
                    env[name] = self.evaluate(f.node, env)
                    self.asked(o, k + 1, env)
                return tuple(tuple(env[r.name]) if r.type.is_list else np.asarray(env[r.name]) for r in o.sig.results)
        finally:
            self.depth -= 1
        raise Unavailable(f"no numeric form of '{e.op}'")


def _as_list(a: Arg | None, v: Any) -> Any:
    """What a list of dimensions takes besides a list: one dimension; none, which is the empty one."""
    if a is None or not a.type.is_list:
        return v
    if v is None and not a.type.optional:
        return ()
    one = a.type.base is Base.INT and isinstance(v, (int, np.integer)) and not isinstance(v, bool)
    return (int(v),) * (a.type.size or 1) if one else v


def _fits(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    least, most, names = parameters(f)
    return (most == -1 or len(args) <= most) and all(k in names for k in kwargs) and len(args) + len(kwargs) >= least


def pick_overload(e: Entry, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Overload | None:
    for o in e.overloads:
        names = [a.name for a in o.sig.args]
        positional = [a for a in o.sig.args if not a.kwonly]
        if len(args) > len(positional) or any(k not in names for k in kwargs):
            continue
        covered = {*names[: len(args)], *kwargs}
        if any(a.required and a.name not in covered for a in o.sig.args):
            continue
        pairs = [(a.type, v) for a, v in zip(positional, args, strict=False)]
        pairs += [(a.type, kwargs[a.name]) for a in o.sig.args if a.name in kwargs]
        if all(_accepts(t, v) for t, v in pairs):
            return o
    return None


def _accepts(t: Any, v: Any) -> bool:
    if v is None:
        return bool(t.optional or (t.is_list and t.base is Base.INT))
    if t.is_list:
        return isinstance(v, (tuple, list)) or (t.base is Base.INT and isinstance(v, int) and not isinstance(v, bool))
    match t.base:
        case Base.TENSOR:
            return isinstance(v, (np.ndarray, np.generic, int, float, complex))
        case Base.INT:
            return isinstance(v, (int, np.integer)) and not isinstance(v, bool)
        case Base.BOOL:
            return isinstance(v, (bool, np.bool_))
        case Base.FLOAT | Base.SCALAR:
            return isinstance(v, (int, float, complex, np.generic)) and not (isinstance(v, np.ndarray) and v.ndim)
        case Base.STR:
            return isinstance(v, str)
    return True


# ---- inputs ---------------------------------------------------------------------------------------------------------


def tensor(
    case: TensorCase, rng: np.random.Generator, span: tuple[float, float] | None, dtype: type | None = None
) -> Any:
    """An array as a test case describes it."""
    lo, hi = case.range or span or (-1.0, 1.0)
    if case.values is not None:
        return np.asarray(case.values, dtype=NP_DTYPE[case.dtype] if case.dtype else None)
    shape, n = case.shape, math.prod(case.shape)
    kind = case.kind
    if kind == "mask" or case.dtype == "bool":
        return rng.random(shape) < 0.5
    if kind == "index" or case.dtype in DTYPE_GROUPS["int"]:
        low, high = (math.ceil(lo), int(hi)) if case.range or span else (0, 2)
        if kind == "permutation":
            return permutation(shape, rng)
        return rng.integers(low, max(high, low + 1), shape).astype(NP_DTYPE[case.dtype or "i64"])
    if kind == "permutation":
        return permutation(shape, rng)
    x = rng.uniform(lo, hi, shape)
    if kind == "distinct":
        x = np.sort(rng.uniform(lo, hi, n)) + np.arange(n) * 0.05
        x = rng.permutation(x).reshape(shape)
    elif kind == "nonzero":
        x = np.where(np.abs(x) < 0.1, 0.1 + np.abs(x), x)
    elif kind in ("psd", "symmetric"):
        m = rng.standard_normal(shape)
        sym = m + np.swapaxes(m, -1, -2)
        x = m @ np.swapaxes(m, -1, -2) + shape[-1] * np.eye(shape[-1]) if kind == "psd" else sym
    elif kind == "invertible":
        x = rng.uniform(-1, 1, shape) + 2 * np.eye(shape[-2], shape[-1])
    elif kind == "unit":
        x = rng.uniform(0.05, 0.95, shape)
    elif kind == "simplex":
        x = rng.uniform(0.1, 1, shape)
        x = x / x.sum(axis=-1, keepdims=True)
    turned = case.dtype in DTYPE_GROUPS["complex"] or (dtype is not None and np.issubdtype(dtype, np.complexfloating))
    if turned and kind not in ("unit", "simplex"):
        x = x + 1j * rng.uniform(-1, 1, shape)
        if case.dtype and case.dtype not in DTYPE_GROUPS["complex"]:
            x = x.real
    return np.asarray(x, dtype=NP_DTYPE[case.dtype] if case.dtype else None)


def permutation(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """0..n-1 in random order along the first dimension, for each column anew."""
    ordered = np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
    return rng.permuted(np.broadcast_to(ordered, shape), axis=0)


def case_inputs(
    e: Entry, case: Mapping[str, Any], rng: np.random.Generator, complex_: bool = False
) -> tuple[Overload, Env] | None:
    """The overload a case means, and its inputs."""
    dtype = np.complex128 if complex_ else None
    for o in e.overloads:
        types = {a.name: a.type for a in o.sig.args}
        if any(k not in types for k in case):
            continue
        if any(a.required and not a.type.optional and a.name not in case for a in o.sig.args):
            continue  # what is optional and not given is None
        if any(isinstance(v, TensorCase) != types[k].is_tensor for k, v in case.items() if v is not None):
            continue
        if any(isinstance(x, TensorCase) and not types[k].has_tensor for k, v in case.items() for x in _items(v)):
            continue
        if any(not types[k].has_tensor and not _accepts(types[k], v) for k, v in case.items()):
            continue
        env: Env = {}
        for a in o.sig.args:
            if a.type.base is Base.GENERATOR:
                env[a.name] = GENERATOR
                continue
            if a.name not in case:
                if a.required:
                    env[a.name] = None
                continue
            k, v = a.name, case[a.name]
            span = e.test.domains.get(k)
            if isinstance(v, TensorCase):
                env[k] = tensor(v, rng, span, dtype)
            elif types[k].has_tensor and isinstance(v, tuple):
                env[k] = tuple(None if x is None else tensor(x, rng, span, dtype) for x in v)
            elif (size := types[k].size) and isinstance(v, int):
                env[k] = (v,) * size
            else:
                env[k] = v
        return o, env
    return None


def _items(v: Any) -> tuple[Any, ...]:
    return v if isinstance(v, tuple) else ()


_GIVEN: Mapping[Base, Any] = {Base.FLOAT: 0.75, Base.SCALAR: 0.75, Base.INT: 2, Base.BOOL: True}


def elementwise_inputs(e: Entry, o: Overload, rng: np.random.Generator, n: int = 48) -> Iterator[Env]:
    """Points of an elementwise op: random ones of the domains, for each combination of its parameters; then with each
    optional tensor left out."""
    pools: list[list[tuple[str, Any]]] = []
    for a in o.sig.args:
        if a.type.is_tensor:
            continue
        if a.name in e.test.params:
            values = list(e.test.params[a.name])
        elif a.name in e.test.domains or (a.required and a.type.base is Base.SCALAR):
            lo, hi = e.test.domains.get(a.name, (-3.0, 3.0))
            values = [float(round(x, 3)) for x in rng.uniform(lo, hi, 3)]
        elif a.required:
            values = [_GIVEN.get(a.type.base, "")]
        else:
            values = [a.default]
            if not a.kwonly or a.type.base in (Base.FLOAT, Base.SCALAR):
                number = a.default is not None and not isinstance(a.default, (bool, str, tuple))
                values += [a.default + 0.375] if number and a.type.base in (Base.FLOAT, Base.SCALAR) else []
            if a.default is None:
                values += [v for b, v in _GIVEN.items() if b is a.type.base and not a.type.is_list]
        pools.append([(a.name, v) for v in values])
    for combo in islice(product(*pools), 12):
        env: Env = dict(combo)
        for a in o.sig.args:
            if a.type.is_tensor:
                env[a.name] = points(e, o, a.name, rng, n)
        yield env
    for a in o.sig.args:
        if a.type.is_tensor and a.type.optional:
            yield {**env, a.name: None}


def points(e: Entry, o: Overload, name: str, rng: np.random.Generator, n: int) -> Any:
    lo, hi = e.test.domains.get(name, (-3.0, 3.0))
    arg = o.sig.arg(name)
    if arg is not None and arg.type.dtype == "bool":
        return rng.random(n) < 0.5
    if integers_only(e, o):
        return rng.integers(math.ceil(lo), max(math.floor(hi), math.ceil(lo)) + 1, n)
    x = rng.uniform(lo, hi, n)
    # Comparisons and logic need equal and zero operands now and then.
    return np.where(rng.random(n) < 0.3, np.round(x), x) if e.family.nondiff else x


def integers_only(e: Entry, o: Overload) -> bool:
    if e.dtypes:
        return not any(d[0] in "fc" or d == "bf16" for d in e.dtypes)
    if o.inlined is None:
        return False
    from . import formula as F

    return any(
        (isinstance(n, F.Call) and n.func in FUNCTIONS and FUNCTIONS[n.func].kind == "int" and n.func != "int")
        or (isinstance(n, F.Binary) and n.op in "&|^<<>>")
        or (isinstance(n, F.Unary) and n.op == "~")
        for n in F.walk(o.inlined)
    )
