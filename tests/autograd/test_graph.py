"""Section 5 of the autograd checklist: nodes, edges, hooks on nodes, saved values."""

from __future__ import annotations

import importlib
import os

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
graph = tp.autograd.graph
row = pytest.mark.row
Function, grad = tp.autograd.Function, tp.autograd.grad
F64 = tp.float64


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


def const(*values):
    return tp.tensor(values, dtype=F64)


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@row("5.Node.name")
def test_names() -> None:
    x = leaf(1.0, 2.0)
    names = [(x * x).grad_fn.name(), x.exp().grad_fn.name(), x.sum().grad_fn.name(), Double.apply(x).grad_fn.name()]
    assert names == ["MulBackward0", "ExpBackward0", "SumBackward0", "DoubleBackward"]
    node = (x * x).grad_fn
    assert isinstance(node, graph.Node) and "MulBackward0" in repr(node)
    assert isinstance(Double.apply(x).grad_fn, graph.Node) and not isinstance(3, graph.Node)


@row("5.next_functions")
def test_next_functions() -> None:
    x, w = leaf(1.0), const(2.0)
    n = (x.exp() * w).grad_fn
    (first, nr), second = n.next_functions
    assert first.name() == "ExpBackward0" and nr == 0 and second == (None, 0)
    joined = tp.cat([x, w, x]).grad_fn
    assert [node is None for node, _ in joined.next_functions] == [False, True, False]
    assert x.exp().grad_fn.next_functions[0][0] is x.sin().grad_fn.next_functions[0][0]


@row("5.metadata")
def test_metadata() -> None:
    y = leaf(1.0) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["mine"] = 1
    assert y.grad_fn.metadata == {"mine": 1}
    del y.grad_fn.metadata["mine"]
    assert y.grad_fn.metadata == {}


@row("5.register_hook / register_prehook")
def test_node_hooks() -> None:
    x = leaf(1.0)
    order = []
    y = x * 3
    node = y.grad_fn
    node.register_prehook(lambda gs: order.append(("pre", gs[0].item())))
    node.register_prehook(lambda gs: (gs[0] * 10,))
    node.register_hook(lambda ins, outs: order.append(("post", len(ins), ins[0].item(), outs[0].item())))
    handle = node.register_hook(lambda ins, outs: (ins[0] + 1, *ins[1:]))
    (y * 1).sum().backward()
    assert order == [("pre", 1.0), ("post", 2, 30.0, 10.0)] and x.grad.item() == 31.0
    handle.remove()
    order.clear()
    z = x * 3
    z.grad_fn.register_prehook(lambda gs: order.append("pre"))
    assert grad(z * 2, z)[0].item() == 2.0
    assert order == []  # only captured: the node itself did not run
    z = x * 3
    z.grad_fn.register_prehook(lambda gs: (gs[0], gs[0]))
    with pytest.raises(RuntimeError):
        z.backward()


@row("5.saved attributes")
def test_saved_attributes() -> None:
    x, w = leaf(2.0), const(3.0)
    n = (x * w).grad_fn
    assert n._saved_other.item() == 3.0 and n._saved_self is None
    y = x.exp()
    assert y.grad_fn._saved_result.item() == y.item()
    assert grad(y, x)[0].item() == y.item()
    with pytest.raises(RuntimeError, match="(?i)freed"):
        _ = y.grad_fn._saved_result
    with pytest.raises(AttributeError):
        _ = n._saved_nothing


@row("5.saved attributes")
def test_raw_saved_hooks() -> None:
    x, w = leaf(2.0), const(3.0)
    y = x * w
    raw = y.grad_fn._raw_saved_other
    raw.register_hooks(lambda t: t.detach() * 2, lambda t: t)
    with pytest.raises(RuntimeError):
        raw.register_hooks(lambda t: t, lambda t: t)
    assert grad(y, x)[0].item() == 6.0


@row("5.AccumulateGrad node")
def test_accumulate_node() -> None:
    x = leaf(1.0)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    assert node.variable is x and "AccumulateGrad" in node.name() and type(node).__name__ == "AccumulateGrad"
    assert node is (x * 3).grad_fn.next_functions[0][0]
    assert node.next_functions == ()


@row("5.AccumulateGrad node")
def test_an_accumulator_called_by_hand() -> None:
    x = leaf(1.0)
    y = x * 2
    accumulate = y.grad_fn.next_functions[0][0]
    accumulate(const(5.0))
    assert x.grad.tolist() == [5.0]
    x.requires_grad_(False)
    accumulate(const(5.0))
    assert x.grad.tolist() == [5.0]


