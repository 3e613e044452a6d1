"""Signatures of custom ops: read from a function's annotations, written as text, used to check the arguments of a call.

Knows nothing of how an op is registered or run.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import tensorplay as tp

_SCALARS: dict[Any, str] = {
    int: "int", float: "float", bool: "bool", str: "str", complex: "complex",
    tp.dtype: "ScalarType", tp.device: "Device", int | float | bool: "Scalar", int | float: "Scalar",
    int | float | complex: "Scalar", int | float | bool | complex: "Scalar",
}  # fmt: skip
# What a value of each type may be: an int serves as a float, as in a call of Python.
_ACCEPTS: dict[str, tuple[type, ...]] = {
    "Tensor": (tp.Tensor,), "int": (int,), "float": (float, int), "bool": (bool,), "str": (str,),
    "complex": (complex, float, int), "ScalarType": (tp.dtype,), "Device": (tp.device, str),
    "Scalar": (int, float, complex),
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A type of the schema: "Tensor", "Tensor?", "Tensor[]", "float[]?"."""

    base: str
    is_list: bool = False
    optional: bool = False

    def __str__(self) -> str:
        return self.base + "[]" * self.is_list + "?" * self.optional

    def accepts(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if self.is_list:
            return isinstance(value, (list, tuple)) and all(Kind(self.base).accepts(v) for v in value)
        # bool is an int to Python, but not to a reader of the schema.
        return isinstance(value, _ACCEPTS[self.base]) and (self.base in ("bool", "Scalar") or value is not True) and (
            self.base in ("bool", "Scalar") or value is not False
        )  # fmt: skip


@dataclass(frozen=True)
class Argument:
    name: str
    kind: Kind
    default: Any = inspect.Parameter.empty
    kwonly: bool = False
    mutated: bool = False

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    def text(self, letter: str) -> str:
        mark = f"({letter}!)" if self.mutated else ""
        shown = f"{self.kind.base}{mark}{str(self.kind)[len(self.kind.base) :]} {self.name}"
        return shown if self.required else f"{shown}={self.default!r}"


@dataclass(frozen=True)
class Schema:
    arguments: tuple[Argument, ...]
    results: tuple[Kind, ...]
    is_tuple: bool  # whether the function returns a tuple, even of one

    @property
    def mutates(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.arguments if a.mutated)

    def text(self, name: str = "") -> str:
        parts, letters = [], iter("abcdefghijklmnopqrstuvwxyz")
        for i, a in enumerate(self.arguments):
            if a.kwonly and not any(b.kwonly for b in self.arguments[:i]):
                parts.append("*")
            parts.append(a.text(f"{next(letters)}0" if a.mutated else ""))
        results = ", ".join(map(str, self.results))
        return f"{name}({', '.join(parts)}) -> {results if len(self.results) == 1 else f'({results})'}"

    def bind(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name, defaults filled in. TypeError, by the op's name, for what does not fit."""
        positional = [a for a in self.arguments if not a.kwonly]
        if len(args) > len(positional):
            raise TypeError(
                f"{name}: takes {len(positional)} positional arguments, {len(args)} were given: {self.text(name)}"
            )
        given = dict(zip((a.name for a in positional), args, strict=False))
        for key, value in kwargs.items():
            if key in given:
                raise TypeError(f"{name}: argument '{key}' is given twice: {self.text(name)}")
            if all(a.name != key for a in self.arguments):
                raise TypeError(f"{name}: no argument '{key}': {self.text(name)}")
            given[key] = value
        out = {}
        for a in self.arguments:
            if a.name not in given and a.required:
                raise TypeError(f"{name}: argument '{a.name}' is missing: {self.text(name)}")
            value = out[a.name] = given.get(a.name, a.default)
            if a.name in given and not a.kind.accepts(value):
                raise TypeError(
                    f"{name}: argument '{a.name}' must be {a.kind}, not {type(value).__name__}: {value!r:.60}"
                )
        return out


def parse(fn: Callable[..., Any], mutates_args: str | Iterable[str]) -> Schema:
    """The schema that a function's annotations say. ValueError names what is missing or unknown."""
    name = getattr(fn, "__name__", repr(fn))
    signature = inspect.signature(fn)
    try:
        hints = typing.get_type_hints(fn)
    except NameError as error:
        raise ValueError(f"infer_schema: annotations of {name} can't be resolved: {error}") from None
    unknown = mutates_args == "unknown"
    wanted = set() if unknown else {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    arguments = []
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ValueError(f"infer_schema: *{p.name} of {name}{signature} has no schema; name every argument")
        if p.name not in hints:
            raise ValueError(f"infer_schema: parameter {p.name} of {name}{signature} must have a type annotation")
        kind = _kind(hints[p.name])
        if kind is None:
            raise ValueError(
                f"infer_schema: parameter {p.name} of {name} has type {hints[p.name]}, which a schema can't say; use "
                f"one of Tensor, int, float, bool, str, complex, dtype, device, a Sequence of one, or an Optional"
            )
        mutated = p.name in wanted or (unknown and kind.base == "Tensor")
        if mutated and kind.base != "Tensor":
            raise ValueError(f"infer_schema: mutates_args names {p.name}, which is {kind} and not a Tensor")
        arguments.append(Argument(p.name, kind, p.default, p.kind is p.KEYWORD_ONLY, mutated))
    if missing := wanted - set(signature.parameters):
        raise ValueError(f"infer_schema: mutates_args names {sorted(missing)}; {name}{signature} has no such parameter")
    if "return" not in hints:
        raise ValueError(f"infer_schema: no return type annotation of {name}{signature}; write -> Tensor, or -> None")
    results, is_tuple = _results(hints["return"], name)
    return Schema(tuple(arguments), results, is_tuple)


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str] = (), op_name: str | None = None
) -> str:
    """The schema of a function as text.

    Args:
        prototype_function: function with an annotation on every parameter and on what it returns.
        mutates_args: names of the tensors it changes in place, or "unknown" for all.
        op_name: put in front of the text.

    Returns:
        The text, `(Tensor x, *, float k=2.0) -> Tensor`.

    Raises:
        ValueError: an annotation is missing or no type of a schema.

    Example:
        >>> def scaled(x: tensorplay.Tensor, k: float = 2.0) -> tensorplay.Tensor: ...
        >>> tensorplay.library.infer_schema(scaled, mutates_args=())
        '(Tensor x, float k=2.0) -> Tensor'
    """
    return parse(prototype_function, mutates_args).text(op_name or "")


def _kind(hint: Any) -> Kind | None:
    if hint is tp.Tensor:
        return Kind("Tensor")
    try:
        if hint in _SCALARS:
            return Kind(_SCALARS[hint])
    except TypeError:
        return None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and type(None) in args:
        rest = [a for a in args if a is not type(None)]
        inner = _kind(functools.reduce(operator.or_, rest))
        return Kind(inner.base, inner.is_list, True) if inner and not inner.optional else None
    if origin in (list, collections.abc.Sequence) and len(args) == 1:
        inner = _kind(args[0])
        return Kind(inner.base, True) if inner and not inner.is_list and not inner.optional else None
    return None


def _results(hint: Any, name: str) -> tuple[tuple[Kind, ...], bool]:
    if hint is type(None):
        return (), False
    is_tuple = typing.get_origin(hint) is tuple
    kinds = [_kind(h) for h in (typing.get_args(hint) if is_tuple else (hint,))]
    if any(k is None or k.base not in ("Tensor", "int", "float", "bool", "Scalar") for k in kinds):
        raise ValueError(
            f"infer_schema: {name} returns {hint}, which a schema can't say; use Tensor, a list or tuple of Tensors, a "
            f"number, or None"
        )
    return tuple(k for k in kinds if k is not None), is_tuple
