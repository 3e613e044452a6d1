"""Ops composed of others: values, edges and messages that no single NumPy call says."""

import itertools
import math

import numpy as np
import pytest
import tensorplay as tp

F = tp.nn.functional
RNG = np.random.default_rng(0)


def same(got, want, tol=1e-12):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tol, atol=tol)


# ---- shape ----------------------------------------------------------------------------------------------------------


def test_tensors_one_by_one():
    x, y = tp.tensor([1.0, 2.0]), tp.tensor([3.0, 4.0, 5.0])
    assert [tuple(t.shape) for t in tp.meshgrid(x, y, indexing="xy")] == [(3, 2), (3, 2)]
    assert tuple(tp.cartesian_prod(x, y).shape) == (6, 2)
    assert tuple(tp.block_diag(x, y).shape) == (2, 5)
    assert [tuple(t.shape) for t in tp.broadcast_tensors(x.reshape(2, 1), y)] == [(2, 3), (2, 3)]
    with pytest.raises(TypeError, match="meshgrid: argument 1 must be a Tensor, not int"):
        tp.meshgrid(x, 3)


def test_gradient_over_coordinates():
    a, at = RNG.normal(size=(5, 4)), np.array([0.0, 0.5, 0.7, 1.5, 4.0])
    for order in (1, 2):
        got = tp.gradient(tp.tensor(a), spacing=(tp.tensor(at),), dim=0, edge_order=order)
        same(got[0], np.gradient(a, at, axis=0, edge_order=order))
    got = tp.gradient(tp.tensor(a), spacing=(0.5, 2.0))
    for g, w in zip(got, np.gradient(a, 0.5, 2.0), strict=True):
        same(g, w)


def test_equal_parts_are_demanded():
    with pytest.raises(ValueError, match="hsplit: dimension 1 of size 5 is not divisible into 2 parts"):
        tp.ones(2, 5).hsplit(2)


def test_repeats():
    x = tp.tensor([1, 2])
    assert tp.repeat_interleave(x, 0).tolist() == []
    assert tp.repeat_interleave(tp.tensor([[1, 2], [3, 4]]), tp.tensor([2, 1]), 1).tolist() == [[1, 1, 2], [3, 3, 4]]
    with pytest.raises(ValueError, match="negative"):
        x.repeat_interleave(-1)


def test_diff():
    a = RNG.integers(0, 5, (2, 5))
    assert tp.diff(tp.tensor(a), 3).tolist() == np.diff(a, 3).tolist()
    assert tp.diff(tp.tensor([True, False, False])).tolist() == [True, False]
    assert tp.diff(tp.ones(2), 5).tolist() == []


# ---- order ----------------------------------------------------------------------------------------------------------


def test_unique_slices():
    a = np.array([[3, 1], [1, 2], [3, 1], [1, 0]])
    for dim in (0, 1):
        want = np.unique(a, return_inverse=True, return_counts=True, axis=dim)
        got = tp.unique(tp.tensor(a), return_inverse=True, return_counts=True, dim=dim)
        for g, w in zip(got, want, strict=True):
            assert g.tolist() == w.reshape(tuple(g.shape)).tolist()
    values, counts = tp.unique_consecutive(tp.tensor([[1, 1], [1, 1], [2, 1]]), return_counts=True, dim=0)
    assert values.tolist() == [[1, 1], [2, 1]]
    assert counts.tolist() == [2, 1]
    values, inverse, counts = tp.unique_consecutive(tp.tensor([3, 3, 1, 3]), return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([3, 1, 3], [0, 0, 1, 2], [2, 1, 1])
    assert tp.tensor([2, 1, 2]).unique().tolist() == [1, 2]


@pytest.mark.parametrize("rule", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(rule):
    a = RNG.permutation(24).reshape(4, 6) * 1.0
    q = np.array([0.0, 0.21, 0.5, 1.0])
    for dim in (None, 0, 1):
        got = tp.quantile(tp.tensor(a), tp.tensor(q), dim, keepdim=True, interpolation=rule)
        same(got, np.quantile(a, q, axis=dim, keepdims=True, method=rule))


def test_quantiles_of_nan():
    x = tp.tensor([[1.0, math.nan, 3.0], [math.nan, math.nan, math.nan]], dtype=tp.float64)
    assert x.quantile(0.5, 1).isnan().all()
    got = x.nanquantile(0.5, 1)
    assert got[0].item() == 2
    assert math.isnan(got[1].item())
    with pytest.raises(ValueError, match=r"quantile: q holds 1.5"):
        x.quantile(1.5)


def test_histograms():
    a = RNG.normal(size=(3, 7))
    got = tp.histogram(tp.tensor(a), 5, range=(-1.0, 1.0), weight=tp.tensor(np.abs(a)), density=True)
    want = np.histogram(a, 5, (-1, 1), weights=np.abs(a), density=True)
    same(got.hist, want[0])
    same(got.bin_edges, want[1])
    assert tp.histc(tp.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist() == [0, 2, 1, 0]
    assert tp.histc(tp.tensor([2.0, 2.0]), bins=2).tolist() == [0, 2]


def test_sorted_places():
    edges = tp.tensor([1.0, 3.0, 5.0])
    assert tp.searchsorted(edges, tp.tensor([3.0]), side="right").tolist() == [2]
    assert tp.searchsorted(edges, 3.0).item() == 1
    assert tp.searchsorted(edges, tp.tensor([3.0]), out_int32=True).dtype == tp.int32
    assert tp.bucketize(4.0, edges).item() == 2
    with pytest.raises(ValueError, match="contradict"):
        tp.searchsorted(edges, tp.tensor([3.0]), side="left", right=True)


# ---- elementwise ----------------------------------------------------------------------------------------------------


def test_nan_to_num():
    x = tp.tensor([math.nan, math.inf, -math.inf, 1.0])
    got = x.nan_to_num().tolist()
    assert got == [0, tp.finfo(tp.float32).max, tp.finfo(tp.float32).min, 1]
    y = x.clone()
    assert y.nan_to_num_(1.0, 2.0, 3.0) is y
    assert y.tolist() == [1, 2, 3, 1]
    assert tp.nan_to_num(tp.tensor([1, 2])).tolist() == [1, 2]


def test_frexp():
    a = np.concatenate(
        [RNG.normal(size=50) * 10.0 ** RNG.integers(-300, 300, 50), [2.0**k for k in range(-1074, 1024, 7)]]
    )
    mantissa, exponent = tp.frexp(tp.tensor(a))
    want = np.frexp(a)
    assert mantissa.tolist() == want[0].tolist()
    assert exponent.tolist() == want[1].tolist()
    x = tp.tensor([3.0, -0.2], dtype=tp.float64, requires_grad=True)
    tp.frexp(x)[0].sum().backward()
    assert x.grad.tolist() == [0.25, 4]


def test_complex_parts():
    r, a = tp.tensor([1.0, 2.0]), tp.tensor([0.5, -2.0])
    same(tp.polar(r, a), r.numpy() * np.exp(1j * a.numpy()), 1e-6)
    assert tp.complex(r, a).tolist() == [1 + 0.5j, 2 - 2j]
    z = tp.tensor([1j, -1 + 0j, 2 + 0j], requires_grad=True)
    same(z.angle(), [np.pi / 2, np.pi, 0], 1e-6)
    z.angle().sum().backward()
    same(z.grad, [-1, -1j, 0.5j], 1e-6)
    assert tp.isreal(z).tolist() == [False, True, True]


# ---- nn -------------------------------------------------------------------------------------------------------------


def test_whole_channels_are_dropped():
    tp.manual_seed(0)
    for f, sizes in ((F.dropout1d, (8, 16, 3)), (F.dropout2d, (8, 16, 3, 3)), (F.dropout3d, (8, 16, 2, 2, 2))):
        out = f(tp.ones(*sizes), 0.5).reshape(8 * 16, -1)
        assert ((out == 0).all(1) | (out == 2).all(1)).all()
        assert 0.2 < (out == 0).to(tp.float32).mean().item() < 0.8
    x = tp.ones(4, 4, 2)
    assert F.dropout1d(x, 0.5, True, inplace=True) is x


def test_dropout_of_selu_keeps_moments():
    tp.manual_seed(0)
    out = F.alpha_dropout(tp.randn(200000), 0.3, True)
    assert abs(out.mean().item()) < 0.02
    assert abs(out.std().item() - 1) < 0.02
    assert F.feature_alpha_dropout(tp.randn(4, 3, 5), 0.3, True).shape == (4, 3, 5)


def test_rrelu():
    tp.manual_seed(0)
    out = F.rrelu(-tp.ones(1000), training=True)
    assert (out <= -1 / 8).all()
    assert (out >= -1 / 3).all()
    same(F.rrelu(tp.tensor([-1.0, 2.0])), [-11 / 48, 2], 1e-6)


def alignments(probs, labels, blank):
    """The probability of the labels over every path of classes."""
    total = 0.0
    for path in np.ndindex(*(probs.shape[1],) * len(probs)):
        joined = [c for k, c in enumerate(path) if k == 0 or c != path[k - 1]]
        if [c for c in joined if c != blank] == list(labels):
            total += math.prod(probs[t, c] for t, c in enumerate(path))
    return total


def test_ctc_sums_alignments():
    logits = RNG.normal(size=(4, 2, 3))
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    x = tp.tensor(log_probs)
    targets, lengths = tp.tensor([[1, 1], [2, 0]]), [2, 1]
    got = F.ctc_loss(x, targets, [4, 3], lengths, reduction="none")
    want = [
        -math.log(alignments(np.exp(log_probs[:4, 0]), [1, 1], 0)),
        -math.log(alignments(np.exp(log_probs[:3, 1]), [2], 0)),
    ]
    same(got, want, 1e-10)
    same(F.ctc_loss(x, tp.tensor([1, 1, 2]), (4, 3), (2, 1)), (want[0] / 2 + want[1]) / 2, 1e-10)
    short = F.ctc_loss(x[:2, :1], targets[:1], [2], [2], reduction="sum")
    assert math.isinf(short.item())
    assert F.ctc_loss(x[:2, :1], targets[:1], [2], [2], reduction="sum", zero_infinity=True).item() == 0


def test_unpooling_inverts_pooling():
    x = tp.tensor(RNG.permutation(32).reshape(1, 2, 4, 4) * 1.0)
    pooled, at = F.max_pool2d_with_indices(x, 2, 2, 0, 1, False)
    back = F.max_unpool2d(pooled, at, 2)
    assert tuple(back.shape) == (1, 2, 4, 4)
    assert ((back == x) | (back == 0)).all()
    assert (back != 0).sum().item() in (7, 8)
    assert F.max_unpool2d(pooled, at, 2, output_size=(5, 5)).shape[-1] == 5
    with pytest.raises(ValueError, match="output_size"):
        F.max_unpool2d(pooled, at, 2, output_size=(9, 9))
    line, where = F.max_pool1d_with_indices(tp.tensor([[[1.0, 3.0, 2.0, 5.0]]]), 2, 2, 0, 1, False)
    assert F.max_unpool1d(line, where, 2).tolist() == [[[0, 3, 0, 5]]]


def test_triplets_by_any_distance():
    a, p, n = (tp.tensor(RNG.normal(size=(3, 4))) for _ in range(3))
    got = F.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1), swap=True)
    near = np.abs((a - p).numpy()).sum(-1)
    far = np.minimum(np.abs((a - n).numpy()).sum(-1), np.abs((p - n).numpy()).sum(-1))
    same(got, np.maximum(1 + near - far, 0).mean())


# ---- draws and in-place functions -----------------------------------------------------------------------------------


def test_fills():
    tp.manual_seed(0)
    x = tp.zeros(4000)
    assert x.bernoulli_(0.25) is x
    assert 0.2 < x.mean().item() < 0.3
    assert 0.45 < x.bernoulli_(tp.tensor(0.5)).mean().item() < 0.55
    assert abs(x.cauchy_(1.0, 2.0).median().item() - 1) < 0.3
    assert abs(x.log_normal_(0.5, 0.25).log().mean().item() - 0.5) < 0.05
    assert abs(x.geometric_(0.25).mean().item() - 4) < 0.3
    assert (x >= 1).all()
    whole = tp.zeros(1000, dtype=tp.int64).random_(3, 6)
    assert sorted(set(whole.tolist())) == [3, 4, 5]
    assert set(tp.zeros(100, dtype=tp.uint8).random_(2).tolist()) == {0, 1}
    assert tp.zeros(3, dtype=tp.bfloat16).random_().max().item() < 256
    with pytest.raises(ValueError, match="from=5 is not below to=5"):
        whole.random_(5, 5)
    y = tp.randint_like(tp.zeros(50), 2, 4)
    assert set(y.tolist()) == {2, 3}


def test_in_place_forms_are_functions():
    x = tp.tensor([-1.0, 4.0])
    assert tp.relu_(x) is x
    assert F.celu_(x, 0.5) is x
    assert F.silu(x, inplace=True) is x
    assert tp.sqrt_(tp.tensor([4.0])).item() == 2
    assert tp.fill_(x, 3.0).tolist() == [3, 3]
    with pytest.raises(TypeError, match="abs_: the first argument must be a Tensor, not int"):
        tp.abs_(3)


def test_views_in_place():
    x = tp.arange(6.0).reshape(2, 3)
    assert x.t_() is x
    assert tuple(x.shape) == (3, 2)
    assert tuple(x.unsqueeze_(0).shape) == (1, 3, 2)
    assert tuple(x.squeeze_().shape) == (3, 2)
    assert tuple(x.transpose_(0, 1).shape) == (2, 3)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_comparisons_in_place():
    x = tp.tensor([1.0, 2.0, 3.0])
    assert x.ge_(2.0).tolist() == [0, 1, 1]
    assert x.dtype == tp.float32
    assert x.logical_not_().tolist() == [1, 0, 0]


def test_several_results_into_out():
    x = tp.tensor([[3.0, 1.0], [2.0, 5.0]])
    values, at = tp.empty(0), tp.empty(0, dtype=tp.int64)
    got = tp.max(x, 1, out=(values, at))
    assert got[0] is values
    assert got.indices is at
    assert (values.tolist(), at.tolist()) == ([3, 5], [0, 1])
    with pytest.raises(TypeError, match="out= holds 1 tensors for 2 results"):
        tp.sort(x, out=(values,))
    out = tp.empty(2, 2)
    assert tp.tensordot(x, x, 1, out=out) is out
    with pytest.raises(RuntimeError, match="out="):
        tp.cumsum(x.requires_grad_(), 0, out=out)


# ---- inside vmap ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "op, f",
    [
        ("unique", tp.unique),
        ("unique", lambda x: tp.unique(x, dim=0)),
        ("unique_consecutive", tp.unique_consecutive),
        ("histogram", lambda x: tp.histogram(tp.ones(4), x[0])),
        ("ctc_loss", lambda x: F.ctc_loss(tp.zeros(4, 2, 3), tp.ones(2, 2, dtype=tp.int64), x, [1, 1])),
    ],
)
@pytest.mark.filterwarnings("ignore:.*no batching rule")
def test_sizes_that_depend_on_values_are_refused_by_name(op, f):
    with pytest.raises(RuntimeError, match=rf"^{op}: .*vmap: .*(depends on the values|depends on values)") as kept:
        tp.func.vmap(f)(tp.tensor([[1, 1], [1, 2]]))
    # The error keeps batched values alive; what comes next is not inside the vmap for that.
    assert not tp._C._vmap_active()
    x = tp.ones(2, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    del kept


def test_repeats_of_samples_that_add_up_alike():
    x, repeats = tp.tensor([5, 6, 7]), tp.tensor([[1, 1, 2], [0, 4, 0]])
    got = tp.func.vmap(lambda r: x.repeat_interleave(r, output_size=4))(repeats)
    assert got.tolist() == [[5, 6, 7, 7], [6, 6, 6, 6]]
    with pytest.raises(ValueError, match="^repeat_interleave: .*add up to 2 in one sample and to 3 in another"):
        tp.func.vmap(lambda r: tp.arange(2).repeat_interleave(r))(tp.tensor([[1, 1], [1, 2]]))


def test_histograms_of_samples_have_their_own_ends():
    x = RNG.standard_normal((3, 20))
    x[2] = 4.0
    counts = tp.func.vmap(lambda s: tp.histc(s, 6))(tp.tensor(x))
    hist, edges = tp.func.vmap(lambda s: tuple(tp.histogram(s, 6)))(tp.tensor(x))
    for i in range(3):
        same(counts[i], tp.histc(tp.tensor(x[i]), 6))
        want, at = np.histogram(x[i], 6)
        same(hist[i], want)
        same(edges[i], at)


def test_indices_of_samples_are_checked_by_the_write():
    place = tp.func.vmap(lambda i: F.max_unpool1d(tp.ones(1, 2), i, 2))
    assert place(tp.tensor([[[1, 2]]])).tolist() == [[[0, 1, 1, 0]]]
    with pytest.raises(IndexError, match="out of range"):
        place(tp.tensor([[[1, 9]]]))


# ---- forms of older ops ---------------------------------------------------------------------------------------------


def test_quotients_are_rounded():
    a, b = tp.tensor([-7, 7, 5]), tp.tensor([2, 2, -3])
    assert tp.div(a, b, rounding_mode="floor").tolist() == [-4, 3, -2]
    got = tp.div(a, b, rounding_mode="trunc")
    assert got.tolist() == [-3, 3, -1]
    assert got.dtype == tp.int64
    assert tp.div(a, b, rounding_mode=None).tolist() == [-3.5, 3.5, pytest.approx(-5 / 3)]
    assert tp.tensor([5.5]).div_(2, rounding_mode="trunc").tolist() == [2]
    big = tp.tensor([2**62 + 1])
    assert tp.div(big, 1, rounding_mode="trunc").tolist() == [2**62 + 1]


def test_decimals():
    x = tp.tensor([1.2345, -27.5, 2.5])
    same(x.round(decimals=2), [1.23, -27.5, 2.5], 1e-6)
    assert x.round(decimals=-1).tolist() == [0, -30, 0]
    assert x.round().tolist() == [1, -28, 2]


def test_bernoulli_of_one_probability():
    tp.manual_seed(0)
    assert 0.2 < tp.bernoulli(tp.zeros(2000), 0.25).mean().item() < 0.3
    assert 0.2 < tp.bernoulli(tp.full((2000,), 0.25)).mean().item() < 0.3


def test_medians_without_nan():
    x = tp.tensor([[3.0, math.nan, 1.0, 2.0], [math.nan, math.nan, math.nan, 4.0]])
    values, at = x.nanmedian(1)
    assert (values.tolist(), at.tolist()) == ([2, 4], [3, 3])
    assert tuple(x.nanmedian(0, True)[0].shape) == (1, 4)
    assert x.nanmedian().item() == 2
    y = x.clone().requires_grad_()
    y.nanmedian(1).values.sum().backward()
    assert y.grad.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1]]


