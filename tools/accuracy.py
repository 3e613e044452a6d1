"""Measures the largest error of every elementwise function against mpmath, and of sums that cancel against exact ones;
writes docs/accuracy.md and its plot, docs/accuracy.png.

Run with the built package on the path: PYTHONPATH=build/dev/site:. python tools/accuracy.py [--points N]
Errors are in units of the last place (ulp) of the exact value, for float32 and float64.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
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
random points each (fewer where mpmath is slow): of the interval its tests use, of [-10, 10], of magnitudes from tiny to
huge, and of all bit patterns of the format alike. 0.5 is correct rounding. Exact values are mpmath's with 50 digits.
`python tools/accuracy.py` measures and writes this page; tests/core/ulp looks at the vector code itself, at every
float32 if asked.

Near a zero of the function the error in ulp of the value has no bound where the argument's own rounding decides; such a
row says `root`, and its error is taken relative to the function's size beside the zero, or to the largest operand of a
sum; no huge arguments there. `airy_ai` loses its phase by and by on the left, as its argument does.

![Largest errors](accuracy.png)

## Functions

| function | float32 | at | float64 | at |
|---|---|---|---|---|
"""
LARGEST = -1.0  # the largest operand: what is added there cancels
# Functions with zeros that no argument in floating point hits: their errors are measured on this scale near them.
SCALES = {
    "airy_ai": 0.1, "airy_ai_prime": 0.1, "bessel_j0": 0.1, "bessel_j1": 0.1, "bessel_y0": 0.1, "bessel_y1": 0.1,
    "digamma": 1.0, "lgamma": 0.1, "logaddexp": 1.0, "logaddexp2": 1.0, "sinc": 0.01, "spherical_bessel_j0": 0.01,
    "gelu": 0.01, "mish": 0.01, "addcmul": LARGEST, "addcdiv": LARGEST, "lerp": LARGEST, "rsub": LARGEST,
}  # fmt: skip


SUMS = """
## Sums that cancel

Numbers of both signs, of magnitudes up to 10^6 apart, whose sum is 10^-3 to 10^-9 of the sum of their magnitudes. The
error is given in units of the rounding of the sum of magnitudes (2^-24 or 2^-53 times it): below 1, the inputs' own
rounding matters more than the additions; adding one by one gives about the square root of the count. Exact sums are
`math.fsum`'s, variances and norms of the same numbers Python fractions'.

| reduction | numbers | float32 | NumPy | float64 | NumPy |
|---|---|---|---|---|---|
"""
CONTINUED = ("zeta", "igamma", "igammac")  # mpmath goes on beyond the domain of the op
EACH, ALL = 0.25, 10.0  # seconds for one point, and for one function in one precision




def late(*_: Any) -> None:
    raise TimeoutError


def entries() -> Any:
    return checked(str(ROOT / "ops.yaml"), numeric=False)[0].entries


def functions(only: list[str]) -> Iterator[tuple[Entry, Overload]]:
    for e in entries():
        o = e.overloads[0]
        if e.family.name not in ("unary", "binary", "ternary") or o.inlined is None or (only and e.op not in only):
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
    some = count // 5
    # mpmath sums what has zeros term by term: no huge arguments there.
    decades = 4 if e.op in SCALES else 30 if dtype is np.float32 else 250
    wild = rng.choice([-1, 1], some) * 10.0 ** rng.uniform(-decades, decades, some)
    near = rng.choice([-1, 1], some) * 10.0 ** rng.uniform(-6, 3, some)
    with np.errstate(over="ignore"):
        chosen = np.concatenate([rng.uniform(low, high, some), rng.uniform(-10, 10, some), near, wild]).astype(dtype)
    if e.op in CONTINUED:
        return chosen[:some]
    if e.op in SCALES:
        return chosen
    bits = rng.integers(0, 1 << (8 * chosen.itemsize - 1), some, dtype=np.uint64) * 2 + rng.integers(0, 2, some)
    return np.concatenate([chosen, bits.astype(f"u{chosen.itemsize}").view(dtype)])


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
    said = SCALES.get(e.op, 0.0)
    largest: tuple[float, Any] = (-1.0, None)
    stop = time.monotonic() + ALL
    for i in rng.permutation(len(got)):  # a function that is stopped early has seen all kinds of points
        y = got[i]
        at = [float(given[n][i]) for n in tensors]
        if time.monotonic() > stop:
            break
        if any(map(math.isnan, at)):
            continue
        scale = max(map(abs, at)) if said == LARGEST else said
        try:
            signal.setitimer(signal.ITIMER_REAL, EACH)
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
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if not np.isfinite(y):
            error = math.inf
        else:
            error = float(abs(mpmath.mpf(float(y)) - exact) / ulp(max(abs(float(exact)), scale), dtype))
        if error > largest[0]:
            largest = (error, at)
    return largest if largest[1] is not None else None


