"""checkpoint: forget what a function saved for backward and run it again when backward needs it."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import tensorplay as tp
from tensorplay import _C
from tensorplay.autograd.graph import saved_tensors_hooks

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

_EARLY_STOP = True


class CheckpointError(RuntimeError):
    """The function did not do the same thing when it ran again."""


class _StopRecompute(Exception):
    """Everything backward asked for has been made again."""


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Any:
    """Whether running again stops as soon as the last saved value is there."""
    global _EARLY_STOP
    before, _EARLY_STOP = _EARLY_STOP, enable
    try:
        yield
    finally:
        _EARLY_STOP = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool) -> Any:
    """Accepted for compatibility; mismatches always name sizes, dtypes and position here."""
    del enabled
    yield


def noop_context_fn() -> tuple[Any, Any]:
    """The `context_fn` that changes nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Holder:
    """Stands for one saved value until it is made again."""

    __slots__ = ("__weakref__",)


def _describe(t: Any) -> tuple[Any, ...]:
    return tuple(t.shape), t.dtype, t.device


class _Frame:
    """One checkpointed call: what it saved, in order, and the values made again for each backward pass."""

    def __init__(self, run: Callable[[], Any], early_stop: bool, check: bool) -> None:
        self.run = run
        self.early_stop = early_stop
        self.check = check
        self.holders: list[Any] = []
        self.meta: list[tuple[Any, ...]] = []
        self.values: dict[int, Any] = {}

    def pack(self, t: Any) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.meta.append(_describe(t))
        return holder

    def unpack(self, holder: _Holder) -> Any:
        index = next((i for i, ref in enumerate(self.holders) if ref() is holder), -1)
        if index not in self.values:
            self.recompute()
        if index not in self.values:
            raise CheckpointError(
                f"checkpoint: running the function again saved {len(self.values)} values, "
                f"the first run saved {len(self.holders)}"
            )
        return self.values.pop(index)

    def recompute(self) -> None:
        frame = self
        made = 0
        needed = {i for i, ref in enumerate(self.holders) if ref() is not None}
        last = max(needed, default=-1)

        def pack(t: Any) -> Any:
            nonlocal made
            if made >= len(frame.meta):
                raise CheckpointError(
                    "checkpoint: running the function again saved more than "
                    f"the {len(frame.meta)} values of the first run"
                )
            if frame.check and _describe(t) != frame.meta[made]:
                raise CheckpointError(
                    f"checkpoint: saved value {made} was {frame.meta[made][:2]} in the first run and is "
                    f"{_describe(t)[:2]} now: the function must do the same both times"
                )
            if made in needed:
                frame.values[made] = t.detach()
            made += 1
            if frame.early_stop and made > last:
                raise _StopRecompute
            return t

        with saved_tensors_hooks(pack, lambda t: t), tp.enable_grad(), contextlib.suppress(_StopRecompute):
            self.run()


