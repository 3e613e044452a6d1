"""Do the tests notice wrong maths? A build in which every formula carries one mutation (`codegen mutate`), and the
tests of the true entries on it: which ops' own tests still pass?

Survivors are named; the goal is 98 %. Wrong hand-written C++ is the part of source_mutants.py.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

from variant import ROOT, Variant

GOAL = 0.98
PYTEST = ("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-q", "--no-header", "--tb=no")
GENERATED = str(ROOT / "generated" / "tests")


def outcomes(report: Path) -> dict[str, bool]:
    """Test id -> passed, of a junit report; skipped tests say nothing."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            passed = case.find("failure") is None and case.find("error") is None
            found[f"{case.get('classname')}::{case.get('name')}"] = passed
    return found


def op_of(test: str, ops: set[str]) -> str | None:
    """The op a generated test is about: its parameters begin with the op's name."""
    inside = re.search(r"\[([^\]]*)\]?$", test)
    candidates = inside.group(1).split("-")[:1] if inside else []
    return next((name for name in candidates if name in ops), None)


def formulas(variant: Variant, seed: int, jobs: int) -> tuple[int, list[str]]:
    """Number of mutated ops, and those whose tests all passed."""
    mutated = variant.codegen(
        "mutate", "--seed", str(seed), "--out", str(variant.src / "generated"), "--json", capture=True
    )
    if mutated.returncode:
        raise SystemExit(mutated.stdout + mutated.stderr)
    mutations: dict[str, str] = json.loads(mutated.stdout)
    variant.build()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # A wrong formula may crash its process: pytest gives up after a few of these, which would leave ops unasked.
        variant.run(*PYTEST, "-n", str(jobs), "--max-worker-restart=9999", f"--junitxml={report}", GENERATED)
        passed = outcomes(report)
    by_op: dict[str, list[bool]] = defaultdict(list)
    for test, good in passed.items():
        op = op_of(test, set(mutations))
        if op is not None:
            by_op[op].append(good)
    survivors = [
        f"{op}: {mutations[op]}" + ("" if by_op[op] else " (no test of it ran)")
        for op in sorted(mutations)
        if all(by_op[op])
    ]
    return len(mutations), survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    # One instruction set: what the formulas say does not depend on it, and each build costs a third.
    variant = Variant("mutants", "-DTENSORPLAY_PORTABLE=ON")
    variant.sync()
    total, survivors = formulas(variant, options.seed, options.jobs)
    share = 1 - len(survivors) / total if total else 0.0
    print(f"formulas: {total - len(survivors)} of {total} noticed ({100 * share:.1f} %)")
    for name in survivors:
        print(f"  survived: {name}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
