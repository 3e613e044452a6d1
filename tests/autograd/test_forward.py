"""Section 6 of the autograd checklist: forward mode."""

from __future__ import annotations

import importlib
import os
import threading

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
fw = tp.autograd.forward_ad
row = pytest.mark.row
F64 = tp.float64


@row("6.dual_level")
@pytest.mark.ours
def test_each_thread_has_its_own_level() -> None:
    there, here = threading.Event(), threading.Event()
    found = []

    def other() -> None:
        with fw.dual_level():
            d = fw.make_dual(const(2.0), const(1.0))
            there.set()
            here.wait(30)
            found.append(fw.unpack_dual(d * d).tangent.item())
        fw.enter_dual_level()
        found.append(fw.make_dual(const(5.0), const(7.0)))  # outlives the thread, and the level that it leaves open

    thread = threading.Thread(target=other)
    thread.start()
    there.wait(30)
    with fw.dual_level():
        d = fw.make_dual(const(3.0), const(1.0))
        here.set()
        thread.join()
        assert fw.unpack_dual(d * d).tangent.item() == 6.0 and found[0] == 4.0
        assert fw.unpack_dual(found[1]).tangent is None and fw.unpack_dual(found[1] * d).tangent.item() == 5.0
    found.clear()
    assert fw.unpack_dual(d).tangent is None


def const(*values):
    return tp.tensor(values, dtype=F64)


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


@row("6.dual_level")
def test_dual_level() -> None:
    with fw.dual_level():
        x = fw.make_dual(const(2.0), const(3.0))
        with pytest.raises(RuntimeError), fw.dual_level():
            pass
        assert fw.unpack_dual(x * x).tangent.item() == 12.0
    with fw.dual_level():
        assert fw.unpack_dual(x).tangent is None
    level = fw.enter_dual_level()
    with pytest.raises(RuntimeError):
        fw.exit_dual_level(level=level + 1)
    fw.exit_dual_level(level=level)
    with pytest.raises(RuntimeError):
        fw.exit_dual_level()


@row("6.make_dual")
def test_make_dual() -> None:
    x, t = leaf(2.0, 3.0), const(1.0, 10.0)
    with pytest.raises(RuntimeError, match="level"):
        fw.make_dual(x, t)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        assert d.data_ptr() == x.data_ptr() and d is not x and fw.unpack_dual(x).tangent is None
        y = (d * d).sum()
        y.backward()
        assert x.grad.tolist() == [4.0, 6.0] and fw.unpack_dual(y).tangent.item() == 64.0
        for primal, tangent in ((tp.tensor([1, 2]), t), (x, tp.tensor([1, 2]))):
            with pytest.raises(ValueError, match="floating point or complex"):
                fw.make_dual(primal, tangent)
        with pytest.raises(RuntimeError, match="size"):
            fw.make_dual(x, const(1.0))
        m = fw.make_dual(tp.ones(2, 3, dtype=F64), tp.ones(3, 2, dtype=F64).t())
        assert fw.unpack_dual(m * 2).tangent.tolist() == [[2.0] * 3] * 2
        v = leaf(1.0, 1.0)
        out = fw.unpack_dual(fw.make_dual(const(2.0, 3.0), v) ** 2).tangent
        assert tp.autograd.grad(out.sum(), v)[0].tolist() == [4.0, 6.0]


@row("6.unpack_dual")
def test_unpack_dual() -> None:
    x, t = const(2.0), const(3.0)
    outside = fw.unpack_dual(x)
    assert outside.primal.tolist() == [2.0] and outside.tangent is None
    with fw.dual_level():
        pair = fw.unpack_dual(fw.make_dual(x, t))
        assert type(pair).__name__ == "UnpackedDualTensor" and pair.tangent.tolist() == [3.0]
        assert fw.unpack_dual(pair.primal).tangent is None
        primal, tangent = fw.unpack_dual(x)
        assert primal.tolist() == [2.0] and tangent is None
        with tp.no_grad():
            assert fw.unpack_dual(fw.make_dual(x, t) * 2).tangent.tolist() == [6.0]