class _Arguments:
    """What a run is called with.

    Saved-tensor hooks around the call decide how its tensors are kept, as for any saved one; without hooks they are
    kept as they are, and a change in place since is an error: the run would not do the same.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.names = tuple(kwargs)
        hooks = _C._top_saved_hooks()
        self.unpack = hooks and hooks[1]
        with tp.no_grad():
            self.kept = [self._keep(a, hooks and hooks[0]) for a in (*args, *kwargs.values())]

    @staticmethod
    def _keep(a: Any, pack: Callable[[Any], Any] | None) -> tuple[str, Any, Any]:
        if not isinstance(a, tp.Tensor) or (pack is None and a.is_inference()):
            return "value", a, None
        return ("tensor", a, a._version) if pack is None else ("packed", pack(a), a.requires_grad)

    def _again(self, i: int, how: str, a: Any, more: Any) -> Any:
        if how == "packed":
            return self.unpack(a).detach().requires_grad_(more)
        if how == "tensor" and a._version != more:
            raise RuntimeError(
                "checkpoint: one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: argument {i}, of sizes {list(a.shape)}, is at version {a._version}; expected version "
                f"{more} instead. Change a copy, or make the change before the checkpointed call"
            )
        return a

    def again(self) -> tuple[list[Any], dict[str, Any]]:
        values = [self._again(i, *k) for i, k in enumerate(self.kept)]
        split = len(values) - len(self.names)
        return values[:split], dict(zip(self.names, values[split:], strict=True))


class _Conditions:
    """What a run depends on beside its arguments."""

    def __init__(self, preserve: bool) -> None:
        self.random = tp.get_rng_state() if preserve else None
        self.autocast = tp.is_autocast_enabled(), tp.get_autocast_dtype()

    @contextlib.contextmanager
    def again(self) -> Any:
        enabled, dtype = self.autocast
        with _same_random(self.random), tp.autocast("cpu", dtype, enabled):
            yield


@contextlib.contextmanager
def _same_random(state: Any) -> Any:
    """Runs with the random state of the first time, then puts the current one back."""
    if state is None:
        yield
        return
    current = tp.get_rng_state()
    tp.set_rng_state(state)
    try:
        yield
    finally:
        tp.set_rng_state(current)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Value of `function(*args, **kwargs)`; what backward needs is computed again instead of kept.

    Args:
        function: does the same thing each time it is called.
        use_reentrant: True for the form that runs a backward inside backward (no keyword arguments, no `grad()`);
            False, which is the better one, saves nothing and runs again on demand. None warns and means True.
        context_fn: gives two context managers, for the first run and for running again.
        determinism_check: "default" compares sizes and dtypes, "none" does not.
        early_stop: stop running again once the last needed value is there.
        preserve_rng_state: (keyword) run again with the same random numbers; default True.
    Raises:
        CheckpointError: the second run saved other values than the first.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: determinism_check must be 'default' or 'none', got {determinism_check!r}")
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: pass use_reentrant explicitly; use_reentrant=False is recommended", UserWarning, stacklevel=2
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError(f"checkpoint: unexpected keyword arguments {sorted(kwargs)} with use_reentrant=True")
        if context_fn is not None or debug:
            raise ValueError("checkpoint: context_fn and debug need use_reentrant=False")
        return _CheckpointFunction.apply(function, preserve, *args)
    first, again = context_fn() if context_fn is not None else noop_context_fn()
    if not tp.is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    conditions, arguments = _Conditions(preserve), _Arguments(args, kwargs)

    def run() -> None:
        positional, named = arguments.again()
        with conditions.again(), again:
            function(*positional, **named)

    frame = _Frame(run, early_stop and _EARLY_STOP, determinism_check == "default")
    with first, saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


class _CheckpointFunction(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, run: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        if not any(isinstance(a, tp.Tensor) and a.requires_grad for a in args):
            warnings.warn(
                "checkpoint: none of the inputs requires grad; gradients will be None", UserWarning, stacklevel=3
            )
        ctx.run = run
        ctx.conditions = _Conditions(preserve)
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, tp.Tensor)]
        ctx.rest = [None if isinstance(a, tp.Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with tp.no_grad():
            return run(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _C._pass_fills_leaves():
            raise RuntimeError(
                "checkpoint with use_reentrant=True does not work with autograd.grad() or inputs=; "
                "use use_reentrant=False"
            )
        args = list(ctx.rest)
        for i, t in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = t.detach().requires_grad_(t.requires_grad)
        with tp.enable_grad(), ctx.conditions.again():
            outs = ctx.run(*args)
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads, strict=True) if isinstance(o, tp.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError(
                "checkpoint: none of the outputs has requires_grad=True, so there is nothing to differentiate"
            )
        tp.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, tp.Tensor) else None for a in args))


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs functions one after another, checkpointing all but the last of `segments` groups."""
    items = list(functions)
    size = max(1, len(items) // segments)

    def group(start: int, end: int) -> Callable[[Any], Any]:
        def call(x: Any) -> Any:
            for f in items[start:end]:
                x = f(x)
            return x

        return call

    start = 0
    while start + size < len(items) and start // size < segments - 1:
        input = checkpoint(group(start, start + size), input, use_reentrant=use_reentrant, **kwargs)
        start += size
    return group(start, len(items))(input)


def __getattr__(name: str) -> Any:
    if name in ("CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"):
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}: what a checkpoint keeps can't be chosen op by op here; "
            "checkpoint the parts that are to be computed again, and leave the others outside"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
