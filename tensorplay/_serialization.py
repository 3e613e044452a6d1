"""Copies and pickles of tensors: what the Tensor type calls for copy, deepcopy and pickle."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = ["copy", "deepcopy", "rebuild", "rebuild_generator", "reduce", "reduce_generator"]


def copy(tensor: Any) -> Any:
    """`copy.copy`: the same memory, no gradient."""
    out = _same_class(tensor, tensor.detach())
    return _with_state(out, tensor, dict(tensor.__dict__))


def deepcopy(tensor: Any, memo: dict[int, Any]) -> Any:
    """`copy.deepcopy`: memory, gradient and attributes copied. Leaves only."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "If you were attempting to deepcopy a module, detach() what it stores from the graph."
        )
    from copy import deepcopy as deep

    with _C.no_grad():
        out = _same_class(tensor, _copied(tensor, memo))
    memo[id(tensor)] = out
    out = _with_state(out, tensor, deep(tensor.__dict__, memo))
    if tensor.grad is not None:
        out.grad = deep(tensor.grad, memo)
    return out


def reduce(tensor: Any, protocol: int) -> tuple[Any, ...]:
    """`pickle`: the elements in order, without history and gradient."""
    flat = tensor.detach().contiguous()
    data = _bytes(flat)
    state = dict(tensor.__dict__) or None
    args = (type(tensor), data, tensor.dtype, tuple(tensor.shape), tensor.requires_grad, state)
    return rebuild, args


def rebuild(cls: type, data: bytes, dtype: Any, shape: tuple[int, ...], requires_grad: bool, state: Any) -> Any:
    """The other half of `reduce`."""
    empty = 0 in shape
    flat = _C.tensor([], dtype=dtype) if empty else _C.frombuffer(bytearray(data), dtype=dtype)
    out = flat.reshape(shape)
    out = _C.Tensor._make_subclass(cls, out, requires_grad)
    if state:
        out.__dict__.update(state)
    return out


def reduce_generator(generator: Any) -> tuple[Any, ...]:
    """`pickle` and `copy` of a Generator: its seed and its place in the stream."""
    return rebuild_generator, (_bytes(generator.get_state()),)


def rebuild_generator(state: bytes) -> Any:
    """The other half of `reduce_generator`."""
    return _C.Generator().set_state(_C.frombuffer(bytearray(state), dtype=_C.uint8))


def _bytes(flat: Any) -> bytes:
    if flat.numel() == 0:
        return b""
    if flat.dtype == _C.bfloat16:  # no buffer format of its own: the same bits as float16
        return memoryview(_C._reinterpret(flat, _C.float16)).tobytes()
    return memoryview(flat).tobytes()


def _copied(tensor: Any, memo: dict[int, Any]) -> Any:
    """A copy of the memory; tensors over the same memory share the copy, as they shared the original."""
    return tensor.detach().clone()


def _same_class(tensor: Any, plain: Any) -> Any:
    return _C.Tensor._make_subclass(type(tensor), plain, tensor.requires_grad and tensor.is_leaf)


def _with_state(out: Any, tensor: Any, state: dict[str, Any]) -> Any:
    if state:
        out.__dict__.update(state)
    return out
