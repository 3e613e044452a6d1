"""Section 3 of the autograd checklist: what a Function tells of its outputs and gradients, and what it may return."""

from __future__ import annotations

import gc
import importlib
import os
import warnings
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


@row("3.mark_dirty")
def test_mark_dirty() -> None:
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    add = make(forward, lambda ctx, g: g)
    w = leaf(1.0, 2.0)
    a = w * 2
    version = a._version
    assert add.apply(a) is a and a._version > version
    (a * a).sum().backward()
    assert w.grad.tolist() == [12.0, 20.0]
    with pytest.raises(RuntimeError, match="leaf"):
        add.apply(w)
    plain = const(1.0)
    assert add.apply(plain) is plain
    lost = make(lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1], lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="(?i)marked as dirty"):
        lost.apply(w * 2)
    base = w * 1
    add.apply(base[:1])
    base.sum().backward()

    def two(ctx, x):
        ctx.mark_dirty(x)
        return x, x * 2

    with pytest.raises(RuntimeError, match="view"):
        make(two, lambda ctx, g, h: g).apply((w * 1)[:1])


@row("3.mark_non_differentiable")
def test_mark_non_differentiable() -> None:
    got = []

    def forward(ctx, x):
        y, i = x * 2, tp.ones(2, dtype=tp.int64)
        ctx.mark_non_differentiable(y)
        return x * 1, y, i

    def backward(ctx, *grads):
        got.extend(grads)
        return grads[0]

    x = leaf(1.0, 2.0)
    a, b, i = make(forward, backward).apply(x)
    assert a.requires_grad and not b.requires_grad and not i.requires_grad
    a.sum().backward()
    assert [g.tolist() for g in got] == [[1.0, 1.0], [0.0, 0.0], [0, 0]]
    assert got[2].dtype == tp.int64


@row("3.set_materialize_grads")
def test_materialize() -> None:
    got = []

    def of(flag):
        def forward(ctx, x):
            if flag is not None:
                ctx.set_materialize_grads(flag)
            return x * 1, x * 2

        def backward(ctx, a, b):
            got.append(b)
            return a

        return make(forward, backward)

    x = leaf(1.0, 2.0)
    for flag in (None, True, False):
        of(flag).apply(x)[0].sum().backward()
    assert got[0].tolist() == got[1].tolist() == [0.0, 0.0] and got[2] is None
    with pytest.raises(TypeError):
        of("yes").apply(x)


@row("3.needs_input_grad")
def test_needs_input_grad() -> None:
    seen = []

    def forward(ctx, a, n, b):
        seen.append(ctx.needs_input_grad)
        return a * n + b

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, None, None

    make(forward, backward).apply(leaf(1.0), 2, const(1.0)).backward()
    assert seen == [(True, False, False)] * 2


@row("3.set_output_grad_dtype")
@pytest.mark.ours
def test_output_grad_dtype() -> None:
    got = []

    def of(*dtypes):
        def forward(ctx, x):
            ctx.set_output_grad_dtype(*dtypes)
            return x * 1, "text"

        def backward(ctx, g, _):
            got.append(g.dtype)
            return g.float()

        return make(forward, backward)

    x = tp.ones(1, requires_grad=True)
    of(F64, None).apply(x)[0].backward()
    assert got == [F64]
    with pytest.raises(RuntimeError, match="declared 1"):
        of(F64).apply(x)
    with pytest.raises(RuntimeError, match="no gradient"):
        of(None, tp.float32).apply(x)


@row("3.input_grad_buffers")
@pytest.mark.ours
def test_input_grad_buffers() -> None:
    given = []

    def backward(ctx, g):
        buffer, none = ctx.input_grad_buffers
        assert none is None
        given.append(buffer is not None)
        if buffer is None:
            return g * 3, None
        buffer.add_(g * 3)
        return None, None

    x = leaf(1.0, 2.0)
    cls = make(lambda ctx, x, k: x * k, backward)
    y = cls.apply(x, 3.0)
    ((x * 5).sum() + y.sum()).backward()  # the product is younger: its gradient is there first
    assert x.grad.tolist() == [8.0, 8.0] and given == [True]
    x.grad = None
    cls.apply(x, 3.0).sum().backward()
    x.grad = None
    shared = (x * 1).view(2)
    (cls.apply(shared, 3.0).sum() + (shared + shared.detach().requires_grad_()).sum()).backward()
    assert x.grad.tolist() == [4.0, 4.0] and given == [True, False, False]
    with pytest.raises(RuntimeError, match="only while"):
        _ = y.grad_fn.input_grad_buffers
    with pytest.raises(RuntimeError, match="create_graph"):
        grad(cls.apply(x, 3.0).sum(), x, create_graph=True)


