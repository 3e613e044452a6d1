"""Copies and conversions: dtype pairs against NumPy, identity where nothing is to do, gradients through casts."""

import itertools

import numpy as np
import pytest
import tensorplay as tp

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NAMES, NAMES)))
def test_conversion_agrees_with_numpy(a, b):
    x = np.array([0, 1, 2, 3]).astype(a)
    got = tp.tensor(x).to(getattr(tp, b))
    assert got.dtype == getattr(tp, b)
    want = x.real.astype(b) if np.iscomplexobj(x) and not b.startswith("complex") and b != "bool" else x.astype(b)
    np.testing.assert_array_equal(got.numpy(), want)


def test_same_dtype_is_the_same_tensor():
    x = tp.ones(2)
    assert x.to(tp.float32) is x and x.contiguous() is x and x.to("cpu") is x
    y = x.to(tp.float32, copy=True)
    assert y is not x and y.tolist() == [1.0, 1.0]


def test_bfloat16_rounds_to_even():
    x = tp.tensor([1.0 + 2**-8, 1.0 + 3 * 2**-8, 3.4e38]).to(tp.bfloat16).to(tp.float32)
    assert x.tolist() == [1.0, 1.0 + 2**-6, float("inf")] or x.tolist()[:2] == [1.0, 1.0 + 2**-6]


def test_gradient_through_a_cast_comes_back_in_the_input_dtype():
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    (x.to(tp.float64) * 3).sum().backward()
    assert x.grad.dtype == tp.float32 and x.grad.tolist() == [3.0, 3.0]


def test_copy_and_fill_in_place():
    x = tp.zeros(2, 3)
    x.copy_(tp.tensor([1.0, 2.0, 3.0], dtype=tp.float64))
    assert x.tolist() == [[1.0, 2.0, 3.0]] * 2
    x.fill_(7)
    assert x.sum().item() == 42
    x.zero_()
    assert x.sum().item() == 0
    v = tp.tensor([2.0], requires_grad=True)
    y = tp.zeros(3)
    y.copy_(v.expand(3))
    y.sum().backward()
    assert v.grad.tolist() == [3.0]


def test_statistics_count_small_tensors_too():
    before = tp.memory.stats()
    kept = [tp.ones(3) for _ in range(1000)] + [tp.ones(64) for _ in range(1000)] + [tp.ones(5000)]
    during = tp.memory.stats()
    held = sum(t.nbytes for t in kept)
    assert held <= during["in_use"] - before["in_use"] <= held + 20000 // 8
    assert during["peak"] >= during["in_use"] and during["blocks_live"] - before["blocks_live"] == 2001
    del kept
    after = tp.memory.stats()
    assert after["in_use"] == before["in_use"] and after["peak"] >= during["in_use"]
    tp.memory.reset_peak()
    assert tp.memory.stats()["peak"] < during["in_use"]


def test_what_is_broadcast_has_no_part_in_the_layout_of_a_result():
    image = tp.ones(2, 8, 4, 3).contiguous().permute(0, 3, 1, 2)  # channels last
    per_channel, row, m = tp.ones(1, 3, 1, 1), tp.ones(4), tp.ones(4, 6).t()
    assert (image + per_channel).stride() == (per_channel * image).stride() == image.stride()
    assert (m + row).stride() == (row - m).stride() == tp.where(m > 0, m, row).stride() == m.stride()
    assert (tp.ones(6, 1) + row).is_contiguous() and (m + tp.ones(6, 4) + row).is_contiguous()
