"""Shapes for which a kernel takes another way: short rows, many columns, few rows, rows that leave the caches."""

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional
G = np.random.default_rng(11)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("shape", [(8, 1), (9, 10), (64, 33), (70, 128), (130, 127), (1000, 10)])
def test_softmax_of_short_rows(shape: tuple[int, int]) -> None:
    x = G.standard_normal(shape, np.float32) * 5
    x[0, 0], x[1] = -np.inf, 3
    want, t = softmax(x), tp.tensor(x, requires_grad=True)
    np.testing.assert_allclose(F.softmax(t, 1).detach().numpy(), want, rtol=2e-6, atol=1e-30)
    classes = G.integers(0, shape[1], shape[0])
    if x[0, classes[0]] == -np.inf:
        classes[0] = shape[1] - 1
    loss = F.cross_entropy(t, tp.tensor(classes), reduction="none")
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            loss.detach().numpy(), -np.log(want[np.arange(len(x)), classes]), rtol=1e-5, atol=1e-6
        )
    slope = G.standard_normal(shape, np.float32)
    (got,) = tp.autograd.grad(F.softmax(t, 1), t, tp.tensor(slope))
    np.testing.assert_allclose(got.numpy(), want * (slope - (slope * want).sum(1, keepdims=True)), atol=2e-6)
    (got,) = tp.autograd.grad(loss.sum(), t)
    np.testing.assert_allclose(got.numpy(), want - np.eye(shape[1])[classes], atol=2e-6)


def test_short_rows_do_not_depend_on_threads() -> None:
    x = tp.tensor(G.standard_normal((5000, 37), np.float32))
    before, bits = tp.get_num_threads(), []
    for n in (1, 2, 3):
        tp.set_num_threads(n)
        bits.append([f(x).numpy() for f in (lambda v: F.softmax(v, 1), lambda v: v.cumsum(0), lambda v: v.var(0))])
    tp.set_num_threads(before)
    for other in bits[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(bits[0], other, strict=True))


@pytest.mark.parametrize("shape", [(2, 5000), (3, 9000), (64, 4097), (65, 5000), (300, 16500), (1000, 7)])
def test_folds_of_columns(shape: tuple[int, int]) -> None:
    x = G.standard_normal(shape, np.float32) + np.float32(100)
    wide, t = x.astype("f8"), tp.tensor(x)
    np.testing.assert_allclose(t.sum(0).numpy(), wide.sum(0), rtol=2e-7)
    np.testing.assert_allclose(t.mean(0).numpy(), wide.mean(0), rtol=2e-7)
    np.testing.assert_allclose(t.var(0).numpy(), wide.var(0, ddof=1), rtol=3e-5)
    np.testing.assert_allclose(t.logsumexp(0).numpy(), np.logaddexp.reduce(wide, 0), rtol=1e-6)
    assert np.array_equal(t.amax(0).numpy(), x.max(0)) and np.array_equal(t.argmax(0).numpy(), x.argmax(0))
    np.testing.assert_allclose(t.cumsum(0).numpy(), wide.cumsum(0), rtol=2e-7)


def test_batch_norm_of_many_rows_keeps_its_digits() -> None:
    x = G.standard_normal((30000, 5), np.float32) + np.float32(100)
    wide = x.astype("f8")
    want = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    got = F.batch_norm(tp.tensor(x), None, None, training=True).numpy()
    np.testing.assert_allclose(got, want, atol=2e-5)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(7, 300, 40), (40, 7, 300), (600, 50, 3)])
def test_scatter_along_each_dimension(dim: int, shape: tuple[int, ...]) -> None:
    x, src = G.standard_normal(shape), G.standard_normal(shape)
    index = G.integers(0, shape[dim], shape)
    want = x.copy()
    at = list(np.indices(shape))
    at[dim] = index
    np.add.at(want, tuple(at), src)
    t, i, s = tp.tensor(x), tp.tensor(index), tp.tensor(src)
    np.testing.assert_allclose(tp.scatter_add(t, dim, i, s).numpy(), want, rtol=1e-12, atol=1e-12)
    assert np.array_equal(tp.gather(t, dim, i).numpy(), np.take_along_axis(x, index, dim))
    part = tuple(slice(0, max(1, n // 2)) for n in shape)
    index, want = index[part], x.copy()
    at = list(np.indices(index.shape))
    at[dim] = index
    np.add.at(want, tuple(at), src[part])
    got = tp.scatter_add(t, dim, tp.tensor(np.ascontiguousarray(index)), tp.tensor(np.ascontiguousarray(src[part])))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)


def test_embedding_gradient_with_repeated_rows() -> None:
    weight = tp.zeros(500, 48, requires_grad=True)
    index, slope = G.integers(0, 300, 2000), G.standard_normal((2000, 48))
    (got,) = tp.autograd.grad(F.embedding(tp.tensor(index), weight), weight, tp.tensor(slope.astype("f4")))
    want = np.zeros((500, 48))
    np.add.at(want, index, slope)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 1000])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_searchsorted(n: int, dtype: str) -> None:
    line = np.sort((G.standard_normal(n) * 20).astype(dtype))
    values = np.concatenate([line, (G.standard_normal(101) * 30).astype(dtype)])
    if dtype == "float32":
        values = np.concatenate([values, np.array([np.nan, np.inf, -np.inf, -0.0], dtype)])
    for right in (False, True):
        got = tp.searchsorted(tp.tensor(line), tp.tensor(values), right=right)
        assert np.array_equal(got.numpy(), np.searchsorted(line, values, "right" if right else "left"))