@row("6.propagation rules")
@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x: x.exp(), lambda x, t: x.exp() * t),
        (lambda x: x.sum(), lambda x, t: t.sum()),
        (lambda x: x[1:], lambda x, t: t[1:]),
        (lambda x: x.flip(0) * x, lambda x, t: t.flip(0) * x + x.flip(0) * t),
        (lambda x: tp.cat([x, x * x]), lambda x, t: tp.cat([t, 2 * x * t])),
        (lambda x: x.clone().mul_(x), lambda x, t: 2 * x * t),
        (lambda x: tp.where(x > 1.5, x * x, -x), lambda x, t: tp.where(x > 1.5, 2 * x * t, -t)),
        (lambda x: x.cumsum(0), lambda x, t: t.cumsum(0)),
        (lambda x: x @ x, lambda x, t: 2 * (x @ t)),
        (lambda x: x.max(), lambda x, t: t[1]),
    ],
)
def test_propagation(f, want) -> None:
    x, t = const(1.0, 3.0), const(0.5, -2.0)
    with fw.dual_level():
        out = fw.unpack_dual(f(fw.make_dual(x, t)))
        assert out.tangent.tolist() == want(x, t).tolist()


@row("6.propagation rules")
def test_propagation_in_place_and_views() -> None:
    x, t = const(1.0, 3.0), const(0.5, -2.0)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        base = d.clone()
        view = base[1:]
        view.mul_(10)
        assert fw.unpack_dual(base).tangent.tolist() == [0.5, -20.0]
        base.add_(d)
        assert fw.unpack_dual(view).tangent.tolist() == [-22.0]
        plain = tp.zeros(2, dtype=F64)
        plain[:1] = d[1]
        assert fw.unpack_dual(plain).tangent.tolist() == [-2.0, 0.0]
        assert fw.unpack_dual(d > 1).tangent is None
        assert fw.unpack_dual(d.argmax()).tangent is None
        assert fw.unpack_dual(d * const(2.0, 2.0)).tangent.tolist() == [1.0, -4.0]


@row("6.propagation rules")
@pytest.mark.parametrize("name", ["floor_", "sign_", "round_", "zero_", "normal_", "uniform_", "exponential_"])
def test_an_in_place_op_without_a_derivative_ends_the_tangent(name: str) -> None:
    with fw.dual_level():
        x = fw.make_dual(const(0.5, 1.5), const(1.0, 2.0)) * 1
        part = x[1:]
        getattr(part, name)()
        assert fw.unpack_dual(part).tangent.tolist() == [0.0]
        assert fw.unpack_dual(x).tangent.tolist() == [1.0, 0.0]


@row("6.propagation rules")
@pytest.mark.parametrize("f", [lambda x: x + 1, lambda x: x.t().reshape(-1), lambda x: x.clone(), lambda x: x - 0])
def test_a_change_stays_out_of_the_tangent_of_the_input(f) -> None:
    with fw.dual_level():
        x = fw.make_dual(tp.ones(2, 2, dtype=F64), tp.ones(2, 2, dtype=F64)) * 1
        y, kept = f(x), x[:1]
        y[:1].zero_()
        assert fw.unpack_dual(x).tangent.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        y = f(x)
        kept.mul_(3)
        assert set(fw.unpack_dual(y).tangent.flatten().tolist()) == {1.0}
        assert fw.unpack_dual(x).tangent.tolist() == [[3.0, 3.0], [1.0, 1.0]]


@row("6.propagation rules")
def test_a_change_through_a_view_of_a_base_laid_out_otherwise() -> None:
    with fw.dual_level():
        base = tp.ones(2, 2, dtype=F64).t() * 1  # columns first
        y = fw.make_dual(base, tp.ones(2, 2, dtype=F64)) * 1
        y[0].zero_()
        y.t()[1].mul_(5)
        assert fw.unpack_dual(y).tangent.tolist() == [[0.0, 0.0], [1.0, 5.0]]


@row("6.propagation rules")
def test_out_takes_no_tangents() -> None:
    out = const(0.0, 0.0)
    with fw.dual_level():
        x = fw.make_dual(const(0.5, 1.5), const(1.0, 2.0))
        with pytest.raises((RuntimeError, NotImplementedError)):
            tp.exp(x, out=out)
    tp.exp(const(0.0, 0.0), out=out)
    assert out.tolist() == [1.0, 1.0]


