"""Whether what an op draws is distributed as what its NumPy form draws. Knows no distribution itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

import numpy as np
from tensorplay.codegen import numpy_ops

from .inputs import Sample, samples
from .rows import Op, array, call, results, tensor

TIMES = 100_000  # a case is drawn so many times
CHANCE = 1e-9  # that two samples of one distribution lie farther apart; the seeds are fixed besides


def form_of(op: Op) -> Callable[..., Any] | None:
    """The NumPy form of a composition, or of the kernel behind it, which has the op's name where there is one only."""
    if op.package or any(sum(a[1].startswith("Tensor") for a in f.args) > 2 for f in op.forms):
        return None  # more than what is drawn for and its chances: attention mixes elements
    form: Callable[..., Any] | None = numpy_ops.find(op.name, op.name if len(op.forms) == 1 else None)
    return form


def check_draws(op: Op, form: Callable[..., Any]) -> None:
    """The largest distance of the two distribution functions (Kolmogorov, Smirnov); it bounds whole numbers too."""
    seen = 0
    for s in samples(op):
        many = _many(s)
        if many is None:
            continue
        given = {name: many.given.get(name, rest[0] if rest else None) for name, _, *rest in s.form.args}
        got = results(call(op, many, {k: tensor(v) for k, v in many.given.items()}))
        for g, w in zip(got, results(form(*given.values())), strict=True):
            a, b = (np.sort(np.asarray(x, np.float64), axis=None) for x in (array(g), w))
            assert a.size == b.size, f"{op.name} {s.text}: {a.size} numbers drawn, the reference draws {b.size}"
            at = np.concatenate([a, b])
            apart = np.abs(np.searchsorted(a, at, "right") - np.searchsorted(b, at, "right")).max() / a.size
            limit = math.sqrt(-math.log(CHANCE / 2) / a.size)
            assert apart <= limit, f"{op.name} {s.text}: {apart:.4f} from the reference's distribution, not {limit:.4f}"
        seen += 1
    if not seen:
        raise SkipTest(f"{op.name}: what it draws is not a number for each element")


def _many(s: Sample) -> Sample | None:
    """The call on all operands, or of a size, TIMES in a new first dimension."""
    given = dict(s.given)
    wide = [k for k, v in given.items() if isinstance(v, np.ndarray)]
    sizes = np.broadcast_shapes(*(given[k].shape for k in wide))
    for k in wide:
        given[k] = np.ascontiguousarray(np.broadcast_to(given[k], (TIMES, *sizes)))
    if not wide and "size" in given:
        given["size"] = (TIMES, *given["size"])
    return s.replace(given) if given.keys() & {*wide, "size"} else None
