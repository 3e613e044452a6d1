"""Results of operations on a Python subclass of Tensor are of that class."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest
import tensorplay as tp


class Metres(tp.Tensor):
    """A subclass with nothing of its own."""


class Steps(Metres):
    """A subclass of a subclass."""


class Other(tp.Tensor):
    """Unrelated to Metres."""


class Plain(tp.Tensor):
    """A class whose operations give plain tensors."""

    _keeps_class = False


def made(cls: type[Any] = Metres) -> Any:
    return tp.arange(6.0).reshape(2, 3).as_subclass(cls)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1, lambda x: 2 - x, lambda x: x * tp.ones(3), lambda x: tp.ones(3) @ x.T, lambda x: -x, abs,
        lambda x: x.sin(), tp.exp, lambda x: x.sum(), lambda x: tp.mean(x, 0), lambda x: x[0], lambda x: x[:, 1:],
        lambda x: x[0, 1], lambda x: x[x > 2], lambda x: x[[0, 1]], lambda x: x[...], lambda x: x[None], lambda x: x.T,
        lambda x: x.mT, lambda x: x.real, lambda x: x.detach(), lambda x: x.clone(), lambda x: x.reshape(3, 2),
        lambda x: x.double(), lambda x: x.to(tp.int32), lambda x: x == 1, lambda x: tp.cat([tp.ones(1, 3), x]),
        lambda x: tp.zeros_like(x), lambda x: x.new_zeros(3), lambda x: x.data, lambda x: x.unsqueeze(0),
        lambda x: x.expand(2, 2, 3), lambda x: x.contiguous(), lambda x: tp.where(x > 1, x, 0.0), lambda x: x.float(),
        lambda x: next(iter(x)), lambda x: x.max(0).values, lambda x: x.split(1)[1], lambda x: x.unbind()[0],
        lambda x: x.add_(1), lambda x: x.view(6), lambda x: tp.nn.functional.softmax(x, 0), copy.copy, copy.deepcopy,
        lambda x: pickle.loads(pickle.dumps(x)),
    ],
)  # fmt: skip
def test_the_class_is_kept(f: Any) -> None:
    assert type(f(made())) is Metres


def test_mixed_classes() -> None:
    assert type(made(Steps) + made()) is Steps and type(made() + made(Steps)) is Steps
    with pytest.raises(TypeError, match=r"add: operands are of the unrelated classes Metres and Other.*as_subclass"):
        made() + made(Other)
    assert type(made(Plain) + 1) is tp.Tensor and type(made(Plain) + made()) is Metres
    assert type(made() + 1 + tp.ones(3).as_subclass(tp.Tensor)) is Metres
    assert type(tp.ones(2) + 1) is tp.Tensor
    assert type(made().tolist()) is list and type(made().item if False else made()[0, 1].item()) is float


def test_history_and_identity() -> None:
    x = made().requires_grad_()
    y = x * x
    assert type(y) is Metres and y.grad_fn is not None
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 2, 4], [6, 8, 10]]
    z = made()
    assert z.contiguous() is z and z.add_(1) is z and z.requires_grad_(False) is z
    out = tp.zeros(2, 3)
    assert tp.add(made(), 1, out=out) is not None and out.tolist()[0] == [1, 2, 3]
    view = z[0]
    view[0] = 50
    assert z[0, 0].item() == 50


def test_nothing_is_left_behind() -> None:
    x = made().requires_grad_()
    y = (x.exp() * x).tanh()
    y.sum().backward()
    seen = weakref.ref(y)
    del y
    gc.collect()
    assert seen() is None


def test_subclasses_need_no_backward_in_python() -> None:
    a, b = made().double().requires_grad_(), tp.arange(6.0).reshape(2, 3).double().requires_grad_()
    for t in (a, b):
        (t.sin() * t).cumsum(1).prod(1).sum().backward()
    assert a.grad.tolist() == b.grad.tolist()
