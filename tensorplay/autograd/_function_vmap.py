"""Function under vmap: the user's own rule, or one made by mapping forward, setup_context, backward and jvp.

Called by the native `apply` where an argument is batched; nothing else knows of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _C
from .function import Function


class VmapInfo(NamedTuple):
    """What the `vmap` staticmethod is told: the length of the batch, and what random ops are to do."""

    batch_size: int
    randomness: str


def apply(cls: type[Function], args: tuple[Any, ...]) -> Any:
    """`cls.apply(*args)` where at least one argument is batched at an open level."""
    if cls.generate_vmap_rule and cls.vmap is not Function.vmap:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )
    if not cls.generate_vmap_rule and cls.vmap is Function.vmap:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            "the vmap staticmethod or set generate_vmap_rule=True."
        )
    level = max(max(_C._batch_levels(a), default=0) for a in args if isinstance(a, _C.Tensor))
    size, randomness = _C._vmap_info(level)
    in_dims = tuple(0 if _batched(a, level) else None for a in args)
    operands = tuple(
        a if d is None else _C._remove_batch_dim(a, level, size, 0) for a, d in zip(args, in_dims, strict=True)
    )
    inner = _C._vmap_suspend(level)
    try:
        if cls.generate_vmap_rule:
            result: Any = _generated(cls, in_dims, VmapInfo(size, randomness), operands)
        else:
            result = cls.vmap(VmapInfo(size, randomness), in_dims, *operands)
    finally:
        _C._vmap_resume(inner)
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result).__name__}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got {got} instead"
        )
    return _wrap(cls, *result, level)


def _batched(value: Any, level: int) -> bool:
    return isinstance(value, _C.Tensor) and level in _C._batch_levels(value)


def _wrap(cls: type[Function], output: Any, dims: Any, level: int) -> Any:
    if isinstance(output, (tuple, list)):
        each = dims if isinstance(dims, (tuple, list)) else (dims,) * len(output)
        if len(each) != len(output):
            raise RuntimeError(
                f"{cls.__name__}.vmap: {len(output)} outputs but {len(each)} out_dims; give one for each output"
            )
        items = [_wrap(cls, o, d, level) for o, d in zip(output, each, strict=True)]
        return type(output)(*items) if hasattr(output, "_fields") else type(output)(items)
    if isinstance(dims, (tuple, list)) and len(dims) == 1:
        dims = dims[0]
    if dims is None or not isinstance(output, _C.Tensor):
        return output
    return _C._add_batch_dim(output, dims, level)


# ---- generate_vmap_rule ----------------------------------------------------------------------------------------------


class _SampleContext:
    """What the user's setup_context, backward and jvp see of one sample."""

    def __init__(self) -> None:
        self.__dict__.update(_kept=(), _kept_forward=None, _marked=(), _materialize=True)

    def save_for_backward(self, *tensors: Any) -> None:
        self.__dict__["_kept"] = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.__dict__["_kept_forward"] = tensors

    def mark_non_differentiable(self, *outputs: Any) -> None:
        self.__dict__["_marked"] = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        raise RuntimeError("mark_dirty: not supported together with generate_vmap_rule=True; write a vmap staticmethod")

    def set_materialize_grads(self, value: bool) -> None:
        self.__dict__["_materialize"] = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return tuple(self.__dict__["_kept"])


class _Level:
    """One vmap level around a call of the user's code: tensors go in and come out with the batch in front."""

    def __init__(self, info: VmapInfo) -> None:
        self.info = info

    def __enter__(self) -> _Level:
        self.number = _C._vmap_enter(*self.info)
        return self

    def __exit__(self, *_: object) -> None:
        _C._vmap_exit(self.number)

    def into(self, values: Any, dims: Any) -> list[Any]:
        return [
            v if d is None or not isinstance(v, _C.Tensor) else _C._add_batch_dim(v, d, self.number)
            for v, d in zip(values, dims, strict=True)
        ]

    def out(self, value: Any) -> Any:
        return _C._remove_batch_dim(value, self.number, self.info.batch_size, 0)

    def out_where_batched(self, values: Any) -> tuple[list[Any], list[int | None]]:
        dims = [0 if _batched(v, self.number) else None for v in values]
        return [v if d is None else self.out(v) for v, d in zip(values, dims, strict=True)], dims


