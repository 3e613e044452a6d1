"""Section 1 of the autograd checklist: attributes and methods of a tensor that speak of history."""

from __future__ import annotations

import copy
import importlib
import os
import pickle
import warnings

import numpy as np
import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
row = pytest.mark.row
F64 = tp.float64


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


@row("1.requires_grad")
def test_requires_grad() -> None:
    x = tp.zeros(2)
    assert not x.requires_grad
    x.requires_grad = True
    assert x.requires_grad
    y = x * 2
    assert y.requires_grad
    assert y.requires_grad_(True) is y
    with pytest.raises(RuntimeError, match=r"only change requires_grad flags of leaf variables.*detach\(\)"):
        y.requires_grad = False
    assert not (tp.zeros(2) * 2).requires_grad
    with tp.no_grad():
        assert not (x * 2).requires_grad
        assert tp.zeros(2, requires_grad=True).requires_grad
    for whole in (tp.zeros(2, dtype=tp.int64), tp.zeros(2, dtype=tp.bool)):
        with pytest.raises(RuntimeError, match="floating point and complex"):
            whole.requires_grad = True
    with pytest.raises(RuntimeError, match="floating point and complex"):
        tp.zeros(2, dtype=tp.int64, requires_grad=True)
    assert tp.zeros(2, dtype=tp.complex64, requires_grad=True).requires_grad


@row("1.requires_grad_")
def test_requires_grad_in_place() -> None:
    x = tp.zeros(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="leaf"):
        (x.requires_grad_() * 2).requires_grad_(False)
    base = tp.zeros(4)
    view = base[1:].requires_grad_()
    assert view.is_leaf and view.requires_grad and not base.requires_grad


@row("1.grad")
def test_grad() -> None:
    x = leaf(1.0, 2.0)
    assert x.grad is None
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    x.grad = None
    x.grad = tp.ones(2, dtype=F64)
    del x.grad
    assert x.grad is None
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    for wrong, error, text in (
        (3, TypeError, "Tensor or None"),
        (tp.ones(3, dtype=F64), RuntimeError, "size"),
        (tp.ones(2, dtype=tp.float32), RuntimeError, "dtype|type"),
        (x, RuntimeError, "assign"),
    ):
        with pytest.raises(error, match=text):
            x.grad = wrong


@row("1.grad_dtype")
def test_grad_dtype() -> None:
    x = tp.ones(2, requires_grad=True)
    assert x.grad_dtype == tp.float32
    x.grad_dtype = F64
    (x * 2).sum().backward()
    assert x.grad.dtype == F64
    with pytest.raises(RuntimeError):
        x.grad_dtype = tp.float16
    x.grad = None
    x.grad_dtype = None
    x.grad = tp.ones(2, dtype=tp.float16)
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).grad_dtype = F64


@row("1.grad_fn")
def test_grad_fn() -> None:
    x = leaf(1.0, 2.0)
    assert x.grad_fn is None
    y = x * 2
    assert y.grad_fn is y.grad_fn
    assert y.grad_fn.name() == "MulBackward0"
    with pytest.raises(AttributeError):
        y.grad_fn = None
    view = y[:1]
    before = view.grad_fn.name()
    y.mul_(2)
    assert view.grad_fn.name() != before  # made anew: the base has moved
    view.sum().backward()
    assert x.grad.tolist() == [4.0, 0.0]


@row("1.is_leaf")
def test_is_leaf() -> None:
    x = leaf(1.0)
    assert x.is_leaf and tp.zeros(1).is_leaf and (tp.zeros(1) * 2).is_leaf
    assert not (x * 2).is_leaf
    with tp.no_grad():
        assert (x * 2).is_leaf
    assert x.detach().is_leaf


@row("1.retain_grad / retains_grad")
def test_retain_grad() -> None:
    x = leaf(1.0, 2.0)
    x.retain_grad()
    assert not x.retains_grad
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert y.grad.tolist() == [10.0, 10.0]
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        tp.zeros(1).retain_grad()
    z = x * 3
    z.retain_grad()
    z.mul_(2)
    z.sum().backward()
    assert z.grad.tolist() == [1.0, 1.0]  # of the value z has now
    base = x * 1
    view = base[:1]
    view.retain_grad()
    base.mul_(5)
    (view * 7).sum().backward()
    assert view.grad.tolist() == [7.0]


