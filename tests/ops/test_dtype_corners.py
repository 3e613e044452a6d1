"""Dtypes that an op takes by another way than its usual one."""

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional


def test_whole_numbers_round_to_tens() -> None:
    x = tp.tensor([-35, -25, 14, 15, 25, 149, 150, 2**53 + 5])
    assert x.round(decimals=-1).tolist() == [-40, -20, 10, 20, 20, 150, 150, 2**53 + 8]  # 2**53 ends in 2
    assert x.round(decimals=-2).tolist() == [0, 0, 0, 0, 0, 100, 200, 2**53 + 8]
    assert x.round(decimals=3).tolist() == x.tolist()
    assert tp.tensor([2**64 - 6], dtype=tp.uint64).round(decimals=-1).tolist() == [2**64 - 6]
    assert tp.tensor([44], dtype=tp.int8).round(decimals=-18).tolist() == [0]
    with pytest.raises(ValueError, match=r"round.*decimals=-19"):
        x.round(decimals=-19)


def test_bool_takes_part_in_outer_products_and_limits() -> None:
    a, b = tp.tensor([True, False]), tp.tensor([True, True, False])
    got = tp.addr(tp.zeros(2, 3, dtype=tp.bool), a, b)
    assert got.dtype == tp.bool
    assert got.tolist() == [[True, True, False], [False, False, False]]
    assert tp.addr(tp.ones(2, 3, dtype=tp.bool), a, b, beta=0).tolist() == got.tolist()
    assert tp.clamp_max(a, False).tolist() == [False, False]
    assert tp.clamp_min(a, True).tolist() == [True, True]
    assert tp.special.chebyshev_polynomial_t(a, 2).tolist() == [1.0, -1.0]


def test_factors_of_whole_numbers_are_whole() -> None:
    x = tp.arange(3)
    with pytest.raises(TypeError, match="addr"):
        tp.addr(tp.zeros(3, 3, dtype=tp.int64), x, x, alpha=0.5)


def test_matrix_norms_of_half() -> None:
    a = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float16)
    for order in (2, -2, 1, np.inf, "fro", "nuc"):
        got = tp.linalg.matrix_norm(tp.tensor(a), order)
        assert got.dtype == tp.float16
        np.testing.assert_allclose(float(got), np.linalg.norm(a.astype(float), order), rtol=1e-3)
    assert tp.linalg.norm(tp.tensor(a).to(tp.bfloat16), 2).dtype == tp.bfloat16


def test_complex_logarithms_of_sums() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((2, 4)) + 1j * rng.standard_normal((2, 4)) for _ in range(2))
    np.testing.assert_allclose(tp.logaddexp(tp.tensor(x), tp.tensor(y)).numpy(), np.log(np.exp(x) + np.exp(y)))
    got = tp.logcumsumexp(tp.tensor(x), 1).numpy()
    np.testing.assert_allclose(np.exp(got), np.cumsum(np.exp(x), 1))  # a logarithm's turns are free
    # Neither overflow nor a lost turn: the larger real part leads.
    far = tp.logaddexp(tp.tensor(900 + 1j), tp.tensor(-900 + 0j))
    assert complex(far.item()) == pytest.approx(900 + 1j)
    big = tp.logcumsumexp(tp.tensor([800 + 0j, 800 + 0j, -np.inf + 0j]), 0).tolist()
    np.testing.assert_allclose(big, [800, 800 + np.log(2), 800 + np.log(2)])
    a, b = (tp.tensor(v, requires_grad=True) for v in (x, y))
    assert tp.autograd.gradcheck(tp.logaddexp, (a, b))
    assert tp.autograd.gradcheck(lambda v: tp.logcumsumexp(v, 1), (a,))


def test_activations_and_norms_of_complex_numbers() -> None:
    x = tp.tensor([[1 + 2j, -0.5j, 0.25], [2, 1 - 1j, 3 + 1j]], requires_grad=True)
    z = x.detach().numpy()
    np.testing.assert_allclose(F.softsign(x).detach().numpy(), z / (1 + abs(z)), rtol=1e-6)
    np.testing.assert_allclose(
        F.rms_norm(x, [3], eps=0.1).detach().numpy(), z / np.sqrt((z**2).mean(1, keepdims=True) + 0.1), rtol=1e-6
    )
    wide = x.detach().to(tp.complex128).requires_grad_()
    w = tp.tensor([1j, 2.0, 1 - 1j], dtype=tp.complex128, requires_grad=True)
    assert tp.autograd.gradcheck(F.softsign, (wide,))
    assert tp.autograd.gradcheck(lambda a, b: F.rms_norm(a, [3], b, eps=0.1), (wide, w))
    assert tp.autograd.gradcheck(tp.sinc, (wide,))
    assert tp.autograd.gradcheck(tp.sinc, (wide.detach() * 0.01).requires_grad_())
    assert tp.autograd.gradcheck(tp.ldexp, (wide, w))
    with pytest.raises(ValueError, match=r"rms_norm.*normalized_shape"):
        F.rms_norm(x, [2])


