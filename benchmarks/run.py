"""`make bench`: times each row for tensorplay and for whichever peers can be imported, prints ratios, writes JSON and a
chart under benchmarks/results.

Rounds alternate between the libraries, so that a slow moment of the machine falls on all of them; the figure is the
median round, which a busy machine moves less than the mean.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from rows import ROWS, Call, Row

RESULTS = Path(__file__).resolve().parent / "results"
OURS = "tensorplay"
PEERS = ("numpy", "torch")


@dataclass(frozen=True)
class Timing:
    row: str
    group: str
    library: str
    seconds: float
    spread: float  # (slowest - fastest round) / median


def available() -> dict[str, ModuleType]:
    found = {}
    for name in (OURS, *PEERS):
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError:
            print(f"{name}: not installed, left out")
    return found


def prepare(row: Row, name: str, library: ModuleType) -> Call | None:
    if name == "numpy":
        return row.numpy() if row.numpy else None
    return row.tensor(library)


def repeat(call: Call, count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - started) / count


def calls_in(call: Call, seconds: float) -> int:
    """How many calls fill the time; the first ones also warm caches and allocators up."""
    count = 1
    while (spent := repeat(call, count) * count) < seconds / 2:
        count = max(2 * count, int(count * seconds / max(spent, 1e-9) / 2))
    return max(1, int(count * seconds / spent))


def measure(row: Row, libraries: dict[str, ModuleType], rounds: int, seconds: float) -> list[Timing]:
    calls = {name: call for name, lib in libraries.items() if (call := prepare(row, name, lib)) is not None}
    counts = {name: calls_in(call, seconds) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(repeat(call, counts[name]))
    timings = []
    for name, values in samples.items():
        median = statistics.median(values)
        timings.append(Timing(row.name, row.group, name, median, (max(values) - min(values)) / median))
    return timings


def shown(seconds: float) -> str:
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def line(row: Row, timings: list[Timing], names: list[str]) -> str:
    by_name = {timing.library: timing.seconds for timing in timings}
    cells = [f"{shown(by_name[name]) if name in by_name else '-':>10}" for name in names]
    # Above 1: tensorplay takes less time than that peer.
    peers = [name for name in PEERS if name in by_name and OURS in by_name]
    ratios = [f"{by_name[name] / by_name[OURS]:.2f}x {name}" for name in peers]
    return f"{row.name:<34}" + "".join(cells) + "   " + ", ".join(ratios)


def chart(timings: list[Timing], path: Path) -> bool:
    try:
        import matplotlib
    except ModuleNotFoundError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    ours = {timing.row: timing.seconds for timing in timings if timing.library == OURS}
    rows = list(ours)[::-1]
    peers = [name for name in PEERS if any(timing.library == name for timing in timings)]
    figure, axes = plt.subplots(figsize=(9, 0.45 * len(rows) + 1.2), layout="constrained")
    for number, peer in enumerate(peers):
        ratio = {t.row: t.seconds / ours[t.row] for t in timings if t.library == peer and t.row in ours}
        places = [rows.index(row) + 0.36 * (number - (len(peers) - 1) / 2) for row in ratio]
        axes.barh(places, list(ratio.values()), height=0.34, label=peer)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("time of the peer / time of tensorplay (right of the line: tensorplay is faster)")
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1, help="time a round of one library takes")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()

    libraries = available()
    names = list(libraries)
    print(f"{'':<34}" + "".join(f"{name:>10}" for name in names) + "   time of the peer / time of tensorplay")
    timings: list[Timing] = []
    for row in ROWS:
        if options.only in row.name:
            found = measure(row, libraries, options.rounds, options.seconds)
            print(line(row, found, names), flush=True)
            timings += found

    RESULTS.mkdir(exist_ok=True)
    record = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: getattr(library, "__version__", "?") for name, library in libraries.items()},
        "timings": [asdict(timing) for timing in timings],
    }
    written = [RESULTS / "latest.json"]
    written[0].write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if OURS in libraries and chart(timings, RESULTS / "latest.png"):
        written.append(RESULTS / "latest.png")
    print("\n".join(str(path) for path in written))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