@row("1.output_nr")
def test_output_nr() -> None:
    x = leaf(1.0, 2.0)
    assert x.output_nr == 0
    a, b = tp.unbind(x * 1)
    assert (a.output_nr, b.output_nr) == (0, 1)

    class Twice(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, first, last):
            return first * 10 + last

    a, b = Twice.apply(x)
    assert a is b and a.output_nr == 1
    a.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@row("1._version")
def test_version() -> None:
    x = tp.zeros(4)
    view, alias, data = x[1:], x.detach(), x.data
    x.add_(1)
    assert (x._version, view._version, alias._version, data._version) == (1, 1, 1, 0)
    view.mul_(2)
    x[0] = 5
    x.copy_(tp.ones(4))
    tp.add(tp.ones(4), 1, out=x)
    assert x._version == 5
    data.add_(1)
    assert x._version == 5 and data._version == 1

    class Dirty(tp.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.mark_dirty(t)
            return t

    Dirty.apply(x)
    assert x._version == 6
    with tp.inference_mode():
        y = tp.zeros(1)
    with pytest.raises(RuntimeError, match=r"(?i)inference tensors do not track"):
        _ = y._version


@row("1._base / _is_view()")
def test_base() -> None:
    x = tp.zeros(4)
    assert x._base is None and not x._is_view()
    y = x[1:][1:]
    assert y._base is x and y._is_view()
    z = (x.requires_grad_() * 1)[1:].view(3, 1)
    assert z._base.shape == (4,)


@row("1.detach")
def test_detach() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad and d.is_leaf and d.data_ptr() == y.data_ptr()
    fw = tp.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(x, tp.ones(2, dtype=F64))
        assert fw.unpack_dual(dual.detach()).tangent is None
    z = y.exp()
    z.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@row("1.detach")
def test_resize() -> None:
    x = leaf(1.0, 2.0, 3.0)
    for t in (x, x * 2):
        for change in (lambda t: t.resize_(2), lambda t: t.resize_(3), lambda t: t.resize_as_(tp.zeros(2))):
            with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
                change(t)
            with tp.no_grad(), pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
                change(t)
    plain = tp.tensor([1.0, 2.0, 3.0, 4.0])
    kept = plain.view(2, 2)
    assert plain.resize_(2) is plain and plain.tolist() == [1.0, 2.0]
    assert plain.resize_(2, 2).tolist() == kept.tolist()
    assert plain.resize_((3, 3)).shape == (3, 3) and plain.flatten()[:4].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert plain.resize_as_(tp.zeros(1, 3)).tolist() == [[1.0, 2.0, 3.0]]
    with pytest.raises((RuntimeError, TypeError)):
        plain.resize_(-2)


@row("1.detach_")
def test_detach_in_place() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (x * 2)[:1].detach_()


@row("1.data")
def test_data() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    x.data.mul_(2)
    assert x.tolist() == [2.0, 4.0] and x._version == 0
    y.sum().backward()
    x.data = tp.zeros(3, dtype=F64)
    assert x.tolist() == [0.0] * 3 and x.requires_grad
    with pytest.raises((TypeError, RuntimeError)):
        x.data = tp.zeros(3, dtype=tp.int64)
    with pytest.raises(TypeError):
        x.data = 3


@row("1.register_hook")
def test_register_hook() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    order = []
    y.register_hook(lambda g: order.append(("first", g.tolist())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: order.append(("third", g.tolist())))
    x.register_hook(lambda g: order.append(("leaf", g.tolist(), x.grad)))
    y.sum().backward(retain_graph=True)
    assert order == [("first", [1.0, 1.0]), ("third", [10.0, 10.0]), ("leaf", [20.0, 20.0], None)]
    assert x.grad.tolist() == [20.0, 20.0]
    order.clear()
    (g,) = tp.autograd.grad(y.sum(), y, retain_graph=True)
    assert g.tolist() == [10.0, 10.0] and len(order) == 2
    order.clear()
    (g,) = tp.autograd.grad(y.sum(), x)
    assert [o[0] for o in order] == ["first", "third", "leaf"]
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        tp.zeros(1).register_hook(lambda g: g)


@row("1.register_hook")
def test_register_hook_belongs_to_the_value() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    y.sum().backward()
    assert seen == [[3.0, 3.0]]


@row("1.register_hook")
@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (lambda g: 3, TypeError, "expected Variable|Tensor or None"),
        (lambda g: g[:1], RuntimeError, "has changed the size of value"),
        (lambda g: g.float(), RuntimeError, "has changed the type of value"),
    ],
)
def test_register_hook_checks(returned, error: type[Exception], text: str) -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(returned)
    with pytest.raises(error, match=text):
        (x * 2).sum().backward()


