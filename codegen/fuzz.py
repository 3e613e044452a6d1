"""`fuzz`: random single edits of valid entries. Each must be refused on the edited line, or be shown to mean the same.

How an outcome is judged:
- refused: a diagnostic, or a place it names as part of the contradiction, is on an edited line; a dropped key may be
  reported at its entry.
- same: the model is equal, or every formula that changed is equal in value at many points (in the domain, at the edges,
  far outside) and the signature is equal; what only tests and readers see (doc, like, test, special, ref) may differ.
- choice: a key that nothing else in the file implies (method, operator, inplace, home, aliases, ...) was dropped or
  changed to another legal value. The result is another valid op; `codegen check` shows the difference of generated/.
- anything else (an error elsewhere, a silent change of meaning, a traceback) is a failure and makes the exit code 1.
"""

from __future__ import annotations

import random
import re
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from . import check, edits, source
from . import formula as F
from .equivalent import differences
from .errors import Diagnostics
from .markers import Declared
from .model import Entry, OpFile
from .reference import World, callable_like, called
from .resolve import kernels_reached, load_string
from .source import YMap, YNode, YScalar, YSeq

_IDENT = re.compile(r"[A-Za-z_]\w*")
_FORMULA_KEYS = ("expr", "d", "vjp", "compose", "shape", "tangent")
# Free text: a letter more or less there is neither right nor wrong.
_PROSE_KEYS = ("doc", "ref", "todo")


@dataclass(frozen=True)
class Edit:
    what: str
    text: str  # the file after it
    lines: frozenset[int]  # the lines it touched, numbered after the edit
    dropped: bool = False


@dataclass(frozen=True)
class Outcome:
    verdict: str  # refused | same | choice | elsewhere | silent | traceback
    detail: str = ""


BAD = ("elsewhere", "silent", "traceback")


