"""Forward mode: dual levels, tensors that carry a tangent. The rules of each op are generated from its entry."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorplay as tp

from .. import _C

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A primal and its tangent (None where there is none)."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Opens the level and returns its number; one can be open at a time."""
    return int(_C._enter_dual_level())


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the open level; every tangent made in it is gone."""
    _C._exit_dual_level(level)


class dual_level:
    """Context manager (and decorator) inside which `make_dual` works.

    Example:
        >>> x, t = tp.tensor([1.0]), tp.tensor([2.0])
        >>> with tp.autograd.forward_ad.dual_level():
        ...     y = tp.autograd.forward_ad.make_dual(x, t) ** 2
        ...     tp.autograd.forward_ad.unpack_dual(y).tangent
        tensor([4.])
    """

    def __enter__(self) -> int:
        self.level = enter_dual_level()
        return self.level

    def __exit__(self, *_: object) -> None:
        exit_dual_level(level=self.level)

    def __call__(self, function: Any) -> Any:
        from .._decorators import wrap

        return wrap(function, dual_level)


class _set_fwd_grad_enabled:
    """Switches forward mode on or off on this thread: now, for a block, or for a decorated function.

    While it is off, ops compute no tangents and `unpack_dual` shows none; those that exist stay as they are.
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"_set_fwd_grad_enabled: mode must be a bool, not {type(mode).__name__}")
        self.mode = mode
        self.before = _C._set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _C._set_fwd_grad_enabled(self.before)

    def __call__(self, function: Any) -> Any:
        from .._decorators import wrap

        _C._set_fwd_grad_enabled(self.before)  # it took effect when it was made: decorating takes that back
        return wrap(function, lambda: _set_fwd_grad_enabled(self.mode))


def _is_fwd_grad_enabled() -> bool:
    """Whether ops compute tangents on this thread, inside a dual level."""
    return bool(_C._is_fwd_grad_enabled())


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A view of `tensor` that carries `tangent`.

    Raises:
        RuntimeError: no level is open, sizes differ, or primal or tangent carry a tangent of this level already.
        ValueError: an integer or bool primal or tangent.
    """
    if not isinstance(tensor, tp.Tensor) or not isinstance(tangent, tp.Tensor):
        raise TypeError(f"make_dual: expected two Tensors, got {type(tensor).__name__} and {type(tangent).__name__}")
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"make_dual: the {name} must be floating point or complex, got {t.dtype}")
    return _C._make_dual(tensor, tangent, level)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent); the tangent is None for a tensor without one or outside a level."""
    primal, tangent = _C._unpack_dual(tensor, level)
    return UnpackedDualTensor(primal, tangent)
