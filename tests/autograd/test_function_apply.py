"""autograd.Function, both styles, through the native apply and through the one in Python."""

from __future__ import annotations

import gc
import weakref
from collections import namedtuple

import pytest
import tensorplay as tp
from tensorplay.autograd import Function, function
from tensorplay.autograd.function import once_differentiable


@pytest.fixture(params=["native", "python"], autouse=True)
def apply_kind(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setattr(Function, "apply", classmethod(function._python_apply))
    return request.param


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Scale(Function):
    @staticmethod
    def forward(x, k=2.0):
        return x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        return "dropped"

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


def test_both_styles() -> None:
    x = tp.tensor([2.0], requires_grad=True)
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    assert type(y.grad_fn).__name__ == "CubeBackward"
    assert isinstance(y.grad_fn, tp.autograd.Node)
    assert y.grad_fn.saved_tensors[0] is x
    (g,) = tp.autograd.grad(y, x, create_graph=True)
    (gg,) = tp.autograd.grad(g, x)
    assert (g.item(), gg.item()) == (12.0, 12.0)
    for z in (Scale.apply(x), Scale.apply(x, 2.0), Scale.apply(x, k=2.0), Scale.apply(k=2.0, x=x)):
        x.grad = None
        z.backward()
        assert x.grad.item() == 2.0
    with pytest.raises(TypeError, match="nope"):
        Scale.apply(x, nope=1)
    with pytest.raises(TypeError):
        Cube.apply()


def test_needs_input_grad_and_modes() -> None:
    seen = {}

    class F(Function):
        @staticmethod
        def forward(ctx, a, n, b):
            seen["forward"] = (ctx.needs_input_grad, tp.is_grad_enabled(), a.requires_grad)
            return a * n + b

        @staticmethod
        def backward(ctx, g):
            seen["backward"] = (ctx.needs_input_grad, tp.is_grad_enabled())
            return g, None, g

    a, b, c = tp.ones(1, requires_grad=True), tp.ones(1), tp.ones(1, requires_grad=True)
    F.apply(a, 2, b).backward()
    assert seen == {"forward": ((True, False, False), False, True), "backward": ((True, False, False), False)}
    y = F.apply(a, 2, c)
    tp.autograd.grad(y, c, create_graph=True)
    assert seen["backward"] == ((False, False, True), True)
    with tp.no_grad():
        z = F.apply(a, 2, c)
    assert z.grad_fn is None
    assert not z.requires_grad


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (lambda g: (), RuntimeError, r"incorrect number of gradients \(expected 2, got 0\)"),
        (lambda g: g, RuntimeError, r"expected 2, got 1"),
        (lambda g: None, RuntimeError, r"expected 2, got 1"),
        (lambda g: (g, None, g), RuntimeError, r"expected 2, got 3"),
        (lambda g: (g, g), RuntimeError, "different than None at position 2"),
        (lambda g: (1.0, None), RuntimeError, r"expected Variable or None \(got float\)"),
        (lambda g: (tp.ones(3), None), RuntimeError, "invalid gradient|shape"),
    ],
)
def test_what_backward_may_return(returned, error: type[Exception], text: str) -> None:
    class F(Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, g):
            return returned(g)

    x = tp.ones(2, requires_grad=True)
    with pytest.raises(error, match=text):
        F.apply(x, 2).sum().backward()
    (Cube.apply(x).sum()).backward()  # the engine is usable afterwards


def test_extra_nones_and_ignored_gradients() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g, None, None

    x, y = tp.ones(1, requires_grad=True), tp.ones(1)
    F.apply(x, y).backward()
    assert x.grad.item() == 1.0
    assert y.grad is None


def test_materialized_gradients_and_several_outputs() -> None:
    got = []

    class F(Function):
        materialize = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(F.materialize)
            i = tp.ones(2, dtype=tp.int64)
            ctx.mark_non_differentiable(i)
            return x * 1, x * 2, i, "text"

        @staticmethod
        def backward(ctx, a, b, i, text):
            got.append((a, b, i, text))
            return a if a is not None else b

    x = tp.ones(3, requires_grad=True)
    a, b, i, text = F.apply(x)
    assert text == "text"
    assert not i.requires_grad
    assert (a.output_nr, b.output_nr) == (0, 1)
    a.sum().backward()
    assert got[0][1].tolist() == [0.0, 0.0, 0.0]
    assert got[0][2].dtype is tp.int64
    assert got[0][3] is None
    F.materialize = False
    F.apply(x)[0].sum().backward()
    assert got[1][1:] == (None, None, None)
    Pair = namedtuple("Pair", "u v")

    class G(Function):
        @staticmethod
        def forward(ctx, x):
            return Pair(x, x * 2)

        @staticmethod
        def backward(ctx, a, b):
            return a + 2 * b

    p = G.apply(x)
    assert type(p) is Pair
    assert p.u is not x


def test_saving() -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 1

    x = tp.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="argument 1 is of type int"):
        Bad.apply(x)

    class Output(Function):
        @staticmethod
        def forward(ctx, x, y):
            out = x.exp()
            ctx.save_for_backward(out, None, y)
            return out

        @staticmethod
        def backward(ctx, g):
            out, none, _ = ctx.saved_tensors
            assert none is None
            return out * g, None

    y = tp.ones(2)
    out = Output.apply(x, y)
    assert out.grad_fn.saved_tensors[0].grad_fn is out.grad_fn
    assert len(out.grad_fn._raw_saved_tensors) == 3
    (g,) = tp.autograd.grad(out.sum(), x, create_graph=True)
    (gg,) = tp.autograd.grad(g.sum(), x)
    assert gg.tolist() == x.exp().tolist()
    out = Output.apply(x, y)
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    out = Cube.apply(x)
    out.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.sum().backward()
    ref = weakref.ref(Output.apply(x, y))
    gc.collect()
    assert ref() is None


