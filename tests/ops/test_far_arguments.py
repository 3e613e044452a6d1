"""Arguments far beyond the operands: an error that names the op, or the answer that follows, at once."""

import pytest
import tensorplay as tp

F = tp.nn.functional


def test_a_stride_that_is_never_taken_costs_nothing() -> None:
    for d in (1, 2, 3):
        conv = getattr(F, f"conv{d}d")
        x = tp.randn(2, 4, *[5] * d, dtype=tp.float64, requires_grad=True)
        w = tp.randn(3, 4, *[3] * d, dtype=tp.float64, requires_grad=True)
        far = conv(x, w, stride=2**31, padding=1)
        near = conv(x, w, stride=5, padding=1)
        assert far.tolist() == near.tolist()
        far.sum().backward()
        g = x.grad.clone()
        x.grad = None
        near.sum().backward()
        assert g.tolist() == x.grad.tolist()
        assert conv(x, tp.ones(1, 4, *[1] * d, dtype=tp.float64), dilation=2**31).shape[2:] == x.shape[2:]
        for name in ("stride", "padding", "dilation"):
            with pytest.raises(ValueError, match=f"conv{d}d.*{name}"):
                conv(x, w, **{name: 2**62})


def test_indices_of_triangles() -> None:
    assert tp.tril_indices(2**62, 0).shape == tp.triu_indices(2**62, 0).shape == (2, 0)
    with pytest.raises(ValueError, match="tril_indices.*more indices than memory"):
        tp.tril_indices(2**62, 3, offset=-1)
    with pytest.raises(ValueError, match="triu_indices.*more indices than memory"):
        tp.triu_indices(3, 2**62)
    assert tp.triu_indices(2**62, 2, offset=0).tolist() == [[0, 0, 1], [0, 1, 1]]
    assert tp.tril_indices(3, 2**62, offset=-1).tolist() == [[1, 2, 2], [0, 0, 1]]
    assert tp.tril_indices(3, 2, offset=-(2**63)).shape == (2, 0)
    assert tp.triu_indices(2, 2, offset=-(2**63)).shape == (2, 4)
    for row in range(5):
        for col in range(5):
            for offset in range(-6, 7):
                kept = [(r, c) for r in range(row) for c in range(col) if c - r <= offset]
                rest = [(r, c) for r in range(row) for c in range(col) if c - r >= offset]
                assert list(zip(*tp.tril_indices(row, col, offset).tolist(), strict=True)) == kept
                assert list(zip(*tp.triu_indices(row, col, offset).tolist(), strict=True)) == rest


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("dim", [1, -2, 2**31, -(2**31)])
def test_shifts_along_a_dimension_that_is_not_there(name: str, dim: int) -> None:
    with pytest.raises(IndexError, match=name):
        getattr(tp.fft, name)(tp.ones(5), dim)
    with pytest.raises(IndexError, match=name):
        getattr(tp.fft, name)(tp.tensor(1.0), 0)
