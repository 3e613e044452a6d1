"""ops.yaml -> the model, first half: the shape of every value. Names inside formulas are resolved by `resolve.py`.

Each fault is one diagnostic at its place; a faulty entry is left out, so that one fault does not breed others.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import formula as F
from . import signature, source
from .errors import Diagnostics, did_you_mean
from .model import (
    AMP, DTYPE_GROUPS, DTYPES, FAMILIES, HOMES, LINEAR, MULTILINEAR, NOWHERE, OPERATORS, PROMOTE, TOP, Base, Family, Formula,
    Like, Loc, Signature, Special, TensorCase, TestSpec, Type,
)  # fmt: skip
from .schema import CASE_KEYS, CASE_KINDS, KEYS, PER_OVERLOAD, SCHEMA_VERSION, TEST_KEYS
from .source import Bad, YMap, YNode, YScalar, YSeq

_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_PLACEHOLDER = re.compile(r"\b(TODO|FIXME|TBD|XXX)\b|^(\.\.\.|doc|description|\?+)\.?$", re.I)


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


def read(path: str, diags: Diagnostics) -> list[Raw]:
    """All entries of a file, converted."""
    text = source.read_text(path, diags)
    return [] if text is None else read_string(text, diags)


def read_string(text: str, diags: Diagnostics) -> list[Raw]:
    root = source.parse(text, diags)
    if root is None:
        return []
    if not isinstance(root, YMap):
        diags.add("E102", root.loc, "the file is not a mapping", "begin with 'schema: 1' and 'ops:'")
        return []
    for key, _ in root.items:
        if key.text not in ("schema", "ops"):
            diags.add(
                "E104", key.loc, f"unknown key '{_short(key.text)}'", did_you_mean(key.text, ("schema", "ops"), True)
            )
    version = root.get("schema")
    if version is None:
        diags.add("E105", Loc(1, 1), "no 'schema' key", "begin the file with 'schema: 1'")
    elif not isinstance(version, YScalar) or version.text != str(SCHEMA_VERSION):
        diags.add(
            "E109", version.loc, f"this generator reads schema {SCHEMA_VERSION}", "update the generator, or the file"
        )
    ops = root.get("ops")
    if ops is None:
        diags.add("E105", Loc(1, 1), "no 'ops' key", "list the entries under 'ops:'")
        return []
    if not isinstance(ops, YSeq):
        diags.add("E102", ops.loc, "'ops' is not a list", "each entry begins with '- op: name'")
        return []
    out = []
    for i, item in enumerate(ops.items):
        end = ops.items[i + 1].loc.line - 1 if i + 1 < len(ops.items) else len(diags.source)
        raw = _EntryReader(diags).read(item)
        if raw is not None:
            raw.end_line = end
            out.append(raw)
    return out


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


class _EntryReader:
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

    # ---- the entry ----

    def read(self, node: YNode) -> Raw | None:
        if not isinstance(node, YMap):
            self.fault("E102", node.loc, "an entry is a mapping", "write '- op: name' and its keys below")
            return None
        op_node = node.get("op")
        if isinstance(op_node, YScalar) and op_node.text:
            self.op = _short(op_node.text)
        at = op_node.loc if op_node else node.loc
        self.at = at
        for key, _ in node.items:
            if key.text not in KEYS:
                self.fault("E104", key.loc, f"unknown key '{_short(key.text)}'", did_you_mean(key.text, KEYS))
        missing = [k.name for k in KEYS.values() if k.required and node.get(k.name) is None]
        family_node = node.get("family")
        family_name = family_node.text if isinstance(family_node, YScalar) else ""
        if "like" in missing and family_name == "random":
            missing.remove("like")  # a draw has no reference; its moments are tested by hand
        for name in missing:
            self.fault("E105", at, f"no '{name}'", f"{name}: {KEYS[name].value}. {KEYS[name].doc}")
        if isinstance(op_node, YScalar):
            self.ident(op_node, "an op")
        elif op_node is not None:
            self.fault("E102", op_node.loc, "'op' is a name", "write 'op: name'")
        family = self.choice(family_node, FAMILIES, "family") if family_node else None
        sigs = self.signatures(node.get("sig"))
        if family is None or not sigs:
            return None
        self.sigs = sigs
        raw = Raw(self.op, FAMILIES[family], at, {k.text: k.loc for k, _ in node.items}, sigs)
        for key, value in node.items:
            name = key.text
            if name in ("op", "family", "sig") or name not in KEYS:
                continue
            if name in PER_OVERLOAD:
                raw.per_overload[name] = self.overloads(name, value, sigs)
            else:
                raw.values[name] = getattr(self, f"k_{name}")(value, raw)
        raw.bad = self.bad
        return raw

    def signatures(self, node: YNode | None) -> list[Signature]:
        if node is None:
            return []
        items = node.items if isinstance(node, YSeq) else (node,)
        out: list[Signature] = []
        for item in items:
            if not isinstance(item, YScalar):
                self.fault(
                    "E102", item.loc, "a signature is one line of text", "quote it, or one '- signature' per overload"
                )
                return []
            texts = [(item.text, item.loc)]
            if not item.one_line:
                if item.style != "|":
                    self.fault(
                        "E102", item.loc, "a signature must be one line", "put it on one line; overloads are a list"
                    )
                    return []
                # A block: one overload a line, indented by the first line's indentation.
                texts = self.block_lines(item)
            for text, loc in texts:
                try:
                    sig = signature.parse(text, loc)
                except signature.SignatureError as e:
                    self.fault(e.code, loc.at(e.start, e.end), e.message, e.hint)
                    return []
                if sig.name != self.op and _IDENT.match(self.op) and not keyword.iskeyword(self.op):
                    hint = f"write '{self.op}', or rename the op"
                    self.fault(
                        "E205",
                        loc.at(0, len(sig.name)),
                        f"the signature names '{sig.name}'",
                        hint,
                        [(self.at, "the op")],
                    )
                    return []
                out.append(sig)
        if not out:
            self.fault("E102", node.loc, "no signature", "write 'sig: name(Tensor input) -> Tensor out'")
        seen: dict[str, Loc] = {}
        for s in out:
            shape = str([(str(a.type), a.kwonly) for a in s.args])
            if shape in seen:
                self.fault(
                    "E206", s.loc, "two overloads take the same arguments", "drop one", [(seen[shape], "the first")]
                )
                return []
            seen[shape] = s.loc
        return out

    def block_lines(self, item: YScalar) -> list[tuple[str, Loc]]:
        out = []
        line = item.loc.line
        for text in item.text.split("\n"):
            line += 1
            if text.strip():
                full = self.diags.source[line - 1] if line <= len(self.diags.source) else text
                out.append((text.strip(), Loc(line, len(full) - len(full.lstrip()) + 1, len(text.strip()))))
        return out

    def overloads(self, name: str, value: YNode, sigs: list[Signature]) -> list[Any]:
        """One value per overload. A list is one each when there are several overloads."""
        convert: Callable[[YNode, list[Signature]], Any] = getattr(self, f"v_{name}")
        if isinstance(value, YSeq) and len(sigs) > 1:
            if len(value.items) != len(sigs):
                hint = f"give one for all, or a list of {len(sigs)} (None where there is none)"
                self.fault(
                    "E102", value.loc, f"'{name}' lists {len(value.items)} values for {len(sigs)} overloads", hint
                )
                return [None] * len(sigs)
            return [
                None
                if isinstance(v, YScalar) and v.text in ("None", "none", "null") and not v.style
                else convert(v, [s])
                for v, s in zip(value.items, sigs, strict=True)
            ]
        one = convert(value, sigs)
        return [one] * len(sigs)

    # ---- small conversions ----

    def scalar(self, node: YNode, what: str) -> YScalar | None:
        if isinstance(node, YScalar):
            return node
        self.fault(
            "E102", node.loc, f"{what} is a single value, not a {'list' if isinstance(node, YSeq) else 'mapping'}"
        )
        return None

    def ident(self, s: YScalar, what: str, dotted: bool = False) -> str | None:
        pattern = _DOTTED if dotted else _IDENT
        if not pattern.match(s.text) or any(keyword.iskeyword(p) for p in s.text.split(".")):
            self.fault(
                "E205", s.loc, f"'{_short(s.text)}' cannot name {what}", "letters, digits and _, not a Python keyword"
            )
            return None
        return s.text

    def choice(self, node: YNode, allowed: Mapping[str, Any] | tuple[str, ...], what: str) -> str | None:
        s = self.scalar(node, what)
        if s is None:
            return None
        if s.text not in allowed:
            hint = did_you_mean(s.text, allowed)
            hint = f"{hint} one of: {', '.join(allowed)}".strip()
            self.fault("E106", s.loc, f"{what} '{_short(s.text)}' is not known", hint)
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

    # ---- per-overload values ----

    def v_expr(self, node: YNode, sigs: list[Signature]) -> Formula | None:
        return self.formula(node, "expr")

    def v_kernel(self, node: YNode, sigs: list[Signature]) -> tuple[str, Loc] | None:
        s = self.scalar(node, "kernel")
        return (s.text, s.loc) if s is not None and self.ident(s, "a kernel") else None

    def v_shape(self, node: YNode, sigs: list[Signature]) -> tuple[Formula, ...]:
        items = node.items if isinstance(node, YSeq) else (node,)
        return tuple(f for f in (self.formula(x, "shape") for x in items) if f is not None)

    def _arg_formulas(self, key: str, node: YNode) -> dict[str, tuple[Formula, Loc]]:
        out = {}
        for k, v in self.mapping(node, key):
            f = self.formula(v, f"{key} of '{k.text}'")
            if f is not None:
                out[k.text] = (f, k.loc)
        return out

    def v_d(self, node: YNode, sigs: list[Signature]) -> dict[str, tuple[Formula, Loc]]:
        return self._arg_formulas("d", node)

    def v_vjp(self, node: YNode, sigs: list[Signature]) -> dict[str, tuple[Formula, Loc]]:
        return self._arg_formulas("vjp", node)

    def v_tangent(self, node: YNode, sigs: list[Signature]) -> Any:
        if isinstance(node, YScalar):
            return self.choice(node, (LINEAR, MULTILINEAR), "tangent")
        out: dict[str, Any] = {}
        for k, v in self.mapping(node, "tangent"):
            if isinstance(v, YMap):
                inner = {r.text: (f, r.loc) for r, x in v.items if (f := self.formula(x, f"tangent of '{k.text}'"))}
                out[k.text] = (inner, k.loc)
            else:
                f = self.formula(v, f"tangent of '{k.text}'")
                if f is not None:
                    out[k.text] = (f, k.loc)
        return out

    def v_compose(self, node: YNode, sigs: list[Signature]) -> list[tuple[str, Formula, Loc]]:
        if isinstance(node, YMap):
            pairs = [(k, self.formula(v, f"compose, '{k.text}'")) for k, v in node.items]
            return [(k.text, f, k.loc) for k, f in pairs if f is not None and self.ident(k, "a value")]
        f = self.formula(node, "compose")
        return [(sigs[0].results[0].name, f, node.loc)] if f is not None else []

    def v_like(self, node: YNode, sigs: list[Signature]) -> Like | None:
        if isinstance(node, YMap):
            return self._like_mapping(node)
        s = self.scalar(node, "like")
        if s is None:
            return None
        if not s.text.strip():
            self.fault("E108", s.loc, "like is empty", "name a reference: numpy.tanh, an expression, or {tests: file}")
            return None
        if re.fullmatch(r"(numpy|np|scipy|math|mpmath)(\.[A-Za-z_][A-Za-z0-9_]*)+", s.text):
            return Like("mpmath" if s.text.startswith("mpmath") else "name", s.text, loc=s.loc)
        try:
            tree = ast.parse(s.text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.fault(
                "E110", s.loc, "like is not a Python expression", "numpy.tanh, or an expression over the arguments"
            )
            return None
        uses = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        return Like("mpmath" if uses & {"mpmath", "mp"} else "expr", s.text.strip(), loc=s.loc)

    def _like_mapping(self, node: YMap) -> Like | None:
        keys = {k.text for k, _ in node.items}
        for k, _ in node.items:
            if k.text not in ("values", "source", "tests"):
                self.fault(
                    "E104",
                    k.loc,
                    f"like: unknown key '{_short(k.text)}'",
                    did_you_mean(k.text, ("values", "source", "tests"), True),
                )
                return None
        tests = node.get("tests")
        if keys == {"tests"} and isinstance(tests, YScalar):
            return Like("tests", tests.text, loc=tests.loc)
        rows, src = node.get("values"), node.get("source")
        if not isinstance(rows, YSeq) or not isinstance(src, YScalar) or not src.text.strip() or not rows.items:
            self.fault(
                "E102", node.loc, "like is {values: [[arguments..., result], ...], source: where from} or {tests: file}"
            )
            return None
        return Like("values", values=tuple(self.literal(r) for r in rows.items), source=src.text, loc=node.loc)

    def literal(self, node: YNode) -> Any:
        if isinstance(node, YSeq):
            return tuple(self.literal(x) for x in node.items)
        if isinstance(node, YScalar):
            return source.to_literal(node.text, bool(node.style))
        self.fault("E102", node.loc, "a mapping where a value was expected")
        return None

    # ---- entry-wide values ----

    def k_batch(self, node: YNode, raw: Raw) -> tuple[str, Loc] | None:
        s = self.scalar(node, "batch")
        return (s.text, s.loc) if s is not None and self.ident(s, "a batching rule") else None

    def k_home(self, node: YNode, raw: Raw) -> tuple[str, ...]:
        items = node.items if isinstance(node, YSeq) else (node,)
        return tuple(h for h in (self.choice(x, HOMES, "home") for x in items) if h) or (TOP,)

    def k_method(self, node: YNode, raw: Raw) -> tuple[str, ...]:
        if isinstance(node, YScalar) and node.text in ("true", "false", "True", "False"):
            return (raw.op,) if self.boolean(node, "method") else ()
        items = node.items if isinstance(node, YSeq) else (node,)
        return tuple(n for x in items if (s := self.scalar(x, "method")) and (n := self.ident(s, "a method")))

    def k_operator(self, node: YNode, raw: Raw) -> tuple[str, ...]:
        items = node.items if isinstance(node, YSeq) else (node,)
        return tuple(o for x in items if (o := self.choice(x, OPERATORS, "operator")))

    def k_out(self, node: YNode, raw: Raw) -> bool:
        return self.boolean(node, "out")

    def k_deterministic(self, node: YNode, raw: Raw) -> bool:
        return self.boolean(node, "deterministic")

    def k_nondiff(self, node: YNode, raw: Raw) -> Any:
        if isinstance(node, YScalar) and node.text in ("true", "false", "True", "False"):
            return self.boolean(node, "nondiff")
        return self.names(node, "nondiff")

    def k_zero(self, node: YNode, raw: Raw) -> list[tuple[str, Loc]]:
        return self.names(node, "zero")

    def k_todo(self, node: YNode, raw: Raw) -> dict[str, tuple[str, Loc]]:
        out = {}
        for k, v in self.mapping(node, "todo"):
            s = self.scalar(v, "todo")
            if s is not None and not s.text.strip():
                self.fault("E108", s.loc, f"todo of '{k.text}' gives no reason", "say what is missing")
            elif s is not None:
                out[k.text] = (s.text, k.loc)
        return out

    def k_view_of(self, node: YNode, raw: Raw) -> tuple[str, Loc] | None:
        s = self.scalar(node, "view_of")
        return (s.text, s.loc) if s else None

    def k_inplace(self, node: YNode, raw: Raw) -> str:
        s = self.scalar(node, "inplace")
        if s is None or s.text in ("false", "False"):
            return ""
        return {"True": "true"}.get(s.text, self.choice(node, ("true", "save_copy", "True", "false"), "inplace") or "")

    def k_promote(self, node: YNode, raw: Raw) -> str | None:
        return self.choice(node, PROMOTE, "promote")

    def k_amp(self, node: YNode, raw: Raw) -> str:
        return self.choice(node, AMP, "amp") or "keep"

    def k_dtypes(self, node: YNode, raw: Raw) -> tuple[str, ...]:
        out: list[str] = []
        for x in node.items if isinstance(node, YSeq) else (node,):
            c = self.choice(x, tuple(DTYPE_GROUPS) + DTYPES[1:], "dtype")
            out += DTYPE_GROUPS.get(c, (c,)) if c else ()
        return tuple(d for d in DTYPES if d in out)

    def k_aliases(self, node: YNode, raw: Raw) -> tuple[tuple[str, Loc], ...]:
        out = []
        for name, loc in self.names(node, "aliases"):
            if self.ident(YScalar(name, loc), "an alias", dotted=True):
                home = name.rpartition(".")[0]
                if home and home not in HOMES and home != "Tensor":
                    self.fault("E106", loc, f"alias '{name}': no home '{home}'", did_you_mean(home, HOMES, True))
                else:
                    out.append((name, loc))
        return tuple(out)

    def k_version(self, node: YNode, raw: Raw) -> int:
        s = self.scalar(node, "version")
        try:
            if s is not None and (v := source.to_int(s.text)) >= 1:
                return v
        except Bad:
            pass
        self.fault("E106", node.loc, "version is a whole number from 1")
        return 1

    def k_ref(self, node: YNode, raw: Raw) -> str:
        s = self.scalar(node, "ref")
        return s.text.strip() if s else ""

    def k_python(self, node: YNode, raw: Raw) -> str | None:
        s = self.scalar(node, "python")
        if s is None:
            return None
        module, _, name = s.text.partition(":")
        if not _DOTTED.match(module) or not _IDENT.match(name):
            self.fault(
                "E106", s.loc, f"python: '{_short(s.text)}' is not module:function", "tensorplay.nn._impl:function"
            )
            return None
        return s.text

    def k_doc(self, node: YNode, raw: Raw) -> tuple[str, Loc]:
        s = self.scalar(node, "doc")
        if s is None:
            return "", node.loc
        text = "\n".join(line.rstrip() for line in s.text.strip().split("\n"))
        if not text:
            self.fault("E108", s.loc, "doc is empty", "say in one line what the op computes")
        elif _PLACEHOLDER.search(text):
            self.fault("E108", s.loc, "doc is a placeholder", "say in one line what the op computes")
        elif len(text) < 10:
            self.fault("E108", s.loc, f"doc '{text}' says too little", "say in one line what the op computes")
        return text, s.loc

    def k_special(self, node: YNode, raw: Raw) -> tuple[Special, ...]:
        if not isinstance(node, YSeq):
            self.fault("E102", node.loc, "'special' is a list of mappings", "- {input: 0, out: 0, d_input: 0}")
            return ()
        sig_names = {x.name for s in raw.sigs for x in (*s.args, *s.results)}
        known = sig_names | {f"d_{a.name}" for s in raw.sigs for a in s.tensor_args}
        rows = []
        for item in node.items:
            values: dict[str, Any] = {}
            for k, v in self.mapping(item, "special") if isinstance(item, YMap) else []:
                if k.text not in known:
                    self.fault(
                        "E204",
                        k.loc,
                        f"special: '{_short(k.text)}' is not an argument, a result or d_<argument>",
                        did_you_mean(k.text, known, True),
                    )
                    continue
                value = self.literal(v)
                if isinstance(value, str) and k.text.startswith("d_"):
                    self.fault("E106", v.loc, f"special: '{_short(value)}' is not a number")
                    continue
                values[k.text] = value
            if not isinstance(item, YMap):
                self.fault("E102", item.loc, "a special row is a mapping", "- {input: 0, out: 0, d_input: 0}")
            rows.append(Special(values, item.loc))
        return tuple(rows)

    # ---- test ----

    def k_test(self, node: YNode, raw: Raw) -> TestSpec:
        args = {a.name: a.type for s in reversed(raw.sigs) for a in s.args}
        domains: dict[str, tuple[float, float]] = {}
        edges: dict[str, tuple[float, ...]] = {}
        params: dict[str, tuple[Any, ...]] = {}
        other: dict[str, Any] = {}
        for k, v in self.mapping(node, "test"):
            name = k.text
            if name in TEST_KEYS:
                if name == "edges":
                    edges = self._edges(v, args)
                else:
                    other[name] = getattr(self, f"_test_{name}")(v, raw, args)
            elif name not in args:
                self.fault(
                    "E204",
                    k.loc,
                    f"test: '{_short(name)}' is not an argument",
                    did_you_mean(name, (*args, *TEST_KEYS), True),
                )
            elif args[name].has_tensor:
                r = self._range(v, name)
                if r:
                    domains[name] = r
            else:
                params[name] = self._params(v, name, args[name])
        return TestSpec(domains, edges, params, loc=node.loc, **other)

    def _range(self, node: YNode, name: str) -> tuple[float, float] | None:
        if not isinstance(node, YSeq) or len(node.items) != 2:
            self.fault("E102", node.loc, f"the domain of '{name}' is [low, high]")
            return None
        lo, hi = (self.number(x, f"domain of '{name}'") for x in node.items)
        if lo is None or hi is None:
            return None
        if not lo < hi:
            self.fault("E106", node.loc, f"the domain of '{name}' is empty: [{lo:g}, {hi:g}]", "low comes first")
            return None
        return lo, hi

    def _params(self, node: YNode, name: str, ty: Type) -> tuple[Any, ...]:
        if not isinstance(node, YSeq):
            self.fault("E102", node.loc, f"values to try for '{name}' are a list")
            return ()
        return tuple(self._literal_for(x, name, ty) for x in node.items)

    def _edges(self, node: YNode, args: Mapping[str, Type]) -> dict[str, tuple[float, ...]]:
        def points(n: YNode) -> tuple[float, ...]:
            if not isinstance(n, YSeq):
                self.fault("E102", n.loc, "edges are a list of points, or {argument: points}")
                return ()
            return tuple(x for x in (self.number(i, "edges") for i in n.items) if x is not None)

        if not isinstance(node, YMap):
            return {"": points(node)}
        out = {}
        for k, v in node.items:
            if k.text not in args or not args[k.text].has_tensor:
                self.fault(
                    "E204",
                    k.loc,
                    f"edges: '{_short(k.text)}' is not a tensor argument",
                    did_you_mean(k.text, args, True),
                )
            else:
                out[k.text] = points(v)
        return out

    def _test_tol(self, node: YNode, raw: Raw, args: Any) -> float | None:
        return self.number(node, "tol")

    def _test_skip(self, node: YNode, raw: Raw, args: Any) -> dict[str, str]:
        out = {}
        for k, v in node.items if isinstance(node, YMap) else ():
            s = self.scalar(v, "skip")
            if s is None or not s.text.strip():
                self.fault("E108", k.loc, f"skip of '{_short(k.text)}' gives no reason", "skip: {gradgrad: why}")
            else:
                out[k.text] = s.text
        if not isinstance(node, YMap):
            self.fault("E102", node.loc, "'skip' is {test: reason}")
        return out

    def _test_shapes(self, node: YNode, raw: Raw, args: Any) -> tuple[tuple[int, ...], ...]:
        return tuple(
            s for x in (node.items if isinstance(node, YSeq) else (node,)) if (s := self._shape(x)) is not None
        )

    def _shape(self, node: YNode) -> tuple[int, ...] | None:
        value = self.literal(node)
        if not isinstance(value, tuple) or not all(
            isinstance(d, int) and not isinstance(d, bool) and 0 <= d < 10000 for d in value
        ):
            self.fault("E106", node.loc, f"'{_short(str(value))}' is not a shape", "a list of sizes: [2, 3]")
            return None
        return value

    def _test_cases(self, node: YNode, raw: Raw, args: Mapping[str, Type]) -> tuple[dict[str, Any], ...]:
        if not isinstance(node, YSeq):
            self.fault("E102", node.loc, "'cases' is a list of mappings", "- {input: [2, 3], dim: 0}")
            return ()
        out = []
        for item in node.items:
            case: dict[str, Any] = {}
            if not isinstance(item, YMap):
                self.fault("E102", item.loc, "a case is a mapping", "- {input: [2, 3], dim: 0}")
                continue
            for k, v in item.items:
                if k.text not in args:
                    self.fault(
                        "E204", k.loc, f"cases: '{_short(k.text)}' is not an argument", did_you_mean(k.text, args, True)
                    )
                    continue
                case[k.text] = self._value_for(v, k.text, raw)
            out.append(case)
        return tuple(out)

    def _literal_for(self, node: YNode, name: str, *types: Type) -> Any:
        """A plain value that fits the argument's type, in one overload at least."""
        value = self.literal(node)
        if isinstance(node, YScalar) and any(t.base is Base.STR and not t.optional for t in types):
            value = node.text  # 'none' is a word there
        if any(_fits(value, t) for t in types):
            return value
        shown = " or ".join(map(str, types))
        self.fault("E207", node.loc, f"{_short(repr(value))} is not a value of type {shown} for '{name}'")
        return None

    def _value_for(self, node: YNode, name: str, raw: Raw) -> Any:
        """A case's value: a tensor where an overload takes one and it is written as one, else a plain value."""
        types = list(dict.fromkeys(a.type for s in raw.sigs for a in s.args if a.name == name))
        tensors = [t for t in types if t.has_tensor]
        plain = [t for t in types if not t.has_tensor]
        if tensors and (not plain or not isinstance(node, YScalar)):
            return self._tensor_case(node, tensors[0])
        return self._literal_for(node, name, *plain)

    def _tensor_case(self, node: YNode, ty: Type) -> Any:
        if isinstance(node, YScalar):
            value = source.to_literal(node.text, bool(node.style))
            if value is None and (ty.optional or ty.optional_items):
                return None
            if isinstance(value, (int, float)) and not ty.is_list:
                return TensorCase((), ty.dtype, values=value)
            self.fault(
                "E106",
                node.loc,
                f"'{_short(node.text)}' is not a tensor",
                "a shape [2, 3], or {shape: [2, 3], kind: index}",
            )
            return None
        if ty.is_list:
            if not isinstance(node, YSeq):
                self.fault("E102", node.loc, "a list of tensors was expected", "[[2, 3], [4, 3]]")
                return ()
            one = Type(Base.TENSOR, optional=ty.optional_items)
            return tuple(self._tensor_case(x, one) for x in node.items)
        if isinstance(node, YSeq):
            shape = self._shape(node)
            return TensorCase(shape, ty.dtype) if shape is not None else None
        return self._tensor_mapping(node, ty)

    def _tensor_mapping(self, node: YMap, ty: Type) -> TensorCase | None:
        shape: tuple[int, ...] | None = None
        dtype, span, kind, values = ty.dtype, None, None, None
        for k, v in node.items:
            match k.text:
                case "shape":
                    shape = self._shape(v)
                case "dtype":
                    dtype = self.choice(v, DTYPES, "dtype")
                case "range":
                    span = self._range(v, "range")
                case "kind":
                    kind = self.choice(v, CASE_KINDS, "kind")
                case "values":
                    values = self.literal(v)
                case _:
                    self.fault(
                        "E104", k.loc, f"a tensor has no '{_short(k.text)}'", did_you_mean(k.text, CASE_KEYS, True)
                    )
        if values is not None:
            import numpy as np

            try:
                shape = np.asarray(values).shape
            except ValueError:
                self.fault("E106", node.loc, "values are not rectangular")
        if shape is None:
            self.fault("E105", node.loc, "a tensor needs a shape or values", "{shape: [2, 3]}")
            return None
        return TensorCase(shape, dtype, span, kind, values)


def _fits(value: Any, t: Type) -> bool:
    if value is None:
        return t.optional
    if isinstance(value, tuple):
        one = Type(t.base)
        return t.is_list and (t.size is None or len(value) == t.size) and all(_fits(v, one) for v in value)
    if t.is_list and t.size is None:
        return False
    match t.base:
        case Base.INT:
            return isinstance(value, int) and not isinstance(value, bool)
        case Base.BOOL:
            return isinstance(value, bool)
        case Base.FLOAT | Base.SCALAR:
            return isinstance(value, (int, float, complex))
        case Base.STR | Base.DTYPE | Base.DEVICE:
            return isinstance(value, str)
    return True
