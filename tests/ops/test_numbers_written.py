"""A number written into a tensor takes the tensor's dtype; one that the dtype can't hold is refused, by whatever op."""

import math

import numpy as np
import pytest
import tensorplay as tp

MASK, AT = tp.tensor([True, False, True]), tp.tensor([0, 2])


def assigned(x, key, v):
    x = x.clone()
    x[key] = v
    return x


# Each writes v at places 0 and 2 of three, at least.
WRITES = {
    "masked_fill": lambda x, v: x.masked_fill(MASK, v),
    "masked_fill_": lambda x, v: x.clone().masked_fill_(MASK, v),
    "index_fill": lambda x, v: x.index_fill(0, AT, v),
    "index_fill_": lambda x, v: x.clone().index_fill_(0, AT, v),
    "scatter": lambda x, v: x.scatter(0, AT, v),
    "scatter_": lambda x, v: x.clone().scatter_(0, AT, v),
    "scatter add": lambda x, v: tp.zeros_like(x).scatter(0, AT, v, reduce="add"),
    "fill": lambda x, v: tp.fill(x, v),
    "fill_": lambda x, v: x.clone().fill_(v),
    "full_like": lambda x, v: tp.full_like(x, v),
    "full": lambda x, v: tp.full((3,), v, dtype=x.dtype),
    "new_full": lambda x, v: x.new_full((3,), v),
    "pad": lambda x, v: tp.constant_pad_nd(x[1:2], (1, 1), v),
    "element": lambda x, v: assigned(assigned(x, 0, v), (2,), v),
    "slice": lambda x, v: assigned(x, slice(None, None, 2), v),
    "backwards": lambda x, v: assigned(x, slice(None, None, -2), v),
    "mask": lambda x, v: assigned(x, MASK, v),
    "index": lambda x, v: assigned(x, AT, v),
}


@pytest.mark.parametrize("name", WRITES)
def test_the_tensor_keeps_its_dtype(name: str) -> None:
    for dtype, value, want in (
        (tp.int64, 1.5, 1), (tp.int64, -1.5, -1), (tp.int32, 2.0, 2), (tp.uint8, 255, 255), (tp.int8, -128, -128),
        (tp.float32, 3, 3.0), (tp.float16, 0.1, np.float16(0.1)), (tp.float32, math.inf, math.inf),
        (tp.float16, 65504, 65504.0), (tp.bool, 2, True), (tp.bool, 0.5, True), (tp.complex64, 1j, 1j),
        (tp.float32, 1 + 0j, 1.0), (tp.float64, 1e300, 1e300),
    ):  # fmt: skip
        got = WRITES[name](tp.ones(3).to(dtype), value)
        assert got.dtype == dtype and [got[0].item(), got[2].item()] == [want, want], (dtype, value, got)


@pytest.mark.parametrize("name", WRITES)
def test_a_number_that_does_not_fit_is_refused(name: str) -> None:
    for dtype, value in (
        (tp.uint8, 256), (tp.uint8, 300), (tp.uint8, 255.5), (tp.uint8, -0.5), (tp.int8, -129), (tp.int16, 1e5),
        (tp.int64, math.nan), (tp.int32, math.inf), (tp.int64, 2.0**63), (tp.float32, 1j), (tp.int64, 1j),
        (tp.float16, 65505), (tp.float16, 1e6), (tp.bfloat16, -1e39), (tp.float32, 1e39), (tp.complex64, 1e39),
    ):  # fmt: skip
        x = tp.ones(3).to(dtype)
        kind = str(dtype).split(".")[-1]
        with pytest.raises(RuntimeError, match=f"cannot be converted to type {kind} without overflow"):
            WRITES[name](x, value)
        assert x.tolist() == tp.ones(3).to(dtype).tolist()


def test_whole_numbers_below_zero_count_backwards_in_unsigned_types() -> None:
    assert tp.full((1,), -1, dtype=tp.uint8).item() == 255
    assert tp.full((1,), -255, dtype=tp.uint8).item() == 1
    with pytest.raises(RuntimeError, match="value -256 cannot be converted to type uint8"):
        tp.full((1,), -256, dtype=tp.uint8)


