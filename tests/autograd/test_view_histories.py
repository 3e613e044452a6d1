"""Histories after a base or a view was written: which nodes there are, what they hold, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import tensorplay as tp
from tensorplay.autograd import grad, gradcheck, gradgradcheck

F64 = tp.float64


def leaf(*values: float) -> Any:
    return tp.tensor(list(values), dtype=F64, requires_grad=True)


def test_a_written_view_adds_one_node_to_its_base() -> None:
    w = leaf(2.0)
    base = leaf(1.0, 2.0) * 1
    before = base.grad_fn
    base[:1].mul_(w)
    nodes = [node for node, _ in base.grad_fn.next_functions]
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    assert nodes[0] is before and nodes[1].variable is w


@pytest.mark.parametrize("recorded", [False, True])
def test_a_view_written_by_a_composed_op(recorded: bool) -> None:
    def written(x: Any, w: Any) -> Any:
        base = x * 1 if recorded else tp.ones(4, dtype=F64)
        base[1:3].xlogy_(w)
        base[:2].lerp_(w, 0.25)
        base[2:].fmod_(w)
        base[1:3].clamp_(max=w)
        (base[2:] + 2).mvlgamma_(2)
        base[:3].add_(2)
        base[1:3].mvlgamma_(2)
        return base * x

    x, w = leaf(1.5, 2.5, 0.5, 3.5), leaf(1.7, 2.2)
    assert gradcheck(written, (x, w)) and gradgradcheck(written, (x, w))


def test_one_element_of_any_stride_is_written() -> None:
    x = tp.zeros(4, dtype=F64)
    x.as_strided((1, 2), (0, 2)).add_(1)
    assert x.tolist() == [1.0, 0.0, 1.0, 0.0]
    with pytest.raises(RuntimeError, match="more than one element"):
        x.as_strided((2, 2), (0, 2)).add_(1)


def test_a_long_chain_of_writes_ends_without_recursion() -> None:
    w = leaf(1.0)
    base = w * tp.ones(2, dtype=F64)
    for _ in range(100_000):
        base[:1].mul_(w)
    (g,) = grad(base.sum(), w)
    assert g.item() == 100_002.0
    del base


def test_a_base_that_retains_its_gradient_keeps_to_its_value_of_now() -> None:
    x = leaf(1.0, 2.0)
    base = x * 1
    base.retain_grad()
    base[:1].mul_(5)
    (base * 3).sum().backward()
    assert base.grad.tolist() == [3.0, 3.0] and x.grad.tolist() == [15.0, 3.0]


def test_a_view_of_a_view_is_of_its_kind() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    part, _ = (x * 1).split(2)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        part[:1].mul_(2)
    for part in (x * 1)[:].chunk(2):
        with pytest.raises(RuntimeError, match="returns multiple views"):
            part.mul_(2)


@pytest.mark.parametrize("change", ["t_", "unsqueeze_"])
def test_a_view_shown_in_other_sizes(change: str) -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    view = (x * 2).view(3, 2)[1:]
    if change == "t_":
        view.t_()
    else:
        view.unsqueeze_(0)
    weights = tp.arange(1.0, 5.0, dtype=F64).view(*view.shape)
    (g,) = grad((view * weights).sum(), x)
    want = [2.0, 6.0, 4.0, 8.0] if change == "t_" else [2.0, 4.0, 6.0, 8.0]
    assert g.tolist() == [0.0, 0.0, *want]


def real_in_complex(x: Any, w: Any) -> Any:
    z = tp.view_as_complex(x.view(-1, 2)) * 1
    tp.view_as_real(z)[1:, 1].mul_(w)
    return tp.view_as_real(z * z)


def complex_in_real(x: Any, w: Any) -> Any:
    base = x * 1
    tp.view_as_complex(base.view(-1, 2))[1:].mul_(w)
    return base * base


@pytest.mark.parametrize("f", [real_in_complex, complex_in_real])
def test_a_view_between_real_and_complex_is_written(f: Any) -> None:
    x, w = leaf(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), leaf(1.5, 2.5)
    assert gradcheck(f, (x, w)) and gradgradcheck(f, (x, w))


@pytest.mark.parametrize("start", [0, 1, 4, 5])
def test_a_view_that_reaches_outside_its_base_has_no_gradient(start: int) -> None:
    base = tp.arange(8.0, dtype=F64)[2:6].detach()
    w = leaf(2.0)
    view = base.as_strided((2,), (1,), start)
    if 2 <= start <= 4:
        view.mul_(w)
        assert base.requires_grad
    else:
        with pytest.raises(RuntimeError, match="reaches outside its base"):
            view.mul_(w)


@pytest.mark.parametrize("sizes", [(3, 2), (1, 3), (2, 1, 3)])
def test_elements_shown_many_times_get_the_sum(sizes: tuple[int, ...]) -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = (x * 1).view(3, 1) if sizes == (3, 2) else x * 1
    view = base.expand(*sizes)
    base.mul_(2)
    weights = tp.arange(1.0, 1.0 + view.numel(), dtype=F64).view(*sizes)
    (g,) = grad((view * weights).sum(), x)
    want = 2 * (weights.sum(1) if sizes == (3, 2) else weights.view(-1, 3).sum(0))
    assert g.tolist() == want.tolist()


def test_windows_that_overlap_get_the_sum() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0, 5.0)
    base = x * 1
    view = base.as_strided((2, 3, 3), (0, 1, 1))
    base.mul_(2)
    (g,) = grad(view.sum(), x)
    assert g.tolist() == [4.0, 8.0, 12.0, 8.0, 4.0]


@pytest.mark.parametrize("columns", [False, True])
def test_the_gradient_of_a_base_is_not_held_twice(columns: bool) -> None:
    n = 1024
    x, factor = tp.ones(n, n, requires_grad=True), tp.full((n, n), 2.0)
    base = x * 1
    base[:].mul_(factor)
    y = ((base.t() if columns else base) * factor).sum()
    tp.memory.trim()
    tp.memory.reset_peak()
    before = tp.memory.stats()["in_use"]
    y.backward()
    assert tp.memory.stats()["peak"] - before < 3.5 * 4 * n * n
    assert (x.grad == 4).all()


@pytest.mark.parametrize(
    "write",
    [
        lambda a, out: tp.add(a, a, out=out),
        lambda a, out: tp.cumsum(a, 0, out=out),
        lambda a, out: tp.sum(tp.stack([a, a]), 0, out=out),
        lambda a, out: tp.matmul(tp.eye(2, dtype=F64), a, out=out),
        lambda a, out: tp.cat([a[:1], a[1:]], out=out),
    ],
)
def test_what_out_writes_is_a_change(write: Any) -> None:
    x, out = leaf(1.0, 2.0), tp.ones(2, dtype=F64)
    y = x * out
    write(tp.ones(2, dtype=F64), out)
    assert out._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
