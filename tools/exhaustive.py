"""The largest error of each float32 function of one tensor over all 2^32 arguments, on each instruction set.

Run with the built package on the path: PYTHONPATH=build/dev/site:. python tools/exhaustive.py [--only NAME,...]
The reference is the function's own float64 form, which docs/accuracy.md holds against mpmath: its error shows in
float32 as 1e-8 ulp or so. One process computes it, one for each instruction set (TENSORPLAY_ISA) compares. A scan takes
a minute or more, so each keeps a checksum of the bits of every 61st chunk: --same JSON asks whether another build
still gives those bits, in a second a function.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import zlib
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import IO, Any

import numpy as np

CHUNK = 1 << 20
CHUNKS = (1 << 32) // CHUNK
PIECE = 1 << 15  # what the comparison works on at a time: it stays in the first two caches
SAMPLED = 61  # each such chunk enters the checksum; no power of two, so that all mantissas and exponents take part
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
    """Compares: a line 'name chunk slot' in, a line 'error argument checksum' out; with slot -1 nothing is compared."""
    import tensorplay as tp

    tp.set_num_threads(1)
    memory = [SharedMemory(n) for n in sys.argv[2:]]
    for m in memory:  # the process that made it removes it
        resource_tracker.unregister(f"/{m.name.lstrip('/')}", "shared_memory")
    slots = [np.ndarray(CHUNK, np.float64, m.buf) for m in memory]
    print("ready", flush=True)
    np.seterr(all="ignore")
    for line in sys.stdin:
        name, chunk, slot = line.split()
        f, x = function(name), arguments(int(chunk))
        error, where, bits = 0.0, 0.0, 0
        for i in range(0, CHUNK, PIECE):
            got = f(tp.from_numpy(x[i : i + PIECE])).numpy()
            if int(chunk) % SAMPLED == 0:
                # Which of the NaNs comes out is no part of a value.
                bits = zlib.crc32(np.where(np.isnan(got), np.float32(np.nan), got).tobytes(), bits)
            if int(slot) < 0:
                continue
            e, at = compare(got, slots[int(slot)][i : i + PIECE])
            if e > error:
                error, where = e, float(x[i + at]) if at >= 0 else 0.0
        print(error, where.hex(), bits, flush=True)


def scan(name: str, slots: list[np.ndarray], workers: dict[str, subprocess.Popen[str]]) -> dict[str, Any]:
    import tensorplay as tp

    f = function(name)
    worst = {isa: [0.0, 0.0] for isa in workers}
    sums = dict.fromkeys(workers, 0)

    def collect() -> None:
        for isa, w in workers.items():
            error, where, bits = pipe(w.stdout).readline().split()
            if float(error) > worst[isa][0]:
                worst[isa] = [float(error), float.fromhex(where)]
            sums[isa] ^= int(bits)

    for k in range(CHUNKS):
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
    return {isa: {"ulp": e, "at": x, "bits": sums[isa]} for isa, (e, x) in worst.items()}


def checksums(name: str, workers: dict[str, subprocess.Popen[str]]) -> dict[str, int]:
    sums = dict.fromkeys(workers, 0)
    for k in range(0, CHUNKS, SAMPLED):
        for w in workers.values():
            print(name, k, -1, file=pipe(w.stdin), flush=True)
        for isa, w in workers.items():
            sums[isa] ^= int(pipe(w.stdout).readline().split()[2])
    return sums


def pipe(end: IO[str] | None) -> IO[str]:
    assert end is not None
    return end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, as tensorplay has them")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--json", default="", help="where results are kept; functions it has are not run again")
    parser.add_argument("--same", default="", metavar="JSON", help="compare checksums with those kept there; no scan")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else [] if options.same else names()
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
        if options.same:
            for name, kept_rows in json.loads(Path(options.same).read_text()).items():
                now = checksums(name, workers)
                other = [isa for isa, bits in now.items() if bits != kept_rows[isa]["bits"]]
                print(f"{name:32s} {'other bits: ' + ', '.join(other) if other else 'the same'}", flush=True)
            return
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
