"""`list --catalogue FILE`: what the entries are short of beside a catalogue of names, a table of tab-separated columns.

Columns: name, dtypes (groups joined by +), method, inplace, grad, gradgrad, forward (y or -), aliases. Lines that begin
with # are left out; the first other line is the head.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from .listing import lacks_tangent
from .model import DTYPE_GROUPS, HOMES, OPERATORS, TOP, Diff, Entry, OpFile

COLUMNS = ("name", "dtypes", "method", "inplace", "grad", "gradgrad", "forward", "aliases")


class CatalogueError(Exception):
    """A file that is no catalogue."""


def read(path: str) -> list[dict[str, str]]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise CatalogueError(f"{path}: {e}") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    rows = list(csv.reader(lines, delimiter="\t"))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise CatalogueError(f"{path}: the first line is not the columns {', '.join(COLUMNS)}, tab-separated")
    return [dict(zip(COLUMNS, row, strict=False)) for row in rows[1:]]


def report(file: OpFile, rows: list[dict[str, str]]) -> list[str]:
    """One line for each name that is short of something, and how many are short of what."""
    known = by_public_name(file)
    out: list[str] = []
    counts: dict[str, int] = {}
    for row in rows:
        e = known.get(row["name"]) or known.get("nn.functional." + row["name"])
        lacks = ["entry"] if e is None else [*shortages(e, row, known)]
        for what in lacks:
            counts[what.split()[0]] = counts.get(what.split()[0], 0) + 1
        if lacks:
            out.append(f"{row['name']:<44} {'; '.join(lacks)}")
    total = ", ".join(f"{n} {what}" for what, n in sorted(counts.items(), key=lambda x: -x[1])) or "nothing"
    return [*out, f"{len(out)} of {len(rows)} names are short of something: {total}"]


def by_public_name(file: OpFile) -> Mapping[str, Entry]:
    """The entry behind every public function; methods that are no functions under Tensor.name."""
    found: dict[str, Entry] = {}
    for e in file.entries:
        homes = [h for h in e.home if h != "internal"]
        for name in (e.op, *(a for a in e.aliases if "." not in a)):
            for home in homes:
                found.setdefault(name if home == TOP else f"{home}.{name}", e)
        for a in e.aliases:
            home, _, name = a.rpartition(".")
            if home in HOMES or home == "Tensor":
                found.setdefault(name if home == TOP else a, e)
        for name in e.method:
            found.setdefault(name, e)
        for symbol in e.operator:
            for special in OPERATORS[symbol]:
                found.setdefault(special or "", e)
        if e.inplace and not homes:
            found.setdefault(e.op + "_", e)
    return found


def shortages(e: Entry, row: Mapping[str, str], known: Mapping[str, Entry]) -> Iterator[str]:
    missing = [g for g in row["dtypes"].split("+") if g and not _serves(e, g)]
    if missing:
        yield f"dtypes {'+'.join(missing)}"
    methods = {*e.method, *(a.partition(".")[2] for a in e.aliases if a.startswith("Tensor."))}
    if row["method"] == "y" and not methods and not row["name"].startswith("__"):
        yield "method"
    if row["inplace"] == "y" and not e.inplace:
        yield "inplace"
    kinds = [d.kind for o in e.overloads if o.diff_results for d in o.deriv.values()]
    differs = Diff.FORMULA in kinds or Diff.DERIVED in kinds or Diff.ZERO in kinds
    if row["grad"] == "y" and not differs:
        yield "grad"
    if row["gradgrad"] == "y" and (not differs or Diff.TODO in kinds):
        yield "gradgrad"
    if row["forward"] == "y" and differs and lacks_tangent(e):
        yield "forward"
    names = [a.strip() for a in row["aliases"].replace(",", " ").split() if a.strip() not in ("", "-")]
    absent = [a for a in names if a not in known and "nn.functional." + a not in known]
    if absent:
        yield f"aliases {' '.join(absent)}"


def _serves(e: Entry, group: str) -> bool:
    if not e.dtypes:
        return True
    return all(d in e.dtypes for d in DTYPE_GROUPS.get(group, (group,)))
