"""`explain OP --png FILE`: value and derivative of an elementwise op over its domain, as a picture."""

from __future__ import annotations

from pathlib import Path

from .evaluate import NumpyEvaluator
from .functions import Unavailable
from .model import Entry


class Refused(Exception):
    """There is nothing to draw, or nothing to draw with."""


def plot(e: Entry, path: str) -> None:
    """Draw the first overload over its first tensor; other arguments stand in the middle. Raises Refused."""
    try:
        import matplotlib
    except ImportError:
        raise Refused("codegen explain: --png needs matplotlib; run: pip install matplotlib") from None
    import numpy as np

    o = e.overloads[0]
    tensors = [a.name for a in o.sig.args if a.type.is_tensor]
    if o.inlined is None or not tensors:
        raise Refused(f"codegen explain: {e.op} is not elementwise with a formula; there is no curve to draw")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.backend_bases import FigureCanvasBase

    formats = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in formats:
        raise Refused(f"codegen explain: {path}: a picture ends in {', '.join('.' + f for f in sorted(formats))}")
    first = tensors[0]
    low, high = e.test.domains.get(first, (-3.0, 3.0))
    x = np.linspace(low, high, 601)
    env = {a.name: None if a.required else a.default for a in o.sig.args}
    env |= {name: sum(e.test.domains.get(name, (0.0, 2.0))) / 2 for name in tensors}
    env |= {a.name: 1.0 for a in o.sig.args if a.required and not a.type.is_tensor}
    env[first] = x
    evaluate = NumpyEvaluator()
    pyplot.figure(figsize=(7, 4))
    try:
        with np.errstate(all="ignore"):
            y = np.broadcast_to(evaluate(o.inlined, env), x.shape)
            pyplot.plot(x, y, label=f"{e.op}({first})")
            d = o.deriv.get(first)
            if d is not None and d.formula is not None and d.differentiable:
                env[o.sig.results[0].name] = y
                slope = np.broadcast_to(evaluate(d.formula.node, env), x.shape)
                pyplot.plot(x, slope, "--", label=f"derivative by {first}")
    except (Unavailable, TypeError) as why:
        pyplot.close()
        raise Refused(f"codegen explain: {e.op} cannot be drawn: {why}") from None
    others = ", ".join(f"{k} = {v:g}" for k, v in env.items() if isinstance(v, (int, float)) and k != first)
    pyplot.title(f"{o.expr.text if o.expr else e.op}" + (f"    ({others})" if others else ""), fontsize=9)
    pyplot.grid(alpha=0.3)
    pyplot.legend()
    pyplot.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close()
