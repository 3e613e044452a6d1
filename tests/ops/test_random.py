"""Random numbers: moments, ranges, seeds, the same stream on any number of threads."""

import numpy as np
import pytest
import tensorplay as tp


def test_seed_repeats_and_generators_are_separate():
    tp.manual_seed(7)
    a = tp.rand(5).tolist()
    tp.manual_seed(7)
    assert tp.rand(5).tolist() == a
    g = tp.Generator()
    g.manual_seed(7)
    before = tp.get_rng_state()
    assert tp.rand(5, generator=g).tolist() == a
    assert tp.get_rng_state().tolist() == before.tolist()


def test_threads_do_not_change_the_stream():
    threads = tp.get_num_threads()
    try:
        out = []
        for n in (1, 2):
            tp.set_num_threads(n)
            tp.manual_seed(3)
            out.append(tp.randn(300_001).numpy())
        np.testing.assert_array_equal(*out)
    finally:
        tp.set_num_threads(threads)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_uniform_and_normal_moments(dtype):
    tp.manual_seed(0)
    d = getattr(tp, dtype)
    u = tp.rand(200_000, dtype=d).to(tp.float64)
    assert (
        u.min().item() >= 0 and u.max().item() < 1 + (dtype != "float64") * 1e-9 and abs(u.mean().item() - 0.5) < 0.01
    )
    z = tp.randn(200_000, dtype=d).to(tp.float64)
    assert abs(z.mean().item()) < 0.02 and abs(z.var().item() - 1) < 0.02


def test_integers_and_permutations():
    tp.manual_seed(0)
    k = tp.randint(-3, 4, (10_000,))
    assert k.dtype == tp.int64 and set(k.tolist()) == set(range(-3, 4))
    assert sorted(tp.randperm(100).tolist()) == list(range(100))
    with pytest.raises((RuntimeError, ValueError), match="randint"):
        tp.randint(3, 3, (2,))


def test_bernoulli_and_dropout():
    tp.manual_seed(0)
    assert abs(tp.bernoulli(tp.full((100_000,), 0.3)).mean().item() - 0.3) < 0.01
    F = tp.nn.functional
    x = tp.ones(10_000, requires_grad=True)
    y = F.dropout(x, 0.25)
    assert set(y.unique_values() if hasattr(y, "unique_values") else set(y.tolist())) <= {
        0.0,
        np.float32(1 / 0.75).item(),
    }
    (g,) = tp.autograd.grad(y.sum(), x)
    assert g.tolist() == y.tolist()
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 1.0).sum().item() == 0


def test_multinomial_follows_weights():
    tp.manual_seed(0)
    draws = tp.multinomial(tp.tensor([0.0, 3.0, 1.0]), 10_000, replacement=True)
    counts = np.bincount(draws.numpy(), minlength=3)
    assert counts[0] == 0 and abs(counts[1] / 10_000 - 0.75) < 0.03


def test_normal_numbers_of_given_means_and_deviations():
    tp.manual_seed(0)
    mean, std = tp.tensor([[-5.0], [3.0]]).expand(2, 50_000), tp.tensor([[0.5], [2.0]]).expand(2, 50_000)
    both = tp.normal(mean, std)
    assert np.allclose(both.mean(1).numpy(), [-5, 3], atol=0.05)
    assert np.allclose(both.std(1).numpy(), [0.5, 2], rtol=0.02)
    assert np.allclose(tp.normal(mean, 0.0).numpy(), mean.numpy())
    assert np.allclose(tp.normal(mean).std(1).numpy(), [1, 1], rtol=0.02)
    one = tp.normal(7, std)
    assert np.allclose(one.mean(1).numpy(), [7, 7], atol=0.05) and np.allclose(one.std(1).numpy(), [0.5, 2], rtol=0.02)
    many = tp.normal(2.0, 3.0, size=(2, 50_000))
    assert many.shape == (2, 50_000) and abs(many.mean().item() - 2) < 0.05 and abs(many.std().item() - 3) < 0.05
    assert tp.normal(0, 1, (2,)).shape == (2,) and tp.normal(0.0, 1.0, (3,), dtype=tp.float64).dtype == tp.float64
    assert tp.normal(tp.zeros(2, dtype=tp.float64), tp.ones(3, 1)).dtype == tp.float64
    assert tp.normal(tp.zeros(2), tp.ones(3, 1, dtype=tp.float64)).dtype == tp.float32
    assert tp.normal(tp.zeros(2), tp.ones(3, 1)).shape == (3, 2)
    g, h = tp.Generator(), tp.Generator()
    assert tp.normal(mean, std, generator=g.manual_seed(4)).equal(tp.normal(mean, std, generator=h.manual_seed(4)))
    assert not tp.normal(tp.zeros(2, requires_grad=True), 1.0).requires_grad


