"""checkpoint runs a function again: under the conditions of the first time, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorplay as tp
from tensorplay.utils.checkpoint import checkpoint


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), requires_grad=True)


def change_after(x: Any, z: Any) -> Any:
    y = checkpoint(lambda t: t * t, z, use_reentrant=False)
    z.zero_()
    return y


def change_inside(x: Any, z: Any) -> Any:
    return checkpoint(lambda t: t.mul_(2).sin(), z, use_reentrant=False)


def change_the_leaf(x: Any, z: Any) -> Any:
    y = checkpoint(lambda t, *, w: t * w, z, w=x, use_reentrant=False)
    with tp.no_grad():
        x.add_(1)
    return y


@pytest.mark.parametrize("run", [change_after, change_inside, change_the_leaf])
def test_an_argument_changed_in_place_is_reported(run: Callable[[Any, Any], Any]) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: argument \d, of sizes \[2\]"):
        run(x, x * 1).sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_autocast_is_as_it_was(reentrant: bool, first: bool) -> None:
    a = tp.full((2, 2), 1.001, requires_grad=True)
    seen = []

    def f(t: Any) -> Any:
        out = t @ t
        seen.append(out.dtype)
        return out

    with tp.autocast("cpu", dtype=tp.bfloat16, enabled=first):
        y = checkpoint(f, a, use_reentrant=reentrant)
    with tp.autocast("cpu", dtype=tp.bfloat16, enabled=not first):
        y.float().sum().backward()
    assert set(seen) == {tp.bfloat16 if first else tp.float32}
