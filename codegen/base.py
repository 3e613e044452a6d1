"""The library's own ops, which formulas of other files call: where its ops.yaml is, and its model, read once and kept.

Reading the entries takes seconds, a pickle of the model a tenth of them. Knows nothing of rendering.
"""

from __future__ import annotations

import copyreg
import hashlib
import importlib
import pickle
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO, Any

from . import cache as kept
from .formula import parse
from .model import NOWHERE, Formula, Loc, OpFile, TestSpec

SHIPPED = "model.pickle.xz"


def is_library(ops: Path) -> bool:
    """Whether an ops file is the library's own: the one beside the sources of its runtime, or its installed copy."""
    return (ops.parent / "csrc" / "core" / "op_schema.h").is_file() or is_installed(ops)


def is_installed(ops: Path) -> bool:
    """Whether it is the copy beside an installed generator, whose sources are elsewhere."""
    return ops == Path(__file__).resolve().with_name("ops.yaml")


def library_path() -> Path | None:
    """The ops file of the library this generator belongs to."""
    here = Path(__file__).resolve().parent
    return next((p for p in (here / "ops.yaml", here.parent / "ops.yaml") if p.is_file()), None)


def base_of(ops: str) -> OpFile | None:
    """The ops that the formulas of a file may call besides its own; None for the library itself."""
    return None if is_library(Path(ops).resolve()) else library()


@cache
def library() -> OpFile | None:
    path = library_path()
    if path is None:
        return None
    from . import resolve

    data = path.read_bytes()
    key, text = _key(data), data.decode()
    found = _read(Path(__file__).with_name(SHIPPED), key, text)
    if found is None:
        try:
            file = kept.folder() / f"model-{key}.pickle.xz"
        except kept.CacheError:
            return resolve.load(str(path))[0]
        found = _read(file, key, text)
        if found is None:
            found = resolve.load(str(path))[0]
            with suppress(ImportError):  # some builds of Python lack lzma: the entries are read each time
                kept.write(file, _packed(key, found, text))
    return replace(found, source=tuple(text.split("\n")))


def ship(to: Path) -> None:
    """Writes the model for a wheel to bring."""
    path = library_path()
    if path is not None:
        from . import resolve

        data = path.read_bytes()
        key, text = _key(data), data.decode()
        to.write_bytes(_packed(key, resolve.load(str(path))[0], text))
        if _read(to, key, text) is None:
            raise RuntimeError(f"codegen: {to} cannot be read back; every define_op would read the entries instead")


class _Pickler(pickle.Pickler):
    """Leaves places out: faults are told of the caller's file, never of the library's. Formulas keep their texts alone,
    a third of the room; few of them are ever looked into. Long texts are places in the file of entries.
    """

    def __init__(self, to: IO[bytes], entries: str) -> None:
        super().__init__(to, protocol=5)
        self.entries = entries

    def persistent_id(self, o: Any) -> tuple[int, int] | None:
        if type(o) is not str or len(o) < 16 or (start := self.entries.find(o)) < 0:
            return None
        return start, start + len(o)

    def reducer_override(self, o: Any) -> Any:
        if type(o) is Loc:
            return Loc, (NOWHERE.line, NOWHERE.col)
        if type(o) is Formula and parse(o.text) == o.node:
            return copyreg.__newobj__, (Formula,), {"text": o.text}  # type: ignore[attr-defined]
        return NotImplemented


def _packed(key: str, model: OpFile, text: str) -> bytes:
    """Without the lines of the file, which are beside it, and without what only checks of its own entries read."""
    import io
    import lzma

    out = io.BytesIO()
    spare: dict[str, Any] = {"doc": "", "keys": {}, "end_line": 0, "ref": "", "test": TestSpec(), "special": ()}
    entries = tuple(replace(e, **spare) for e in model.entries)
    _Pickler(out, text).dump((key, replace(model, entries=entries, source=())))
    return lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME)


# Values of entries that pickle writes by the name of their type.
_VALUES = {"complex": complex, "frozenset": frozenset, "range": range, "set": set, "slice": slice}


class _Unpickler(pickle.Unpickler):
    """The generator is `codegen` in the source tree and `tensorplay.codegen` when installed; nothing else is loaded."""

    def __init__(self, of: IO[bytes], entries: str) -> None:
        super().__init__(of)
        self.entries = entries

    def persistent_load(self, place: tuple[int, int]) -> str:
        return self.entries[slice(*place)]

    def find_class(self, module: str, name: str) -> Any:
        if module == "builtins" and name in _VALUES:
            return _VALUES[name]
        root, _, own = module.rpartition(".")
        if root not in ("codegen", "tensorplay.codegen"):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a model")
        return getattr(importlib.import_module(f"{__package__}.{own}"), name)


def _read(file: Path, key: str, text: str) -> OpFile | None:
    try:
        import lzma

        with lzma.open(file) as f:
            of, found = _Unpickler(f, text).load()
    except Exception:  # absent, or cut short, or of another version: made anew
        return None
    return found if of == key and isinstance(found, OpFile) else None


def _key(data: bytes) -> str:
    h = hashlib.sha256(data)
    h.update(str(sys.version_info[:2]).encode())
    for p in sorted(Path(__file__).resolve().parent.glob("*.py")):
        h.update(p.read_bytes())
    return h.hexdigest()[:24]
