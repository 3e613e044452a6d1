"""Names that the generated C++ says itself: an op or an argument of that name gets another one there.

Read from the generator's own templates and texts, so that no list can be out of date. Names that the library's ops have
are in its C++ as they are, and stay.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .base import library_path

# Lower-case macros of the headers; other macros are spelled in capitals.
_MACROS = frozenset({"assert", "errno", "linux", "stderr", "stdin", "stdout", "unix"})
_WORD = re.compile(r"[A-Za-z_]\w*")
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_SLOT = re.compile(r"\{[^{}]*\}")
_SIGNATURE = re.compile(r"^\s+(?:-\s+)?(?:sig:\s*)?'?(\w+)(\(.*\).*->.*)$", re.MULTILINE)
_STEP = re.compile(r"(?:^\s+(?:-\s+)?|[{,]\s*)(\w+):", re.MULTILINE)  # of a composition, or a key


@cache
def _library_names() -> tuple[frozenset[str], frozenset[str]]:
    """Of its ops, and of their arguments, results and steps."""
    path = library_path()
    text = path.read_text(encoding="utf-8") if path else ""
    sigs = _SIGNATURE.findall(text)
    variables = {w for _, rest in sigs for w in _WORD.findall(rest)} | {m[1] for m in _STEP.finditer(text)}
    return frozenset(op for op, _ in sigs), frozenset(variables | {"g", "t"})


@cache
def _own_words() -> frozenset[str]:
    here = Path(__file__).parent
    found: set[str] = set()
    for path in sorted((here / "templates").glob("*.j2")):
        found.update(_WORD.findall(path.read_text(encoding="utf-8")))
    for path in sorted(here.glob("*.py")):
        if path.name.startswith("plan") or path.name in ("cpp_types.py", "functions.py", "render.py"):
            for m in _TEXT.finditer(path.read_text(encoding="utf-8")):
                found.update(_WORD.findall(_SLOT.sub(" ", m[1])))
    return frozenset(found)


def _said(name: str) -> bool:
    return name in _own_words() or name in _MACROS or (name.isupper() and len(name) > 1)


@cache
def reserved(name: str) -> bool:
    """Whether the generated C++ may mean something else by the name of a variable."""
    return name not in _library_names()[1] and _said(name)


@cache
def reserved_op(name: str) -> bool:
    return name not in _library_names()[0] and _said(name)