class Fuzzer:
    def __init__(self, file: OpFile, seed: int, verbose: bool = False, scanned: Declared | None = None) -> None:
        self.file = file
        self.rng = random.Random(seed)
        self.verbose = verbose
        self.declared = Declared(
            kernels=dict.fromkeys(kernels_reached(file), ""),
            shapes=scanned.shapes if scanned else {},
            batches={e.batch: "" for e in file.entries if e.batch},
            parameters=scanned.parameters if scanned else {},
            functions=scanned.functions if scanned else {},
            scanned=True,
        )
        self.small: dict[str, tuple[str, OpFile]] = {}
        self.called = {e.op: set().union(*map(called, e.overloads)) for e in file.entries}

    def run(self, count: int) -> int:
        tally: Counter[str] = Counter()
        kinds: Counter[str] = Counter()
        choices: Counter[str] = Counter()
        done = 0
        while done < count:
            e = self.rng.choice(self.file.entries)
            text, before = self.mini(e)
            edit = self.edit(e, text, before)
            if edit is None:
                continue
            done += 1
            outcome = self.judge(e, before, edit)
            tally[outcome.verdict] += 1
            kinds[edit.what.split(":")[0]] += 1
            if outcome.verdict == "choice":
                choices[outcome.detail] += 1
            if self.verbose or outcome.verdict in BAD:
                print(f"{outcome.verdict:9} {e.op}: {edit.what}" + (f"   [{outcome.detail}]" if outcome.detail else ""))
                if outcome.verdict in BAD:
                    self.show(edit)
        print(f"{count} edits: " + ", ".join(f"{n} {v}" for v, n in sorted(tally.items())))
        print("edits by kind: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))
        if choices:
            print("choices no other key implies: " + ", ".join(f"{n} {k}" for k, n in sorted(choices.items())))
        return 1 if any(tally[v] for v in BAD) else 0

    @staticmethod
    def show(edit: Edit) -> None:
        lines = edit.text.split("\n")
        for n in sorted(edit.lines):
            if 1 <= n <= len(lines):
                print(f"          {n:4} | {lines[n - 1][:150]}")

    # ---- a small file around one entry ----

    def mini(self, e: Entry) -> tuple[str, OpFile]:
        """The entry with the ops its formulas call, as a file of its own: an edit then costs milliseconds."""
        if e.op not in self.small:
            wanted = self.related(e)
            lines = ["schema: 1", "ops:"]
            for x in self.file.entries:
                if x.op in wanted:
                    block = list(self.file.source[x.loc.line - 1 : x.end_line])
                    while block and (not block[-1].strip() or block[-1].lstrip().startswith("#")):
                        block.pop()
                    lines += block
            text = "\n".join(lines) + "\n"
            file, diags = load_string(text, self.file.path, self.declared, self.file.base)
            if diags:
                raise RuntimeError(f"'{e.op}' does not stand alone:\n{diags.render()}")
            self.small[e.op] = (text, file)
        return self.small[e.op]

    def related(self, e: Entry) -> set[str]:
        """What the entry calls, and who calls it where it has no reference of its own: they are its witnesses."""
        wanted, queue = {e.op}, [e]
        if e.home == ("internal",) or not all(callable_like(e.like_of(o.index), o) for o in e.overloads):
            wanted |= self.callers(e.op)
            queue += [self.file.by_name[name] for name in wanted if name != e.op]
        while queue:
            for op in sorted(self.called[queue.pop().op]):
                if op not in wanted and (found := self.file.get(op)):
                    wanted.add(op)
                    queue.append(found)
        return wanted

    def callers(self, op: str) -> set[str]:
        out: set[str] = set()
        queue = [op]
        while queue:
            name = queue.pop()
            for e in self.file.entries:
                if e.op not in out and name in self.called[e.op]:
                    out.add(e.op)
                    if e.home == ("internal",):
                        queue.append(e.op)
        return out

    # ---- edits ----

    def edit(self, e: Entry, text: str, file: OpFile) -> Edit | None:
        node = self.entry_node(e.op, text)
        if node is None:
            return None
        kinds: list[Callable[[Entry, str, YMap, OpFile], Edit | None]] = [
            self.drop_key, self.misspell, self.formula_edit, self.formula_edit, self.signature_edit, self.swap,
            self.arity,
        ]  # fmt: skip
        return self.rng.choice(kinds)(e, text, node, file)

    @staticmethod
    def entry_node(op: str, text: str) -> YMap | None:
        root = source.parse(text, Diagnostics(""))
        ops = root.get("ops") if isinstance(root, YMap) else None
        for item in ops.items if isinstance(ops, YSeq) else ():
            if isinstance(item, YMap) and isinstance(found := item.get("op"), YScalar) and found.text == op:
                return item
        return None

    def drop_key(self, e: Entry, text: str, node: YMap, file: OpFile) -> Edit | None:
        i = self.rng.randrange(len(node.items))
        key = node.items[i][0]
        lines = text.split("\n")
        start = key.loc.line - 1
        now = file.get(e.op)
        stop = node.items[i + 1][0].loc.line - 1 if i + 1 < len(node.items) else (now.end_line if now else len(lines))
        if stop <= start:
            return None  # two keys on one line
        kept = lines[:start] + lines[stop:]
        if i == 0:  # the dash moves to the key that is first now
            if start >= len(kept) or not kept[start].strip():
                return None
            dash = lines[start].index("-")
            kept[start] = kept[start][:dash] + "-" + kept[start][dash + 1 :]
        first, end = node.items[0][0].loc.line, (now.end_line if now else len(lines))
        return Edit(f"drop: {key.text}", "\n".join(kept), frozenset(range(first, end - (stop - start) + 1)), True)

    def scalars(self, node: YMap) -> list[tuple[str, YScalar]]:
        """(key of the entry, scalar): every scalar that is not prose, keys of inner mappings included."""
        out: list[tuple[str, YScalar]] = []

        def visit(key: str, n: YNode) -> None:
            if isinstance(n, YScalar):
                out.append((key, n))
            elif isinstance(n, YSeq):
                for x in n.items:
                    visit(key, x)
            else:
                for k, v in n.items:
                    out.append((key, k))
                    if k.text != "source":
                        visit(key, v)

        for k, v in node.items:
            out.append(("", k))
            if k.text not in _PROSE_KEYS:
                visit(k.text, v)
        return [(key, s) for key, s in out if s.exact and s.one_line]

    def misspell(self, e: Entry, text: str, node: YMap, file: OpFile) -> Edit | None:
        key, s = self.rng.choice(self.scalars(node))
        words = list(_IDENT.finditer(s.text))
        if not words:
            return None
        m = self.rng.choice(words)
        if len(m[0]) < 2 or m[0] in ("inf", "nan"):
            return None
        new = edits.misspelt(m[0], self.rng)
        return self.replaced(
            text, s, s.text[: m.start()] + new + s.text[m.end() :], f"misspell: {key or 'a key'}: {m[0]} -> {new}"
        )

    def formulas(self, node: YMap) -> list[tuple[str, YScalar, F.Node]]:
        out = []
        for k, v in node.items:
            if k.text not in _FORMULA_KEYS:
                continue
            stack: list[YNode] = [v]
            while stack:
                n = stack.pop()
                if isinstance(n, YSeq):
                    stack += n.items
                elif isinstance(n, YMap):
                    stack += [x for _, x in n.items]
                elif n.exact and n.text not in ("linear", "multilinear", "None"):
                    try:
                        out.append((k.text, n, F.parse(n.text)))
                    except F.FormulaError:
                        continue
        return out

    def formula_edit(self, e: Entry, text: str, node: YMap, file: OpFile) -> Edit | None:
        names = [x.name for o in e.overloads for x in o.sig.members if x.type.has_tensor]
        return self.from_formula(text, node, lambda n: [
            *edits.constants(n), *edits.signs(n), *edits.reductions(n), *edits.operators(n), *edits.functions(n),
            *edits.slots(n, tuple(dict.fromkeys(names))),
        ], "edit")  # fmt: skip

    def swap(self, e: Entry, text: str, node: YMap, file: OpFile) -> Edit | None:
        if self.rng.random() < 0.3:
            return self.signature_change(text, node, "swap")
        return self.from_formula(text, node, lambda n: list(edits.swapped(n)), "swap")

    def arity(self, e: Entry, text: str, node: YMap, file: OpFile) -> Edit | None:
        return self.from_formula(text, node, lambda n: list(edits.arity(n)), "arity")

    def from_formula(self, text: str, node: YMap, make: Callable[[F.Node], list[edits.Edit]], kind: str) -> Edit | None:
        found = self.formulas(node)
        if not found:
            return None
        key, s, root = self.rng.choice(found)
        made = make(root)
        if not made:
            return None
        what, new = self.rng.choice(made)
        return self.replaced(text, s, F.to_text(new), f"{kind}: {key}: {what}")

    def signature_edit(self, e: Entry, text: str, node: YMap, file: OpFile) -> Edit | None:
        return self.signature_change(text, node, self.rng.choice(("drop", "add", "type", "default")))

    def signature_change(self, text: str, node: YMap, kind: str) -> Edit | None:
        value = node.get("sig")
        found = [
            x for x in (value.items if isinstance(value, YSeq) else (value,)) if isinstance(x, YScalar) and x.exact
        ]
        if not found:
            return None
        s = self.rng.choice(found)
        head, _, rest = s.text.partition("(")
        inside, close, tail = rest.partition(") ->")
        parts = [p.strip() for p in re.split(r",(?![^\[(]*[\])])", inside)] if inside.strip() else []
        movable = [i for i, p in enumerate(parts) if p != "*"]
        if not movable:
            return None
        i = self.rng.choice(movable)
        if kind == "drop":
            parts.pop(i)
        elif kind == "add":
            parts.insert(0, "Tensor surplus")
        elif kind == "swap":
            if i + 1 >= len(parts) or "*" in (parts[i], parts[i + 1]):
                return None
            parts[i], parts[i + 1] = parts[i + 1], parts[i]
        elif kind == "type":
            word = parts[i].split()[0]
            parts[i] = (
                edits.misspelt(word.rstrip("?[]0123456789"), self.rng) + parts[i][len(word.rstrip("?[]0123456789")) :]
            )
        elif "=" in parts[i]:
            parts[i] = parts[i].split("=")[0] + "=oops"
        else:
            return None
        return self.replaced(text, s, f"{head}({', '.join(parts)}{close}{tail}", f"signature: {kind}")

    @staticmethod
    def replaced(text: str, s: YScalar, new: str, what: str) -> Edit | None:
        if new == s.text:
            return None
        lines = text.split("\n")
        line = lines[s.loc.line - 1]
        if s.style == "'":
            new = new.replace("'", "''")
        lines[s.loc.line - 1] = line[: s.loc.col - 1] + new + line[s.loc.col - 1 + len(s.text) :]
        return Edit(what, "\n".join(lines), frozenset({s.loc.line}))

    # ---- judgement ----

    def judge(self, e: Entry, before: OpFile, edit: Edit) -> Outcome:
        try:
            after, diags = load_string(edit.text, self.file.path, self.declared, self.file.base)
            if not diags:
                # Most faults show in the entry itself; its witnesses are asked where it is silent.
                for among in ({e.op}, {x.op for x in after.entries} - {e.op}):
                    if not any(d.lines & edit.lines for d in diags.items):
                        check.run(after, diags, among=among)
            if diags:
                diags.render()
                if any(d.lines & edit.lines for d in diags.items):
                    return Outcome("refused")
                return Outcome(
                    "elsewhere", "; ".join(f"{d.code} line {d.loc.line}: {d.message}" for d in diags.items)[:300]
                )
            old, new = before.by_name[e.op], after.get(e.op)
            if new is None:
                return Outcome("silent", "the entry is gone")
            others = [x.op for x in before.entries if x.op != e.op and after.get(x.op) != x]
            if others:
                return Outcome("silent", f"changes {', '.join(others)}")
            meaning, choices = differences(old, new, World(before), World(after))
        except Exception:
            return Outcome("traceback", traceback.format_exc(limit=-3).strip().replace("\n", " | "))
        if meaning:
            return Outcome("silent", ", ".join(dict.fromkeys(meaning)))
        return Outcome("choice", ", ".join(choices)) if choices else Outcome("same")
