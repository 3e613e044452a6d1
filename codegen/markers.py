"""Names that hand-written C++ declares by a marker line: `// kernel: name`, `// shape: name`, `// batch: name`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_MARKER = re.compile(r"^\s*//\s*(kernel|shape|batch):\s*([A-Za-z_]\w*)\s*$", re.M)


@dataclass(frozen=True)
class Declared:
    """name -> file:line, for each kind. Empty where nothing was scanned: then names are taken at their word."""

    kernels: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, str] = field(default_factory=dict)
    batches: Mapping[str, str] = field(default_factory=dict)


def scan(root: Path) -> Declared:
    """Read the markers of every header under root/csrc."""
    found: dict[str, dict[str, str]] = {"kernel": {}, "shape": {}, "batch": {}}
    for path in sorted((root / "csrc").rglob("*.h")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for m in _MARKER.finditer(text):
            line = text.count("\n", 0, m.start(1)) + 1
            found[m[1]].setdefault(m[2], f"{path.relative_to(root)}:{line}")
    return Declared(found["kernel"], found["shape"], found["batch"])


def known_kernels(root: Path) -> set[str]:
    return set(scan(root).kernels)
