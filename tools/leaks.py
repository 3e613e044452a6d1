"""Does memory stay flat? Many rounds of each way to drop a graph, and of each op forward, and forward and backward.

    python tools/leaks.py --rounds 10000 --ops 100000

Prints what each left: data blocks, Python's memory blocks, resident memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorplay as tp
from program_check import rows
from tensorplay.testing.derivatives import Probe, differentiable
from tensorplay.testing.leaks import WAYS, measure


def forward(p: Probe) -> Callable[[], object]:
    xs = p.leaves(p.start)
    return lambda: p.outputs(xs)


def both(p: Probe) -> Callable[[], object]:
    xs = p.leaves(p.start)
    seeds = [tp.ones_like(o) for o in p.outputs(xs)]

    def run() -> None:
        out = p.outputs(xs)
        pairs = [(o, s) for o, s in zip(out, seeds, strict=True) if o.requires_grad]
        if pairs:
            tp.autograd.grad([o for o, _ in pairs], xs, [s for _, s in pairs], allow_unused=True)

    return run


def report(name: str, f: Callable[[], object], rounds: int, warm: int) -> bool:
    start = time.process_time()
    left = measure(f, rounds, warm)
    for _ in range(3):  # the interpreter's own lists grow now and then, a leak grows every time
        if not left.flat(rounds):
            left = measure(f, rounds, 0)
    each = (time.process_time() - start) / (rounds + warm) * 1e6
    flat = left.flat(rounds)
    note = "" if flat else "   <- grows"
    print(
        f"{name:52} {rounds} rounds, {each:7.1f} us each: blocks {left.blocks:+d}, objects {left.objects:+d}, "
        f"resident {left.resident / 1024:+.0f} kB{note}",
        flush=True,
    )
    return flat


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10_000, help="of each way to drop a graph; 0: none")
    parser.add_argument("--ops", type=int, default=0, help="passes of each op; 0: none")
    parser.add_argument("--only", default="", help="names that contain this")
    options = parser.parse_args()
    bad: list[str] = []
    count = 0
    for name, f in WAYS.items() if options.rounds else ():
        if options.only in name:
            count += 1
            if not report(name, f, options.rounds, 300):
                bad.append(name)
    for op in rows() if options.ops else ():
        samples: list[Any] = list(differentiable(op))[:1] if op.cases or op.elementwise else []
        if options.only not in op.name or not samples:
            continue
        p = Probe(op, samples[0], np.random.default_rng(1))
        for what, make in (("forward", forward), ("forward and backward", both)):
            count += 1
            if not report(f"{op.name}, {what}", make(p), options.ops, 300):
                bad.append(f"{op.name}, {what}")
    print(f"flat: {count - len(bad)} of {count}; growing: {', '.join(bad) or 'none'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
