"""The keys of an entry: what shape each value has and what it says. The table behind `load`, `schema` and the docs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Key:
    name: str
    value: str  # shape of the value, in words
    doc: str
    required: bool = False


KEYS: dict[str, Key] = {
    k.name: k
    for k in (
        Key("op", "name", "The name of the op.", True),
        Key("family", "family", "Decides loop, shape, promotion and batching rule.", True),
        Key("sig", "signature | list", "Arguments and results; several are overloads, tried in order.", True),
        Key("expr", "formula", "Elementwise value. Derivatives follow."),
        Key("d", "{argument: formula}", "Partial derivatives of an elementwise op; absent ones are derived from expr."),
        Key("vjp", "{argument: formula}", "Gradient of a structured op, reading g (or g_<result>)."),
        Key(
            "compose",
            "formula | {name: formula}",
            "The op as a formula over other ops; a mapping is lets, results last.",
        ),
        Key(
            "require",
            "{condition: message}",
            "What compose asks of its arguments and lets; {formula} in a message shows a value. TypeError, IndexError, "
            "RuntimeError or NotImplementedError and a colon before it choose the error, a ValueError otherwise.",
        ),
        Key("hints", "list", "Arguments that say how, not what: nothing reads them."),
        Key(
            "when",
            "{result: argument}",
            "Results that a call gives only where a bool argument says so; the others come in a plain tuple.",
        ),
        Key("kernel", "name", "The loop over raw memory in csrc/kernels that computes it."),
        Key("shape", "shape rule | list", "Shape of the result, one per result."),
        Key("tangent", "linear | multilinear | {argument: formula}", "Forward mode of a structured op, reading t."),
        Key("batch", "name", "Batching rule: rows (a kernel over the last dimension), loop, or a named one."),
        Key(
            "home",
            "name | list",
            "Where it lives: tensorplay (default), nn.functional, linalg, fft, special, random, internal.",
        ),
        Key("method", "true | name | list", "Also a method of Tensor."),
        Key("operator", "symbol | list", "Python operators it serves."),
        Key("out", "true", "Also takes out=."),
        Key("nondiff", "true | list", "Arguments without a derivative, results that carry none."),
        Key("zero", "list", "Arguments whose derivative is zero."),
        Key("todo", "{argument: why}", "Arguments whose derivative is missing: reaching it raises."),
        Key("view_of", "argument", "The result shares memory with this argument."),
        Key("inplace", "true | save_copy", "Also op_, which overwrites the first argument."),
        Key("promote", "rule", "How dtypes combine; elementwise ops derive it from expr."),
        Key("dtypes", "list", "Groups (bool int half float complex) or names (f32 ...) it takes."),
        Key("deterministic", "true | false", "Same input, same bits. Default true."),
        Key("amp", "promote | keep | force_fp32 | lower", "What autocast does with it."),
        Key("aliases", "list", "Other public names."),
        Key("version", "integer", "Raised when the meaning changes."),
        Key("ref", "text", "Where the maths comes from."),
        Key("like", "reference | {values, source} | {tests: file}", "What the tests compare with.", True),
        Key("test", "mapping", "Domains, edges, params, cases, check, shapes, tol, skip."),
        Key("special", "list of mappings", "Values (and d_<argument>) at singular points."),
        Key("doc", "text", "What it does, for its users.", True),
        Key("python", "module:function", "Implemented in Python over other ops."),
    )
}
# A list under these gives one value per overload.
PER_OVERLOAD = ("expr", "d", "vjp", "compose", "kernel", "shape", "tangent", "like")
TEST_KEYS = ("edges", "cases", "check", "shapes", "tol", "skip")
CASE_KEYS = ("shape", "dtype", "range", "kind", "values")
CASE_KINDS = {
    "distinct": "no two elements equal",
    "nonzero": "away from 0",
    "psd": "symmetric positive definite matrices",
    "symmetric": "symmetric matrices",
    "invertible": "well conditioned square matrices",
    "mask": "bool",
    "index": "int64 in [0, high)",
    "permutation": "0..n-1 in random order along the first dimension",
    "unit": "in (0, 1)",
    "simplex": "positive, summing to 1 along the last dimension",
}


def json_schema() -> dict[str, Any]:
    """The keys as JSON Schema: what the YAML extensions of editors complete and check as one types."""
    from .model import AMP, DTYPE_GROUPS, DTYPES, FAMILIES, HOMES, OPERATORS, PROMOTE

    def one_or_list(names: Iterable[str]) -> dict[str, Any]:
        one = {"enum": [*names]}
        return {"anyOf": [one, {"type": "array", "items": one}]}

    values: dict[str, dict[str, Any]] = {
        "family": {"enum": [*FAMILIES]},
        "promote": {"enum": [*PROMOTE]},
        "amp": {"enum": [*AMP]},
        "home": one_or_list(HOMES),
        "operator": one_or_list(OPERATORS),
        "dtypes": one_or_list((*DTYPE_GROUPS, *DTYPES)),
        "inplace": {"enum": [True, "save_copy"]},
        "out": {"type": "boolean"},
        "deterministic": {"type": "boolean"},
        "version": {"type": "integer", "minimum": 1},
        "op": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        "doc": {"type": "string", "minLength": 10},
    }
    properties = {k.name: {"description": f"{k.value}. {k.doc}", **values.get(k.name, {})} for k in KEYS.values()}
    entry = {
        "type": "object",
        "properties": properties,
        "required": [k.name for k in KEYS.values() if k.required and k.name != "like"],
        "additionalProperties": False,
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "ops.yaml of tensorplay",
        "type": "object",
        "properties": {"schema": {"const": SCHEMA_VERSION}, "ops": {"type": "array", "items": entry}},
        "required": ["schema", "ops"],
        "additionalProperties": False,
    }
