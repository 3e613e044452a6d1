"""Compositions of transforms that once failed. Each is small, and says what was wrong."""

from __future__ import annotations

import tensorplay as tp


def test_batched_gradients_of_a_number_summed() -> None:
    """sum_to of a 0-d sample: the batch was taken for what is summed."""

    def f(x: tp.Tensor) -> tp.Tensor:
        a = tp.linalg.vector_norm(x)
        return a * a.sum()

    x = tp.tensor([0.3, 0.5, 0.7], dtype=tp.float64)
    assert tp.allclose(tp.func.jacrev(tp.func.grad(f))(x), 2 * tp.eye(3, dtype=tp.float64))
