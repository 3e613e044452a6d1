"""Located YAML: text -> tree of scalars, maps and lists that know line and column. Implicit types are ignored.

Conversion to numbers, booleans and literals happens on demand, by the schema. Knows nothing of ops.
"""

from __future__ import annotations

import ast
import math
import os
import re
from dataclasses import dataclass
from typing import Any

import yaml

from .errors import Diagnostics
from .model import NOWHERE, Loc

MAX_BYTES = 4 << 20
MAX_NESTING = 24
# What YAML does not take as text; its own message has no place.
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class YScalar:
    text: str
    loc: Loc  # of the first character inside the quotes
    style: str = ""  # '' plain, ' or " quoted, | or > block
    one_line: bool = True
    exact: bool = True  # columns of the text are columns of the file


@dataclass(frozen=True)
class YMap:
    items: tuple[tuple[YScalar, YNode], ...]
    loc: Loc

    def get(self, key: str) -> YNode | None:
        return next((v for k, v in self.items if k.text == key), None)

    def key(self, key: str) -> YScalar | None:
        return next((k for k, _ in self.items if k.text == key), None)


@dataclass(frozen=True)
class YSeq:
    items: tuple[YNode, ...]
    loc: Loc


YNode = YScalar | YMap | YSeq


def read_text(path: str, diags: Diagnostics) -> str | None:
    """The file as text, or one diagnostic."""

    def fail(what: str, hint: str = "") -> str | None:
        diags.add("E100", NOWHERE, what, hint)
        return None

    try:
        if os.path.isdir(path):
            return fail("is a folder", "name the file: --ops path/to/ops.yaml")
        size = os.path.getsize(path)
        if size > MAX_BYTES:
            return fail(f"is {size} bytes (limit {MAX_BYTES}): not a hand-written ops file", "split it into op packs")
        with open(path, "rb") as f:
            raw = f.read()
    except FileNotFoundError:
        return fail("no such file", "run from the project root, or name the file: --ops path/to/ops.yaml")
    except OSError as e:
        return fail(f"cannot be read: {e.strerror or e}")
    except ValueError as e:  # an embedded NUL in the path
        return fail(f"cannot be read: {e}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = raw.count(b"\n", 0, e.start) + 1
        return fail(f"is not UTF-8 text: byte 0x{raw[e.start]:02x} at line {line}", "save the file as UTF-8")
    return text


def _deeper(lines: list[str], at: int) -> bool:
    """Whether a line is a key that stands deeper than the one above it, which has a value on its own line."""
    above = next((line for line in reversed(lines[:at]) if line.strip()), "")
    key = re.match(r"([ -]*)[\w.]+:\s+\S", above)
    own = re.match(r"( *)[\w.]+:(\s|$)", lines[at])
    return bool(key and own and len(own[1]) > len(key[1]))


def parse(text: str, diags: Diagnostics) -> YNode | None:
    """The document as a tree, or diagnostics."""
    if not text.strip():
        diags.add("E101", NOWHERE, "is empty", "begin with 'schema: 1' and 'ops:'")
        return None
    diags.source = tuple(text.split("\n"))
    if odd := _CONTROL.search(text):
        line, start = text.count("\n", 0, odd.start()) + 1, text.rfind("\n", 0, odd.start()) + 1
        loc = Loc(line, odd.start() - start + 1)
        diags.add("E101", loc, f"not YAML: character {odd[0]!r} is not text", "delete it; is this the right file?")
        return None
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(diags).build(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        loc = Loc(mark.line + 1, mark.column + 1) if mark else NOWHERE
        at = text.split("\n")[mark.line] if mark else ""
        hint = "quote values that hold ': ', ' #', or start with * & ! { ["
        if "\t" in at[: len(at) - len(at.lstrip())] or at[loc.col - 1 : loc.col] == "\t":
            hint = "YAML takes no tab there; indent with spaces"
        elif mark and _deeper(text.split("\n"), mark.line):
            hint = "the line is indented deeper than the key above it, which has its value already; align the two"
        diags.add("E101", loc, f"not YAML: {e.problem or e.context}", hint)
    except yaml.YAMLError as e:
        detail = str(e).replace("\n", " ")
        diags.add("E101", NOWHERE, f"not YAML: {detail[:200]}")
    except _Refused:
        pass
    return None


class _Refused(Exception):
    """A diagnostic was added that ends the reading."""


class _Builder:
    """Builds the tree from parser events, iteratively: depth is bounded here and nowhere recursed."""

    def __init__(self, diags: Diagnostics) -> None:
        self.diags = diags

    def refuse(self, loc: Loc, message: str, hint: str = "") -> None:
        self.diags.add("E107", loc, message, hint)
        raise _Refused

    def build(self, events: Any) -> YNode:
        stack: list[tuple[str, Loc, list[YNode]]] = []
        root: YNode | None = None
        documents = 0
        for ev in events:
            loc = Loc(ev.start_mark.line + 1, ev.start_mark.column + 1)
            if getattr(ev, "anchor", None):
                self.refuse(
                    loc,
                    f"anchor or alias '{ev.anchor}'",
                    "write the value out; a value starting with * or & needs quotes",
                )
            if getattr(ev, "tag", None) not in (None, "!"):
                self.refuse(loc, f"tag '{ev.tag}'", "values have no tags; one that starts with ! needs quotes")
            done: YNode
            if isinstance(ev, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.refuse(loc, "a second document", "keep one document per file; drop '---'")
                continue
            if isinstance(ev, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                if len(stack) >= MAX_NESTING:
                    self.refuse(loc, f"nested more than {MAX_NESTING} deep")
                stack.append(("map" if isinstance(ev, yaml.MappingStartEvent) else "seq", loc, []))
                continue
            if isinstance(ev, yaml.ScalarEvent):
                done = self.scalar(ev, loc)
            elif isinstance(ev, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                kind, at, kids = stack.pop()
                done = self.mapping(kids, at) if kind == "map" else YSeq(tuple(kids), at)
            else:
                continue
            if stack:
                stack[-1][2].append(done)
            else:
                root = done
        if root is None:
            self.diags.add("E101", NOWHERE, "holds no YAML value", "begin with 'schema: 1' and 'ops:'")
            raise _Refused
        return root

    def scalar(self, ev: Any, loc: Loc) -> YScalar:
        style = ev.style or ""
        one_line = ev.start_mark.line == ev.end_mark.line
        quoted = style in ("'", '"')
        width = ev.end_mark.column - ev.start_mark.column - 2 * quoted if one_line else 1
        exact = one_line and width == len(ev.value)
        return YScalar(ev.value, Loc(loc.line, loc.col + quoted, max(1, width)), style, one_line, exact)

    def mapping(self, kids: list[YNode], loc: Loc) -> YMap:
        items: list[tuple[YScalar, YNode]] = []
        seen: dict[str, Loc] = {}
        for key, value in zip(kids[::2], kids[1::2], strict=True):
            if not isinstance(key, YScalar):
                self.refuse(key.loc, "a key that is a list or a mapping", "quote it")
                raise _Refused
            if key.text in seen:
                first = seen[key.text]
                self.diags.add(
                    "E103", key.loc, f"key '{key.text}' is given twice", "keep one", [(first, "first given here")]
                )
                continue
            seen[key.text] = key.loc
            items.append((key, value))
        return YMap(tuple(items), loc)


# ---- conversion of scalars, by schema -------------------------------------------------------------------------------

_WORDS = {
    "true": True, "True": True, "false": False, "False": False, "none": None, "None": None, "null": None,
    ".inf": math.inf, "-.inf": -math.inf, ".nan": math.nan,  # as YAML has them
    "inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "nan": math.nan, "-nan": math.nan,
    "pi": math.pi, "-pi": -math.pi, "e": math.e,
}  # fmt: skip


class Bad(ValueError):
    """A scalar that does not convert."""


def to_bool(text: str) -> bool:
    if text in ("true", "True"):
        return True
    if text in ("false", "False"):
        return False
    raise Bad(f"'{text}' is not true or false")


def to_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Bad(f"'{text[:60]}' is not an integer") from None


def to_number(text: str) -> float:
    """A float: 1e-3, inf, nan, pi, -2*pi and 1/3 are all fine."""
    try:
        word = _WORDS.get(text)
        return float(word) if isinstance(word, float) else float(text)
    except (ValueError, OverflowError):
        pass
    try:
        value = _arith(ast.parse(text[:200], mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
        raise Bad(f"'{text[:60]}' is not a number") from None
    if isinstance(value, complex):
        raise Bad(f"'{text[:60]}' is not a real number")
    return float(value)


def _arith(n: ast.AST) -> Any:
    """Numbers with + - * / ** and the constants pi, e, inf, nan; complex literals too."""
    match n:
        case ast.Constant(value=bool()):
            raise ValueError
        case ast.Constant(value=int() | float() | complex() as v):
            return v
        case ast.Name(id=i) if isinstance(_WORDS.get(i), float):
            return _WORDS[i]
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return -_arith(a)
        case ast.BinOp(left=a, op=op, right=b):
            x, y = _arith(a), _arith(b)
            if isinstance(op, ast.Add):
                return x + y
            if isinstance(op, ast.Sub):
                return x - y
            if isinstance(op, ast.Mult):
                return x * y
            if isinstance(op, ast.Div):
                return x / y
            if isinstance(op, ast.Pow) and abs(y) < 64:
                return x**y
    raise ValueError


def to_literal(text: str, quoted: bool = False) -> Any:
    """A Python literal: numbers, true/false/none in any spelling, strings, tuples and lists (as tuples)."""
    if quoted:
        return text
    if text in _WORDS:
        return _WORDS[text]
    try:
        value = ast.literal_eval(text.strip()[:4000])
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        try:
            return _arith(ast.parse(text.strip()[:200], mode="eval").body)
        except (SyntaxError, ValueError, TypeError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
            return text
    return _tuples(value)


def _tuples(v: Any) -> Any:
    return tuple(map(_tuples, v)) if isinstance(v, (list, tuple)) else v
