"""`python benchmarks/fused.py [--torch PYTHON]`: a formula as one op, the same ops one by one, PyTorch, torch.compile.

Seconds and bytes, forward and forward with backward, float32, one thread. PyTorch runs in a process of its own, and the
two take turns; --torch names its interpreter (by default this one, where it has torch). Prints a table, or JSON.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

# name -> (arguments, formula): what define_op takes, and with the functions of a library also what Python evaluates.
FORMULAS = {
    "swish": ("x", "x / (1 + exp(-x))"),
    "gated": ("x y", "x / (1 + exp(-x)) * y"),
    "gaussian": ("x y z", "exp(-(x - y)**2 / (2 * z**2)) / (z * 2.5066282746310002)"),
    "damped": ("x y z", "exp(-0.1 * x) * cos(y * x) + tanh(z) * x"),
    "silu": ("x", "x * sigmoid(x)"),
    "tanh_fma": ("x y z", "tanh(x * y + z)"),
    "gelu_tanh": ("x", "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))"),
    # Ten products and sums.
    "arithmetic": ("x y", "(((x * y + x) * 0.5 - y)**2 + x * 0.25) * y - x"),
    # The parameter after a step of Adam, of it, its gradient and the two running means.
    "adam": ("x dx m v", "x - 0.01 * (m * 0.9 + dx * 0.1) / (sqrt(v * 0.999 + dx * dx * 0.001) + 1e-8)"),
}
SIZES = (1 << 20, 1 << 24)
FUNCTIONS = ("exp", "cos", "tanh", "sigmoid", "sqrt")


def best(f: Callable[[], Any], seconds: float) -> float:
    """The shortest of several runs, in seconds."""
    f()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return min(times)


def composition(name: str, library: Any) -> Callable[..., Any]:
    args, expr = FORMULAS[name]
    made: Callable[..., Any] = eval(
        f"lambda {', '.join(args.split())}: {expr}", {k: getattr(library, k) for k in FUNCTIONS}
    )
    return made


def operands(name: str, n: int) -> list[Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 2.0, n).astype(np.float32) for _ in FORMULAS[name][0].split()]


def measure(kinds: dict[str, Callable[..., Any]], xs: list[Any], grad: Any, no_grad: Any, seconds: float) -> Any:
    """kind -> (forward, forward and backward)."""

    def differentiate(f: Callable[..., Any], y: Any) -> Any:
        return grad(f(*xs), xs, y)

    out = {}
    for kind, f in kinds.items():
        with no_grad():
            forward = best(partial(f, *xs), seconds)
        for x in xs:
            x.requires_grad_(True)
        y = f(*xs).detach()
        both = best(partial(differentiate, f, y), seconds)
        for x in xs:
            x.requires_grad_(False)
        out[kind] = (forward, both)
    return out


def ours(name: str, n: int, seconds: float) -> Any:
    import tensorplay as tp

    tp.set_num_threads(1)
    args, expr = FORMULAS[name]
    sig = f"{name}({', '.join('Tensor ' + a for a in args.split())}) -> Tensor out"
    kinds = {"one op": tp.define_op(sig, expr=expr), "op by op": composition(name, tp)}
    xs = [tp.from_numpy(x) for x in operands(name, n)]
    return measure(kinds, xs, tp.autograd.grad, tp.no_grad, seconds)


def theirs(name: str, n: int, seconds: float) -> Any:
    import torch

    torch.set_num_threads(1)
    eager = composition(name, torch)
    kinds = {"torch": eager, "torch.compile": torch.compile(eager)}
    xs = [torch.from_numpy(x) for x in operands(name, n)]
    return measure(kinds, xs, torch.autograd.grad, torch.no_grad, seconds)


def moved(name: str) -> dict[str, int]:
    """Bytes an element: what one loop reads and writes, what the ops one by one do, and one loop with its backward."""
    from tensorplay.codegen.explain import steps
    from tensorplay.codegen.formula import parse

    args, expr = FORMULAS[name]
    k = len(args.split())
    return {"one op": 4 * (k + 1), "op by op": steps(parse(expr), set(args.split()))[1], "both": 4 * (3 * k + 2)}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--torch", default=sys.executable if importlib.util.find_spec("torch") else "", metavar="PYTHON")
    p.add_argument("--only", default="", help="formulas, separated by commas")
    p.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    p.add_argument("--seconds", type=float, default=0.5, help="for each time of a turn")
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--json", action="store_true")
    p.add_argument("--part", nargs=2, help=argparse.SUPPRESS)  # of PyTorch: formula, size
    a = p.parse_args()
    if a.part:
        print(json.dumps(theirs(a.part[0], int(a.part[1]), a.seconds)))
        return 0
    rows = []
    for name in a.only.split(",") if a.only else FORMULAS:
        bytes_ = moved(name)
        for n in a.sizes:
            found: dict[str, tuple[float, float]] = {}
            for _ in range(a.turns):
                got = ours(name, n, a.seconds)
                if a.torch:
                    command = [a.torch, __file__, "--seconds", str(a.seconds), "--part", name, str(n)]
                    got |= json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                for kind, times in got.items():
                    old = found.get(kind, (math.inf, math.inf))
                    found[kind] = (min(old[0], times[0]), min(old[1], times[1]))
            rows.append({"formula": name, "elements": n, "bytes": bytes_, "seconds": found})
            if not a.json:
                times = "  ".join(f"{k} {1e3 * f:.2f} / {1e3 * b:.2f}" for k, (f, b) in found.items())
                rates = [bytes_[b] * n / found["one op"][i] / 1e9 for i, b in enumerate(("one op", "both"))]
                print(f"{name:10} {n:9,}  ms forward / with backward:  {times}")
                print(f"    {bytes_}, {rates[0]:.1f} / {rates[1]:.1f} GB/s", flush=True)
    if a.json:
        print(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