@row("3.boxed_grads_call")
def test_boxed() -> None:
    def backward(ctx, grads):
        assert isinstance(grads, list)
        return grads.pop() * 2

    x = leaf(1.0)
    y = make(lambda ctx, x: x * 2, backward, boxed_grads_call=True).apply(x)
    assert y.grad_fn.apply(const(5.0)).item() == 10.0
    assert grad(y, x)[0].item() == 2.0


@row("3.clear_saved_tensors_on_access")
def test_clear_on_access() -> None:
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with pytest.raises(RuntimeError, match="(?i)once|cleared|first access"):
            _ = ctx.saved_tensors
        return 3 * x * x * g

    x = leaf(2.0)
    assert grad(make(Cube.forward, backward, clear_saved_tensors_on_access=True).apply(x), x)[0].item() == 12.0


@row("3.jvp")
def test_jvp() -> None:
    fw = tp.autograd.forward_ad
    seen = []

    def of(jvp, forward=lambda ctx, x, y: x * y):
        return make(forward, jvp=staticmethod(jvp)) if jvp else make(forward)

    def product(ctx, tx, ty):
        seen.append(ty)
        return tx * 3

    x, y, t = const(2.0), const(3.0), const(1.0)
    with fw.dual_level():
        out = of(product).apply(fw.make_dual(x, t), y)
        assert fw.unpack_dual(out).tangent.item() == 3.0
        with pytest.raises(NotImplementedError, match="jvp"):
            of(None).apply(fw.make_dual(x, t), y)
    assert seen[0] is None or seen[0].tolist() == [0.0]


@row("3.jvp")
@pytest.mark.ours
def test_jvp_may_return_none() -> None:
    fw = tp.autograd.forward_ad
    cls = make(lambda ctx, x: x * 2, jvp=staticmethod(lambda ctx, t: None))
    with fw.dual_level():
        assert fw.unpack_dual(cls.apply(fw.make_dual(const(2.0), const(1.0)))).tangent is None