def test_rows_of_a_table():
    w = tp.tensor([[3.0, 4.0], [0.3, 0.4], [1.0, 0.0]], requires_grad=True)
    at = tp.tensor([0, 1, 0])
    with tp.no_grad():
        assert tp.nn.functional.embedding(at, w, max_norm=1.0)[0].norm().item() == pytest.approx(1, abs=1e-5)
    assert w.norm(dim=1).max().item() == pytest.approx(1, abs=1e-5)
    (g,) = tp.autograd.grad(F.embedding(at, w, scale_grad_by_freq=True).sum(), w)
    assert g.tolist() == [[1, 1], [1, 1], [0, 0]]
    with pytest.raises(ValueError, match="padding_idx=7 is no row"):
        F.embedding(at, w, padding_idx=7)


def test_several_tensors_at_least():
    out = tp.atleast_2d(tp.tensor(1.0), tp.ones(3))
    assert [tuple(x.shape) for x in out] == [(1, 1), (1, 3)]
    assert tuple(tp.atleast_3d(tp.ones(2, 3)).shape) == (2, 3, 1)


def test_variance_of_complex_numbers():
    a = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
    z = tp.tensor(a, requires_grad=True)
    same(z.var(1), np.var(a, 1, ddof=1))
    same(z.std(0, correction=0), np.std(a, 0))
    both = tp.std_mean(z, False)
    same(both[0], np.std(a))
    same(both[1], a.mean())
    assert tp.autograd.gradcheck(lambda z: z.std(), (z,))