@row("5.GradientEdge, get_gradient_edge")
def test_gradient_edge() -> None:
    x = leaf(2.0)
    y = x.exp()
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    assert isinstance(edge, graph.GradientEdge) and isinstance(edge, tuple)
    assert grad(y * 1, edge, retain_graph=True)[0].item() == 1.0
    assert grad(y, graph.get_gradient_edge(x))[0].item() == y.item()
    with tp.no_grad():
        assert "AccumulateGrad" in graph.get_gradient_edge(x).node.name()
    with pytest.raises(RuntimeError, match="(?i)require"):
        graph.get_gradient_edge(const(1.0))


@row("5.saved_tensors_hooks")
def test_saved_tensors_hooks() -> None:
    x = leaf(3.0)
    log = []

    def pack(t):
        log.append("pack")
        return t.detach() * 2

    def unpack(t):
        log.append("unpack")
        return t

    with graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    y.backward(retain_graph=True)
    assert x.grad.item() == 12.0 and log == ["pack", "pack", "unpack", "unpack"]
    y.backward()
    assert log.count("unpack") == 4
    inner = []
    with graph.saved_tensors_hooks(pack, unpack):
        log.clear()
        with graph.saved_tensors_hooks(lambda t: inner.append(1) or t.detach(), lambda t: t):
            x * x
        assert log == [] and inner == [1, 1]
    with pytest.raises(ZeroDivisionError), graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        x * x
    x.grad = None
    (x * x).backward()
    assert x.grad.item() == 6.0
    with graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: 3):
        y = x * x
    with pytest.raises((TypeError, RuntimeError)):
        y.backward()


@row("5.save_on_cpu")
def test_save_on_cpu() -> None:
    x = leaf(3.0)
    with graph.save_on_cpu():
        y = x * x
    with graph.save_on_cpu(pin_memory=False, device_type="cuda"):
        y = y + x * x
    y.backward()
    assert x.grad.item() == 12.0


@row("5.disable_saved_tensors_hooks")
def test_disable_hooks() -> None:
    hooks = lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t)  # noqa: E731
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), hooks():
            pass
        with graph.disable_saved_tensors_hooks("nor here"), pytest.raises(RuntimeError, match="nor here"), hooks():
            pass
        with pytest.raises(RuntimeError, match="not here"), hooks():
            pass
    with hooks():
        pass


@row("5.register_multi_grad_hook")
def test_multi_grad_hook() -> None:
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    got = []
    handle = graph.register_multi_grad_hook((a, b, c), got.append)
    (a * 2 + b * 3).backward()
    assert len(got) == 1 and [None if g is None else g.item() for g in got[0]] == [2.0, 3.0, None]
    (a * c).backward()
    assert len(got) == 2 and [None if g is None else g.item() for g in got[1]] == [3.0, None, 1.0]
    handle.remove()
    (a * b * c).backward()
    assert len(got) == 2
    first = []
    with graph.register_multi_grad_hook((a, b), first.append, mode="any"):
        (a * 2 + b * 3).backward()
    assert len(first) == 1 and first[0].item() in (2.0, 3.0)
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((a,), print, mode="some")


@row("5.allow_mutation_on_saved_tensors")
def test_allow_mutation() -> None:
    x = leaf(2.0, 3.0)
    with graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y * y
        y.mul_(10)
        z.sum().backward()
        with pytest.raises(RuntimeError), graph.allow_mutation_on_saved_tensors():
            pass
    assert x.grad.tolist() == [4.0, 6.0]


@row("5.increment_version")
def test_increment_version() -> None:
    a, b = const(1.0), const(2.0)
    graph.increment_version(a)
    graph.increment_version((a, b))
    assert (a._version, b._version) == (2, 1)
    x = leaf(1.0)
    y = x.exp()
    graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    with tp.inference_mode():
        t = const(1.0)
    graph.increment_version(t)


def test_a_multi_grad_hook_waits_for_what_the_pass_runs_alone() -> None:
    a, b = leaf(2.0), leaf(3.0)
    y, z = a * 2, b * 3
    seen: list = []
    graph.register_multi_grad_hook((y, z), lambda grads: seen.append([g is not None for g in grads]))
    w = (y * z).sum()
    for inputs in ([y], [z], [a]):
        tp.autograd.grad(w, inputs, retain_graph=True)
    w.backward(inputs=[b], retain_graph=True)
    w.backward()
    assert seen == [[True, False], [False, True], [True, False], [False, True], [True, True]]


@pytest.mark.ours  # there nothing draws a graph
def test_pictures_show_what_is_saved(tmp_path) -> None:
    w = tp.ones(1000, requires_grad=True)
    y = (w.exp() * w).sum()
    assert "_saved_input" in dir(y.grad_fn.next_functions[0][0])
    for name in ("a.dot", "a.svg", "a.txt"):
        graph.save(y, str(tmp_path / name))
        text = (tmp_path / name).read_text()
        for said in ("MulBackward0", "other: float32[1000]", "saves 8000 B", "saves 4000 B", "leaf float32[1000]"):
            assert said in text, (name, said)
        assert "torch" not in text
    y.backward()
    assert "freed" in graph.to_dot(y)
