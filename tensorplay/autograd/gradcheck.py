"""gradcheck and gradgradcheck: derivatives against differences. Knows nothing of any op."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import tensorplay as tp

from . import forward_ad
from . import grad as _grad


class GradcheckError(RuntimeError):
    """A derivative that does not agree with differences, or breaks another promise of a backward."""


def _outputs(value: Any) -> tuple[Any, ...]:
    items = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return tuple(o for o in items if isinstance(o, tp.Tensor))


def _differentiable(t: Any) -> bool:
    return isinstance(t, tp.Tensor) and (t.is_floating_point() or t.is_complex())


def _flat(t: Any) -> Any:
    return t.detach().reshape(-1)


def _checked_inputs(inputs: Sequence[Any]) -> list[int]:
    """Positions of the inputs that require grad; refuses what a difference quotient cannot handle."""
    wanted = []
    for i, x in enumerate(inputs):
        if not isinstance(x, tp.Tensor) or not x.requires_grad:
            continue
        if x.dtype not in (tp.float64, tp.complex128):
            warnings.warn(
                f"gradcheck: input {i} is {x.dtype}, not double precision; the check will likely fail", stacklevel=4
            )
        if any(st == 0 and sz > 1 for st, sz in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"gradcheck: input {i} has a dimension with stride 0: its elements share memory; "
                "call contiguous() first"
            )
        wanted.append(i)
    if not wanted:
        raise ValueError("gradcheck: expects at least one input tensor that requires grad, none of them does")
    return wanted


def _evaluate(func: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    with tp.no_grad():
        return tuple(o.detach().clone() for o in _outputs(func(*inputs)))


def _numerical(func: Callable[..., Any], inputs: Sequence[Any], which: int, outs: int, eps: float) -> list[list[Any]]:
    """Central differences: [output][element of the input] -> flat column(s).

    A complex input gives d/dRe + i d/dIm pieces.
    """
    x = inputs[which]
    columns: list[list[Any]] = [[] for _ in range(outs)]
    steps = (eps, eps * 1j) if x.is_complex() else (eps,)
    with tp.no_grad():
        base = x.detach().clone()
        for j in range(x.numel()):
            for step in steps:
                values = []
                for sign in (1, -1):
                    moved = base.clone().reshape(-1)
                    moved[j] = moved[j] + sign * step
                    moved = moved.reshape(x.shape)
                    args = [
                        moved if i == which else (a.detach() if isinstance(a, tp.Tensor) else a)
                        for i, a in enumerate(inputs)
                    ]
                    values.append(_evaluate(func, args))
                for k in range(outs):
                    columns[k].append(_flat((values[0][k] - values[1][k]) / (2 * eps)))
    return columns


def _analytical(output: Any, inputs: Sequence[Any], scale: Any = 1) -> list[list[Any]]:
    """Rows of the vjp matrix: for each output element (and 1j where complex) the gradients of all inputs."""
    rows = []
    n = output.numel()
    units = (1.0, 1j) if output.is_complex() else (1.0,)
    for j in range(n):
        for unit in units:
            seed = tp.zeros_like(output).detach().reshape(-1)
            seed[j] = unit * scale
            rows.append(
                list(_grad([output], inputs, [seed.reshape(output.shape)], retain_graph=True, allow_unused=True))
            )
    return rows


def _close(a: Any, b: Any, atol: float, rtol: float) -> bool:
    if a.is_complex():
        a, b = tp.view_as_real(a.contiguous()), tp.view_as_real(b.to(a.dtype).contiguous())
    return bool(tp.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True))


def _fail(message: str) -> None:
    raise GradcheckError(message)


def _real_pairs(t: Any) -> list[float]:
    """Flat list of real numbers, complex as re, im pairs."""
    values: list[float] = []
    for v in _flat(t).tolist():
        values += [v.real, v.imag] if isinstance(v, complex) else [float(v)]
    return values


def _compare_reverse(func: Callable[..., Any], inputs: Sequence[Any], outs: Sequence[Any], wanted: Sequence[int],
                     eps: float, atol: float, rtol: float) -> None:  # fmt: skip
    xs = [inputs[i] for i in wanted]
    columns = {i: _numerical(func, inputs, i, len(outs), eps) for i in wanted}
    for k, out in enumerate(outs):
        rows = _analytical(out, xs) if out.requires_grad and _differentiable(out) else None
        for p, i in enumerate(wanted):
            numeric = [_real_pairs(c) for c in columns[i][k]]  # [input element(, re/im)][output element(, re/im)]
            n_in, n_out = len(numeric), len(_real_pairs(out))
            for a in range(n_in):
                for b in range(n_out):
                    exact = 0.0
                    if rows is not None and rows[b][p] is not None:
                        exact = _real_pairs(rows[b][p])[a]
                    d = numeric[a][b] if _differentiable(out) else 0.0
                    if exact != exact and d != d:
                        continue
                    if not abs(exact - d) <= atol + rtol * abs(d):
                        _fail(
                            f"gradcheck: Jacobian mismatch for output {k} with respect to input {i}: "
                            f"element [{a}][{b}] is {exact:.10g} analytically, {d:.10g} by differences"
                        )


def _compare_fast(func: Callable[..., Any], inputs: Sequence[Any], outs: Sequence[Any], wanted: Sequence[int],
                  eps: float, atol: float, rtol: float) -> None:  # fmt: skip
    """One random projection u^T J v for each (input, output) instead of the full Jacobian."""
    for i in wanted:
        x = inputs[i]
        v = tp.rand(x.shape, dtype=x.dtype) if not x.is_complex() else tp.rand(x.shape, dtype=tp.float64).to(x.dtype)
        with tp.no_grad():
            args = [[(a.detach() if isinstance(a, tp.Tensor) else a) for a in inputs] for _ in range(2)]
            args[0][i], args[1][i] = x.detach() + eps * v, x.detach() - eps * v
            hi, lo = _evaluate(func, args[0]), _evaluate(func, args[1])
        for k, out in enumerate(outs):
            if not _differentiable(out):
                continue
            u = tp.rand(out.shape, dtype=tp.float64).to(out.dtype)
            numeric = sum(_dot(u, (hi[k] - lo[k]) / (2 * eps)))
            exact = 0.0
            if out.requires_grad:
                (g,) = _grad([out], [x], [u], retain_graph=True, allow_unused=True)
                exact = 0.0 if g is None else sum(_dot(g, v))
            n = max(1, out.numel())
            if not abs(exact - numeric) <= atol * n + rtol * abs(numeric):
                _fail(
                    f"gradcheck: projected Jacobian mismatch for output {k} with respect to input {i}: "
                    f"{exact:.10g} analytically, {numeric:.10g} by differences"
                )


def _dot(a: Any, b: Any) -> list[float]:
    return [p * q for p, q in zip(_real_pairs(a), _real_pairs(b), strict=True)]


def _compare_forward(
    func: Callable[..., Any], inputs: Sequence[Any], wanted: Sequence[int], eps: float, atol: float, rtol: float
) -> None:
    from . import forward_ad as fwad

    for i in wanted:
        x = inputs[i].detach()
        outs = len(_evaluate(func, [a.detach() if isinstance(a, tp.Tensor) else a for a in inputs]))
        columns = _numerical(func, inputs, i, outs, eps)
        units = (1.0, 1j) if x.is_complex() else (1.0,)
        col = 0
        for j in range(x.numel()):
            for unit in units:
                direction = tp.zeros_like(x).reshape(-1)
                direction[j] = unit
                with fwad.dual_level():
                    args = [
                        fwad.make_dual(x, direction.reshape(x.shape))
                        if n == i
                        else (a.detach() if isinstance(a, tp.Tensor) else a)
                        for n, a in enumerate(inputs)
                    ]
                    for k, o in enumerate(_outputs(func(*args))):
                        if not _differentiable(o):
                            continue
                        t = fwad.unpack_dual(o).tangent
                        t = tp.zeros_like(o).detach() if t is None else t
                        if not _close(_flat(t), columns[k][col], atol, rtol):
                            _fail(
                                f"gradcheck: forward-mode mismatch for output {k} with respect to input {i}, "
                                f"element {j}: {_flat(t).tolist()} against {columns[k][col].tolist()} by differences"
                            )
                col += 1


def _check_promises(func: Callable[..., Any], inputs: Sequence[Any], outs: Sequence[Any], wanted: Sequence[int],
                    nondet_tol: float, undefined: bool, dtypes: bool) -> None:  # fmt: skip
    xs = [inputs[i] for i in wanted]
    diff = [o for o in outs if _differentiable(o) and o.requires_grad]
    if not diff:
        return
    seeds = [tp.rand(o.shape, dtype=tp.float64).to(o.dtype) for o in diff]
    first = _grad(diff, xs, seeds, retain_graph=True, allow_unused=True)
    again = _grad(diff, xs, seeds, retain_graph=True, allow_unused=True)
    for i, a, b in zip(wanted, first, again, strict=True):
        if a is None:
            continue
        if tuple(a.shape) != tuple(inputs[i].shape):
            _fail(f"gradcheck: gradient of input {i} has size {list(a.shape)}, the input {list(inputs[i].shape)}")
        if dtypes and a.dtype != inputs[i].dtype:
            _fail(f"gradcheck: gradient of input {i} is {a.dtype}, the input {inputs[i].dtype}")
        if not _close(a, b, nondet_tol, 0.0):
            _fail(
                f"gradcheck: backward is not reentrant: two runs differ for input {i} "
                f"by more than nondet_tol={nondet_tol}"
            )
    zeros = _grad(diff, xs, [tp.zeros_like(s) for s in seeds], retain_graph=True, allow_unused=True)
    for i, z in zip(wanted, zeros, strict=True):
        if z is not None and any(v != 0 for v in _real_pairs(z)):
            _fail(f"gradcheck: gradient of input {i} is not multiplied by grad_output: it is nonzero for a zero one")
    if undefined:
        for o in diff:
            fn = o.grad_fn
            if fn is None:
                continue
        if len(diff) > 1:
            for k in range(len(diff)):
                alone = _grad([diff[k]], xs, [seeds[k]], retain_graph=True, allow_unused=True)
                full = _grad(
                    diff,
                    xs,
                    [s if n == k else tp.zeros_like(s) for n, s in enumerate(seeds)],
                    retain_graph=True,
                    allow_unused=True,
                )
                for i, a, b in zip(wanted, alone, full, strict=True):
                    a = tp.zeros_like(inputs[i]) if a is None else a
                    b = tp.zeros_like(inputs[i]) if b is None else b
                    if not _close(a, b, 1e-12, 1e-9):
                        _fail(f"gradcheck: an undefined gradient is not treated as zero for output {k}, input {i}")


def _check_batched(outs: Sequence[Any], xs: Sequence[Any], wanted: Sequence[int]) -> None:
    for k, o in enumerate(outs):
        if not (_differentiable(o) and o.requires_grad):
            continue
        seeds = tp.rand((2, *o.shape), dtype=tp.float64).to(o.dtype)
        together = _grad([o], xs, [seeds], retain_graph=True, allow_unused=True, is_grads_batched=True)
        for b in range(2):
            alone = _grad([o], xs, [seeds[b]], retain_graph=True, allow_unused=True)
            for i, t, a in zip(wanted, together, alone, strict=True):
                if t is not None and not _close(t[b], a, 1e-10, 1e-8):
                    _fail(f"gradcheck: batched gradient of output {k} for input {i} differs from one by one")


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares derivatives of `func` with central differences.

    Args:
        func: takes `inputs`, returns a Tensor or a tuple of Tensors.
        inputs: Tensor or tuple; those that require grad are checked and should be float64 or complex128.
        eps: step of the differences. atol, rtol: allowed |analytic - numeric| <= atol + rtol * |numeric|.
        raise_exception: raise GradcheckError, or return False.
        nondet_tol: how far two backward runs may differ.
        fast_mode: one random projection for each input and output instead of the full Jacobian.
    Returns:
        True when all agree.
    Raises:
        GradcheckError: names the output, input and element. ValueError: no input requires grad.
    Example:
        >>> x = tp.tensor([1.0, 2.0], dtype=tp.float64, requires_grad=True)
        >>> tp.autograd.gradcheck(tp.exp, (x,))
        True
    """
    del masked  # only dense tensors exist here
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        if not check_forward_ad and not check_backward_ad:
            raise ValueError("gradcheck: check_forward_ad and check_backward_ad are both False: nothing to check")
        if check_batched_forward_grad and not check_forward_ad:
            raise ValueError("gradcheck: check_batched_forward_grad needs check_forward_ad=True")
        wanted = _checked_inputs(args)
        with tp.enable_grad():
            outs = _outputs(func(*args))
        if not outs:
            raise ValueError("gradcheck: func returned no Tensor")
        if check_backward_ad:
            complex_case = any(t.is_complex() for t in (*outs, *(args[i] for i in wanted)))
            compare = _compare_fast if fast_mode and not complex_case else _compare_reverse
            compare(func, args, outs, wanted, eps, atol, rtol)
            _check_promises(func, args, outs, wanted, nondet_tol, check_undefined_grad, check_grad_dtypes)
            if check_batched_grad:
                _check_batched(outs, [args[i] for i in wanted], wanted)
        if check_forward_ad:
            _compare_forward(func, args, wanted, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _tracked(x: Any) -> tuple[Any, Any]:
    """x as something that gradients are taken of, its tangent kept, and the leaf they arrive at."""
    primal, tangent = forward_ad.unpack_dual(x)
    leaf = primal.detach().requires_grad_(True)
    return (leaf if tangent is None else forward_ad.make_dual(leaf, tangent)), leaf


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Checks second derivatives: those of the gradient of `func`, in the inputs and in random grad_outputs."""
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    with tp.enable_grad():
        outs = [o for o in _outputs(func(*args)) if _differentiable(o)]
    if grad_outputs is None:
        seeds = []
        for o in outs:
            s = tp.rand(o.shape, dtype=tp.float64).to(o.dtype)
            if gen_non_contig_grad_outputs and s.dim() > 0:
                s = tp.stack([s, s], -1)[..., 0]
            seeds.append(s.requires_grad_(True))
    else:
        given = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
        seeds = [s.detach().requires_grad_(True) for s in given]
    n = len(args)

    def gradient(*all_args: Any) -> tuple[Any, ...]:
        xs, gs = all_args[:n], all_args[n:]
        with tp.enable_grad():
            lost = [
                isinstance(x, tp.Tensor) and args[i].requires_grad and not x.requires_grad for i, x in enumerate(xs)
            ]
            pairs = [_tracked(x) if again else (x, x) for x, again in zip(xs, lost, strict=True)]
            live = [x for x, _ in pairs]
            ys = [o for o in _outputs(func(*live)) if _differentiable(o)]
            leaves = [x for i, (_, x) in enumerate(pairs) if isinstance(x, tp.Tensor) and args[i].requires_grad]
            keep = [k for k, y in enumerate(ys) if y.requires_grad]
            got = _grad([ys[k] for k in keep], leaves, [gs[k] for k in keep], create_graph=True, allow_unused=True)
            return tuple(g if g is not None else tp.zeros_like(x) for g, x in zip(got, leaves, strict=True))

    return gradcheck(
        gradient, args + tuple(seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


class _Callable(types.ModuleType):
    """Importing the module puts it where the function of its name is: called, it is that function."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
