"""Operands of an elementwise op that are left out: values and derivatives with each of them there and not."""

from __future__ import annotations

from typing import Any

import pytest
import tensorplay as tp
from tensorplay.autograd import gradcheck

scaled: Any = None


@pytest.fixture(scope="module", autouse=True)
def ops(cache: Any) -> None:
    global scaled
    scaled = tp.define_op(
        "scaled(Tensor x, Tensor? w=None, float? n=None, Scalar? s=None) -> Tensor out",
        expr="x * x * (3 if s == None else s) + (w if w != None else 1) + (0 if n == None else exp(n))",
    )


def test_values() -> None:
    x, w = tp.tensor([1.0, 2.0]), tp.tensor([5.0, 6.0])
    assert scaled(x).tolist() == [4.0, 13.0]
    assert scaled(x, w).tolist() == [8.0, 18.0]
    assert scaled(x, n=0.0).tolist() == [5.0, 14.0]
    assert scaled(x, s=2).tolist() == [3.0, 9.0]
    assert scaled(x, w, 0.0, 2).tolist() == [8.0, 15.0]


def test_derivatives() -> None:
    x = tp.tensor([1.0, 2.0], dtype=tp.float64, requires_grad=True)
    w = tp.tensor([5.0, 6.0], dtype=tp.float64, requires_grad=True)
    assert gradcheck(scaled, (x,))
    assert gradcheck(lambda x, w: scaled(x, w, 0.5, 2), (x, w), check_forward_ad=True)
    scaled(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6.0, 12.0]
    (g,) = tp.autograd.grad(scaled(tp.ones(2), w).sum(), [w])
    assert g.tolist() == [1.0, 1.0]


def test_only_whether_it_is_there_is_kept() -> None:
    either = tp.define_op("either(Tensor x, Tensor? w=None) -> Tensor out", expr="x * x if w == None else 3 * x + w")
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    for w, want in ((None, [2.0, 4.0]), (tp.ones(2), [3.0, 3.0])):
        (g,) = tp.autograd.grad(either(x, w).sum(), [x])
        assert g.tolist() == want
        _, slope = tp.func.jvp(lambda x, w=w: either(x, w), (x.detach(),), (tp.ones(2),))
        assert slope.tolist() == want
