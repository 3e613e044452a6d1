"""What a branch that is not taken depends on gets gradient 0, whatever arrives: infinite and NaN gradients too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorplay as tp
from tensorplay.autograd import forward_ad

nn = tp.nn.functional
C = tp.tensor([True, False])
Ops = Callable[..., tp.Tensor]
# op, input, where the gradient is cut
ONE: dict[str, tuple[Ops, list[float], list[bool]]] = {
    "relu": (tp.relu, [1.0, -2.0], [False, True]),
    "relu6": (nn.relu6, [7.0, 0.2], [True, False]),
    "hardtanh": (nn.hardtanh, [3.0, 0.2], [True, False]),
    "hardshrink": (nn.hardshrink, [0.1, 2.0], [True, False]),
    "softshrink": (nn.softshrink, [0.1, 2.0], [True, False]),
    "hardsigmoid": (nn.hardsigmoid, [7.0, 0.2], [True, False]),
    "threshold": (lambda x: nn.threshold(x, 0.1, 0.0), [0.0, 0.2], [True, False]),
    "clamp": (lambda x: tp.clamp(x, 0, 1), [0.5, -2.0], [False, True]),
    "masked_fill": (lambda x: x.masked_fill(C, 0.0), [0.5, -2.0], [True, False]),
    "where": (lambda x: tp.where(C, x, 0.0), [1.0, 2.0], [False, True]),
    "maximum": (lambda x: tp.maximum(x, tp.zeros(2, dtype=tp.float64)), [1.0, -2.0], [False, True]),
}


@pytest.mark.parametrize("g", [float("inf"), float("-inf"), float("nan"), 2.0])
@pytest.mark.parametrize("name", ONE)
def test_the_gradient_is_cut(name: str, g: float) -> None:
    op, at, cut = ONE[name]
    for graph in (False, True):
        x = tp.tensor(at, dtype=tp.float64, requires_grad=True)
        (got,) = tp.autograd.grad(op(x), x, tp.full((2,), g, dtype=tp.float64), create_graph=graph)
        np.testing.assert_array_equal(got.detach().numpy() == 0, cut)
    x = tp.tensor(at, dtype=tp.float64)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(op(forward_ad.make_dual(x, tp.full((2,), g, dtype=tp.float64)))).tangent
        np.testing.assert_array_equal(tangent.numpy() == 0, cut)


def test_a_root_of_what_was_cut_off() -> None:
    """sqrt has an infinite slope at the 0 that relu and clamp leave."""
    for op in (tp.relu, lambda x: tp.clamp_min(x, 0), lambda x: tp.where(x > 0, x, 0.0)):
        x = tp.tensor([4.0, -1.0], requires_grad=True)
        op(x).sqrt().sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [0.25, 0.0])
    whole = tp.define_op("root_of_positive(Tensor x) -> Tensor out", expr="sqrt(relu(x))")
    x = tp.tensor([4.0, -1.0], requires_grad=True)
    whole(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.25, 0.0])


@pytest.mark.parametrize("op", [tp.logaddexp, tp.logaddexp2])
def test_infinite_terms_of_a_sum_of_powers(op: Any) -> None:
    inf = float("inf")
    a = tp.tensor([inf, inf, -inf, -inf, 0.0], dtype=tp.float64, requires_grad=True)
    b = tp.tensor([0.0, inf, -inf, 0.0, inf], dtype=tp.float64, requires_grad=True)
    da, db = tp.autograd.grad(op(a, b).sum(), [a, b])
    np.testing.assert_array_equal(da.numpy(), [1, 0.5, 0, 0, 0])
    np.testing.assert_array_equal(db.numpy(), [0, 0.5, 0, 1, 1])


def test_products_by_index_of_infinite_numbers() -> None:
    inf = float("inf")
    x = tp.tensor([-104.0, -inf, 0.5, 2.0], dtype=tp.float64)
    src = tp.tensor([0.25, -inf, 1e-8, 3.0], dtype=tp.float64)
    at = tp.tensor([0, 0, 1, 3])
    want = [inf, -inf, 0.5, 6.0]
    np.testing.assert_array_equal(tp.scatter_reduce(x, 0, at, src, "prod").numpy(), want)
    x.requires_grad_()
    src.requires_grad_()
    for got in (tp.scatter_reduce(x, 0, at, src, "prod"), tp.index_reduce(x, 0, at, src, "prod")):
        np.testing.assert_array_equal(got.detach().numpy(), want)


def test_lerp_meets_its_ends() -> None:
    a, b = tp.tensor([1e16, -1.0, 0.1]), tp.tensor([1.0, 1e16, 0.7])
    np.testing.assert_array_equal(tp.lerp(a, b, 0.0).numpy(), a.numpy())
    np.testing.assert_array_equal(tp.lerp(a, b, 1.0).numpy(), b.numpy())


def test_nan_passes_what_selects() -> None:
    nan = float("nan")
    x = tp.tensor([nan, 2.0])
    names = "softshrink", "hardshrink", "softplus", "hardtanh", "relu6", "leaky_relu", "hardswish", "hardsigmoid"
    for f in (getattr(nn, name) for name in names):
        np.testing.assert_array_equal(tp.isnan(f(x)).numpy(), [True, False])
    for given in ({"min": nan}, {"max": nan}, {"min": nan, "max": 1.0}, {"min": 0.0, "max": nan}):
        assert tp.isnan(tp.clamp(x, **given)).all()
    bound = tp.tensor([1.0, nan])
    assert tp.isnan(tp.clamp_min(x, bound)).all() and tp.isnan(tp.clamp_max(x, bound)).all()


def test_slope_of_a_scaled_bessel_function_at_tiny_arguments() -> None:
    x = tp.tensor([1e-310, 1e-30, 1e-5, 0.04, 0.06], dtype=tp.float64, requires_grad=True)
    tp.special.i1e(x).sum().backward()
    # exp(-x) (i0(x) - i1(x) / x - i1(x))
    want = [0.5, 0.5, 0.499990000093749, 0.461463356238694, 0.443252465055799]
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12)
