"""The signature grammar: `name(Tensor input, int[] dim=[], *, dtype? dtype=None) -> Tensor out`.

Text to Signature, faults located to the column. Knows nothing of YAML or formulas.
"""

from __future__ import annotations

import ast
import keyword
import re
from typing import Any

from .model import DTYPES, REQUIRED, Arg, Base, Loc, Result, Signature, Type

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<arrow>->)|(?P<punct>[()\[\],=*?<>|])"
    r"|(?P<number>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf\b))"
    r"|(?P<string>'[^'\\]*'|\"[^\"\\]*\"))"
)
_BASES = {b.value: b for b in Base}
RESERVED = frozenset({"self", "g", "t", "out_", "ctx"}) | frozenset(keyword.kwlist)


class SignatureError(Exception):
    """A fault in one signature; `start`, `end` are offsets in its text."""

    def __init__(self, message: str, start: int, end: int, hint: str = "", code: str = "E111") -> None:
        super().__init__(message)
        self.message, self.start, self.end, self.hint, self.code = message, start, max(end, start + 1), hint, code


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text = text
        self.items: list[tuple[str, str, int, int]] = []
        pos = 0
        while pos < len(text):
            if text[pos].isspace():
                pos += 1
                continue
            m = _TOKEN.match(text, pos)
            if not m or m.lastgroup is None:
                hint = "a signature reads: name(Tensor input, int n=1) -> Tensor out"
                raise SignatureError(f"unexpected character {text[pos]!r}", pos, pos + 1, hint)
            kind = m.lastgroup
            self.items.append((kind, m.group(kind), m.start(kind), m.end(kind)))
            pos = m.end()
        self.i = 0

    @property
    def now(self) -> tuple[str, str, int, int]:
        if self.i < len(self.items):
            return self.items[self.i]
        return ("end", "the end", len(self.text), len(self.text) + 1)

    def at(self, text: str) -> bool:
        return self.now[1] == text and self.now[0] in ("punct", "arrow", "name")

    def take(self, text: str) -> bool:
        if self.at(text):
            self.i += 1
            return True
        return False

    def expect(self, text: str, where: str) -> None:
        if not self.take(text):
            raise self.error(f"expected '{text}' {where}, found {self.found()}")

    def name(self, what: str) -> tuple[str, int, int]:
        kind, text, start, end = self.now
        if kind != "name":
            raise self.error(f"expected {what}, found {self.found()}")
        self.i += 1
        return text, start, end

    def found(self) -> str:
        return self.now[1] if self.now[0] == "end" else f"'{self.now[1]}'"

    def error(self, message: str, hint: str = "") -> SignatureError:
        return SignatureError(message, self.now[2], self.now[3], hint)


def parse(text: str, loc: Loc) -> Signature:
    """Parse one signature that begins at loc. Raises SignatureError and nothing else."""
    for i, ch in enumerate(text):
        if not " " <= ch <= "~":
            raise SignatureError(f"character {ch!r} is not ASCII text", i, i + 1)
    t = _Tokens(text)
    name, start, end = t.name("the name of the op")
    if keyword.iskeyword(name):
        raise SignatureError(f"'{name}' is a Python keyword", start, end, code="E205")
    t.expect("(", "after the name")
    args: list[Arg] = []
    kwonly = False
    while not t.at(")"):
        if args or kwonly:
            t.expect(",", "between arguments")
        if t.at("*"):
            if kwonly:
                raise t.error("'*' is given twice")
            t.i += 1
            kwonly = True
            if t.at(")"):
                raise t.error("nothing follows '*'", "drop it, or name the keyword-only arguments")
            continue
        args.append(_arg(t, kwonly, loc, args))
    t.expect(")", "after the arguments")
    t.expect("->", "and the results")
    results = _results(t, loc)
    if t.now[0] != "end":
        raise t.error(
            f"unexpected {t.found()} after the results", "several overloads: write a list, one signature a line"
        )
    _unique(args, results, loc)
    return Signature(name, tuple(args), tuple(results), text, loc.at(0, len(text)))


