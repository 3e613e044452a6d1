"""Entries given from Python: values with their places in the caller's source become the document that `load` reads.

A diagnostic then points into the caller's file; where the text has no place there (it was computed, or typed at a
prompt), it points into a document made of the values. Knows nothing of what an entry means beyond the defaults of keys
that only files must give: family, doc, like.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import formula as F
from . import kinds, signature
from .functions import CONSTANTS
from .model import NOWHERE, Loc, Signature
from .schema import KEYS
from .source import YMap, YNode, YScalar, YSeq

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """Where a value stands in the caller's file; `exact`: its characters are those of the line."""

    loc: Loc
    exact: bool


@dataclass
class Given:
    """One entry as Python values, and what is known of their places."""

    keys: dict[str, Any]
    places: dict[Path, Place] = field(default_factory=dict)
    made: bool = False  # its texts were made from the source at their places, and stand nowhere


@dataclass
class Document:
    root: YMap
    path: str
    lines: tuple[str, ...]


def complete(given: Given, tests: str) -> Given:
    """With what a file would have to say: op, family, doc, like. `tests`: where the ops are tested."""
    keys = {k: v for k, v in given.keys.items() if v is not None}
    sig = keys.get("sig")
    first = sig if isinstance(sig, str) else sig[0] if isinstance(sig, (list, tuple)) and sig else ""
    name = re.match(r"\s*([A-Za-z_]\w*)", str(first))
    out: dict[str, Any] = {"op": keys.get("op") or (name[1] if name else "op")}
    out["family"] = keys.get("family") or family_of(str(first), keys)
    out |= {k: v for k, v in keys.items() if k not in ("doc", "op", "family")}
    if "like" not in out and out["family"] != "random":
        out["like"] = {"tests": tests}
    out["doc"] = keys.get("doc") or default_doc(out)
    return Given(out, given.places, given.made)


def family_of(sig: str, keys: Mapping[str, Any]) -> str:
    """The family that the signature and the formula imply."""
    if "compose" in keys:
        return "composite"
    if "expr" not in keys:
        return "nn"
    try:
        s = signature.parse(sig, NOWHERE)
    except signature.SignatureError:
        return "unary"
    tensors = sum(a.type.is_tensor for a in s.args)
    expr = keys["expr"]
    if isinstance(expr, str) and tensors <= 3 and _is_bool(expr, s):
        return "comparison"
    return {0: "unary", 1: "unary", 2: "binary", 3: "ternary"}.get(tensors, "pointwise")


def _is_bool(expr: str, s: Signature) -> bool:
    try:
        return kinds.of(F.parse(expr), {a.name: kinds.of_type(a.type) for a in s.args}) == "bool"
    except F.FormulaError:
        return False


def default_doc(keys: Mapping[str, Any]) -> str:
    formula = keys.get("expr") or keys.get("compose")
    if isinstance(formula, str):
        return f"Computes {formula}."
    if isinstance(formula, Mapping) and formula:
        return "Computes " + ", ".join(f"{k} = {v}" for k, v in formula.items()) + "."
    return f"The op {keys['op']}, computed by a kernel of its own."


# ---- places ---------------------------------------------------------------------------------------------------------


def places_in_call(filename: str, line: int, end_line: int, col: int, end_col: int) -> dict[Path, Place]:
    """Places of the arguments of the call that spans these positions; {} where the source is not to be had."""
    text = "".join(linecache.getlines(filename))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    span = (line, end_line, col, end_col)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and span == (
            node.lineno, node.end_lineno, node.col_offset, node.end_col_offset,
        ):  # fmt: skip
            return places_of(node, text.split("\n"))
    return {}


def places_of(call: ast.Call, lines: Sequence[str]) -> dict[Path, Place]:
    """Places of the arguments of a call: of the first, the signature; of the others and of their names."""
    out: dict[Path, Place] = {}
    if call.args:
        _places(call.args[0], ("sig",), lines, out)
    for k in call.keywords:
        if k.arg:
            out[k.arg, "#key"] = Place(Loc(k.lineno, _column(k, lines), len(k.arg)), True)
            _places(k.value, (k.arg,), lines, out)
    return out


def _column(node: ast.expr | ast.keyword, lines: Sequence[str]) -> int:
    return len(lines[node.lineno - 1].encode()[: node.col_offset].decode(errors="replace")) + 1  # ast counts bytes


def _places(node: ast.expr, path: Path, lines: Sequence[str], out: dict[Path, Place]) -> None:
    match node:
        case ast.Dict(keys=keys, values=values):
            for k, v in zip(keys, values, strict=True):
                if isinstance(k, ast.Constant) and isinstance(k.value, str):
                    _places(k, (*path, k.value, "#key"), lines, out)
                    _places(v, (*path, k.value), lines, out)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for i, v in enumerate(items):
                _places(v, (*path, i), lines, out)
    out[path] = _place(node, lines)


