"""Anomaly mode: which gradients it stops at, and what it tells of the forward."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
import tensorplay as tp

pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), requires_grad=True)


def through_a_view(dtype: str, value: Any) -> Any:
    x = tp.ones(2, 3, dtype=getattr(tp, dtype), requires_grad=True)
    g = tp.ones(3, 2, dtype=x.dtype)
    g[2, 1] = value
    with tp.autograd.detect_anomaly():
        x.clone().t().backward(g)
    return x.grad


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_it_stops_at_nan_and_nothing_else(dtype: str) -> None:
    for value in (0.0, math.inf, -math.inf):
        assert through_a_view(dtype, value)[1, 2].item() == value
    for value in (math.nan, -math.nan, *([complex(0, math.nan)] if dtype.startswith("complex") else [])):
        with (
            pytest.warns(UserWarning, match="Error detected in"),
            pytest.raises(RuntimeError, match="returned nan values in its 0th output"),
        ):
            through_a_view(dtype, value)


def root_in_place(x: Any) -> Any:
    return x.sqrt_()


def test_it_tells_where_an_in_place_op_ran() -> None:
    with (
        tp.autograd.detect_anomaly(),
        pytest.warns(UserWarning, match="root_in_place"),
        pytest.raises(RuntimeError, match="SqrtBackward0"),
    ):
        root_in_place(leaf(-1.0) * 1).sum().backward()
    assert "traceback_" not in root_in_place(leaf(4.0) * 1).grad_fn.metadata


@pytest.mark.parametrize("inside", [False, True])
def test_it_names_the_node_whose_backward_made_a_node(inside: bool) -> None:
    x = leaf(2.0)
    with tp.autograd.detect_anomaly() if inside else contextlib.nullcontext():
        y = x**3
    with tp.autograd.detect_anomaly():
        (g,) = tp.autograd.grad(y, x, create_graph=True)
        with pytest.warns(UserWarning) as told, pytest.raises(RuntimeError, match="returned nan values"):
            tp.autograd.grad(g, x, tp.tensor([math.nan]))
    text = "".join(str(w.message) for w in told)
    assert "This ran in the backward of Pow" in text
    assert ("Its forward ran here:" in text) == inside