def _arg(t: _Tokens, kwonly: bool, loc: Loc, before: list[Arg]) -> Arg:
    ty = _type(t)
    starred = t.take("*")
    if starred:
        if ty != Type(Base.TENSOR):
            raise t.error(f"only 'Tensor *name' may come one by one, not {ty}")
        ty = Type(Base.TENSOR, is_list=True)
    name, start, end = t.name(f"a name after the type {ty}")
    if name in RESERVED:
        raise SignatureError(
            f"'{name}' cannot name an argument", start, end, "self, g, t and Python keywords are taken", "E206"
        )
    default: Any = REQUIRED
    if t.take("="):
        at = t.now[2]
        default = _default(t, ty)
        default = _fit(default, ty, name, at, t.items[t.i - 1][3])
    elif not kwonly and before and not before[-1].kwonly and not before[-1].required:
        raise SignatureError(
            f"'{name}' has no default but follows '{before[-1].name}' that has one", start, end,
            "give it a default or move it before", "E207",
        )  # fmt: skip
    return Arg(name, ty, default, kwonly, starred, loc.at(start, end))


def _type(t: _Tokens) -> Type:
    word, start, end = t.name("a type")
    if word not in _BASES:
        import difflib

        said = {"double": "float", "long": "int", "string": "str", "number": "Scalar"}.get(word)
        near = [said] if said else difflib.get_close_matches(word, _BASES, 1)
        hint = (f"did you mean '{near[0]}'? " if near else "") + f"types: {', '.join(_BASES)}, with ? or [] after"
        raise SignatureError(f"unknown type '{word}'", start, end, hint, "E207")
    base = _BASES[word]
    dtype = None
    or_scalar = optional = is_list = optional_items = False
    size = None
    if t.take("<"):
        dtype, s, e = t.name("a dtype")
        if base is not Base.TENSOR:
            raise SignatureError(f"only Tensor takes a dtype, not {word}", s, e, code="E207")
        if dtype not in DTYPES:
            raise SignatureError(f"unknown dtype '{dtype}'", s, e, f"dtypes: {', '.join(DTYPES)}", "E207")
        t.expect(">", "after the dtype")
    if t.take("|"):
        other, s, e = t.name("Scalar")
        if base is not Base.TENSOR or other != "Scalar":
            raise SignatureError("only Tensor|Scalar is a union", s, e, code="E207")
        or_scalar = True
    if t.take("?"):
        optional = True
    if t.at("["):
        t.i += 1
        is_list = True
        if t.now[0] == "number":
            try:
                size = int(t.now[1])
            except ValueError:
                raise t.error("a list size is a whole number") from None
            if not 1 <= size <= 8:
                raise t.error("a list size is 1 to 8")
            t.i += 1
        t.expect("]", "after the list type")
        optional_items, optional = optional, t.take("?")
        if base not in (Base.TENSOR, Base.INT, Base.FLOAT):
            raise SignatureError(f"no list of {word}", start, end, "lists: Tensor[] Tensor?[] int[] float[]", "E207")
        if optional_items and base not in (Base.TENSOR, Base.INT):
            message = f"only Tensor?[] and int?[] have items that may be absent, not {word}"
            raise SignatureError(message, start, end, code="E207")
    return Type(base, optional, is_list, size, optional_items, dtype, or_scalar)


def _default(t: _Tokens, ty: Type) -> Any:
    kind, text, start, end = t.now
    if kind in ("number", "string"):
        t.i += 1
        if text.lstrip("+-") == "inf":
            return float(text)
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError):
            raise SignatureError(f"{text} is not a Python literal", start, end) from None
    if kind == "name":
        t.i += 1
        words = {"None": None, "True": True, "False": False, "inf": float("inf"), "nan": float("nan")}
        if text in words:
            return words[text]
        hint = (
            f"write {text.capitalize()}"
            if text in ("true", "false", "none")
            else "None, True, False, a number, a 'string' or a list"
        )
        raise SignatureError(f"'{text}' is not a Python literal", start, end, hint)
    for opening, closing in ("[]", "()"):
        if t.take(opening):
            items: list[Any] = []
            while not t.at(closing):
                if items:
                    t.expect(",", "between the items")
                    if t.at(closing):
                        break
                items.append(_default(t, ty))
            t.expect(closing, "after the items")
            return tuple(items)
    raise t.error(f"expected a default value, found {t.found()}")


