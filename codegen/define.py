"""Entries given from Python through the pipeline: the same stages as `codegen write`, to the same files.

Owns nothing of its own but the order; where an entry comes from is `given`'s business, what becomes of it the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import formula as F
from . import load as L
from . import markers, resolve
from .base import library
from .errors import Diagnostics
from .given import Given, complete, document
from .model import NOWHERE, Entry, Loc, OpFile

# What only a numerical look can refuse; an expr alone has its derivatives from the program.
_NUMERIC = ("d", "vjp", "tangent", "like", "special")


class Refused(Exception):
    """Entries that say something wrong; the text points at each fault."""

    def __init__(self, diags: Diagnostics) -> None:
        super().__init__(diags.render())
        self.codes = tuple(d.code for d in diags.sorted())


@dataclass(frozen=True)
class Defined:
    """What the generator made of the entries."""

    files: Mapping[str, str]
    ops: tuple[str, ...]
    methods: tuple[str, ...] = ()  # that Tensor is to have
    unchecked: tuple[str, ...] = ()  # what could not be compared with a reference here, and why


def define(entries: Sequence[Given], filename: str, headers: Sequence[Path] = ()) -> Defined:
    """Generate. `filename`: the caller's, for messages. `headers`: of one folder; they declare kernels.

    Raises Refused with every fault.
    """
    name = next((str(e.keys.get("op") or e.keys.get("sig", "op")).split("(")[0].strip() for e in entries), "op")
    made = [complete(e, Path(filename).name or "tests") for e in entries]
    doc = document(made, filename, f"<{name}>")
    diags = Diagnostics(doc.path, doc.lines)
    for g in entries:
        for key in (k for k, v in g.keys.items() if callable(v)):
            loc = g.places[key,].loc if doc.path == filename and (key,) in g.places else NOWHERE
            hint = "write the formula as a text, or decorate a def, which is read as one"
            diags.add("E102", loc, f"op '{name}': {key} is a function of Python, not a text", hint)
    if diags:
        raise Refused(diags)
    declared = markers.scan_files(headers, headers[0].parent if headers else Path())
    base = library()
    file = resolve.resolve(L.read_root(doc.root, diags), diags, declared, base)
    numeric = [e.keys["op"] for e, g in zip(made, entries, strict=True) if any(k in g.keys for k in _NUMERIC)]
    return _finish(file, diags, [str(n) for n in numeric], base, declared)


def _single_points(e: Entry) -> bool:
    """Whether a formula treats one point apart, and its slope there may be that of a constant."""
    roots = [o.inlined for o in e.overloads if o.inlined is not None]
    return any(isinstance(n, F.Compare) and n.op in ("==", "!=") for r in roots for n in F.walk(r))


def define_file(path: str) -> Defined:
    """The entries of a file; a csrc/ beside it declares its kernels. Raises Refused with every fault."""
    root = Path(path).resolve().parent
    declared = markers.scan(root) if (root / "csrc").is_dir() else markers.Declared(scanned=True)
    base = library()
    file, diags = resolve.load(path, declared, base)
    if not file.entries and not diags:
        diags.add("E105", Loc(1, 1), "no op in this file", "write an entry below 'ops:'")
    numeric = [e.op for e in file.entries if any(k in e.keys for k in _NUMERIC)]
    return _finish(file, diags, numeric, base, declared)


def _finish(
    file: OpFile, diags: Diagnostics, numeric: Sequence[str], base: OpFile | None, declared: markers.Declared
) -> Defined:
    if diags:
        raise Refused(diags)
    numeric = [*numeric, *(e.op for e in file.entries if e.op not in numeric and _single_points(e))]
    unchecked: list[str] = []
    if numeric:
        from .check import run
        from .functions import is_absent

        for op in numeric:
            lines = run(file, diags, only=op)
            e = file.get(op)
            if lines and e is not None and any(like.kind != "tests" for like in e.like):
                line = next((x for x in lines if is_absent(x)), lines[0])
                why = line.rpartition(": ")[2]
                then = "install it, or leave `like` out" if is_absent(line) else "check its values and gradcheck it"
                unchecked.append(f"{op}: not compared with its reference: {why}; {then}")
        # A kink that nobody decided: the formula decides, as the docs of define_op say.
        diags.items = [d for d in diags.items if d.code != "E316"]
        if diags:
            raise Refused(diags)
    from .plan import PlanError, plan
    from .render import cpp

    kernels = {name: at.rpartition(":")[0].removeprefix("csrc/") for name, at in declared.kernels.items()}
    try:
        files = cpp(plan(file, kernels, base))
    except PlanError as e:
        raise Refused(e.diags) from None
    methods = tuple(m for e in file.entries for m in e.method)
    return Defined(files, tuple(e.op for e in file.entries), methods, tuple(unchecked))
