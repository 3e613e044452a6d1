"""Do the tests notice wrong C++? Random mutants of csrc/autograd and csrc/ops, or of csrc/kernels, all in one build
(schemata.py), each run against the tests that reach it until one fails.

A mutant negates a condition, drops a statement or moves a bound. A first run of the tests notes which mutants each test
reaches. A crash, a hang and boundless memory count as noticed. Sources and tests are copies, taken at the start;
outcomes go to a JSON-lines file, so that a run can be continued and its survivors looked through. The goal is 85 %.

    python tools/source_mutants.py --seed 1 --count 200 --out build/engine_mutants.jsonl
    python tools/source_mutants.py kernels --seed 1 --count 30 --out build/kernel_mutants.jsonl
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemata import KINDS, Mutant, Weaver, candidates, numbered
from variant import ROOT, Variant, mirror

GOAL = 0.85


@dataclass(frozen=True)
class Part:
    """Of the C++: its folders, and the tests that are run, in this order: most mutants fall in the first."""

    folders: tuple[str, ...]
    tests: tuple[str, ...]


PARTS = {
    "engine": Part(
        ("csrc/autograd", "csrc/ops"),
        (
            "tests/autograd", "tests/func", "tests/programs", "tests/core", "tests/ops", "generated/tests",
        ),
    ),
    "kernels": Part(("csrc/kernels",), ("generated/tests", "tests/ops", "tests/core", "tests/interop")),
}  # fmt: skip
# The C++ programs run by themselves; leaks and sums over threads are measured in seconds, and on a loaded machine.
SKIPPED = ("tests/core/test_programs.py",)
PROGRAMS = ("engine_test", "generated_nodes_test", "wiring_test")
MEMORY = 12 << 30  # a mutant that allocates for ever ends here
EACH = 60  # seconds for one test: a hang
HANG = 90  # seconds of processor time for all tests of one mutant: a loop in C++ does not hear of a test's limit
BUDGET = 40.0  # seconds of tests, as the first run measured them, for one mutant


def drawn(pool: list[Mutant], seed: int) -> list[Mutant]:
    """A random order in which the kinds alternate: there are many more bounds and conditions than statements."""
    rng = random.Random(seed)
    by_kind = {kind: [m for m in pool if m.kind == kind] for kind in KINDS}
    for some in by_kind.values():
        rng.shuffle(some)
    order = []
    while any(by_kind.values()):
        order += [some.pop() for some in by_kind.values() if some]
    return order


# ---- build -----------------------------------------------------------------------------------------------------------
class Bench:
    """A variant of the tree with the mutants in it, without the kernels of newer processors: others test those."""

    def __init__(self, name: str) -> None:
        self.part = PARTS[name]
        self.variant = Variant(f"{name}_mutants", "-DTENSORPLAY_PORTABLE=ON", "-DTENSORPLAY_CODEGEN=OFF")
        self.variant.sync()
        for name in ("generated", "tests"):
            mirror(ROOT / name, self.variant.src / name)
        self.true = self.variant.src / "build" / "true"
        for folder in self.part.folders:
            mirror(ROOT / folder, self.true / folder)
        self.weaver = Weaver(self.variant.src, self.true, self.part.folders[0])
        self.refused: Counter[str] = Counter()

    def commands(self) -> dict[str, str]:
        """How each file is compiled; other files are parts of one for several instruction sets."""
        listed = json.loads((self.variant.build_dir / "compile_commands.json").read_text())
        return {c["file"]: c["command"] for c in listed}

    def candidates(self) -> list[Mutant]:
        compiled = self.commands()
        return [m for m in candidates(self.true, self.part.folders) if str(self.variant.src / m.path) in compiled]

    def flags(self, path: Path) -> list[str]:
        """The command that compiles a file, without its output."""
        command = self.commands()[str(self.variant.src / path)].split()
        start = next(i for i, word in enumerate(command) if re.search(r"(\+\+|gcc|clang)[-\d.]*$", word))
        return [word for word in command[start : command.index("-o")] if word not in ("-Wall", "-Wextra")]

    def weave(self, mutants: list[Mutant]) -> list[Mutant]:
        """Those of the mutants that compile; the tree holds them afterwards."""
        kept: list[Mutant] = []
        for path in sorted({m.path for m in mutants}):
            some = [m for m in mutants if m.path == path]
            while some:
                placed, refused = self.weaver.write(path, some)
                self.refused["not woven"] += len(refused)
                some = [m for m in some if m not in refused]
                command = [*self.flags(path), "-fsyntax-only", "-w", str(self.variant.src / path)]
                run = subprocess.run(command, cwd=self.variant.build_dir, capture_output=True, text=True)
                if run.returncode == 0:
                    break
                lines = {int(n) - 1 for n in re.findall(rf"{re.escape(path.name)}:(\d+):\d+: error", run.stderr)}
                bad = [m for line in lines for m in placed.get(line, [])]
                if not bad:
                    raise SystemExit(f"source_mutants: {path} does not compile:\n{run.stderr[:2000]}")
                self.refused["does not compile"] += len(bad)
                some = [m for m in some if m not in bad]
            if not some:
                self.weaver.write(path, [])  # the last text tried did not compile
            kept += some
        self.woven = kept
        # As they were drawn, so that a run that is stopped has a fair sample.
        return sorted(kept, key=lambda m: m.number)

    def build(self) -> None:
        self.weaver.define(max(m.number for m in self.woven) + 1)
        self.variant.configure()  # there is a file more
        self.variant.build()
        self.programs = [self.compile(name) for name in PROGRAMS]

    def compile(self, name: str) -> Path:
        package = self.variant.site / "tensorplay"
        program = self.variant.build_dir / name
        include = [f"-I{self.variant.src / name}" for name in ("csrc", "generated/cpp", "generated/cpp/tests")]
        link = [f"-L{package / 'lib'}", "-ltensorplay", "-pthread", f"-Wl,-rpath,{package / 'lib'}"]
        link.append(f"-Wl,-rpath-link,{package / 'lib'}")
        if name == "generated_nodes_test":  # the library does not export what it walks: linked as the library is
            link.remove("-ltensorplay")
            for part in ("tensorplay", "kernels_baseline", "kernels_avx2", "kernels_avx512"):
                link += map(str, sorted(self.variant.build_dir.glob(f"CMakeFiles/{part}.dir/**/*.o")))
            link += [str(p) for p in (package / "lib").glob("libscipy_openblas.*")] + ["-ldl"]
        headers = self.variant.build_dir / "headers"
        headers.mkdir(exist_ok=True)
        ops = sorted(p.name for p in (self.variant.src / "generated/cpp/ops").glob("*.h"))
        (headers / "all_ops.h").write_text("".join(f'#include "ops/{h}"\n' for h in ops), encoding="utf-8")
        compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
        source = self.variant.src / "tests" / "core" / f"{name}.cpp"
        command = [compiler, "-std=c++20", "-O1", f"-I{headers}", str(source), "-o", str(program), *include, *link]
        subprocess.run(command, check=True)
        return program

    # ---- run ---------------------------------------------------------------------------------------------------------
    def limited(self, command: list[str], seconds: float, **variables: str) -> int | None:
        """The exit code of the command in bounded processor time and memory; None where it took too long."""
        environment = self.variant.environment() | {"PYTHONPATH": str(self.variant.site)} | variables

        def limits() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))

        process = subprocess.Popen(
            command, env=environment, cwd=self.variant.build_dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=limits, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(timeout=5 * seconds)  # a deadlock, not a machine that others use too
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None

    def pytest(self, *arguments: str) -> list[str]:
        src = self.variant.src
        command = [sys.executable, "-P", "-m", "pytest", "-c", str(src / "pyproject.toml"), "--rootdir", str(src)]
        return [*command, "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", f"--timeout={EACH}", *arguments]

    def reach(self, mutants: list[Mutant], jobs: int) -> dict[str, dict[str, Any]]:
        """What each test and program reaches, and how long it takes; only those that pass. Kept for another run with
        the same mutants, by the text of each file of tests."""
        out = self.variant.build_dir / "reached"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        found: dict[str, dict[str, Any]] = {}
        for program in self.programs:
            start = time.monotonic()
            if self.limited([str(program)], 300, TP_MUTANT_TRACE=str(out / program.name)) != 0:
                raise SystemExit(f"source_mutants: {program.name} fails without a mutant")
            hits = [int(k) for k in (out / program.name).read_text().split()]
            found[str(program)] = {"seconds": time.monotonic() - start, "hits": hits, "program": True}

        src = self.variant.src
        kept = self.variant.build_dir / "reached.json"
        names = [f"{m.number} {m}" for m in mutants]
        known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
        if known.get("mutants") != names:
            known = {"mutants": names, "files": {}}
        texts = {
            path.relative_to(src).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for t in self.part.tests
            for path in ([src / t] if (src / t).is_file() else sorted((src / t).rglob("test_*.py")))
            if path.relative_to(src).as_posix() not in SKIPPED
        }
        new = [n for n, text in texts.items() if known["files"].get(n, {}).get("text") != text]
        if new:
            plugin = {"PYTHONPATH": f"{self.variant.site}:{ROOT / 'tools'}", "TP_REACHED": str(out)}
            self.limited(self.pytest("-p", "reached", "-n", str(jobs), *(str(src / n) for n in new)), 3600, **plugin)
            for name in new:
                known["files"][name] = {"text": texts[name], "tests": []}
            for file in out.glob("*.jsonl"):
                for line in file.read_text().splitlines():
                    record = json.loads(line)
                    known["files"][record["test"].split("::")[0]]["tests"].append(record)
            kept.write_text(json.dumps(known))
        for name in texts:
            for record in known["files"][name]["tests"]:
                if record["passed"]:
                    found[record["test"]] = record
                else:
                    print(f"left out, since it fails without a mutant: {record['test']}")
        return found

    def outcome(self, mutant: Mutant, reached: dict[str, dict[str, Any]]) -> str:
        """What noticed the mutant, or nothing."""
        chosen = {"TP_MUTANT": str(mutant.number)}
        tests = [(name, r) for name, r in reached.items() if mutant.number in r["hits"]]
        for name, r in tests:
            if r.get("program") and self.limited([name], EACH, **chosen) != 0:
                return Path(name).name
        places = {t: i for i, t in enumerate(self.part.tests)}
        ranked = sorted(
            (next((i for t, i in places.items() if name.startswith(t)), len(places)), r["seconds"], name)
            for name, r in tests
            if not r.get("program")
        )
        spent = 0.0
        names: list[str] = []
        for _, seconds, name in ranked:
            spent += seconds
            if spent > BUDGET and names:
                break
            names.append(name)
        # Few first: a process that starts with hundreds of tests collects for seconds.
        for part in (names[:40], names[40:]):
            if not part:
                continue
            listed = self.variant.build_dir / f"tests_{mutant.number}.txt"
            listed.write_text("".join(f"{self.variant.src / name}\n" for name in part), encoding="utf-8")
            code = self.limited(self.pytest("-x", f"@{listed}"), HANG, **chosen)
            listed.unlink()
            if code == 4 or code == 5:
                raise SystemExit(f"source_mutants: pytest could not collect {part[:3]}...")
            if code != 0:
                return f"{part[0].split('::')[0]} and {len(part) - 1} more" if len(part) > 1 else part[0]
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=list(PARTS), default="engine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="default: build/PART_mutants.jsonl")
    parser.add_argument("--again", action="store_true", help="run the survivors of --out again, with the tests of now")
    options = parser.parse_args()
    options.out = options.out or ROOT / "build" / f"{options.part}_mutants.jsonl"

    records = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {r["mutant"]: r["killed_by"] for r in records}
    bench = Bench(options.part)
    bench.variant.configure()
    pool = drawn(bench.candidates(), options.seed)
    if options.again:
        pool = [m for m in pool if known.get(str(m)) == ""]
    # Some will not compile.
    mutants = bench.weave(numbered(pool[: options.count * 5 // 4]))[: options.count]
    bench.build()
    print(f"{len(mutants)} mutants in one build; refused: {dict(bench.refused)}", flush=True)
    reached = bench.reach(mutants, options.jobs)
    print(f"{len(reached)} tests and programs reach them", flush=True)

    def run(mutant: Mutant) -> None:
        start = time.monotonic()
        killed = bench.outcome(mutant, reached)
        known[str(mutant)] = killed
        record = {"mutant": str(mutant), "killed_by": killed, "seconds": round(time.monotonic() - start)}
        record["reached_by"] = sum(mutant.number in r["hits"] for r in reached.values())
        with options.out.open("a") as f:
            f.write(json.dumps(record) + "\n")
        print(f"noticed by {killed}:" if killed else f"SURVIVED ({record['reached_by']} tests):", mutant, flush=True)

    todo = [m for m in mutants if options.again or str(m) not in known]
    with ThreadPoolExecutor(options.jobs) as workers:
        list(workers.map(run, todo))

    survivors = sorted(name for name, killed in known.items() if killed == "")
    share = 1 - len(survivors) / len(known) if known else 0.0
    print(f"{options.part}: {len(known) - len(survivors)} of {len(known)} noticed ({100 * share:.1f} %)")
    for name in survivors:
        print(f"  survived: {name}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
