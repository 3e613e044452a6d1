"""grad() with a batch of seeds (`is_grads_batched`): one pass whose cotangents are batched."""

from __future__ import annotations

from typing import Any

from .. import _C


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any, retain: bool, create: bool, allow_unused: bool, materialize: bool
) -> Any:
    """The gradients for each item of the leading dimension of every seed, stacked along a new leading dimension.

    Raises:
        RuntimeError: no seed has a batch dimension, sizes differ, or an output is a GradientEdge.
    """
    outs = (outputs,) if isinstance(outputs, _C.Tensor) else tuple(outputs)
    seeds = (grad_outputs,) if isinstance(grad_outputs, _C.Tensor) else tuple(grad_outputs or ())
    if any(not isinstance(o, _C.Tensor) for o in outs):
        raise RuntimeError("grad: is_grads_batched is not supported with a GradientEdge")
    if len(seeds) != len(outs):
        raise RuntimeError(f"grad: got {len(outs)} tensors and {len(seeds)} gradients")
    sizes = set()
    for i, (o, g) in enumerate(zip(outs, seeds, strict=True)):
        if g is None:
            continue
        if g.dim() == 0 or tuple(g.shape[1:]) != tuple(o.shape):
            raise RuntimeError(
                f"grad: If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                f"dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {list(g.shape)} and output[{i}] "
                f"has a shape of {list(o.shape)}."
            )
        sizes.add(int(g.shape[0]))
    if not sizes:
        raise RuntimeError("grad: is_grads_batched needs at least one seed")
    if len(sizes) != 1:
        raise RuntimeError(f"grad: the seeds have different batch sizes {sorted(sizes)}")
    n = sizes.pop()
    level = _C._vmap_enter(n, "error")
    try:
        rows = _C.grad(
            outs,
            inputs,
            tuple(None if g is None else _C._add_batch_dim(g, 0, level) for g in seeds),
            retain_graph=retain,
            create_graph=create,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )

        def stacked(g: Any) -> Any:
            return None if g is None else _C._remove_batch_dim(g, level, n, 0)

        if isinstance(rows, dict):
            return {key: stacked(g) for key, g in rows.items()}
        return tuple(stacked(g) for g in rows)
    finally:
        _C._vmap_exit(level)
