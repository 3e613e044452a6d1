"""The coefficients of csrc/kernels/vecmath_pieces.h: python tools/pieces.py prints its tables.

A function is a polynomial in x - c on each of 16 intervals of one width. Near the middle of each c is chosen so that
f(c) is nearly a float32: the first coefficient then has no error. Each further one is fitted in relative error after
those before it were rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

PIECES, POINTS = 16, 48
GRID, TRIES = mp.mpf(2) ** -14, 200  # where centres may lie, and how many of these to each side are looked at
mp.mp.prec = 120


def nearest(x: Any) -> float:
    return float(np.float32(float(x)))


def centre(f: Callable[[Any], Any], middle: Any) -> Any:
    def lost(c: Any) -> Any:
        return abs(f(c) - nearest(f(c))) / abs(f(c))

    return min((middle + k * GRID for k in range(-TRIES, TRIES + 1)), key=lost)


def coefficients(f: Callable[[Any], Any], c: Any, low: Any, high: Any, degree: int) -> list[float]:
    """Of f(c + u) for c + u from low to high."""
    nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / POINTS) for k in range(POINTS)]
    us = [(low + high) / 2 + (high - low) / 2 * t - c for t in nodes]
    values = [f(c + u) for u in us]
    found = [nearest(f(c))]
    for d in range(1, degree + 1):
        rest = [y - sum(mp.mpf(q) * u**k for k, q in enumerate(found)) for u, y in zip(us, values, strict=True)]
        rows = [[float(u**k / abs(y)) for k in range(d, degree + 1)] for u, y in zip(us, values, strict=True)]
        wanted = [float(r / abs(y)) for r, y in zip(rest, values, strict=True)]
        scale = np.abs(rows).max(0)
        solved = np.linalg.lstsq(np.array(rows) / scale, np.array(wanted), rcond=None)[0] / scale
        found.append(nearest(solved[0]))
    return found


def show(
    name: str,
    f: Callable[[Any], Any],
    width: Any,
    degree: int,
    *,
    start: Any = 0,
) -> None:
    """First the centres, then the coefficients."""
    columns = []
    for k in range(PIECES):
        middle = start + k * width
        c = middle if middle == 0 else centre(f, middle)
        low = middle - width / 2 if k else middle
        columns.append([float(c), *coefficients(f, c, low, middle + width / 2, degree)])
    print(f"// {name}\n{{")
    for row in zip(*columns, strict=True):
        print("  {" + ", ".join(f"{value.hex()}f" for value in row) + "},")
    print("}")


if __name__ == "__main__":
    show("ndtr(-a)", lambda a: mp.ncdf(-a), mp.mpf(1) / 4, 6)
    show("exp(a^2 / 2) ndtr(-a)", lambda a: mp.exp(a * a / 2) * mp.ncdf(-a), mp.mpf(45) / 64, 5, start=mp.mpf(31) / 8)
