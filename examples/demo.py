"""`make demo`: a formula becomes an entry of ops.yaml, then C++, then an op that a network trains with.

Works on a copy of the sources under build/demo; the project itself is left alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from variant import Variant  # noqa: E402

DEFAULT = "x * tanh(log1p(exp(x)))"


def step(number: int, text: str) -> None:
    print(f"\n\033[1m[{number}/5] {text}\033[0m" if sys.stdout.isatty() else f"\n[{number}/5] {text}", flush=True)


def reference(expr: str) -> str:
    """The formula in NumPy's words, for the tests that every entry brings: exp(x) -> numpy.exp(x)."""
    import numpy

    def name(match: re.Match[str]) -> str:
        return f"numpy.{match[1]}(" if hasattr(numpy, match[1]) else f"scipy.special.{match[1]}("

    return re.sub(r"(?<![\w.])([a-z]\w*)\(", name, expr)


def new_entry(variant: Variant, expr: str) -> subprocess.CompletedProcess[str]:
    """`codegen new` on a fresh copy of ops.yaml; without a reference where NumPy and SciPy have not the functions."""
    variant.ops.write_text((ROOT / "ops.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    command = ["new", "activation", "--family", "unary", "--expr", expr, "--doc", "The activation of the demo."]
    made = variant.codegen(*command, "--like", reference(expr), capture=True)
    return variant.codegen(*command, capture=True) if "like:" in made.stderr else made


def indented(text: str, most: int | None = None) -> str:
    lines = text.rstrip().splitlines()
    if most is not None and len(lines) > most:
        lines = [*lines[:most], f"... {len(lines) - most} more lines"]
    return "\n".join("    " + line for line in lines)


def generated_files(variant: Variant) -> dict[str, bytes]:
    top = variant.src / "generated"
    return {path.relative_to(variant.src).as_posix(): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def main(expr: str) -> int:
    if not re.search(r"\bx\b", expr):
        print(f"demo: '{expr}' does not mention x; try make demo EXPR='{DEFAULT}'", file=sys.stderr)
        return 2
    variant = Variant("demo")
    variant.sync()
    if not variant.is_built:
        print("Compiling tensorplay as it is. This happens once; later runs compile only what the new entry changes.")
        variant.build()

    step(1, f"The formula {expr} becomes an entry of ops.yaml")
    entry = new_entry(variant, expr)
    print(indented(entry.stdout + entry.stderr), flush=True)
    if entry.returncode:
        return entry.returncode

    step(2, "The generator explains what it derives from the entry")
    explained = variant.codegen("explain", "activation", capture=True)
    print(indented(explained.stdout + explained.stderr, most=60), flush=True)
    if explained.returncode:
        return explained.returncode

    step(3, "The generator writes the files the entry changes")
    before = generated_files(variant)
    written = variant.generate()
    if written.returncode:
        print(indented(written.stdout + written.stderr), file=sys.stderr)
        return written.returncode
    after = generated_files(variant)
    changed = sorted(name for name in after if after[name] != before.get(name))
    print(indented("\n".join(changed) or "nothing: the entry is the one of the last run"), flush=True)

    step(4, "The compiler builds them into the library")
    started = time.perf_counter()
    variant.build()
    print(f"    {time.perf_counter() - started:.1f} s", flush=True)

    step(5, "A network that uses the op learns to read handwritten digits")
    png = ROOT / "build" / "demo" / "demo.png"
    return variant.run(str(ROOT / "examples" / "digits.py"), "--formula", expr, "--png", str(png)).returncode


if __name__ == "__main__":
    try:
        raise SystemExit(main(" ".join(sys.argv[1:]).strip() or DEFAULT))
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"demo: `{' '.join(map(str, error.cmd[:2]))}` failed; its output stands above") from None
