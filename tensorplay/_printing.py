"""How a Tensor is shown: values aligned in columns, summarised when large, then dtype, grad_fn, requires_grad."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["set_printoptions", "tensor_repr"]


@dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = _Options()
_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are printed from now on.

    Args:
        precision: digits after the point (default 4).
        threshold: number of elements above which a tensor is summarised (default 1000).
        edgeitems: elements shown at each end of a summarised dimension (default 3).
        linewidth: characters in a line (default 80).
        profile: "default", "short" or "full"; single options given as well override it.
        sci_mode: scientific notation always (True), never (False) or as needed (None).
    Raises:
        ValueError: an unknown profile.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {sorted(_PROFILES)}, got {profile!r}")
        for name, preset in _PROFILES[profile].items():
            setattr(OPTIONS, name, preset)
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(OPTIONS, name, value)
    OPTIONS.sci_mode = sci_mode


class _Formatter:
    """One format for all numbers of a tensor: they share width and notation."""

    def __init__(self, values: list[Any], floating: bool) -> None:
        self.floating = floating
        self.int_mode = floating
        self.sci_mode = False
        self.width = 1
        if not floating:
            for v in values:
                self.width = max(self.width, len(str(v)))
            return
        finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
        self.int_mode = all(v == math.floor(v) for v in values if math.isfinite(v))
        if finite:
            top, low = max(finite), min(finite)
            big = top / low > 1000 if low > 0 else True
            self.sci_mode = top > 1e8 or (big or low < 1e-4 if not self.int_mode else big and top > 1e8)
            if not self.int_mode and not (top / low > 1000 or top > 1e8 or low < 1e-4):
                self.sci_mode = False
        if OPTIONS.sci_mode is not None:
            self.sci_mode = OPTIONS.sci_mode
        for v in values:
            self.width = max(self.width, len(self._text(v)))

    def _text(self, v: float) -> str:
        if self.sci_mode:
            return f"{v:.{OPTIONS.precision}e}"
        if self.int_mode:
            return f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"
        return f"{v:.{OPTIONS.precision}f}"

    def __call__(self, v: Any) -> str:
        text = self._text(v) if self.floating else str(v)
        return text.rjust(self.width)


def _numbers(items: Any) -> list[Any]:
    if isinstance(items, list):
        return [v for x in items for v in _numbers(x)]
    return [] if items is ... else [items]


def _nested(t: Any, summarise: bool) -> Any:
    """Nested lists of the values shown; `...` where elements are left out."""
    if t.dim() == 0:
        return t.item()
    n, e = t.shape[0], OPTIONS.edgeitems
    if summarise and n > 2 * e:
        head = [_nested(t[i], summarise) for i in range(e)]
        tail = [_nested(t[i], summarise) for i in range(n - e, n)]
        return [*head, ..., *tail]
    if t.dim() == 1 and not summarise:
        return t.tolist()
    return [_nested(t[i], summarise) for i in range(n)]


def _render(items: Any, dim: int, indent: int, show: Any) -> str:
    if not isinstance(items, list):
        return str(show(items))
    if dim == 1:
        cell = [" ..." if v is ... else show(v) for v in items]
        width = max((len(c) for c in cell), default=1) + 2
        per_line = max(1, (OPTIONS.linewidth - indent) // width)
        lines = [cell[i : i + per_line] for i in range(0, len(cell), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"
    parts = [" ..." if v is ... else _render(v, dim - 1, indent + 1, show) for v in items]
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(parts) + "]"


def _formatter(t: Any, items: Any) -> Any:
    values = _numbers(items)
    if t.is_complex():
        re, im = _Formatter([v.real for v in values], True), _Formatter([abs(v.imag) for v in values], True)
        return lambda v: f"{re(v.real)}{'-' if math.copysign(1, v.imag) < 0 else '+'}{im(abs(v.imag)).strip()}j"
    if t.is_floating_point():
        return _Formatter(values, True)
    return _Formatter(values, False)


def _batched_repr(t: Any) -> str:
    """A batched tensor by its levels, innermost first; the value shows the batch dimension of each in front."""
    import tensorplay as tp

    try:
        level = tp._C._batch_levels(t)[-1]
    except RuntimeError:
        return "BatchedTensor(of a vmap that has ended)"
    value = tensor_repr(tp._C._batch_value(t))
    return (
        f"BatchedTensor(lvl={level}, bdim=0, value=\n" + "\n".join("    " + line for line in value.split("\n")) + "\n)"
    )


def tensor_repr(t: Any) -> str:
    """`tensor([1., 2.], dtype=tensorplay.float64, requires_grad=True)`."""
    import tensorplay as tp

    if tp._C._is_batched(t):
        return _batched_repr(t)
    name = "tensor" if type(t) is tp.Tensor else type(t).__name__
    prefix = name + "("
    with tp.no_grad():
        plain = t.detach()
        if t.numel() == 0 and t.dim() != 1:
            body = f"[], size={tuple(t.shape)}" if t.dim() else "[]"
        elif t.numel() == 0:
            body = "[]"
        else:
            items = _nested(plain, t.numel() > OPTIONS.threshold)
            body = _render(items, t.dim(), len(prefix), _formatter(plain, items))
    suffixes = []
    implied = t.dtype in (tp.get_default_dtype(), tp.int64, tp.bool)
    if not implied or (t.numel() == 0 and t.dtype != tp.get_default_dtype()):
        suffixes.append(f"dtype={t.dtype}")
    fn = t.grad_fn
    if fn is not None:
        suffixes.append(f"grad_fn=<{fn.name()}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    text = prefix + body
    for s in suffixes:
        last = len(text) - text.rfind("\n") - 1
        text += f",\n{' ' * len(prefix)}{s}" if last + len(s) + 3 > OPTIONS.linewidth else f", {s}"
    return text + ")"