def test_places_of_the_largest():
    x = tp.tensor(RNG.permutation(16).reshape(1, 1, 4, 4) * 1.0)
    values, at = F.max_pool2d(x, 2, return_indices=True)
    assert x.reshape(-1)[at.reshape(-1)].tolist() == values.reshape(-1).tolist()
    assert F.max_pool2d(x, 2, 1).shape == (1, 1, 3, 3)
    values, at = F.adaptive_max_pool2d(x, (2, None), return_indices=True)
    assert tuple(values.shape) == (1, 1, 2, 4)


def test_weighted_covariance():
    a = RNG.normal(size=(3, 5))
    f, w = np.array([1, 2, 0, 3, 1]), np.abs(RNG.normal(size=5))
    same(tp.cov(tp.tensor(a), fweights=tp.tensor(f)), np.cov(a, fweights=f))
    same(tp.cov(tp.tensor(a), aweights=tp.tensor(w)), np.cov(a, aweights=w))
    with pytest.raises(ValueError, match=r"fweights has sizes \[4\] for 5 observations"):
        tp.cov(tp.tensor(a), fweights=tp.tensor(f[:4]))


def test_polygamma_of_a_tensor():
    x = tp.tensor([1.0, 2.0])
    assert x.polygamma(1).tolist() == tp.polygamma(1, x).tolist()
    assert x.polygamma_(1) is x


