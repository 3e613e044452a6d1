"""Threads that build graphs over shared leaves and run them backward: are the sums exact, and does nothing crash?

    python tools/thread_check.py --threads 8 --seconds 60

Every gradient is a whole number, so that sums do not depend on their order. Small leaves go through the fast path; the
large ones are long enough for kernels to let other threads run. Also made for ThreadSanitizer.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from typing import Any

import tensorplay as tp


class Thrice(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        assert ctx.saved_tensors[0].shape == g.shape
        return g * 3


class Work:
    """One round of each thread, and the gradient it adds to every element of each leaf."""

    def __init__(self, large: int) -> None:
        self.small = tp.ones(8, dtype=tp.float64, requires_grad=True)
        self.large = tp.ones(large, dtype=tp.float64, requires_grad=True)
        self.matrix = tp.ones(16, 16, dtype=tp.float64, requires_grad=True)
        self.hooked = 0
        self.lock = threading.Lock()
        self.small.register_hook(self.count)

    def count(self, g: Any) -> None:
        with self.lock:
            self.hooked += 1

    def round(self, number: int) -> None:
        s, x, m = self.small, self.large, self.matrix
        (s * 2 + Thrice.apply(s)).sum().backward()  # 5
        (x * 2).sum().backward()  # 2
        y = (m @ m.detach()).sum()  # 16
        y.backward(retain_graph=True)
        y.backward()
        # What belongs to this thread alone, freed in the middle of everything.
        z = s.detach().requires_grad_()
        w = z
        for _ in range(50):
            w = w * 1.0
        (g,) = tp.autograd.grad(w.sum(), z)
        assert g.tolist() == [1.0] * 8
        with tp.no_grad():
            assert not (s * 2).requires_grad
        if number % 8 == 0:
            (h,) = tp.autograd.grad((z * z).sum(), z, create_graph=True)
            tp.autograd.grad(h.sum(), z)
            with tp.autograd.forward_ad.dual_level():
                d = tp.autograd.forward_ad.make_dual(s.detach(), s.detach())
                assert tp.autograd.forward_ad.unpack_dual(d * d).tangent.tolist() == [2.0] * 8

    def faults(self, rounds: int) -> list[str]:
        wanted = (("small", self.small, 5.0), ("large", self.large, 2.0), ("matrix", self.matrix, 32.0))
        found = [
            f"{name}: gradients from {float(t.grad.min())} to {float(t.grad.max())}, expected {each * rounds}"
            for name, t, each in wanted
            if float(t.grad.min()) != each * rounds or float(t.grad.max()) != each * rounds
        ]
        if self.hooked != rounds:
            found.append(f"hooks: {self.hooked} calls, expected {rounds}")
        return found


def run(threads: int, seconds: float, large: int) -> tuple[int, list[str]]:
    """Rounds done by all threads together, and what was wrong."""
    work = Work(large)
    done = [0] * threads
    faults: list[str] = []
    end = time.monotonic() + seconds

    def loop(k: int) -> None:
        try:
            while time.monotonic() < end or not done[k]:
                work.round(done[k])
                done[k] += 1
        except Exception as fault:
            faults.append(f"thread {k}, round {done[k]}: {type(fault).__name__}: {fault}")

    workers = [threading.Thread(target=loop, args=(k,)) for k in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return sum(done), faults or work.faults(sum(done))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--large", type=int, default=400_000, help="elements of the large leaf")
    options = parser.parse_args()
    rounds, faults = run(options.threads, options.seconds, options.large)
    said = "; ".join(faults) or "sums exact"
    print(f"{options.threads} threads, {options.seconds:.0f} s: {rounds} rounds; {said}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
