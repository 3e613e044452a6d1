"""`opcheck`: is a custom op registered as it behaves? Runs it, and looks at what it changed and returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorplay as tp

from ._custom_op import CustomOpDef, _as_declared, _flattened, _tensors

DEFAULT_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """A check of `opcheck` failed; the message names it."""


def opcheck(
    op: CustomOpDef,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = DEFAULT_TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str | Exception]:
    """Checks a custom op's registrations on one call.

    Args:
        op: what `custom_op` returned.
        args, kwargs: arguments of the call; tensors that require grad have their derivative tried.
        test_utils: which checks to run. `test_schema`: nothing is changed that mutates_args does not name, results are
            fresh memory of the declared types. `test_autograd_registration`: results that require grad have a backward.
            `test_faketensor`: `register_fake` gives the sizes and dtypes of the real results.
            `test_aot_dispatch_dynamic`: values and gradients do not depend on the memory layout of the arguments.
        raise_exception: raise at the first failure instead of returning it.
        atol, rtol: tolerances of the last check; by default those of the dtype.

    Returns:
        The name of each check with "SUCCESS", or with the exception where raise_exception is False.

    Raises:
        OpCheckError: a check failed.
        ValueError: an unknown name in test_utils.

    Example:
        >>> @tensorplay.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: tensorplay.Tensor) -> tensorplay.Tensor:
        ...     return x * 2
        >>> tensorplay.library.opcheck(twice, (tensorplay.ones(3),), test_utils="test_schema")
        {'test_schema': 'SUCCESS'}
    """
    checks: dict[str, Callable[[_Call], None]] = {
        "test_schema": _schema,
        "test_autograd_registration": _autograd,
        "test_faketensor": _fake,
        "test_aot_dispatch_dynamic": lambda call: _layouts(call, atol, rtol),
    }
    results: dict[str, str | Exception] = {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        if name not in checks:
            raise ValueError(f"opcheck: no check '{name}'; there are {', '.join(checks)}")
        try:
            checks[name](_Call(op, args, kwargs or {}))
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck({op._qualname}): {name} failed: {error}") from error
            results[name] = error
    return results


class _Call:
    def __init__(self, op: CustomOpDef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs
        self.given = op._schema.bind(op._qualname, args, kwargs)

    def copied(self, copy: Callable[[Any], Any]) -> dict[str, Any]:
        """Fresh tensors in place of the arguments, so that a check leaves the caller's as they are."""

        def each(v: Any) -> Any:
            if isinstance(v, tp.Tensor):
                return copy(v.detach()).requires_grad_(v.requires_grad)
            return [each(x) for x in v] if isinstance(v, (list, tuple)) else v

        return {k: each(v) for k, v in self.given.items()}

    def run(self, given: dict[str, Any]) -> list[Any]:
        if self.op._schema.mutates:
            return _results(self.op._change(given))
        flat, layout = _flattened(self.op._schema, given)
        return _results(_as_declared(self.op._schema, self.op._function.apply(*flat, layout)))


def _results(out: Any) -> list[Any]:
    found = list(out) if isinstance(out, (tuple, list)) else [out]
    return [t for v in found for t in _tensors(v)]


def _clone(t: Any) -> Any:
    return t.clone()


def _spread(t: Any) -> Any:
    """The same values with a gap after each element."""
    wide = tp.zeros((*t.shape, 2), dtype=t.dtype)
    wide[..., 0] = t
    return wide[..., 0]


def _schema(call: _Call) -> None:
    given = call.copied(_clone)
    before = {k: [np.array(t.detach().numpy()) for t in _tensors(v)] for k, v in given.items()}
    with tp.no_grad():
        call.run(given)
    for name, arrays in before.items():
        now = [t.detach().numpy() for t in _tensors(given[name])]
        changed = any(
            not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(arrays, now, strict=True)
        )
        if changed and name not in call.op._schema.mutates:
            raise RuntimeError(f"'{name}' is changed in place, but mutates_args does not name it")


def _autograd(call: _Call) -> None:
    given = call.copied(_clone)
    leaves = [t for v in given.values() for t in _tensors(v) if t.requires_grad]
    if not leaves or call.op._schema.mutates:
        return
    outs = [t for t in call.run(given) if t.requires_grad]
    if not outs:
        raise RuntimeError("an argument requires grad, but no result does")
    grads = tp.autograd.grad(outs, leaves, [tp.ones_like(t) for t in outs], allow_unused=True)
    for leaf, g in zip(leaves, grads, strict=True):
        if g is not None and g.shape != leaf.shape:
            raise RuntimeError(f"a gradient has sizes {list(g.shape)}, its argument {list(leaf.shape)}")


def _fake(call: _Call) -> None:
    op = call.op
    if op._fake is None:
        raise RuntimeError(f"There was no fake impl registered for {op!r}; use {op._name}.register_fake to add one")
    with tp.no_grad():
        real = call.run(call.copied(_clone))
        made = _results(op._fake(*call.args, **call.kwargs))
    if len(real) != len(made):
        raise RuntimeError(f"the fake gives {len(made)} tensors, the op {len(real)}")
    for i, (a, b) in enumerate(zip(made, real, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise RuntimeError(f"result {i} is {b.dtype} {list(b.shape)}, the fake gives {a.dtype} {list(a.shape)}")


def _layouts(call: _Call, atol: float | None, rtol: float | None) -> None:
    seen = []
    for copy in (_clone, _spread):
        given = call.copied(copy)
        outs = call.run(given)
        leaves = [t for v in given.values() for t in _tensors(v) if t.requires_grad]
        roots = [t for t in outs if t.requires_grad]
        grads: Sequence[Any] = ()
        if leaves and roots:
            grads = tp.autograd.grad(roots, leaves, [tp.ones_like(t) for t in roots], allow_unused=True)
        seen.append([*outs, *(g for g in grads if g is not None)])
    for a, b in zip(*seen, strict=True):
        loose = 1e-4 if a.element_size() < 8 else 1e-8
        close = np.allclose(
            a.detach().numpy(),
            b.detach().numpy(),
            loose if rtol is None else rtol,
            loose if atol is None else atol,
            True,
        )
        if not close:
            raise RuntimeError("results or gradients depend on the memory layout of the arguments")
