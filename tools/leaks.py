"""Does memory stay flat? Many rounds of each way to drop a graph, and of each op forward, and forward and backward.

    python tools/leaks.py --rounds 10000 --ops 100000

Prints what each left: data blocks, Python's memory blocks, resident memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

import tensorplay as tp
from program_check import rows
from tensorplay.testing.inputs import Sample, samples
from tensorplay.testing.leaks import WAYS, measure
from tensorplay.testing.rows import Op, arguments, results, tensor


def passes(op: Op, s: Sample) -> Iterator[tuple[str, Callable[[], object]]]:
    """A call of the op alone, and one with its gradients, with as little around them as can be."""
    given = {k: tensor(v) for k, v in s.given.items()}
    positional, named = arguments(s, given)
    f = op.function
    yield "forward", lambda: f(*positional, **named)

    xs = [t for k, v in given.items() for t in (v if isinstance(v, list) else [v]) if k in s.form.diff]
    xs = [t for t in xs if isinstance(t, tp.Tensor) and (t.is_floating_point() or t.is_complex())]
    for x in xs:
        x.requires_grad_()
    outs = [o for o in results(f(*positional, **named)) if isinstance(o, tp.Tensor)]
    chosen = [i for i, o in enumerate(outs) if o.requires_grad]
    seeds = [tp.ones_like(outs[i]) for i in chosen]

    def both() -> None:
        outs = [o for o in results(f(*positional, **named)) if isinstance(o, tp.Tensor)]
        tp.autograd.grad([outs[i] for i in chosen], xs, seeds, allow_unused=True)

    if chosen:
        yield "forward and backward", both


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
        sample = next(samples(op, limit=1), None) if options.only in op.name else None
        if sample is None:
            continue
        for what, f in passes(op, sample):
            count += 1
            if not report(f"{op.name}, {what}", f, options.ops, 300):
                bad.append(f"{op.name}, {what}")
    print(f"flat: {count - len(bad)} of {count}; growing: {', '.join(bad) or 'none'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
