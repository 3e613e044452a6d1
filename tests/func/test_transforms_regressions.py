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
    with pytest.raises(RuntimeError, match=r"linearize: tangents of sizes \[\(2,\)\]; .* primals, \[\(3,\)\]"):
        push(tp.ones(2))
    with pytest.raises(ValueError, match="jacfwd: Only allowed values for randomness"):
        func.jacfwd(lambda x: x, randomness="none")
