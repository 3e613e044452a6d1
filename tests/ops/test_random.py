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