@row("6.propagation rules")
@pytest.mark.parametrize("f", [lambda x: x**3, lambda x: x * x * x, lambda x: x.square() * x])
def test_forward_over_reverse(f) -> None:
    x, t = leaf(1.0, 2.0), const(1.0, 10.0)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        (g,) = tp.autograd.grad(f(d).sum(), d, create_graph=True)
        assert fw.unpack_dual(g).tangent.tolist() == [6.0, 120.0]


def test_in_place_views_show_the_tangent_in_their_sizes() -> None:
    with fw.dual_level():
        x = fw.make_dual(tp.ones(2, 3), tp.arange(6.0).reshape(2, 3)) * 1
        x.unsqueeze_(-1)
        x.transpose_(0, 1)
        primal, tangent = fw.unpack_dual(x)
    assert primal.shape == tangent.shape == (3, 2, 1)
    assert tangent[:, 1, 0].tolist() == [3.0, 4.0, 5.0]


CHANGES = {
    "mul_": (lambda y, w: y.mul_(w), lambda y, w: y * w),
    "div_": (lambda y, w: y.div_(w), lambda y, w: y / w),
    "sin_": (lambda y, w: y.sin_(), lambda y, w: y.sin()),
    "exp_": (lambda y, w: y.exp_(), lambda y, w: y.exp()),
    "pow_": (lambda y, w: y.pow_(3), lambda y, w: y**3),
    "flipped": (lambda y, w: y.mul_(y.flip(0)), lambda y, w: y * y.flip(0)),
    "lerp_": (lambda y, w: y.lerp_(w, 0.25), lambda y, w: y + 0.25 * (w - y)),
    "clamp_": (lambda y, w: y.clamp_(max=2.5), lambda y, w: y.clamp(max=2.5)),
    "a part": (lambda y, w: (y[1:].mul_(w[1:]), y)[1], lambda y, w: tp.cat([y[:1], y[1:] * w[1:]])),
    "a part, by its output": (lambda y, w: (y[1:].exp_(), y)[1], lambda y, w: tp.cat([y[:1], y[1:].exp()])),
    "item": (lambda y, w: (y.__setitem__(0, w[1] * w[0]), y)[1], lambda y, w: tp.stack([w[1] * w[0], y[1]])),
}


@pytest.mark.ours  # there the tangent has no memory, or is overwritten
@row("6.propagation rules")
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_recorded_of_a_tangent_keeps_what_an_in_place_op_overwrites(name: str) -> None:
    changed, plain = CHANGES[name]
    found = []
    for f in (changed, plain):
        x, w, t = leaf(2.0, 3.0), leaf(5.0, 7.0), leaf(1.0, 10.0)
        with fw.dual_level():
            y = f(fw.make_dual(x * 1, t) * 1, w)
            tangent = fw.unpack_dual(y).tangent
            grads = tp.autograd.grad((tangent * const(1.0, 3.0)).sum(), (x, w, t), allow_unused=True)
        found.append([tangent.tolist()] + [None if g is None else g.tolist() for g in grads])
    assert found[0] == [pytest.approx(v) if v else v for v in found[1]]


@pytest.mark.ours  # there the tangent is overwritten
@row("6.propagation rules")
def test_a_dual_times_itself_in_place() -> None:
    x, t = leaf(2.0, 3.0), leaf(1.0, 10.0)
    with fw.dual_level():
        y = fw.make_dual(x * 1, t) * 1
        y.mul_(y)
        tangent = fw.unpack_dual(y).tangent
        assert [g.tolist() for g in tp.autograd.grad(tangent.sum(), (x, t))] == [[2.0, 20.0], [4.0, 6.0]]


