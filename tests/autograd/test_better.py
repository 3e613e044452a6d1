"""Sections 0 and 12 of the autograd checklist: where PyTorch is wrong, or unsafe, and this library is not."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
import tensorplay as tp

pytestmark = pytest.mark.ours
row = pytest.mark.row
Function, grad = tp.autograd.Function, tp.autograd.grad
F64 = tp.float64
inf = math.inf


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


def const(*values):
    return tp.tensor(values, dtype=F64)


def make(forward, backward, **attributes):
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward), **attributes}
    return type("Made", (Function,), body)


@row("12.zero upstream masks the formula")
@pytest.mark.parametrize(
    ("f", "at"),
    [
        (lambda x: x.sqrt(), -2.0),
        (lambda x: x.log(), -2.0),
        (lambda x: 1 / x, 0.0),
        (lambda x: x**0.5, -2.0),
        (lambda x: x.rsqrt(), 0.0),
        (lambda x: x.asin(), 2.0),
    ],
)
def test_masked_branch(f, at: float) -> None:
    x = leaf(at, 0.25)
    naive = tp.where(x == 0.25, f(x), x)
    (g,) = grad(naive.sum(), x)
    y = leaf(0.25)
    (want,) = grad(f(y).sum(), y)
    assert g.tolist() == [1.0, want.item()]


@row("12.logsumexp and logaddexp at -inf")
def test_log_of_nothing() -> None:
    x = leaf(-inf, -inf)
    assert grad(tp.logsumexp(x, 0), x)[0].tolist() == [0.0, 0.0]
    a, b = leaf(-inf), leaf(-inf)
    assert [g.item() for g in grad(tp.logaddexp(a, b), (a, b))] == [0.0, 0.0]


@row("12.sinc at 0")
def test_sinc() -> None:
    x = leaf(0.0, 0.5)
    (g,) = grad(tp.sinc(x).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert g[0].item() == 0.0
    assert h[0].item() == pytest.approx(-(math.pi**2) / 3, rel=1e-12)


@row("12.hypot and norms at the origin")
def test_origin() -> None:
    a, b = leaf(0.0), leaf(0.0)
    assert [g.item() for g in grad(tp.hypot(a, b), (a, b))] == [0.0, 0.0]
    x = leaf(0.0, 0.0)
    for order in (1, 2, 3, inf):
        assert grad(tp.linalg.vector_norm(x, order), x)[0].tolist() == [0.0, 0.0]


@row("12.scatter with an index smaller than its source")
def test_scatter() -> None:
    source, base = leaf(1.0, 2.0, 3.0), leaf(0.0, 0.0, 0.0, 0.0)
    out = base.scatter(0, tp.tensor([3, 1]), source)
    a, b = grad((out * const(1.0, 10.0, 100.0, 1000.0)).sum(), (source, base))
    assert a.tolist() == [1000.0, 10.0, 0.0] and b.tolist() == [1.0, 0.0, 100.0, 0.0]


@row("12.negative strides from DLPack")
def test_negative_strides() -> None:
    a = np.arange(6.0)[::-1]
    try:
        assert tp.from_dlpack(a).tolist() == a.tolist()
    except (BufferError, ValueError, RuntimeError) as refused:
        assert "stride" in str(refused)


@row("12.a backward that scribbles on its gradient")
def test_scribbling() -> None:
    def scribbles(ctx, g):
        g.mul_(100)
        return g

    x, w = leaf(1.0, 2.0), leaf(1.0, 2.0)
    cls = make(lambda ctx, x: x * 1, scribbles)
    (cls.apply(x) + w).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]
    seed = const(1.0, 1.0)
    cls.apply(x).backward(seed)
    assert seed.tolist() == [1.0, 1.0]


@row("12.a backward that scribbles on its gradient")
def test_a_scribbling_hook() -> None:
    x, w = leaf(1.0, 2.0), leaf(1.0, 2.0)
    y = x * 1
    z = y + w  # hands the same gradient to both

    def scribbles(g) -> None:
        g.mul_(100)

    y.register_hook(scribbles)
    seed = const(1.0, 1.0)
    z.backward(seed)
    assert w.grad.tolist() == [1.0, 1.0] and seed.tolist() == [1.0, 1.0]


@row("12.gradients of different leaves share no memory")
def test_no_shared_memory() -> None:
    a, b, seed = leaf(1.0, 1.0), leaf(1.0, 1.0), const(1.0, 1.0)
    (a + b).backward(seed)
    pointers = {a.grad.data_ptr(), b.grad.data_ptr(), seed.data_ptr()}
    assert len(pointers) == 3
    c = leaf(1.0, 1.0)
    c.view(2).backward(seed)
    seed.mul_(7)
    assert c.grad.tolist() == [1.0, 1.0]
    g, h = grad(a + b, (a, b), const(1.0, 1.0))
    assert g.data_ptr() != h.data_ptr()


@row("12.a derivative computed outside the graph")
def test_outside_the_graph() -> None:
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.detach() ** 2

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return tp.from_numpy(2 * x.detach().numpy() * g.detach().numpy())

    x, seed = leaf(3.0), leaf(1.0)
    (g,) = grad(make(forward, backward).apply(x), x, seed, create_graph=True)
    assert g.item() == 6.0
    with pytest.raises(RuntimeError, match="outside the graph"):
        g.backward()


@row("12.nothing leaks")
def test_nothing_leaks() -> None:
    refs = []

    class Returns(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            refs.append(weakref.ref(ctx))
            ctx.save_for_backward(output.view(-1))
            return ctx, output

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def dirty(ctx, x):
        refs.append(weakref.ref(ctx))
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    x = leaf(1.0, 2.0)
    Returns.apply(x)
    cls = make(dirty, lambda ctx, g: g * 2)
    cls.apply(x * 1)
    cls.apply((x * 1)[:1])
    gc.collect()
    assert [r() for r in refs] == [None] * 3


@row("12.nothing leaks")
def test_a_saved_dirty_view_is_unpacked_rightly() -> None:
    def exp_(ctx, x):
        with tp.no_grad():
            x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    cls = make(exp_, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(1.0, 2.0)
    base = x * 1
    view = base[:1]
    assert cls.apply(view) is view
    (g,) = grad(base.sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert g.tolist() == pytest.approx([math.e, 1.0])
    assert h.tolist() == pytest.approx([math.e, 0.0])


@row("12.needs_input_grad is refined by inputs=")
def test_needs_input_grad_is_refined() -> None:
    seen = []

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, g

    x, w = leaf(1.0), leaf(2.0)
    cls = make(lambda ctx, x, w: x + w, backward)
    grad(cls.apply(x, w), w)
    cls.apply(x, w).backward(inputs=[x])
    cls.apply(x, w).backward()
    assert seen == [(False, True), (True, False), (True, True)]


@row("12.an undeclared in-place change raises")
def test_undeclared_change() -> None:
    with pytest.raises(RuntimeError, match="mark_dirty"):
        make(lambda ctx, x: x.mul_(2) * 1, lambda ctx, g: g).apply(leaf(1.0) * 1)


@row("0.a change through a view of a dead tensor is seen")
def test_version_lives_with_the_memory() -> None:
    x = leaf(1.0, 2.0)
    base = x.detach().clone()
    view = base[:1]
    y = x * base
    del base
    gc.collect()
    view.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@row("0.saved outputs survive the death of their tensor")
def test_saved_output_of_a_dead_tensor() -> None:
    x = leaf(0.5)
    y = x.tanh().sum()
    gc.collect()
    (g,) = grad(y, x, create_graph=True)
    (h,) = grad(g.sum(), x)
    t = math.tanh(0.5)
    assert h.item() == pytest.approx(-2 * t * (1 - t * t))


@row("2.create_graph")
def test_cycles_through_the_graph_are_collected() -> None:
    x = leaf(1.0, 2.0)
    (x**3).sum().backward(create_graph=True)  # x, its grad, the graph of that grad, x
    refs = [weakref.ref(x), weakref.ref(x.grad)]
    y = leaf(1.0) * 2
    y.register_hook(lambda g, kept=y: None)
    refs.append(weakref.ref(y))
    z = leaf(1.0).exp()
    with tp.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):  # keeps z with its history
        z.square()
    refs.append(weakref.ref(z))
    del x, y, z
    gc.collect()
    assert [r() for r in refs] == [None] * 4


@row("12.det at singular matrices")
@pytest.mark.parametrize(
    ("matrix", "cofactors"),
    [
        ([[3.0, 6.0], [1.0, 2.0]], [[2.0, -1.0], [-6.0, 3.0]]),
        ([[0.0, 2.0], [0.0, 3.0]], [[3.0, 0.0], [-2.0, 0.0]]),
        ([[1.0, 1.0, 1.0]] * 3, [[0.0] * 3] * 3),
        ([[0.0]], [[1.0]]),
    ],
)
def test_det_gives_cofactors(matrix, cofactors) -> None:
    x = tp.tensor(matrix, dtype=F64, requires_grad=True)
    (g,) = grad(tp.linalg.det(x), x)
    np.testing.assert_allclose(g.numpy(), cofactors, atol=1e-12)


@row("1._version")
@pytest.mark.parametrize("draw", ["normal_", "uniform_", "exponential_"])
def test_random_numbers_in_place_cut_the_gradient(draw: str) -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    getattr(y, draw)()
    assert grad(y.sum(), x)[0].tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(x, draw)()
