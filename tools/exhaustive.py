"""The largest error of each float32 function of one tensor over all 2^32 arguments, on each instruction set.

Run with the built package on the path: PYTHONPATH=build/dev/site:. python tools/exhaustive.py [--only NAME,...]
The reference is the function's own float64 form, which docs/accuracy.md holds against mpmath: its error shows in
float32 as 1e-8 ulp or so. One process computes it, one for each instruction set (TENSORPLAY_ISA) compares.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import IO, Any

import numpy as np

CHUNK = 1 << 20
PIECE = 1 << 15  # what the comparison works on at a time: it stays in the first two caches
SETS = ("baseline", "avx2", "avx512")
TINY, LARGEST = 2.0**-149, 3.4028234e38


def function(name: str) -> Any:
    import tensorplay as tp

    found: Any = tp
    for part in name.split("."):
        found = getattr(found, part)
    return found


def names() -> list[str]:
    from codegen.pipeline import checked

    root = Path(__file__).resolve().parent.parent
    out = []
    for e in checked(str(root / "ops.yaml"), numeric=False)[0].entries:
        sig, real = e.overloads[0].sig, not e.dtypes or "f32" in e.dtypes
        tensors = [a for a in sig.args if a.type.is_tensor]
        free = [a for a in sig.args if a.required and not a.type.is_tensor]
        if e.family.name == "unary" and real and len(tensors) == 1 and not free and "internal" not in e.home:
            home = e.home[0].removeprefix("tensorplay").lstrip(".")
            out.append(f"{home}.{e.op}" if home else e.op)
    return out


def arguments(k: int) -> np.ndarray:
    return np.arange(k * CHUNK, (k + 1) * CHUNK, dtype=np.uint32).view(np.float32)


def compare(got: np.ndarray, want: np.ndarray) -> tuple[float, int]:
    """The largest error in ulp of the exact value, and where; inf where a NaN, an infinity or a sign is another.

    Neighbours of the rounded value are not looked at: 1.5 stands for all of them.
    """
    rounded = want.astype(np.float32)
    steps = got.view(np.int32) - rounded.view(np.int32)
    low, high = int(steps.min()), int(steps.max())
    if low >= -1 and high <= 1:
        return (0.5, -1) if low == high == 0 else (1.5, -1)
    at = np.flatnonzero(steps)
    g, r = got[at], rounded[at]
    at = at[~((np.isnan(g) & np.isnan(r)) | ((g == 0) & (r == 0)))]
    if not at.size:
        return 0.5, -1
    at = at[(steps[at] > 1) | (steps[at] < -1)]
    if not at.size:
        return 1.5, -1
    g, w = got[at].astype(np.float64), want[at]
    size = np.maximum(np.ldexp(1.0, np.frexp(np.abs(w))[1] - 24), TINY)
    error = np.abs(g - w) / size
    error[np.isnan(error)] = np.inf
    # Either of the largest number and infinity is a rounding of what lies between.
    error[(np.isinf(g) | np.isinf(rounded[at])) & (np.abs(w) > LARGEST) & (np.abs(w) < 2 * LARGEST)] = 1.5
    worst = int(error.argmax())
    return float(error[worst]), int(at[worst])


def worker() -> None:
    """Compares: a line 'name chunk slot' in, a line 'error argument' out."""
    import tensorplay as tp

    tp.set_num_threads(1)
    memory = [SharedMemory(n) for n in sys.argv[2:]]
    slots = [np.ndarray(CHUNK, np.float64, m.buf) for m in memory]
    print("ready", flush=True)
    np.seterr(all="ignore")
    for line in sys.stdin:
        name, chunk, slot = line.split()
        f, x, want = function(name), arguments(int(chunk)), slots[int(slot)]
        error, where = 0.0, 0.0
        for i in range(0, CHUNK, PIECE):
            got = f(tp.from_numpy(x[i : i + PIECE])).numpy()
            e, at = compare(got, want[i : i + PIECE])
            if e > error:
                error, where = e, float(x[i + at]) if at >= 0 else 0.0
        print(error, where.hex(), flush=True)


def scan(name: str, slots: list[np.ndarray], workers: dict[str, subprocess.Popen[str]]) -> dict[str, Any]:
    import tensorplay as tp

    f = function(name)
    worst = {isa: [0.0, 0.0] for isa in workers}

    def collect() -> None:
        for isa, w in workers.items():
            error, where = pipe(w.stdout).readline().split()
            if float(error) > worst[isa][0]:
                worst[isa] = [float(error), float.fromhex(where)]

    chunks = (1 << 32) // CHUNK
    for k in range(chunks):
        slot = k % 2
        x = arguments(k)
        for i in range(0, CHUNK, PIECE):
            with np.errstate(all="ignore"):
                slots[slot][i : i + PIECE] = f(tp.from_numpy(x[i : i + PIECE].astype(np.float64))).numpy()
        if k:
            collect()
        for w in workers.values():
            print(name, k, slot, file=pipe(w.stdin), flush=True)
    collect()
    return {isa: {"ulp": e, "at": x} for isa, (e, x) in worst.items()}


def pipe(end: IO[str] | None) -> IO[str]:
    assert end is not None
    return end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, as tensorplay has them")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--json", default="", help="where results are kept; functions it has are not run again")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else names()
    kept = Path(options.json) if options.json else None
    results: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.is_file() else {}
    memory = [SharedMemory(create=True, size=CHUNK * 8) for _ in range(2)]
    slots = [np.ndarray(CHUNK, np.float64, m.buf) for m in memory]
    workers = {
        isa: subprocess.Popen(
            [sys.executable, __file__, "worker", *(m.name for m in memory)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TENSORPLAY_ISA": isa},
        )
        for isa in options.sets.split(",")
    }  # fmt: skip
    try:
        for w in workers.values():
            pipe(w.stdout).readline()
        for name in chosen:
            if name in results:
                continue
            start = time.time()
            results[name] = scan(name, slots, workers)
            row = "  ".join(f"{isa} {r['ulp']:.3f} at {r['at']:.9g}" for isa, r in results[name].items())
            print(f"{name:32s} {row}  ({time.time() - start:.0f} s)", flush=True)
            if kept:
                kept.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        for w in workers.values():
            pipe(w.stdin).close()
            w.wait()
        for m in memory:
            m.close()
            m.unlink()


if __name__ == "__main__":
    worker() if sys.argv[1:2] == ["worker"] else main()
