"""The Greeks of European options, to third order, from one formula; and implied volatilities by Newton's method.

The price is an op made on the spot (`define_op`). Every Greek is a derivative of it, over a sheet of options at once.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import tensorplay as tp

# Black and Scholes 1973: s spot, k strike, v volatility, r interest. ndtr is the normal distribution function.
call = tp.define_op(
    "call_price(Tensor s, Tensor k, Tensor years, Tensor v, Tensor r) -> Tensor out",
    expr="s * ndtr((log(s / k) + (r + v**2 / 2) * years) / (v * sqrt(years)))"
    " - k * exp(-r * years) * ndtr((log(s / k) + (r - v**2 / 2) * years) / (v * sqrt(years)))",
    test={"s": [80, 120], "k": [80, 120], "years": [0.1, 2], "v": [0.1, 0.6], "r": [0, 0.1]},
    doc="Price of a European call.",
)
ORDER = ("s", "k", "years", "v", "r")
# Name of the Greek, the arguments the price is differentiated by, the sign convention.
GREEKS: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("delta", ("s",), 1), ("vega", ("v",), 1), ("theta", ("years",), -1), ("rho", ("r",), 1),
    ("gamma", ("s", "s"), 1), ("vanna", ("s", "v"), 1), ("volga", ("v", "v"), 1), ("charm", ("s", "years"), -1),
    ("speed", ("s", "s", "s"), 1), ("zomma", ("s", "s", "v"), 1), ("ultima", ("v", "v", "v"), 1),
)  # fmt: skip


def greek(by: tuple[str, ...], sheet: dict[str, Any]) -> Any:
    """The derivative of every price of the sheet by the named arguments, one after another."""
    leaves = {name: value.detach().requires_grad_() for name, value in sheet.items()}
    value = call(*(leaves[name] for name in ORDER))
    for name in by:  # each price depends on its own row alone, so the gradient of the sum is the row of derivatives
        (value,) = tp.autograd.grad(value.sum(), leaves[name], create_graph=True)
    return value.detach()


def sheet_of(spots: Any, **fixed: float) -> dict[str, Any]:
    return {"s": spots, **{k: tp.full_like(spots, v) for k, v in fixed.items()}}


def implied_volatility(prices: Any, sheet: dict[str, Any], rounds: int = 8) -> Any:
    """Newton's method on all options at once; vega is the derivative it needs."""
    v = tp.full_like(prices, 0.3)
    for _ in range(rounds):
        now = sheet | {"v": v}
        error = call(*(now[name] for name in ORDER)) - prices
        v = v - error / greek(("v",), now)
    return v


def draw(spots: Any, curves: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 4, figsize=(13, 8), sharex=True)
    for axis, (name, values) in zip(axes.flat, curves.items(), strict=True):
        axis.plot(spots.numpy(), values.numpy())
        axis.set_title(name)
        axis.axvline(100, color="0.8", zorder=0)
    figure.suptitle("A call struck at 100 with half a year to go, by spot")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--png", type=Path, default=Path("greeks.png"))
    options = parser.parse_args()
    spots = tp.linspace(60, 150, 181, dtype=tp.float64)
    sheet = sheet_of(spots, k=100.0, years=0.5, v=0.2, r=0.03)
    curves = {"price": call(*(sheet[name] for name in ORDER))}
    curves |= {name: sign * greek(by, sheet) for name, by, sign in GREEKS}
    at = int(np.argmin(abs(spots.numpy() - 100)))
    for name, values in curves.items():
        print(f"{name:8} {values[at].item():12.6f}")
    # The closed form of delta, to see that nothing was lost.
    d1 = (math.log(1.0) + (0.03 + 0.02) * 0.5) / (0.2 * math.sqrt(0.5))
    print(f"delta in closed form {0.5 * math.erfc(-d1 / math.sqrt(2)):.6f}")
    smile = 0.2 + 0.1 * ((spots - 100) / 100) ** 2
    found = implied_volatility(call(*((sheet | {"v": smile})[name] for name in ORDER)), sheet)
    print(f"implied volatilities of 181 prices: largest error {(found - smile).abs().amax().item():.1e}")
    draw(spots, curves, options.png)
    print(options.png.resolve())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
