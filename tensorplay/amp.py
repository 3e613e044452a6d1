"""Autocast: floating inputs of ops are cast by the policy each entry states (`amp`). Nothing cast is kept for later."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from . import _C

__all__ = [
    "autocast", "clear_autocast_cache", "custom_bwd", "custom_fwd", "is_autocast_available",
    "is_autocast_cache_enabled", "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled",
]  # fmt: skip


def _need_cpu(op: str, device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"{op}: Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type != "cpu":
        raise RuntimeError(f"{op}: only device_type 'cpu' exists here, got {device_type!r}")


class autocast:
    """Inside the block, ops that gain from it run in `dtype` and those that need it in float32.

    Args:
        device_type: only "cpu".
        dtype: bfloat16 (default) or float16; any other warns and leaves autocast off inside the block.
        enabled: False switches autocast off inside the block.
        cache_enabled: accepted for compatibility: each use of a tensor is cast anew.
    """

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        del cache_enabled
        _need_cpu("autocast", device_type)
        self.dtype = _C.bfloat16 if dtype is None else dtype
        self.enabled = enabled
        if self.dtype not in (_C.bfloat16, _C.float16):
            if enabled:
                warnings.warn(
                    f"autocast: dtype must be bfloat16 or float16, got {dtype}; autocast is off inside the block",
                    UserWarning,
                    stacklevel=2,
                )
            self.dtype, self.enabled = _C.get_autocast_dtype(), False
        self.before: list[Any] = []

    def __enter__(self) -> autocast:
        self.before.append(_C._set_autocast(self.enabled, self.dtype))
        return self

    def __exit__(self, *_: object) -> None:
        _C._set_autocast(*self.before.pop())

    def __call__(self, function: Any) -> Any:
        from ._decorators import wrap

        return wrap(function, lambda: autocast("cpu", self.dtype, self.enabled))


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable[..., Any]:
    """Decorates `forward(ctx, ...)` of a Function that is called under autocast; `custom_bwd` goes with it.

    Args:
        fwd: the forward; left out where the decorator is given arguments first.
        device_type: only "cpu".
        cast_inputs: under autocast, floating tensors among the arguments (in lists, tuples and dicts too; not float64)
            are cast to this dtype, and forward runs with autocast off. None: forward runs as it is called.

    Example:
        >>> class Product(tensorplay.autograd.Function):
        ...     @staticmethod
        ...     @tensorplay.amp.custom_fwd(device_type="cpu", cast_inputs=tensorplay.float32)
        ...     def forward(ctx, a, b):
        ...         ctx.save_for_backward(a, b)
        ...         return a @ b
        ...     @staticmethod
        ...     @tensorplay.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         a, b = ctx.saved_tensors
        ...         return g @ b.mT, a.mT @ g
    """
    _need_cpu("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        on = _C.is_autocast_enabled()
        casts = on and cast_inputs is not None
        if args and isinstance(args[0], _C._FunctionBase):
            ctx: Any = args[0]
            ctx._autocast = on and not casts, _C.get_autocast_dtype()
        if not casts:
            return fwd(*args, **kwargs)
        with autocast("cpu", enabled=False):
            return fwd(*(_cast(a, cast_inputs) for a in args), **_cast(kwargs, cast_inputs))

    return wrapper


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates `backward(ctx, ...)`: it runs under the autocast that the body of its `custom_fwd` ran under.

    Raises:
        RuntimeError: forward was not decorated with custom_fwd, or had no ctx to tell (a Function with setup_context).
    """
    _need_cpu("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapper(ctx: Any, *args: Any) -> Any:
        found = getattr(ctx, "_autocast", None)
        if found is None:
            raise RuntimeError(
                f"custom_bwd: {type(ctx).__name__} does not know what autocast its forward ran under; decorate a "
                "forward(ctx, ...) with custom_fwd"
            )
        with autocast("cpu", found[1], found[0]):
            return bwd(ctx, *args)

    return wrapper


def _cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, _C.Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype is not _C.float64 else value
    if isinstance(value, dict):
        return {_cast(k, dtype): _cast(v, dtype) for k, v in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_make"):
        return type(value)(_cast(v, dtype) for v in value)
    return type(value)(*(_cast(v, dtype) for v in value)) if isinstance(value, tuple) else value


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast(device_type)` exists: for "cpu"."""
    return device_type == "cpu"


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switches autocast on or off on this thread."""
    _need_cpu("set_autocast_enabled", device_type)
    _C._set_autocast(enabled, _C.get_autocast_dtype())


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Sets the dtype that autocast casts to on this thread: bfloat16 or float16."""
    _need_cpu("set_autocast_dtype", device_type)
    if dtype not in (_C.bfloat16, _C.float16):
        raise RuntimeError(f"set_autocast_dtype: dtype must be bfloat16 or float16, got {dtype}")
    _C._set_autocast(_C.is_autocast_enabled(), dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether what autocast has cast is kept for the next use: never, each use is cast anew."""
    return False


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Takes False alone: there is no cache of casts.

    Raises:
        RuntimeError: asked to switch it on.
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"set_autocast_cache_enabled: enabled must be a bool (got {type(enabled).__name__})")
    if enabled:
        raise RuntimeError("set_autocast_cache_enabled: there is no cache of casts here, each use is cast anew")


def clear_autocast_cache() -> None:
    """Forgets what autocast has cast: nothing is kept, so there is nothing to forget."""
