"""The keys of an entry that hold for all its overloads, one method each (`k_<key>`)."""

from __future__ import annotations

import re
from typing import Any

from . import source
from .errors import did_you_mean
from .load_tests import TestReader
from .load_values import DOTTED, IDENT, PLACEHOLDER, Raw, short
from .model import (
    AMP,
    DTYPE_GROUPS,
    DTYPES,
    HOMES,
    OPERATORS,
    PROMOTE,
    TOP,
    Base,
    Formula,
    Loc,
    Special,
    Type,
)  # fmt: skip
from .source import Bad, YMap, YNode, YScalar, YSeq


class KeyReader(TestReader):
    """Entry-wide values."""

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
        return "true" if s.text == "True" else self.choice(node, ("true", "save_copy", "false"), "inplace") or ""

    def k_promote(self, node: YNode, raw: Raw) -> str | None:
        return self.choice(node, PROMOTE, "promote")

    def k_amp(self, node: YNode, raw: Raw) -> str:
        return self.choice(node, AMP, "amp") or "keep"

    def k_dtypes(self, node: YNode, raw: Raw) -> tuple[str, ...]:
        out: list[str] = []
        if isinstance(node, YSeq) and not node.items:
            self.fault("E106", node.loc, "dtypes lists none: an op takes some", "drop it, or say which")
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

    def k_require(self, node: YNode, raw: Raw) -> tuple[tuple[Formula, str, str, tuple[Formula, ...], Loc], ...]:
        out = []
        for k, v in self.mapping(node, "require"):
            test, s = self.formula(k, "require"), self.scalar(v, "require")
            if test is None or s is None:
                continue
            error, text = "Value", s.text
            if m := re.match(r"(Type|Index|Runtime|NotImplemented)Error: ", text):
                error, text = m[1], text[m.end() :]
            shown = [self.formula(YScalar(part, s.loc), "require") for part in re.findall(r"\{([^{}]+)\}", text)]
            message = re.sub(r"\{[^{}]+\}", "{}", text)
            out.append((test, error, message, tuple(f for f in shown if f is not None), k.loc))
        return tuple(out)

    def k_hints(self, node: YNode, raw: Raw) -> list[tuple[str, Loc]]:
        found = self.names(node, "hints")
        for name, loc in found:
            without = [s for s in raw.sigs if s.arg(name) is None]
            if len(without) == len(raw.sigs):
                self.fault("E204", loc, f"hints: '{name}' is not an argument")
            for s in without if len(without) < len(raw.sigs) else ():
                self.fault("E204", s.loc, f"hints: '{name}' is an argument of the other signatures, not of this one")
        return found

    def k_when(self, node: YNode, raw: Raw) -> dict[str, tuple[str, Loc]]:
        out = {}
        for k, v in self.mapping(node, "when"):
            s = self.scalar(v, "when")
            if s is None:
                continue
            for sig in raw.sigs:
                a = sig.arg(s.text)
                if sig.result(k.text) is None or k.text == sig.results[0].name:
                    self.fault("E204", k.loc, f"when: '{k.text}' is not a result after the first")
                elif a is None or a.type != Type(Base.BOOL):
                    self.fault("E204", s.loc, f"when: '{s.text}' is not a bool argument")
            out[k.text] = (s.text, k.loc)
        return out

    def k_python(self, node: YNode, raw: Raw) -> str | None:
        s = self.scalar(node, "python")
        if s is None:
            return None
        module, _, name = s.text.partition(":")
        if not DOTTED.match(module) or not IDENT.match(name):
            self.fault(
                "E106", s.loc, f"python: '{short(s.text)}' is not module:function", "tensorplay.nn._impl:function"
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
        elif PLACEHOLDER.search(text):
            self.fault("E108", s.loc, "doc is a placeholder", "say in one line what the op computes")
        elif len(text) < 10:
            self.fault("E108", s.loc, f"doc '{text}' says too little", "say in one line what the op computes")
        return text, s.loc

    def k_special(self, node: YNode, raw: Raw) -> tuple[Special, ...]:
        if not isinstance(node, YSeq):
            self.fault("E102", node.loc, "'special' is a list of mappings", "- {input: 0, out: 0, d_input: 0}")
            return ()
        sig_names = {x.name for s in raw.sigs for x in s.members}
        known = sig_names | {f"d_{a.name}" for s in raw.sigs for a in s.tensor_args}
        rows = []
        for item in node.items:
            values: dict[str, Any] = {}
            for k, v in self.mapping(item, "special") if isinstance(item, YMap) else []:
                if k.text not in known:
                    self.fault(
                        "E204",
                        k.loc,
                        f"special: '{short(k.text)}' is not an argument, a result or d_<argument>",
                        did_you_mean(k.text, known, True),
                    )
                    continue
                value = self.literal(v)
                if isinstance(value, str) and k.text.startswith("d_"):
                    self.fault("E106", v.loc, f"special: '{short(value)}' is not a number")
                    continue
                values[k.text] = value
            if not isinstance(item, YMap):
                self.fault("E102", item.loc, "a special row is a mapping", "- {input: 0, out: 0, d_input: 0}")
            elif not values.keys() - {a.name for x in raw.sigs for a in x.args}:
                hint = "say a result or a derivative: {input: 0, out: 0, d_input: 0}"
                self.fault("E102", item.loc, "a special row says nothing of the point it names", hint)
            rows.append(Special(values, item.loc))
        return tuple(rows)
