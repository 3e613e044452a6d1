"""Section 2 of the autograd checklist: backward, grad and the engine behind them."""

from __future__ import annotations

import collections
import gc
import importlib
import os
import subprocess
import sys
import threading
import types
import warnings

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
row = pytest.mark.row
backward, grad, Function = tp.autograd.backward, tp.autograd.grad, tp.autograd.Function
F64 = tp.float64


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


def const(*values):
    return tp.tensor(values, dtype=F64)


@row("2.backward")
def test_backward() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0)
    y, z = (x * 2).sum(), x * w
    backward([y, z], [None, const(1.0, 10.0)])
    assert x.grad.tolist() == [5.0, 32.0] and w.grad.tolist() == [21.0]
    x.grad = None
    backward((x * x).sum(), create_graph=False, retain_graph=True)
    assert x.grad.tolist() == [2.0, 4.0]
    with pytest.warns(FutureWarning, match="grad_variables"):
        backward(x * 2, grad_variables=const(1.0, 1.0))
    with (
        pytest.raises(RuntimeError, match="grad_variables"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        backward(x * 2, const(1.0, 1.0), grad_variables=const(1.0, 1.0))
    y = x**3
    edge = tp.autograd.graph.get_gradient_edge(y)
    x.grad = None
    backward(edge, const(1.0, 1.0))
    assert x.grad.tolist() == [3.0, 12.0]


@row("2.grad")
def test_grad() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0)
    y = (x * w).sum()
    got = grad(y, (x, w), retain_graph=True)
    assert isinstance(got, tuple) and [g.tolist() for g in got] == [[3.0, 3.0], [3.0]]
    assert x.grad is None and w.grad is None
    assert grad([y], [w], [tp.tensor(2.0, dtype=F64)], True)[0].item() == 6.0
    with pytest.raises(RuntimeError, match="cannot be empty"):
        grad(y, [])
    with pytest.warns(FutureWarning, match="only_inputs"):
        grad(y, x, retain_graph=True, only_inputs=False)
    named = grad(y, {"x": x, "w": w}, retain_graph=True)
    assert list(named) == ["x", "w"] and named["w"].item() == 3.0
    with pytest.raises(TypeError):
        grad(y, types.MappingProxyType({"x": x}))
    with pytest.raises(TypeError):
        grad(y, collections.UserDict(x=x))


@row("2.grad")
def test_grad_fills_what_retains_its_gradient() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    z = y * 3
    assert grad(z, x, retain_graph=True)[0].item() == 6.0 and y.grad.item() == 3.0
    assert grad(z, y, retain_graph=True)[0].item() == 3.0 and y.grad.item() == 6.0
    grad(z, z, retain_graph=True)  # does not reach y
    other = leaf(2.0)
    side = x * 2
    side.retain_grad()
    grad(side * other, other)  # side is not on the way to the input
    assert y.grad.item() == 6.0 and side.grad is None and x.grad is None


@row("2.implicit seed")
def test_implicit_seed() -> None:
    x = leaf(2.0)
    assert grad(x * 3, x)[0].tolist() == [3.0]
    assert grad((x * 3).reshape(1, 1), x)[0].tolist() == [3.0]
    y = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        grad(y * 2, y)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        backward([y * 2, y * 3], [const(1.0, 1.0)])


@row("2.seed checks")
def test_seed_checks() -> None:
    y = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"(?s)Mismatch in shape: grad_output\[0\].*output\[0\]"):
        grad(y * 2, y, const(1.0, 1.0, 1.0))
    with pytest.raises(RuntimeError, match="(?i)complex"):
        grad(y * 2, y, tp.ones(2, dtype=tp.complex128))
    (g,) = grad(y * 2, y, tp.ones(2, dtype=tp.float32))
    assert g.dtype == F64 and g.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        grad(y * 2, y, [3])


