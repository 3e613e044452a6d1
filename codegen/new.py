"""`new OP`: a valid skeleton of an entry, put into its family in alphabetical order. Text edits only."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

from . import formula as F
from .base import base_of
from .check import run as check_numbers
from .errors import Diagnostics, did_you_mean
from .model import FAMILIES, NOWHERE, Loc, OpFile
from .resolve import load_string


class Refused(Exception):
    """The entry would not be valid; the message says why."""


def ask(args: argparse.Namespace) -> None:
    """Fill in what was not given, at a terminal. An empty answer takes the default."""

    def question(text: str, default: str) -> str:
        return input(f"{text} [{default}]: ").strip() or default

    if args.family is None:
        args.family = question(f"family ({', '.join(FAMILIES)})", "unary")
    if args.expr is None:
        args.expr = question("formula over " + ", ".join(_arguments(args.family)), _default_expr(args.family)) or None
    if args.doc is None:
        args.doc = question("what it computes, in one line", _default_doc(args.op, args.expr))
    if args.like is None:
        args.like = question("reference for the tests (numpy.x, an expression)", "a test file") or None
        args.like = None if args.like == "a test file" else args.like


def entry(
    ops: str, op: str, family: str | None, expr: str | None, doc: str | None, like: str | None
) -> tuple[str, str]:
    """(the whole new file, the entry). Raises Refused."""
    path = Path(ops)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise Refused(f"codegen new: {ops}: no folder {path.parent}") from None
        text = "schema: 1\nops:\n"
    except OSError as e:
        raise Refused(f"codegen new: {ops}: {e.strerror or e}") from None
    except UnicodeDecodeError:
        raise Refused(f"codegen new: {ops} is not text in UTF-8") from None
    text = re.sub(r"^ops:[ \t]*\[[ \t]*\][ \t]*$", "ops:", text, flags=re.M)  # an entry goes below it
    base = base_of(ops)
    file, diags = load_string(text, ops, base=base)
    if diags:
        raise Refused(diags.render())
    family = family or _family_of(expr)
    if family not in FAMILIES:
        raise Refused(f"codegen new: no family '{family}'. {did_you_mean(family, FAMILIES, True)}")
    if file.get(op):
        raise Refused(f"codegen new: op '{op}' is already at {ops}:{file.by_name[op].loc.line}; choose another name")
    lines = skeleton(op, family, expr, doc, like)
    out, faults = _placed(ops, text, file, op, family, lines)
    rows = [m[1] for d in faults.items if d.code == "E316" and (m := re.search(r"special: \[(.*)\]$", d.hint))]
    if rows and len(rows) == len(faults):
        # The formula decides its kinks; a row each makes the decision visible, and tested.
        lines.insert(-1, f"  special: [{', '.join(rows)}]")
        out, faults = _placed(ops, text, file, op, family, lines)
    if faults:
        raise Refused(faults.render())
    return out, "\n".join(_indent(file) + line for line in lines) + "\n"


def _placed(ops: str, text: str, file: OpFile, op: str, family: str, lines: list[str]) -> tuple[str, Diagnostics]:
    """The file with the entry in its place, and what is wrong with the entry."""
    at = _place(file, op, family)
    block = [_indent(file) + line for line in lines]
    old = text.split("\n")
    if at >= len(old) and old and old[-1] == "":
        old.pop()
    at = min(at, len(old))
    out = "\n".join([*old[:at], *block, *old[at:]]).rstrip("\n") + "\n"
    new_file, faults = load_string(out, ops, base=base_of(ops))
    if not faults:
        scratch = Diagnostics(ops, new_file.source)
        check_numbers(new_file, scratch, only=op)
        faults = scratch
    # Of the entry, which is written nowhere yet: its lines are no lines of the file.
    own = Diagnostics(f"the new entry '{op}'", tuple(lines))

    def moved(loc: Loc) -> Loc:
        inside = at < loc.line <= at + len(block)
        return replace(loc, line=loc.line - at, col=max(1, loc.col - len(_indent(file)))) if inside else NOWHERE

    for d in faults.items:
        own.add(d.code, moved(d.loc), d.message, d.hint, [(moved(loc), what) for loc, what in d.notes])
    return out, own


def skeleton(op: str, family: str, expr: str | None, doc: str | None, like: str | None) -> list[str]:
    args = _arguments(family, expr)
    expr = expr or _default_expr(family)
    result = "Tensor<bool> out" if family == "comparison" else "Tensor out"
    sig = f"{op}({', '.join(args)}) -> {result}"
    out = [f"- op: {op}", f"  family: {family}", f"  sig: {sig}"]
    if FAMILIES[family].elementwise:
        out.append(f"  expr: {_quoted(expr)}")
    elif family == "view":
        out += [
            "  view_of: input",
            "  kernel: alias",
            "  vjp: {input: g}",
            "  tangent: linear",
            "  test: {cases: [{input: [2, 3]}]}",
        ]
    else:
        out.append(f"  compose: {_quoted(expr)}")
    if family == "random":
        out.append("  nondiff: true")
    out.append(f"  like: {_quoted(like)}" if like else f"  like: {{tests: tests/ops/test_{op}.py}}")
    out.append(f"  doc: {_quoted(doc or _default_doc(op, expr))}")
    return out


def _default_doc(op: str, expr: str | None) -> str:
    return f"Computes {expr}." if expr else f"What {op} computes, in one line."


def _default_expr(family: str) -> str:
    return {
        "unary": "input * sigmoid(input)", "binary": "input * other", "ternary": "input + tensor1 * tensor2",
        "comparison": "input > other", "logical": "logical_and(input, other)", "view": "",
    }.get(family, "input * 1")  # fmt: skip


def _arguments(family: str, expr: str | None = None) -> list[str]:
    count = {"binary": 2, "comparison": 2, "logical": 2, "ternary": 3}.get(family, 1)
    names = ["input", "tensor1", "tensor2"] if count == 3 else ["input", "other"][:count]
    used: tuple[str, ...] = ()
    if expr:
        try:
            used = tuple(n for n in F.names(F.parse(expr)) if n not in ("pi", "e", "inf", "nan"))
        except F.FormulaError:
            used = ()
    if used and not set(used) <= set(names):
        # The formula names its own arguments: the first ones are tensors, the rest parameters.
        known = [n for n in names if n in used]
        rest = [n for n in used if n not in known]
        tensors = (known + rest)[: max(count, len(known))]
        return [f"Tensor {n}" for n in tensors] + [f"float {n}=1.0" for n in (known + rest)[len(tensors) :]]
    if used:
        names = [n for n in names if n in used] or names
    return [f"Tensor {n}" for n in names]


def _family_of(expr: str | None) -> str:
    if expr is None:
        return "unary"
    try:
        names = {x for x in F.names(F.parse(expr)) if x not in ("pi", "e", "inf", "nan")}
    except F.FormulaError:
        return "unary"
    n = len(names & {"input", "other"}) or len(names)
    return {2: "binary", 3: "ternary"}.get(n, "unary")


def _quoted(text: str) -> str:
    """YAML text that reads back as `text`."""
    if re.search(r": |\s#|^[\s*&!%@`\"'{\[|>?,-]|[:\s]$", text) or text in ("", "~", "=", "<"):
        return "'" + text.replace("'", "''") + "'"
    return text


def _indent(file: OpFile) -> str:
    for e in file.entries:
        line = file.source[e.loc.line - 1]
        return line[: len(line) - len(line.lstrip())]
    return ""


def _place(file: OpFile, op: str, family: str) -> int:
    """Index of the line before which the entry goes."""
    same = [e for e in file.entries if e.family.name == family]
    for e in same:
        if e.op > op:
            return _first_line(file, e.loc.line)
    last = max(same or file.entries, key=lambda e: e.loc.line, default=None)
    if last is None:
        return len(file.source)
    end = last.end_line
    # Comments and blank lines after an entry belong to what follows it.
    while end > last.loc.line and (not file.source[end - 1].strip() or file.source[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _first_line(file: OpFile, line: int) -> int:
    """The line of `- op`, or of its dash where other keys come first."""
    while line > 1 and not file.source[line - 1].lstrip().startswith("- "):
        line -= 1
    return line - 1
