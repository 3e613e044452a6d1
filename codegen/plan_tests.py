"""Plans the generated tests: one row of plain data per op. tensorplay/testing/generated.py says what is checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .model import Diff, Entry, Like, Overload, TensorCase
from .plan_bind import home_text, inplace_functions, inplace_names, method_names
from .plan_types import Shard

INDENT = "    "


@dataclass(frozen=True)
class TestRow:
    """One op's row: keyword arguments of `Op(...)`, each as Python text."""

    fields: tuple[tuple[str, str], ...]


def plan_tests(shard: Shard, entries: tuple[Entry, ...]) -> tuple[TestRow, ...]:
    saved: dict[tuple[str, int], tuple[str, ...]] = {
        (o.op, o.index): o.node.saved_names if o.node else () for o in shard.overloads
    }
    return tuple(row(e, saved) for e in entries)


def row(e: Entry, saved: dict[tuple[str, int], tuple[str, ...]]) -> TestRow:
    t = e.test
    fields: list[tuple[str, Any, Any]] = [
        ("name", e.op, None),
        ("home", home_text(e.home[0]), ""),
        ("elementwise", e.elementwise, False),
        ("promote", e.promote, "common"),
        ("dtypes", e.dtypes, ()),
        ("methods", tuple(method_names(e)), ()),
        ("inplace", tuple(inplace_names(e) or [n for _, n in inplace_functions(e)]), ()),
        ("operators", e.operator, ()),
        ("out", e.out, False),
        ("view_of", e.view_of, None),
        ("python", e.python is not None, False),
        ("domains", dict(t.domains), {}),
        ("edges", {k: tuple(v) for k, v in t.edges.items()}, {}),
        ("params", dict(t.params), {}),
        ("shapes", t.shapes, ()),
        # Every result is looked at: what leaves one out by default is set.
        (
            "cases",
            tuple(
                {k: case_value(v) for k, v in {**dict.fromkeys(e.when.values(), True), **c}.items()} for c in t.cases
            ),
            (),
        ),
        ("tol", t.tol, None),
        ("skip", dict(t.skip), {}),
        ("special", tuple(dict(s.values) for s in e.special), ()),
    ]
    out = [(name, literal(value)) for name, value, default in fields if value != default]
    forms = [form(e, o, saved.get((e.op, o.index), ())) for o in e.overloads]
    out.append(("forms", "[\n" + "".join(f"{INDENT * 3}{f},\n" for f in forms) + f"{INDENT * 2}]"))
    return TestRow(tuple(out))


def form(e: Entry, o: Overload, saved: tuple[str, ...]) -> str:
    args = tuple(
        (
            a.name,
            str(a.type),
            *(() if a.required and not a.kwonly else (None,) if a.required else (a.default,)),
            *(("kwonly",) if a.kwonly else ()),
        )
        for a in o.sig.args
    )
    diff = tuple(
        a.name
        for a in o.sig.tensor_args
        if o.diff_results and o.deriv.get(a.name) is not None and o.deriv[a.name].differentiable
    )
    zero = tuple(a.name for a in o.sig.tensor_args if a.name in o.deriv and o.deriv[a.name].kind is Diff.ZERO)
    results = tuple(r.name + ("[]" if r.type.is_list else "") for r in o.sig.results)
    parts = [f"args={literal(args)}", f"results={literal(results)}"]
    if diff:
        parts.append(f"diff={literal(diff)}")
    if zero:
        parts.append(f"zero={literal(zero)}")
    if o.diff_results and len(o.sig.results) > 1:
        parts.append(f"diff_results={literal(tuple(r.name for r in o.diff_results))}")
    if e.elementwise and o.expr is None:
        parts.append("composed=True")
    if saved:
        parts.append(f"saved={literal(saved)}")
    like = e.like_of(o.index)
    if like is not None:
        parts.append(like_text(like))
    return f"Form({', '.join(parts)})"


def like_text(like: Like) -> str:
    if like.kind == "values":
        return f"values={literal(like.values)}"
    if like.kind == "tests":
        return f"tests={literal(like.text)}"
    return f"like={literal(like.text)}, kind={literal(like.kind)}"


def case_value(v: Any) -> Any:
    if isinstance(v, TensorCase):
        said = {"shape": v.shape, "dtype": v.dtype, "range": v.range, "kind": v.kind, "values": v.values}
        return {k: x for k, x in said.items() if x is not None and not (k == "shape" and v.values is not None)}
    if isinstance(v, (list, tuple)) and any(isinstance(x, TensorCase) for x in v):
        return [case_value(x) for x in v]
    return v


def literal(v: Any) -> str:
    """Python text of plain data; floats that repr cannot write go through float()."""
    match v:
        case float() if math.isnan(v):
            return 'float("nan")'
        case float() if math.isinf(v):
            return f'float("{"-" if v < 0 else ""}inf")'
        case str():
            return '"' + v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        case tuple():
            return "(" + ", ".join(map(literal, v)) + ("," if len(v) == 1 else "") + ")"
        case list():
            return "[" + ", ".join(map(literal, v)) + "]"
    if isinstance(v, dict) or hasattr(v, "items"):
        return "{" + ", ".join(f"{literal(k)}: {literal(x)}" for k, x in v.items()) + "}"
    return repr(v)
