"""Formulas defined at run time against mpmath: value, gradient, second gradient, tangent.

The list has a hundred and forty; a run takes a sample, TENSORPLAY_ALL_FORMULAS=1 all of them.
"""

from __future__ import annotations

import os
import random
import zlib
from pathlib import Path
from types import ModuleType

import pytest
import tensorplay as tp
from tensorplay.autograd import forward_ad

from .formulas import FORMULAS, Formula, reference

mp = pytest.importorskip("mpmath")
ALL = bool(os.environ.get("TENSORPLAY_ALL_FORMULAS"))
pytestmark = pytest.mark.timeout(3000 if ALL else 900)  # the first test compiles them

# One of each kind: nested, piecewise, powers, special functions, constants, one to six inputs.
SAMPLE = (5, 9, 13, 26, 35, 39, 47, 61, 69, 76, 89, 93, 96, 99, 106, 110, 118)
CHOSEN = FORMULAS if ALL else [FORMULAS[i] for i in SAMPLE]


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path: Path = tmp_path_factory.mktemp("formulas") / "formulas.yaml"
    path.write_text("schema: 1\nops:\n" + "\n".join(f.entry() for f in CHOSEN) + "\n")
    return tp.define_ops(str(path))


def points(f: Formula) -> list[dict[str, float]]:
    draw = random.Random(zlib.crc32(f.name.encode()))
    return [{a: draw.uniform(*span) for a, span in f.domain.items()} for _ in range(3)]


def near(got: float, want: object, tol: float = 1e-10) -> bool:
    value = float(want)  # type: ignore[arg-type]
    return abs(got - value) <= tol * max(1.0, abs(value))


def test_the_list_is_long() -> None:
    assert len({f.expr + str(f.domain) for f in FORMULAS}) == len(FORMULAS) >= 140


@pytest.mark.parametrize("f", CHOSEN, ids=str)
def test_formula(ops: ModuleType, f: Formula) -> None:
    op, want = getattr(ops, f.name), reference(f)
    names = list(f.domain)
    n = len(names)
    with mp.workdps(40):
        for at in points(f):
            p = tuple(mp.mpf(v) for v in at.values())
            xs = [tp.tensor(v, dtype=tp.float64, requires_grad=True) for v in at.values()]
            out = op(*xs)
            assert near(out.item(), want(*p)), f"value at {at}"
            grads = tp.autograd.grad(out, xs, create_graph=True)
            partial = [mp.diff(want, p, tuple(int(i == k) for i in range(n))) for k in range(n)]
            for k, g in enumerate(grads):
                assert near(g.item(), partial[k]), f"derivative by {names[k]} at {at}"
            # The second derivatives by the first and each argument.
            second = tp.autograd.grad(grads[0], xs, allow_unused=True) if grads[0].requires_grad else [None] * n
            for k, s in enumerate(second):
                order = [0] * n
                order[0] += 1
                order[k] += 1
                assert near(0.0 if s is None else s.item(), mp.diff(want, p, tuple(order)), 1e-8), f"second, {names[k]}"
            tangents = [0.5 + 0.25 * k for k in range(n)]
            with forward_ad.dual_level():
                duals = [
                    forward_ad.make_dual(x.detach(), tp.tensor(t, dtype=tp.float64))
                    for x, t in zip(xs, tangents, strict=True)
                ]
                tangent = forward_ad.unpack_dual(op(*duals)).tangent
            assert near(tangent.item(), sum(d * t for d, t in zip(partial, tangents, strict=True))), f"tangent at {at}"
