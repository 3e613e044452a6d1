"""Entries whose numerical check passed before, by a hash of all it depends on, so that an edit checks what it changed.

Kept in the user's cache folder; without one, everything is checked each time. Decides nothing: a hash that is not known
is checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path

from . import cache as kept
from .libraries import versions
from .model import OpFile

_WORD = re.compile(r"[A-Za-z_]\w*")
LIMIT = 20000  # lines kept; an old file is begun anew


class Passed:
    """What passed, for one file. `new` holds entries to check, `note` what passed now."""

    def __init__(self, file: OpFile) -> None:
        self.keys = _keys(file)
        try:
            self.path: Path | None = kept.folder() / f"checked-{_generator()}.txt"
            known = set(self.path.read_text().split()) if self.path.exists() else set()
        except (kept.CacheError, OSError):
            self.path, known = None, set()
        self.known = known

    def new(self) -> set[str]:
        return {op for op, key in self.keys.items() if key not in self.known}

    def note(self, ops: set[str]) -> None:
        if self.path is None or not ops:
            return
        keep = self.known if len(self.known) < LIMIT else set()
        with contextlib.suppress(OSError):
            kept.write(self.path, "\n".join(sorted(keep | {self.keys[op] for op in ops})).encode())


def _keys(file: OpFile) -> dict[str, str]:
    """op -> hash of its entry and of every entry that it names, and so on."""
    by_name = file.by_name
    texts = {}
    start = 0
    for e in file.entries:
        texts[e.op] = "\n".join(file.source[start : e.end_line])
        start = e.end_line
    named = {op: {w for w in _WORD.findall(t) if w in by_name} - {op} for op, t in texts.items()}
    beside = "\n".join(file.base.source) if file.base else ""  # ops of the library that the formulas call
    own = {op: hashlib.sha256((beside + t).encode()).hexdigest() for op, t in texts.items()}
    out = {}
    for op in by_name:
        seen, todo = {op}, [op]
        while todo:
            for other in named[todo.pop()] - seen:
                seen.add(other)
                todo.append(other)
        out[op] = hashlib.sha256(" ".join([own[op], *sorted(own[x] for x in seen)]).encode()).hexdigest()[:32]
    return out


def _generator() -> str:
    """What checks: the generator's sources and the libraries it compares with."""
    h = hashlib.sha256(versions().encode())
    for p in sorted(Path(__file__).resolve().parent.glob("*.py")):
        h.update(p.read_bytes())
    return h.hexdigest()[:24]