def measured(op: str, count: int) -> list[tuple[str, float, float, str]]:
    """A row of the table, and what the plot shows of it."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    rows = []
    with mpmath.workdps(700 if op == "ndtri" else 50):  # whose formula starts with 2 p - 1
        evaluate = MpmathEvaluator()
        for e, o in functions([op]):
            found = [worst(e, o, dtype, count, evaluate) for dtype in (np.float32, np.float64)]
            cells = [c for f in found for c in (("", "") if f is None else (f"{f[0]:.2f}", _point(f[1])))]
            if any(cells):
                name = e.op + (" (root)" if e.op in SCALES else "")
                single, double = (math.nan if f is None else f[0] for f in found)
                rows.append((f"| {name} | " + " | ".join(cells) + " |", single, double, name))
    return rows


def _point(at: Any) -> str:
    return ", ".join(f"{v:.6g}" for v in at)


# ---- reductions -----------------------------------------------------------------------------------------------------
def cancelling(count: int, dtype: Any, rng: np.random.Generator) -> Any:
    """Numbers whose sum is small beside them: each has an opposite, up to a part in 10^3 to 10^9."""
    half = rng.standard_normal(count // 2) * 10.0 ** rng.uniform(-3, 3, count // 2)
    almost = -half * (1 + 10.0 ** rng.uniform(-9, -3, half.size) * rng.choice([-1, 1], half.size))
    both = np.concatenate([half, almost])
    rng.shuffle(both)
    return both.astype(dtype)


def exactly(name: str, x: Any) -> tuple[float, float]:
    """The reduction's exact value, and the size that its rounding is measured by."""
    values = x.astype(np.float64).tolist()
    total, size = math.fsum(values), math.fsum(map(abs, values))
    if name == "sum":
        return total, size
    if name == "mean":
        return total / len(values), size / len(values)
    if name == "cumsum":  # its last number
        return total, size
    squares = math.fsum(v * v for v in values)  # of float32 exact, of float64 to a rounding each
    if name == "dot":
        return squares, squares
    if name == "norm":
        return math.sqrt(squares), math.sqrt(squares)
    mean = total / len(values)
    spread = math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return spread, spread


REDUCTIONS: dict[str, tuple[Any, Any]] = {
    "sum": (tp.sum, np.sum),
    "mean": (tp.mean, np.mean),
    "cumsum": (lambda x: tp.cumsum(x, 0)[-1], lambda x: np.cumsum(x)[-1]),
    "var": (tp.var, lambda x: np.var(x, ddof=1)),
    "norm": (tp.linalg.vector_norm, np.linalg.norm),
    "dot": (lambda x: tp.dot(x, x), lambda x: np.dot(x, x)),
}


def sums() -> list[str]:
    rows = []
    for name, (ours, numpys) in REDUCTIONS.items():
        for count in (1_000, 1_000_000, 10_000_000):
            cells = []
            for dtype in (np.float32, np.float64):
                largest = [0.0, 0.0]
                for seed in range(5 if count < 10_000_000 else 1):
                    x = cancelling(count, dtype, np.random.default_rng(seed))
                    want, size = exactly(name, x)
                    unit = size * float(np.finfo(dtype).eps) / 2
                    for k, got in enumerate((float(ours(tp.from_numpy(x))), float(numpys(x)))):
                        largest[k] = max(largest[k], abs(got - want) / unit)
                cells += [f"{v:.3g}" for v in largest]
            rows.append(f"| {name} | {count:,} | " + " | ".join(cells) + " |")
            print(rows[-1], flush=True)
    return rows


def plot(rows: list[tuple[str, float, float, str]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = sorted(rows, key=lambda r: max(np.nan_to_num(r[1]), np.nan_to_num(r[2])))
    places = np.arange(len(rows))
    figure, axes = plt.subplots(figsize=(8, 0.16 * len(rows) + 1.5))
    for k, label in ((1, "float32"), (2, "float64")):
        axes.plot([max(float(r[k]), 0.02) for r in rows], places, "o", ms=4, label=label)  # exact ones at the edge
    for limit, style in ((0.5, ":"), (2, "--"), (4, "-")):
        axes.axvline(limit, color="gray", lw=0.8, ls=style)
    axes.set(xscale="log", xlabel="largest error, ulp", ylim=(-1, len(rows)))
    axes.set_yticks(places, [r[3] for r in rows], fontsize=6)
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1200)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    names = [e.op for e, _ in functions(arguments.only)]
    rows = []
    with ProcessPoolExecutor() as pool:
        for found in pool.map(measured, names, [arguments.points] * len(names)):
            rows += found
            for row in found:
                print(row[0], flush=True)
    if not arguments.only:
        lines = [r[0] for r in sorted(rows)]
        text = HEAD.format(points=f"{arguments.points:,}") + "\n".join(lines) + "\n" + SUMS + "\n".join(sums()) + "\n"
        (ROOT / "docs" / "accuracy.md").write_text(text)
        plot(rows, ROOT / "docs" / "accuracy.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
