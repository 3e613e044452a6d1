"""Arguments at their edges: dimension lists, sizes left to the input, tables looked up out of range, dtypes refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_renorm_along_each_dimension(dim: int) -> None:
    x = tp.arange(24.0, dtype=tp.float64).view(2, 3, 4)
    rest = tuple(d for d in range(3) if d != dim % 3)
    norms = np.sqrt((x.numpy() ** 2).sum(rest, keepdims=True))
    want = x.numpy() * np.where(norms > 20, 20 / (norms + 1e-7), 1)
    np.testing.assert_allclose(tp.renorm(x, 2, dim, 20).numpy(), want, rtol=1e-12)


def test_a_solution_for_a_number() -> None:
    x = tp.linalg.tensorsolve(tp.tensor([2.0]), tp.tensor(6.0))
    assert x.shape == (1,) and x.tolist() == [3.0]


@pytest.mark.parametrize(("size", "shape"), [((None, 2), (6, 2)), ((3, None), (3, 4)), ((None, None), (6, 4))])
def test_pooled_sizes_may_be_left_to_the_input(size: Any, shape: tuple[int, int]) -> None:
    x = tp.arange(24.0).view(1, 6, 4)
    assert F.adaptive_avg_pool2d(x, size).shape == F.adaptive_max_pool2d(x, size).shape == (1, *shape)


@pytest.mark.parametrize("size", [(4, 4), (0,), (-1,), ()])
def test_sizes_that_no_interpolation_has(size: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"sizes \[.*\] for 1 dimensions of space; every one must be positive"):
        F.interpolate(tp.ones(1, 2, 3), size=size)


def test_an_interpolation_to_nothing() -> None:
    with pytest.raises(ValueError, match="every one must be positive"):
        F.interpolate(tp.ones(1, 2, 3), scale_factor=0.1)
    with pytest.raises(ValueError, match="2 factors for 1 dimensions"):
        F.interpolate(tp.ones(1, 2, 3), scale_factor=(2.0, 2.0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_the_greatest_norm_stay_as_they_are(dtype: str) -> None:
    table = tp.tensor([[3.0, 4.0], [6.0, 8.0], [6.0, 8.0], [0.0, 1.0]], dtype=getattr(tp, dtype))
    F.embedding(tp.tensor([1, 0, 1, 1, 3]), table, max_norm=5.0)
    assert table[0].tolist() == [3.0, 4.0] and table[2].tolist() == [6.0, 8.0] and table[3].tolist() == [0.0, 1.0]
    assert table[1].tolist() == pytest.approx([3.0, 4.0], rel=1e-6)


@pytest.mark.parametrize("index", [4, 5, 400, -1])
def test_a_row_that_the_table_lacks_is_named_by_the_lookup(index: int) -> None:
    table = tp.ones(4, 2)
    with pytest.raises((IndexError, RuntimeError)) as plain:
        F.embedding(tp.tensor([0, index]), table)
    with pytest.raises(plain.type, match=re.escape(str(plain.value))):
        F.embedding(tp.tensor([0, index]), table, max_norm=1.0)


def test_refused_dtypes_are_told_what_is_taken() -> None:
    with pytest.raises(TypeError, match=r"^sort: does not take complex64; it takes bool, uint8, .*, float64$"):
        tp.sort(tp.ones(2, dtype=tp.complex64))


def test_each_place_of_a_message_gets_its_value() -> None:
    with pytest.raises(ValueError) as told:
        tp.div(tp.ones(2), tp.ones(2), rounding_mode="up")
    assert str(told.value) == "div: rounding_mode='up' is not 'floor', 'trunc' or None"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_number_does_not_widen_a_tensor_of_its_kind(dtype: str, shape: tuple[int, ...]) -> None:
    x = tp.full(shape, 0.5, dtype=getattr(tp, dtype))
    for op in (tp.add, tp.sub, tp.mul, tp.div, tp.pow):
        assert op(x, 0.25).dtype == x.dtype, op
    if not dtype.startswith("complex"):
        for op in (tp.atan2, tp.fmod, tp.remainder):
            assert op(x, 0.25).dtype == x.dtype, op
