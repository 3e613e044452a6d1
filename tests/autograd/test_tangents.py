"""Tangents of bases, views and operands of other sizes or dtypes: in which memory they are, and who sees it change."""

from __future__ import annotations

from typing import Any

import pytest
import tensorplay as tp
import tensorplay.autograd.forward_ad as fw
from tensorplay import func

F64 = tp.float64


def const(*values: float) -> Any:
    return tp.tensor(list(values), dtype=F64)


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("f", [tp.add, tp.sub, tp.mul, tp.maximum, tp.hypot])
def test_the_tangents_of_operands_stay_as_they_are(f: Any, recording: bool) -> None:
    s, t = const(1.0, 2.0), const(10.0, 20.0)
    with tp.set_grad_enabled(recording), fw.dual_level():
        x, y = fw.make_dual(const(3.0, 4.0), s), fw.make_dual(const(5.0, 1.0), t)
        f(x, y)
        f(x, x)
        assert fw.unpack_dual(x).tangent.tolist() == s.tolist() == [1.0, 2.0]
        assert fw.unpack_dual(y).tangent.tolist() == t.tolist() == [10.0, 20.0]


@pytest.mark.parametrize("recording", [False, True])
def test_the_tangent_of_a_smaller_operand_is_shown_in_the_size_of_the_result(recording: bool) -> None:
    y = tp.ones(2, 3, dtype=F64)
    with tp.set_grad_enabled(recording), fw.dual_level():
        x = fw.make_dual(const(1.0, 2.0, 3.0), const(1.0, 10.0, 100.0))
        for z in (x + y, y + x, y - x, x * y, tp.where(y > 0, x, y), tp.lerp(y, x, 1.0), tp.addcmul(x, y, y)):
            assert fw.unpack_dual(z).tangent.abs().tolist() == [[1.0, 10.0, 100.0]] * 2


@pytest.mark.parametrize("change", [lambda y, w: y.mul_(w), lambda y, w: y.xlogy_(w), lambda y, w: y.clamp_(max=w)])
def test_a_tangent_has_the_dtype_of_what_is_written(change: Any) -> None:
    with fw.dual_level():
        y = fw.make_dual(tp.ones(2), tp.ones(2)) * 2
        change(y, fw.make_dual(const(0.5, 1.5), const(1.0, 1.0)))
        primal, tangent = fw.unpack_dual(y)
    assert primal.dtype == tangent.dtype == tp.float32


def test_a_batched_tangent_is_written_into_a_base_that_had_one_for_all() -> None:
    def f(x: Any) -> Any:
        base = tp.zeros(2, 3, dtype=F64)
        base[1, 1:].copy_(x * x)
        base[0, :2].add_(x)
        return base

    x = const(2.0, 3.0)
    got = func.jacfwd(f)(x)
    want = tp.zeros(2, 3, 2, dtype=F64)
    want[1, 1, 0], want[1, 2, 1], want[0, 0, 0], want[0, 1, 1] = 4.0, 6.0, 1.0, 1.0
    assert got.tolist() == want.tolist() == func.jacrev(f)(x).tolist()


def test_a_batched_tangent_is_written_into_a_view_made_before() -> None:
    def f(x: Any) -> Any:
        base = tp.zeros(3, 2, dtype=F64).t()
        column = base[:, 1]
        column.copy_(x)
        row = base[1]
        row.mul_(2)
        column.mul_(3)
        return base

    got = func.jacfwd(f)(const(1.0, 1.0))
    assert got[:, 1].tolist() == [[3.0, 0.0], [0.0, 6.0]]
    assert got[:, 0].abs().sum() == 0 and got[:, 2].abs().sum() == 0


@pytest.mark.parametrize("by_columns", [False, True])
def test_a_view_of_a_base_laid_out_otherwise_than_its_batched_tangent(by_columns: bool) -> None:
    def f(x: Any) -> Any:
        base = tp.ones(2, 3, dtype=F64).t() * 1 if by_columns else tp.ones(3, 2, dtype=F64)
        early = base[1]
        base.copy_(x * 2)
        base[:, 1].mul_(5)
        return early * 1

    jac = func.jacfwd(f)(tp.ones(3, 2, dtype=F64))
    want = tp.zeros(2, 3, 2, dtype=F64)
    want[0, 1, 0], want[1, 1, 1] = 2.0, 10.0
    assert jac.tolist() == want.tolist()


def test_a_batched_tangent_leaves_the_rest_of_the_base_its_own() -> None:
    def f(t: Any) -> Any:
        base = fw.make_dual(const(1.0, 2.0, 3.0), const(10.0, 20.0, 30.0)) * 1
        part = base[1:]
        part.copy_(fw.make_dual(const(5.0, 6.0), t))
        base.mul_(2)
        return fw.unpack_dual(base).tangent, fw.unpack_dual(part).tangent

    with fw.dual_level():
        whole, part = func.vmap(f)(tp.tensor([[7.0, 8.0], [9.0, 1.0]], dtype=F64))
    assert whole.tolist() == [[20.0, 14.0, 16.0], [20.0, 18.0, 2.0]]
    assert part.tolist() == [[14.0, 16.0], [18.0, 2.0]]


