"""Random calls of an op, right and wrong, and what is expected of each: what `tools/fuzz_calls.py` runs in children.

A right call must give what the same call on contiguous copies gives and, where the row names a reference, what the
reference gives. A wrong one must work or raise one of a few errors that name the op, and leave its operands.
Knows rows of the generated tests; runs nothing in other processes.
"""

from __future__ import annotations

import random
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import tensorplay as tp

from .inputs import COMPLEX, FLOATS, INTEGERS, Sample, elementwise, reference_or_none, structured
from .rows import Form, Op, array, held_to, plain, results, tensor, tolerance

__all__ = ["Call", "bits", "describe", "draw_call", "is_huge", "judge"]

REFUSALS = (ValueError, TypeError, IndexError, RuntimeError, NotImplementedError, MemoryError)
_SHAPES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((),), ((1,),), ((0,),), ((7,),), ((3, 0, 2),), ((2, 3),), ((4, 1, 5),), ((2, 3), (3,), ()),
    ((2, 1), (1, 3), (2, 3)), ((17, 33),), ((1, 1, 1, 1, 1, 6),), ((3,), (4, 3), (1, 1)), ((1027,),),
)  # fmt: skip
# Results that are not a function of the operands' values: unset memory, and views by strides.
_BY_MEMORY = ("empty", "empty_like", "new_empty", "as_strided", "as_strided_scatter")
_ODD = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e-30, 1.0, -1.0, 0.5)


@dataclass
class Call:
    """One call: the function, its arguments, and whether they are meant to be right."""

    op: Op
    function: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    right: bool
    sample: Sample | None = None
    dtype: str = "f64"
    odd: bool = False
    names: tuple[str, ...] = ()
    copies: list[tuple[Any, bytes]] = field(default_factory=list)
    writes: tuple[Any, ...] = ()


def draw_call(op: Op, seed: int, index: int, right: bool) -> Call | None:
    """Call `index` of the op under this seed; None where the row draws no arguments (then nothing can be varied)."""
    mixed = zlib.crc32(f"{op.name} {seed} {index} {right}".encode())
    pick, rng = random.Random(mixed), np.random.default_rng(mixed)
    drawn = _right(op, pick, rng)
    if drawn is None:
        return None
    sample, dtype, odd = drawn
    given = plain(sample, {k: tensor(v) for k, v in sample.given.items()})
    if dtype in ("bf16", "f32"):  # bfloat16 is drawn as float32; values that a row spells out are float64
        given = {k: _floats_as(v, getattr(tp, FLOATS[dtype])) for k, v in given.items()}
    names = op.called
    call = Call(op, op.function, [], {}, right, sample, dtype, odd, names)
    if right:
        given = {k: _laid_out(v, pick) for k, v in given.items()}
        call.args, call.kwargs = _arranged(op, sample.form, given, pick)
    else:
        _spoil(call, sample, given, pick)
    return call


# ---- right calls -----------------------------------------------------------------------------------------------------


def _right(op: Op, pick: random.Random, rng: np.random.Generator) -> tuple[Sample, str, bool] | None:
    form = pick.choice(op.forms)
    odd = False
    if op.elementwise:
        names = [*INTEGERS, *FLOATS, *COMPLEX]
        dtype = pick.choice([n for n in names if op.allows(n)] if pick.random() < 0.7 else ["f64", "f32"])
        drawn = list(islice(elementwise(op, form, rng, pick.choice(_SHAPES), dtype, True), 6))
        if drawn and dtype in FLOATS and pick.random() < 0.3:
            odd = True
            for v in drawn[0].given.values():
                if isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.size:
                    v.ravel()[rng.integers(0, v.size, 3)] = rng.choice(_ODD, 3)
            drawn = drawn[:1]
    else:
        dtype = "f32" if op.allows("f32") and pick.random() < 0.3 else "f64"
        drawn = [s for f in op.forms for s in islice(structured(op, f, rng, dtype if dtype == "f32" else None), 12)]
    return (pick.choice(drawn), dtype, odd) if drawn else None