def test_sliding_blocks_of_any_dtype() -> None:
    x = tp.arange(9).reshape(1, 1, 3, 3)
    want = F.unfold(x.to(tp.float64), 2)
    for dtype in (tp.bool, tp.uint8, tp.int64, tp.float16, tp.complex64, tp.complex128):
        got = F.unfold(x.to(dtype), 2)
        assert got.dtype == dtype
        assert got.tolist() == want.to(dtype).tolist()
    back = F.fold(F.unfold(x.to(tp.complex128) * 1j, 2), (3, 3), 2)
    assert back.tolist() == (F.fold(want, (3, 3), 2) * 1j).tolist()


def test_draws_from_given_probabilities_have_derivative_zero() -> None:
    p = tp.tensor([0.2, 0.7], requires_grad=True)
    tp.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0.0, 0.0]


def test_the_inverse_under_its_other_names() -> None:
    a = tp.tensor([[2.0, 1.0], [0.0, 4.0]])
    assert tp.inverse(a).tolist() == a.inverse().tolist() == tp.linalg.inv(a).tolist()


def test_repeats_that_differ_from_sample_to_sample() -> None:
    x = tp.arange(6.0).reshape(2, 3)
    counts = tp.tensor([[1, 0, 2], [0, 3, 0]])
    got = tp.func.vmap(lambda v, c: tp.repeat_interleave(v, c))(x, counts)
    assert got.tolist() == [[0.0, 2.0, 2.0], [4.0, 4.0, 4.0]]
    with pytest.raises(ValueError, match=r"repeat.*add up to 3 in one sample and to 2"):
        tp.func.vmap(lambda v, c: tp.repeat_interleave(v, c))(x, tp.tensor([[1, 0, 2], [0, 2, 0]]))


def test_squares_of_bool_count() -> None:
    x = tp.tensor([True, False])
    assert tp.square(x).dtype == x.square().dtype == (x**2).dtype == tp.int64
    assert tp.square(x).tolist() == [1, 0]
    assert tp.square(tp.tensor([200], dtype=tp.uint8)).tolist() == [64]


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_complex_numbers(dim: int) -> None:
    z = np.random.default_rng(0).standard_normal((3, 4)) * (1 + 2j) + 900
    x = tp.tensor(z, requires_grad=True)
    e = np.exp(z - 900)
    want = e / e.sum(dim, keepdims=True)
    np.testing.assert_allclose(x.softmax(dim).detach().numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(x.log_softmax(dim).exp().detach().numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(F.softmin(-x, dim).detach().numpy(), want, rtol=1e-12)
    assert tp.autograd.gradcheck(lambda x: x.softmax(dim), (x,))
    assert tp.autograd.gradcheck(lambda x: x.log_softmax(dim), (x,))


def test_softmax_in_the_dtype_asked_for() -> None:
    z = tp.tensor([1 + 1j, 2])
    for f in (tp.softmax, tp.log_softmax, F.softmin):
        assert f(z, 0, dtype=tp.float64).tolist() == pytest.approx(f(z.real.double(), 0).tolist())
        assert f(tp.tensor([1.0, 2.0]), 0, dtype=tp.complex64).dtype == tp.complex64
        assert f(tp.tensor([1, 2]), 0, dtype=tp.float16).dtype == tp.float16
        with pytest.raises(TypeError, match=f"^{f.__name__}: dtype"):
            f(tp.tensor([1.0]), 0, dtype=tp.int32)


@pytest.mark.parametrize("dtype", [tp.float64, tp.float16], ids=str)
def test_the_next_number_moves_as_its_input(dtype: tp.dtype) -> None:
    x = tp.tensor([1.0, 2.0, 3.0], dtype=dtype, requires_grad=True)
    to = tp.tensor([[2.0, 2.0, 1.0]], dtype=dtype, requires_grad=True)
    gx, gto = tp.autograd.grad(tp.nextafter(x, to).sum(), (x, to))
    assert gx.tolist() == [1, 0, 1]
    assert gto.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.square_() if x.dtype == tp.bool else x.float_power_(2),
        lambda x: x.cumsum_(0) if x.dtype == tp.bool else x.cumsum_(0, dtype=tp.float32),
        lambda x: x.cumprod_(0, dtype=tp.complex64),
    ],
    ids=["composed", "kernel", "complex"],
)
@pytest.mark.parametrize("dtype", [tp.bool, tp.int64], ids=str)
def test_a_result_of_a_higher_kind_is_not_written_in_place(change, dtype: tp.dtype) -> None:
    x = tp.tensor([0, 1, 1], dtype=dtype)
    with pytest.raises(TypeError, match=r"\w+_: result type \w+ can't be cast to"):
        change(x)
    assert x.tolist() == [0, 1, 1]


def test_casts_keep_the_kind() -> None:
    assert tp.can_cast(tp.int64, tp.uint8)
    assert not tp.can_cast(tp.float16, tp.int64)
    assert tp.sum(tp.tensor([300, 1]), 0, out=tp.empty((), dtype=tp.uint8)).item() == 45
