"""Mutant schemata: many mutations of C++ sources woven into one build, each behind a test of a number read at start.

`if (a < b)` becomes `if (TP_M(7) ? bool(a <= b) : bool(a < b))`: with TP_MUTANT=7 the program runs the mutation,
without it the original. Knows C++ by lines, as clang-format leaves them; what it can't weave is refused, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

NO_CODE = ("//", "#", "template", "static_assert", "namespace", "using", "class ", "struct ", "enum ")


@dataclass(frozen=True)
class Mutant:
    path: Path  # below the tree
    line: int
    kind: str
    before: str
    after: str
    number: int = 0  # in the build

    def __str__(self) -> str:
        after = self.after.strip()
        after = "(dropped)" if after == ";" else after
        return f"{self.path}:{self.line + 1}: {self.kind}: {self.before.strip()}  ->  {after}"


# ---- what to change --------------------------------------------------------------------------------------------------
def closing(text: str, start: int) -> int:
    """Where the parenthesis opened at `start` closes; -1 where it does not."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return -1


def negated(code: str) -> Iterator[str]:
    for found in re.finditer(r"\b(?:if|while) \(", code):
        start = found.end() - 1
        end = closing(code, start)
        condition = code[start + 1 : end] if end > 0 else ""
        # A declaration in a condition, and `if constexpr`, stay.
        if condition and not re.search(r"[^=!<>]=[^=]|;", condition):
            yield f"{code[: start + 1]}!({condition}){code[end:]}"
    for found in re.finditer(r"(?<![=<>!&|]) (&&|\|\|) ", code):
        if "&& " not in code[: found.start()].rstrip()[-1:]:
            yield code[: found.start()] + (" || " if found.group(1) == "&&" else " && ") + code[found.end() :]


def dropped(code: str) -> Iterator[str]:
    text = code.strip()
    call = re.fullmatch(r"(?:\+\+|--)?[A-Za-z_][\w.\->:\[\]()*]*(?:\(.*\)|\s*[-+|&]?=\s.*|\+\+|--);", text)
    if call and not text.startswith(("return", "using", "static", "constexpr", "const ", "throw", "delete", "friend")):
        yield code[: len(code) - len(code.lstrip())] + ";"