@row("1.register_post_accumulate_grad_hook")
def test_post_accumulate() -> None:
    x = leaf(1.0)
    seen = []

    def hook(p) -> None:
        seen.append((p is x, p.grad.item()))
        p.grad = None

    x.register_post_accumulate_grad_hook(hook)
    tp.autograd.grad((x * 2).sum(), x)
    assert seen == []
    (x * 2 + x * 3).sum().backward()
    assert seen == [(True, 5.0)] and x.grad is None
    with pytest.raises(RuntimeError, match="non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(hook)


@row("1.RemovableHandle")
def test_handle() -> None:
    x = leaf(1.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(1))
    with handle:
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    handle.remove()
    handle.remove()
    assert seen == [1]
    holder = []

    def once(g) -> None:
        seen.append(2)
        holder[0].remove()

    holder.append(x.register_hook(once))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen == [1, 2]
    again = pickle.loads(pickle.dumps(handle))
    again.remove()
    assert again.next_id > 0


@row("1.backward")
def test_backward_method() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        (x * 2).backward()
    (x * 2).backward(gradient=tp.tensor([1.0, 3.0], dtype=F64))
    assert x.grad.tolist() == [2.0, 6.0]
    z = tp.ones(1, dtype=tp.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        (z * 2).backward()
    w = leaf(1.0)
    (x.sum() * w).backward(inputs=[w])
    assert w.grad.item() == 3.0 and x.grad.tolist() == [2.0, 6.0]


@row("1.is_inference")
def test_is_inference() -> None:
    with tp.inference_mode():
        x = tp.zeros(1)
        assert x.is_inference() and (x + 1).is_inference()
    assert x.is_inference() and not tp.zeros(1).is_inference()
    assert not x.clone().is_inference()


@row("1.__deepcopy__ / copy / pickle")
def test_copies() -> None:
    x = leaf(1.0, 2.0)
    (x * 2).sum().backward()
    d = copy.deepcopy(x)
    assert d.tolist() == x.tolist() and d.requires_grad and d.grad.tolist() == [2.0, 2.0]
    assert d.data_ptr() != x.data_ptr() and d.grad.data_ptr() != x.grad.data_ptr()
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)
    c = copy.copy(x)
    assert c.requires_grad and c.grad is None
    p = pickle.loads(pickle.dumps(x))
    assert p.tolist() == x.tolist() and p.requires_grad and p.grad is None and p.dtype == F64
    q = pickle.loads(pickle.dumps(x * 2))
    assert q.is_leaf and q.requires_grad and q.tolist() == [2.0, 4.0]


@row("1.__array__, numpy(), __dlpack__, from_numpy, asarray/as_tensor")
def test_arrays() -> None:
    x = leaf(1.0, 2.0)
    for f in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.from_dlpack(x)):
        with pytest.raises((RuntimeError, BufferError, TypeError), match=r"detach\(\)|require gradient"):
            f()
    a = x.detach().numpy()
    a[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    assert np.shares_memory(np.from_dlpack(x.detach()), a)
    t = tp.from_numpy(a)
    t[1] = 7.0
    assert a.tolist() == [5.0, 7.0]
    assert tp.as_tensor(a).data_ptr() == tp.asarray(a).data_ptr() == t.data_ptr()
    assert tp.as_tensor(x) is x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tp.tensor(x.detach()).data_ptr() != x.data_ptr()