def test_a_tangent_that_is_a_leaf_is_not_written_into() -> None:
    t = const(1.0, 10.0).requires_grad_()
    with fw.dual_level():
        x = fw.make_dual(const(3.0, 4.0), t)
        kept = x[:1]
        x.mul_(2)
        fw.unpack_dual(x).tangent.sum().backward()
    assert kept.item() == 6.0 and t.tolist() == [1.0, 10.0] and t.grad.tolist() == [2.0, 2.0]


class Doubled(tp.autograd.Function):
    """In place, with a tangent of its own."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.mul_(2)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t.mul_(2)


def test_a_function_that_writes_a_view_writes_the_tangents_of_all_levels() -> None:
    def f(a: Any, b: Any) -> Any:
        base = a * b
        Doubled.apply(base[:1])
        return base * base

    def inner(a: Any) -> Any:
        return func.jvp(lambda b: f(a, b * a), (const(2.0, 3.0),), (const(1.0, 1.0),))[1]

    a = const(0.5, 0.7)
    got = func.jvp(inner, (a,), (const(1.0, 1.0),))[1]
    # (k a^2 b)^2 with k = 2, 1: its derivative by b and then by a is 8 k^2 a^3 b.
    assert got.tolist() == pytest.approx([4 * 8 * 0.125 * 2, 8 * 0.343 * 3])


def test_a_view_made_before_its_base_got_a_tangent_shows_part_of_it() -> None:
    with fw.dual_level():
        base = tp.zeros(2, 3, dtype=F64)
        early, row = base[:, 1], base[1]
        base.add_(fw.make_dual(tp.ones(2, 3, dtype=F64), tp.arange(6.0, dtype=F64).view(2, 3)))
        assert fw.unpack_dual(early).tangent.tolist() == [1.0, 4.0]
        early.mul_(10)
        assert fw.unpack_dual(row).tangent.tolist() == [3.0, 40.0, 5.0]
        base.mul_(2)
        assert fw.unpack_dual(early).tangent.tolist() == [20.0, 80.0]
        row.zero_()
        assert fw.unpack_dual(base).tangent.tolist() == [[0.0, 20.0, 4.0], [0.0, 0.0, 0.0]]


def test_levels_are_taken_from_the_outermost_inwards() -> None:
    def inner(a: Any) -> Any:
        return func.jvp(lambda b: b * b * a.sin(), (const(2.0),), (const(1.0),))[1]

    _, second = func.jvp(inner, (const(0.5),), (const(1.0),))
    assert second.item() == pytest.approx(4 * tp.cos(const(0.5)).item())

    def both(a: Any) -> Any:
        return func.jvp(lambda b: (b * a).exp() + (a * b).exp(), (a,), (const(1.0),))[1]

    _, second = func.jvp(both, (const(0.5),), (const(1.0),))
    e = tp.exp(const(0.25)).item()
    assert second.item() == pytest.approx(2 * (e + 2 * 0.25 * e))


def test_two_operands_of_one_level_are_taken_once() -> None:
    calls = []

    class Counted(tp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def jvp(ctx: Any, s: Any, t: Any) -> Any:
            calls.append(1)
            return s + t

    with fw.dual_level():
        x, y = (fw.make_dual(const(3.0), const(k)) for k in (1.0, 2.0))
        out = Counted.apply(x, y)
        assert fw.unpack_dual(out).tangent.item() == 3.0 and len(calls) == 1
        z = x * 1
        z.mul_(y)
        assert fw.unpack_dual(z).tangent.item() == 9.0


def test_an_inference_tensor_with_a_tangent_is_saved_by_nobody() -> None:
    with tp.inference_mode():
        x = const(2.0)
    w = const(3.0).requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(x, const(1.0))
        assert dual.is_inference() and fw.unpack_dual(dual).primal.is_inference()
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            _ = x * w
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            _ = dual * w
        other = fw.make_dual(const(5.0), const(1.0).requires_grad_())
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            _ = dual * other


def test_a_part_taken_while_forward_mode_is_off_has_no_tangent() -> None:
    z = tp.tensor([1 + 2j], dtype=tp.complex128)
    with fw.dual_level():
        dual = fw.make_dual(z, z * 3)
        with fw._set_fwd_grad_enabled(False):
            parts = [dual.real, dual.imag, dual.view(1, 1), dual.conj()]
        assert [fw.unpack_dual(p).tangent for p in parts] == [None] * 4
        assert fw.unpack_dual(dual.real).tangent.item() == 3.0 and fw.unpack_dual(dual.imag).tangent.item() == 6.0
