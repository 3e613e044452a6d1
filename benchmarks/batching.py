"""vmap over many small samples beside the op on the stacked array, forward and backward: every op whose samples stack.

`python benchmarks/batching.py [--rows 10000] [--ops name ...] [--limit 5]` prints each ratio, the worst last. Ops and
samples are those of the generated tests. How an op takes the stacked array is tried out and compared with vmap on a few
rows: arguments as they are, dimensions counted behind the batch, sizes with the batch in front. What fits no form is
listed, with vmap's time beside that of as many single calls.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import tensorplay as tp
from tensorplay import _C
from tensorplay.testing.batching import Batch, variant, vmap
from tensorplay.testing.inputs import Sample, argument_types, samples
from tensorplay.testing.rows import Op, array, tensor

TESTS = Path(__file__).resolve().parent.parent / "generated" / "tests"
KINDS = 3  # different samples; the rows repeat them
Many = tuple[bool, ...]  # which tensors differ from row to row
Values = Sequence[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Form:
    """How the op takes the stacked array: the other arguments of its call, and what is done to sizes on the way."""

    given: dict[str, Any]
    shape: str  # as it is | aligned | flat | merged: tensors before the call


@dataclass
class Found:
    op: str
    text: str
    forward: float
    backward: float

    @property
    def worst(self) -> float:
        return max(self.forward, self.backward)


def ops() -> Iterator[Op]:
    for path in sorted(TESTS.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # Internal ops trust their callers, and are measured where they are called.
        yield from (op for op in module.OPS if op.home != "internal")


def best(f: Callable[[], Any], seconds: float = 0.01) -> float:
    """The shortest of several runs."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return min(times)


def repeated(values: Values, many: Many, rows: int) -> list[Any]:
    return [
        tensor(np.stack([variant(v, i) for i in range(KINDS)])[np.arange(rows) % KINDS] if m else v)
        for v, m in zip(values, many, strict=True)
    ]


def mapped(b: Batch, xs: Sequence[Any], many: Many, rows: int) -> list[Any]:
    return vmap(b, xs, [0 if m else None for m in many], rows)


# ---- the op on the stacked array ------------------------------------------------------------------------------------


def choices(value: Any, ranks: list[int], rows: str = "rows") -> list[Any]:
    """What an integer argument may become behind a batch dimension; `rows` stands for its size."""
    if isinstance(value, bool):
        return [value]
    if value is None:
        return [None, 1]
    if isinstance(value, int):
        return [value] if value < 0 else [value + 1, value]
    if isinstance(value, (tuple, list)) and all(isinstance(v, int) and not isinstance(v, bool) for v in value):
        moved = [type(value)(v + 1 if v >= 0 else v for v in value)]
        return [moved[0] if value else tuple(range(1, ranks[0])), value, (rows, *value), (0, *moved[0])]
    return [value]


def forms(b: Batch, many: Many) -> Iterator[Form]:
    types = argument_types(b.s.form)
    ranks = [v.ndim + 1 for v in b.values] or [1]
    # A default counts dimensions as well.
    given = {a[0]: a[2] for a in b.s.form.args if len(a) > 2 and a[1].startswith("int")} | b.s.given
    pools = [
        choices(given[k], ranks) if types[k].startswith("int") else [given[k]] for k in types if k in given
    ]
    names = [k for k in types if k in given]
    for combo in islice(product(*pools), 256):
        for shape in ("as it is", "aligned", "flat", "merged"):
            yield Form(dict(zip(names, combo, strict=True)), shape)


def reshaped(x: Any, how: str, rank: int) -> Any:
    match how:
        case "aligned":
            return x.reshape(x.shape[0], *(1,) * (rank - x.dim()), *x.shape[1:])
        case "flat":
            return x.flatten(1) if x.dim() > 1 else x
        case "merged":
            return x.flatten(0, 1) if x.dim() > 1 else x
    return x


