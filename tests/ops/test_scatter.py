"""Writes by index and what combines them: values, gradients at zeros and ties."""

import math

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional
RNG = np.random.default_rng(0)


def same(got, want, tol=1e-12):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tol, atol=tol)


def scattered(base, index, src, reduce, include_self):
    """scatter_reduce along the first dimension, one element at a time."""
    out = base.copy()
    for j in range(index.shape[1]):
        for row in np.unique(index[:, j]):
            values = list(src[index[:, j] == row, j])
            if include_self:
                values.insert(0, base[row, j])
            out[row, j] = {"sum": sum, "prod": math.prod, "mean": np.mean, "amax": max, "amin": min}[reduce](values)
    return out


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(reduce, include_self):
    base, src = RNG.normal(size=(3, 2)), RNG.normal(size=(5, 2))
    index = RNG.integers(0, 3, (5, 2))
    want = scattered(base, index, src, reduce, include_self)
    x, s, at = tp.tensor(base), tp.tensor(src), tp.tensor(index)
    same(x.scatter_reduce(0, at, s, reduce, include_self=include_self), want)
    y = x.clone()
    assert y.scatter_reduce_(0, at, s, reduce, include_self=include_self) is y
    same(y, want)
    assert tp.autograd.gradcheck(
        lambda x, s: x.scatter_reduce(0, at, s, reduce, include_self=include_self),
        (x.clone().requires_grad_(), s.clone().requires_grad_()),
    )
    if reduce != "sum":
        one = tp.tensor(index[:, 0])
        same(
            x.index_reduce(0, one, s, reduce, include_self=include_self),
            scattered(base, np.repeat(index[:, :1], 2, 1), src, reduce, include_self),
        )


def test_products_with_zeros_have_gradients():
    at = tp.tensor([0, 0, 1])
    src = tp.tensor([0.0, 3.0, 0.0], requires_grad=True)
    x = tp.tensor([2.0, 0.0, 5.0], requires_grad=True)
    out = x.scatter_reduce(0, at, src, "prod")
    assert out.tolist() == [0, 0, 5]
    out.sum().backward()
    assert src.grad.tolist() == [6, 0, 0]
    assert x.grad.tolist() == [0, 0, 1]


def test_ties_share_the_gradient():
    x = tp.tensor([2.0], requires_grad=True)
    src = tp.tensor([2.0, 1.0], requires_grad=True)
    x.scatter_reduce(0, tp.tensor([0, 0]), src, "amax").backward(tp.ones(1))
    assert x.grad.tolist() == [0.5]
    assert src.grad.tolist() == [0.5, 0]


def test_whole_numbers_scatter():
    x = tp.tensor([1, 2, 3])
    assert x.scatter_reduce(0, tp.tensor([0, 0]), tp.tensor([5, 6]), "amax").tolist() == [6, 2, 3]
    assert x.scatter_reduce(0, tp.tensor([0, 0]), tp.tensor([5, 6]), "mean").tolist() == [4, 2, 3]
    with pytest.raises(ValueError, match="reduce='max' is not one of"):
        x.scatter_reduce(0, tp.tensor([0]), tp.tensor([5]), "max")


def test_masked_scatter():
    x, mask = tp.zeros(2, 3, dtype=tp.float64), tp.tensor([[True, False, True], [False, True, False]])
    source = tp.tensor([1.0, 2.0, 3.0, 4.0], dtype=tp.float64)
    assert x.masked_scatter(mask, source).tolist() == [[1, 0, 2], [0, 3, 0]]
    assert x.masked_scatter_(mask, source) is x
    assert x.tolist() == [[1, 0, 2], [0, 3, 0]]


def test_put():
    x = tp.zeros(2, 3)
    assert x.put(tp.tensor([0, -1]), tp.tensor([1.0, 2.0])).tolist() == [[1, 0, 0], [0, 0, 2]]
    x.put_(tp.tensor([1, 1]), tp.tensor([1.0, 2.0]), accumulate=True)
    assert x.tolist() == [[0, 3, 0], [0, 0, 0]]


