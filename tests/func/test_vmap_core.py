"""Batched tensors as `_C` makes them: rules, what they answer and refuse."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import tensorplay as tp
from tensorplay import _C


@contextmanager
def level(size: int, randomness: str = "error") -> Iterator[int]:
    n = _C._vmap_enter(size, randomness)
    try:
        yield n
    finally:
        _C._vmap_exit(n)


def vmap(f: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error") -> Callable[..., Any]:
    """As much of func.vmap as these tests need: tensors in, one tensor or a tuple of them out."""

    def mapped(*args: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
        with level(size, randomness) as n:
            ins = [a if d is None else _C._add_batch_dim(a, d, n) for a, d in zip(args, dims, strict=True)]
            outs = f(*ins)
            many = isinstance(outs, (tuple, list))
            ends = out_dims if isinstance(out_dims, tuple) else (out_dims,) * (len(outs) if many else 1)
            done = [_C._remove_batch_dim(o, n, size, d) for o, d in zip(outs if many else [outs], ends, strict=True)]
        return tuple(done) if many else done[0]

    return mapped


def rows(*shape: int) -> Any:
    return tp.randn(*shape, dtype=tp.float64)


def same(a: Any, b: Any) -> None:
    assert a.shape == b.shape and a.dtype == b.dtype
    assert tp.allclose(a, b), (a, b)


# ---- levels -----------------------------------------------------------------------------------------------------


def test_a_batched_tensor_shows_one_sample() -> None:
    x = rows(3, 4, 5)
    with level(4) as n:
        b = _C._add_batch_dim(x, 1, n)
        assert _C._is_batched(b) and not _C._is_batched(x) and _C._vmap_active()
        assert b.shape == (3, 5) and b.ndim == 2 and b.numel() == 15 and len(b) == 3 and b.dtype == x.dtype
        assert _C._batch_levels(b) == (n,)
        assert _C._remove_batch_dim(b, n, 4, 0).shape == (4, 3, 5)
        same(_C._remove_batch_dim(b, n, 4, 1), x)
        same(_C._remove_batch_dim(b, n, 4, -1), x.transpose(1, 2))
    assert not _C._vmap_active()


def test_what_is_the_same_for_all_samples_is_expanded_at_the_end() -> None:
    x = rows(3)
    out = vmap(lambda b: x * 2)(rows(5, 2))
    same(out, (x * 2).expand(5, 3))


def test_levels_nest_and_align() -> None:
    x, y = rows(3, 4), rows(5, 4)
    out = vmap(lambda a: vmap(lambda b: a * b + a)(y))(x)
    same(out, x[:, None] * y[None] + x[:, None])
    inner_first = vmap(lambda a: vmap(lambda b: (b, a * b))(y))(x)
    same(inner_first[1], x[:, None] * y[None])


def test_a_tensor_that_outlived_its_vmap_says_so() -> None:
    kept = []
    vmap(lambda b: kept.append(b) or b * 2)(rows(3, 2))
    with pytest.raises(RuntimeError, match="vmap that made it had ended"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="vmap that made it had ended"):
        vmap(lambda b: b + kept[0])(rows(3, 2))
    assert "ended" in repr(kept[0])
    kept.clear()
    same(rows(2) * 0, tp.zeros(2, dtype=tp.float64))


def test_another_thread_cannot_read_a_batched_tensor() -> None:
    x = rows(3, 100)
    plain = rows(100)
    uses = {
        "op": lambda b: b + 1, "other operand": lambda b: plain * b, "list": lambda b: tp.cat([plain, b]),
        "in place": lambda b: plain.clone().mul_(b), "changed": lambda b: b.mul_(2), "out": lambda b: tp.exp(b, out=b),
        "reduction": lambda b: b.sum(), "view": lambda b: b[1:], "tolist": lambda b: b.tolist(),
        "item": lambda b: b[0].item(), "numpy": lambda b: b.numpy(), "bool": lambda b: bool(b[0]),
        "random": lambda b: b.normal_(),
        "matmul": lambda b: plain @ b,
        "python op": lambda b: tp.einsum("i,i->", b, plain), "clone": lambda b: b.clone(),
        "index": lambda b: plain[(b > 0).long()], "function": lambda b: tp.autograd.forward_ad.make_dual(b, b),
        "copy": lambda b: copy.copy(b) + 1, "where": lambda b: tp.where(plain > 0, plain, b),
        "own vmap": lambda b: vmap(lambda c: c * b)(x), "dlpack": lambda b: tp.from_dlpack(b),
        "iter": lambda b: [c * 2 for c in b], "set item": lambda b: plain.clone().__setitem__(0, b[0]),
    }  # fmt: skip
    faults: dict[str, str] = {}

    def read(b: Any) -> None:
        for name, use in uses.items():
            try:
                faults[name] = f"gave {type(use(b))}"
            except (RuntimeError, BufferError) as e:
                faults[name] = str(e)

    def f(b: Any) -> Any:
        thread = threading.Thread(target=read, args=(b,))
        thread.start()
        thread.join()
        return b * 2

    same(vmap(f)(x), 2 * x)
    assert {n: m for n, m in faults.items() if "vmap" not in m} == {} and faults.keys() == uses.keys()


def test_an_error_inside_closes_the_level() -> None:
    def f(b: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        vmap(f)(rows(3))
    assert not _C._vmap_active()


def test_sizes_are_checked() -> None:
    three, four = rows(3), rows(4)
    with level(3) as n:
        with pytest.raises(ValueError, match=r"has length 4 .* batch size is 3"):
            _C._add_batch_dim(four, 0, n)
        with pytest.raises(ValueError, match="0-d"):
            _C._add_batch_dim(tp.tensor(1.0), 0, n)
        with pytest.raises(ValueError, match="out of range"):
            _C._add_batch_dim(three, 1, n)
    with pytest.raises(ValueError, match="randomness"):
        _C._vmap_enter(3, "often")


# ---- elementwise ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [(0, 0), (1, 0), (None, 0), (0, None), (-1, 1)])
def test_broadcast_behind_the_batch(dims: Any) -> None:
    x = rows(3, 3)
    y = rows(3, 3)
    want = tp.stack(
        [
            (x if dims[0] is None else x.select(dims[0], i)) * (y if dims[1] is None else y.select(dims[1], i)).sin()
            for i in range(3)
        ]
    )
    same(vmap(lambda a, b: a * b.sin(), in_dims=dims)(x, y), want)


def test_operands_of_other_rank() -> None:
    x, y = rows(3), rows(3, 2, 4)
    same(vmap(lambda a, b: a + b)(x, y), x[:, None, None] + y)
    same(vmap(lambda a, b: b - a)(x, y), y - x[:, None, None])
    same(vmap(lambda a, b: a + b, in_dims=(0, None))(x, y), x[:, None, None, None] + y)


def test_a_0d_sample_yields_in_promotion() -> None:
    x = tp.ones(3, dtype=tp.float64)
    y = tp.ones(3, 2, dtype=tp.float32)
    assert vmap(lambda a, b: a * b)(x, y).dtype == tp.float32
    assert vmap(lambda a, b: a * b)(x, y[:, 0]).dtype == tp.float64
    one = tp.ones((), dtype=tp.float64)
    assert vmap(lambda b: b * one)(y[:, 0]).dtype == tp.float64
    assert vmap(lambda b: b * one)(y).dtype == tp.float32
    assert vmap(lambda b: b * 2.0)(y[:, 0]).dtype == tp.float32
    m = tp.tensor([True, False, True])
    same(vmap(lambda c, a, b: tp.where(c, a, b))(m, y, y * 2), tp.where(m[:, None], y, y * 2))


# ---- in place ---------------------------------------------------------------------------------------------------


def test_in_place_writes_the_physical_memory() -> None:
    x, y = rows(3, 2), rows(3, 2)
    want = x + y * 2

    def f(a: Any, b: Any) -> Any:
        a.add_(b, alpha=2)
        return a

    out = vmap(f)(x, y)
    same(out, want)
    same(x, want)


def test_in_place_on_what_all_samples_share_is_refused() -> None:
    x, wide = rows(2), rows(3, 2)
    with pytest.raises(RuntimeError, match=r"mul_: vmap: inplace arithmetic.*`mul` instead of `mul_`"):
        vmap(lambda b: x.mul_(b))(rows(3, 2))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        vmap(lambda b: b.add_(wide))(rows(3, 2))


def test_views_of_batched_tensors_are_views() -> None:
    x = rows(3, 4)

    def f(b: Any) -> Any:
        v = b[1:3]
        v.mul_(0)
        return b

    out = vmap(f)(x.clone())
    want = x.clone()
    want[:, 1:3] = 0
    same(out, want)


def test_transpose_in_place_changes_the_sizes() -> None:
    x = rows(3, 2, 4)

    def f(b: Any) -> Any:
        b.transpose_(0, 1)
        assert b.shape == (4, 2)
        return b

    if hasattr(x, "transpose_"):
        same(vmap(f)(x), x.transpose(1, 2))


# ---- the loop ---------------------------------------------------------------------------------------------------


def test_an_empty_batch() -> None:
    out = vmap(lambda b: b.sum() * tp.linalg.det(b))(rows(0, 2, 2))
    assert out.shape == (0,)


# ---- what needs values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda b: b.item(), r"\.item\(\)"),
        (float, r"\.item\(\) on a Tensor \(float\)"),
        (lambda b: 1 if b > 0 else 2, "data-dependent control flow.*tensorplay.where"),
        (lambda b: b.tolist(), "tolist"),
        (lambda b: b.numpy(), "numpy"),
        (lambda b: tp.tensor([b, b]), "batched"),
    ],
)
def test_values_are_refused_by_name(use: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        vmap(lambda b: tp.zeros(()) if use(b) else b)(rows(3))


def test_printing_names_the_level() -> None:
    seen = []
    vmap(lambda b: seen.append(repr(b)) or b)(tp.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert seen[0].startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1., 2.],")


def test_indexing() -> None:
    x = rows(3, 4, 5)
    i = tp.tensor([[0, 2], [1, 1], [3, 0]])
    same(vmap(lambda b: b[1, 2:4])(x), x[:, 1, 2:4])
    same(vmap(lambda b: b[None, ..., 0])(x), x[:, None, :, 0])
    same(vmap(lambda b, k: b[k])(x, i), tp.stack([x[n][i[n]] for n in range(3)]))
    same(vmap(lambda b, k: b[:, k], in_dims=(None, 0))(x, i), x[:, i].movedim(1, 0))
    same(vmap(lambda b, k: b[k[0]])(x, i), tp.stack([x[n, int(i[n, 0])] for n in range(3)]))
    with pytest.raises(RuntimeError, match=r"tensorplay\.where"):
        vmap(lambda b: b[b > 0])(x)

    def assign(b: Any, k: Any) -> Any:
        c = b.clone()
        c[k] = 7.0
        return c

    want = x.clone()
    for n in range(3):
        want[n][i[n]] = 7.0
    same(vmap(assign)(x, i), want)


# ---- random numbers ---------------------------------------------------------------------------------------------

DRAWS = [
    lambda b: tp.rand((4,)),
    lambda b: tp.randn((4,)),
    lambda b: tp.randint(0, 1000, (4,)),
    lambda b: tp.randperm(20),
    lambda b: tp.rand_like(b),
    lambda b: tp.bernoulli(tp.full((30,), 0.5)),
    lambda b: tp.multinomial(tp.ones(9), 5),
    lambda b: tp.nn.functional.dropout(tp.ones(40), 0.5),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_randomness(draw: Any) -> None:
    x = rows(3, 4)
    with pytest.raises(RuntimeError, match=r"'same' or 'different' randomness"):
        vmap(draw)(x)
    equal = vmap(draw, randomness="same")(x)
    assert (equal == equal[0]).all()
    other = vmap(draw, randomness="different")(x)
    assert other.shape == equal.shape
    assert not (other[0] == other[1]).all() or not (other[1] == other[2]).all()


def test_the_same_numbers_for_samples_that_differ() -> None:
    p = tp.tensor([0.0, 0.5, 1.0])[:, None].expand(3, 200)
    drawn = vmap(tp.bernoulli, randomness="same")(p)
    assert (drawn[0] == 0).all() and (drawn[2] == 1).all() and 40 < float(drawn[1].sum()) < 160
    x = tp.ones(3, 100).requires_grad_()
    out = vmap(lambda b: tp.nn.functional.dropout(b, 0.25), randomness="same")(x)
    assert (out == out[0]).all() and set(out.reshape(-1).tolist()) <= {0.0, out.max().item()}
    (g,) = tp.autograd.grad(out.sum(), x)
    same(g, out.detach())


def test_randomness_by_level() -> None:
    x = rows(2, 3)
    out = vmap(lambda a: vmap(lambda b: tp.rand((5,)), randomness="different")(a), randomness="same")(x)
    assert out.shape == (2, 3, 5) and (out[0] == out[1]).all() and not (out[0, 0] == out[0, 1]).all()


# ---- rules that are named ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize(
    ("a", "b"),
    [((4,), (4,)), ((2, 4), (4,)), ((4,), (4, 3)), ((2, 4), (4, 3)), ((5, 2, 4), (4, 3)), ((2, 4), (5, 4, 3))],
)
def test_products(a: Any, b: Any, dims: Any) -> None:
    x = rows(3, *a) if dims[0] == 0 else rows(*a)
    y = rows(3, *b) if dims[1] == 0 else rows(*b)
    want = tp.stack([(x if dims[0] is None else x[i]) @ (y if dims[1] is None else y[i]) for i in range(3)])
    same(vmap(lambda p, q: p @ q, in_dims=dims)(x, y), want)


def test_products_check_the_ranks_of_a_sample() -> None:
    with pytest.raises(RuntimeError, match="mm: expected operands of 2 and 2 dimensions"):
        vmap(tp.mm)(rows(3, 4), rows(3, 4))
    with pytest.raises(ValueError, match="needs at least 2 dimensions"):
        vmap(tp.linalg.det)(rows(3, 3))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("with_n", [True, False])
def test_convolution_with_a_weight_for_each_sample(groups: int, with_n: bool) -> None:
    F = tp.nn.functional
    x, w, c = rows(3, 2, 4, 6, 6), rows(3, 4, 4 // groups, 3, 3), rows(3, 4)
    x = x if with_n else x[:, 0]
    ins = [t.requires_grad_() for t in (x.clone(), w, c)]

    def f(a: Any, k: Any, s: Any) -> Any:
        return F.conv2d(a, k, s, padding=1, groups=groups)

    got = vmap(f)(*ins)
    want = tp.stack([f(*(t[i] for t in ins)) for i in range(3)])
    same(got, want)
    for g, h in zip(tp.autograd.grad(got.sin().sum(), ins), tp.autograd.grad(want.sin().sum(), ins), strict=True):
        same(g, h)


def test_batch_norm_has_statistics_for_each_sample() -> None:
    F = tp.nn.functional
    x = rows(3, 5, 2, 4)
    out = vmap(lambda b: F.batch_norm(b, None, None, training=True))(x)
    same(out, tp.stack([F.batch_norm(b, None, None, training=True) for b in x]))
    with pytest.raises(RuntimeError, match="running_mean"):
        vmap(lambda b: F.batch_norm(b, tp.zeros(2, dtype=tp.float64), tp.ones(2, dtype=tp.float64), training=True))(x)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_classes(reduction: str, weighted: bool) -> None:
    F = tp.nn.functional
    x, t = rows(3, 4, 5).requires_grad_(), tp.tensor([[0, 4, 2, -100], [1, 1, 0, 3], [4, -100, -100, 2]])
    w = rows(5).abs() if weighted else None

    def f(a: Any, b: Any) -> Any:
        return F.cross_entropy(a, b, w, reduction=reduction, label_smoothing=0.1)

    got, want = vmap(f)(x, t), tp.stack([f(a, b) for a, b in zip(x, t, strict=True)])
    same(got, want)
    same(tp.autograd.grad(got.sin().sum(), x)[0], tp.autograd.grad(want.sin().sum(), x)[0])
    one = vmap(lambda a, b: F.cross_entropy(a, b, w))(x[:, 0], t[:, 0])
    same(one, tp.stack([F.cross_entropy(x[i, 0], t[i, 0], w) for i in range(3)]))
