"""Indexing in every form, against NumPy; repeated and out-of-range indices; gradients."""

import numpy as np
import pytest
import tensorplay as tp

A = np.arange(60.0).reshape(3, 4, 5)
KEYS = [
    0, -1, (0, 1), (slice(None), 2), (..., 1), slice(1, None), (slice(None), slice(None, None, 2)), None,
    (None, 0, ..., None), [0, 2], (slice(None), [1, 3]), ([0, 2], [1, 3]),
    (slice(None), [0, 1], slice(None, None, 2)), ([0, 1], slice(None), [1, 2]), np.array([[0, 1], [2, 0]]), A > 30,
    A[:, 0, 0] > 10, (np.array([True, False, True]), 1), (0, [1, 2]), (Ellipsis, [0, -1]),
]  # fmt: skip


def as_key(k):
    if isinstance(k, tuple):
        return tuple(as_key(x) for x in k)
    return tp.tensor(k) if isinstance(k, np.ndarray) else k


@pytest.mark.parametrize("k", range(len(KEYS)))
def test_getitem_agrees_with_numpy(k):
    got = tp.tensor(A)[as_key(KEYS[k])]
    want = A[KEYS[k]]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("k", range(len(KEYS)))
def test_setitem_agrees_with_numpy(k):
    t, a = tp.tensor(A).clone(), A.copy()
    t[as_key(KEYS[k])] = -1.0
    a[KEYS[k]] = -1.0
    np.testing.assert_array_equal(t.numpy(), a)


@pytest.mark.parametrize("k", range(len(KEYS)))
def test_getitem_gradients(k):
    x = tp.tensor(A, requires_grad=True)
    out = x[as_key(KEYS[k])]
    w = np.random.default_rng(0).normal(size=tuple(out.shape))
    (g,) = tp.autograd.grad((out * tp.tensor(w)).sum(), x)
    want = np.zeros_like(A)
    np.add.at(want, KEYS[k] if KEYS[k] is not None else (None,), w)
    np.testing.assert_allclose(g.numpy(), want)


def test_setitem_gradients_reach_base_and_value():
    x = tp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = tp.tensor([5.0, 6.0], requires_grad=True)
    y = x * 1
    y[1:] = v * 2
    (y * tp.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0] and v.grad.tolist() == [20.0, 200.0]


def test_out_of_range_names_value_dim_and_size():
    x = tp.ones(3, 4)
    for f in (lambda: x[3], lambda: x[:, -5], lambda: x[[0, 3]], lambda: x.index_select(1, tp.tensor([4])),
              lambda: x.gather(0, tp.tensor([[7]]))):  # fmt: skip
        with pytest.raises(IndexError):
            f()


def test_gather_scatter_with_smaller_index():
    x = tp.tensor(np.random.default_rng(0).normal(size=(4, 3)), requires_grad=True)
    i = tp.tensor([[0, 1, 1], [3, 0, 1]])
    np.testing.assert_array_equal(x.gather(0, i).detach().numpy(), np.take_along_axis(x.detach().numpy(), i.numpy(), 0))
    assert tp.autograd.gradcheck(lambda x: x.gather(0, i), (x,))
    src = tp.tensor(np.random.default_rng(1).normal(size=(3, 3)), requires_grad=True)
    assert tp.autograd.gradcheck(lambda x, s: x.scatter_add(0, i, s), (x, src))
    assert tp.autograd.gradgradcheck(lambda x, s: x.scatter_add(0, i, s), (x, src))
    j = tp.tensor([[0, 1, 2], [3, 0, 1]])
    assert tp.autograd.gradcheck(lambda x, s: x.scatter(0, j, s), (x, src))


def test_embedding_adds_repeats_and_skips_padding():
    F = tp.nn.functional
    w = tp.tensor(np.random.default_rng(0).normal(size=(5, 2)), requires_grad=True)
    i = tp.tensor([[0, 1], [1, 4]])
    assert F.embedding(i, w).tolist() == w.detach().numpy()[i.numpy()].tolist()
    assert tp.autograd.gradcheck(lambda w: F.embedding(i, w), (w,))
    assert tp.autograd.gradgradcheck(lambda w: F.embedding(i, w), (w,))
    (g,) = tp.autograd.grad(F.embedding(i, w, padding_idx=1).sum(), w)
    assert g.sum(1).tolist() == [2.0, 0.0, 0.0, 0.0, 2.0]
    with pytest.raises(IndexError, match="embedding"):
        F.embedding(tp.tensor([5]), w)


def test_masks_select_and_return():
    a = np.random.default_rng(0).normal(size=(3, 4))
    x = tp.tensor(a, requires_grad=True)
    m = tp.tensor(a > 0)
    assert x.masked_select(m).tolist() == a[a > 0].tolist()
    assert tp.autograd.gradcheck(lambda x: x.masked_select(m), (x,))
    row = tp.tensor(np.array([True, False, True, False]))
    assert x.masked_select(row).tolist() == a[:, [0, 2]].ravel().tolist()
    assert x.masked_fill(m, 0.0).tolist() == np.where(a > 0, 0, a).tolist()


