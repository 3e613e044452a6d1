"""Is ops.yaml the only source? Builds a copy with every explicit `d` removed, an entry renamed and a new one added.

What follows must follow: the true entries' tests pass without the removed derivatives (but for entries whose formula
decides a singular point, which are named), the renamed op is found under its new name everywhere, and the new op's
derivatives agree with mpmath to 1e-10.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mutants import op_of, outcomes
from variant import ROOT, Variant

RENAMED = ("softsign", "soft_signum")
NEW = """
- op: planck
  family: unary
  sig: planck(Tensor input) -> Tensor out
  expr: input**3 / expm1(input)
  like: 'numpy.power(input, 3) / numpy.expm1(input)'
  test: {input: [0.5, 9]}
  doc: Spectral radiance of a black body in units of its temperature.
"""
PROBE = """
import mpmath, tensorplay as tp
from tensorplay.autograd import forward_ad
mpmath.mp.dps = 40
f = lambda t: t**3 / mpmath.expm1(t)
points = [0.5 + 0.25 * k for k in range(30)]
x = tp.tensor(points, dtype=tp.float64, requires_grad=True)
y = tp.planck(x)
(first,) = tp.autograd.grad(y.sum(), x, create_graph=True)
(second,) = tp.autograd.grad(first.sum(), x)
with forward_ad.dual_level():
    dual = forward_ad.make_dual(x.detach(), tp.ones_like(x))
    tangent = forward_ad.unpack_dual(tp.planck(dual)).tangent
worst = 0.0
for order, got in ((0, y), (1, first), (2, second), (1, tangent)):
    for t, v in zip(points, got.tolist()):
        want = mpmath.diff(f, t, order) if order else f(mpmath.mpf(t))
        worst = max(worst, float(abs(v - want) / max(1, abs(want))))
print(f"planck: largest error of value, slope, curvature and tangent {worst:.1e}")
assert worst < 1e-10
assert "black body" in tp.planck.__doc__
homes = (tp, tp.Tensor, tp.nn.functional)
assert not any(hasattr(home, "OLD") for home in homes)
(new,) = (getattr(home, "NEW") for home in homes if hasattr(home, "NEW"))
assert new(tp.tensor([1.0])).item() == 0.5
"""


def blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """(op, lines) of each entry; the head of the file has no op."""
    op: str = ""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("- op:"):
            yield op, lines
            op, lines = line.split(":")[1].strip(), []
        lines.append(line)
    yield op, lines


def without_derivatives(text: str, kept: set[str]) -> tuple[str, list[str]]:
    """The file without the `d` of entries that have an expr, and the names of those entries."""
    out, names = [], []
    for op, lines in blocks(text):
        if op not in kept and any(x.startswith("  expr:") for x in lines):
            inside, left = False, []
            for line in lines:
                inside = line.startswith("  d:") or (inside and line.startswith("   "))
                if not inside:
                    left.append(line)
            names += [op] if len(left) < len(lines) else []
            lines = left
        out += lines
    return "".join(out), names


def main() -> int:
    variant = Variant("source_check", "-DTENSORPLAY_PORTABLE=ON")
    variant.sync()
    true = variant.ops.read_text(encoding="utf-8")
    old, new = RENAMED
    renamed = re.sub(rf"^(- op: |  sig: '?){old}\b", rf"\g<1>{new}", true, flags=re.M) + NEW
    kept: set[str] = set()
    while True:
        text, removed = without_derivatives(renamed, kept)
        variant.ops.write_text(text, encoding="utf-8")
        written = variant.generate()
        if written.returncode == 0:
            break
        # An entry whose derivative decides something its expr cannot say is refused by name.
        refused = set(re.findall(r"error\[E\d+\]: op '(\w+)'", written.stdout + written.stderr)) - kept
        if not refused:
            print(written.stdout + written.stderr)
            return 1
        for line in (written.stdout + written.stderr).splitlines():
            if "error[" in line:
                print(f"needs its d: {line}")
        kept |= refused
    print(f"{len(removed)} entries without their d: {' '.join(removed)}; kept: {' '.join(sorted(kept)) or 'none'}")
    variant.build()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        tests = variant.src / "generated" / "tests"
        variant.run("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-q", "--no-header",
                    "--tb=line", "-n", "2", f"--junitxml={report}", str(tests))  # fmt: skip
        failed = [name for name, good in outcomes(report).items() if not good]
        ran = len(outcomes(report))
    ops = {op for op, _ in blocks(text)}
    print(f"{ran} generated tests ran, {len(failed)} failed, of the ops: "
          f"{' '.join(sorted({op_of(t, ops) or t for t in failed})) or 'none'}")  # fmt: skip
    generated = variant.src / "generated"
    for folder in ("stubs", "docs", "tests", "cpp"):
        texts = "".join(p.read_text(encoding="utf-8") for p in (generated / folder).rglob("*") if p.is_file())
        found = {name: bool(re.search(rf"\b{name}\b", texts)) for name in (old, new)}
        print(f"{folder}: {new} {'found' if found[new] else 'MISSING'}, {old} {'LEFT' if found[old] else 'gone'}")
        if not found[new] or found[old]:
            return 1
    probe = variant.run("-c", PROBE.replace("OLD", old).replace("NEW", new))
    return 1 if failed or probe.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
