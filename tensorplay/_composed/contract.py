"""Sums of products over named dimensions: einsum and tensordot, as batched matrix products.

What is done depends on shapes alone: it is found once on stand-ins that record their calls, and kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import tensorplay as tp

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
Tensor = Any
Labels = list[str]


class _Recorded:
    """Stands for a tensor of a shape; a call on it becomes a step: (function, operand, other or -1, argument)."""

    def __init__(self, steps: list[tuple[Callable[..., Any], int, int, Any]], slot: int, shape: Sequence[int]) -> None:
        self.steps, self.slot, self.shape, self.ndim = steps, slot, tuple(shape), len(shape)

    def _then(self, f: Callable[..., Any], shape: Sequence[int], argument: Any, other: int = -1) -> _Recorded:
        self.steps.append((f, self.slot, other, argument))
        return _Recorded(self.steps, self.steps[0][1] + len(self.steps) - 2, shape)

    def permute(self, order: list[int]) -> _Recorded:
        if order == list(range(self.ndim)):
            return self
        return self._then(tp.Tensor.permute, [self.shape[i] for i in order], order)

    def reshape(self, sizes: Sequence[int]) -> _Recorded:
        return self if tuple(sizes) == self.shape else self._then(tp.Tensor.reshape, sizes, list(sizes))

    def expand(self, sizes: Sequence[int]) -> _Recorded:
        return self if tuple(sizes) == self.shape else self._then(tp.Tensor.expand, sizes, list(sizes))

    def sum(self, dims: list[int]) -> _Recorded:
        return self._then(tp.Tensor.sum, [n for i, n in enumerate(self.shape) if i not in dims], dims)

    def diagonal(self, i: int, j: int) -> _Recorded:
        shape = [n for k, n in enumerate(self.shape) if k not in (i, j)] + [self.shape[i]]
        return self._then(lambda x, d: x.diagonal(0, *d), shape, (i, j))

    def times(self, f: Callable[..., Any], other: _Recorded, shape: Sequence[int]) -> _Recorded:
        return self._then(f, shape, None, other.slot)


class _Plan:
    """The steps from operands of some shapes to the result."""

    def __init__(self, shapes: Sequence[Sequence[int]]) -> None:
        # The first step only says where the results of steps begin.
        self.steps: list[tuple[Callable[..., Any], int, int, Any]] = [(tp.Tensor.permute, len(shapes), -1, None)]
        self.operands = [_Recorded(self.steps, i, shape) for i, shape in enumerate(shapes)]
        self.result = 0

    def done(self, x: _Recorded) -> _Plan:
        self.result = x.slot
        del self.steps[0]
        if not self.steps:  # a tensor of its own all the same
            self.steps.append((tp.Tensor.permute, x.slot, -1, list(range(x.ndim))))
            self.result = len(self.operands)
        return self

    def run(self, operands: Sequence[Tensor]) -> Tensor:
        values = list(operands)
        for f, at, other, argument in self.steps:
            values.append(f(values[at], argument) if other < 0 else f(values[at], values[other]))
        return values[self.result]


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Also takes the sublist form: a tensor and the numbers of its dimensions in turn, the result's numbers last."""
    if isinstance(equation, tp.Tensor):
        equation, operands = _from_sublists((equation, *operands))
    if not isinstance(equation, str):
        raise TypeError(f"einsum: argument 'equation' must be str, not {type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    for i, x in enumerate(operands):
        if not isinstance(x, tp.Tensor):
            raise TypeError(f"einsum: operand {i} must be a Tensor, not {type(x).__name__}")
    if not operands:
        raise ValueError("einsum: needs at least one operand")
    return _einsum_plan(equation, tuple([x.shape for x in operands])).run(operands)


@lru_cache(maxsize=1024)
def _einsum_plan(equation: str, shapes: tuple[tuple[int, ...], ...]) -> _Plan:
    plan = _Plan(shapes)
    inputs, out, wide = _parse(equation, plan.operands)
    terms = [_diagonals(x, labels) for x, labels in zip(plan.operands, inputs, strict=True)]
    sizes = _sizes(equation, terms)
    while len(terms) > 1:
        i, j = _next_pair(terms, sizes, out)
        right, left = terms.pop(j), terms.pop(i)
        kept = {*out, *(c for _, labels in terms for c in labels)}
        terms.insert(i, _pair(*left, *right, kept, sizes))
    x, labels = _sum_out(*terms[0], set(out))
    x = x.permute([labels.index(c) for c in out if c in labels]) if labels else x
    if len(labels) < len(out):  # a name of the result in no operand was refused; broadcast names may be absent
        x = x.reshape([sizes[c] if c in labels else 1 for c in out])
    return plan.done(x.expand([sizes[c] for c in out]) if wide else x)


def _from_sublists(items: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Tensors and lists of numbers in turn, as an equation: number k is letter k, Ellipsis three dots."""

    def letters(numbers: Any) -> str:
        text = ""
        for k in numbers:
            if k is Ellipsis:
                text += "..."
            elif isinstance(k, int) and 0 <= k < len(LETTERS):
                text += LETTERS[k]
            else:
                raise ValueError(f"einsum: {k!r} names no dimension; the sublist form takes 0 to 51 and Ellipsis")
        return text

    pairs = len(items) // 2
    for k in range(pairs):
        if not isinstance(items[2 * k], tp.Tensor) or not isinstance(items[2 * k + 1], (list, tuple)):
            raise TypeError("einsum: the sublist form is tensor, list, tensor, list, ..., and the result's list last")
    equation = ",".join(letters(items[2 * k + 1]) for k in range(pairs))
    if len(items) % 2:
        equation += "->" + letters(items[-1])
    return equation, tuple(items[2 * k] for k in range(pairs))


def _parse(equation: str, operands: Sequence[_Recorded]) -> tuple[list[Labels], Labels, bool]:
    """Labels of each operand and of the result; dots become the names 0, 1, ... counted from the last dimension."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        raise ValueError(f"einsum: '{equation}' names {len(parts)} operands, {len(operands)} were given")
    inputs: list[Labels] = []
    dots = 0
    for i, (part, x) in enumerate(zip(parts, operands, strict=True)):
        names = _letters(equation, part)
        plain = len(names) - ("..." in names)
        if x.ndim < plain or (x.ndim > plain and "..." not in names):
            raise ValueError(f"einsum: '{part}' names {plain} dimensions, operand {i} has sizes {list(x.shape)}")
        n = x.ndim - plain
        dots = max(dots, n)
        at = names.index("...") if "..." in names else 0
        inputs.append([*names[:at], *(str(k) for k in reversed(range(n))), *names[at + 1 :]] if n else
                      [c for c in names if c != "..."])  # fmt: skip
    wide = [str(k) for k in reversed(range(dots))]
    used = [c for labels in inputs for c in labels]
    if not arrow:
        return inputs, wide + sorted({c for c in used if used.count(c) == 1 and not c.isdigit()}), False
    out: Labels = []
    for c in _letters(equation, right):
        if c == "...":
            out += wide
        elif c in out:
            raise ValueError(f"einsum: '{c}' stands twice in the result of '{equation}'")
        elif c not in used:
            raise ValueError(f"einsum: '{c}' of the result is in no operand of '{equation}'")
        else:
            out.append(c)
    return inputs, out, False


def _letters(equation: str, part: str) -> Labels:
    head, dots, tail = part.partition("...")
    names = [*head, *(["..."] if dots else []), *tail]
    for c in names:
        if c != "..." and c not in LETTERS:
            raise ValueError(f"einsum: '{c}' in '{equation}' is not a letter; dimensions are a to z and A to Z")
    return names


def _diagonals(x: _Recorded, labels: Labels) -> tuple[_Recorded, Labels]:
    """A name that stands twice in an operand: its diagonal."""
    labels = list(labels)
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ValueError(f"einsum: '{c}' stands for sizes {x.shape[i]} and {x.shape[j]} of one operand")
            x = x.diagonal(i, j)
            del labels[j], labels[i]
            labels.append(c)
    return x, labels


def _sizes(equation: str, terms: Sequence[tuple[_Recorded, Labels]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for x, labels in terms:
        for c, n in zip(labels, x.shape, strict=True):
            old = sizes.setdefault(c, n)
            if old == 1:
                sizes[c] = n
            elif n not in (1, old):
                name = "..." if c.isdigit() else c
                raise ValueError(f"einsum: '{name}' of '{equation}' stands for sizes {old} and {n}")
    return sizes


def _next_pair(terms: Sequence[tuple[_Recorded, Labels]], sizes: dict[str, int], out: Labels) -> tuple[int, int]:
    """The two operands whose product is smallest, the first of several: a greedy order of contraction."""
    if len(terms) == 2:
        return 0, 1
    best: tuple[float, int, int] | None = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            rest = {*out, *(c for k, (_, labels) in enumerate(terms) if k not in (i, j) for c in labels)}
            both = {*terms[i][1], *terms[j][1]}
            cost = float(math.prod(sizes[c] for c in both & rest)), math.prod(sizes[c] for c in both)
            if best is None or (cost[0] + 1e-9 * cost[1]) < best[0]:
                best = (cost[0] + 1e-9 * cost[1], i, j)
    assert best is not None
    return best[1], best[2]


def _sum_out(x: _Recorded, labels: Labels, kept: set[str]) -> tuple[_Recorded, Labels]:
    gone = [i for i, c in enumerate(labels) if c not in kept]
    return (x.sum(gone), [c for c in labels if c in kept]) if gone else (x, labels)


def _pair(
    a: _Recorded, names_a: Labels, b: _Recorded, names_b: Labels, kept: set[str], sizes: dict[str, int]
) -> tuple[_Recorded, Labels]:
    """The product of two operands, summed over what only they have."""
    a, names_a = _sum_out(a, names_a, kept | set(names_b))
    b, names_b = _sum_out(b, names_b, kept | set(names_a))
    # A size of 1 that broadcasts and is summed over: the other operand is summed alone.
    for c in [c for c in names_a if c in names_b and c not in kept]:
        i, j = names_a.index(c), names_b.index(c)
        if a.shape[i] != b.shape[j]:
            a, names_a = (a.sum([i]), [x for x in names_a if x != c])
            b, names_b = (b.sum([j]), [x for x in names_b if x != c])
    batch = [c for c in names_a if c in names_b and c in kept]
    summed = [c for c in names_a if c in names_b and c not in kept]
    only_a = [c for c in names_a if c not in names_b]
    only_b = [c for c in names_b if c not in names_a]
    a = a.permute([names_a.index(c) for c in batch + only_a + summed])
    b = b.permute([names_b.index(c) for c in batch + summed + only_b])
    if not summed:
        a = a.reshape([*a.shape, *(1,) * len(only_b)])
        b = b.reshape([*b.shape[: len(batch)], *(1,) * len(only_a), *b.shape[len(batch) :]])
        shape = [max(m, n) if 0 not in (m, n) else 0 for m, n in zip(a.shape, b.shape, strict=True)]
        return a.times(tp.mul, b, shape), batch + only_a + only_b
    wide = [sizes[c] for c in batch]
    a = a.expand([*wide, *a.shape[len(batch) :]])
    b = b.expand([*wide, *b.shape[len(batch) :]])
    rows, columns = [sizes[c] for c in only_a], [sizes[c] for c in only_b]
    inner = math.prod(sizes[c] for c in summed)
    n, m, k = math.prod(wide), math.prod(rows), math.prod(columns)
    rows = list(a.shape[len(batch) : len(batch) + len(only_a)])
    columns = list(b.shape[len(b.shape) - len(only_b) :]) if only_b else []
    m, k = math.prod(rows), math.prod(columns)
    if batch:
        x = a.reshape([n, m, inner]).times(tp.bmm, b.reshape([n, inner, k]), [n, m, k])
    else:
        x = a.reshape([m, inner]).times(tp.mm, b.reshape([inner, k]), [m, k])
    return x.reshape([*wide, *rows, *columns]), batch + only_a + only_b


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    if isinstance(dims, tp.Tensor):
        dims = dims.tolist()
    if not isinstance(dims, int):
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
        if len(left) != len(right):
            raise ValueError(f"tensordot: {len(left)} dimensions of a and {len(right)} of b; they are summed in pairs")
        dims = (tuple(left), tuple(right))
    return _tensordot_plan(dims, a.shape, b.shape).run((a, b))


@lru_cache(maxsize=1024)
def _tensordot_plan(dims: Any, *shapes: tuple[int, ...]) -> _Plan:
    plan = _Plan(shapes)
    a, b = plan.operands
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: dims={dims} does not fit sizes {list(a.shape)} and {list(b.shape)}")
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = [_wrap("tensordot", d, a) for d in dims[0]], [_wrap("tensordot", d, b) for d in dims[1]]
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j]:
            if 1 not in (a.shape[i], b.shape[j]):
                raise ValueError(
                    f"tensordot: dimension {i} of a has size {a.shape[i]}, dimension {j} of b size {b.shape[j]}"
                )
            a = a.sum([i]).reshape([*a.shape[:i], 1, *a.shape[i + 1 :]])
            b = b.sum([j]).reshape([*b.shape[:j], 1, *b.shape[j + 1 :]])
    rest_a = [i for i in range(a.ndim) if i not in left]
    rest_b = [j for j in range(b.ndim) if j not in right]
    sizes = [*(a.shape[i] for i in rest_a), *(b.shape[j] for j in rest_b)]
    inner = math.prod(a.shape[i] for i in left)
    rows, columns = math.prod(a.shape[i] for i in rest_a), math.prod(b.shape[j] for j in rest_b)
    x = a.permute(rest_a + left).reshape([rows, inner])
    y = b.permute(right + rest_b).reshape([inner, columns])
    return plan.done(x.times(tp.mm, y, [rows, columns]).reshape(sizes))


def _wrap(op: str, dim: int, x: _Recorded) -> int:
    if not -max(x.ndim, 1) <= dim < max(x.ndim, 1):
        raise IndexError(f"{op}: dimension {dim} is out of range for sizes {list(x.shape)}")
    return dim % max(x.ndim, 1)
