"""Every op in every dtype it takes and every layout of its operands, against contiguous memory and against the op's
reference, where NumPy has the dtype.

    python tools/matrix.py --only softmax

Prints how many cells agree, and every one that does not. The tests take a sample of these cells.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorplay as tp
from program_check import rows
from tensorplay.testing.inputs import COMPLEX, FLOATS, INTEGERS, Sample, reference_or_none, samples
from tensorplay.testing.rows import Op, array, call, compare, results, tensor, tolerance

DTYPES = {**INTEGERS, **FLOATS, **COMPLEX}


def transposed(t: Any) -> Any:
    axes = tuple(range(t.dim()))[::-1]
    return t.permute(axes).contiguous().permute(axes)


def stepped(t: Any) -> Any:
    return tp.stack([t, tp.zeros_like(t)], -1)[..., 0] if t.dim() else t


def shifted(t: Any) -> Any:
    """In the middle of larger memory, at an address no vector is aligned to."""
    flat = tp.cat([tp.zeros(1, dtype=t.dtype), t.reshape(-1), tp.zeros(1, dtype=t.dtype)])
    return flat[1 : 1 + t.numel()].view(t.shape)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": transposed, "stepped": stepped, "shifted": shifted,
}  # fmt: skip


def each(value: Any, f: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [each(v, f) for v in value]
    return f(value) if isinstance(value, tp.Tensor) else value


def is_array(x: Any, kinds: str) -> bool:
    return isinstance(x, np.ndarray) and bool(kinds) and x.dtype.kind in kinds


def one_layout(op: Op) -> bool:
    """Its results are not free (a phase), or they are of the memory, not of the elements."""
    return "layouts" in op.skip or op.name in ("as_strided", "as_strided_scatter", "empty_like")


def cells(op: Op, name: str, s: Sample) -> Iterator[tuple[str, str]]:
    """(layout, what is wrong or nothing); none where an entry that names no dtypes has no form for this one."""
    dtype = getattr(tp, DTYPES[name])
    cast = "f" if name in FLOATS else "c" if name in COMPLEX else ""  # the kind of array that has this dtype

    def operand(x: Any) -> Any:
        return [operand(v) for v in x] if isinstance(x, list) else tensor(x, dtype) if is_array(x, cast) else tensor(x)

    def rounded(x: Any) -> Any:
        return [rounded(v) for v in x] if isinstance(x, list) else array(operand(x)) if is_array(x, cast) else x

    given = {k: operand(v) for k, v in s.given.items()}
    s = s.replace({k: rounded(v) for k, v in s.given.items()})
    try:
        plain = results(call(op, s, given))
    except (TypeError, RuntimeError, ValueError) as error:
        if op.dtypes:  # its entry promises the dtype
            yield "contiguous", f"{type(error).__name__}: {error}"
        return
    try:
        want = reference_or_none(op, s) if name not in INTEGERS or name == "i64" else None
    except ArithmeticError:  # NumPy's own refusal
        want = None
    if op.view_of and "dtype" in s.given and name != "f64":
        want = None  # references compute in float64, whose bytes are others
    kind = name if name not in INTEGERS else "f32"
    note = f"{DTYPES[name]}, {s.text}"
    yield "contiguous", problem(lambda: compare(op, plain, want, note, kind)) if want is not None else ""
    if one_layout(op):
        return
    rtol, atol = tolerance(op, kind)
    for layout, arrange in LAYOUTS.items():

        def run(layout: str = layout, arrange: Callable[[Any], Any] = arrange) -> None:
            try:
                got = results(call(op, s, {k: each(v, arrange) for k, v in given.items()}))
            except RuntimeError:
                if op.view_of is None:
                    raise
                return  # this memory has no such view, and the op said so
            for g, p in zip(got, plain, strict=True):
                np.testing.assert_allclose(array(g), array(p), rtol=rtol, atol=atol, err_msg=f"{layout}, {note}")

        yield layout, problem(run)


def problem(f: Callable[[], Any]) -> str:
    try:
        f()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="ops whose name contains this")
    options = parser.parse_args()
    agree: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    skipped: list[str] = []
    bad = 0
    for op in rows():
        drawn = op.cases or op.elementwise
        if options.only not in op.name or not drawn or not any("Tensor" in a[1] for f in op.forms for a in f.args):
            continue
        if one_layout(op):
            skipped.append(op.name)
        for name in DTYPES:
            if not op.allows(name):
                continue
            seen = False
            for s in samples(op, dtype=name):
                for layout, wrong in cells(op, name, s):
                    seen = True
                    agree[layout] += not wrong
                    if wrong:
                        bad += 1
                        print(f"{op.name}, {DTYPES[name]}, {layout}: {wrong}", flush=True)
            taken[name] += seen
    print("ops by dtype: " + ", ".join(f"{DTYPES[n]} {taken[n]}" for n in DTYPES))
    print("cells that agree: " + ", ".join(f"{layout} {n}" for layout, n in agree.items()) + f"; {bad} do not")
    print(f"contiguous memory alone, for a reason in the entry: {', '.join(skipped) or 'none'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
