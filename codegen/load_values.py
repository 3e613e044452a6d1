"""Reading single values of an entry: names, choices, numbers, formulas; each fault is one diagnostic at its place."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import formula as F
from . import source
from .errors import Diagnostics, did_you_mean
from .model import (
    NOWHERE,
    Family,
    Formula,
    Loc,
    Signature,
)  # fmt: skip
from .schema import KEYS
from .source import Bad, YMap, YNode, YScalar, YSeq

IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
PLACEHOLDER = re.compile(r"\b(TODO|FIXME|TBD|XXX)\b|^(\.\.\.|doc|description|\?+)\.?$", re.I)


# Dtypes as NumPy and C++ spell them.
SPELLED = {f"{word}{n}": f"{word[0]}{n}" for word in ("float", "int", "uint") for n in (8, 16, 32, 64)}
SPELLED |= {"complex64": "c64", "complex128": "c128", "bfloat16": "bf16", "double": "f64", "half": "f16", "long": "i64"}


@dataclass
class Raw:
    """One entry with its values converted, before names are resolved. Mutable: resolve consumes it."""

    op: str
    family: Family
    loc: Loc
    keys: dict[str, Loc]
    sigs: list[Signature]
    values: dict[str, Any] = field(default_factory=dict)  # entry-wide values
    per_overload: dict[str, list[Any]] = field(default_factory=dict)  # key -> one value per overload (or None)
    end_line: int = 0
    bad: bool = False  # a key of it was refused


def short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


class Reader:
    """Conversions that every key uses."""

    def __init__(self, diags: Diagnostics) -> None:
        self.diags = diags
        self.op = "?"
        self.bad = False
        self.at = NOWHERE
        self.sigs: list[Signature] = []

    def fault(self, code: str, loc: Loc, message: str, hint: str = "", notes: Any = ()) -> None:
        self.bad = True
        if code in ("E204", "E207") and not notes:
            notes = [(s.loc, "the signature") for s in self.sigs]
        self.diags.add(code, loc, f"op '{self.op}': {message}" if self.op != "?" else message, hint, notes)

    def scalar(self, node: YNode, what: str) -> YScalar | None:
        if isinstance(node, YScalar):
            return node
        self.fault(
            "E102", node.loc, f"{what} is a single value, not a {'list' if isinstance(node, YSeq) else 'mapping'}"
        )
        return None

    def ident(self, s: YScalar, what: str, dotted: bool = False) -> str | None:
        pattern = DOTTED if dotted else IDENT
        if not pattern.match(s.text) or any(keyword.iskeyword(p) for p in s.text.split(".")):
            self.fault(
                "E205", s.loc, f"'{short(s.text)}' cannot name {what}", "letters, digits and _, not a Python keyword"
            )
            return None
        return s.text

    def choice(self, node: YNode, allowed: Mapping[str, Any] | tuple[str, ...], what: str) -> str | None:
        s = self.scalar(node, what)
        if s is None:
            return None
        if s.text not in allowed:
            ours = SPELLED.get(s.text)
            hint = f"write {ours};" if ours in allowed else did_you_mean(s.text, allowed)
            hint = f"{hint} one of: {', '.join(allowed)}".strip()
            self.fault("E106", s.loc, f"{what} '{short(s.text)}' is not known", hint)
            return None
        return s.text

    def names(self, node: YNode, what: str) -> list[tuple[str, Loc]]:
        """A name or a list of names."""
        out = []
        for item in node.items if isinstance(node, YSeq) else (node,):
            s = self.scalar(item, what)
            if s is not None:
                out.append((s.text, s.loc))
        return out

    def boolean(self, node: YNode, what: str) -> bool:
        s = self.scalar(node, what)
        if s is None:
            return False
        try:
            return source.to_bool(s.text)
        except Bad as e:
            self.fault("E106", s.loc, f"{what}: {e}", "write true or false")
            return False

    def number(self, node: YNode, what: str) -> float | None:
        s = self.scalar(node, what)
        if s is None:
            return None
        try:
            return source.to_number(s.text)
        except Bad as e:
            self.fault("E106", s.loc, f"{what}: {e}")
            return None

    def formula(self, node: YNode, what: str) -> Formula | None:
        s = self.scalar(node, what)
        if s is None:
            return None
        if not s.one_line:
            self.fault("E110", s.loc, f"{what}: a formula must be one line", "put it on one line")
            return None
        try:
            return Formula(s.text, F.parse(s.text), s.loc)
        except F.FormulaError as e:
            loc = s.loc.at(*e.span) if s.exact else s.loc
            self.fault("E110", loc, f"{what}: {e.message}", e.hint)
            return None

    def mapping(self, node: YNode, what: str) -> list[tuple[YScalar, YNode]]:
        if isinstance(node, YMap):
            return list(node.items)
        self.fault(
            "E102", node.loc, f"'{what}' is a mapping", f"{what}: {KEYS[what].value if what in KEYS else 'key: value'}"
        )
        return []

    def literal(self, node: YNode) -> Any:
        if isinstance(node, YSeq):
            return tuple(self.literal(x) for x in node.items)
        if isinstance(node, YScalar):
            return source.to_literal(node.text, bool(node.style))
        self.fault("E102", node.loc, "a mapping where a value was expected")
        return None