def _floats_as(v: Any, dtype: Any) -> Any:
    return v.to(dtype) if isinstance(v, tp.Tensor) and v.is_floating_point() else v


def _arranged(op: Op, form: Form, given: dict[str, Any], pick: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by position up to a random place, by name behind it; tensors that may come one by one have no name."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    by_name = pick.random() < 0.3
    one_by_one = [i for i, a in enumerate(form.args) if op.python and a[1] == "Tensor[]"]
    for i, (name, _, *rest) in enumerate(form.args):
        if name not in given:
            by_name = True
        elif one_by_one and i <= one_by_one[-1]:
            args.append(given[name])
        elif "kwonly" in rest[1:] or by_name or len(args) < i or (i and pick.random() < 0.1):
            kwargs[name], by_name = given[name], True
        else:
            args.append(given[name])
    return args, kwargs


def _laid_out(v: Any, pick: random.Random) -> Any:
    """The same values in other memory: permuted, stepped, reversed, at an offset, expanded where all are equal."""
    if isinstance(v, list):
        return [_laid_out(x, pick) for x in v]
    if not isinstance(v, tp.Tensor) or v.dim() == 0:
        return v
    how = pick.randrange(6)
    with tp.no_grad():
        if how == 0:
            axes = list(range(v.dim()))
            pick.shuffle(axes)
            back = [axes.index(i) for i in range(v.dim())]
            return v.permute(*axes).contiguous().permute(*back)
        if how == 1:
            wide = tp.zeros(*v.shape[:-1], 2 * v.shape[-1] + 1, dtype=v.dtype)
            wide[..., 1::2] = v
            return wide[..., 1::2]
        if how == 2 and v.dtype != tp.bfloat16:
            return tp.as_tensor(np.ascontiguousarray(np.flip(v.numpy(), -1))[..., ::-1])
        if how == 3:
            long = tp.zeros(v.numel() + 5, dtype=v.dtype)
            long[3 : 3 + v.numel()] = v.reshape(-1)
            return long[3 : 3 + v.numel()].reshape(v.shape)
        if how == 4 and v.numel() == 1:
            return v.reshape(()).expand(v.shape)
    return v


# ---- wrong calls -----------------------------------------------------------------------------------------------------


def _junk(pick: random.Random) -> Any:
    t = tp
    pool: list[Callable[[], Any]] = [
        lambda: None, lambda: "x", lambda: "", object, list, dict, tuple, lambda: b"abc", lambda: 1.5, lambda: 2j,
        lambda: True, lambda: -1, lambda: 0, lambda: 3, lambda: 2**31, lambda: -(2**31), lambda: 2**62,
        lambda: 2**63 - 1, lambda: -(2**63), lambda: 2**63, lambda: 2**70, lambda: 10**40, lambda: float("nan"),
        lambda: float("inf"), lambda: 1e300, lambda: [2**62, 2**62], lambda: [-5], lambda: [0, 0], lambda: [1, "a"],
        lambda: (0,) * 70, lambda: [2**40, 0], lambda: (1, 2, 3), lambda: [None], lambda: [0.5],
        lambda: [[1, 2], [3]], lambda: len, lambda: t.float32, lambda: t.int8, lambda: np.ones(3),
        lambda: np.float32(2), lambda: np.array(["a"]), lambda: t.tensor(2), lambda: t.tensor(1.5),
        lambda: t.tensor(True), lambda: t.ones(0), lambda: t.ones(2, 0, 3), lambda: t.ones(5), lambda: t.ones(2, 3),
        lambda: t.ones(1, 2, 1, 3, 1, 2, 1),
        lambda: t.ones(4, 4)[::2, ::2],
        lambda: t.ones(3, dtype=t.int64) * 10**12, lambda: -t.ones(2, dtype=t.int64), lambda: t.ones(3, dtype=t.uint64),
        lambda: t.ones(2, 2, dtype=t.complex64), lambda: t.ones(2, 2, dtype=t.bool), lambda: t.ones(2, dtype=t.float16),
        lambda: t.ones(1).expand(1 << 16), lambda: t.ones(3, requires_grad=True), lambda: [t.ones(2), t.ones(3)],
        lambda: [t.ones(2), None, 3], lambda: t.full((3,), float("nan")), lambda: t.tensor([2**63 - 1, -(2**63)]),
        lambda: t.ones(2, 3, dtype=t.uint8), lambda: t.ones(2, 3, dtype=t.int32), lambda: t.ones(3, dtype=t.bfloat16),
    ]  # fmt: skip
    return pick.choice(pool)()


def _spoil(call: Call, sample: Sample, given: dict[str, Any], pick: random.Random) -> None:
    op, form = call.op, sample.form
    args, kwargs = _arranged(op, form, {k: _laid_out(v, pick) for k, v in given.items()}, pick)
    tensors = [i for i, a in enumerate(args) if isinstance(a, tp.Tensor)]
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        match pick.randrange(10):
            case 0 if args:
                args.pop()
            case 1:
                args.append(_junk(pick))
            case 2:
                kwargs[pick.choice(("no_such", "dim", "out", "axis", "dtype", "input", "keepdim"))] = _junk(pick)
            case 3 if kwargs:
                kwargs[pick.choice(list(kwargs))] = _junk(pick)
            case 4 if op.out:
                kwargs["out"] = _junk(pick)
            case _:
                names = [a[0] for a in form.args]
                missing = [n for n in names[len(args) :] if n not in kwargs]
                if missing and pick.random() < 0.4:
                    kwargs[pick.choice(missing)] = _junk(pick)
                elif args:
                    args[pick.randrange(len(args))] = _junk(pick)
    if op.inplace and tensors and isinstance(args[0] if args else None, tp.Tensor) and pick.random() < 0.4:
        call.function = op.inplace_form(pick.choice(op.inplace))
        call.writes = (args[0],)
    call.args, call.kwargs = args, kwargs
    out = kwargs.get("out")
    outs = out if isinstance(out, (list, tuple)) else (out,)
    call.writes = (*call.writes, *(t for t in outs if isinstance(t, tp.Tensor)), *_asked_to_write(call))
    call.copies = [(t, bits(t)) for t in _tensors([*args, *kwargs.values(), *call.writes])]


def _asked_to_write(call: Call) -> Iterator[Any]:
    """Operands that arguments of the call let it write: the first by inplace=, running statistics in training, rows of
    an embedding that are longer than max_norm."""
    for form in call.op.forms:
        given = dict(zip([*(a[0] for a in form.args), "inplace"], call.args, strict=False)) | call.kwargs
        named = [n for n in given if n.startswith("running_")]
        named += ["weight"] * (given.get("max_norm") is not None)
        if call.op.inplace and given.get("inplace") is True:
            named.append(form.args[0][0])
        yield from (given[n] for n in named if isinstance(given.get(n), tp.Tensor))


def _tensors(values: Any) -> Iterator[Any]:
    for v in values:
        if isinstance(v, tp.Tensor):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from _tensors(v)


def is_huge(call: Call) -> bool:
    """Whether an argument asks for more memory than a test should touch."""
    return any(isinstance(v, int) and abs(v) > 1 << 26 for v in _flat([*call.args, *call.kwargs.values()]))


def _flat(values: Any) -> Iterator[Any]:
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from _flat(v)
        else:
            yield v


def bits(t: Any) -> bytes:
    """The elements as bytes."""
    t = t.detach()
    return bytes((t.to(tp.float32) if t.dtype == tp.bfloat16 else t).numpy().tobytes())


# ---- judgement -------------------------------------------------------------------------------------------------------


def judge(call: Call) -> str | None:
    """Runs the call; what is wrong with its outcome, or None."""
    tp.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _judge_right(call) if call.right else _judge_wrong(call)


def _judge_right(call: Call) -> str | None:
    op = call.op
    try:
        got = call.function(*call.args, **call.kwargs)
    except (TypeError, NotImplementedError) as e:
        if call.dtype in ("f64", "f32") and (not op.dtypes or op.allows(call.dtype)):
            return f"refused: {type(e).__name__}: {e}"
        return None if _names(call, e) else f"refused without its name: {type(e).__name__}: {e}"
    except RuntimeError as e:
        return None if op.view_of and _names(call, e) else f"refused: {type(e).__name__}: {e}"
    except Exception as e:
        return f"refused: {type(e).__name__}: {e}"
    if op.name in _BY_MEMORY:
        return None
    tp.manual_seed(0)
    same = call.function(*_contiguous(call.args), **_contiguous(call.kwargs))
    tol = {"f64": 1e-9, "c128": 1e-9, "f16": 1e-2, "bf16": 6e-2}.get(call.dtype, 1e-4)
    for a, b in zip(results(got), results(same), strict=True):
        if (wrong := _differ(a, array(b), tol)) is not None:
            return f"another memory layout changes the result: {wrong}"
    if call.odd or call.dtype != "f64" or call.sample is None:
        return None
    try:
        want = reference_or_none(op, call.sample)
    except Exception:
        return None  # the reference has no value there (an empty reduction)
    rtol, _ = tolerance(op, held_to(call.sample, got))
    for a, b in zip(results(got), want or (), strict=False):
        if (wrong := _differ(a, np.asarray(b), max(rtol, 1e-9))) is not None:
            return f"differs from {call.sample.form.like}: {wrong}"
    return None


def _judge_wrong(call: Call) -> str | None:
    try:
        call.function(*call.args, **call.kwargs)
    except MemoryError:
        failed = True
    except REFUSALS as e:
        failed = True
        if not _names(call, e):
            return f"the message does not name the op: {type(e).__name__}: {e}"
    except BaseException as e:
        return f"raises {type(e).__name__}: {e}"
    else:
        failed = False
    for t, before in call.copies:
        if (failed or not any(t is w or _shares(t, w) for w in call.writes)) and bits(t) != before:
            return f"an operand was written to ({'after an error' if failed else 'a call that writes nothing'})"
    return None


def _shares(a: Any, b: Any) -> bool:
    return bool(tp._C._block_id(a) == tp._C._block_id(b))


def _names(call: Call, e: BaseException) -> bool:
    text = str(e)
    return any(n in text for n in call.names)


def _contiguous(values: Any) -> Any:
    if isinstance(values, dict):
        return {k: _contiguous(v) for k, v in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)(_contiguous(v) for v in values)
    return values.detach().clone().contiguous() if isinstance(values, tp.Tensor) else values


def _differ(got: Any, want: np.ndarray[Any, Any], tol: float) -> str | None:
    a = array(got)
    if a.shape != want.shape:
        return f"sizes {a.shape}, not {want.shape}"
    with suppress(TypeError), np.errstate(all="ignore"):
        if not np.allclose(a, want, rtol=tol, atol=tol, equal_nan=True):
            at = np.unravel_index(np.argmax(~np.isclose(a, want, rtol=tol, atol=tol, equal_nan=True)), a.shape)
            return f"{a[at]!r}, not {want[at]!r}, at {tuple(int(i) for i in at)}"
    return None


def describe(call: Call) -> str:
    """The call as text, tensors by dtype, sizes and strides."""
    parts = [*map(_shown, call.args), *(f"{k}={_shown(v)}" for k, v in call.kwargs.items())]
    return f"{getattr(call.function, '__name__', call.op.name)}({', '.join(parts)})"


def _shown(v: Any) -> str:
    if isinstance(v, tp.Tensor):
        strides = "" if v.is_contiguous() else f" strides {v.stride()}"
        small = f" = {v.detach().tolist()}" if v.numel() <= 3 else ""
        return f"<{v.dtype} {tuple(v.shape)}{strides}{small}>"
    if isinstance(v, (list, tuple)):
        return f"[{', '.join(map(_shown, v[:4]))}{', ...' if len(v) > 4 else ''}]"
    return repr(v)[:60]