def _fit(v: Any, ty: Type, name: str, start: int, end: int) -> Any:
    """The default, converted to the type (an int for a float), or an error."""

    def bad() -> SignatureError:
        hint = f"write {ty}? to accept None" if v is None else ""
        return SignatureError(f"default {v!r} of '{name}' is not {_article(ty)}", start, end, hint, "E207")

    if v is None:
        if not ty.optional and ty.base is not Base.ANY:
            raise bad()
        return None
    for x in v if isinstance(v, tuple) else (v,):
        room = _room(x, ty)
        if room:
            hint = "write it as a float" if ty.base is not Base.INT and room == "64 bits" else ""
            raise SignatureError(f"default {x} of '{name}' does not fit {room}", start, end, hint, "E207")
    if ty.is_list:
        if not isinstance(v, tuple):
            if ty.size is None or not _is_item(v, ty.base):
                raise bad()
            return (v,) * ty.size
        if not all(_is_item(x, ty.base) for x in v) or (ty.size is not None and len(v) != ty.size):
            raise bad()
        return tuple(float(x) if ty.base is Base.FLOAT else x for x in v)
    if not _is_item(v, ty.base) and not (ty.or_scalar and _is_item(v, Base.SCALAR)):
        raise bad()
    return float(v) if ty.base is Base.FLOAT else v


def _room(v: Any, ty: Type) -> str:
    """What a whole number is too large for; empty where it fits."""
    if not isinstance(v, int) or isinstance(v, bool):
        return ""
    if ty.base is Base.FLOAT:
        try:
            float(v)
        except OverflowError:
            return "a double"
        return ""
    fits = ty.base is Base.ANY or -(1 << 63) <= v < 1 << 63
    return "" if fits else "64 bits"


def _is_item(v: Any, base: Base) -> bool:
    number = isinstance(v, (int, float)) and not isinstance(v, bool)
    match base:
        case Base.INT:
            return number and isinstance(v, int)
        case Base.FLOAT:
            return number
        case Base.SCALAR:
            return isinstance(v, (bool, int, float))
        case Base.BOOL:
            return isinstance(v, bool)
        case Base.STR | Base.DEVICE:
            return isinstance(v, str)
        case Base.DTYPE:
            return isinstance(v, str) and v in DTYPES
        case Base.ANY:
            return True
    return False


def _article(ty: Type) -> str:
    return f"{'an' if str(ty)[0] in 'aeiou' else 'a'} {ty}"


def _results(t: _Tokens, loc: Loc) -> list[Result]:
    if not t.take("("):
        return [_result(t, loc)]
    out = [_result(t, loc)]
    while t.take(","):
        out.append(_result(t, loc))
    t.expect(")", "after the results")
    return out


def _result(t: _Tokens, loc: Loc) -> Result:
    start = t.now[2]
    ty = _type(t)
    if ty.optional or ty.or_scalar or ty.base in (Base.DEVICE, Base.GENERATOR, Base.ANY):
        raise SignatureError(f"{ty} cannot be a result", start, t.items[t.i - 1][3], code="E207")
    name, s, e = t.name(f"a name after the result type {ty}")
    if name in RESERVED:
        raise SignatureError(f"'{name}' cannot name a result", s, e, "call a single result 'out'", "E206")
    return Result(name, ty, loc.at(s, e))


def _unique(args: list[Arg], results: list[Result], loc: Loc) -> None:
    seen: dict[str, str] = {}
    everything: list[Arg | Result] = [*args, *results]
    for x in everything:
        what = "an argument" if isinstance(x, Arg) else "a result"
        if x.name in seen:
            start = x.loc.col - loc.col
            raise SignatureError(
                f"'{x.name}' is already {seen[x.name]}", start, start + len(x.name), "give each its own name", "E206"
            )
        seen[x.name] = what
