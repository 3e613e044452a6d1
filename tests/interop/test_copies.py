"""copy, deepcopy and pickle: what shared memory shares it afterwards, strides stay, history does not."""

from __future__ import annotations

import copy
import importlib
import os
import pickle
from collections.abc import Callable
from typing import Any

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))


def pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


both = pytest.mark.parametrize("again", [copy.deepcopy, pickled])


def by_protocol(p: int) -> Callable[..., Any]:
    return lambda x: pickle.loads(pickle.dumps(x, p))


@pytest.mark.parametrize("again", [copy.deepcopy, *map(by_protocol, range(pickle.HIGHEST_PROTOCOL + 1))])
@pytest.mark.parametrize("large", [False, True])
def test_views_share_memory_with_their_base(again: Callable[..., Any], large: bool) -> None:
    a = tp.arange(6.0).reshape(2, 3) if not large else tp.arange(6000.0).reshape(2000, 3)
    both = {"a": a, "row": a[1], "turned": a.t(), "same": a, "apart": tp.arange(6.0)}
    made = again(both)
    assert made["a"] is made["same"] and made["a"].tolist() == a.tolist() and made["row"].tolist() == a[1].tolist()
    made["a"][1, 0] = 99.0
    assert made["row"][0].item() == 99.0 and made["turned"][0, 1].item() == 99.0
    made["turned"][1, 1] = 77.0
    assert made["row"][1].item() == 77.0 and a[1].tolist() == [3.0, 4.0, 5.0]
    assert made["apart"].tolist() == [0, 1, 2, 3, 4, 5]


@both
def test_two_views_of_memory_that_is_not_there_itself(again: Callable[..., Any]) -> None:
    f = tp.zeros(6)
    first, second = again((f[:4], f[2:]))
    first.fill_(3.0)
    assert second.tolist() == [3.0, 3.0, 0.0, 0.0] and second.storage_offset() == 2


@both
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.t(), lambda a: a[:, 1], lambda a: a[:1].expand(3, 3), lambda a: a[1:, ::2], lambda a: a[2:2],
        lambda a: a,
    ],
)  # fmt: skip
def test_strides_stay(again: Callable[..., Any], view: Callable[..., Any]) -> None:
    a = view(tp.arange(9.0).reshape(3, 3))
    b = again(a)
    assert b.shape == a.shape and b.stride() == a.stride() and b.storage_offset() == a.storage_offset()
    assert b.tolist() == a.tolist() and not b._is_view()


@both
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "bool", "uint8", "int64", "complex64", "complex128"]
)
def test_dtypes(again: Callable[..., Any], dtype: str) -> None:
    a = tp.tensor([[1, 0, 1], [1, 1, 0]], dtype=getattr(tp, dtype))
    for t in (a, a[:, 1:], a[0, 0], a[:0]):
        b = again(t)
        assert b.dtype == a.dtype and b.tolist() == t.tolist() and b.shape == t.shape


@both
def test_memory_of_two_dtypes(again: Callable[..., Any]) -> None:
    z = tp.ones(2, dtype=tp.complex64)
    made, parts = again((z, tp.view_as_real(z)))
    parts.fill_(3.0)
    assert made.tolist() == [3 + 3j, 3 + 3j] and z.tolist() == [1, 1]


def test_deepcopy_of_a_flat_buffer_and_its_parameters() -> None:
    flat, grads = tp.arange(4.0), tp.zeros(4)
    ps = [flat[:2].detach().requires_grad_(), flat[2:].detach().requires_grad_()]
    for i, p in enumerate(ps):
        p.grad = grads[2 * i : 2 * i + 2]
    made, flat2, grads2 = copy.deepcopy((ps, flat, grads))
    (made[0] * 3 + made[1] * 5).sum().backward()
    assert grads2.tolist() == [3.0, 3.0, 5.0, 5.0] and grads.tolist() == [0.0] * 4
    flat2.zero_()
    assert made[1].tolist() == [0.0, 0.0] and ps[1].tolist() == [2.0, 3.0]
    assert made[0].requires_grad and made[0].is_leaf and not flat2.requires_grad


def test_deepcopy_of_data() -> None:
    p = tp.ones(4, requires_grad=True)
    made, data = copy.deepcopy((p, p.data[2:]))
    data.fill_(5.0)
    assert made.tolist() == [1.0, 1.0, 5.0, 5.0] and p.tolist() == [1.0] * 4


def test_deepcopy_meets_a_tensor_twice() -> None:
    x = tp.ones(2, requires_grad=True)
    x.grad = tp.ones(2)
    x.note = [1]
    made, grad, note = copy.deepcopy((x, x.grad, x.note))
    assert made.grad is grad and made.note is note and note is not x.note
    memo: dict[Any, Any] = {}
    assert copy.deepcopy(x, memo) is copy.deepcopy(x, memo)


def test_what_is_recorded() -> None:
    x = tp.ones(2, requires_grad=True)
    y = x * 2
    for inside in (y, [1, y], x[:1]):
        with pytest.raises(RuntimeError, match="graph leaves"):
            copy.deepcopy(inside)
    assert copy.deepcopy(y.detach()).tolist() == [2.0, 2.0]
    for made in (copy.copy(y), pickled(y)):
        assert made.requires_grad and made.is_leaf and made.grad is None and made.tolist() == [2.0, 2.0]
    assert copy.copy(y).data_ptr() == y.data_ptr() and pickled(y).data_ptr() != y.data_ptr()


def test_inference_tensors() -> None:
    with tp.inference_mode():
        made = tp.ones(2)
        assert copy.deepcopy(made).is_inference()
    for again in (copy.copy, copy.deepcopy, pickled):
        assert not again(made).is_inference() and again(made).tolist() == [1.0, 1.0]


@pytest.mark.skipif(tp.__name__ != "tensorplay", reason="PyTorch loses it")
def test_grad_dtype_goes_along() -> None:
    x = tp.ones(2, dtype=tp.float16, requires_grad=True)
    x.grad_dtype = tp.float32
    (x * 2).sum().backward()
    made = copy.deepcopy(x)
    assert made.grad_dtype is tp.float32 and made.grad.dtype is tp.float32 and made.grad.tolist() == [2.0, 2.0]


@pytest.mark.skipif(tp.__name__ != "tensorplay", reason="the form of a pickle is the library's own")
@pytest.mark.parametrize(
    ("sizes", "strides", "offset"),
    [
        ((3,), (1,), 0), ((2,), (2,), 0), ((2,), (1,), 1), ((1,), (1,), -1), ((2,), (-1,), 0), ((-1,), (1,), 0),
        ((2,), (), 0), ((2**62, 2**62), (2**62, 2**62), 0), ((2,), (2**62,), 2**62),
    ],
)  # fmt: skip
def test_a_pickle_cannot_reach_outside_its_memory(sizes: Any, strides: Any, offset: int) -> None:
    rebuild, (cls, memory, dtype, *_) = tp.ones(2).__reduce_ex__(4)
    whole = pickled(memory)
    assert rebuild(cls, whole, dtype, (2,), (1,), 0, False, None).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="are not inside 8 bytes of float32"):
        rebuild(cls, whole, dtype, sizes, strides, offset, False, None)
