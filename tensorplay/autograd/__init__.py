"""Automatic differentiation: backward, grad, Function, graph, forward mode. The engine itself is C++."""

from __future__ import annotations

import importlib
from typing import Any

from .._C import Node, backward, enable_grad, grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .function import Function

_LAZY_MODULES = ("forward_ad", "functional", "graph", "gradcheck", "anomaly_mode", "function", "profiler")
_LAZY_NAMES = {
    "gradcheck": "gradcheck", "gradgradcheck": "gradcheck", "GradcheckError": "gradcheck",
    "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # Loaded when first asked for: `import tensorplay` stays short.
    if name in _LAZY_NAMES:
        module = importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}")
        # All of its names at once: importing it has put the module itself in the place of a function of its name.
        globals().update({n: getattr(module, n) for n, home in _LAZY_NAMES.items() if home == _LAZY_NAMES[name]})
        return globals()[name]
    if name == "Variable":
        value = _variable()
    elif name in _LAZY_MODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


class set_multithreading_enabled:
    """Accepted for compatibility: backward runs on the calling thread here. Callable, context manager and decorator."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


def _variable() -> Any:
    from .. import _C

    class _Engine:
        @staticmethod
        def queue_callback(f: Any) -> None:
            """Calls f once at the end of the running backward."""
            _C._queue_callback(f)

    class Variable:
        """The old name of Tensor; kept for `Variable._execution_engine.queue_callback`."""

        _execution_engine = _Engine()

        def __new__(cls, data: Any, requires_grad: bool = False) -> Any:
            out = data.detach()
            return out.requires_grad_() if requires_grad else out

    return Variable


__all__ = [
    "Function", "GradcheckError", "Node", "backward", "detect_anomaly", "enable_grad", "forward_ad", "functional",
    "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled", "no_grad",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip
