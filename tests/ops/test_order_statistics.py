"""Order statistics of lines that are copied and of lines too long for it, in every layout; ties, nans, both zeros."""

import numpy as np
import pytest
import tensorplay as tp

LONG = 33_000  # beyond what is copied


def lines(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(dtype))
    if dtype.startswith("float"):
        a = (rng.standard_normal((2, LONG)) * 10).astype(dtype)
        a[rng.integers(0, 2, 400), rng.integers(0, LONG, 400)] = [np.inf, -np.inf, 0.0, -0.0] * 100
        return a
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, (2, LONG), dtype=dtype, endpoint=True)
    a[:, ::3] = rng.integers(0, 5, a[:, ::3].shape)  # ties
    return a


def layouts(a: np.ndarray) -> list:
    wide = np.zeros((a.shape[0], 2 * a.shape[1] + 1), a.dtype)
    wide[:, 1::2] = a
    return [tp.tensor(a), tp.tensor(wide)[:, 1::2], tp.tensor(np.ascontiguousarray(a.T)).T]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("n", [50, LONG])
def test_kth_value_and_place(dtype: str, n: int) -> None:
    a = lines(dtype)[:, :n]
    order = np.argsort(a, axis=1, kind="stable")  # of equal elements the earlier is the smaller
    for x in layouts(a):
        for k in (1, 2, n // 3, n // 2, n):
            values, places = tp.kthvalue(x, k, 1)
            assert places.tolist() == order[:, k - 1].tolist()
            assert values.dtype == x.dtype
            np.testing.assert_array_equal(values.numpy(), a[[0, 1], order[:, k - 1]])
        values, places = tp.median(x, 1)
        assert places.tolist() == order[:, (n - 1) // 2].tolist()
        assert tp.median(x).item() == np.sort(a, axis=None)[(a.size - 1) // 2]


@pytest.mark.parametrize("n", [50, LONG])
def test_medians_beside_nans(n: int) -> None:
    a = lines("float32")[:, :n]
    a[0, [7, 30]] = np.nan
    for x in layouts(a):
        assert tp.median(x, 1)[1].tolist() == [7, int(np.argsort(a[1], kind="stable")[(n - 1) // 2])]
        assert np.isnan(tp.median(x).item())
        flat = np.sort(a[~np.isnan(a)])
        assert tp.nanmedian(x).item() == flat[(len(flat) - 1) // 2]
        assert tp.kthvalue(x, n - 1, 1)[1][0].item() == 7  # nans are the largest, the earlier the smaller
    assert np.isnan(tp.nanmedian(tp.full((2, n), float("nan"))).item())


def test_bfloat16_keeps_its_values() -> None:
    a = tp.tensor(lines("float32")).to(tp.bfloat16)
    got = tp.kthvalue(a, 1234, 1)[0]
    assert got.dtype == tp.bfloat16
    assert got.tolist() == tp.sort(a, 1)[0][:, 1233].tolist()


def test_nan_mean_of_any_layout() -> None:
    a = lines("float32")
    a[np.isinf(a)] = np.nan
    for x in layouts(a):
        np.testing.assert_allclose(tp.nanmean(x, (1,)).numpy(), np.nanmean(a, axis=1), rtol=1e-5)
        assert tp.nanmean(x, (0, 1), True).shape == (1, 1)
    leaf = tp.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    tp.nanmean(leaf).backward()
    assert leaf.grad.tolist() == [0.5, 0.0, 0.5]
    assert np.isnan(tp.nanmean(tp.tensor([float("nan")])).item())


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("n", [50, LONG, 600_000])
def test_mode_and_its_last_place(dtype: str, n: int) -> None:
    """The last length is beyond what is sorted at a time; the second row has its mode behind all that differs."""
    a = np.resize(lines("int8" if dtype == "bool" else dtype)[:, :n], (2, n)).astype(dtype)
    if dtype not in ("bool", "int8", "float16"):
        a[1] = np.arange(n).astype(dtype)  # all differ, but for what is too large for uint16
        a[1, [n // 2, n - 2]] = a[1, -1]
    elif dtype == "float16":
        a[0, ::5] = 0.0
        a[0, 2::5] = -0.0  # the same value
    for x in layouts(a):
        values, places = tp.mode(x, 1)
        for row, value, place in zip(a, values.tolist(), places.tolist(), strict=True):
            found, counts = np.unique(row, return_counts=True)
            assert value == found[counts.argmax()]  # the smallest of several
            assert place == np.flatnonzero(row == value)[-1]


@pytest.mark.parametrize("n", [50, LONG])
def test_modes_beside_nans(n: int) -> None:
    a = np.full((2, n), np.nan, np.float32)
    a[0, [3, n - 1]] = [2.0, 1.0]
    values, places = tp.mode(tp.tensor(a), 1)
    assert places.tolist() == [n - 1, 0]
    assert values[0].item() == 1.0
    assert np.isnan(values[1].item())


def test_the_median_of_nothing() -> None:
    for f in (tp.median, tp.nanmedian):
        assert np.isnan(f(tp.empty(0)).item())
        assert f(tp.empty(0, 3, dtype=tp.float16)).dtype == tp.float16
    with pytest.raises(IndexError, match=r"median: a tensor of int64 of shape \[0\] has no median"):
        tp.median(tp.empty(0, dtype=tp.int64))
