"""Life and identity of Tensor objects, their protocols, and messages of argument parsing."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import weakref
from collections.abc import Callable

import pytest
import tensorplay as tp


def test_attributes_live_as_long_as_the_tensor_does() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    x.note = "kept"
    ref = weakref.ref(x)
    x.grad = tp.ones(2)
    x.grad.note = "also kept"
    gc.collect()
    assert x.grad.note == "also kept"
    y = x * 1
    del x
    gc.collect()
    del y
    gc.collect()
    assert ref() is None


def test_a_view_keeps_its_base_and_the_base_its_object() -> None:
    base = tp.zeros(4)
    base.tag = 7
    view = base[1:]
    del base
    gc.collect()
    assert view._base.tag == 7
    assert view._base is view._base


class Sub(tp.Tensor):
    pass


def test_subclass_objects_survive_their_last_reference_while_shared() -> None:
    base = tp.Tensor._make_subclass(Sub, tp.zeros(3))
    base.tag = [1]
    view = base[0]
    del base
    gc.collect()
    back = view._base
    assert type(back) is Sub
    assert back.tag == [1]
    ref = weakref.ref(back)
    del back
    for _ in range(3):  # kept again and again
        assert view._base.tag == [1]
    again = ref()
    assert again is view._base
    del view
    gc.collect()
    assert again.tag == [1]
    assert again.shape == (3,)
    del again
    gc.collect()
    assert ref() is None


def test_a_weak_reference_may_revive_a_kept_object_and_outlive_its_keeper() -> None:
    base = tp.zeros(2)
    ref = weakref.ref(base)
    view = base[:1]
    del base
    gc.collect()
    alive = ref()
    assert alive is not None
    del view
    gc.collect()
    assert alive.tolist() == [0.0, 0.0]


def test_cycles_through_the_graph_are_collected() -> None:
    class Owner(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = tp.ones(2, requires_grad=True)
    y = Owner.apply(x)
    y.grad_fn.output = y  # context -> tensor -> node -> context
    ref = weakref.ref(y)
    node = weakref.ref(y.grad_fn)
    z = (y + 1).sum()
    z.owner = z
    hooked = tp.ones(1, requires_grad=True)
    hooked.register_hook(functools.partial(lambda tensor, g: None, hooked))
    leaf = weakref.ref(hooked)
    del x, y, z, hooked
    gc.collect()  # z, which also holds the node of y
    gc.collect()
    assert ref() is None
    assert node() is None
    assert leaf() is None


def test_copies() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    x.grad = tp.ones(2)
    x.extra = {"a": 1}
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert shallow.data_ptr() == x.data_ptr()
    assert shallow.grad is None
    assert deep.data_ptr() != x.data_ptr()
    assert deep.grad.tolist() == [1.0, 1.0]
    assert deep.grad is not x.grad
    assert deep.extra == {"a": 1}
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "bool", "complex64"])
def test_pickle(dtype: str) -> None:
    x = tp.tensor([[1, 0], [1, 1]], dtype=getattr(tp, dtype))
    y = pickle.loads(pickle.dumps(x.T))
    assert y.dtype == x.dtype
    assert y.tolist() == x.T.tolist()
    assert pickle.loads(pickle.dumps(x.dtype)) is x.dtype
    assert pickle.loads(pickle.dumps(x.shape)) == x.shape
    assert type(pickle.loads(pickle.dumps(x.shape))) is tp.Size


def test_numbers() -> None:
    x = tp.tensor(2.5)
    assert float(x) == 2.5
    assert int(x) == 2
    assert complex(x) == 2.5
    assert bool(x)
    assert f"{x:.1f}" == "2.5"
    assert [10, 20, 30][tp.tensor(1)] == 20
    with pytest.raises(TypeError, match="index"):
        [1, 2][x]
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(tp.ones(2))
    with pytest.raises(TypeError, match="0-d"):
        len(x)
    with pytest.raises(TypeError, match="0-d"):
        iter(x)
    with pytest.raises(RuntimeError, match="item"):
        tp.ones(2).item()
    assert 2.0 in tp.tensor([1.0, 2.0])
    assert 3.0 not in tp.tensor([1.0, 2.0])
    assert [t.item() for t in tp.tensor([1, 2, 3])] == [1, 2, 3]
    assert [t.item() for t in reversed(tp.tensor([1, 2, 3]))] == [3, 2, 1]
    assert len({x, x, tp.tensor(2.5)}) == 2


def test_operators_refuse_what_is_no_number() -> None:
    x = tp.ones(2)
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        "a" - x
    assert (2 - x).tolist() == [1.0, 1.0]
    assert (x == None) is False  # noqa: E711
    assert (3 > x).tolist() == [True, True]  # noqa: SIM300


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tp.tanh(), r"tanh: missing argument 'input'; signature: tanh\(Tensor input"),
        (lambda: tp.tanh("a"), r"tanh: argument 'input' must be Tensor, not str"),
        (lambda: tp.tanh(1.0), r"tanh: argument 'input' must be Tensor, not float .*tensorplay.tensor"),
        (lambda: tp.tanh(tp.ones(1), dimm=1), r"tanh: unexpected keyword argument 'dimm'; signature"),
        (lambda: tp.tanh(tp.ones(1), input=tp.ones(1)), r"tanh: argument 'input' was given twice"),
        (lambda: tp.sin(tp.ones(1), 2), r"sin: takes at most 1 positional argument, got 2"),
        (lambda: tp.transpose(tp.ones(2, 2), 0.5, 1), r"transpose: argument 'dim0' must be int, not float"),
    ],
)
def test_messages(call, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


def test_variadic_sizes() -> None:
    x = tp.zeros(2, 3)
    assert x.shape == (2, 3)
    assert x.shape.numel() == 6
    assert isinstance(x.shape[:1], tp.Size)
    assert repr(x.shape) == "tensorplay.Size([2, 3])"
    assert x.view(3, 2).shape == x.view((3, 2)).shape == x.view([3, 2]).shape == (3, 2)
    assert x.permute(1, 0).shape == (3, 2)
    assert x.sum(axis=1).shape == (2,)
    assert x.size(-1) == x.size()[1] == 3
    with pytest.raises(IndexError, match="out of range"):
        x.size(2)


def test_leaf_flags() -> None:
    x = tp.ones(2, requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"leaf variables.*detach"):
        y.requires_grad = False
    y.requires_grad = True
    with pytest.raises(RuntimeError, match="floating point and complex"):
        tp.tensor([1]).requires_grad_()
    with pytest.raises(AttributeError):
        y.grad_fn = None
    with pytest.raises(TypeError, match="Tensor or None"):
        x.grad = 1
    with pytest.raises(RuntimeError, match="own gradient"):
        x.grad = x
    with pytest.raises(RuntimeError, match="sizes"):
        x.grad = tp.ones(3)
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    assert x.grad_fn is None
    assert y.is_leaf is False


def test_devices_and_dtypes() -> None:
    x = tp.ones(2)
    assert str(x.device) == "cpu"
    assert x.device == tp.device("cpu")
    assert x.to("cpu") is x
    assert x.to(tp.float64).dtype is tp.float64
    assert x.double().dtype is tp.float64
    assert x.to(tp.ones(1, dtype=tp.int64)).dtype is tp.int64
    with pytest.raises(RuntimeError, match=r"cuda:0.*not available"):
        x.to("cuda:0")
    with pytest.raises(TypeError, match="unexpected keyword argument 'dtpe'"):
        x.to(dtpe=tp.float64)
    assert repr(tp.float32) == "tensorplay.float32"
    assert tp.float32.itemsize == 4
    assert tp.complex64.is_complex
    assert tp.result_type(tp.ones(1, dtype=tp.int32), 1.5) is tp.float32
    assert tp.finfo(tp.float32).eps == 2.0**-23
    assert tp.iinfo(tp.uint8).max == 255


def test_a_cycle_through_a_base_and_its_view_is_collected() -> None:
    class Mark:
        pass

    mark = Mark()
    gone = weakref.ref(mark)
    x = tp.ones(3)
    x.mark = mark
    x.parts = [x[1:]]
    del x, mark
    gc.collect()
    assert gone() is None


def test_sizes_are_told_apart_however_many_are_asked_for() -> None:
    shapes = [(a, b, c) for a in range(7) for b in range(7) for c in range(3)]
    tensors = [tp.empty(s) for s in shapes]
    for _ in range(2):
        assert [tuple(t.shape) for t in tensors] == shapes
    x = tp.empty(2, 6)
    before = x.shape
    x.t_()
    assert (before, x.shape) == ((2, 6), (6, 2))


@pytest.mark.parametrize("make", [lambda x: x.view, lambda x: x.reshape, lambda x: x.expand, lambda x: x.permute])
def test_sizes_come_one_by_one_or_as_a_tuple(make: Callable[[tp.Tensor], Callable[..., tp.Tensor]]) -> None:
    x = tp.ones(0, 1)
    assert make(x)(0, 1).shape == make(x)((0, 1)).shape == make(x)([0, 1]).shape
    assert make(x)(tp.tensor(0), 1).shape == make(x)(0, 1).shape
    with pytest.raises(TypeError, match="takes|signature"):
        make(x)(0, 1.5)
