"""What the generated tests check of an op, given its row of plain data: values, derivatives to third order, tangents,
batching, dtypes, shapes, layouts, in-place forms, edges, messages, memory.

A row names a reference (`like`); nothing here is computed from the op's own formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from unittest import SkipTest

from . import batching, derivatives, draws, faces, values
from .rows import Form, Op

DERIVATIVES = ("grad", "gradgrad", "third", "complex", "tangent")
__all__ = ["Check", "Form", "Op", "checks"]


@dataclass(frozen=True)
class Check:
    """One thing checked of one op. Its text is the test's id and begins with the op's name."""

    op: Op
    what: str
    body: Callable[[Op], None]

    def __str__(self) -> str:
        return f"{self.op.name}-{self.what}"

    def run(self) -> None:
        """Raises AssertionError where it fails, SkipTest (which pytest knows too) where it does not apply."""
        why = self.op.skip.get(self.what) or (self.what in DERIVATIVES and self.op.unchecked_derivative)
        if why:
            raise SkipTest(str(why))
        self.body(self.op)


def checks(ops: Sequence[Op]) -> list[Check]:
    return [Check(op, what, body) for op in ops for what, body in _applicable(op)]


def _applicable(op: Op) -> Iterator[tuple[str, Callable[[Op], None]]]:
    drawn = bool(op.cases) or op.elementwise
    diff = any(f.diff for f in op.forms)
    referenced = any(f.like or f.values for f in op.forms)
    if drawn and referenced:
        yield "values", values.check_values
        if op.elementwise:
            yield "shapes", values.check_shapes
            yield "dtypes", values.check_dtypes
        yield "layouts", values.check_layouts
    if drawn and any(f.tests for f in op.forms) and values.form_of(op):
        yield "form", values.check_form
    if drawn and any(a[0] == "generator" for f in op.forms for a in f.args) and (draw := draws.form_of(op)):
        yield "draws", partial(draws.check_draws, form=draw)
    if drawn and any(a[1].startswith("Tensor") for f in op.forms for a in f.args):
        yield "batching", batching.check_batching
    if op.edges and referenced:
        yield "edges", values.check_edges
    if op.special:
        yield "special", values.check_special
    if drawn and diff:
        for order, what in ((1, "grad"), (2, "gradgrad"), (3, "third")):
            yield what, partial(derivatives.check_order, order=order)
        yield "tangent", derivatives.check_tangent
        yield "saved", faces.check_saved
        yield "leak", faces.check_leak
        if op.elementwise:
            yield "blocks", faces.check_blocks
        if any(op.allows(d) for d in ("c64", "c128")):
            yield "complex", derivatives.check_complex
    if op.inplace and drawn:
        yield "inplace", faces.check_inplace
    if (op.methods or op.operators or op.out) and drawn:
        yield "faces", faces.check_faces
    yield "messages", faces.check_messages
