"""In-place operations and views: what the history of a base and its views is afterwards, and what is refused."""

from __future__ import annotations

import importlib
import os

import pytest

tp = importlib.import_module(os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay"))
row = pytest.mark.row
F64 = tp.float64
W = tp.tensor([1.0, 10.0, 100.0, 1000.0], dtype=F64)  # tells the places of a gradient apart


def leaf(*values):
    return tp.tensor(values, dtype=F64, requires_grad=True)


def const(*values):
    return tp.tensor(values, dtype=F64)


def write_view(y, x):
    y[:2].mul_(5)


def write_views_that_overlap(y, x):
    a, b = y[:3], y[1:]
    a.mul_(2)
    b.mul_(3)


def write_transposed(y, x):
    y.view(2, 2).t().mul_(const(1.0, 2.0))


def write_diagonal(y, x):
    y.view(2, 2).diagonal().mul_(5)


def write_view_of_view(y, x):
    y.narrow(0, 1, 2).select(0, 0).fill_(9)


def write_item(y, x):
    y.view(2, 2)[1][0] = x[0] * 10


def write_mask(y, x):
    y[y > 2.5] = 0.0


def write_mask_with_tensor(y, x):
    y[y > 3.5] = x[:1] * 7


def write_indices(y, x):
    y[tp.tensor([2, 0])] = x[:2] * 3


def write_shifted_self(y, x):
    y[1:] = y[:-1].clone()


def write_zero(y, x):
    y.zero_()


def write_fill(y, x):
    y[1:].fill_(x[0])


def write_copy(y, x):
    y[2:].copy_(x[:1] * 2)


def write_masked_fill(y, x):
    y.masked_fill_(y > 2.5, 7.0)


def write_clamp(y, x):
    y.clamp_(1.5, 3.5)


def write_operators(y, x):
    y += x
    y -= 1
    y *= 2
    y /= 4
    y **= 2


def write_after_division(y, x):
    z = y / 4
    z += 1
    y.copy_(z**2)


def write_index_add(y, x):
    y.index_add_(0, tp.tensor([0, 0]), x[:2])


CASES = [
    (write_view, [1.0, 2.0, 3.0, 4.0], [5.0, 50.0, 100.0, 1000.0]),
    (write_views_that_overlap, [1.0, 2.0, 3.0, 4.0], [2.0, 60.0, 600.0, 3000.0]),
    (write_transposed, [1.0, 2.0, 3.0, 4.0], [1.0, 10.0, 200.0, 2000.0]),
    (write_diagonal, [1.0, 2.0, 3.0, 4.0], [5.0, 10.0, 100.0, 5000.0]),
    (write_view_of_view, [1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 100.0, 1000.0]),
    (write_item, [1.0, 2.0, 3.0, 4.0], [1001.0, 10.0, 0.0, 1000.0]),
    (write_mask, [1.0, 2.0, 3.0, 4.0], [1.0, 10.0, 0.0, 0.0]),
    (write_mask_with_tensor, [1.0, 2.0, 3.0, 4.0], [7001.0, 10.0, 100.0, 0.0]),
    (write_indices, [1.0, 2.0, 3.0, 4.0], [300.0, 13.0, 0.0, 1000.0]),
    (write_shifted_self, [1.0, 2.0, 3.0, 4.0], [11.0, 100.0, 1000.0, 0.0]),
    (write_zero, [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]),
    (write_fill, [1.0, 2.0, 3.0, 4.0], [1111.0, 0.0, 0.0, 0.0]),
    (write_copy, [1.0, 2.0, 3.0, 4.0], [2201.0, 10.0, 0.0, 0.0]),
    (write_masked_fill, [1.0, 2.0, 3.0, 4.0], [1.0, 10.0, 0.0, 0.0]),
    (write_clamp, [1.0, 2.0, 3.0, 4.0], [0.0, 10.0, 100.0, 0.0]),
    (write_operators, [1.0, 2.0, 3.0, 4.0], [1.0, 30.0, 500.0, 7000.0]),
    (write_after_division, [1.0, 2.0, 3.0, 4.0], [0.625, 7.5, 87.5, 1000.0]),
    (write_index_add, [1.0, 2.0, 3.0, 4.0], [2.0, 11.0, 100.0, 1000.0]),
]


@row("1._version")
@pytest.mark.parametrize(("write", "at", "want"), CASES, ids=[c[0].__name__ for c in CASES])
def test_gradient_after_a_write(write, at, want) -> None:
    x = leaf(*at)
    y = x * 1
    write(y, x)
    (g,) = tp.autograd.grad((y * W).sum(), x)
    assert g.tolist() == want


@row("1.grad_fn")
def test_a_view_follows_its_base() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    view = y.view(2, 2)
    y.mul_(3)
    assert tp.autograd.grad(view.sum(), x)[0].tolist() == [3.0] * 4
    plain, w = const(1.0, 2.0), leaf(5.0)
    plain[:1].mul_(w)
    assert plain.requires_grad and not plain.is_leaf
    assert tp.autograd.grad(plain.sum(), w)[0].tolist() == [1.0]


def unbind(x):
    tp.unbind(x * 1)[0].mul_(2)


def split(x):
    (x * 1).split(1)[0].mul_(2)


def base_of_chunks(x):
    y = x * 1
    a, _ = y.chunk(2)
    y.mul_(3)
    a.sum().backward()


def view_made_under_no_grad(x):
    y = x * 1
    with tp.no_grad():
        view = y[:1]
    view.mul_(2)


def expanded(x):
    (x * 1)[:1].expand(3).mul_(2)


def written_leaf(x):
    x.add_(1)


def view_of_a_leaf(x):
    x[:1].add_(1)


def item_of_a_leaf(x):
    x[0] = 3.0


def out_that_requires_grad(x):
    tp.add(const(1.0, 2.0), 1, out=x)


def saved_output(x):
    y = x.sqrt()
    y.add_(1)
    y.sum().backward()


def saved_through_a_view(x):
    y = x * 1
    z = y * y
    y[:1].add_(1)
    z.sum().backward()


REFUSED = [
    (unbind, "multiple views"),
    (split, "multiple views"),
    (base_of_chunks, "its base or another view of its base has been modified"),
    (view_made_under_no_grad, "no_grad mode"),
    (expanded, "more than one element"),
    (written_leaf, "a leaf Variable that requires grad"),
    (view_of_a_leaf, "a view of a leaf Variable"),
    (item_of_a_leaf, "leaf Variable"),
    (out_that_requires_grad, "out="),
    (saved_output, "modified by an inplace operation"),
    (saved_through_a_view, "modified by an inplace operation"),
]


@row("1._version")
@pytest.mark.parametrize(("write", "text"), REFUSED, ids=[c[0].__name__ for c in REFUSED])
def test_refused(write, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        write(leaf(1.0, 2.0))


@row("1._version")
def test_what_a_gradient_does_not_read_may_be_written() -> None:
    x = leaf(4.0, 9.0)
    y = x * 3
    y.add_(1)
    z = x / 2
    z.mul_(5)
    s = x**2
    s.mul_(s.clone())
    (g,) = tp.autograd.grad((y + z + s).sum(), x, create_graph=True)
    assert g.tolist() == [3 + 2.5 + 4 * 64.0, 3 + 2.5 + 4 * 729.0]
    (h,) = tp.autograd.grad(g.sum(), x)
    assert h.tolist() == [12 * 16.0, 12 * 81.0]


@row("1._version")
@pytest.mark.parametrize("name", ["tanh_", "exp_", "sigmoid_", "sqrt_"])
def test_second_order_through_a_view_changed_in_place(name: str) -> None:
    # The op reads its result again: the second pass meets it inside the node of the change and must run it once.
    x = tp.tensor([0.5, 0.75], dtype=tp.float64, requires_grad=True)
    found = []
    for inplace in (True, False):
        y = x * 1
        if inplace:
            getattr(y[:1], name)()
        else:
            y = tp.cat([getattr(y[:1], name[:-1])(), y[1:]])
        (g,) = tp.autograd.grad((y * y).sum(), x, create_graph=True)
        found.append(tp.autograd.grad(g.sum(), x)[0].tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@row("1.requires_grad_")
def test_updates_under_no_grad() -> None:
    x = leaf(1.0, 2.0)
    version = x._version
    with tp.no_grad():
        x -= 0.5
        x[0] = 7.0
        x[1:].mul_(2)
    assert x.tolist() == [7.0, 3.0] and x.is_leaf and x._version == version + 3
    (x * x).sum().backward()
    x.grad.zero_()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@row("2.validate_outputs")
@pytest.mark.parametrize(
    ("shape", "change"),
    [
        ((1, 3, 1), lambda y: y.squeeze_()),
        ((1, 3, 1), lambda y: y.squeeze_(0)),
        ((3,), lambda y: y.unsqueeze_(1)),
        ((2, 3), lambda y: y.t_()),
        ((2, 3, 4), lambda y: y.transpose_(0, 2)),
        ((4,), lambda y: y.as_strided_((2, 2), (2, 1))),
    ],
)
def test_a_gradient_has_the_sizes_that_an_in_place_view_gave(shape, change) -> None:
    class Twice(tp.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = tp.ones(*shape, dtype=F64, requires_grad=True)
    y = change(x * 3)
    out = Twice.apply(y)
    seen = []
    y.register_hook(lambda g: seen.append(g.shape))
    out.sum().backward()
    assert seen == [y.shape] and tp.equal(x.grad, tp.full(shape, 6.0, dtype=F64))


def cut(y, x):
    y.detach_()


def cut_then_change(y, x):
    y.detach_()
    y.mul_(3)


def change_then_cut(y, x):
    with tp.no_grad():
        y.mul_(3)
    y.detach_()


def cut_then_change_unrecorded(y, x):
    y.detach_()
    with tp.no_grad():
        y.mul_(3)


def record_then_cut(y, x):
    y.mul_(x)
    y.detach_()


def new_leaf_then_change(y, x):
    y.detach_().requires_grad_()
    with tp.no_grad():
        y.mul_(3)


def cut_then_record(y, x):
    y.detach_()
    y.mul_(3)
    y.mul_(x)


# A view keeps its history until the memory changes once its base's history is cut; then it has that of the base.
@pytest.mark.parametrize(
    ("change", "value", "expected"),
    [
        (cut, [2.0, 4.0], [2.0, 2.0, 0.0]),
        (cut_then_change, [6.0, 12.0], None),
        (change_then_cut, [6.0, 12.0], None),
        (cut_then_change_unrecorded, [6.0, 12.0], None),
        (record_then_cut, [2.0, 8.0], None),
        (new_leaf_then_change, [6.0, 12.0], None),
        (cut_then_record, [6.0, 24.0], [6.0, 12.0, 0.0]),
    ],
)
def test_views_of_a_base_whose_history_was_cut(change, value, expected) -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    v = y[:2]
    change(y, x)
    assert v.tolist() == value
    assert v.requires_grad
    assert v.grad_fn is not None
    v.sum().backward()
    assert (None if x.grad is None else x.grad.tolist()) == expected
    if change is new_leaf_then_change:
        assert y.grad.tolist() == [1.0, 1.0, 0.0]


def test_views_of_a_leaf_that_begins_or_ends_to_require_gradients() -> None:
    x = leaf(1.0, 2.0)
    v = x[:1]
    x.requires_grad_(False)
    x.mul_(3)
    v.sum().backward()
    assert v.tolist() == [3.0]
    assert x.grad is None
    y = const(1.0, 2.0)
    u, several = y[:1], y.unbind()[0]
    y.requires_grad_()
    with tp.no_grad():
        y.mul_(2)
    u.sum().backward()
    assert y.grad.tolist() == [1.0, 0.0]
    with pytest.raises(RuntimeError, match="multiple views"):
        _ = several.grad_fn