def test_a_tensor_as_value_takes_the_dtype_too() -> None:
    x = tp.tensor([1, 2, 3])
    for value in (tp.tensor(1.5), tp.tensor(1.5, dtype=tp.float64)):
        assert x.masked_fill(MASK, value).tolist() == x.index_fill(0, AT, value).tolist() == [1, 2, 1]
        assert x.masked_fill(MASK, value).dtype == tp.int64
    for write in ("masked_fill", "index_fill"):
        with pytest.raises(RuntimeError, match="complex64 cannot be converted to type float32"):
            WRITES[write](tp.ones(3), tp.tensor(1j))


def test_masked_fill_is_differentiated_in_both_dtypes() -> None:
    x = tp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = tp.tensor(4.0, dtype=tp.float64, requires_grad=True)
    y = x.masked_fill(MASK, v)
    assert y.dtype == tp.float32
    (y * tp.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [0, 2, 0] and v.grad.item() == 5 and v.grad.dtype == tp.float64
    seven = tp.tensor(7.0, dtype=tp.float64)
    out, slope = tp.func.jvp(lambda a, b: a.masked_fill(MASK, b), (x.detach(), v.detach()), (tp.ones(3), seven))
    assert out.tolist() == [4, 2, 4] and slope.tolist() == [7, 1, 7] and slope.dtype == tp.float32
    n, first, values = tp.tensor([[1, 2, 3], [4, 5, 6]]), tp.tensor([[True, False, False]] * 2), tp.tensor([0.5, 9.5])
    got = tp.func.vmap(lambda r, m, s: r.masked_fill(m, s))(n, first, values)
    assert got.tolist() == [[0, 2, 3], [9, 5, 6]] and got.dtype == tp.int64


def test_threshold_keeps_whole_numbers_whole() -> None:
    x = tp.arange(5)
    got = tp.threshold(x, 2, 1.5)
    assert got.dtype == tp.int64 and got.tolist() == [1, 1, 1, 3, 4]
    assert tp.threshold_(x, 2.5, 0).tolist() == [0, 0, 0, 3, 4]
    with pytest.raises(RuntimeError, match="threshold: value 300 cannot be converted to type uint8"):
        tp.nn.functional.threshold(tp.zeros(2, dtype=tp.uint8), 1, 300)


@pytest.mark.parametrize(
    ("sizes", "wrap"), [((3, 4), False), ((7, 3), False), ((7, 3), True), ((3, 3, 3), False), ((0, 3), True)]
)
def test_a_diagonal_is_filled(sizes: tuple[int, ...], wrap: bool) -> None:
    want = np.zeros(sizes)
    if 0 not in sizes:
        np.fill_diagonal(want, 2.5, wrap)
    x = tp.zeros(*sizes, dtype=tp.float64)
    assert x.fill_diagonal_(2.5, wrap) is x
    np.testing.assert_array_equal(x.numpy(), want)
    y = tp.ones(*sizes, dtype=tp.float64, requires_grad=True)
    (g,) = tp.autograd.grad((y * 3).fill_diagonal_(2.5, wrap=wrap).sum(), y)
    np.testing.assert_array_equal(g.numpy(), np.where(want > 0, 0, 3))
    column = tp.zeros(4, 6)[:, ::2]
    assert column.fill_diagonal_(1).tolist() == np.eye(4, 3).tolist()


def test_what_has_no_diagonal_is_refused() -> None:
    with pytest.raises(ValueError, match="takes two dimensions"):
        tp.zeros(3).fill_diagonal_(1)
    with pytest.raises(ValueError, match="all must be of one size"):
        tp.zeros(2, 2, 3).fill_diagonal_(1)
    assert tp.zeros(2, 2, dtype=tp.int64).fill_diagonal_(1.5).tolist() == [[1, 0], [0, 1]]
