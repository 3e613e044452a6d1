"""Methods of Tensor that are no ops: they name a dtype, a matrix turned over, or memory beside it."""

import numpy as np
import pytest
import tensorplay as tp

NAMED = {
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64", "cfloat": "complex64",
    "cdouble": "complex128", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "bool": "bool",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_a_method_for_each_dtype(name: str) -> None:
    x = tp.tensor([0.0, 1.0, 2.0])
    got = getattr(x, name)()
    assert got.dtype == getattr(tp, NAMED[name])
    assert got.tolist() == x.to(got.dtype).tolist() == ([False, True, True] if name == "bool" else [0, 1, 2])
    if got.is_floating_point() or got.is_complex():
        leaf = tp.tensor([3.0], requires_grad=True)
        getattr(leaf, name)().real.sum().backward()
        assert leaf.grad.tolist() == [1.0]


def test_transposes() -> None:
    x = tp.tensor([[1 + 2j, 3 - 1j, 0], [4j, 5, 6 + 6j]])
    array = x.numpy()
    for got, want in ((x.H, array.conj().T), (x.T, array.T), (x.mT, array.T), (x.mH, array.conj().T)):
        np.testing.assert_array_equal(got.resolve_conj().numpy() if hasattr(got, "resolve_conj") else got.numpy(), want)
    with pytest.raises(RuntimeError, match="H"):
        tp.zeros(2, 2, 2).H  # noqa: B018


def test_new_empty() -> None:
    x = tp.zeros(2, dtype=tp.int16)
    assert x.new_empty(3, 4).shape == (3, 4)
    assert x.new_empty((5,)).dtype == tp.int16
    assert x.new_empty(2, dtype=tp.float64).dtype == tp.float64


def test_indexing_by_its_name() -> None:
    x = tp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x.__getitem__((slice(None), 1))
    assert y.tolist() == [2.0, 4.0]
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [0.0, 1.0]]