def test_index_put_accumulates_or_overwrites():
    base, i = tp.zeros(3, dtype=tp.float64), tp.tensor([0, 0, 2])
    v = tp.tensor([5.0, 7.0, 1.0], dtype=tp.float64)
    assert base.index_put((i,), v, accumulate=True).tolist() == [12.0, 0.0, 1.0]
    assert base.index_put((i,), v)[0].item() in (5.0, 7.0)
    x = tp.tensor([1.0, 2.0, 3.0], dtype=tp.float64, requires_grad=True)
    u = tp.tensor([4.0, 5.0], dtype=tp.float64, requires_grad=True)
    j = tp.tensor([2, 0])
    assert tp.autograd.gradcheck(lambda x, u: x.index_put((j,), u), (x, u))
    assert tp.autograd.gradcheck(lambda x, u: x.index_add(0, j, u, alpha=2), (x, u))


def test_take_along_dim_broadcasts_the_other_dimensions() -> None:
    x = tp.arange(3.0).reshape(1, 3)
    rows = tp.tensor([[2, 0], [1, 1]])
    assert tp.take_along_dim(x, rows, 1).tolist() == [[2.0, 0.0], [1.0, 1.0]]
    wide = tp.arange(6.0).reshape(2, 3)
    assert tp.take_along_dim(wide, tp.tensor([[2]]), 1).tolist() == [[2.0], [5.0]]
    with pytest.raises(RuntimeError, match=r"sizes \[4, 1\] and \[2, 3\] do not broadcast in dimension 0"):
        tp.take_along_dim(wide, tp.zeros(4, 1, dtype=tp.int64), 1)


def test_places_of_what_is_not_zero() -> None:
    x = tp.tensor([[0, 1], [2, 3]])
    assert x.nonzero().tolist() == tp.nonzero(x, as_tuple=False).tolist() == [[0, 1], [1, 0], [1, 1]]
    rows, columns = tp.nonzero(x, as_tuple=True)
    assert rows.tolist() == [0, 1, 1] and columns.tolist() == [1, 0, 1]
    assert x[x.nonzero(as_tuple=True)].tolist() == [1, 2, 3]
    assert [p.tolist() for p in tp.nonzero(tp.tensor(5), as_tuple=True)] == [[0]]
    assert [p.tolist() for p in tp.nonzero(tp.zeros(0, 2), as_tuple=True)] == [[], []]


def test_the_method_where_keeps_its_tensor() -> None:
    holds = tp.tensor([True, False, True])
    x = tp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert x.where(holds, 0).tolist() == [1, 0, 3]
    assert x.where(condition=holds, other=tp.tensor([[7.0], [8.0]])).tolist() == [[1, 7, 3], [1, 8, 3]]
    assert tp.tensor([1, 2, 3]).where(holds, 0.5).tolist() == [1, 0.5, 3]
    x.where(holds, 0.0).sum().backward()
    assert x.grad.tolist() == [1, 0, 1]


def test_where_of_a_condition_alone_gives_places() -> None:
    x = tp.tensor([[0, 1], [2, 3]])
    got = tp.where(x > 0)
    assert isinstance(got, tuple) and [p.tolist() for p in got] == [[0, 1, 1], [1, 0, 1]]
    assert all(a.equal(b) for a, b in zip(got, tp.nonzero(x, as_tuple=True), strict=True))
    assert x[got].tolist() == [1, 2, 3]
    assert [p.tolist() for p in tp.where(tp.tensor(5))] == [[0]]
    assert [(p.tolist(), p.dtype) for p in tp.where(condition=tp.tensor(0))] == [([], tp.int64)]
    with pytest.raises(TypeError, match="where"):
        tp.where(x, x)


def test_a_mask_of_all_elements() -> None:
    rng = np.random.default_rng(5)
    for shape in [(0,), (7,), (2041,), (5, 1500), (2, 3, 4)]:
        a, m = rng.normal(size=shape), rng.random(shape) < 0.4
        x, mask = tp.tensor(a), tp.tensor(m)
        np.testing.assert_array_equal(x[mask].numpy(), a[m])
        np.testing.assert_array_equal(tp.nonzero(mask).numpy(), np.argwhere(m))
        np.testing.assert_array_equal(x.mT[mask.mT].numpy() if x.ndim > 1 else x[mask].numpy(),
                                      np.swapaxes(a, -1, -2)[np.swapaxes(m, -1, -2)] if a.ndim > 1 else a[m])
        x[mask] = 2
        a[m] = 2
        np.testing.assert_array_equal(x.numpy(), a)
    with pytest.raises(IndexError, match="mask"):
        tp.ones(3)[tp.tensor([True, False])]
    fixed = np.ones(3)
    fixed.flags.writeable = False
    with pytest.raises(RuntimeError, match="index_put_: the memory of this tensor is read-only"):
        tp.from_numpy(fixed)[tp.tensor([True, False, True])] = 0.0


@pytest.mark.parametrize("key", [(slice(None), 0), (slice(None), slice(None), 0), (..., 1), (slice(None), 2, 3)])
@pytest.mark.parametrize("moved", [False, True])
def test_picks_behind_other_dimensions(key: tuple, moved: bool) -> None:
    rng = np.random.default_rng(6)
    a = rng.normal(size=(3, 20, 20))
    picks = [rng.integers(-20, 20, n) for n in (50, (3, 7), 9, 9)]
    own = tuple(picks[k] if isinstance(k, int) else k for k in key)
    x = tp.tensor(a.swapaxes(1, 2)).mT if moved else tp.tensor(a)
    got = x[tuple(tp.tensor(k) if isinstance(k, np.ndarray) else k for k in own)]
    np.testing.assert_array_equal(got.numpy(), a[own])
