"""Prints the generated element loops that the compiler makes no vector code of, by a development build's own command.

PYTHONPATH=. python tools/vectorised.py [--build build/dev] [--isa avx512]. A loop that lost its vectors is ten times
slower and gives the same numbers: no test sees it. What calls scalar code (codegen/functions.py, SCALAR) is left out.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from codegen.functions import SCALAR

_LOOP = re.compile(r" +for \(std::int64_t i = (?:0|from); i < (?:n|end); \+\+i\)")


def lost(command: list[str], source: Path) -> list[str]:
    """Names of loops in a file none of which the compiler reports as vector code."""
    run = subprocess.run([*command, "-fopt-info-vec-optimized", "-o", "/dev/null"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    done = {int(m[1]) for m in re.finditer(rf"{source.name}:(\d+):\d+: optimized: loop vectorized", run.stderr)}
    found: dict[str, list[bool]] = {}
    scalar: set[str] = set()
    name = ""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if m := re.match(r"void (\w+)\(", line):
            name = m[1]
        if SCALAR & set(re.findall(r"m::(\w+)\(", line)) or "_block(n," in line:
            scalar.add(name)
        if _LOOP.match(line):
            found.setdefault(name, []).append(number in done)
    return [n for n, hits in found.items() if not any(hits) and n not in scalar]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--isa", default="avx512")
    options = parser.parse_args()
    for entry in json.loads((Path(options.build) / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if source.parts[-3:-1] != ("cpp", "kernels") or f"_{options.isa}." not in entry["command"]:
            continue
        words = shlex.split(entry["command"])
        start = next(i for i, w in enumerate(words) if re.search(r"(\+\+|cc)$", w) and "ccache" not in w)
        # Identical functions are not merged here: the copy would have no loop to report.
        words = [*words[start : words.index("-o")], "-fno-ipa-icf", "-c", str(source)]
        for name in lost(words, source):
            print(f"{source.name}: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
