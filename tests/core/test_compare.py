"""allclose, equal and the questions about tensors and sizes."""

from __future__ import annotations

import pytest
import tensorplay as tp

inf, nan = float("inf"), float("nan")


def test_allclose() -> None:
    a = tp.tensor([1.0, 100.0], dtype=tp.float64)
    assert tp.allclose(a, a * (1 + 1e-6))
    assert not tp.allclose(a, a * (1 + 1e-4))
    assert a.allclose(a * (1 + 1e-4), rtol=1e-3)
    assert tp.allclose(a, tp.tensor([1.05, 100.0], dtype=tp.float64), atol=0.1)
    assert tp.allclose(a, a.reshape(2, 1).expand(2, 2).diagonal())
    for dtype in (tp.float16, tp.float32, tp.int64, tp.complex64, tp.bool):
        t = tp.ones(3, dtype=dtype)
        assert tp.allclose(t, t)
        assert not tp.allclose(t, tp.zeros(3, dtype=dtype))
    assert tp.allclose(tp.zeros(0), tp.zeros(0))
    with pytest.raises(RuntimeError, match=r"allclose: got .*float64 and .*float32"):
        tp.allclose(a, a.float())
    with pytest.raises(TypeError, match="other must be a Tensor, not float"):
        a.allclose(1.0)


@pytest.mark.parametrize(
    ("a", "b", "want", "with_nan"),
    [(inf, inf, True, True), (inf, -inf, False, False), (1.0, inf, False, False), (nan, nan, False, True)],
)
def test_allclose_at_the_edges(a: float, b: float, want: bool, with_nan: bool) -> None:
    x, y = tp.tensor([a]), tp.tensor([b])
    assert tp.allclose(x, y) is want
    assert tp.allclose(x, y, equal_nan=True) is with_nan


def test_equal() -> None:
    a = tp.tensor([1.0, 2.0])
    assert tp.equal(a, a.clone())
    assert a.equal(a.clone())
    assert not tp.equal(a, a + 1)
    assert not tp.equal(a, a[:1])
    assert not tp.equal(tp.tensor([nan]), tp.tensor([nan]))


def test_questions() -> None:
    a = tp.ones(2, 3)
    assert tp.numel(a) == 6
    assert tp.is_floating_point(a) and not tp.is_floating_point(tp.ones(1, dtype=tp.int64))
    assert tp.is_complex(tp.ones(1, dtype=tp.complex64)) and not tp.is_complex(a)
    with tp.inference_mode():
        assert tp.is_inference(tp.ones(1))
    assert not tp.is_inference(a)
    assert tp.is_nonzero(tp.tensor([2])) and not tp.is_nonzero(tp.tensor(0.0))
    with pytest.raises(RuntimeError, match="exactly one element, got 6"):
        tp.is_nonzero(a)
    with pytest.raises(TypeError, match="numel: input must be a Tensor"):
        tp.numel([1])


def test_broadcast_shapes() -> None:
    assert tp.broadcast_shapes() == ()
    assert tp.broadcast_shapes((2, 1), (3,), 3) == (2, 3)
    assert tp.broadcast_shapes((0, 1), (1, 4)) == (0, 4)
    with pytest.raises(RuntimeError, match="don't go together at dimension -1: 2 and 3"):
        tp.broadcast_shapes((2,), (3,))