def whole(b: Batch, form: Form, xs: Sequence[Any], many: Many, rows: int) -> list[Any]:
    given = {
        k: tuple(rows if i == "rows" else i for i in v) if isinstance(v, tuple) else v for k, v in form.given.items()
    }
    there = Batch(b.op, Sample(b.s.form, given | {k: b.s.given[k] for k, _ in b.places}, "", b.s.symmetric))
    rank = max(x.dim() for x, m in zip(xs, many, strict=True) if m)
    outs = there(*(reshaped(x, form.shape, rank) if m else x for x, m in zip(xs, many, strict=True)))
    if form.shape == "merged":
        outs = [None if o is None else o.unflatten(0, (rows, o.shape[0] // rows)) for o in outs]
    return outs


def agrees(got: Sequence[Any], want: Sequence[Any]) -> bool:
    if len(got) != len(want):
        return False
    for g, w in zip(got, want, strict=True):
        if (g is None) != (w is None):
            return False
        if g is not None and not (
            g.shape == w.shape and g.dtype == w.dtype and np.allclose(array(g), array(w), 1e-6, 1e-8, equal_nan=True)
        ):
            return False
    return True


def form_of(b: Batch) -> tuple[Many, Form] | None:
    """The first form that gives what vmap gives: over all tensors, or over the first alone."""
    n = len(b.places)
    for many in dict.fromkeys([(True,) * n, (True, *(False,) * (n - 1))]):
        xs = repeated(b.values, many, KINDS + 1)
        with tp.no_grad():
            want = mapped(b, xs, many, KINDS + 1)
            for form in forms(b, many):
                try:
                    if agrees(whole(b, form, xs, many, KINDS + 1), want):
                        return many, form
                except (ValueError, TypeError, IndexError, RuntimeError):
                    continue  # not a form of this op
    return None


# ---- times ----------------------------------------------------------------------------------------------------------


def backward(f: Callable[[], list[Any]], leaves: Sequence[Any]) -> Callable[[], Any] | None:
    """f and the gradients of its leaves, or None where nothing is differentiable."""
    outs = [i for i, o in enumerate(f()) if o is not None and o.requires_grad]
    wanted = [x for x in leaves if x.requires_grad]
    if not outs or not wanted:
        return None
    seeds = [tp.ones_like(o.detach()) for o in (f()[i] for i in outs)]

    def run() -> Any:
        got = f()
        return tp.autograd.grad([got[i] for i in outs], wanted, seeds, allow_unused=True)

    return run


def ratio(one: Callable[[], Any], other: Callable[[], Any]) -> float:
    """The shortest times of both, taken in turns: on a shared machine a neighbour then slows both or neither."""
    turns = [(best(one), best(other)) for _ in range(4)]
    return min(t for t, _ in turns) / min(t for _, t in turns)


def ratios(one: Callable[[], list[Any]], other: Callable[[], list[Any]], leaves: Sequence[Any]) -> tuple[float, float]:
    """Times of `one` in those of `other`, forward, and with the gradients of the leaves (0 where there are none)."""
    with tp.no_grad():
        forward = ratio(one, other)
    mine, theirs = backward(one, leaves), backward(other, leaves)
    return forward, ratio(mine, theirs) if mine and theirs else 0.0


def measure(op: Op, b: Batch, rows: int) -> tuple[Found, bool]:
    """The ratio and whether it is to the op on the stacked array (else to as many calls of the op)."""
    known = form_of(b)
    many = known[0] if known else (True,) * len(b.places)
    xs = repeated(b.values, many, rows)
    for x, smooth in zip(xs, b.smooth, strict=True):
        if smooth:
            x.requires_grad_()
    through: Callable[[], list[Any]] = lambda: mapped(b, xs, many, rows)  # noqa: E731
    if known:
        return Found(op.name, b.s.text, *ratios(through, lambda: whole(b, known[1], xs, many, rows), xs)), True
    first = [x[0].detach() if m else x for x, m in zip(xs, many, strict=True)]
    with tp.no_grad():
        return Found(op.name, b.s.text, best(through) / (rows * best(lambda: b(*first), 0.002)), 0.0), False


def shown(found: Sequence[Found]) -> Iterator[str]:
    for f in sorted(found, key=lambda f: f.worst):
        both = f"forward and backward {f.backward:6.2f}x" if f.backward else ""
        yield f"{f.op:<24} forward {f.forward:6.2f}x   {both:<31}  {f.text}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--ops", nargs="*")
    parser.add_argument("--limit", type=float, default=5.0, help="the ratio from which on an op is named")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    _C._vmap_warn_of_loops(False)
    stacked: list[Found] = []
    alone: list[Found] = []
    refused: dict[str, str] = {}
    for op in ops():
        if (args.ops and op.name not in args.ops) or not (op.elementwise or op.cases):
            continue
        kind = "f32" if op.allows("f32") else None
        for s in samples(op, dtype=kind, limit=1):
            b = Batch(op, s)
            if not b.places or any(v.ndim == 0 or math.prod(v.shape) == 0 for v in b.values):
                continue
            try:
                found, fits = measure(op, b, args.rows)
            except (RuntimeError, TypeError) as e:  # it draws, or values decide on sizes
                refused[op.name] = str(e).splitlines()[0]
                continue
            (stacked if fits else alone).append(found)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if alone:
        print("no stacked form: vmap in single calls, one a row")
        print(*shown(alone), sep="\n")
    if refused:
        print("\nnot batched:", *(f"  {k}: {v}" for k, v in refused.items()), sep="\n")
    if stacked:
        print("\nvmap in calls on the stacked array", *shown(stacked), sep="\n")
        over = sorted({f.op for f in stacked if f.worst > args.limit})
        names = len({f.op for f in stacked})
        print(f"\n{names} ops, {args.rows} rows; {len(over)} above {args.limit:g}x: {', '.join(over) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
