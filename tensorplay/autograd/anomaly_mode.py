"""Anomaly mode: remember where each node's forward ran, and stop at the node that makes nan."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switches anomaly mode at once; as a context manager it switches back at the end.

    Args:
        mode: on or off.
        check_nan: raise when a backward function returns nan.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = _C._set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _C._set_anomaly(*self.before)


class detect_anomaly:
    """Inside the block (or the decorated function) every node remembers the Python line that made it, and a backward
    function that returns nan raises RuntimeError naming it. Slow: for finding faults.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = _C._set_anomaly(True, self.check_nan)

    def __exit__(self, *_: object) -> None:
        _C._set_anomaly(*self.before)

    def __call__(self, function: Any) -> Any:
        from .._decorators import wrap

        check = self.check_nan
        return wrap(function, lambda: _Quiet(check))


class _Quiet(detect_anomaly):
    def __init__(self, check_nan: bool) -> None:  # the warning was given when the decorator was made
        self.check_nan = check_nan
