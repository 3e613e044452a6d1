"""Do the tests notice a wrong engine? Changes one statement of csrc/autograd or csrc/ops at a time, builds, and runs
the quick tests until one fails.

A mutant negates a condition, drops a statement or moves a bound. Each is one compiled file and one link; the C++ test
programs are compiled once, since they find the library when they run. Sources and tests are copies, taken at the start.
Outcomes go to a JSON-lines file, so that a run can be continued and its survivors looked through. The goal is 85 %.

    python tools/engine_mutants.py --seed 1 --count 200 --out build/engine_mutants.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from variant import ROOT, Variant, mirror

GOAL = 0.85
NO_CODE = ("//", "#", "template", "static_assert", "namespace", "using", "class ", "struct ")
FOLDERS = ("csrc/autograd", "csrc/ops")
# Tests of the engine first: most mutants fall within a second or two.
QUICK = (
    "tests/autograd", "tests/programs", "tests/ops/test_view.py", "tests/ops/test_index.py",
    "tests/ops/test_autocast.py", "tests/core", "generated/tests/test_view.py", "generated/tests/test_binary.py",
    "generated/tests/test_index.py", "generated/tests/test_nn_1.py",
)  # fmt: skip
PROGRAMS = ("engine_test", "generated_nodes_test", "wiring_test")
MEMORY = 12 << 30  # a mutant that allocates for ever ends here


@dataclass(frozen=True)
class Mutant:
    path: Path  # below the tree
    line: int
    kind: str
    before: str
    after: str

    def __str__(self) -> str:
        after = self.after.strip() or "(dropped)"
        return f"{self.path}:{self.line + 1}: {self.kind}: {self.before.strip()}  ->  {after}"


# ---- what to change --------------------------------------------------------------------------------------------------
def closing(text: str, start: int) -> int:
    """Where the parenthesis opened at `start` closes; -1 where it does not on this line."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return -1


def negated(code: str) -> Iterator[str]:
    for found in re.finditer(r"\b(?:if|while) \(", code):
        start = found.end() - 1
        end = closing(code, start)
        condition = code[start + 1 : end] if end > 0 else ""
        # A declaration in a condition, and `if constexpr`, stay.
        if condition and not re.search(r"[^=!<>]=[^=]|;", condition):
            yield f"{code[: start + 1]}!({condition}){code[end:]}"
    for found in re.finditer(r"(?<![=<>!&|]) (&&|\|\|) ", code):
        if "template" not in code and "&& " not in code[: found.start()].rstrip()[-1:]:
            yield code[: found.start()] + (" || " if found.group(1) == "&&" else " && ") + code[found.end() :]


def dropped(code: str) -> Iterator[str]:
    text = code.strip()
    call = re.fullmatch(r"(?:\+\+|--)?[A-Za-z_][\w.\->:\[\]()*]*(?:\(.*\)|\s*[-+|&]?=\s.*|\+\+|--);", text)
    if call and not text.startswith(("return", "using", "static", "constexpr", "const ", "throw", "delete", "friend")):
        yield code[: len(code) - len(code.lstrip())] + ";"


