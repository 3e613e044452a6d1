"""grad() with a batch of seeds (`is_grads_batched`): one product per item of the leading dimension, stacked."""

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
    rows = []
    for k in range(n):
        row = _C.grad(
            outs,
            inputs,
            tuple(None if g is None else g[k] for g in seeds),
            retain_graph=retain or k + 1 < n,
            create_graph=create,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )
        rows.append(row)
    if n == 0:
        ins = list(inputs.values()) if isinstance(inputs, dict) else inputs
        ins = (ins,) if isinstance(ins, _C.Tensor) else ins
        empty = tuple(i.new_zeros((0, *i.shape)) for i in ins)
        return dict(zip(inputs, empty, strict=True)) if isinstance(inputs, dict) else empty

    def stacked(values: list[Any]) -> Any:
        return None if values[0] is None else _C.functions.stack(values)

    if isinstance(rows[0], dict):
        return {key: stacked([r[key] for r in rows]) for key in rows[0]}
    return tuple(stacked([r[i] for r in rows]) for i in range(len(rows[0])))