@row("2.inputs=")
def test_inputs() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0)
    h = x * 2
    y = (h * w).sum()
    y.backward(inputs=[h, w], retain_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert h.grad.tolist() == [3.0, 3.0]
    assert w.grad.tolist() == [6.0] and x.grad is None
    y.backward(inputs=[x, x], retain_graph=True)
    assert x.grad.tolist() == [6.0, 6.0]
    y.backward(inputs=x, retain_graph=True)
    assert x.grad.tolist() == [12.0, 12.0]
    y.backward(inputs={"x": x}, retain_graph=True)
    assert x.grad.tolist() == [18.0, 18.0]
    with pytest.raises(RuntimeError, match="empty"):
        y.backward(inputs=[])


@row("2.allow_unused")
def test_allow_unused() -> None:
    x, other = leaf(1.0), leaf(2.0)
    y = x * 2
    assert grad(y, [x, other], allow_unused=True, retain_graph=True)[1] is None
    for flag in (None, False):
        with pytest.raises(RuntimeError, match="appears to not have been used"):
            grad(y, [x, other], allow_unused=flag, retain_graph=True)


@row("2.materialize_grads")
def test_materialize_grads() -> None:
    x, other = leaf(1.0), leaf(2.0, 3.0)
    y = x * x
    g = grad(y, [x, other], materialize_grads=True, retain_graph=True)[1]
    assert g.tolist() == [0.0, 0.0] and not g.requires_grad
    assert grad(y, [other], materialize_grads=True, create_graph=True)[0].requires_grad
    with pytest.raises(ValueError, match="allow_unused"):
        grad(y, [other], materialize_grads=True, allow_unused=False)
    with pytest.raises(RuntimeError, match="(?i)GradientEdge"):
        grad(y, [tp.autograd.graph.get_gradient_edge(other)], materialize_grads=True)


@row("2.is_grads_batched")
def test_is_grads_batched() -> None:
    x = leaf(1.0, 2.0)
    (g,) = grad(x * x, x, tp.eye(2, dtype=F64), is_grads_batched=True)
    assert g.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    with pytest.raises(RuntimeError, match="(?i)batch"):
        grad(x * x, x, tp.eye(3, dtype=F64), is_grads_batched=True)
    other = leaf(1.0)
    got = grad(x * x, [x, other], tp.eye(2, dtype=F64), is_grads_batched=True, allow_unused=True)
    assert got[1] is None


@row("2.retain_graph / second pass")
def test_second_pass() -> None:
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    assert x.grad.item() == 8.0
    z = (x + 1).view(1, 1).sum()
    z.backward()
    z.backward()
    assert x.grad.item() == 10.0


@row("2.create_graph")
def test_create_graph() -> None:
    x = leaf(2.0)
    (g,) = grad(x**3, x, create_graph=True)
    assert g.requires_grad and g.item() == 12.0
    (h,) = grad(g, x, create_graph=True)
    assert grad(h, x)[0].item() == 6.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x**3).backward(create_graph=True)
        first = x.grad
        assert first.requires_grad
        (x**2).backward(create_graph=True)
    assert x.grad is not first and first.item() == 12.0 and x.grad.item() == 16.0
    assert grad(x.grad, x)[0].item() == 14.0
    x.grad = None


@row("2.create_graph")
def test_create_graph_warns_of_the_cycle() -> None:
    # PyTorch says it once a process: asked in a fresh one, so that the order of tests does not matter.
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        f"import {tp.__name__} as tp\n"
        "x = tp.tensor([2.0], requires_grad=True)\n"
        "tp.autograd.grad((x * x).sum(), x, create_graph=True)\n"
        "(x * x).sum().backward(create_graph=True)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert ran.returncode != 0
    assert "UserWarning: Using backward() with create_graph=True will create a reference cycle" in ran.stderr


@row("2.roots that don't require grad")
def test_roots() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        const(1.0).backward()
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        grad(x * 2, const(1.0))


@row("2.same tensor in outputs and inputs; duplicates in inputs")
def test_outputs_among_inputs() -> None:
    x = leaf(1.0, 2.0)
    seed = const(3.0, 4.0)
    assert grad(x, x, seed)[0].tolist() == [3.0, 4.0]
    y = x * 2
    assert grad(y, y, seed)[0].tolist() == [3.0, 4.0]
    assert [g.tolist() for g in grad(y, [x, y, x], seed)] == [[6.0, 8.0], [3.0, 4.0], [6.0, 8.0]]


@row("2.GradientEdge in/out")
def test_gradient_edges() -> None:
    x = leaf(2.0)
    h = x * 3
    y = h * h
    inner, outer = tp.autograd.graph.get_gradient_edge(h), tp.autograd.graph.get_gradient_edge(y)
    del h, y
    gc.collect()
    assert grad(outer, inner, const(1.0), retain_graph=True)[0].item() == 12.0
    assert grad(outer, x, const(1.0), retain_graph=True)[0].item() == 36.0
    assert grad(outer, tp.autograd.graph.get_gradient_edge(x), retain_graph=True)[0].item() == 36.0


@row("2.inside func transforms")
@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "vmap", "jacrev", "jacfwd"])
def test_backward_inside_a_function_transform_names_what_to_use(name: str) -> None:
    w, x = leaf(2.0), const(3.0)

    def f(a):
        tp.autograd.backward(w * 2) if name == "vjp" else (w * 2).backward()
        return a.sum()

    fn = tp.func
    calls = {
        "grad": lambda: fn.grad(f)(x), "vjp": lambda: fn.vjp(f, x), "jvp": lambda: fn.jvp(f, (x,), (x,)),
        "vmap": lambda: fn.vmap(f)(x), "jacrev": lambda: fn.jacrev(f)(x), "jacfwd": lambda: fn.jacfwd(f)(x),
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="(?s)backward.*transform"):
        calls[name]()
    assert w.grad is None
    (w * 2).backward()  # and nothing of the transform stays behind
    assert w.grad.item() == 2.0