def moved(code: str) -> Iterator[str]:
    swaps = (
        (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
        (r" != ", " == "), (r" \+ 1\b", " + 0"), (r" - 1\b", " - 0"), (r" = 0;", " = 1;"),
    )  # fmt: skip
    for pattern, to in swaps:
        for found in re.finditer(pattern, code):
            yield code[: found.start()] + to + code[found.end() :]


KINDS = {"condition": negated, "statement": dropped, "bound": moved}


def candidates(root: Path) -> list[Mutant]:
    out = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.cpp")):
            open_statement = False
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
                code = line.split("//")[0].rstrip()
                begins = not open_statement
                open_statement = bool(code) and not code.endswith((";", "{", "}", ":"))
                if line.lstrip().startswith(NO_CODE):
                    continue
                if "runtime_error(" in code or '"' in code:  # texts of messages
                    continue
                for kind, change in KINDS.items():
                    if kind == "statement" and not (begins and line.startswith("  ")):
                        continue
                    out += [Mutant(path.relative_to(root), number, kind, line, after) for after in change(code)]
    return out


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


# ---- build and run ---------------------------------------------------------------------------------------------------
class Bench:
    """A variant of the tree, built without the kernels of newer processors: their tests are elsewhere."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.variant = Variant("engine_mutants", "-DTENSORPLAY_PORTABLE=ON", "-DTENSORPLAY_CODEGEN=OFF")
        self.variant.sync()
        for name in ("generated", "tests"):
            mirror(ROOT / name, self.variant.src / name)
        self.variant.build()
        self.programs = [self.compile(name) for name in PROGRAMS]
        failed = self.test()
        if failed:
            raise SystemExit(f"engine_mutants: the unchanged library fails {failed}")

    def compile(self, name: str) -> Path:
        package = self.variant.site / "tensorplay"
        program = self.variant.build_dir / name
        include = [f"-I{self.variant.src / 'csrc'}", f"-I{self.variant.src / 'generated/cpp'}"]
        link = [f"-L{package / 'lib'}", "-ltensorplay", "-pthread", f"-Wl,-rpath,{package / 'lib'}"]
        link.append(f"-Wl,-rpath-link,{package / 'lib'}")
        compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
        source = ROOT / "tests" / "core" / f"{name}.cpp"
        subprocess.run([compiler, "-std=c++20", "-O1", str(source), "-o", str(program), *include, *link], check=True)
        return program

    def library(self) -> bool:
        """Builds what `import` needs; False where the compiler refuses."""
        command = ["cmake", "--build", str(self.variant.build_dir), "-j", str(self.jobs), "--target", "tensorplay"]
        return subprocess.run(command, capture_output=True).returncode == 0

    def limited(self, command: list[str], seconds: int) -> bool:
        """Whether the command succeeds, in bounded time and memory."""
        environment = self.variant.environment() | {"PYTHONPATH": str(self.variant.site)}
        process = subprocess.Popen(
            command, env=environment, cwd=self.variant.build_dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)), start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(timeout=seconds) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False

    def test(self) -> str:
        """What failed first, or nothing."""
        src = self.variant.src
        for program in self.programs:
            if not self.limited([str(program)], 60):
                return program.name
        for tests in QUICK:
            if not (src / tests).exists():
                continue
            skip = ("--deselect", "tests/core/test_programs.py") if tests == "tests/core" else ()
            command = [sys.executable, "-m", "pytest", "-c", str(src / "pyproject.toml"), "--rootdir", str(src), "-q"]
            command += ["--no-header", "--tb=no", "-x", "--timeout=60", *skip, str(src / tests)]
            if not self.limited(command, 300):
                return tests
        return ""

    def outcome(self, mutant: Mutant) -> str | None:
        """What noticed the mutant, "" for a survivor, None where it does not compile."""
        path = self.variant.src / mutant.path
        true = path.read_text(encoding="utf-8")
        lines = true.splitlines(keepends=True)
        lines[mutant.line] = mutant.after + "\n"
        path.write_text("".join(lines), encoding="utf-8")
        try:
            return self.test() if self.library() else None
        finally:
            path.write_text(true, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "engine_mutants.jsonl")
    parser.add_argument("--again", action="store_true", help="run the survivors of --out again, with the tests of now")
    options = parser.parse_args()

    records = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {r["mutant"]: r["killed_by"] for r in records}
    bench = Bench(options.jobs)
    tried = sum(killed is not None for killed in known.values())
    for mutant in drawn(candidates(bench.variant.src), options.seed):
        name = str(mutant)
        if options.again:
            if known.get(name) != "":
                continue
        elif name in known:
            continue
        elif tried >= options.count:
            break
        start = time.monotonic()
        killed = bench.outcome(mutant)
        if killed is not None and name not in known:
            tried += 1
        known[name] = killed
        with options.out.open("a") as f:
            record = {"mutant": name, "killed_by": killed, "seconds": round(time.monotonic() - start)}
            f.write(json.dumps(record) + "\n")
        print("no mutant" if killed is None else f"killed by {killed}" if killed else "SURVIVED", name, flush=True)

    survivors = sorted(name for name, killed in known.items() if killed == "")
    total = sum(killed is not None for killed in known.values())
    share = 1 - len(survivors) / total if total else 0.0
    print(f"engine: {total - len(survivors)} of {total} noticed ({100 * share:.1f} %)")
    for name in survivors:
        print(f"  survived: {name}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
