"""The `test:` of an entry: domains, edges, parameters, cases. Values are converted by the types of the signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import source
from .errors import did_you_mean
from .load_values import Raw, Reader, short
from .model import (
    DTYPES,
    Base,
    TensorCase,
    TestSpec,
    Type,
)  # fmt: skip
from .schema import CASE_KEYS, CASE_KINDS, TEST_KEYS
from .source import YMap, YNode, YScalar, YSeq


class TestReader(Reader):
    """Reads `test:`."""

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
                    f"test: '{short(name)}' is not an argument",
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
                    f"edges: '{short(k.text)}' is not a tensor argument",
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
                self.fault("E108", k.loc, f"skip of '{short(k.text)}' gives no reason", "skip: {gradgrad: why}")
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
            self.fault("E106", node.loc, f"'{short(str(value))}' is not a shape", "a list of sizes: [2, 3]")
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
                        "E204", k.loc, f"cases: '{short(k.text)}' is not an argument", did_you_mean(k.text, args, True)
                    )
                    continue
                case[k.text] = self._value_for(v, k.text, raw)
            out.append(case)
        return tuple(out)

    _test_check = _test_cases

    def _literal_for(self, node: YNode, name: str, *types: Type) -> Any:
        """A plain value that fits the argument's type, in one overload at least."""
        value = self.literal(node)
        words = [t for t in types if t.base is Base.STR and not t.optional]
        if isinstance(node, YScalar) and words and not any(_fits(value, t) for t in types if t not in words):
            value = node.text  # 'none' is a word there
        if any(_fits(value, t) for t in types):
            return value
        shown = " or ".join(map(str, types))
        self.fault("E207", node.loc, f"{short(repr(value))} is not a value of type {shown} for '{name}'")
        return None

    def _value_for(self, node: YNode, name: str, raw: Raw) -> Any:
        """A case's value: a tensor where an overload takes one and it is written as one, else a plain value."""
        types = list(dict.fromkeys(a.type for s in raw.sigs for a in s.args if a.name == name))
        tensors = [t for t in types if t.has_tensor]
        plain = [t for t in types if not t.has_tensor]
        if tensors and (not plain or not isinstance(node, YScalar)):
            items = node.items if isinstance(node, YSeq) else ()
            if plain and any(isinstance(x, YScalar) and "." in x.text for x in items):
                return self._literal_for(node, name, *plain)  # numbers, and no sizes
            lists = [t for t in tensors if t.is_list]
            mapped = any(isinstance(x, YMap) for x in items)
            return self._tensor_case(node, lists[0] if lists and mapped else tensors[0])
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
                f"'{short(node.text)}' is not a tensor",
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
                        "E104", k.loc, f"a tensor has no '{short(k.text)}'", did_you_mean(k.text, CASE_KEYS, True)
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
    if t.base is Base.ANY:
        return True
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
