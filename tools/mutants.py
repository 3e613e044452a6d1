"""Do the tests notice wrong maths? Builds the library with mutations and counts the ops whose own tests still pass.

Part one is a single build in which every formula carries one mutation (`codegen mutate`); the tests of the true entries
run on it. Part two mutates one line of a hand-written kernel at a time. Survivors are named; the goal is 98 %.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from variant import ROOT, Variant

GOAL = 0.98
PYTEST = ("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-q", "--no-header", "--tb=no")
GENERATED = str(ROOT / "generated" / "tests")
HAND_WRITTEN = str(ROOT / "tests")

# One mutation of C++ a line: what to look for and what to write instead. The spaces keep to binary operators.
SWAPS = [
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " + "),
    (" < ", " <= "),
    (" > ", " >= "),
    (" == ", " != "),
    (" && ", " || "),
    ("min(", "max("),
    ("max(", "min("),
]


@dataclass(frozen=True)
class Mutant:
    path: Path
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line + 1}: {self.before.strip()}  ->  {self.after.strip()}"


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
        variant.run(*PYTEST, "-n", str(jobs), f"--junitxml={report}", GENERATED)
        passed = outcomes(report)
    by_op: dict[str, list[bool]] = defaultdict(list)
    for test, good in passed.items():
        op = op_of(test, set(mutations))
        if op is not None:
            by_op[op].append(good)
    survivors = [f"{op}: {mutations[op]}" for op in sorted(mutations) if all(by_op[op])]
    return len(mutations), survivors


def candidates(top: Path) -> list[Mutant]:
    found = []
    for path in sorted(top.rglob("*.cpp")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            if line.lstrip().startswith(("//", "#", "*", "template", "static_assert")):
                continue
            code = line.split("//")[0]
            found += [
                Mutant(path, number, line, line.replace(old, new, 1)) for old, new in SWAPS if code.count(old) == 1
            ]
    return found


def apply(mutant: Mutant, text: str) -> str:
    lines = text.splitlines(keepends=True)
    lines[mutant.line] = lines[mutant.line].replace(mutant.before, mutant.after)
    return "".join(lines)


def kernels(variant: Variant, seed: int, count: int, jobs: int) -> tuple[int, list[str]]:
    """Builds `count` mutants of csrc/kernels one by one; those that no test notices survive."""
    rng = random.Random(seed)
    pool = candidates(variant.src / "csrc" / "kernels")
    rng.shuffle(pool)
    tried, survivors = 0, []
    for mutant in pool:
        if tried == count:
            break
        true = mutant.path.read_text(encoding="utf-8")
        mutant.path.write_text(apply(mutant, true), encoding="utf-8")
        try:
            variant.build()
            # A mutant may loop for ever or crash; both are noticed.
            tests = variant.run(*PYTEST, "-x", "-n", str(jobs), "--timeout=60", GENERATED, HAND_WRITTEN)
            killed = tests.returncode != 0
        except subprocess.CalledProcessError:
            continue  # does not compile: no mutant
        finally:
            mutant.path.write_text(true, encoding="utf-8")
        tried += 1
        print(f"{'killed  ' if killed else 'SURVIVED'} {mutant}", flush=True)
        if not killed:
            survivors.append(str(mutant))
    return tried, survivors


def summary(what: str, total: int, survivors: list[str]) -> bool:
    share = 1 - len(survivors) / total if total else 0.0
    print(f"{what}: {total - len(survivors)} of {total} noticed ({100 * share:.1f} %)")
    for name in survivors:
        print(f"  survived: {name}")
    return share >= GOAL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernels", type=int, default=30, help="how many kernel mutants; each is a build")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    # One instruction set: what the formulas say does not depend on it, and each build costs a third.
    variant = Variant("mutants", "-DTENSORPLAY_PORTABLE=ON")
    variant.sync()
    good = summary("formulas", *formulas(variant, options.seed, options.jobs))
    if variant.generate().returncode:
        raise SystemExit("mutants: the true entries do not generate")
    variant.build()
    summary("kernels", *kernels(variant, options.seed, options.kernels, options.jobs))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
