"""Uses of transforms that once failed. Each is small, and says what was wrong."""

from __future__ import annotations

import pytest
import tensorplay as tp
from tensorplay import func


def test_batched_gradients_of_a_number_summed() -> None:
    """sum_to of a 0-d sample: the batch was taken for what is summed."""

    def f(x: tp.Tensor) -> tp.Tensor:
        a = tp.linalg.vector_norm(x)
        return a * a.sum()

    x = tp.tensor([0.3, 0.5, 0.7], dtype=tp.float64)
    assert tp.allclose(tp.func.jacrev(tp.func.grad(f))(x), 2 * tp.eye(3, dtype=tp.float64))


def test_what_is_no_tensor_is_refused_by_name() -> None:
    x = tp.ones(3)
    with pytest.raises(ValueError, match="must only return Tensors, got type NoneType"):
        func.vmap(lambda x: (x, None))(x)
    assert func.vmap(lambda x: (x, None), out_dims=(0, None))(x)[1] is None
    assert func.vmap(lambda x: (x, None), out_dims=(0, None), chunk_size=2)(x)[0].shape == (3,)
    with pytest.raises(RuntimeError, match=r"linearize\(f, \*primals\): expected .* got int"):
        func.linearize(lambda x: (x, 3), x)
    _, push = func.linearize(lambda x: x * x, x)
    with pytest.raises(RuntimeError, match=r"linearize: the tangents are .* \[2\]; .* primals: .* \[3\]"):
        push(tp.ones(2))
    with pytest.raises(RuntimeError, match="jacfwd: Only allowed values for randomness"):
        func.jacfwd(lambda x: x, randomness="none")


def test_the_outer_level_stays_when_an_inner_one_ends() -> None:
    x, one = tp.tensor([0.3, 0.7], dtype=tp.float64), tp.ones(2, dtype=tp.float64)

    def inside(x):
        slope = func.jvp(lambda z: z.sin(), (x,), (one,))[1]
        return slope * x * x  # after the inner level has ended

    _, tangent = func.jvp(inside, (x,), (one,))
    assert tp.allclose(tangent, -x.sin() * x * x + 2 * x * x.cos())


def test_batched_tangents_written_into_a_view_of_what_has_none() -> None:
    x = tp.tensor([0.5, 2.0, 3.0], dtype=tp.float64)

    def f(x):
        y = tp.full((4,), 2.0, dtype=tp.float64)
        y[1:3].mul_(x[:2])
        return y * x.sum()

    assert tp.allclose(func.jacfwd(f)(x), func.jacrev(f)(x))

    def g(x):
        y = x[0] * tp.ones(3, dtype=tp.float64)
        y[1:].mul_(x[1:])
        return y

    assert tp.allclose(func.jacfwd(g)(x), func.jacrev(g)(x))
