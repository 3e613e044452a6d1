"""Autocast: floating inputs of ops are cast by the policy each entry states (`amp`)."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = ["autocast"]


class autocast:
    """Inside the block, ops that gain from it run in `dtype` and those that need it in float32.

    Args:
        device_type: only "cpu".
        dtype: bfloat16 (default) or float16.
        enabled: False switches autocast off inside the block.
        cache_enabled: accepted for compatibility.
    """

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        del cache_enabled
        if device_type != "cpu":
            raise RuntimeError(f"autocast: only device_type 'cpu' exists here, got {device_type!r}")
        self.dtype = _C.bfloat16 if dtype is None else dtype
        if self.dtype not in (_C.bfloat16, _C.float16):
            raise RuntimeError(f"autocast: dtype must be bfloat16 or float16, got {self.dtype}")
        self.enabled = enabled
        self.before: list[Any] = []

    def __enter__(self) -> autocast:
        self.before.append(_C._set_autocast(self.enabled, self.dtype))
        return self

    def __exit__(self, *_: object) -> None:
        _C._set_autocast(*self.before.pop())

    def __call__(self, function: Any) -> Any:
        from ._decorators import wrap

        return wrap(function, lambda: autocast("cpu", self.dtype, self.enabled))
