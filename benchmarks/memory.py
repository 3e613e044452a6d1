"""`python benchmarks/memory.py`: how much memory elementwise ops and reductions take beyond operands and result.

Each op runs on large half-precision, strided and expanded operands in a child of its own; the peak of resident memory
is read from the kernel (Linux). What stands above the result and LIMIT is printed, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != ROOT]
LIMIT = 4 << 20
FAMILIES = ("unary", "binary", "ternary", "comparison", "logical", "reduction")
LAYOUTS = ("float16", "bfloat16", "float32 strided", "float16 transposed", "int16", "float32 beside float64",
           "float16 in one row", "bfloat16 in one row", "float32 strided in one row")  # fmt: skip


def rows(families: tuple[str, ...], names: list[str]) -> Iterator[Any]:
    for path in sorted((ROOT / "generated" / "tests").glob("test_*.py")):
        if path.stem.removeprefix("test_").rstrip("_0123456789") not in families:
            continue
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from (op for op in module.OPS if op.home != "internal" and (not names or op.name in names))


def operands(layout: str, count: int, n: int) -> list[Any]:
    """Tensors of n elements; those behind the first are as large and of the same layout."""
    import tensorplay as tp

    side = n if layout.endswith("in one row") else 1 << (n.bit_length() // 2)
    dtype = getattr(tp, layout.split()[0])
    out = []
    for i in range(count):
        kind = tp.float64 if i and layout.endswith("float64") else dtype
        x = tp.full((2 * n if "strided" in layout else n,), 1, dtype=kind)
        if "strided" in layout:
            x = x[::2]
        x = x.reshape(n // side, side) if "strided" not in layout else x.unflatten(0, (n // side, side))
        out.append(x.T if "transposed" in layout else x)
    return out


def resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    raise OSError(f"/proc/self/status has no {field}")


def measure(op: Any, layout: str, n: int) -> tuple[int, int] | str:
    """Bytes above the operands at the peak, and those of the results; or why the op does not take the operands."""
    import tensorplay as tp
    from tensorplay.testing.inputs import samples
    from tensorplay.testing.rows import Sample, call, results, tensor

    sample = next(iter(samples(op, limit=1)), None)
    if sample is None:
        return "no sample"
    names = [a[0] for a in sample.form.args if a[1].startswith("Tensor") and a[0] in sample.given]
    large = operands(layout, len(names), n)
    given = {k: tensor(v) for k, v in sample.given.items()}
    for k, x in zip(names, large, strict=True):
        boolean = given[k].dtype == tp.bool
        given[k] = (x != 0) if boolean else x
    small = {k: v[:8, :8] if k in names else v for k, v in given.items()}
    try:
        call(op, Sample(sample.form, {}), small)  # code and tables are loaded before
    except (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError) as e:
        return f"{type(e).__name__}: {e}"
    tp.memory.trim()
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    got = results(call(op, Sample(sample.form, {}), given))
    return resident("VmHWM") - before, sum(r.nbytes for r in got if isinstance(r, tp.Tensor))


def in_child(op: Any, layout: str, n: int) -> tuple[int, int] | str:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            text = repr(measure(op, layout, n))
        except BaseException as e:
            text = repr(f"{type(e).__name__}: {e}")
        os.write(write, text.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return eval(text, {}) if text else "the child died"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=int, default=64, help="elements of an operand")
    parser.add_argument("--op", action="append", default=[], help="only this op (may be given again)")
    parser.add_argument("--layout", action="append", default=[], choices=LAYOUTS)
    parser.add_argument("-v", action="store_true", help="every row")
    given = parser.parse_args()
    above = measured = 0
    for op in rows(FAMILIES, given.op):
        for layout in given.layout or LAYOUTS:
            found = in_child(op, layout, given.millions << 20)
            if isinstance(found, str):
                if given.v:
                    print(f"{op.name:<24} {layout:<24} {found.splitlines()[0][:100]}", flush=True)
                continue
            measured += 1
            extra = found[0] - found[1]
            above += extra > LIMIT
            if given.v or extra > LIMIT:
                print(f"{op.name:<24} {layout:<24} {extra / 2**20:8.1f} MB above a result of {found[1] / 2**20:.1f} MB",
                      flush=True)  # fmt: skip
    print(f"{measured} rows of {given.millions} M elements: {above} above {LIMIT >> 20} MB")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
