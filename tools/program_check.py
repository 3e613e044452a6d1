"""Random programs of differentiable ops, views, in-place ops, hooks, no_grad regions and Functions: are their
gradients, tangents and second derivatives what differences say, and what PyTorch says?

    python tools/program_check.py --seed 1 --programs 20000 --torch /path/to/python-with-torch

Prints how many programs agree, how often each op took part, and every disagreement as a small program.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tensorplay.testing.programs import compare
from tensorplay.testing.programs.draw import Drawer, differentiable

ROOT = Path(__file__).resolve().parent.parent
LEAST = 20  # programs an op takes part in
# Where PyTorch 2.13 is wrong: its gradient of as_strided_scatter's input keeps what was overwritten, drops the rest.
# Its gradients of cholesky_inverse and cholesky_solve reach the triangle that the ops don't read. And where it means
# something else: its ctc_loss outside nn.functional does not reduce; the power 0 of a matrix and the copied matrix of
# triangular_solve require grad there, whatever they depend on.
WRONG_THERE = (
    "as_strided_scatter", "cholesky_inverse", "cholesky_solve", "ctc_loss", "matrix_power", "triangular_solve",
)  # fmt: skip


def rows() -> list[Any]:
    """The ops of the generated tests."""
    found = []
    for path in sorted((ROOT / "generated" / "tests").glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"rows_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.OPS
    return found


class Report:
    def __init__(self, keep: Path | None) -> None:
        self.statuses: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.theirs: Counter[str] = Counter()
        self.absent: Counter[str] = Counter()
        self.bad = 0
        self.keep = keep

    def disagreement(self, number: int, what: str, program: dict[str, Any]) -> None:
        self.bad += 1
        print(f"--- program {number}: {what[:600]}\n{compare.listing(program)}\n", flush=True)
        if self.keep:
            with self.keep.open("a") as f:
                f.write(json.dumps({"number": number, "what": what, "program": program}) + "\n")


def against_torch(report: Report, torch: compare.Other, number: int, program: Any, verdict: compare.Verdict) -> None:
    theirs = torch.ask(program)
    error = theirs["error"]
    if verdict.status == "refused" or error:
        refused = any(t in error for t in compare.REFUSED)
        if verdict.status == "refused" and not error:
            report.theirs["only ours refuses"] += 1
            report.disagreement(number, f"only ours refuses: {verdict.what}", program)
        elif refused and verdict.status != "refused":
            report.theirs["only theirs refuses"] += 1
            report.absent[f"refuses: {error[:160]}"] += 1
        elif refused:
            report.theirs["both refuse"] += 1
        else:
            report.theirs["can't run"] += 1
            report.absent[error[:160]] += 1
        return
    what = compare.differences(verdict.outcome, theirs)
    report.theirs["disagrees" if what else "agrees"] += 1
    if what:

        def still(candidate: Any) -> bool:
            mine = compare.outcome(compare.tp, candidate)
            other = torch.ask(candidate)
            return not mine.error and not other["error"] and bool(compare.differences(mine, other))

        report.disagreement(number, f"torch: {what}", compare.minimise(program, still))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--torch", default="", help="an interpreter that has torch")
    parser.add_argument("--keep", type=Path, help="a file for the disagreements, as JSON lines")
    options = parser.parse_args()

    ops = differentiable(rows())
    counts: Counter[str] = Counter()
    report = Report(options.keep)
    torch = compare.Other(options.torch, "torch") if options.torch else None
    start = time.monotonic()
    for number in range(options.programs):
        seed = options.seed * 1_000_003 + number
        rng = np.random.default_rng(seed)
        # Every other program keeps to public ops, so that the other library can run it.
        public = [op for op in ops if op.home != "internal"] if number % 2 else ops
        program = Drawer(public, rng, counts).program()
        orders = ("tangent", "second") if number % 5 == 0 else ("tangent",)
        verdict = compare.check(program, seed, orders)
        report.statuses[verdict.status] += 1
        if verdict.status == "refused":
            report.refusals[verdict.what[:90]] += 1
        if verdict.status in ("wrong", "raised"):

            def still(candidate: Any, first: Any = verdict, seed: int = seed, orders: Any = orders) -> bool:
                now = compare.check(candidate, seed, orders)
                return now.status == first.status and (first.status != "raised" or now.what[:60] == first.what[:60])

            report.disagreement(number, f"{verdict.status}: {verdict.what}", compare.minimise(program, still))
        elif torch and not program["ours"] and not any(s.get("op") in WRONG_THERE for s in program["steps"]):
            against_torch(report, torch, number, program, verdict)
        if (number + 1) % 500 == 0:
            print(f"{number + 1} programs, {time.monotonic() - start:.0f} s: {dict(report.statuses)}", flush=True)
    if torch:
        torch.close()

    print(f"programs: {options.programs}, seed {options.seed}: {dict(report.statuses)}")
    if options.torch:
        print(f"torch: {dict(report.theirs)}")
        for text, count in report.absent.most_common(25):
            print(f"  {count} x {text}")
    for text, count in report.refusals.most_common(10):
        print(f"refused: {count} x {text}")
    print("ops: " + ", ".join(f"{name} {counts[name]}" for name in sorted(counts)))
    rare = sorted(op.name for op in ops if counts[op.name] < LEAST)
    print(f"in at least {LEAST} programs: {len(ops) - len(rare)} of {len(ops)} ops; fewer: {', '.join(rare) or 'none'}")
    print(f"disagreements: {report.bad}")
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