def test_normal_refuses_what_is_no_deviation():
    with pytest.raises(ValueError, match=r"normal: std=-1.* is negative or nan"):
        tp.normal(tp.zeros(2), -1.0)
    with pytest.raises(ValueError, match="normal: std=nan"):
        tp.normal(0.0, float("nan"), (2,))
    with pytest.raises(ValueError, match="normal: std must not be negative or nan; the least is -2"):
        tp.normal(0.0, tp.tensor([1.0, -2.0]))
    with pytest.raises(ValueError, match="normal: std"):
        tp.normal(tp.zeros(2), tp.tensor([1.0, float("nan")]))
    for wrong in (lambda: tp.normal(tp.tensor([1]), 1.0), lambda: tp.normal(0.0, tp.tensor([1]))):
        with pytest.raises(TypeError, match="normal: numbers of int64 are not drawn"):
            wrong()
    with pytest.raises(TypeError, match="normal"):
        tp.normal(0, 1)


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 47.0, 49.0, 700.0, 2e4, 1e9])
def test_poisson_numbers(rate):
    stats = pytest.importorskip("scipy.stats")
    tp.manual_seed(1)
    n = 100_000
    x = tp.poisson(tp.full((n,), rate, dtype=tp.float64)).numpy()
    assert (x == np.floor(x)).all() and (x >= 0).all()
    if rate == 0:
        assert not x.any()
        return
    edges = np.unique(stats.poisson.ppf(np.linspace(0.05, 0.95, 10), rate))
    seen = np.array([np.mean(x <= e) for e in edges])
    assert np.abs(seen - stats.poisson.cdf(edges, rate)).max() < 0.007
    assert abs(x.mean() - rate) < 5 * np.sqrt(rate / n) and abs(x.var() / rate - 1) < 0.05


def test_poisson_keeps_the_dtype_and_draws_from_the_generator():
    rates = tp.full((1000,), 5.0, dtype=tp.float16)
    g = tp.Generator()
    a = tp.poisson(rates, g.manual_seed(3))
    assert a.dtype == tp.float16 and a.equal(tp.poisson(rates, generator=g.manual_seed(3)))
    assert not a.equal(tp.poisson(rates, g))
    assert tp.poisson(tp.tensor(3.0)).shape == ()
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="poisson: rates must not be negative or nan"):
            tp.poisson(tp.tensor([1.0, bad]))
    with pytest.raises(TypeError, match="poisson: rates must be floating, not int64"):
        tp.poisson(tp.tensor([1]))


def test_gumbel_softmax_draws_classes_in_proportion():
    F = tp.nn.functional
    tp.manual_seed(0)
    p = tp.tensor([0.1, 0.2, 0.7])
    logits = p.log().expand(20_000, 3)
    soft, hard = F.gumbel_softmax(logits, tau=0.5), F.gumbel_softmax(logits, hard=True)
    assert np.allclose(soft.sum(-1).numpy(), 1, atol=1e-5) and (soft >= 0).all()
    assert set(hard.unique().tolist()) <= {0.0, 1.0} and np.allclose(hard.sum(-1).numpy(), 1)
    assert np.allclose(hard.mean(0).numpy(), p.numpy(), atol=0.02)
    assert np.allclose(tp.nn.functional.one_hot(soft.argmax(-1), 3).double().mean(0).numpy(), p.numpy(), atol=0.02)
    x = tp.zeros(4, 3, requires_grad=True)
    w = tp.tensor([1.0, 2.0, 4.0])
    for hard in (False, True):
        tp.manual_seed(5)
        (g,) = tp.autograd.grad((F.gumbel_softmax(x, 2.0, hard, dim=1) * w).sum(), x)
        tp.manual_seed(5)
        y = F.gumbel_softmax(x, 2.0, dim=1).detach()
        assert np.allclose(g.numpy(), (y * (w - (w * y).sum(1, True)) / 2).numpy(), atol=1e-5)
    column = F.gumbel_softmax(tp.zeros(3, 2), hard=True, dim=0)
    assert column.sum(0).tolist() == [1, 1]
