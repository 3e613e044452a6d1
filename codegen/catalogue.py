"""`list --catalogue FILE`: what the entries are short of beside a catalogue of names, a table of tab-separated columns.

Columns: name, dtypes (groups joined by +), method, inplace, grad, gradgrad, forward (y or -), aliases, which may begin
with a package. Lines that begin with # are left out; the first other line is the head. Names that are written by hand
count where a test names them, and are listed as what they are.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from .listing import lacks_tangent
from .model import DTYPE_GROUPS, HOMES, OPERATORS, TOP, Diff, Entry, OpFile

_WHOLE = {"bool", "int", *DTYPE_GROUPS["int"]}
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


def report(file: OpFile, rows: list[dict[str, str]], root: Path | None = None) -> list[str]:
    """One line for each name that is short of something, and how many are short of what."""
    known = by_public_name(file)
    hand = by_hand(root) if root else set()
    out: list[str] = []
    counted: list[str] = []
    counts: dict[str, int] = {}
    for row in rows:
        e = known.get(row["name"]) or known.get("nn.functional." + row["name"])
        if e is None and row["name"] in hand:
            counted.append(row["name"])
            continue
        lacks = ["entry"] if e is None else [*shortages(e, row, known)]
        for what in lacks:
            counts[what.split()[0]] = counts.get(what.split()[0], 0) + 1
        if lacks:
            out.append(f"{row['name']:<44} {'; '.join(lacks)}")
    total = ", ".join(f"{n} {what}" for what, n in sorted(counts.items(), key=lambda x: -x[1])) or "nothing"
    if counted:
        out.append(f"{len(counted)} names are no entries, but written by hand and named by tests: {' '.join(counted)}")
    return [*out, f"{len(out) - bool(counted)} of {len(rows)} names are short of something: {total}"]


def by_hand(root: Path) -> set[str]:
    """Methods of the hand-written Tensor type and functions beside it that the tests name."""
    names: set[str] = set()
    stub = root / "tensorplay" / "_C.pyi"
    for n in ast.parse(stub.read_text(encoding="utf-8")).body if stub.is_file() else ():
        if isinstance(n, ast.ClassDef) and n.name == "Tensor":
            names |= {f.name for f in n.body if isinstance(f, ast.FunctionDef)}
    for path in (root / "csrc" / "python").glob("*.cpp"):
        names |= set(re.findall(r'\{"(\w+)", fast\(', path.read_text(encoding="utf-8")))
    said: set[str] = set()
    for path in (root / "tests").rglob("*.py"):
        for x in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(x, ast.Attribute):
                said.add(x.attr)
            elif isinstance(x, ast.Constant) and isinstance(x.value, str):
                said.add(x.value)
    return names & said


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
    as_method = known.get("Tensor." + row["name"])  # an entry of its own, where the tensor is not the first argument
    if row["method"] == "y" and not methods and not as_method and not row["name"].startswith("__"):
        yield "method"
    if row["inplace"] == "y" and not e.inplace and not (as_method and as_method.inplace):
        yield "inplace"
    kinds = [d.kind for o in e.overloads if o.diff_results for d in o.deriv.values()]
    differs = Diff.FORMULA in kinds or Diff.DERIVED in kinds or Diff.ZERO in kinds
    moves = bool({*row["dtypes"].split("+")} - _WHOLE)  # whole numbers have no derivative
    if row["grad"] == "y" and moves and not differs:
        yield "grad"
    if row["gradgrad"] == "y" and moves and (not differs or Diff.TODO in kinds):
        yield "gradgrad"
    if row["forward"] == "y" and differs and lacks_tangent(e):
        yield "forward"
    names = [a.strip() for a in row["aliases"].replace(",", " ").split() if a.strip() not in ("", "-")]
    absent = [a for a in names if not {a, "nn.functional." + a, a.partition(".")[2]} & known.keys()]
    if absent:
        yield f"aliases {' '.join(absent)}"


def _serves(e: Entry, group: str) -> bool:
    if not e.dtypes:
        return True
    return all(d in e.dtypes for d in DTYPE_GROUPS.get(group, (group,)))