def test_weighted_losses():
    a, b, w = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3)), np.abs(RNG.normal(size=(2, 3)))
    x, y, v = map(tp.tensor, (a, b, w))
    same(F.mse_loss(x, y, weight=v), np.average((a - b) ** 2, weights=w))
    same(F.mse_loss(x, y, reduction="none", weight=v), (a - b) ** 2 * w)
    same(F.l1_loss(x, y, weight=v), np.average(np.abs(a - b), weights=w))
    same(F.huber_loss(x, y, reduction="sum", delta=100.0, weight=v), ((a - b) ** 2 / 2 * w).sum())


def test_closeness_of_whole_and_complex_numbers():
    assert tp.isclose(tp.tensor([2**60, 3]), tp.tensor([2**60, 4])).tolist() == [True, False]
    assert tp.isclose(tp.tensor([1 + 1j]), tp.tensor([1 + 1.000001j])).item()
    assert tp.isclose(tp.tensor([True]), tp.tensor([True])).item()
    assert not tp.isclose(tp.tensor([math.nan]), tp.tensor([math.nan])).item()
    with pytest.raises(ValueError, match="rtol=-1"):
        tp.isclose(tp.ones(1), tp.ones(1), -1.0)


def test_a_quotient_reflected_by_its_older_name():
    assert tp.tensor([2.0]).__rdiv__(3).tolist() == [1.5]


