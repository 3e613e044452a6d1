"""Factories: sizes in every form, dtypes, flags, refusals."""

import numpy as np
import pytest
import tensorplay as tp


def test_sizes_as_numbers_list_and_size():
    for t in (tp.zeros(2, 3), tp.zeros((2, 3)), tp.zeros([2, 3]), tp.zeros(tp.ones(2, 3).shape)):
        assert t.shape == (2, 3) and t.dtype == tp.float32 and t.sum().item() == 0


def test_flags():
    x = tp.ones(2, dtype=tp.float64, requires_grad=True, device="cpu")
    assert x.requires_grad and x.is_leaf and x.dtype == tp.float64
    with tp.no_grad():
        assert tp.zeros(1, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating"):
        tp.ones(2, dtype=tp.int64, requires_grad=True)
    with pytest.raises((RuntimeError, ValueError), match="cuda"):
        tp.ones(2, device="cuda")


def test_arange_dtypes_and_ends():
    assert tp.arange(5).dtype == tp.int64 and tp.arange(5.0).dtype == tp.float32
    assert tp.arange(1, 10, 3).tolist() == [1, 4, 7]
    assert tp.arange(5, 0, -2).tolist() == [5, 3, 1]
    np.testing.assert_allclose(tp.arange(0, 1, 0.25, dtype=tp.float64).numpy(), np.arange(0, 1, 0.25))
    with pytest.raises((ValueError, RuntimeError), match="arange"):
        tp.arange(0, 5, 0)


def test_empty_has_the_size_and_dtype_asked_for():
    assert tp.empty(2, 0, dtype=tp.int32).shape == (2, 0)
    assert tp.empty(3).dtype == tp.float32


def test_default_dtype():
    try:
        tp.set_default_dtype(tp.float64)
        assert tp.ones(1).dtype == tp.float64 and tp.tensor([1.0]).dtype == tp.float64
    finally:
        tp.set_default_dtype(tp.float32)
    with pytest.raises(TypeError):
        tp.set_default_dtype(tp.int64)


def test_negative_size_is_refused():
    with pytest.raises((ValueError, RuntimeError), match="-1"):
        tp.zeros(2, -1)


def test_too_large_is_a_memory_error():
    with pytest.raises(MemoryError):
        tp.zeros(1 << 40, 1 << 40)