class _Mapped(Function):
    """The Function of a batch, made from one of a sample; its first arguments say of which, and what is mapped."""

    generate_vmap_rule = True

    @staticmethod
    def forward(cls: Any, info: VmapInfo, in_dims: Any, box: Any, *args: Any) -> Any:
        with _Level(info) as level:
            samples = level.into(args, in_dims)
            output = cls.forward(*samples)
            ctx = _SampleContext()
            cls.setup_context(ctx, tuple(samples), output)
            outputs = output if isinstance(output, tuple) else (output,)
            kept = list(ctx.__dict__["_kept"])
            places = [next((i for i, o in enumerate(outputs) if o is t), -1) for t in kept]
            ahead = ctx.__dict__["_kept_forward"]
            box.kept = level.out_where_batched(kept)
            box.ahead = box.kept if ahead is None else level.out_where_batched(list(ahead))
            box.places = places
            box.marked = [any(o is m for m in ctx.__dict__["_marked"]) for o in outputs]
            box.materialize = ctx.__dict__["_materialize"]
            box.attributes = {k: v for k, v in vars(ctx).items() if k[:1] != "_"}
            box.tuple = isinstance(output, tuple)
            box.sizes = [x.shape if isinstance(x, _C.Tensor) else None for x in samples]
            whole = tuple(level.out(o) if isinstance(o, _C.Tensor) else o for o in outputs)
        return whole if box.tuple else whole[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        cls, info, in_dims, box, *_ = inputs
        outputs = output if isinstance(output, tuple) else (output,)
        values, dims = box.kept
        dims = [0 if p >= 0 else d for p, d in zip(box.places, dims, strict=True)]
        ctx.save_for_backward(*(outputs[p] if p >= 0 else v for p, v in zip(box.places, values, strict=True)))
        ctx.cls, ctx.info, ctx.in_dims, ctx.dims = cls, info, in_dims, dims
        ctx.attributes, ctx.tuple, ctx.sizes = box.attributes, box.tuple, box.sizes
        ctx.ahead = box.ahead if box.ahead is not box.kept else None
        ctx.set_materialize_grads(box.materialize)
        ctx.mark_non_differentiable(*(o for o, m in zip(outputs, box.marked, strict=True) if m))
        box.kept = box.ahead = None

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        backward = ctx.cls.vjp if ctx.cls.backward is Function.backward else ctx.cls.backward
        saved = ctx.saved_tensors
        with _Level(ctx.info) as level:
            sample = _sample_of(ctx, level.into(saved, ctx.dims))
            sample.needs_input_grad = ctx.needs_input_grad[4:]
            given = backward(sample, *level.into(grads, [0] * len(grads)))
            given = given if isinstance(given, tuple) else (given,)
            name, count = f"{ctx.cls.__name__}Backward", len(ctx.in_dims)
            if len(given) > count and all(g is None for g in given[count:]):
                given = given[:count]
            if len(given) != count:
                raise RuntimeError(
                    f"function {name} returned an incorrect number of gradients (expected {count}, got {len(given)})"
                )
            out = []
            for i, (g, dim) in enumerate(zip(given, ctx.in_dims, strict=True)):
                if isinstance(g, _C.Tensor):
                    g = level.out(_fitted(name, i, g, ctx.sizes[i]))
                    g = g.sum(0) if dim is None else g
                out.append(g)
        return (None, None, None, None, *out)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        values, dims = ctx.ahead or (ctx.saved_tensors, ctx.dims)
        with _Level(ctx.info) as level:
            sample = _sample_of(ctx, level.into(values, dims))
            given = ctx.cls.jvp(sample, *level.into(tangents[4:], ctx.in_dims))
            out = tuple(
                level.out(t) if isinstance(t, _C.Tensor) else t
                for t in (given if isinstance(given, tuple) else (given,))
            )
        return out if ctx.tuple else out[0]


def _fitted(name: str, i: int, g: Any, size: Any) -> Any:
    """The gradient of one sample, summed where it was broadcast."""
    if size is None or g.shape == size:
        return g
    rest = g.shape[len(g.shape) - len(size) :]
    if len(g.shape) < len(size) or any(n not in (1, m) for n, m in zip(size, rest, strict=True)):
        raise RuntimeError(
            f"Function {name} returned an invalid gradient at index {i} - got {list(g.shape)} but expected shape "
            f"compatible with {list(size)}"
        )
    return _C.internal.sum_to(g, tuple(size))


class _Box:
    """What forward hands to setup_context beside its outputs."""


def _sample_of(ctx: Any, saved: list[Any]) -> Any:
    sample: Any = _SampleContext()
    sample.__dict__.update(ctx.attributes)
    sample.__dict__["_kept"] = tuple(saved)
    sample.__dict__["_recorded"] = ctx
    return sample


def _generated(cls: type[Function], in_dims: Any, info: VmapInfo, operands: tuple[Any, ...]) -> tuple[Any, Any]:
    call: Callable[..., Any] = _Mapped.apply
    output = call(cls, info, in_dims, _Box(), *operands)
    return output, (0,) * len(output) if isinstance(output, tuple) else 0
