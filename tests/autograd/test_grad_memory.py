"""`.grad` in memory that somebody else looks at too: later gradients are added in place, whatever its layout."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
forward_ad = tp.autograd.forward_ad
row = pytest.mark.row
pytestmark = pytest.mark.filterwarnings("ignore:.*gradient layout contract")


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), requires_grad=True)


def cut(how: str) -> tuple[Any, Any]:
    """A buffer, and three elements of it."""
    if how == "column":
        buffer = tp.zeros(3, 2)
        return buffer, buffer[:, 1]
    if how == "step":
        buffer = tp.zeros(7)
        return buffer, buffer[::3]
    if how == "transposed":
        buffer = tp.zeros(4, 5, 3)
        return buffer, buffer.transpose(0, 2)[:, 2, 1]
    buffer = tp.zeros(3, 4)
    return buffer, tp.diagonal(buffer, 1)


@row("2.accumulation contract")
@pytest.mark.parametrize("how", ["column", "step", "transposed", "diagonal"])
def test_a_slice_of_a_buffer_is_added_to(how: str) -> None:
    buffer, part = cut(how)
    x = leaf(1.0, 2.0, 3.0)
    x.grad = part
    version = part._version
    (x * x).sum().backward()
    (x * 2).sum().backward()
    assert x.grad is part and part.tolist() == [4.0, 6.0, 8.0] and buffer.sum().item() == 18.0
    assert part._version == version + 2


@row("2.accumulation contract")
def test_large_slices() -> None:
    buffer = tp.zeros(100, 200)
    x = tp.ones(100, 100, requires_grad=True)
    x.grad = buffer[:, ::2]
    for _ in range(2):
        (x * 3).sum().backward()
    assert buffer[:, ::2].sum().item() == 60000.0 and buffer[:, 1::2].sum().item() == 0.0


@row("1.grad_dtype")
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_memory_of_another_dtype(dtype: str) -> None:
    x = leaf(1.0, 2.0)
    x.grad_dtype = None
    kept = tp.zeros(2, dtype=getattr(tp, dtype))
    x.grad = kept
    (x * 2).sum().backward()
    assert x.grad is kept and kept.tolist() == [2.0, 2.0]


@row("2.accumulation contract")
def test_a_gradient_that_is_itself_a_leaf() -> None:
    x = leaf(1.0, 2.0)
    kept = tp.ones(2).requires_grad_()
    x.grad = kept
    (x * 2).sum().backward()
    assert x.grad is kept and kept.tolist() == [3.0, 3.0] and kept.requires_grad and kept.is_leaf


@row("6.propagation")
def test_a_gradient_with_a_tangent() -> None:
    x = leaf(1.0, 2.0)
    with forward_ad.dual_level():
        x.grad = kept = forward_ad.make_dual(tp.zeros(2), tp.ones(2))
        (x * 2).sum().backward()
        assert x.grad is kept
        primal, tangent = forward_ad.unpack_dual(kept)
        assert primal.tolist() == [2.0, 2.0] and tangent.tolist() == [1.0, 1.0]


@row("2.create_graph")
@pytest.mark.filterwarnings("ignore:.*cycle")
def test_with_a_record_the_sum_is_another_tensor() -> None:
    buffer = tp.zeros(4)
    x = leaf(1.0, 2.0)
    x.grad = buffer[::2]
    (x * x).sum().backward(create_graph=True)
    assert buffer.tolist() == [0.0] * 4 and x.grad.tolist() == [2.0, 4.0] and x.grad.requires_grad


@row("1.retain_grad")
@pytest.mark.parametrize("how", ["retain", "inputs"])
def test_the_gradient_of_a_result_is_another_tensor(how: str) -> None:
    buffer = tp.zeros(4)
    y = leaf(1.0, 2.0) * 2
    if how == "retain":
        y.retain_grad()
    y.grad = buffer[::2]
    (y * 3).sum().backward(inputs=[y] if how == "inputs" else None)
    assert buffer.tolist() == [0.0] * 4 and y.grad.tolist() == [3.0, 3.0]


@row("2.accumulation contract")
@pytest.mark.parametrize("kind", ["expanded", "inference"])
def test_what_cannot_be_written_is_refused(kind: str) -> None:
    x = leaf(1.0, 2.0, 3.0)
    if kind == "expanded":
        kept = tp.ones(1).expand(3)
        says = r"memory\s+location"
    else:
        with tp.inference_mode():
            kept = tp.ones(3)
        says = r"(?i)inference.?mode"
    x.grad = kept
    with pytest.raises(RuntimeError, match=says):
        (x * 2).sum().backward()
    assert x.grad is kept
    if kind == "expanded" or tp.__name__ == "tensorplay":
        assert kept.tolist() == [1.0, 1.0, 1.0]  # PyTorch raises after it has written


@row("2.accumulation contract")
@pytest.mark.ours
def test_read_only_memory_is_refused() -> None:
    import numpy as np

    array = np.ones(2, dtype=np.float32)
    array.flags.writeable = False
    x = leaf(1.0, 2.0)
    x.grad = tp.from_numpy(array)
    with pytest.raises(RuntimeError, match=r"AccumulateGrad: .* its memory is read-only"):
        (x * 2).sum().backward()
    assert array.tolist() == [1.0, 1.0]
