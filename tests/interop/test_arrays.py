"""Memory shared with NumPy, the buffer protocol and DLPack."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
import tensorplay as tp

DTYPES = "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128"


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_round_trip(dtype: str) -> None:
    a = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    t = tp.from_numpy(a)
    assert t.dtype is getattr(tp, dtype)
    b = t.T.numpy()
    assert b.dtype == a.dtype
    assert np.shares_memory(a, b)
    np.testing.assert_array_equal(a.T, b)
    m = memoryview(t)
    assert m.shape == (2, 3)
    assert np.shares_memory(np.asarray(m), a)
    np.testing.assert_array_equal(np.from_dlpack(t), a)
    back = tp.from_dlpack(a)
    assert back.data_ptr() == a.ctypes.data
    assert tp.from_dlpack(t.T).stride() == t.T.stride()


def test_refusals() -> None:
    x = tp.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        x.numpy()
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1.0, 1.0]
    with pytest.raises(BufferError, match="detach"):
        memoryview(x)
    with pytest.raises(TypeError, match="bfloat16"):
        tp.ones(2, dtype=tp.bfloat16).numpy()
    with pytest.raises(BufferError, match="contiguous"):
        hashlib.sha256(tp.ones(2, 3).T)
    capsule = tp.ones(2).__dlpack__()
    tp.from_dlpack(capsule)
    with pytest.raises(ValueError, match="once"):
        tp.from_dlpack(capsule)
    assert tp.ones(1).__dlpack_device__() == (1, 0)


def test_mixed_arithmetic() -> None:
    a = np.array([1.0, 2.0], dtype=np.float32)
    t = tp.tensor([3.0, 4.0])
    for r in (a * t, t * a):
        assert isinstance(r, tp.Tensor)
        assert r.tolist() == [3.0, 8.0]
    assert (np.float64(2) * t).dtype is tp.float32
    assert tp.maximum(t, a).tolist() == [3.0, 4.0]
    assert np.array(t, dtype=np.float64).dtype == np.float64
    read_only = a.copy()
    read_only.flags.writeable = False
    assert tp.as_tensor(read_only).numpy().flags.writeable is False


def test_memory_outlives_either_side() -> None:
    t = tp.from_numpy(np.arange(1000.0))
    assert t.sum().item() == 499500
    a = tp.arange(1000.0).numpy()
    assert a.sum() == 499500


def test_import_needs_no_numpy() -> None:
    code = "import tensorplay, sys; tensorplay.ones(2).tolist(); print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
