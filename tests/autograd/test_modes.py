"""Section 4 of the autograd checklist: grad modes."""

from __future__ import annotations

import importlib
import os
import threading

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
row = pytest.mark.row
enabled = tp.is_grad_enabled


@row("4.no_grad, enable_grad")
def test_blocks() -> None:
    x = tp.ones(1, requires_grad=True)
    guard = tp.no_grad()
    with guard:
        assert not enabled() and not (x * 2).requires_grad
        with tp.enable_grad():
            assert (x * 2).requires_grad
        assert not enabled()
    with guard:
        assert not enabled()
    assert enabled()
    with pytest.raises(KeyError), tp.no_grad():
        raise KeyError
    assert enabled()


@row("4.no_grad, enable_grad")
def test_decorators() -> None:
    @tp.no_grad
    def bare():
        return enabled()

    @tp.no_grad()
    def called(n):
        return called(n - 1) if n else enabled()

    @tp.enable_grad()
    def on():
        return enabled()

    assert (bare(), called(20)) == (False, False)
    with tp.no_grad():
        assert on() and not enabled()
    assert enabled()


@row("4.no_grad, enable_grad")
def test_generators() -> None:
    log = []

    @tp.no_grad()
    def numbers():
        try:
            log.append(enabled())
            got = yield 1
            log.append((got, enabled()))
            try:
                yield 2
            except KeyError:
                log.append(enabled())
            yield 3
        finally:
            log.append(("closed", enabled()))

    g = numbers()
    assert next(g) == 1 and enabled()
    assert g.send("x") == 2 and enabled()
    assert g.throw(KeyError()) == 3 and enabled()
    g.close()
    assert log == [False, ("x", False), False, ("closed", False)]


@row("4.set_grad_enabled")
def test_set_grad_enabled() -> None:
    tp.set_grad_enabled(False)
    assert not enabled()
    tp.set_grad_enabled(True)
    with tp.set_grad_enabled(False):
        assert not enabled()
    assert enabled()

    @tp.set_grad_enabled(False)
    def off():
        return enabled()

    assert enabled() and not off() and enabled()


@row("4.is_grad_enabled")
def test_threads_start_enabled() -> None:
    seen = []
    with tp.no_grad():
        t = threading.Thread(target=lambda: seen.append(enabled()))
        t.start()
        t.join()
    assert seen == [True]


@row("4.inference_mode")
def test_inference_mode() -> None:
    x = tp.ones(2, requires_grad=True)
    with tp.inference_mode():
        assert tp.is_inference_mode_enabled() and not enabled()
        y = x * 2
        assert y.is_inference() and not y.requires_grad
        y.add_(1)
        with tp.inference_mode(False):
            assert not tp.is_inference_mode_enabled() and (x * 2).requires_grad
    assert not tp.is_inference_mode_enabled() and enabled()
    with pytest.raises(RuntimeError, match="(?i)inference"):
        _ = y._version
    with pytest.raises(RuntimeError, match="(?i)inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="(?i)inplace update to inference tensor|inference"):
        y.add_(1)
    assert (x * y.clone()).requires_grad

    @tp.inference_mode()
    def inside():
        return tp.is_inference_mode_enabled()

    @tp.inference_mode
    def bare():
        return tp.is_inference_mode_enabled()

    assert inside() and bare()
    fw = tp.autograd.forward_ad
    with fw.dual_level(), tp.inference_mode():
        assert fw.unpack_dual(fw.make_dual(tp.ones(1), tp.ones(1)) * 2).tangent is None


@row("4.set_multithreading_enabled")
def test_multithreading() -> None:
    x = tp.ones(2, requires_grad=True)
    with tp.autograd.set_multithreading_enabled(False):
        (x * 2).sum().backward()
    tp.autograd.set_multithreading_enabled(True)
    assert x.grad.tolist() == [2.0, 2.0]


@row("4.grad mode in backward")
def test_mode_in_backward() -> None:
    x = tp.tensor([2.0], requires_grad=True)
    y = x**3
    with tp.no_grad():
        (g,) = tp.autograd.grad(y, x, create_graph=True)
        assert g.requires_grad and not enabled()
    assert tp.autograd.grad(g, x)[0].item() == 12.0
    (g,) = tp.autograd.grad(x**3, x)
    assert not g.requires_grad


@row("4.factories under no_grad")
def test_factories() -> None:
    with tp.no_grad():
        made = [
            tp.zeros(2, requires_grad=True),
            tp.ones(2, requires_grad=True),
            tp.full((2,), 3.0, requires_grad=True),
            tp.tensor([1.0], requires_grad=True),
            tp.arange(3.0, requires_grad=True),
            tp.eye(2, requires_grad=True),
        ]
    assert all(t.requires_grad and t.is_leaf for t in made)
