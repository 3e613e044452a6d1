"""Section 3 of the autograd checklist: the styles of a Function, its gradients, and what it saves."""

from __future__ import annotations

import gc
import importlib
import os
import weakref

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
functions = importlib.import_module(tp.__name__ + ".autograd.function")
row = pytest.mark.row
Function, grad = tp.autograd.Function, tp.autograd.grad
F64 = tp.float64


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


def const(*values):
    return tp.tensor(values, dtype=F64)


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
    """The separate style, with a default."""

    @staticmethod
    def forward(x, k=2.0):
        return x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


def make(forward, backward=None, **attributes):
    """A Function class of two plain functions."""
    body = {"forward": staticmethod(forward), **attributes}
    if backward is not None:
        body["backward"] = staticmethod(backward)
    return type("Made", (Function,), body)


@row("3.combined style")
def test_combined() -> None:
    seen = {}

    def forward(ctx, x):
        seen["mode"] = (tp.is_grad_enabled(), x.requires_grad)
        return x * 2

    x = leaf(1.0)
    make(forward, lambda ctx, g: g * 2).apply(x).backward()
    assert seen["mode"] == (False, True) and x.grad.item() == 2.0


@row("3.separate style")
def test_separate() -> None:
    x = leaf(3.0)
    for y in (Scale.apply(x), Scale.apply(x, 2.0)):
        assert grad(y, x)[0].item() == 2.0
    seen = []

    class Returns(Scale):
        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((inputs[0] is x, inputs[1], output.item()))
            ctx.k = inputs[1]

    assert Returns.apply(x, 5.0).item() == 15.0
    assert seen == [(True, 5.0, 15.0)]


@row("3.apply")
def test_apply() -> None:
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.requires_grad and y.grad_fn is not None
    refs = []

    def forward(ctx, x):
        refs.append(weakref.ref(ctx))
        return x * 2

    with tp.no_grad():
        z = make(forward, lambda ctx, g: g * 2).apply(x)
    assert z.grad_fn is None and not z.requires_grad
    gc.collect()
    assert refs[0]() is None
    with pytest.raises(TypeError):
        Scale.apply(x, nope=1)
    with pytest.raises(TypeError):
        Cube.apply(x, nope=1)
    assert Cube.apply(x=x).item() == 8.0


@row("3.backward / vjp")
def test_backward_and_vjp() -> None:
    x = leaf(2.0)

    class Vjp(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    assert grad(Vjp.apply(x), x)[0].item() == 2.0
    both = type("Both", (Vjp,), {"backward": staticmethod(lambda ctx, g: g)})
    with pytest.raises(RuntimeError, match="(?i)both|one of them|only implement one"):
        both.apply(x).backward()
    with pytest.raises(NotImplementedError, match="backward"):
        make(lambda ctx, x: x * 2).apply(x).backward()
    seen = []

    def backward(ctx, g, other):
        seen.append((tp.is_grad_enabled(), other))
        return g * 2

    cls = make(lambda ctx, x: (x * 2, "text"), backward)
    grad(cls.apply(x)[0], x)
    grad(cls.apply(x)[0], x, create_graph=True)
    assert seen == [(False, None), (True, None)]


@row("3.return-count rules")
def test_return_counts() -> None:
    x = leaf(2.0)
    two = lambda returned: make(lambda ctx, x, n: x * n, lambda ctx, g: returned(g))  # noqa: E731
    for returned in (lambda g: (), lambda g: g, lambda g: None, lambda g: (g, None, g)):
        with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got \d\)"):
            two(returned).apply(x, 2).backward()
    assert grad(two(lambda g: (g, None, None, None)).apply(x, 2), x)[0].item() == 1.0


@row("3.return-kind rules")
def test_return_kinds() -> None:
    x, plain = leaf(2.0), const(1.0)
    run = lambda returned, other: make(lambda ctx, x, n: x * n, lambda ctx, g: returned(g)).apply(x, other)  # noqa: E731
    with pytest.raises(RuntimeError, match="different than None at position 2"):
        run(lambda g: (g, g), 2).backward()
    with pytest.raises((TypeError, RuntimeError), match="expected Variable or None"):
        run(lambda g: (1.0, None), 2).backward()
    run(lambda g: (g, g), plain).backward()
    assert plain.grad is None and x.grad.item() == 1.0


@row("3.save_for_backward")
def test_save_for_backward() -> None:
    x = leaf(2.0)

    def saves(*extra):
        def forward(ctx, x):
            ctx.save_for_backward(x, *extra)
            return x * 1

        return make(forward, lambda ctx, g: g)

    with pytest.raises(TypeError, match=r"argument 1 is of type .*int"):
        saves(3).apply(x)
    assert saves(None).apply(x).grad_fn.saved_tensors[1] is None

    def twice(ctx, x):
        ctx.save_for_backward(x, x)
        ctx.save_for_backward(x * 7)
        return x * 1

    y = make(twice, lambda ctx, g: g).apply(x)
    assert [t.item() for t in y.grad_fn.saved_tensors] == [14.0]

    def output(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    y = make(output, lambda ctx, g: ctx.saved_tensors[0] * g).apply(x)
    assert y.grad_fn.saved_tensors[0].grad_fn is y.grad_fn
    (g,) = grad(y, x, create_graph=True)
    assert grad(g, x)[0].item() == x.exp().item()
    plain = const(3.0)
    w = make(lambda ctx, x, p: (ctx.save_for_backward(p), x * p)[1], lambda ctx, g: (g * ctx.saved_tensors[0], None))
    y = w.apply(x, plain)
    plain.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    with tp.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 10, lambda t: t):
        y = w.apply(x, plain)
    assert grad(y, x)[0].item() == 40.0


@row("3.saved_tensors / saved_variables")
def test_saved_tensors() -> None:
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.grad_fn.saved_tensors[0] is x or y.grad_fn.saved_tensors[0].tolist() == [2.0]
    raw = y.grad_fn._raw_saved_tensors
    assert len(raw) == 1
    raw[0].register_hooks(lambda t: t.detach() * 2, lambda t: t)
    y.backward()
    assert x.grad.item() == 48.0
    with pytest.raises(RuntimeError, match=r"(?s)second time.*already been freed"):
        _ = y.grad_fn.saved_tensors


@row("3.save_for_forward")
def test_save_for_forward() -> None:
    fw = tp.autograd.forward_ad

    class Square(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(inputs[0])

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return 2 * x * t

    with fw.dual_level():
        y = Square.apply(fw.make_dual(const(3.0), const(1.0)))
        assert fw.unpack_dual(y).tangent.item() == 6.0
    bad = make(lambda ctx, x: (ctx.save_for_forward(3), x * 1)[1], lambda ctx, g: g)
    with pytest.raises((AssertionError, TypeError)):
        bad.apply(leaf(1.0))