def moved(code: str) -> Iterator[str]:
    swaps = (
        (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
        (r" != ", " == "), (r" \+ 1\b", " + 0"), (r" - 1\b", " - 0"), (r" = 0;", " = 1;"),
    )  # fmt: skip
    for pattern, to in swaps:
        for found in re.finditer(pattern, code):
            yield code[: found.start()] + to + code[found.end() :]


KINDS = {"condition": negated, "statement": dropped, "bound": moved}


def candidates(root: Path, folders: tuple[str, ...]) -> list[Mutant]:
    out = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*.cpp")):
            open_statement = False
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
                code = line.split("//")[0].rstrip()
                begins = not open_statement
                open_statement = bool(code) and not code.endswith((";", "{", "}", ":"))
                if line.lstrip().startswith(NO_CODE):
                    continue
                if "runtime_error(" in code or '"' in code:  # texts of messages
                    continue
                for kind, change in KINDS.items():
                    if kind == "statement" and not (begins and line.startswith("  ")):
                        continue
                    out += [Mutant(path.relative_to(root), number, kind, line, after) for after in change(code)]
    return out


# ---- weaving ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Region:
    """A part of a statement that may be chosen at run time."""

    kind: str  # condition, statement, value
    start: int
    end: int


def statements(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Ranges of lines that make up one statement, or its head up to a brace."""
    first, depth = 0, 0
    for i, line in enumerate(lines):
        code = line.split("//")[0].rstrip()
        depth += sum({"(": 1, "[": 1, ")": -1, "]": -1}.get(c, 0) for c in code)
        if line.startswith("#") or not code or (depth <= 0 and code.endswith((";", "{", "}", ":"))):
            yield first, i + 1
            first, depth = i + 1, 0
    if first < len(lines):
        yield first, len(lines)


def split_top(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The parts of text[start:end] between semicolons outside parentheses and braces."""
    parts, depth, at = [], 0, start
    for i in range(start, end):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[i], 0)
        if text[i] == ";" and depth == 0:
            parts.append((at, i))
            at = i + 1
    return [*parts, (at, end)]


CONSTRUCTION = re.compile(r"(?!return|throw|delete|else)(?:const )?[A-Za-z_][\w:]*(?:<[^=;()]*>)? [A-Za-z_]\w*[({]")
DECLARATION = re.compile(r"\s*(?:const\s+)?[A-Za-z_][\w:]*(?:<[^=;()]*>)?[\s*&]+\w+(?:\[\w*\])?\s=\s")


def value_of(text: str, start: int, end: int) -> list[Region]:
    """The initial value of a declaration."""
    found = DECLARATION.match(text, start, end)
    if not found or text[start:end].lstrip().startswith(("return", "static", "constexpr", "thread_local")):
        return []
    return [Region("value", found.end(), end)]


def statement_of(text: str, start: int, end: int) -> list[Region]:
    """What may be chosen in a statement that ends with its semicolon at `end`."""
    while start < end and text[start] == " ":
        start += 1
    code = text[start:end]
    if not code or code.startswith(("static ", "constexpr ", "thread_local ", "using ", "break", "continue")):
        return []
    if CONSTRUCTION.match(code):
        return []  # `Shape out(n, 1);`: a block of its own would end it
    if DECLARATION.match(text, start, end):
        return value_of(text, start, end - 1)
    return [Region("statement", start, end)]


def regions(text: str) -> list[Region]:
    """What may be chosen in one statement or head."""
    out: list[Region] = []
    at = len(text) - len(text.lstrip())
    label = re.compile(r"(?:case [\w:()]+?(?<!:):(?!:)|default:)\s*").match(text, at)
    at = label.end() if label else at
    while True:
        prefix = re.compile(r"(?:\} )?(?:else )?").match(text, at)
        assert prefix is not None
        at = prefix.end()
        head = re.compile(r"(if|while|for|switch) \(").match(text, at)
        if not head:
            break
        start = head.end() - 1
        end = closing(text, start)
        if end < 0:
            return out
        parts = split_top(text, start + 1, end)
        if head[1] == "for":
            if len(parts) != 3:
                break
            out += value_of(text, *parts[0])
            out.append(Region("condition", *parts[1]))
        elif head[1] != "switch" and not DECLARATION.match(text, *parts[-1]):
            out.append(Region("condition", *parts[-1]))
            if len(parts) == 2:
                out += value_of(text, *parts[0])
        at = end + 1
        while at < len(text) and text[at] == " ":
            at += 1
    rest = text[at:].rstrip()
    if rest.endswith(";"):
        out += statement_of(text, at, at + len(rest))
    elif one := re.compile(r"[^{}]*\) (?:const )?(?:override )?\{ ([^{}]*;) \}$").match(text, at):
        out += statement_of(text, *one.span(1))
    return out


def chosen(kind: str, original: str, mutated: list[tuple[int, str]]) -> str:
    if kind == "statement":
        return "{ " + "".join(f"if (TP_M({k})) {{ {m} }} else " for k, m in mutated) + f"{{ {original} }} }}"
    cast = "static_cast<bool>" if kind == "condition" else ""
    return "(" + "".join(f"TP_M({k}) ? {cast}({m}) : " for k, m in mutated) + f"{cast}({original}))"


def joined(lines: list[str]) -> str:
    return " ".join([lines[0].split("//")[0].rstrip(), *(x.split("//")[0].strip() for x in lines[1:])]).rstrip()


def woven(lines: list[str], mutants: list[Mutant]) -> tuple[list[str], dict[int, list[Mutant]], list[Mutant]]:
    """The lines with the mutants in them, which mutants stand in each line, and those that don't fit."""
    out = list(lines)
    placed: dict[int, list[Mutant]] = {}
    refused: list[Mutant] = []
    for first, last in statements(lines):
        here = [m for m in mutants if first <= m.line < last]
        if not here:
            continue
        text = joined(lines[first:last])
        parts = regions(text)
        by_part: dict[int, list[tuple[int, str]]] = {}
        for m in here:
            changed = list(lines[first:last])
            changed[m.line - first] = m.after
            other = joined(changed)
            grown = len(other) - len(text)
            for k, r in enumerate(parts):
                if other[: r.start] == text[: r.start] and other[r.end + grown :] == text[r.end :]:
                    by_part.setdefault(k, []).append((m.number, other[r.start : r.end + grown]))
                    placed.setdefault(first, []).append(m)
                    break
            else:
                refused.append(m)
        for k in sorted(by_part, key=lambda k: -parts[k].start):
            r = parts[k]
            text = text[: r.start] + chosen(r.kind, text[r.start : r.end], by_part[k]) + text[r.end :]
        if first in placed:
            out[first:last] = [text, *[""] * (last - first - 1)]
    return out, placed, refused


DECLARE = 'extern "C" int tp_mutant; extern "C" unsigned char tp_mutant_hit[]; '
SWITCH = "#define TP_M(k) (tp_mutant_hit[k] = 1, tp_mutant == (k))"
# Read before other initialisers run. Where TP_MUTANT_TRACE names a file, what was reached is written there at the end.
DEFINE = """// Which mutant runs, and which were reached. Written by tools/schemata.py.
#include <cstdio>
#include <cstdlib>
#pragma GCC visibility push(default)
extern "C" {
int tp_mutant = 0;
int tp_mutant_count = SIZE;
unsigned char tp_mutant_hit[SIZE] = {};
__attribute__((constructor(101))) static void tp_mutant_begin() {
  const char* v = std::getenv("TP_MUTANT");
  if (v) tp_mutant = std::atoi(v);
}
__attribute__((destructor(101))) static void tp_mutant_end() {
  const char* path = std::getenv("TP_MUTANT_TRACE");
  FILE* f = path ? std::fopen(path, "w") : nullptr;
  if (!f) return;
  for (int k = 0; k < SIZE; ++k)
    if (tp_mutant_hit[k]) std::fprintf(f, "%d\\n", k);
  std::fclose(f);
}
}
#pragma GCC visibility pop
"""


class Weaver:
    """Weaves mutants into the sources of a tree, from their true text."""

    def __init__(self, tree: Path, true: Path, home: str) -> None:
        self.tree, self.true, self.home = tree, true, home  # home: the folder that gets the file with the number

    def write(self, path: Path, mutants: list[Mutant]) -> tuple[dict[int, list[Mutant]], list[Mutant]]:
        """One file. Line numbers stay what they were."""
        lines = (self.true / path).read_text(encoding="utf-8").splitlines()
        out, placed, refused = woven(lines, mutants)
        if placed:
            # The macro needs a line of its own: the head of a file has at least one line of comment and an include.
            include = next(i for i, x in enumerate(out) if x.startswith("#include"))
            assert include > 0 and out[0].startswith("//"), path
            blank = next(i for i in range(include + 1, len(out)) if not out[i].strip())
            out[0], out[blank] = SWITCH, DECLARE
        self.put(path, "\n".join(out) + "\n")
        return placed, refused

    def define(self, size: int) -> None:
        self.put(Path(self.home) / "mutants.cpp", DEFINE.replace("SIZE", str(size)))

    def put(self, path: Path, text: str) -> None:
        target = self.tree / path
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def numbered(mutants: list[Mutant]) -> list[Mutant]:
    return [replace(m, number=k) for k, m in enumerate(mutants, 1)]
