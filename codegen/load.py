"""ops.yaml -> the model, first half: the shape of every value. Names inside formulas are resolved by `resolve.py`.

Each fault is one diagnostic at its place; a faulty entry is left out, so that one fault does not breed others.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable
from typing import Any

from . import signature, source
from .errors import Diagnostics, did_you_mean
from .load_keys import KeyReader
from .load_values import IDENT, Raw, short
from .model import (
    FAMILIES,
    LINEAR,
    MULTILINEAR,
    Formula,
    Like,
    Loc,
    Signature,
)  # fmt: skip
from .schema import KEYS, PER_OVERLOAD, SCHEMA_VERSION
from .source import YMap, YNode, YScalar, YSeq


def read(path: str, diags: Diagnostics) -> list[Raw]:
    """All entries of a file, converted."""
    text = source.read_text(path, diags)
    return [] if text is None else read_string(text, diags)


def read_string(text: str, diags: Diagnostics) -> list[Raw]:
    root = source.parse(text, diags)
    return [] if root is None else read_root(root, diags)


def read_root(root: YNode, diags: Diagnostics) -> list[Raw]:
    """All entries of a document, however it came to be."""
    if not isinstance(root, YMap):
        diags.add("E102", root.loc, "the file is not a mapping", "begin with 'schema: 1' and 'ops:'")
        return []
    for key, _ in root.items:
        if key.text not in ("schema", "ops"):
            diags.add(
                "E104", key.loc, f"unknown key '{short(key.text)}'", did_you_mean(key.text, ("schema", "ops"), True)
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
    if isinstance(ops, YScalar) and ops.text == "" and not ops.style:
        return []  # a list that nothing was written below yet
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


class _EntryReader(KeyReader):
    """Reads one entry; values that may differ by overload are `v_<key>`."""

    def read(self, node: YNode) -> Raw | None:
        if not isinstance(node, YMap):
            self.fault("E102", node.loc, "an entry is a mapping", "write '- op: name' and its keys below")
            return None
        op_node = node.get("op")
        if isinstance(op_node, YScalar) and op_node.text:
            self.op = short(op_node.text)
        at = op_node.loc if op_node else node.loc
        self.at = at
        for key, _ in node.items:
            if key.text not in KEYS:
                self.fault("E104", key.loc, f"unknown key '{short(key.text)}'", did_you_mean(key.text, KEYS))
        missing = [k.name for k in KEYS.values() if k.required and node.get(k.name) is None]
        family_node = node.get("family")
        family_name = family_node.text if isinstance(family_node, YScalar) else ""
        if "like" in missing and family_name == "random":
            missing.remove("like")  # a draw has no reference; its moments are tested by hand
        for name in missing:
            known = f" One of: {', '.join(FAMILIES)}" if name == "family" else ""
            self.fault("E105", at, f"no '{name}'", f"{name}: {KEYS[name].value}. {KEYS[name].doc}{known}")
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
                    if e.code == "E205" and keyword.iskeyword(self.op):
                        return []  # said of the op's name
                    self.fault(e.code, loc.at(e.start, e.end), e.message, e.hint)
                    return []
                if sig.name != self.op and IDENT.match(self.op) and not keyword.iskeyword(self.op):
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

    def v_compose(self, node: YNode, sigs: list[Signature]) -> list[tuple[str, Formula | None, Loc]]:
        """A value whose formula was refused keeps its name: others read it."""
        if isinstance(node, YMap):
            pairs = [(k, self.formula(v, f"compose, '{k.text}'")) for k, v in node.items]
            return [(k.text, f, k.loc) for k, f in pairs if self.ident(k, "a value")]
        return [(sigs[0].results[0].name, self.formula(node, "compose"), node.loc)]

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
                    f"like: unknown key '{short(k.text)}'",
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
