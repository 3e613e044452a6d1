"""vmap over many small samples beside the op on the stacked array: forward and backward, every op that has a test case.

`python benchmarks/batching.py [--rows 10000] [--ops name ...]` prints the ratio of each op, the worst last.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorplay as tp
from tensorplay import _C


def best(f: Callable[[], Any], seconds: float = 0.05) -> float:
    """The shortest of several runs."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return min(times)


def mapped(f: Callable[..., Any], xs: list[Any], rows: int) -> Any:
    level = _C._vmap_enter(rows, "error")
    try:
        out = f(*(_C._add_batch_dim(x, 0, level) for x in xs))
        return _C._remove_batch_dim(out, level, rows, 0)
    finally:
        _C._vmap_exit(level)


def time_of(f: Callable[..., Any], xs: list[Any], grad: bool = False) -> float:
    """Seconds of f on xs, or of f and the gradients of all xs."""
    if not grad:
        with tp.no_grad():
            return best(lambda: f(*xs))
    seed = tp.ones_like(f(*xs).detach())
    return best(lambda: tp.autograd.grad(f(*xs), xs, seed))


def functions() -> dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]]:
    """name -> (op of one sample, op of all samples at once, sizes of a sample of each operand)."""
    F = tp.nn.functional
    idx = tp.tensor([0, 3, 1, 2, 7, 6, 5, 4])
    row = (8,)
    m = (2, 4)
    one: dict[str, Any] = {
        name: (getattr(tp, name), getattr(tp, name), (row,))
        for name in ["exp", "sin", "tanh", "sigmoid", "abs", "square", "sqrt", "neg", "log1p", "erf"]
    }
    one |= {
        name: (getattr(tp, name), getattr(tp, name), (row, row))
        for name in ["add", "mul", "div", "maximum", "atan2", "pow"]
    }
    one["where"] = (lambda a, b: tp.where(a > b, a, b), lambda a, b: tp.where(a > b, a, b), (row, row))
    for name in ["sum", "mean", "prod", "amax", "logsumexp", "var", "std"]:
        f = getattr(tp, name)
        one[name] = (lambda x, f=f: f(x, 0), lambda x, f=f: f(x, -1), (row,))
    for name in ["cumsum", "cumprod", "logcumsumexp"]:
        f = getattr(tp, name)
        one[name] = (lambda x, f=f: f(x, 0), lambda x, f=f: f(x, -1), (row,))
    one |= {
        "softmax": (lambda x: F.softmax(x, 0), lambda x: F.softmax(x, -1), (row,)),
        "log_softmax": (lambda x: F.log_softmax(x, 0), lambda x: F.log_softmax(x, -1), (row,)),
        "sort": (lambda x: tp.sort(x, 0)[0], lambda x: tp.sort(x, -1)[0], (row,)),
        "topk": (lambda x: tp.topk(x, 3, 0)[0], lambda x: tp.topk(x, 3, -1)[0], (row,)),
        "reshape": (lambda x: x.reshape(4, 2), lambda x: x.reshape(-1, 4, 2), (row,)),
        "transpose": (lambda x: x.transpose(0, 1), lambda x: x.transpose(1, 2), (m,)),
        "flip": (lambda x: tp.flip(x, (0,)), lambda x: tp.flip(x, (1,)), (row,)),
        "roll": (lambda x: tp.roll(x, (1,), (0,)), lambda x: tp.roll(x, (1,), (1,)), (row,)),
        "cat": (lambda a, b: tp.cat([a, b]), lambda a, b: tp.cat([a, b], 1), (row, row)),
        "stack": (lambda a, b: tp.stack([a, b]), lambda a, b: tp.stack([a, b], 1), (row, row)),
        "index_select": (lambda x: tp.index_select(x, 0, idx), lambda x: tp.index_select(x, 1, idx), (row,)),
        "getitem": (lambda x: x[idx], lambda x: x[:, idx], (row,)),
        "slice": (lambda x: x[1:7], lambda x: x[:, 1:7], (row,)),
        "dot": (tp.dot, lambda a, b: (a * b).sum(-1), (row, row)),
        "mv": (tp.mv, lambda a, b: (a @ b[..., None])[..., 0], (m, (4,))),
        "mm": (tp.mm, tp.matmul, (m, (4, 2))),
        "det": (tp.linalg.det, tp.linalg.det, ((3, 3),)),
        "inv": (tp.linalg.inv, tp.linalg.inv, ((3, 3),)),
        "layer_norm": (lambda x: F.layer_norm(x, (8,)), lambda x: F.layer_norm(x, (8,)), (row,)),
        "mse_loss": (F.mse_loss, lambda a, b: ((a - b) ** 2).mean(-1), (row, row)),
        "gelu": (F.gelu, F.gelu, (row,)),
        "max_pool1d": (lambda x: F.max_pool1d(x, 2), lambda x: F.max_pool1d(x, 2), ((1, 8),)),
    }
    return one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--ops", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    found = []
    for name, (sample, whole, shapes) in functions().items():
        if args.ops and name not in args.ops:
            continue
        xs = [tp.tensor(rng.uniform(0.2, 1.0, (args.rows, *s)).astype(np.float32)).requires_grad_() for s in shapes]
        if name in ("det", "inv"):
            xs = [(x.detach() + 3 * tp.eye(3)).requires_grad_() for x in xs]

        def through_vmap(*ys: Any, f: Callable[..., Any] = sample) -> Any:
            return mapped(f, list(ys), args.rows)

        forward = time_of(through_vmap, xs) / time_of(whole, xs)
        backward = time_of(through_vmap, xs, grad=True) / time_of(whole, xs, grad=True)
        found.append((max(forward, backward), name, forward, backward))
    for _, name, forward, backward in sorted(found):
        print(f"{name:<16} forward {forward:6.2f}x   forward and backward {backward:6.2f}x")
    if found:
        worst = max(found)
        print(f"{len(found)} ops, {args.rows} rows; worst {worst[1]}: {worst[0]:.2f}x")


if __name__ == "__main__":
    main()
