"""`python -m tools.fuzz_calls --seed N`: random right and wrong calls of every op, each op in a child of its own.

A crash, a hang, an error of another kind or without the op's name, a wrong value and a half-written operand are printed
with the call and its number; `--op NAME --index N` runs that call alone, in this process. The package to test is the
one `import tensorplay` finds; the rows are those of generated/tests.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# `python -m` puts the source tree first, whose tensorplay has no binary.
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != ROOT]
SECONDS = 20  # of processor time for one call, and ten times that on the clock: a hang, on any machine
MEMORY = 3 << 30  # address space a child may add: an allocation above it must fail cleanly


def rows(names: list[str]) -> Iterator[Any]:
    """The ops of generated/tests."""
    for path in sorted((ROOT / "generated" / "tests").glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"rows_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from (op for op in module.OPS if op.name in names or (not names and op.home != "internal"))


def load_references(op: Any) -> None:
    """The libraries that the op's references call, once for all children: a library loads its parts when asked."""
    from tensorplay.testing import inputs

    for like in {form.like for form in op.forms if form.like}:
        space = inputs.namespace(like)
        for n in ast.walk(ast.parse(like, mode="eval")):
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in space:
                getattr(space[n.value.id], n.attr)


def watch(seconds: int) -> None:
    """Ends this process where it takes longer than that; 0: not."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(10 * seconds)


def child(op: Any, seed: int, first: int, count: int, pipe: int) -> None:
    """Calls `first` to `count` of the op, right and wrong in turn; tells the parent of each before it runs."""
    from tensorplay.testing import wild

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    out = os.fdopen(pipe, "w", buffering=1)
    for i in range(first, count):
        watch(0)
        call = wild.draw_call(op, seed, i // 2, right=i % 2 == 0)
        if call is None:
            continue
        out.write(f"start\t{i}\t{wild.describe(call)!r}\n")
        watch(SECONDS)
        if (wrong := wild.judge(call)) is not None:
            out.write(f"wrong\t{i}\t{wrong!r}\n")
    out.write(f"done\t{count}\t''\n")


def run(op: Any, seed: int, count: int) -> Iterator[tuple[int, str, str]]:
    """(number, call, what is wrong) of the op's calls; a child that dies is followed by one that goes on behind."""
    first = 0
    while first < count:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read)
                devnull = os.open(os.devnull, os.O_WRONLY)
                os.dup2(devnull, 2)
                child(op, seed, first, count, write)
            except BaseException as e:
                os.write(write, f"wrong\t-1\t{f'the fuzzer failed: {e!r}'!r}\n".encode())
            finally:
                os._exit(0)
        os.close(write)
        at, text, done = first, "", False
        with os.fdopen(read, errors="replace") as lines:
            for line in lines:
                kind, number, what = line.rstrip("\n").split("\t", 2)
                if kind == "start":
                    at, text = int(number), what
                elif kind == "wrong":
                    yield at, text, what
                    done = done or number == "-1"
                else:
                    done = True
        _, status = os.waitpid(pid, 0)
        if done:
            return
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status}"
        yield at, text, f"hangs ({SECONDS} s)" if name in ("SIGALRM", "SIGPROF") else f"crashes: {name}"
        first = at + 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=200, help="right calls of an op, and as many wrong ones")
    parser.add_argument("--op", action="append", default=[], help="only this op (may be given again)")
    parser.add_argument("--index", type=int, help="only the call of this number, in this process")
    given = parser.parse_args()
    if given.index is not None:
        from tensorplay.testing import wild

        call = wild.draw_call(next(rows(given.op)), given.seed, given.index // 2, right=given.index % 2 == 0)
        assert call is not None, "the op draws no arguments"
        print(wild.describe(call), flush=True)
        print(wild.judge(call) or "as expected")
        return 0
    found = ops = 0
    for op in rows(given.op):
        ops += 1
        load_references(op)
        for number, text, wrong in run(op, given.seed, 2 * given.calls):
            found += 1
            print(f"{op.name} --index {number}: {wrong}\n    {text}", flush=True)
    print(f"{ops} ops, {given.calls} right and {given.calls} wrong calls each, seed {given.seed}: {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
