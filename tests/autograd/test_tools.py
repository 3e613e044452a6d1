"""Section 7 of the autograd checklist: functional, gradcheck, anomaly mode, checkpoint."""

from __future__ import annotations

import importlib
import os
import warnings

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
functional = importlib.import_module(tp.__name__ + ".autograd.functional")
checkpointing = importlib.import_module(tp.__name__ + ".utils.checkpoint")
row = pytest.mark.row
Function = tp.autograd.Function
gradcheck, gradgradcheck = tp.autograd.gradcheck, tp.autograd.gradgradcheck
F64 = tp.float64


def const(*values):
    return tp.tensor(values, dtype=F64)


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


def wrong(factor):
    """x * x with a derivative that is off by a factor."""

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * factor * x * g

    return Wrong.apply


@row("7.jacobian")
def test_jacobian() -> None:
    jacobian = functional.jacobian
    x, y = const(1.0, 2.0), const(3.0)
    assert jacobian(lambda x: x * x, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    rows = jacobian(lambda x, y: (x * y, x.sum()), (x, y))
    assert [[t.tolist() for t in r] for r in rows] == [[[[3.0, 0.0], [0.0, 3.0]], [[1.0], [2.0]]], [[1.0, 1.0], [0.0]]]
    for options in ({"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        assert jacobian(lambda x: x * x, x, **options).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    with pytest.raises((RuntimeError, NotImplementedError), match="(?i)vectorize"):
        jacobian(lambda x: x * x, x, strategy="forward-mode")
    with pytest.raises(RuntimeError, match="(?i)independent|depend"):
        jacobian(lambda x, y: x * 2, (x, y), strict=True)
    (g,) = tp.autograd.grad(jacobian(lambda x: x**3, w := leaf(2.0), create_graph=True).sum(), w)
    assert g.tolist() == [12.0]
    assert not jacobian(lambda x: x**3, leaf(2.0)).requires_grad


@row("7.hessian")
def test_hessian() -> None:
    hessian = functional.hessian
    x, y = const(1.0, 2.0), const(3.0)
    assert hessian(lambda x: (x**3).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert hessian(lambda x: (3 * x).sum(), x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    blocks = hessian(lambda x, y: (x * y).sum() + (y * y).sum(), (x, y))
    assert blocks[0][1].tolist() == [[1.0], [1.0]] and blocks[1][1].tolist() == [[2.0]]
    options = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
    assert hessian(lambda x: (x**3).sum(), x, **options).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    with pytest.raises(RuntimeError):
        hessian(lambda x: x * 2, x)


@row("7.vjp, jvp, vhp, hvp")
def test_products() -> None:
    x, v = const(1.0, 2.0), const(1.0, 10.0)
    out, product = functional.vjp(lambda x: x**3, x, v)
    assert out.tolist() == [1.0, 8.0] and product.tolist() == [3.0, 120.0]
    out, product = functional.jvp(lambda x: x**3, x, v)
    assert out.tolist() == [1.0, 8.0] and product.tolist() == [3.0, 120.0]
    for f in (functional.vhp, functional.hvp):
        out, product = f(lambda x: (x**3).sum(), x, v)
        assert out.item() == 9.0 and product.tolist() == [6.0, 120.0]
    assert functional.vjp(lambda x: (x * x).sum(), x)[1].tolist() == [2.0, 4.0]
    assert functional.jvp(lambda x: x.expand(2) * 2, const(1.0))[1].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError):
        functional.vjp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError):
        functional.jvp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="size"):
        functional.vjp(lambda x: x * 2, x, const(1.0, 1.0, 1.0))
    with pytest.raises(RuntimeError, match="(?i)depend|does not require"):
        functional.vjp(lambda x: const(1.0), x, const(1.0), strict=True)


@row("7.gradcheck")
def test_gradcheck() -> None:
    x = leaf(1.0, -2.0)
    assert gradcheck(lambda x: x * x, (x,))
    assert gradcheck(lambda x, n: (x * n, x.sin()), (x, 3))
    assert gradcheck(lambda x: x * x, x, check_forward_ad=True)
    z = tp.tensor([1.0 + 2.0j], dtype=tp.complex128, requires_grad=True)
    assert gradcheck(lambda z: z * z, (z,))
    assert gradcheck(lambda z: z.abs(), (z,))
    assert issubclass(tp.autograd.gradcheck.__globals__["GradcheckError"], RuntimeError)
    with pytest.raises(RuntimeError, match="(?i)jacobian mismatch|numerical"):
        gradcheck(wrong(1.5), (x,))
    assert gradcheck(wrong(1.5), (x,), raise_exception=False) is False
    with pytest.raises(ValueError, match="require"):
        gradcheck(lambda x: x * x, (const(1.0),))
    with pytest.warns(UserWarning, match="(?i)double"):
        gradcheck(lambda x: x * 2, (tp.ones(2, requires_grad=True),), eps=1e-2, atol=1e-2)
    overlapping = tp.ones(1, dtype=F64).expand(2).requires_grad_()
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x * 2, (overlapping,))


@row("7.gradcheck")
def test_gradcheck_promises() -> None:
    x = leaf(1.0, 2.0)
    runs = []

    class Different(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            runs.append(1)
            return g * (1 + 1e-7 * len(runs))

    with pytest.raises(RuntimeError, match="(?i)reentran|nondet|twice|two runs|same"):
        gradcheck(Different.apply, (x,))

    class Crashes(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            return a + 2 * b

    with pytest.raises((RuntimeError, TypeError)):
        gradcheck(Crashes.apply, (x,))
    assert gradcheck(lambda x: ((x * 0).long().double() + x, (x > 0).long()), (x,))


@row("7.fast_mode")
def test_fast_mode() -> None:
    x = leaf(1.0, -2.0, 3.0)
    assert gradcheck(lambda x: x.exp() * x.sum(), (x,), fast_mode=True)
    with pytest.raises(RuntimeError):
        gradcheck(wrong(1.5), (x,), fast_mode=True)
    z = tp.tensor([1.0 + 2.0j], dtype=tp.complex128, requires_grad=True)
    assert gradcheck(lambda z: z * z, (z,), fast_mode=True)


@row("7.gradgradcheck")
def test_gradgradcheck() -> None:
    x = leaf(1.0, -2.0)
    assert gradgradcheck(lambda x: x**3, (x,))
    assert gradgradcheck(lambda x: x**3, (x,), grad_outputs=(leaf(1.0, 2.0),))
    assert gradgradcheck(lambda x: x**3, (x,), gen_non_contig_grad_outputs=True)

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return wrong(1.5)(x) * 3 * g

    assert gradcheck(Wrong.apply, (x,))
    with pytest.raises(RuntimeError):
        gradgradcheck(Wrong.apply, (x,))


@row("7.detect_anomaly, set_detect_anomaly")
def test_anomaly() -> None:
    x = leaf(-1.0)
    text = "Function 'SqrtBackward0' returned nan values in its 0th output"
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        block = tp.autograd.detect_anomaly()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with block:
            y = x.sqrt()  # the line that is named
            with pytest.raises(RuntimeError, match=text):
                y.backward()
    assert any("x.sqrt()" in str(w.message) and "SqrtBackward0" in str(w.message) for w in told)
    x.sqrt().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tp.autograd.set_detect_anomaly(True):
            with pytest.raises(RuntimeError, match=text):
                x.sqrt().backward()
            with tp.autograd.set_detect_anomaly(False):
                x.sqrt().backward()
            with pytest.raises(RuntimeError, match=text):
                x.sqrt().backward()
        x.sqrt().backward()
        with tp.autograd.detect_anomaly(check_nan=False):
            x.sqrt().backward()


checkpoint = checkpointing.checkpoint


@row("7.checkpoint")
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    runs = []

    def f(x, w):
        runs.append(1)
        return (x * w).exp().sum()

    y = checkpoint(f, x, w, use_reentrant=reentrant)
    assert len(runs) == 1
    y.backward()
    assert len(runs) == 2
    a, b = tp.autograd.grad((x * w).exp().sum(), (x, w))
    assert x.grad.tolist() == a.tolist() and w.grad.tolist() == b.tolist()
    with tp.no_grad():
        assert not checkpoint(f, x, w, use_reentrant=reentrant).requires_grad


@row("7.checkpoint")
def test_checkpoint_random_state_and_errors() -> None:
    x = leaf(*[1.0] * 64)
    masks = []

    def f(x):
        mask = (tp.rand(64, dtype=F64) > 0.5).to(F64)
        masks.append(mask.tolist())
        return (x * mask).exp().sum()

    checkpoint(f, x, use_reentrant=False).backward()
    assert masks[0] == masks[1]
    sizes = iter((2, 3))

    def changes(x):
        return (x[: next(sizes)].exp() * 2).exp().sum()

    with pytest.raises(checkpointing.CheckpointError):
        checkpoint(changes, x, use_reentrant=False).backward()
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(lambda x: x.exp(), x)
    with pytest.raises(ValueError):
        checkpoint(lambda x, k=1: x * k, x, use_reentrant=True, k=2)
    assert checkpoint(lambda x, k=1: x * k, x, use_reentrant=False, k=2).tolist() == [2.0] * 64

    def nested(x):
        return checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).exp()

    (g,) = tp.autograd.grad(checkpoint(nested, x, use_reentrant=False).sum(), x)
    (h,) = tp.autograd.grad(x.exp().sin().exp().sum(), x)
    assert g.tolist() == h.tolist()
    with pytest.raises(RuntimeError):
        tp.autograd.grad(checkpoint(lambda x: x.exp().sum(), x, use_reentrant=True), x)


@pytest.mark.parametrize("f", [tp.sin, tp.exp, lambda a: a**3])
def test_forward_over_reverse_is_checked(f) -> None:
    assert tp.autograd.gradgradcheck(f, leaf(1.0, 2.0), check_fwd_over_rev=True)


@pytest.mark.ours  # there other devices have a mode too
def test_autocast_answers_by_device() -> None:
    assert tp.is_autocast_enabled("cpu") is tp.is_autocast_enabled() is False
    assert tp.get_autocast_dtype("cpu") == tp.bfloat16
    with pytest.raises(RuntimeError, match="only device_type 'cpu'"):
        tp.is_autocast_enabled("cuda")
