"""Diagnostics: collected, located, shown with the source line, a caret and a hint. Knows nothing of ops."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from .model import NOWHERE, Loc

CODES = {
    # E1xx: the shape of the YAML
    "E100": "the file cannot be read",
    "E101": "not YAML",
    "E102": "wrong shape: a mapping, a list or a scalar was expected",
    "E103": "a key given twice",
    "E104": "unknown key",
    "E105": "a key that must be there is missing",
    "E106": "a value that is not one of those allowed",
    "E107": "YAML features not used here: anchors, aliases, tags, several documents, deep nesting",
    "E108": "a documentation text that is empty or a placeholder",
    "E109": "unknown schema version",
    "E110": "formula syntax",
    "E111": "signature syntax",
    # E2xx: names and types
    "E201": "unknown name in a formula",
    "E202": "unknown function",
    "E203": "wrong number or name of arguments in a call",
    "E204": "a key that is neither an argument nor a result",
    "E205": "the name of an op, argument or result",
    "E206": "a name used twice, or reserved",
    "E207": "a type that does not fit",
    "E208": "keys that do not go together, or not with this family",
    "E210": "the number of operands of the family",
    "E211": "an argument that nothing reads",
    "E212": "arguments listed in another order than the signature's",
    # E3xx: the meaning of derivatives
    "E301": "an in-place form that overwrites what the derivative reads",
    "E302": "silence about a tensor argument",
    "E303": "an argument spoken for twice",
    "E304": "a derivative where there is none",
    "E305": "no derivative can be derived",
    "E306": "an in-place form that cannot be",
    "E307": "a gradient formula that does not read the gradient",
    "E310": "an explicit derivative that differs from that of expr",
    "E311": "a vjp that differs from differences of the reference",
    "E312": "a shape that differs from the reference",
    "E313": "a special row that the formulas contradict",
    "E314": "values that differ from the reference",
    "E315": "a tangent that differs from the differences of the reference",
    "E316": "a kink where the derivative is not decided",
    "E317": "a value at a single point, whose derivative is not the function's",
    # E4xx: across ops
    "E401": "an op defined twice",
    "E402": "a name, method or operator claimed by two ops",
    "E403": "the documentation of another op",
    "E404": "a kernel that no header declares, or a Python function that no module defines",
    "E405": "a kernel that no entry reaches",
    "E406": "ops defined through each other",
    "E407": "a named rule that is not declared",
    "E408": "a kernel, or a Python function, whose parameters are not those of the signature",
    "E409": "a formula that has no C++ form",
}


MAX_NOTES = 6


@dataclass(frozen=True)
class Diagnostic:
    code: str
    loc: Loc
    message: str
    hint: str = ""
    notes: tuple[tuple[Loc, str], ...] = ()  # other places that take part in the contradiction

    @property
    def lines(self) -> set[int]:
        return {self.loc.line} | {loc.line for loc, _ in self.notes}


class Diagnostics:
    """Collects; nothing is written while there is one."""

    def __init__(self, path: str, source: tuple[str, ...] = ()) -> None:
        self.path = path
        self.source = source
        self.items: list[Diagnostic] = []

    def add(self, code: str, loc: Loc, message: str, hint: str = "", notes: Iterable[tuple[Loc, str]] = ()) -> None:
        """A note of what the entry does not say (it has no place) is left out."""
        if code not in CODES:
            raise KeyError(f"{code} is not in errors.CODES")
        d = Diagnostic(code, loc, message, hint, tuple(n for n in notes if n[0] != NOWHERE))
        if d not in self.items:
            self.items.append(d)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def sorted(self) -> list[Diagnostic]:
        return sorted(self.items, key=lambda d: (d.loc, d.code, d.message))

    def render(self, limit: int = 50) -> str:
        shown = self.sorted()
        out = [self._render_one(d) for d in shown[:limit]]
        if len(shown) > limit:
            out.append(f"... and {len(shown) - limit} more")
        n = len(shown)
        out.append(f"{self.path}: {n} error{'s' * (n != 1)}, nothing written")
        return "\n".join(out)

    def _render_one(self, d: Diagnostic) -> str:
        if d.loc == NOWHERE:
            return f"{self.path}: error[{d.code}]: {d.message}" + (f"\n  hint: {d.hint}" if d.hint else "")
        out = [f"{self.path}:{d.loc.line}:{d.loc.col}: error[{d.code}]: {d.message}"]
        out += self._excerpt(d.loc, "^")
        for loc, text in d.notes[:MAX_NOTES]:
            out.append(f"  note: {self.path}:{loc.line}:{loc.col}: {text}")
        if len(d.notes) > MAX_NOTES:
            out.append(f"  note: and {len(d.notes) - MAX_NOTES} more places take part")
        if d.hint:
            out.append(f"  hint: {d.hint}")
        return "\n".join(out)

    def _excerpt(self, loc: Loc, mark: str) -> list[str]:
        if not 1 <= loc.line <= len(self.source):
            return []
        text = self.source[loc.line - 1].rstrip().replace("\t", " ")
        col = min(loc.col, len(text) + 1)
        width = max(1, min(loc.width, len(text) - col + 1))
        # Long lines are cut around the caret, so that noise stays readable.
        start = max(0, col - 80) if len(text) > 160 else 0
        shown = text[start : start + 160]
        return [f"{loc.line:6} | {shown}", f"       | {' ' * (col - 1 - start)}{mark * min(width, 160)}"]


def did_you_mean(name: str, known: Iterable[str], scope: bool = False) -> str:
    """A hint: the nearest known name; with `scope`, also what there is."""
    pool = sorted(set(known))
    near = difflib.get_close_matches(name, pool, 1, 0.6)
    parts = [f"did you mean '{near[0]}'?"] if near else []
    if scope and len(pool) <= 24:
        parts.append(f"in scope: {', '.join(pool) or 'nothing'}")
    return " ".join(parts)