@row("3.once_differentiable")
def test_once_differentiable() -> None:
    x = leaf(3.0)
    once = make(Cube.forward, functions.once_differentiable(Cube.backward))
    assert grad(once.apply(x), x)[0].item() == 27.0
    seed = leaf(1.0)
    (g,) = grad(once.apply(x), x, seed, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.backward()


@row("3.once_differentiable")
@pytest.mark.ours  # PyTorch gives None there with allow_unused
@pytest.mark.parametrize("wrt", ["input", "intermediate", "seed"])
def test_once_differentiable_with_respect_to_what_it_came_from(wrt: str) -> None:
    x, seed = leaf(3.0), leaf(1.0)
    middle = x * 2
    once = make(Cube.forward, functions.once_differentiable(Cube.backward))
    (g,) = grad(once.apply(middle), middle, seed, create_graph=True)
    of = {"input": x, "intermediate": middle, "seed": seed}[wrt]
    for values in ({"allow_unused": True}, {"materialize_grads": True}, {}):
        with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
            grad((g * g).sum(), of, retain_graph=True, **values)


@row("3.once_differentiable")
def test_once_differentiable_from_a_constant_gradient() -> None:
    x = leaf(3.0)
    once = make(Cube.forward, functions.once_differentiable(Cube.backward))
    (g,) = grad(once.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable|does not require grad"):
        grad((g * g).sum(), x, allow_unused=True)


@row("3.once_differentiable")
def test_once_differentiable_under_vmap_is_refused_too() -> None:
    class Once(tp.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        @functions.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    x = tp.tensor([1.0, 2.0], requires_grad=True)
    y = tp.func.vmap(Once.apply)(x)
    (g,) = tp.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [3.0, 12.0]
    with pytest.raises(RuntimeError, match="once_differentiable|does not require grad"):
        tp.autograd.grad(g.sum(), x, allow_unused=True)


@row("3.FunctionMeta")
def test_meta() -> None:
    assert isinstance(Cube, functions.FunctionMeta)
    assert Cube._backward_cls.__name__ == "CubeBackward" and Cube._backward_cls._forward_cls is Cube

    class Child(Cube):
        pass

    x = leaf(2.0)
    y = Child.apply(x)
    assert y.grad_fn.name() == "ChildBackward" and grad(y, x)[0].item() == 12.0


@row("3.FunctionCtx, BackwardCFunction")
def test_ctx_is_node() -> None:
    kept = []

    def forward(ctx, x):
        ctx.anything = [1, 2]
        kept.append(ctx)
        return x * 2

    def backward(ctx, g):
        assert ctx is kept[0] and ctx.anything == [1, 2]
        return g * 2

    y = make(forward, backward).apply(leaf(1.0))
    node = y.grad_fn
    assert node is kept[0] and isinstance(node, functions.BackwardCFunction)
    assert isinstance(node, functions.FunctionCtx) and isinstance(node, tp.autograd.graph.Node)
    y.backward()


@row("3.InplaceFunction, NestedIOFunction")
def test_legacy() -> None:
    assert issubclass(functions.InplaceFunction, Function) and issubclass(functions.NestedIOFunction, Function)
    with pytest.warns(DeprecationWarning):
        instance = Cube()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        instance(leaf(1.0))


@row("3.outputs")
def test_outputs() -> None:
    x = leaf(1.0)
    marker = object()
    back = lambda ctx, *gs: gs[0]  # noqa: E731
    assert isinstance(make(lambda ctx, x: x * 2, back).apply(x), tp.Tensor)
    out = make(lambda ctx, x: (x * 2, None, marker, "text"), back).apply(x)
    assert type(out) is tuple and out[0].requires_grad and out[1:] == (None, marker, "text")
    listed = make(lambda ctx, x: [x * 2], back).apply(x)
    assert type(listed) is list and not listed[0].requires_grad


@row("3.input returned unchanged")
def test_input_returned() -> None:
    w = leaf(1.0, 2.0)
    same = make(lambda ctx, x: x, lambda ctx, g: g * 5)
    y = same.apply(w)
    assert y is not w and y.data_ptr() == w.data_ptr()
    y.sum().backward()
    assert w.grad.tolist() == [5.0, 5.0]
    with pytest.raises(RuntimeError, match="(?i)custom Function"):
        same.apply(w * 1).add_(1)


@row("3.view of input returned")
def test_view_returned() -> None:
    w = leaf(1.0, 2.0)

    def backward(ctx, g):
        return tp.cat([g, g * 0])

    y = make(lambda ctx, x: x[:1], backward).apply(w)
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 0.0]
    y = make(lambda ctx, x: x[:1], backward).apply(w * 1)
    with pytest.raises(RuntimeError, match=r"(?is)custom Function.*cloning"):
        y.add_(1)


@row("3.same tensor returned twice")
def test_returned_twice() -> None:
    def forward(ctx, x):
        y = x * 2
        return y, y

    w = leaf(1.0, 2.0)
    a, b = make(forward, lambda ctx, a, b: a * 10 + b).apply(w)
    assert a is b
    a.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


@row("3.no tensors need grad")
def test_nothing_needs_grad() -> None:
    refs = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        refs.append(weakref.ref(ctx))
        return x * 2

    y = make(forward, lambda ctx, g: g).apply(const(1.0))
    assert y.grad_fn is None and not y.requires_grad
    gc.collect()
    assert refs[0]() is None


@row("3.undeclared in-place on leaf")
@pytest.mark.ours
def test_undeclared() -> None:
    w, statistics = leaf(1.0), const(0.0)
    with pytest.raises(RuntimeError, match="mark_dirty"):
        make(lambda ctx, x: x.add_(1) * 1, lambda ctx, g: g).apply(w)
    with pytest.raises(RuntimeError, match="mark_dirty"):
        make(lambda ctx, x: x.add_(1) * 1, lambda ctx, g: g).apply(w * 2)

    def running(ctx, x, s):
        s.add_(x.sum().detach())
        return x * 1

    make(running, lambda ctx, g: (g, None)).apply(w, statistics).backward()
    assert statistics.item() != 0.0


@row("3.pickling / naming")
def test_naming() -> None:
    y = Cube.apply(leaf(1.0))
    assert y.grad_fn.name() == "CubeBackward" == type(y.grad_fn).__name__
    assert "CubeBackward" in repr(y.grad_fn) and "CubeBackward" in repr(y)


@row("3.exceptions in forward/setup_context")
def test_exceptions() -> None:
    refs = []

    class Fails(Scale):
        @staticmethod
        def setup_context(ctx, inputs, output):
            refs.append((weakref.ref(ctx), weakref.ref(output)))
            raise KeyError("inside setup_context")

    def forward(ctx, x):
        refs.append((weakref.ref(ctx),))
        raise KeyError("inside forward")

    x = leaf(1.0)
    for cls, text in ((Fails, "inside setup_context"), (make(forward, lambda ctx, g: g), "inside forward")):
        with pytest.raises(KeyError, match=text):
            cls.apply(x)
    gc.collect()
    assert all(r() is None for pair in refs for r in pair)
    assert tp.is_grad_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Cube.apply(x).backward()