# ---- dtypes ---------------------------------------------------------------------------------------------------------


def test_pools_of_whole_numbers():
    x = tp.tensor([[[[1, 5], [7, 2]]]])
    assert F.max_pool2d(x, 2).tolist() == [[[[7]]]]
    assert F.max_pool2d(x, 2).dtype == tp.int64
    assert F.avg_pool2d(x, 2).tolist() == [[[[3]]]]  # 15 / 4, cut off
    with pytest.raises(TypeError, match="avg_pool2d: does not take"):
        F.avg_pool2d(x.to(tp.int32), 2)


def test_logarithms_of_sums_of_whole_and_complex_numbers():
    same(tp.logsumexp(tp.tensor([1, 2, 3]), 0), math.log(sum(math.exp(k) for k in (1, 2, 3))), 1e-6)
    z = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
    x = tp.tensor(z, requires_grad=True)
    same(tp.logsumexp(x, 1), np.log(np.exp(z).sum(1)), 1e-12)
    assert tp.autograd.gradcheck(lambda x: tp.logsumexp(x, (0, 1)), (x,))


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_neighbours_of_halves(dtype):
    eps, tiny = tp.finfo(dtype).eps, 2.0**-24 if dtype == tp.float16 else 2.0**-133
    one, zero, nan = (tp.tensor([v], dtype=dtype) for v in (1.0, 0.0, math.nan))
    up = tp.nextafter(one, one + 1)
    assert up.dtype == dtype
    assert up.item() == 1 + eps
    assert tp.nextafter(one, zero).item() == 1 - eps / 2
    assert tp.nextafter(zero, one).item() == tiny
    assert tp.nextafter(zero, -one).item() == -tiny
    assert tp.nextafter(-one, zero).item() == -(1 - eps / 2)
    assert math.isnan(tp.nextafter(nan, one).item())
    assert tp.nextafter(one, one).item() == 1
    assert tp.nextafter(one.double(), 2 * one.double()).item() == 1 + 2.0**-52