@row("6.propagation rules")
@pytest.mark.parametrize("name", CHANGES)
def test_forward_over_reverse_through_an_in_place_op(name: str) -> None:
    changed, plain = CHANGES[name]
    found = []
    for f in (changed, plain):
        x, w = leaf(2.0, 3.0), leaf(5.0, 7.0)
        with fw.dual_level():
            d, v = fw.make_dual(x, const(1.0, 10.0)), fw.make_dual(w, const(-2.0, 3.0))
            y = f(d * 1, v)
            grads = tp.autograd.grad((y * const(1.0, 3.0)).sum(), (x, w), create_graph=True, allow_unused=True)
            both = [fw.unpack_dual(g) if g is not None else (None, None) for g in grads]
            found.append([None if p is None else p.tolist() for pair in both for p in pair])
    zero = [0.0, 0.0]
    assert [v or zero for v in found[0]] == [pytest.approx(v or zero) for v in found[1]]


@row("6.propagation rules")
@pytest.mark.parametrize(
    "f",
    [
        lambda y, c: y * y, lambda y, c: y / y, lambda y, c: y / c, lambda y, c: y.tanh(),
        lambda y, c: tp.maximum(y, c), lambda y, c: tp.hypot(y, c) + y, lambda y, c: y.add(y, alpha=3),
        lambda y, c: tp.atan2(y, c[:1]),
        lambda y, c: y * c[:1] + y.view(1, 2), lambda y, c: y.pow(c) - y,
    ],
)  # fmt: skip
def test_a_tangent_is_the_same_with_and_without_a_record(f) -> None:
    c = const(1.5, 2.5)
    found = []
    for t in (const(1.0, 10.0), leaf(1.0, 10.0)):
        with fw.dual_level():
            y = f(fw.make_dual(const(2.0, 3.0), t), c)
            tangent = fw.unpack_dual(y).tangent
            assert tangent.requires_grad == t.requires_grad
            found.append(tangent.detach())
    assert tp.allclose(*found, rtol=1e-15, atol=0)


@row("6.propagation rules")
def test_complex_tangents_are_not_conjugated() -> None:
    x, t = tp.tensor([1 + 2j, 3 - 1j], dtype=tp.complex128), tp.tensor([1j, 2.0], dtype=tp.complex128)
    real = const(2.0, 3.0)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        assert fw.unpack_dual(d * d).tangent.tolist() == (2 * x * t).tolist()
        r = fw.make_dual(real, const(1.0, 1.0))
        assert fw.unpack_dual(r * x).tangent.tolist() == x.tolist()
    with tp.no_grad(), fw.dual_level():
        d = fw.make_dual(x, t)
        y = d
        for _ in range(3):
            y = y * d
        assert y.grad_fn is None
        want = 4 * x**3 * t
        assert tp.allclose(fw.unpack_dual(y).tangent, want)


@row("6.make_dual")
def test_a_tensor_has_one_tangent_of_a_level() -> None:
    x, t = const(1.0, 2.0), const(3.0, 4.0)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        changed = x.clone()
        changed.add_(d)
        for dual in (d, d * 2, d[0], d.view(2, 1), changed):
            with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
                fw.make_dual(dual, tp.ones(dual.shape, dtype=F64))
        with pytest.raises(RuntimeError, match="itself has a forward gradient at the same level"):
            fw.make_dual(x, d)
        again = fw.make_dual(fw.unpack_dual(d).primal, const(5.0, 6.0))
        assert fw.unpack_dual(again).tangent.tolist() == [5.0, 6.0]
        assert fw.unpack_dual(fw.make_dual(d.detach(), t)).tangent.tolist() == [3.0, 4.0]
    with fw.dual_level():
        assert fw.unpack_dual(fw.make_dual(d, t)).tangent.tolist() == [3.0, 4.0]


@row("6.dual_level")
def test_a_level_is_named_by_its_number() -> None:
    x, t = const(1.0), const(2.0)
    assert fw.unpack_dual(x, level=0).tangent is None
    for number in (0, -1):
        with pytest.raises(RuntimeError):
            fw.make_dual(x, t, level=number)
    with fw.dual_level() as level:
        assert level == 0
        d = fw.make_dual(x, t, level=level)
        assert fw.unpack_dual(d, level=level).tangent.item() == 2.0
        assert fw.unpack_dual(d, level=-1).tangent is None
        for call in (lambda: fw.make_dual(x, t, level=5), lambda: fw.unpack_dual(d, level=5)):
            with pytest.raises(RuntimeError, match="[Ll]evel"):
                call()
        with pytest.raises(RuntimeError, match="exit a forward AD level|no open forward AD level"):
            fw.exit_dual_level(level=7)
    assert fw.enter_dual_level() == 0
    fw.exit_dual_level(level=0)
    with pytest.raises(RuntimeError):
        fw.exit_dual_level()