@row("2.exception safety")
def test_exception_safety() -> None:
    class Own(Exception):
        pass

    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise Own("from backward")

    x, w = leaf(1.0), leaf(2.0)
    y = Fails.apply(x * 2) + w.exp()
    for _ in range(2):
        with pytest.raises(Own, match="from backward"):
            y.backward(retain_graph=True)
    assert x.grad is None and tp.is_grad_enabled()
    (x * 5).backward()
    assert x.grad.item() == 5.0


@row("2.reentrancy")
def test_reentrancy() -> None:
    class Inner(Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.save_for_backward(x)
            ctx.depth = depth
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with tp.enable_grad():
                v = x.detach().requires_grad_()
                z = Inner.apply(v, ctx.depth - 1) if ctx.depth else v * v
                z.sum().backward()
            return v.grad * g, None

    x = leaf(3.0)
    Inner.apply(x, 80).sum().backward()
    assert x.grad.tolist() == [6.0]
    seen = []
    y = x * 2

    def hook(g) -> None:
        with tp.enable_grad():
            seen.append(grad(x * x, x)[0].item())

    y.register_hook(hook)
    y.sum().backward()
    assert seen == [6.0]


@row("2.deep graphs")
def test_deep_graphs() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    del y
    y = x
    for _ in range(50_000):
        y = y + 1
    del y
    gc.collect()


@row("2.callbacks")
def test_callbacks() -> None:
    queue = tp.autograd.Variable._execution_engine.queue_callback
    x = leaf(1.0)
    order = []

    def hook(g) -> None:
        queue(lambda: order.append(("end", x.grad.item())))
        order.append("hook")

    y = x * 2
    y.register_hook(hook)
    (y * 3).backward()
    assert order == ["hook", ("end", 6.0)]
    with pytest.raises(RuntimeError):
        queue(lambda: None)

    def fails() -> None:
        raise KeyError("inside the callback")

    y = x * 2
    y.register_hook(lambda g: queue(fails))
    with pytest.raises((KeyError, RuntimeError), match="inside the callback"):
        y.backward()
    (x * 2).backward()


@row("2.thread rules")
def test_threads() -> None:
    w = leaf(*[0.0] * 8)
    faults = []
    hooked = []
    w.register_hook(lambda g: hooked.append(threading.get_ident()))

    def work() -> None:
        try:
            for _ in range(25):
                (w.sum() * 1.0).backward()
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not faults
    assert w.grad.tolist() == [100.0] * 8
    assert len(hooked) == 100 and threading.get_ident() not in hooked


@row("2.validate_outputs")
def test_validate_outputs() -> None:
    class Returns(Function):
        @staticmethod
        def forward(ctx, x, make):
            ctx.make = make
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return ctx.make(g), None

    x = leaf(1.0, 2.0)
    for make, want in (
        (lambda g: None, None),
        (lambda g: g.expand(3, 2), [3.0, 3.0]),
        (lambda g: g.float(), [1.0, 1.0]),
    ):
        x.grad = None
        Returns.apply(x, make).sum().backward()
        assert (x.grad if want is None else x.grad.tolist()) == want
        assert x.grad is None or x.grad.dtype == F64
    seen = []
    y = x * 1
    y.register_hook(lambda g: seen.append(g.dtype))
    Returns.apply(y, lambda g: g.float()).sum().backward()
    assert seen == [F64]
    text = r"returned an invalid gradient at index 0 - got \[5\] but expected shape compatible with \[2\]"
    with pytest.raises(RuntimeError, match=text):
        Returns.apply(x, lambda g: tp.ones(5, dtype=F64)).sum().backward()


@row("2.accumulation contract")
def test_accumulation() -> None:
    a, b = leaf(1.0, 1.0), leaf(1.0, 1.0)
    (a * 2).sum().backward()
    kept = a.grad
    (a * 3).sum().backward()
    assert a.grad is kept and kept.tolist() == [5.0, 5.0]
    (a + b).backward(const(1.0, 1.0))
    a.grad.mul_(5)
    assert b.grad.tolist() == [1.0, 1.0]
    c = leaf(1.0, 2.0)
    c.sum().backward()
    c.grad[0] = 9.0  # the expanded scalar was copied
    assert c.grad.tolist() == [9.0, 1.0]
    d = leaf(1.0)
    y = d * 2
    d.requires_grad_(False)
    y.backward()
    assert d.grad is None
    e = leaf(2.0)
    z = e * 3 + a.sum()
    del e
    gc.collect()
    z.backward()
    m = tp.ones(2, 3, dtype=F64).t().requires_grad_()
    (m * tp.ones(3, 2, dtype=F64)).sum().backward()
    assert m.grad.stride() == m.stride()
