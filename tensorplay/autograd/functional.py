"""Jacobians, Hessians and their products with vectors, as functions of a function. Built on `grad` alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorplay as tp

from . import grad as _grad

Tensors = Any  # a Tensor or a tuple of them: the shape users pass is the shape they get back


def _as_tuple(value: Any, where: str, name: str) -> tuple[bool, tuple[Any, ...]]:
    """(was a tuple, tuple) of Tensors; raises TypeError otherwise."""
    is_tuple = isinstance(value, tuple)
    items = value if is_tuple else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, tp.Tensor):
            at = f" at index {i}" if is_tuple else ""
            raise TypeError(f"{where}: {name} must be a Tensor or a tuple of Tensors, got {type(item).__name__}{at}")
    return is_tuple, items


def _unwrap(items: Sequence[Any], was_tuple: bool) -> Any:
    return tuple(items) if was_tuple else items[0]


def _prepare(inputs: Sequence[Any], create_graph: bool) -> tuple[Any, ...]:
    """Copies that require grad; with create_graph they stay connected to the originals."""
    made = []
    for x in inputs:
        if create_graph and x.requires_grad:
            made.append(x.view_as(x))
        else:
            made.append(x.detach().requires_grad_(True))
    return tuple(made)


def _finish(items: Sequence[Any], create_graph: bool) -> tuple[Any, ...]:
    return tuple(items) if create_graph else tuple(x.detach() for x in items)


def _fill_zeros(
    grads: Sequence[Any], like: Sequence[Any], strict: bool, create_graph: bool, where: str
) -> tuple[Any, ...]:
    """None becomes zeros; under `strict` it is an error that names the input."""
    filled = []
    for i, (g, x) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(f"{where}: the output is independent of input {i}; strict=True forbids that")
            g = tp.zeros_like(x)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"{where}: the derivative with respect to input {i} is independent of the inputs; "
                "strict=True forbids that"
            )
        filled.append(g)
    return tuple(filled)


def _check_outputs(outputs: Sequence[Any], strict: bool, where: str) -> None:
    for i, out in enumerate(outputs):
        if strict and not out.requires_grad:
            raise RuntimeError(f"{where}: output {i} does not depend on the inputs; strict=True forbids that")


def _check_v(v: Sequence[Any], like: Sequence[Any], where: str, what: str) -> None:
    if len(v) != len(like):
        raise RuntimeError(f"{where}: v has {len(v)} tensors but there are {len(like)} {what}")
    for i, (a, b) in enumerate(zip(v, like, strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            raise RuntimeError(f"{where}: v[{i}] has size {list(a.shape)} but {what}[{i}] has size {list(b.shape)}")


def _grads(
    outputs: Sequence[Any], inputs: Sequence[Any], seeds: Sequence[Any] | None, create_graph: bool
) -> tuple[Any, ...]:
    """`grad` over the outputs that have history; all None when none has."""
    keep = [i for i, o in enumerate(outputs) if o.requires_grad]
    if not keep:
        return (None,) * len(inputs)
    picked = None if seeds is None else [seeds[i] for i in keep]
    return _grad(
        [outputs[i] for i in keep], inputs, picked, retain_graph=True, create_graph=create_graph, allow_unused=True
    )


def vjp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Value of `func` at `inputs` and the product of `v` with its Jacobian: v^T J.

    Args:
        func: takes the inputs, returns a Tensor or a tuple of Tensors.
        inputs: a Tensor or a tuple of Tensors.
        v: same sizes as the output; may be left out for a single-element output.
        create_graph: keep the results differentiable.
        strict: raise where an output does not depend on an input instead of giving zeros.
    Returns:
        (func(inputs), v^T J), the second shaped as `inputs`.
    """
    in_tuple, xs = _as_tuple(inputs, "vjp", "inputs")
    with tp.enable_grad():
        xs = _prepare(xs, create_graph)
        out_tuple, ys = _as_tuple(func(*xs), "vjp", "the output of func")
        _check_outputs(ys, strict, "vjp")
        if v is None:
            if len(ys) != 1 or ys[0].numel() != 1:
                raise RuntimeError("vjp: v may be left out only for a single output with one element")
            vs: tuple[Any, ...] = (tp.ones_like(ys[0]),)
        else:
            vs = _as_tuple(v, "vjp", "v")[1]
            _check_v(vs, ys, "vjp", "outputs")
        products = _fill_zeros(_grads(ys, xs, vs, create_graph), xs, strict, create_graph, "vjp")
    return _unwrap(_finish(ys, create_graph), out_tuple), _unwrap(_finish(products, create_graph), in_tuple)


def jvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Value of `func` at `inputs` and the product of its Jacobian with `v`: J v, by differentiating a vjp.

    Args and returns mirror `vjp`; `v` has the sizes of `inputs` and the product those of the output.
    """
    _, xs = _as_tuple(inputs, "jvp", "inputs")
    with tp.enable_grad():
        xs = _prepare(xs, create_graph)
        if v is None:
            if len(xs) != 1 or xs[0].numel() != 1:
                raise RuntimeError("jvp: v may be left out only for a single input with one element")
            vs: tuple[Any, ...] = (tp.ones_like(xs[0]),)
        else:
            vs = _as_tuple(v, "jvp", "v")[1]
            _check_v(vs, xs, "jvp", "inputs")
        out_tuple, ys = _as_tuple(func(*xs), "jvp", "the output of func")
        _check_outputs(ys, strict, "jvp")
        # u -> u^T J is linear in u; its own vjp with v is J v.
        us = tuple(tp.zeros_like(y).requires_grad_(True) for y in ys)
        pulled = _fill_zeros(_grads(ys, xs, us, True), xs, strict, False, "jvp")
        products = _fill_zeros(_grads(pulled, us, vs, create_graph), ys, strict, create_graph, "jvp")
    return _unwrap(_finish(ys, create_graph), out_tuple), _unwrap(_finish(products, create_graph), out_tuple)


def _forward_columns(func: Callable[..., Any], xs: Sequence[Any]) -> tuple[bool, Any, list[list[Any]]]:
    """Jacobian blocks [output][input] by one forward-mode pass for each input, its tangents the whole basis."""
    from . import forward_ad as fwad

    out_tuple, ys = _as_tuple(func(*xs), "jacobian", "the output of func")
    blocks: list[list[Any]] = [[] for _ in ys]
    for k, x in enumerate(xs):
        n = x.numel()
        level = tp._C._vmap_enter(n, "same")
        try:
            basis = tp._C._add_batch_dim(tp.eye(n, dtype=x.dtype).reshape(n, *x.shape), 0, level)
            with fwad.dual_level():
                duals = [fwad.make_dual(z, basis) if i == k else z for i, z in enumerate(xs)]
                outs = _as_tuple(func(*duals), "jacobian", "the output of func")[1]
                for i, (o, y) in enumerate(zip(outs, ys, strict=True)):
                    t = fwad.unpack_dual(o).tangent
                    block = tp._C._remove_batch_dim(tp.zeros_like(y) if t is None else t, level, n, y.dim())
                    blocks[i].append(block.reshape(tuple(y.shape) + tuple(x.shape)))
        finally:
            tp._C._vmap_exit(level)
    return out_tuple, ys, blocks


def _batched_rows(y: Any, xs: Sequence[Any], create_graph: bool) -> list[Any]:
    """Jacobian blocks of one output by one reverse pass, its cotangents the whole basis."""
    n = y.numel()
    grads: Sequence[Any] = [None] * len(xs)
    if y.requires_grad:
        basis = tp.eye(n, dtype=y.dtype).reshape(n, *y.shape)
        grads = _grad(
            y, xs, basis, retain_graph=True, create_graph=create_graph, allow_unused=True, is_grads_batched=True
        )
    sizes = [tuple(y.shape) + tuple(x.shape) for x in xs]
    return [
        tp.zeros(size, dtype=x.dtype) if g is None else g.reshape(size)
        for g, x, size in zip(grads, xs, sizes, strict=True)
    ]


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Jacobian of `func` at `inputs`: for one input and output a Tensor of size output.shape + input.shape.

    With tuples it is nested as [output][input]. `strategy` is "reverse-mode" or "forward-mode"; the latter needs
    vectorize=True and cannot be combined with strict. Zeros where an output does not depend on an input, unless
    `strict`.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy must be 'reverse-mode' or 'forward-mode', got {strategy!r}")
    if strict and vectorize:
        raise RuntimeError("jacobian: strict=True and vectorize=True are not supported together")
    in_tuple, xs = _as_tuple(inputs, "jacobian", "inputs")
    if strategy == "forward-mode":
        if not vectorize:
            raise NotImplementedError("jacobian: strategy='forward-mode' needs vectorize=True")
        with tp.enable_grad():
            xs = _prepare(xs, create_graph) if create_graph else xs
            out_tuple, _, rows = _forward_columns(func, xs)
        nested = [_unwrap(_finish(r, create_graph), in_tuple) for r in rows]
        return _unwrap(nested, out_tuple)
    with tp.enable_grad():
        xs = _prepare(xs, create_graph)
        out_tuple, ys = _as_tuple(func(*xs), "jacobian", "the output of func")
        _check_outputs(ys, strict, "jacobian")
        result = []
        for y in ys:
            if vectorize:
                result.append(_unwrap(_finish(_batched_rows(y, xs, create_graph), create_graph), in_tuple))
                continue
            blocks: list[list[Any]] = [[] for _ in xs]
            flat = y.reshape(-1)
            for j in range(y.numel()):
                gs = _fill_zeros(_grads([flat[j]], xs, None, create_graph), xs, strict, create_graph, "jacobian")
                for block, g in zip(blocks, gs, strict=True):
                    block.append(g)
            row = []
            for x, block in zip(xs, blocks, strict=True):
                size = tuple(y.shape) + tuple(x.shape)
                row.append(tp.stack(block, 0).reshape(size) if block else tp.zeros(size, dtype=x.dtype))
            result.append(_unwrap(_finish(row, create_graph), in_tuple))
    return _unwrap(result, out_tuple)


def _requiring(x: Any) -> Any:
    """The same value as a tensor that requires grad; a tangent, which detach() would drop, stays with it."""
    from . import forward_ad as fwad

    primal, tangent = fwad.unpack_dual(x)
    fresh = primal.detach().requires_grad_(True)
    return fresh if tangent is None else fwad.make_dual(fresh, tangent)


def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Hessian of a function with a single one-element output, nested as [input][input] for tuples."""
    in_tuple, _ = _as_tuple(inputs, "hessian", "inputs")

    def gradient(*xs: Any) -> Any:
        _, ys = _as_tuple(func(*xs), "hessian", "the output of func")
        if len(ys) != 1 or ys[0].numel() != 1:
            raise RuntimeError("hessian: func must return a single one-element Tensor")
        inner = tuple(x if x.requires_grad else _requiring(x) for x in xs)
        if any(a is not b for a, b in zip(inner, xs, strict=True)):
            _, ys = _as_tuple(func(*inner), "hessian", "the output of func")
        _check_outputs(ys, strict, "hessian")
        return _fill_zeros(_grads(ys, inner, None, True), inner, strict, strict, "hessian")

    rows = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows if in_tuple else (rows[0][0] if isinstance(rows[0], tuple) else rows[0])