def test_in_place() -> None:
    class Add(Function):
        declared = True

        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            if Add.declared:
                ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    w = tp.ones(2, requires_grad=True)
    a = w * 2
    assert Add.apply(a) is a
    assert a.grad_fn.name() == "AddBackward"
    (a * a).sum().backward()
    assert w.grad.tolist() == [12.0, 12.0]
    with pytest.raises(RuntimeError, match="leaf"):
        Add.apply(w)
    plain = tp.zeros(2)
    assert Add.apply(plain) is plain
    assert plain._version == 2
    Add.declared = False
    with pytest.raises(RuntimeError, match="mark_dirty"):
        Add.apply(w * 2)


def test_inputs_and_views_as_outputs() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    w = tp.ones(2, requires_grad=True)
    y = Same.apply(w)
    assert y is not w
    assert y.data_ptr() == w.data_ptr()
    y.sum().backward()
    assert w.grad.tolist() == [5.0, 5.0]
    with pytest.raises(RuntimeError, match="custom Function"):
        Same.apply(w * 1).add_(1)

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            return a * 10 + b

    w.grad = None
    a, b = Twice.apply(w)
    assert a is b
    a.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


def test_second_order_that_cannot_be_right_raises() -> None:
    class Numpy(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.detach() ** 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return (2 * x * g).detach()

    class Once(Numpy):
        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = tp.tensor([3.0], requires_grad=True)
    for cls, text in ((Numpy, "outside the graph"), (Once, "once_differentiable")):
        v = tp.ones(1, requires_grad=True)
        (g,) = tp.autograd.grad(cls.apply(x), x, v, create_graph=True)
        assert g.item() == 6.0
        for wrt in (x, v):
            with pytest.raises(RuntimeError, match=text):
                tp.autograd.grad(g, wrt, allow_unused=True, retain_graph=True)
        with pytest.raises(RuntimeError, match=text):
            g.backward()
    x.grad = None
    Once.apply(x).backward()
    assert x.grad.item() == 6.0


def test_special_classes() -> None:
    class Boxed(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grads):
            assert isinstance(grads, list)
            return grads.pop() * 2

    class Read(Cube):
        clear_saved_tensors_on_access = True

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="read them once"):
                _ = ctx.saved_tensors
            return 3 * x * x * g

    class Vjp(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    class Both(Vjp):
        @staticmethod
        def backward(ctx, g):
            return g

    class Neither(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    x = tp.ones(1, requires_grad=True)
    for cls, want in ((Boxed, 2.0), (Read, 3.0), (Vjp, 2.0)):
        assert tp.autograd.grad(cls.apply(x), x)[0].item() == want
    with pytest.raises(RuntimeError, match="only implement one"):
        Both.apply(x).backward()
    with pytest.raises(NotImplementedError, match="backward or vjp"):
        Neither.apply(x).backward()
    with pytest.warns(DeprecationWarning):
        f = Neither()
    with pytest.raises(RuntimeError, match="Legacy"):
        f(x)
    assert Neither.name == "NeitherBackward"


def test_errors_in_forward_leave_nothing() -> None:
    refs = []

    class F(Function):
        @staticmethod
        def forward(ctx, x):
            refs.append(weakref.ref(ctx))
            raise KeyError("inside")

    x = tp.ones(1, requires_grad=True)
    with pytest.raises(KeyError, match="inside"):
        F.apply(x * 2)
    gc.collect()
    assert refs[0]() is None
    assert tp.is_grad_enabled()


def test_output_grad_dtype() -> None:
    class F(Function):
        declared = (tp.float64, None)

        @staticmethod
        def forward(ctx, x):
            ctx.set_output_grad_dtype(*F.declared)
            return x * 1, "x"

        @staticmethod
        def backward(ctx, g, _):
            assert g.dtype is tp.float64
            return g.float()

    x = tp.ones(1, requires_grad=True)
    F.apply(x)[0].backward()
    (F.apply(x)[0] * 2).backward()
    F.declared = (tp.float64,)
    with pytest.raises(RuntimeError, match="declared 1"):
        F.apply(x)
    F.declared = (None, tp.float32)
    with pytest.raises(RuntimeError, match="no gradient"):
        F.apply(x)


def test_input_grad_buffers() -> None:
    state = {}

    class F(Function):
        @staticmethod
        def forward(ctx, x, w):
            return x * w

        @staticmethod
        def backward(ctx, g):
            bx, bw = ctx.input_grad_buffers
            state["seen"] = (bx is not None, bw)
            if bx is None:
                return g * 3, None
            bx.add_(g * 3)
            return None, None

    x, w = tp.ones(2, requires_grad=True), tp.full((2,), 3.0)
    y = F.apply(x, w)
    z = (x * 5).sum() + y.sum()
    z.backward()
    assert x.grad.tolist() == [8.0, 8.0]
    with pytest.raises(RuntimeError, match="only while"):
        _ = y.grad_fn.input_grad_buffers
    y = F.apply(x, w)
    with pytest.raises(RuntimeError, match="create_graph"):
        tp.autograd.grad(y.sum(), x, create_graph=True)


def test_long_chains_end_without_recursion() -> None:
    x = tp.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = Scale.apply(y, 1.0)
    y.backward()
    assert x.grad.item() == 1.0
    del y
    gc.collect()
