"""Puts rendered files into the output folder: only what changed is touched, stale files of ours are removed.

A file counts as ours when its beginning carries the banner; anything else in the folder is left alone.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .render import BANNER

_HEAD = 400  # bytes in which the banner must stand


@dataclass(frozen=True)
class Report:
    """What a write did."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int

    def __str__(self) -> str:
        lines = [f"wrote   {p}" for p in self.written] + [f"removed {p}" for p in self.removed]
        lines.append(f"{len(self.written)} written, {len(self.removed)} removed, {self.unchanged} unchanged")
        return "\n".join(lines)


def write(files: Mapping[str, str], out: Path) -> Report:
    """All or nothing: `files` is complete before anything is touched."""
    written, unchanged = [], 0
    for name in sorted(files):
        path = out / name
        if current(path) == files[name]:
            unchanged += 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, files[name])
        written.append(name)
    removed = stale(files, out)
    for name in removed:
        (out / name).unlink()
    return Report(tuple(written), tuple(removed), unchanged)


def current(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def replace_file(path: Path, text: str) -> None:
    """Through a temporary name: a build or a reader never sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".codegen-")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(text.encode("utf-8"))
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def stale(files: Mapping[str, str], out: Path) -> list[str]:
    """Our files under `out` that are not generated any more."""
    found = []
    for path in sorted(p for p in out.rglob("*") if p.is_file()):
        name = path.relative_to(out).as_posix()
        if name not in files and BANNER.encode() in path.read_bytes()[:_HEAD]:
            found.append(name)
    return found


def diff(files: Mapping[str, str], out: Path) -> str:
    """Unified diff from what is there to what should be; empty when they agree."""
    parts: list[str] = []
    for name in sorted({*files, *stale(files, out)}):
        old, new = current(out / name), files.get(name)
        if old == new:
            continue
        before = [] if old is None else old.splitlines(keepends=True)
        after = [] if new is None else new.splitlines(keepends=True)
        source = "/dev/null" if old is None else f"{out}/{name}"
        target = "/dev/null" if new is None else f"{out}/{name}"
        parts += list(difflib.unified_diff(before, after, source, target))
    return "".join(parts)
