"""Measures the largest error of every elementwise function against mpmath and writes docs/accuracy.md.

Run with the built package on the path: PYTHONPATH=build/dev/site:. python tools/accuracy.py [--points N]
Errors are in units of the last place (ulp) of the exact value, for float32 and float64.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import tensorplay as tp

from codegen.evaluate import MpmathEvaluator
from codegen.model import Base, Entry, Overload
from codegen.pipeline import checked

ROOT = Path(__file__).resolve().parent.parent
HEAD = """# Accuracy

The largest error found of every elementwise function, in units of the last place (ulp) of the exact value, at {points}
random points each: of the interval its tests use, of [-10, 10], and of magnitudes from tiny to huge. 0.5 is correct
rounding. Exact values are mpmath's with 50 digits. `python tools/accuracy.py` measures and writes this page;
tests/core/ulp looks at the vector code itself, at every float32 if asked.

Near a zero of the function the error in ulp of the value has no bound where the argument's own rounding decides; such a
row says `root`, and its error is taken relative to the function's size beside the zero.

Known outliers: `tanhshrink` is x - tanh x, which cancels near 0, and `logit` a difference of logarithms, which cancels
near 1/2; `airy_ai` loses its phase below about -10^8.

| function | float32 | at | float64 | at |
|---|---|---|---|---|
"""
# Functions with zeros that no argument in floating point hits: their errors are measured on this scale near them.
SCALES = {
    "airy_ai": 0.1, "airy_ai_prime": 0.1, "bessel_j0": 0.1, "bessel_j1": 0.1, "bessel_y0": 0.1, "bessel_y1": 0.1,
    "digamma": 0.1, "lgamma": 0.1, "logaddexp": 0.1, "logaddexp2": 0.1, "sinc": 0.01, "spherical_bessel_j0": 0.01,
    "gelu": 0.01, "mish": 0.01, "addcmul": 1.0, "addcdiv": 1.0, "lerp": 1.0, "rsub": 1.0,
}  # fmt: skip


def entries() -> Any:
    return checked(str(ROOT / "ops.yaml"), numeric=False)[0].entries


def functions(only: list[str]) -> Iterator[tuple[Entry, Overload]]:
    for e in entries():
        o = e.overloads[0]
        if e.family.name not in ("unary", "binary") or o.inlined is None or (only and e.op not in only):
            continue
        if e.op in ("fmod", "remainder"):
            continue  # exact; the difference mpmath forms is not
        if not all(a.type.is_tensor or not a.required for a in o.sig.args) or e.home == ("internal",):
            continue
        if e.dtypes and "f64" not in e.dtypes:
            continue
        yield e, o


def points(e: Entry, name: str, dtype: Any, count: int, rng: np.random.Generator) -> Any:
    low, high = e.test.domains.get(name, (-3.0, 3.0))
    third = count // 3
    # mpmath sums what has zeros term by term: no huge arguments there.
    decades = 4 if e.op in SCALES else 30 if dtype is np.float32 else 250
    wild = rng.choice([-1, 1], third) * 10.0 ** rng.uniform(-decades, decades, third)
    near = rng.choice([-1, 1], third) * 10.0 ** rng.uniform(-6, 3, third)
    return np.concatenate([rng.uniform(low, high, third), rng.uniform(-10, 10, third), near, wild]).astype(dtype)


def ulp(x: float, dtype: Any) -> float:
    info = np.finfo(dtype)
    x = max(abs(x), float(info.tiny))
    return math.ldexp(1.0, max(math.frexp(x)[1] - 1 - info.nmant, -1074))


def worst(e: Entry, o: Overload, dtype: Any, count: int, evaluate: MpmathEvaluator) -> tuple[float, Any] | None:
    rng = np.random.default_rng(sum(map(ord, e.op)))
    tensors = [a.name for a in o.sig.args if a.type.is_tensor]
    given = {n: points(e, n, dtype, count, rng) for n in tensors}
    fixed = {a.name: a.default for a in o.sig.args if not a.type.is_tensor}
    if any(
        a.type.base not in (Base.FLOAT, Base.SCALAR, Base.INT, Base.BOOL, Base.STR)
        for a in o.sig.args
        if a.name in fixed
    ):
        return None
    call = getattr(tp._C.functions, e.op, None) or next(
        (f for h in ("special", "nn_functional") if (f := getattr(getattr(tp._C, h), e.op, None))), None
    )
    if call is None:
        return None
    got = call(*(tp.tensor(given[n]) for n in tensors)).numpy()
    if got.dtype != dtype:
        return None
    assert o.inlined is not None
    scale = SCALES.get(e.op, 0.0)
    largest: tuple[float, Any] = (-1.0, None)
    for i, y in enumerate(got):
        at = [float(given[n][i]) for n in tensors]
        try:
            want = evaluate(o.inlined, {**fixed, **{n: mpmath.mpf(v) for n, v in zip(tensors, at, strict=True)}})
            exact = mpmath.mpf(want)
            if (
                not mpmath.isfinite(exact)
                or abs(exact) > float(np.finfo(dtype).max)
                or abs(exact) < np.finfo(dtype).tiny
            ):
                continue
        except Exception:  # outside the domain, or beyond what mpmath sums
            continue
        if not np.isfinite(y):
            error = math.inf
        else:
            error = float(abs(mpmath.mpf(float(y)) - exact) / ulp(max(abs(float(exact)), scale), dtype))
        if error > largest[0]:
            largest = (error, at)
    return largest if largest[1] is not None else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1200)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    with mpmath.workdps(50):
        evaluate = MpmathEvaluator()
        for e, o in functions(arguments.only):
            cells = []
            for dtype in (np.float32, np.float64):
                found = worst(e, o, dtype, arguments.points, evaluate)
                cells += ["", ""] if found is None else [f"{found[0]:.2f}", ", ".join(f"{v:.6g}" for v in found[1])]
            if any(cells):
                note = " (root)" if e.op in SCALES else ""
                rows.append(f"| {e.op}{note} | " + " | ".join(cells) + " |")
                print(rows[-1], flush=True)
    if not arguments.only:
        text = HEAD.format(points=arguments.points) + "\n".join(sorted(rows)) + "\n"
        (ROOT / "docs" / "accuracy.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
