"""Checks of batching: vmap of an op against a loop over the samples, for mixtures of batched arguments and places of
the batch dimension, nested, and with gradients through both. TENSORPLAY_TEST_ALL=1 takes every mixture of every sample.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any
from unittest import SkipTest

import numpy as np
import tensorplay as tp
from tensorplay import _C

from .inputs import Sample, draw, samples
from .rows import Op, array, call, results, tensor, tolerance

SIZE = 3
ALL = os.environ.get("TENSORPLAY_TEST_ALL") == "1"
MOST = 2000  # mixtures of one sample: 6 tensors have 728; a list of 8 has 6560, of which every k-th is taken
Place = tuple[str, int | None]  # an argument, or an item of a list argument


def vmap(f: Callable[..., list[Any]], ins: Sequence[Any], dims: Sequence[int | None], size: int) -> list[Any]:
    """f over the batch, results with the batch in front: as little as the check needs, so that it depends on little."""
    level = _C._vmap_enter(size, "error")
    try:
        outs = f(*(x if d is None else _C._add_batch_dim(x, d, level) for x, d in zip(ins, dims, strict=True)))
        return [o if o is None else _C._remove_batch_dim(o, level, size, 0) for o in outs]
    finally:
        _C._vmap_exit(level)


def variant(a: np.ndarray[Any, Any], i: int) -> np.ndarray[Any, Any]:
    """Another value of the same kind: indices stay in range, orders, signs and definiteness stay."""
    if a.dtype.kind in "fc":
        return np.asarray(a * (1 - 0.06 * i))
    return np.roll(a.ravel(), i).reshape(a.shape)


class Batch:
    """The tensors of a sample, each with SIZE (or outer times SIZE) variants, and the op as a function of them."""

    def __init__(self, op: Op, s: Sample) -> None:
        self.op, self.s = op, s
        self.places: list[Place] = []
        self.values: list[np.ndarray[Any, Any]] = []
        for k, v in s.given.items():
            if isinstance(v, np.ndarray):
                self.places.append((k, None))
                self.values.append(v)
            elif isinstance(v, list):
                for i, x in enumerate(v):
                    if isinstance(x, np.ndarray):
                        self.places.append((k, i))
                        self.values.append(x)
        self.smooth = [
            k in s.form.diff and v.dtype.kind in "fc" for (k, _), v in zip(self.places, self.values, strict=True)
        ]

    def __call__(self, *xs: Any) -> list[Any]:
        given: dict[str, Any] = {k: list(v) if isinstance(v, list) else v for k, v in self.s.given.items()}
        for (k, i), x in zip(self.places, xs, strict=True):
            if i is None:
                given[k] = x
            else:
                given[k][i] = x
        out = results(call(self.op, self.s, given))
        return [o if isinstance(o, tp.Tensor) or o is None else tp.tensor(o) for o in out]

    def stacked(self, n: int, which: Sequence[bool]) -> list[Any]:
        """Leaves with a leading dimension of n variants where `which` says so."""
        out = []
        for v, many, smooth in zip(self.values, which, self.smooth, strict=True):
            t = tensor(np.stack([variant(v, i) for i in range(n)])) if many else tensor(v)
            out.append(t.requires_grad_() if smooth else t)
        return out

    def combinations(self) -> Iterator[tuple[int | None, ...]]:
        """in_dims: all in front first, then mixtures of the first dimension, the last and none."""
        n = len(self.places)
        yield (0,) * n
        if ALL:
            mixtures = list(self.every())
            yield from mixtures[:: 1 + len(mixtures) // MOST]
            return
        seen = islice((c for c in product((0, None, -1), repeat=n) if any(d is not None for d in c)), 40)
        picked = [c for c in seen if c != (0,) * n]
        yield from picked if n <= 2 else picked[:: max(1, len(picked) // 8)]

    def every(self) -> Iterator[tuple[int | None, ...]]:
        """Each mixture of none, the first and the last dimension; and each dimension of up to two, or of one alone."""
        n = len(self.places)
        places: list[list[int | None]] = [[None, *range(v.ndim + 1)] for v in self.values]
        ends: list[list[int | None]] = [[None, 0, *([-1] if v.ndim else [])] for v in self.values]
        mixtures = [p for p in product(*(places if n <= 2 else ends)) if any(d is not None for d in p)]
        if n > 2:
            mixtures += [(None,) * k + (d,) + (None,) * (n - k - 1) for k in range(n) for d in places[k] if d]
        return (m for m in mixtures if m != (0,) * n)


def moved(leaf: Any, dim: int | None) -> Any:
    return leaf if dim is None or dim == 0 else leaf.movedim(0, dim)


def same(op: Op, got: Sequence[Any], want: Sequence[Any], note: str) -> None:
    rtol, atol = tolerance(op)
    assert len(got) == len(want), f"{op.name} {note}: {len(got)} results, the loop gives {len(want)}"
    for g, w in zip(got, want, strict=True):
        if g is None or w is None:
            assert g is w or not np.any(array(w if g is None else g)), f"{op.name} {note}: one gives none"
            continue
        assert g.dtype == w.dtype, f"{op.name} {note}: {g.dtype}, the loop gives {w.dtype}"
        a, b = array(g), array(w)
        assert a.shape == b.shape, f"{op.name} {note}: sizes {a.shape}, the loop gives {b.shape}"
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=True, err_msg=f"{op.name} {note}")


def stack(rows: Sequence[Sequence[Any]]) -> list[Any]:
    return [None if col[0] is None else tp.stack(list(col)) for col in zip(*rows, strict=True)]


def gradients(op: Op, outs: Sequence[Any], leaves: Sequence[Any]) -> list[Any] | None:
    """Gradients of a weighted sum of the results, the weights the same for equal sizes."""
    wanted = [x for x in leaves if isinstance(x, tp.Tensor) and x.requires_grad]
    total = None
    for o in outs:
        if o is None or not o.requires_grad:
            continue
        w = tp.tensor(draw(np.random.default_rng(3), tuple(o.shape), o.is_complex())).to(o.dtype)
        term = (o * w).sum()
        term = term.real if term.is_complex() else term
        total = term if total is None else total + term
    if total is None or not total.requires_grad or not wanted:
        return None
    return list(tp.autograd.grad(total, wanted, allow_unused=True))


def check_batching(op: Op) -> None:
    checked = 0
    _C._vmap_warn_of_loops(False)
    try:
        for s in samples(op, limit=100 if ALL else 3):
            b = Batch(op, s)
            if b.places and _check_sample(op, b):
                checked += 1
    finally:
        _C._vmap_warn_of_loops(True)
    if not checked:
        raise SkipTest(f"{op.name}: no test case with tensors that a loop could stack")


def _check_sample(op: Op, b: Batch) -> bool:
    refused = False
    for dims in b.combinations():
        leaves = b.stacked(SIZE, [d is not None for d in dims])

        def at(i: int, leaves: list[Any] = leaves, dims: tuple[int | None, ...] = dims) -> list[Any]:
            # Cloned: as_strided would look past the sample.
            return [x if d is None else x[i].clone() for x, d in zip(leaves, dims, strict=True)]

        try:
            want = stack([b(*at(i)) for i in range(SIZE)])
        except RuntimeError:
            return False  # the samples' results differ in size
        if any(d is not None and x.dim() == 0 for x, d in zip(leaves, dims, strict=True)):
            continue
        try:
            got = vmap(b, [moved(x, d) for x, d in zip(leaves, dims, strict=True)], dims, SIZE)
        except RuntimeError as e:
            if "randomness" in str(e):  # it draws: tests/func/test_vmap_core.py
                return True
            if f"{op.name}: vmap: " in str(e) and "depends on the values of" in str(e):
                refused = True  # the other arguments can be mapped over
                continue
            raise
        note = f"in_dims={dims}, {b.s.text}"
        same(op, got, want, note)
        mine, theirs = gradients(op, got, leaves), gradients(op, want, leaves)
        if (mine or theirs) and not op.unchecked_derivative:
            none = [None] * len(mine or theirs or [])
            same(op, mine or none, theirs or none, f"gradients, {note}")
    if not refused:
        _check_nested(op, b)
    return True


def _check_nested(op: Op, b: Batch) -> None:
    """Two levels: every argument at both, then the first at the outer and the others at the inner one."""
    n = len(b.places)
    outer = 2
    leaves = []
    for v, smooth in zip(b.values, b.smooth, strict=True):
        x = tensor(np.stack([np.stack([variant(v, i + j) for j in range(SIZE)]) for i in range(outer)]))
        leaves.append(x.requires_grad_() if smooth else x)
    got = vmap(lambda *xs: vmap(b, xs, (0,) * n, SIZE), leaves, (0,) * n, outer)
    same(
        op,
        got,
        stack([stack([b(*(x[i][j].clone() for x in leaves)) for j in range(SIZE)]) for i in range(outer)]),
        f"nested, {b.s.text}",
    )
    if n < 2:
        return
    first, others = leaves[0][:, 0], [x[0] for x in leaves[1:]]
    mixed = vmap(
        lambda x, *ys: vmap(lambda *zs: b(x, *zs), ys, (0,) * (n - 1), SIZE),
        [first, *others],
        (0, *(None,) * (n - 1)),
        outer,
    )
    want = stack([stack([b(first[i], *(y[j] for y in others)) for j in range(SIZE)]) for i in range(outer)])
    same(op, mixed, want, f"nested, levels mixed, {b.s.text}")