def vhp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Value of a scalar function and the product of `v` with its Hessian: v^T H."""
    in_tuple, xs = _as_tuple(inputs, "vhp", "inputs")
    with tp.enable_grad():
        xs = _prepare(xs, create_graph)
        _, ys = _as_tuple(func(*xs), "vhp", "the output of func")
        if len(ys) != 1 or ys[0].numel() != 1:
            raise RuntimeError("vhp: func must return a single one-element Tensor")
        _check_outputs(ys, strict, "vhp")
        if v is None:
            if len(xs) != 1 or xs[0].numel() != 1:
                raise RuntimeError("vhp: v may be left out only for a single input with one element")
            vs: tuple[Any, ...] = (tp.ones_like(xs[0]),)
        else:
            vs = _as_tuple(v, "vhp", "v")[1]
            _check_v(vs, xs, "vhp", "inputs")
        gs = _fill_zeros(_grads(ys, xs, None, True), xs, strict, strict, "vhp")
        products = _fill_zeros(_grads(gs, xs, vs, create_graph), xs, strict, create_graph, "vhp")
    return _unwrap(_finish(ys, create_graph), False), _unwrap(_finish(products, create_graph), in_tuple)


def hvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Value of a scalar function and the product of its Hessian with `v`: H v (v^T H where H is continuous)."""
    in_tuple, xs = _as_tuple(inputs, "hvp", "inputs")
    value: list[Any] = []

    def gradient(*zs: Any) -> tuple[Any, ...]:
        _, ys = _as_tuple(func(*zs), "hvp", "the output of func")
        if len(ys) != 1 or ys[0].numel() != 1:
            raise RuntimeError("hvp: func must return a single one-element Tensor")
        _check_outputs(ys, strict, "hvp")
        value.append(ys[0])
        return _fill_zeros(_grads(ys, zs, None, True), zs, strict, strict, "hvp")

    _, products = jvp(gradient, xs, v if v is None or isinstance(v, tuple) else (v,), create_graph, strict)
    out = value[-1] if create_graph else value[-1].detach()
    return out, _unwrap(products, in_tuple)
