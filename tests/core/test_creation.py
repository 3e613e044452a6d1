"""tensor, as_tensor, asarray and what they refuse."""

from __future__ import annotations

import array

import numpy as np
import pytest
import tensorplay as tp


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()), (1.5, "float32", ()), (True, "bool", ()), (1j, "complex64", ()), ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)), ([1, 2.5], "float32", (2,)), ([True, 2], "int64", (2,)),
        (((1, 2), [3, 4]), "int64", (2, 2)),
        (range(4), "int64", (4,)), (np.float32(2), "float32", ()), ([np.int32(2), np.int32(3)], "int32", (2,)),
        ([np.ones(2), np.zeros(2)], "float64", (2, 2)), (np.arange(6).reshape(2, 3), "int64", (2, 3)),
        (np.arange(6.0)[::-2], "float64", (3,)), (np.zeros((0, 3), np.float16), "float16", (0, 3)),
    ],
)  # fmt: skip
def test_inference(data, dtype: str, shape: tuple[int, ...]) -> None:
    t = tp.tensor(data)
    assert t.dtype is getattr(tp, dtype)
    assert t.shape == shape
    np.testing.assert_array_equal(t.numpy(), np.asarray(data))


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\) at position \[1\]"),
        ([1, [2]], ValueError, "found a sequence"),
        ([[1], 2], ValueError, "found a number"),
        ("abc", TypeError, "str"),
        ([1, "a"], TypeError, r"str at position \[1\]"),
        (object(), TypeError, "object"),
        (None, TypeError, "NoneType"),
    ],
)
def test_refused(data, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tp.tensor(data)


def test_dtypes() -> None:
    assert tp.tensor([1.7, -1.2], dtype=tp.int64).tolist() == [1, -1]
    assert tp.tensor([0, 3], dtype=tp.bool).tolist() == [False, True]
    assert tp.tensor(2**64 - 1, dtype=tp.uint64).item() == 2**64 - 1
    with pytest.raises(RuntimeError, match="64 bits"):
        tp.tensor(2**64)
    with pytest.raises(RuntimeError, match="overflow"):
        tp.tensor(300, dtype=tp.uint8)
    with pytest.raises(TypeError, match="complex"):
        tp.tensor(1j, dtype=tp.float32)
    try:
        tp.set_default_dtype(tp.float64)
        assert tp.tensor(1.0).dtype is tp.float64
    finally:
        tp.set_default_dtype(tp.float32)
    nested: list = []
    nested.append(nested)
    with pytest.raises(ValueError, match="nested too deeply"):
        tp.tensor(nested)


def test_sharing() -> None:
    a = np.arange(4.0)
    assert tp.from_numpy(a).data_ptr() == a.ctypes.data
    assert tp.as_tensor(a).data_ptr() == a.ctypes.data
    assert tp.asarray(a).data_ptr() == a.ctypes.data
    assert tp.tensor(a).data_ptr() != a.ctypes.data
    t = tp.from_numpy(a[::2])
    t += 1
    assert a.tolist() == [1.0, 1.0, 3.0, 3.0]
    with pytest.raises(ValueError, match=r"negative.*copy"):
        tp.from_numpy(a[::-1])
    assert tp.as_tensor(a[::-1]).tolist() == a[::-1].tolist()
    with pytest.raises(ValueError, match="big-endian"):
        tp.from_numpy(a.astype(">f8"))
    with pytest.raises(TypeError, match=r"np\.ndarray"):
        tp.from_numpy([1])
    x = tp.ones(2, requires_grad=True)
    assert tp.as_tensor(x) is x
    assert tp.as_tensor(x, dtype=tp.float64).grad_fn is not None
    assert tp.asarray(x).requires_grad
    assert not tp.asarray(x, requires_grad=False).requires_grad


def test_frombuffer() -> None:
    b = array.array("i", [1, 2, 3, 4])
    t = tp.frombuffer(b, dtype=tp.int32)
    t[0] = 9
    assert b[0] == 9
    assert tp.frombuffer(b, dtype=tp.int32, count=2, offset=4).tolist() == [2, 3]
    with pytest.raises(ValueError, match="need more"):
        tp.frombuffer(b, dtype=tp.int32, count=5)
    with pytest.raises(ValueError, match="multiple"):
        tp.frombuffer(b"abc", dtype=tp.int16)


def test_a_python_number_keeps_its_digits():
    a = tp.tensor([1.0], dtype=tp.float64)
    assert (a * 0.1).item() == 0.1 and (a + 0.1).item() == 1.1 and (0.1 - a).item() == 0.1 - 1
    assert (a * 0.1j).item() == 0.1j
    assert (tp.ones(1) * 0.1).dtype == tp.float32 and (tp.ones(1, dtype=tp.int64) * 0.1).dtype == tp.float32
    x = tp.tensor([2.0], dtype=tp.float64, requires_grad=True)
    (g,) = tp.autograd.grad((x * 0.1).sum(), x, create_graph=True)
    assert g.item() == 0.1


def test_numpy_scalars_keep_their_dtype():
    assert tp.tensor(np.float64(0.5)).dtype == tp.float64 and tp.tensor([np.float64(1.0)]).dtype == tp.float64
    assert tp.tensor(np.complex128(1j)).dtype == tp.complex128 and tp.tensor(np.int32(3)).dtype == tp.int32