def test_isin():
    x = tp.arange(20)
    assert tp.isin(x, tp.arange(3, 15)).tolist() == [3 <= k < 15 for k in range(20)]
    assert not tp.isin(tp.tensor([math.nan]), tp.tensor([math.nan] * 9)).item()
    assert tp.isin(x, 3, invert=True).tolist() == [k != 3 for k in range(20)]
    assert tp.isin(3, x).item()
    assert tp.isin(x, tp.tensor([], dtype=tp.int64)).sum().item() == 0


def test_bags_of_embeddings():
    table = RNG.normal(size=(6, 2))
    w, at = tp.tensor(table), np.array([0, 2, 5, 1, 1])
    offsets = np.array([0, 3, 3])
    bags = [at[:3], at[3:3], at[3:]]
    for mode, f in (
        ("sum", lambda b: table[b].sum(0)),
        ("mean", lambda b: table[b].mean(0) if len(b) else np.zeros(2)),
    ):
        same(F.embedding_bag(tp.tensor(at), w, tp.tensor(offsets), mode=mode), np.stack([f(b) for b in bags]))
    got = F.embedding_bag(tp.tensor(at), w, tp.tensor(offsets), mode="max")
    same(got, np.stack([table[b].max(0) if len(b) else np.zeros(2) for b in bags]))
    weights = RNG.normal(size=5)
    got = F.embedding_bag(tp.tensor(at), w, tp.tensor(offsets), mode="sum", per_sample_weights=tp.tensor(weights))
    same(got[0], (table[at[:3]] * weights[:3, None]).sum(0))
    got = F.embedding_bag(tp.tensor([[0, 1], [2, 2]]), w, mode="mean", padding_idx=1)
    same(got, np.stack([table[0], table[2]]))


@pytest.mark.parametrize("reduce", ["add", "multiply"])
def test_scatter_with_a_reduction(reduce):
    base, src = RNG.normal(size=(3, 2)), RNG.normal(size=(5, 2))
    index = RNG.integers(0, 3, (5, 2))
    full = {"add": "sum", "multiply": "prod"}[reduce]
    x, s, at = tp.tensor(base), tp.tensor(src), tp.tensor(index)
    same(x.scatter(0, at, s, reduce=reduce), scattered(base, index, src, full, True))
    same(tp.scatter(x, 0, at, value=2.5, reduce=reduce), scattered(base, index, np.full((5, 2), 2.5), full, True))
    y = x.clone()
    assert y.scatter_(0, at, s, reduce=reduce) is y
    assert y.scatter_(0, at, 0.5, reduce=reduce) is y
    want = scattered(scattered(base, index, src, full, True), index, np.full((5, 2), 0.5), full, True)
    same(y, want)
    leaves = [t.clone().requires_grad_() for t in (x, s)]
    assert tp.autograd.gradcheck(lambda a, b: a.scatter(0, at, b, reduce=reduce), leaves)
    assert tp.autograd.gradcheck(lambda a: a.scatter(0, at, 2.5, reduce=reduce), leaves[:1])
    n = tp.tensor([1, 2, 3]).scatter(0, tp.tensor([0, 0]), 2.5, reduce=reduce)
    assert n.dtype == tp.int64 and n.tolist() == ([5, 2, 3] if reduce == "add" else [4, 2, 3])
    out = tp.zeros(3, 2, dtype=tp.float64)
    assert tp.scatter(x, 0, at, s, reduce=reduce, out=out) is out
    same(out, scattered(base, index, src, full, True))


def test_scatter_takes_no_other_reduction():
    x, at = tp.zeros(3), tp.tensor([0])
    for value in (1.0, tp.ones(1)):
        with pytest.raises(RuntimeError, match="scatter: reduce='mean' is not add or multiply"):
            x.scatter(0, at, value, reduce="mean")
        with pytest.raises(TypeError, match="scatter"):
            x.scatter(0, at, value, "add")