def _place(node: ast.expr, lines: Sequence[str]) -> Place:
    line, col = lines[node.lineno - 1], _column(node, lines) - 1
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        at = line.find(node.value, col)
        if 0 <= at - col <= 5 and "\n" not in node.value:  # behind a prefix and the quotes
            return Place(Loc(node.lineno, at + 1, len(node.value)), True)
        return Place(Loc(node.lineno, col + 1, 1), False)
    width = (node.end_col_offset or 0) - node.col_offset if node.end_lineno == node.lineno else 1
    return Place(Loc(node.lineno, col + 1, max(1, width)), not isinstance(node, ast.Constant) or "\n" not in repr(node))


# ---- the document ---------------------------------------------------------------------------------------------------


def document(entries: Sequence[Given], filename: str, name: str) -> Document:
    """The entries as a located document: in the caller's file where every text stands there, else one of its own."""
    lines = tuple(line.rstrip("\n") for line in linecache.getlines(filename))
    if lines and all(g.made or _all_located(g.keys, (), g.places) for g in entries):
        nodes = [_Located(g).mapping(g.keys, ()) for g in entries]
        path = filename
    else:
        written = _Written()
        nodes = [written.entry(g.keys) for g in entries]
        lines, path = tuple(written.lines), name
    ops = YSeq(tuple(nodes), NOWHERE)
    return Document(YMap(((_key("schema"), _key("1")), (_key("ops"), ops)), NOWHERE), path, lines)


def _key(text: str) -> YScalar:
    return YScalar(text, Loc(1, 1, 1))


_TEXTS = ("sig", "expr", "d", "vjp", "compose", "tangent")


def _all_located(value: Any, path: Path, places: Mapping[Path, Place]) -> bool:
    """Whether every formula and signature stands in the caller's source, character by character."""
    if isinstance(value, Mapping):
        keys = [k for k in value if path or k in _TEXTS]
        return all(_all_located(value[k], (*path, k), places) for k in keys)
    if isinstance(value, (list, tuple)):
        return all(_all_located(v, (*path, i), places) for i, v in enumerate(value))
    return not isinstance(value, str) or (path in places and places[path].exact)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


class _Located:
    """Values at their places; what has none (a default) stands at the signature."""

    def __init__(self, given: Given) -> None:
        self.places = given.places
        self.fallback = given.places.get(("sig",), Place(Loc(1, 1), False)).loc

    def node(self, value: Any, path: Path) -> YNode:
        place = self.places.get(path)
        loc = place.loc if place else Loc(self.fallback.line, self.fallback.col, 1)
        if isinstance(value, Mapping):
            return self.mapping(value, path, loc)
        if isinstance(value, (list, tuple)):
            return YSeq(tuple(self.node(v, (*path, i)) for i, v in enumerate(value)), loc)
        text = _text(value)
        exact = place is not None and place.exact and place.loc.width == len(text)
        return YScalar(text, loc, "'" if isinstance(value, str) and path[0] == "test" else "", "\n" not in text, exact)

    def mapping(self, value: Mapping[Any, Any], path: Path, loc: Loc | None = None) -> YMap:
        items = []
        for k, v in value.items():
            at = self.places.get((*path, k, "#key")) or self.places.get((*path, k))
            where = at.loc if at else Loc(self.fallback.line, self.fallback.col, 1)
            items.append((YScalar(str(k), where), self.node(v, (*path, k))))
        return YMap(tuple(items), loc or self.fallback)


class _Written:
    """Values written down, one line each, so that a diagnostic has something to point at."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def entry(self, keys: Mapping[str, Any]) -> YMap:
        items = []
        for k, v in keys.items():
            items.append((YScalar(k, Loc(len(self.lines) + 1, 1, len(k))), self.value(k, v, "")))
        return YMap(tuple(items), Loc(1, 1))

    def value(self, key: Any, value: Any, indent: str) -> YNode:
        head = f"{indent}{key}: "
        line = len(self.lines) + 1
        loc = Loc(line, len(head) + 1)
        if isinstance(value, Mapping):
            self.lines.append(head.rstrip())
            inner = indent + "  "
            items = []
            for k, v in value.items():
                at = Loc(len(self.lines) + 1, len(inner) + 1, len(str(k)))
                items.append((YScalar(str(k), at), self.value(k, v, inner)))
            return YMap(tuple(items), loc)
        if isinstance(value, (list, tuple)):
            self.lines.append(head.rstrip())
            return YSeq(tuple(self.value("-", v, indent + "  ") for v in value), loc)
        text = _text(value)
        self.lines.append(head + text.split("\n")[0])
        width = max(1, len(text)) if "\n" not in text else 1
        return YScalar(text, Loc(line, len(head) + 1, width), "", "\n" not in text, "\n" not in text)


KNOWN = frozenset(KEYS)
__all__ = ["CONSTANTS", "KNOWN", "Document", "Given", "Place", "complete", "document", "places_in_call", "places_of"]
