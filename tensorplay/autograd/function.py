"""autograd.Function: operations whose derivative the user writes. The machinery of `apply` is C++; this is its face.

`TENSORPLAY_PYTHON_APPLY=1` selects an `apply` written in Python over the same two halves, for debugging and tests.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any

from .. import _C

__all__ = [
    "BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "NestedIOFunction",
    "once_differentiable",
]  # fmt: skip


_NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
    "backward mode AD."
)


class FunctionCtx(_C._FunctionBase):
    """What `forward`, `setup_context`, `backward` and `jvp` get as `ctx`. It takes any attribute.

    Methods: save_for_backward, save_for_forward, mark_dirty, mark_non_differentiable, set_materialize_grads,
    set_output_grad_dtype. Attributes: saved_tensors, needs_input_grad, input_grad_buffers (while backward runs).
    """


class BackwardCFunction(FunctionCtx):
    """The context of a Function and the node of its result: one object. Made by `apply`."""

    _forward_cls: type[Function]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class FunctionMeta(type):
    """Gives every Function class its node class, named "<Cls>Backward"."""

    _backward_cls: type[BackwardCFunction]

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        own = {"_forward_cls": cls, "__module__": attrs.get("__module__", __name__)}
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), own)
        super().__init__(name, bases, attrs)

    @property
    def name(cls) -> str:
        """Name of the node in the graph."""
        return cls.__name__ + "Backward"

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__qualname__}'>"


# Said of what has no forward rule, here and of custom ops.
WITHOUT_FORWARD_MODE = (
    "Reverse mode needs none: jacrev(f), and jacrev(grad(f)) or autograd.functional.hessian for second derivatives."
)


class Function(_C._FunctionHead, metaclass=FunctionMeta):
    """An operation with a derivative of its own.

    Either `forward(ctx, *args)` does both jobs, or `forward(*args)` computes and `setup_context(ctx, inputs, output)`
    keeps what `backward` needs; only the second style works under function transforms.

    Example:
        >>> class Cube(tensorplay.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x * x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return 3 * x * x * g
        >>> y = Cube.apply(x)
    """

    #: backward(ctx, grads) gets one mutable list instead of one argument per gradient
    boxed_grads_call: bool = False
    #: the first read of ctx.saved_tensors frees them
    clear_saved_tensors_on_access: bool = False
    #: vmap runs forward and backward under vmap instead of calling the vmap staticmethod
    generate_vmap_rule: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so you "
            f"should invoke them on the class itself: {type(self).__name__}.apply(...)",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. "
            f"Please use new-style autograd function with static forward method: {type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the operation: `forward(ctx, *args)`, or `forward(*args)` together with `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keeps on `ctx` what backward and jvp need. `inputs` are the arguments of forward, defaults included."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient per argument of forward, from one gradient per output."""
        raise NotImplementedError(_NO_BACKWARD)

    # Another object than backward: which of the two a class overrides is told by identity.
    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """The other name of `backward`; a class defines one of them."""
        raise NotImplementedError(_NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """One tangent per output, from one tangent per argument of forward."""
        raise NotImplementedError(
            f"{ctx._forward_cls.__name__}: You must implement the jvp function for custom autograd.Function to use it "
            f"with forward mode AD (jvp, jacfwd, hessian): a static method jvp(ctx, *tangents). {WITHOUT_FORWARD_MODE}"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """(outputs, out_dims) for arguments with a batch dimension where in_dims says so."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set "
            "generate_vmap_rule=True."
        )


class InplaceFunction(Function):
    """Kept for old code: `mark_dirty` in forward is what makes a Function work in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old code: inputs and outputs of forward are flat."""


def _bind(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments of forward by position: keywords go where forward's signature has them, gaps take their defaults."""
    import inspect  # with what it loads a third of the import of tensorplay

    signature = inspect.signature(cls.forward)
    if cls.setup_context is Function.setup_context:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])  # without ctx
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{cls.__name__}.apply: {error}") from None
    flat: list[Any] = []
    last = 0  # what follows the last given argument is left to forward
    for p in signature.parameters.values():
        given = p.name in bound.arguments
        if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
            if given:
                names = list(bound.arguments[p.name]) if p.kind is p.VAR_KEYWORD else [p.name]
                raise TypeError(f"{cls.__name__}.apply: {names} can't be passed by position, as apply does")
        elif p.kind is p.VAR_POSITIONAL:
            flat.extend(bound.arguments.get(p.name, ()))
        else:
            flat.append(bound.arguments[p.name] if given else p.default)
        if given:
            last = len(flat)
    return tuple(flat[:last])


def _python_apply(cls: type[Function], *args: Any, **kwargs: Any) -> Any:
    """`apply` in Python over the two halves of the native one."""
    separate = cls.setup_context is not Function.setup_context
    if kwargs:
        args = _bind(cls, args, kwargs)
    if separate:
        import inspect

        bound = inspect.signature(cls.forward).bind(*args)
        bound.apply_defaults()
        args = bound.args
    ctx = cls._backward_cls()
    state = _C._function_begin(ctx, args)
    with _C.no_grad():
        if separate:
            output = cls.forward(*args)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args)
    return _C._function_finish(ctx, cls, args, output, state)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` that cannot itself be differentiated: second order raises, it is never silently wrong."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with _C.no_grad():
            outputs = fn(ctx, *args)
        if not _C.is_grad_enabled():
            return outputs
        message = "trying to differentiate twice a function that was marked with @once_differentiable"
        grads = args[0] if args and isinstance(args[0], list) else args
        if isinstance(outputs, tuple):
            return tuple(_refusing(v, message, ctx, grads) for v in outputs)
        return _refusing(outputs, message, ctx, grads)

    return wrapper


def _refusing(value: Any, message: str, ctx: Any, grads: Any) -> Any:
    """The same value with a history that raises when somebody differentiates it, also for what it came from."""
    if not isinstance(value, _C.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    source = _C.scalar_tensor(0.0, requires_grad=True)  # where nothing else has a history
    inputs = _C._function_histories(getattr(ctx, "_recorded", ctx))
    return _Refusing.apply(value.detach(), message, source, *inputs, *(g for g in grads if g is not None))


class _Refusing(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(value: Any, message: str, *sources: Any) -> Any:
        return value.detach()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.message = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise RuntimeError(ctx.message)


def _outside(ctx: Any, value: Any, grads: Any) -> Any:
    """What a backward computed outside the graph from a gradient with history: it must not pass as a constant."""
    return _refusing(
        value,
        f"{ctx._forward_cls.__name__}: its backward computed a gradient outside the graph (detach, numpy, or no_grad), "
        "so it can't be differentiated again; compute it with tensor operations, or mark it @once_differentiable",
        ctx,
        grads,
    )


_C._set_function_defaults(Function, _bind, _outside)

if os.environ.get("TENSORPLAY_PYTHON_APPLY", "") not in ("", "0"):
    Function.apply = classmethod(_python_apply)  # type: ignore[method-assign,assignment]
