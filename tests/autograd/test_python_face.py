"""Grad modes as blocks and decorators, saved-tensor hooks, nodes and hooks as Python sees them."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref

import pytest
import tensorplay as tp


def test_blocks() -> None:
    x = tp.ones(1, requires_grad=True)
    with tp.no_grad():
        assert not tp.is_grad_enabled()
        with tp.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    guard = tp.no_grad()
    with guard, guard, guard:
        pass
    assert tp.is_grad_enabled()
    for _ in range(40):
        guard.__enter__()
    for _ in range(40):
        guard.__exit__(None, None, None)
    assert tp.is_grad_enabled()
    with pytest.raises(RuntimeError, match="left more often"):
        guard.__exit__(None, None, None)
    tp.set_grad_enabled(False)
    assert not tp.is_grad_enabled()
    tp.set_grad_enabled(True)
    with tp.set_grad_enabled(False):
        assert not tp.is_grad_enabled()
    assert tp.is_grad_enabled()
    with pytest.raises(TypeError, match="bool"):
        tp.set_grad_enabled(3)
    with tp.inference_mode():
        y = x * 2
        assert y.is_inference()
        with tp.inference_mode(False):
            assert (x * 2).requires_grad
        with pytest.raises(RuntimeError, match="do not track"):
            _ = y._version
    assert tp.ones(1, requires_grad=True).requires_grad
    seen = []
    with tp.no_grad():
        t = threading.Thread(target=lambda: seen.append(tp.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_decorators() -> None:
    @tp.no_grad
    def bare():
        """Doc."""
        return tp.is_grad_enabled()

    @tp.no_grad()
    def called(n):
        return called(n - 1) if n else tp.is_grad_enabled()

    @tp.set_grad_enabled(False)
    def switched():
        return tp.is_grad_enabled()

    @tp.inference_mode
    def inference():
        return tp.is_inference_mode_enabled()

    assert bare.__doc__ == "Doc."
    assert tp.is_grad_enabled()
    assert (bare(), called(100), switched(), inference()) == (False, False, False, True)
    log = []

    @tp.no_grad()
    def generator():
        try:
            log.append(tp.is_grad_enabled())
            got = yield 1
            log.append((got, tp.is_grad_enabled()))
            try:
                yield 2
            except KeyError:
                log.append(tp.is_grad_enabled())
            yield 3
        finally:
            log.append(("closed", tp.is_grad_enabled()))
        return 4

    g = generator()
    assert next(g) == 1
    assert tp.is_grad_enabled()
    assert g.send("x") == 2
    assert g.throw(KeyError()) == 3
    g.close()
    assert log == [False, ("x", False), False, ("closed", False)]

    @tp.no_grad()
    async def coroutine():
        before = tp.is_grad_enabled()
        await asyncio.sleep(0)
        return before, tp.is_grad_enabled()

    async def both():
        task = asyncio.ensure_future(coroutine())
        await asyncio.sleep(0)
        outside = tp.is_grad_enabled()
        return outside, await task

    assert asyncio.run(both()) == (True, (False, False))


def test_nodes() -> None:
    x, y = tp.ones(2, requires_grad=True), tp.ones(2)
    z = x * y
    n = z.grad_fn
    assert n is z.grad_fn
    assert n.name() == type(n).__name__ == "MulBackward0"
    assert isinstance(n, tp.autograd.Node)
    assert n.next_functions[1] == (None, 0)
    accumulate, _ = n.next_functions[0]
    assert accumulate.variable is x
    assert accumulate is z.grad_fn.next_functions[0][0]
    assert type(accumulate).__name__ == "AccumulateGrad"
    n.metadata["k"] = 1
    assert z.grad_fn.metadata == {"k": 1}
    assert n._saved_other.tolist() == [1.0, 1.0]
    assert n._saved_input is None
    with pytest.raises(AttributeError):
        _ = n._saved_nothing
    assert n._sequence_nr() > 0
    e = x.exp()
    assert e.grad_fn._saved_out.grad_fn is e.grad_fn
    e.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = e.grad_fn._saved_out
    assert n(tp.ones(2))[0].tolist() == [1.0, 1.0]
    ref = weakref.ref(n)
    del n, z
    gc.collect()
    assert ref() is None


def test_hooks() -> None:
    x = tp.ones(2, requires_grad=True)
    calls = []
    y = x * 2
    first = y.register_hook(lambda g: calls.append("first"))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: calls.append(g.tolist()))
    x.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.tolist()))
    node = y.grad_fn
    node.register_prehook(lambda outs: (outs[0] + 1,))
    node.register_hook(lambda ins, outs: calls.append((len(ins), outs[0].tolist())))
    y.sum().backward()
    assert calls == ["first", (2, [11.0, 11.0]), [22.0, 22.0], [22.0, 22.0]]
    first.remove()
    first.remove()
    with x.register_hook(lambda g: g * 0):
        x.grad = None
        (x * 3).sum().backward()
        assert x.grad.tolist() == [0.0, 0.0]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        tp.ones(1).register_hook(print)
    with pytest.raises(RuntimeError, match="non-leaf"):
        y.register_post_accumulate_grad_hook(print)
    x.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="must return a Tensor or None"):
        (x * 3).sum().backward()


def test_saved_tensor_hooks() -> None:
    x = tp.ones(2, requires_grad=True)
    packed = []
    with tp.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t.tolist()) or len(packed), lambda k: tp.full((2,), 7.0)
    ):
        y = x.square()
    y.sum().backward()
    assert packed == [[1.0, 1.0]]
    assert x.grad.tolist() == [14.0, 14.0]
    z = x.square()
    z.grad_fn._raw_saved_input.register_hooks(lambda t: t * 3, lambda t: t)
    x.grad = None
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="stop"), tp.autograd.graph.disable_saved_tensors_hooks("stop"):
        tp.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()
    assert not tp._C._top_saved_hooks()


def test_engine_arguments() -> None:
    x = tp.ones(2, requires_grad=True)
    y = x * 2
    grad, backward = tp.autograd.grad, tp.autograd.backward
    cases = [
        (lambda: y.backward(), RuntimeError, "implicitly created only for scalar outputs"),
        (lambda: y.backward(tp.ones(3)), RuntimeError, r"Mismatch in shape: grad_output\[0\] has a shape of \[3\]"),
        (lambda: y.backward(3), TypeError, "either Tensors or None"),
        (lambda: backward([y, y], [tp.ones(2)]), RuntimeError, "got 2 tensors and 1 gradients"),
        (lambda: tp.ones(1).backward(), RuntimeError, "element 0 of tensors does not require grad"),
        (lambda: grad(y.sum(), tp.ones(1)), RuntimeError, "does not require grad"),
        (lambda: grad(y.sum(), []), RuntimeError, "cannot be empty"),
        (lambda: backward(y.sum(), inputs=[]), RuntimeError, "cannot be empty"),
        (lambda: grad(y.sum(), tp.ones(1, requires_grad=True)), RuntimeError, "index 0 appears to not have been used"),
        (lambda: grad(y.sum(), x, allow_unused=False, materialize_grads=True), ValueError, "allow_unused"),
        (lambda: y.backward(tp.ones(2), nope=1), TypeError, "unexpected keyword argument 'nope'"),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=text):
            call()
    other = tp.ones(1, requires_grad=True)
    assert grad(y.sum(), [x, other], allow_unused=True, retain_graph=True)[1] is None
    assert grad(y.sum(), [other], materialize_grads=True)[0].tolist() == [0.0]
    assert set(grad(y.sum(), {"a": x})) == {"a"}
    y = x * 2
    backward(y.sum(), retain_graph=True, inputs=[x, x])
    assert x.grad.tolist() == [2.0, 2.0]
    rows = grad(y, x, tp.eye(2), retain_graph=True, is_grads_batched=True)[0]
    assert rows.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    with pytest.warns(FutureWarning, match="grad_variables"):
        backward(y, grad_variables=tp.ones(2))


FIRST = ("tp.autograd.gradgradcheck", "import tensorplay.autograd.gradcheck", "tp.autograd.gradcheck")


@pytest.mark.parametrize("first", FIRST)
def test_gradcheck_is_a_function_however_its_module_came_in(first: str) -> None:
    code = f"import tensorplay as tp\n{first}\nx = tp.ones(2, dtype=tp.float64, requires_grad=True)\n"
    code += "assert tp.autograd.gradcheck(tp.sin, (x,)) and tp.autograd.gradgradcheck(tp.sin, (x,))\n"
    code += "from tensorplay.autograd.gradcheck import GradcheckError\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_not_here_names_what_is() -> None:
    for module, name, says in (
        (tp, "array", "tensor"), (tp, "FloatTensor", "tensor"),
        (tp, "compile", "define_op"), (tp.nn, "Parameter", "requires_grad"),
        (tp.func, "value_and_grad", r"grad_and_value\(f\) gives \(gradient, value\)"), (tp.utils, "data", "randperm"),
        (tp.ones(1), "astype", r"to\(dtype\)"), (tp.ones(1), "copy", "clone"),
        (tp.nn, "CrossEntropyLoss", "cross_entropy"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=f"{name}'.*{says}"):
            getattr(module, name)
    assert not hasattr(tp.ones(1), "astype") and not hasattr(tp.func, "nothing")