@row("6.dual_level")
@pytest.mark.ours  # PyTorch counts its level down to -2 there
def test_a_refused_exit_leaves_levels_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="no level is currently active"):
        fw.exit_dual_level()
    assert fw.enter_dual_level() == 0
    fw.exit_dual_level()


@row("6._set_fwd_grad_enabled")
def test_forward_mode_can_be_switched_off() -> None:
    with fw.dual_level():
        d = fw.make_dual(const(1.0), const(1.0))
        with fw._set_fwd_grad_enabled(False):
            assert fw.unpack_dual(d).tangent is None and fw.unpack_dual(d * 2).tangent is None
            product = d * 3
            hidden = fw.make_dual(const(5.0), const(6.0))
            assert fw.unpack_dual(hidden).tangent is None
            with fw._set_fwd_grad_enabled(True):
                assert fw.unpack_dual(d * 2).tangent.item() == 2.0
            d.mul_(3)
        assert fw.unpack_dual(d).tangent.item() == 1.0 and fw.unpack_dual(product).tangent is None
        assert fw.unpack_dual(hidden).tangent.item() == 6.0
        fw._set_fwd_grad_enabled(False)
        assert fw.unpack_dual(d * 1).tangent is None
        fw._set_fwd_grad_enabled(True)
        with tp.no_grad():
            assert fw.unpack_dual(d * 2).tangent.item() == 2.0
        with tp.inference_mode():
            assert fw.unpack_dual(d).tangent is None and fw.unpack_dual(d * 2).tangent is None
    with fw._set_fwd_grad_enabled(False):
        assert tp.func.jvp(lambda a: a * a, (const(3.0),), (const(1.0),))[1].item() == 6.0
    with fw._set_fwd_grad_enabled(False), fw.dual_level():
        assert fw.unpack_dual(fw.make_dual(const(1.0), const(1.0)) * 2).tangent is None
    with tp.inference_mode():
        assert tp.func.jvp(lambda a: a * a, (const(3.0),), (const(1.0),))[1].item() == 6.0


@row("6._set_fwd_grad_enabled")
@pytest.mark.ours
def test_forward_mode_off_for_a_function() -> None:
    @fw._set_fwd_grad_enabled(False)
    def twice(a):
        assert not fw._is_fwd_grad_enabled()
        return a * 2

    with fw.dual_level():
        d = fw.make_dual(const(1.0), const(1.0))
        assert fw._is_fwd_grad_enabled() and fw.unpack_dual(twice(d)).tangent is None
        assert fw.unpack_dual(d * 2).tangent.item() == 2.0
    with pytest.raises(TypeError, match="mode must be a bool, not int"):
        fw._set_fwd_grad_enabled(1)


@row("6.make_dual")
def test_a_dual_has_a_gradient_and_hooks_of_its_own() -> None:
    x = tp.tensor([1.0, 2.0], dtype=F64, requires_grad=True)
    seen = []
    with fw.dual_level():
        d = fw.make_dual(x, const(1.0, 1.0))
        assert d.grad_fn is not None and not d.is_leaf and d._base is x
        d.retain_grad()
        d.register_hook(lambda g: seen.append(g.tolist()))
        (d * 3 + x * 5).sum().backward()
        assert d.grad.tolist() == [3.0, 3.0] and x.grad.tolist() == [8.0, 8.0] and seen == [[3.0, 3.0]]
        gx, gd = tp.autograd.grad((d * x).sum(), (x, d))
        assert gx.tolist() == [2.0, 4.0] and gd.tolist() == [1.0, 2.0]
        with tp.no_grad():
            assert fw.make_dual(x, const(1.0, 1.0)).grad_fn is None
