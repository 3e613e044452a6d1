"""Copies and pickles of tensors: what the Tensor type calls for copy, deepcopy and pickle.

The unit is the memory below a tensor: tensors that share it share it afterwards, and keep their strides.
"""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

from . import _C

__all__ = ["Memory", "copy", "deepcopy", "rebuild", "rebuild_generator", "reduce", "reduce_generator", "restore_memory"]


def copy(tensor: Any) -> Any:
    """`copy.copy`: a leaf over the same memory, without gradient."""
    return _finished(tensor.detach(), type(tensor), tensor.requires_grad, dict(tensor.__dict__))


def deepcopy(tensor: Any, memo: dict[Any, Any]) -> Any:
    """`copy.deepcopy`: memory, gradient and attributes copied. Leaves only."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "If you were attempting to deepcopy a module, detach() what it stores from the graph."
        )
    from copy import deepcopy as deep

    whole = _C._memory_of(tensor.detach())
    key = Memory, whole.data_ptr(), whole.numel()  # not the block: one of `.data` is another over the same memory
    if key not in memo:
        memo[key] = whole.clone()
    out = _C._view_of_memory(memo[key], tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    out = memo[id(tensor)] = _finished(out, type(tensor), tensor.requires_grad, {})
    out.__dict__.update(deep(tensor.__dict__, memo))
    if tensor.is_leaf and tensor.grad_dtype is not tensor.dtype:
        out.grad_dtype = tensor.grad_dtype
    if tensor.grad is not None:
        out.grad = deep(tensor.grad, memo)
    return out


class Memory:
    """The memory below tensors while it is pickled: one object for all of them, which the pickler meets again."""

    _alive: ClassVar[weakref.WeakValueDictionary[tuple[int, int], Memory]] = weakref.WeakValueDictionary()

    def __init__(self, whole: Any) -> None:
        self.whole = whole

    @classmethod
    def below(cls, tensor: Any) -> Memory:
        whole = _C._memory_of(tensor)
        key = whole.data_ptr(), whole.numel()
        found = cls._alive.get(key)
        if found is None:
            found = cls._alive[key] = cls(whole)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_memory, (_bytes(self.whole),)


def restore_memory(data: bytes) -> Any:
    """The other half of a pickled `Memory`: a tensor of its bytes."""
    return _C.frombuffer(bytearray(data), dtype=_C.uint8).clone() if data else _C.tensor([], dtype=_C.uint8)


def reduce(tensor: Any, protocol: int) -> tuple[Any, ...]:
    """`pickle`: memory, geometry and attributes, without history and gradient."""
    plain = tensor.detach()
    geometry = plain.dtype, tuple(plain.shape), plain.stride(), plain.storage_offset()
    state = dict(tensor.__dict__) or None
    return rebuild, (type(tensor), Memory.below(plain), *geometry, tensor.requires_grad, state)


def rebuild(
    cls: type, whole: Any, dtype: Any, shape: tuple[int, ...], stride: tuple[int, ...], offset: int,
    requires_grad: bool, state: dict[str, Any] | None,
) -> Any:  # fmt: skip
    """The other half of `reduce`."""
    return _finished(_C._view_of_memory(whole, dtype, shape, stride, offset), cls, requires_grad, state or {})


def _finished(plain: Any, cls: type, requires_grad: bool, state: dict[str, Any]) -> Any:
    out: Any = _C.Tensor._make_subclass(cls, plain, requires_grad)
    out.__dict__.update(state)
    return out


def reduce_generator(generator: Any) -> tuple[Any, ...]:
    """`pickle` and `copy` of a Generator: its seed and its place in the stream."""
    return rebuild_generator, (_bytes(generator.get_state()),)


def rebuild_generator(state: bytes) -> Any:
    """The other half of `reduce_generator`."""
    return _C.Generator().set_state(_C.frombuffer(bytearray(state), dtype=_C.uint8))


def _bytes(flat: Any) -> bytes:
    return memoryview(flat).tobytes() if flat.numel() else b""
