"""One op at a time, for its author: `python -m tensorplay.testing.one test OPS OP` checks it, `bench` times it.

An op of a file of one's own is compiled first, as define_ops does it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import tensorplay as tp

from ..codegen import formula as F
from ..codegen import pipeline
from ..codegen.base import is_library
from ..codegen.model import Entry, OpFile
from ..codegen.render import test_rows
from .generated import Form, Op, checks
from .inputs import Sample, base_dtype, samples
from .rows import plain

SIZES = (1, 1_000, 1_000_000)


def load(ops: str) -> tuple[OpFile, str]:
    """The entries of a file and the package that has their functions; '' for the library's own."""
    file, diags, _ = pipeline.checked(ops, numeric=False)
    if diags:
        raise SystemExit(diags.render())
    if is_library(Path(ops).resolve()):
        return file, ""
    return file, tp.define_ops(ops).__name__


def test(ops: str, op: str) -> int:
    """Every check of one op, a line each. Returns how many failed."""
    file, package = load(ops)
    failed = 0
    for check in checks(_rows(file, package, _entry(file, op))):
        started = time.perf_counter()
        try:
            check.run()
            said = "ok"
        except AssertionError as e:
            said, failed = f"FAILED\n{e}", failed + 1
        except SkipTest as e:
            said = f"skipped: {e}"
        print(f"{check.what:10} {said}   {time.perf_counter() - started:.2f} s")
    print(f"{op}: {'every check passed' if not failed else f'{failed} failed'}")
    return failed


def _rows(file: OpFile, package: str, entry: Entry) -> list[Op]:
    text = test_rows(file) if package else test_rows(replace(file, entries=(entry,)), file)
    rows: list[Op] = eval(f"[{text}]", {"Op": Op, "Form": Form})
    return [replace(r, package=package) for r in rows if r.name == entry.op]


def _entry(file: OpFile, op: str) -> Entry:
    found = file.get(op)
    if found is None:
        raise SystemExit(f"no op '{op}' in {file.path}; it has: {', '.join(file.by_name)}")
    return found


def bench(ops: str, op: str) -> int:
    """Nanoseconds an element of one elementwise op: fused, as one op after another, and in PyTorch if it is here."""
    file, package = load(ops)
    entry = _entry(file, op)
    o = entry.overloads[0]
    if o.inlined is None:
        raise SystemExit(f"bench: {op} is not elementwise with a formula; there is nothing it is fused from")
    (row,) = _rows(file, package, entry)
    form = row.forms[0]
    dtype = "f32" if row.allows("f32") else base_dtype(row)
    first = _sample(row, form, 1, dtype)
    tensors = [k for k, v in first.items() if isinstance(v, np.ndarray)]
    rest = {a.name: first.get(a.name, a.default) for a in o.sig.args if a.name not in tensors}
    text = F.to_text(_decided(o.inlined, rest, tensors))
    print(f"{op} = {text}, {tp.tensor(first[tensors[0]]).dtype if tensors else dtype}, {tp.get_num_threads()} threads")

    # What leads the signature by position, the rest by name: the calls are timed too.
    lead = next((i for i, a in enumerate(form.args) if a[0] not in tensors or "kwonly" in a[3:]), len(form.args))
    fixed = {k: v for k, v in plain(Sample(form, {}), first).items() if k not in tensors}

    def fused(*xs: Any) -> Any:
        return row.function(*xs[:lead], **dict(zip(tensors[lead:], xs[lead:], strict=True)), **fixed)

    rows: list[tuple[str, Any, Callable[..., Any]]] = [
        ("fused", tp, fused), ("one by one", tp, _apart(text, tensors, rest, tp)),
    ]  # fmt: skip
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed here; it would be a third row")
    else:
        torch.set_num_threads(tp.get_num_threads())
        rows.append(("PyTorch", torch, _apart(text, tensors, rest, torch)))
    print(f"{'':12}" + "".join(f"{f'{n} forward':>20}{f'{n} and grad':>20}" for n in SIZES) + "   ns an element")
    for name, library, f in rows:
        cells = []
        for n in SIZES:
            sample = _sample(row, form, n, dtype)
            xs = {k: library.tensor(sample[k]) for k in tensors}
            try:
                forward = best(partial(f, *xs.values())) / n
                both = _gradient_time(library, f, xs, form.diff)
            except Exception as e:
                cells.append(f"{type(e).__name__}: {e}"[:38])
                break
            cells.append(f"{forward:>20.2f}{both:>20}")
        print(f"{name:12}" + "".join(cells))
    return 0


def _sample(row: Op, form: Form, n: int, dtype: str) -> dict[str, Any]:
    """Arguments by name: every tensor, n elements each, and the numbers that the op's tests give it first."""
    return next(samples(row, shapes=((n,),), dtype=dtype, limit=1, only=form)).given


def _gradient_time(library: Any, f: Callable[..., Any], xs: dict[str, Any], diff: tuple[str, ...]) -> str:
    moved = [x for k, x in xs.items() if k in diff]
    if not moved:
        return "-"
    for x in moved:
        x.requires_grad_()
    ones = library.ones_like(moved[0])
    return f"{best(lambda: library.autograd.grad(f(*xs.values()), moved, ones)) / ones.numel():.2f}"


def best(call: Callable[[], Any], seconds: float = 0.2) -> float:
    """The quickest of the runs that fit into some time, in nanoseconds."""
    call()
    least, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        started = time.perf_counter_ns()
        call()
        least = min(least, time.perf_counter_ns() - started)
    return least


def _decided(n: F.Node, rest: dict[str, Any], tensors: list[str]) -> F.Node:
    """The formula without what does not depend on elements: which of the arguments are there, flags, numbers."""
    n = F.map_children(n, lambda c: _decided(c, rest, tensors))
    match n:
        case F.Compare(op=op, left=F.Name(id=i), right=F.NoneLit()) if i in tensors:
            return F.Bool(op == "!=")
        case F.Call(func="where", args=(c, yes, no)) if not set(F.names(c)) & set(tensors):
            return yes if eval(F.to_text(c), {}, rest) else no
    return n


def _apart(text: str, names: list[str], rest: dict[str, Any], library: Any) -> Callable[..., Any]:
    import math

    special = library.special
    space = {
        f: getattr(library, f, None) or getattr(special, f, None) or getattr(library.nn.functional, f, None)
        for f in F.calls(F.parse(text))
    }
    space |= {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, **rest}
    return eval(f"lambda {', '.join(names)}: {text}", space)


def main() -> int:
    what, ops, op = sys.argv[1:4]
    return {"test": test, "bench": bench}[what](ops, op)


if __name__ == "__main__":
    raise SystemExit(main())
