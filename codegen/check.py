"""Wrong maths does not generate: formulas against the symbolic derivative, the reference and each other, numerically.

What cannot be evaluated here (no reference, a package missing) is listed, and left to the generated tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from .errors import Diagnostics
from .functions import Unavailable
from .model import OpFile
from .reference import World


def run(file: OpFile, diags: Diagnostics, only: str | None = None, among: Collection[str] | None = None) -> list[str]:
    """Check every entry, or one, or some; returns the lines of what was left unchecked."""
    from .check_points import PointCheck
    from .check_structured import check_structured

    skipped: list[str] = []
    world = World(file)
    with np.errstate(all="ignore"):
        for e in file.entries:
            if (only is not None and e.op != only) or (among is not None and e.op not in among):
                continue
            for o in e.overloads:
                if e.elementwise:
                    check = PointCheck(e, o, diags, world, skipped)
                    check.formulas()
                    check.singular_points()
            check_structured(e, diags, world, skipped)
    return skipped


def told(skipped: Sequence[str]) -> list[str]:
    """What was left unchecked, each op and reason once."""
    out = []
    for line in skipped:
        op, _, why = line.partition(": ")
        out.append(f"not compared: {op} ({re.sub(r'^case [0-9]+(: |, )', '', why)})")
    return [*dict.fromkeys(out)]


def attempt(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), or Unavailable with the reason: a reference may fail in any way."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(*args)
    except Unavailable:
        raise
    except Exception as ex:
        raise Unavailable(f"{type(ex).__name__}: {ex}"[:160]) from None


def point(env: Mapping[str, Any], i: int | None = None) -> str:
    parts = []
    for k, v in env.items():
        x = np.asarray(v).ravel()[i] if i is not None and isinstance(v, np.ndarray) else v
        parts.append(f"{k}={x:.6g}" if isinstance(x, (float, np.floating)) else f"{k}={x}")
    return ", ".join(parts)


def same(got: Any, want: Any, tol: float) -> bool:
    got, want = np.asarray(got) * 1.0, np.asarray(want) * 1.0
    if np.isnan(want).any() or np.isnan(got).any():
        return bool(np.isnan(want).all() and np.isnan(got).all())
    if np.isinf(want).any() or np.isinf(got).any():
        return bool((got == want).all())
    if (want == 0).all() and np.signbit(np.real(want)).all() and not np.signbit(np.real(got)).all():
        return False
    return bool((np.abs(got - want) <= tol * np.maximum(1, np.abs(want))).all())
