"""Operands of an elementwise op whose dtype the signature fixes."""

from __future__ import annotations

import pytest
import tensorplay as tp


def test_an_operand_of_another_dtype_is_refused() -> None:
    pick = tp.define_op(
        "pick(Tensor x, Tensor<bool> m, Tensor<f64>? w=None) -> Tensor out",
        expr="where(m, x, 0) * (1 if w == None else w)", out=True, inplace="save_copy",
    )  # fmt: skip
    x, m, w = tp.tensor([1.0, 2.0]), tp.tensor([True, False]), tp.tensor([3.0, 4.0], dtype=tp.float64)
    assert pick(x, m).tolist() == [1.0, 0.0]
    got = pick(x, m, w)
    assert (got.tolist(), got.dtype) == ([3.0, 0.0], tp.float64)
    for args in ((x, x), (x, m, x), (x, m.long())):
        with pytest.raises(TypeError, match="pick: "):
            pick(*args)
    with pytest.raises(TypeError, match="pick: "):
        pick(x, x, out=tp.empty(2))
    with pytest.raises(TypeError, match="pick: "):
        tp.vmap(pick)(tp.ones(2, 2), tp.ones(2, 2))
    y = tp.tensor([1.0, 2.0], requires_grad=True)
    pick(y, m).sum().backward()
    assert y.grad is not None and y.grad.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("key", ["expr", "compose"])
def test_powers_of_whole_numbers_mean_the_same(key: str) -> None:
    """A float where the exponent may be negative, whatever it is; whole where it is written and is not."""
    x = tp.arange(3)
    power = tp.define_op(f"power_{key}(Tensor x, int n=2) -> Tensor out", **{key: "x * 2**n"})
    assert power(x, -1).tolist() == [0.0, 0.5, 1.0]
    assert power(x).tolist() == [0.0, 4.0, 8.0]
    assert power(x).dtype == tp.float32
    square = tp.define_op(f"square_{key}(Tensor x, int n=2) -> Tensor out", **{key: "x * n**2 + 2**3"})
    assert (square(x, -3).tolist(), square(x).dtype) == ([8, 17, 26], tp.int64)
    half = tp.define_op(f"half_{key}(Tensor x) -> Tensor out", **{key: "x * 2**-1"})
    assert half(x).tolist() == [0.0, 0.5, 1.0]
