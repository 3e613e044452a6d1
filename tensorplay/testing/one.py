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

import numpy as np
import tensorplay as tp

from ..codegen import formula as F
from ..codegen import pipeline
from ..codegen.base import is_library, library_path
from ..codegen.model import Entry, OpFile
from ..codegen.render import test_rows
from .generated import Form, Op, checks

SIZES = (1, 1_000, 1_000_000)


def load(ops: str) -> tuple[OpFile, str]:
    """The entries of a file and the package that has their functions; '' for the library's own."""
    file, diags, _ = pipeline.checked(ops, numeric=False)
    if diags:
        raise SystemExit(diags.render())
    own = Path(ops).resolve()
    if is_library(own) or own == library_path():
        return file, ""
    return file, tp.define_ops(ops).__name__


def test(ops: str, op: str) -> int:
    """Every check of one op, a line each. Returns how many failed."""
    file, package = load(ops)
    entry = _entry(file, op)
    space: dict[str, object] = {"Op": Op, "Form": Form}
    text = test_rows(file) if package else test_rows(replace(file, entries=(entry,)), file)
    rows: list[Op] = eval(f"[{text}]", space)
    failed = 0
    for check in checks([replace(r, package=package) for r in rows if r.name == op]):
        started = time.perf_counter()
        try:
            check.run()
            said = "ok"
        except AssertionError as e:
            said, failed = f"FAILED\n{e}", failed + 1
        except BaseException as e:
            if type(e).__name__ != "Skipped":
                raise
            said = f"skipped: {e}"
        print(f"{check.what:10} {said}   {time.perf_counter() - started:.2f} s")
    print(f"{op}: {'every check passed' if not failed else f'{failed} failed'}")
    return failed


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
    place: Any = sys.modules[package] if package else tp
    if not package and entry.home[0] != "tensorplay":
        for part in entry.home[0].split("."):
            place = getattr(place, part)
    fused = getattr(place, op)
    tensors = [a for a in o.sig.args if a.type.is_tensor and a.required]
    rest = {a.name: a.default for a in o.sig.args if not a.required and not a.type.is_tensor}
    text = F.to_text(o.inlined)
    print(f"{op} = {text}, float32, {tp.get_num_threads()} threads")
    rows: list[tuple[str, Any, Callable[..., Any]]] = [
        ("fused", tp, lambda *xs: fused(*xs)), ("one by one", tp, _apart(text, [a.name for a in tensors], rest, tp)),
    ]  # fmt: skip
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed here; it would be a third row")
    else:
        torch.set_num_threads(tp.get_num_threads())
        rows.append(("PyTorch", torch, _apart(text, [a.name for a in tensors], rest, torch)))
    print(f"{'':12}" + "".join(f"{f'{n} forward':>20}{f'{n} and grad':>20}" for n in SIZES) + "   ns an element")
    for name, library, f in rows:
        cells = []
        for n in SIZES:
            rng = np.random.default_rng(0)
            spans = [entry.test.domains.get(a.name, (0.1, 2.0)) for a in tensors]
            arrays = [rng.uniform(*span, n).astype(np.float32) for span in spans]
            xs = [library.tensor(a) for a in arrays]
            try:
                forward = best(partial(f, *xs)) / n
            except Exception as e:
                cells.append(f"{type(e).__name__}: {e}"[:38])
                break
            for x in xs:
                x.requires_grad_()
            ones = library.ones(n)
            both = best(partial(_gradient, library, f, xs, ones)) / n
            cells.append(f"{forward:>20.2f}{both:>20.2f}")
        print(f"{name:12}" + "".join(cells))
    return 0


def _gradient(library: Any, f: Callable[..., Any], xs: list[Any], ones: Any) -> Any:
    return library.autograd.grad(f(*xs), xs, ones)


def best(call: Callable[[], Any], seconds: float = 0.2) -> float:
    """The quickest of the runs that fit into some time, in nanoseconds."""
    call()
    least, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        started = time.perf_counter_ns()
        call()
        least = min(least, time.perf_counter_ns() - started)
    return least


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