def test_whole_numbers_become_floats():
    assert tp.cov(tp.tensor([[0, 1, 2], [2, 1, 0]])).tolist() == [[1, -1], [-1, 1]]
    assert F.softsign(tp.tensor([1, -3])).tolist() == [0.5, -0.75]
    assert F.cosine_embedding_loss(tp.tensor([[1, 0]]), tp.tensor([[0, 1]]), tp.tensor([1])).item() == 1
    got = F.bilinear(*(tp.ones(s, dtype=tp.int32) for s in ((2, 3), (2, 3), (1, 3, 3))))
    assert got.dtype == tp.int32
    assert got.tolist() == [[9], [9]]


def test_several_spacings():
    a = RNG.normal(size=(5, 4))
    got = tp.gradient(tp.tensor(a), spacing=(0.5, 2.0))
    for x, y in zip(got, np.gradient(a, 0.5, 2.0), strict=True):
        same(x, y)
    at = np.array([0.0, 0.5, 2.0, 2.5]), np.arange(5) ** 2 * 1.0
    got = tp.gradient(tp.tensor(a), spacing=[tp.tensor(at[0]), tp.tensor(at[1])], dim=(1, 0), edge_order=2)
    for x, y in zip(got, np.gradient(a, *at, axis=(1, 0), edge_order=2), strict=True):
        same(x, y)
    with pytest.raises(ValueError, match="1 spacings for 2 dimensions"):
        tp.gradient(tp.tensor(a), spacing=(0.5,))


def test_combinations_of_three():
    want = list(itertools.combinations(range(5), 3))
    assert tp.combinations(tp.arange(5), 3).tolist() == [list(c) for c in want]
    want = list(itertools.combinations_with_replacement(range(3), 3))
    assert tp.combinations(tp.arange(3), 3, True).tolist() == [list(c) for c in want]
    assert tp.combinations(tp.arange(2), 3).shape == (0, 3)
    assert tp.combinations(tp.arange(2), 0).shape == (0,)


def test_fills_name_their_method():
    x = tp.ones(3)
    with pytest.raises(TypeError, match=r"^bernoulli_: "):
        x.bernoulli_("a")
    with pytest.raises(ValueError, match=r"^bernoulli_: p=2 is not a probability"):
        x.bernoulli_(2.0)
    with pytest.raises(ValueError, match=r"^cauchy_: sigma=0 is not positive"):
        x.cauchy_(0.0, 0.0)
    with pytest.raises(TypeError, match=r"^uniform_: "):
        x.uniform_("a")


def test_embedding_leaves_a_row_of_just_the_largest_norm_as_it_is():
    table = tp.tensor([[3.0, 4.0], [6.0, 8.0]])
    tp.nn.functional.embedding(tp.tensor([0, 1]), table, max_norm=5.0)
    assert table[0].tolist() == [3.0, 4.0] and table[1].norm().item() == pytest.approx(5.0)


def test_an_index_out_of_range_is_named_where_rows_are_shortened_too():
    table = tp.ones(3, 2)
    for at in (3, 300, -1):
        with pytest.raises(IndexError, match=f"{at}"):
            tp.nn.functional.embedding(tp.tensor([0, at]), table, max_norm=0.5)


@pytest.mark.parametrize("dims", [(2, 0), (1, 0), (-1, -3)])
def test_dimensions_are_taken_in_any_order(dims):
    x = tp.arange(24.0).reshape(2, 3, 4).requires_grad_()
    for keepdim in (False, True):
        y = x.mean(dims, keepdim)
        assert y.tolist() == x.detach().numpy().mean(dims, keepdims=keepdim).tolist()
    (y * y).sum().backward()
    n = 24 / y.numel()
    assert tp.allclose(x.grad, (2 * y / n).detach().expand(2, 3, 4))
    with pytest.raises(ValueError, match="appears twice"):
        x.sum((0, 1, -3))
