"""`custom_op`: a Python function becomes an op, opaque to autograd, whose derivative and batching its author registers.

Built on autograd.Function; what an argument may be is _schema.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorplay as tp
from tensorplay.autograd import Function
from tensorplay.autograd.function import WITHOUT_FORWARD_MODE
from tensorplay.autograd.graph import increment_version

from ._schema import Schema, parse

_DEVICES = ("cpu",)
_REGISTRY: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An op made by `custom_op`. Call it like the function it was made from."""

    def __init__(self, name: str, fn: Callable[..., Any], schema: Schema) -> None:
        self._namespace, self._name = name.split("::")
        self._qualname, self._schema, self._init_fn = name, schema, fn
        self._kernels: dict[str, Callable[..., Any]] = {"cpu": fn}
        self._disabled: set[str] = set()
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._function = _function_of(self)
        self.__name__, self.__doc__, self.__module__ = self._name, fn.__doc__, fn.__module__
        self.__wrapped__ = fn

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _lookup, (self._qualname,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self._schema.bind(self._qualname, args, kwargs)
        if self._schema.mutates:
            return self._change(given)
        flat, layout = _flattened(self._schema, given)
        out = self._function.apply(*flat, layout)
        return _as_declared(self._schema, out)

    # ---- registrations ----

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Another implementation for a device. There is one device, "cpu"; None means every device.

        Raises:
            ValueError: a device that tensorplay does not have.
        """

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            for device in _devices(self._qualname, device_types):
                self._kernels[device] = fn
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """A function that makes results of the right sizes and dtypes without computing them; `opcheck` compares."""
        self._fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The derivative of the op.

        Args:
            backward: `backward(ctx, *grads)` returns one gradient per argument (None where there is none, a list
                for a list of tensors). It is differentiated in turn, so it must consist of differentiable ops.
            setup_context: `setup_context(ctx, inputs, output)`, or with keyword-only arguments
                `setup_context(ctx, inputs, keyword_only_inputs, output)`, keeps on ctx what backward reads.

        Raises:
            RuntimeError: the op changes its arguments in place.
        """
        if self._schema.mutates:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self!r} with schema "
                f"{self._schema.text(self._qualname)}: make an op that returns its result instead of changing "
                f"{', '.join(self._schema.mutates)}"
            )
        self._backward, self._setup_context = backward, setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Callable[..., Any]:
        """The batching rule: `func(info, in_dims, *args)` returns (results, out_dims). Else samples take turns."""

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            self._vmap = func
            return func

        return register if func is None else register(func)

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> _Enabled:
        """Turns the kernel registered for a device off (back to the function given to `custom_op`) or on again.

        Returns a context manager that undoes it.
        """
        (device,) = _devices(self._qualname, device_type)
        before = device not in self._disabled
        (self._disabled.discard if enabled else self._disabled.add)(device)
        return _Enabled(self, device, before)

    # ---- running ----

    def _kernel(self, device: str = "cpu") -> Callable[..., Any]:
        return self._init_fn if device in self._disabled else self._kernels[device]

    def _run(self, given: dict[str, Any]) -> Any:
        """The kernel on plain values; what it returns and changed is held to the schema."""
        tensors = [t for v in given.values() for t in _tensors(v)]
        versions = [t._version for t in tensors]
        positional = [given[a.name] for a in self._schema.arguments if not a.kwonly]
        keywords = {a.name: given[a.name] for a in self._schema.arguments if a.kwonly}
        with tp.no_grad():
            out = self._kernel()(*positional, **keywords)
        declared = {id(t) for name in self._schema.mutates for t in _tensors(given[name])}
        for t, version in zip(tensors, versions, strict=True):
            if t._version != version and id(t) not in declared:
                name = next(k for k, v in given.items() if any(x is t for x in _tensors(v)))
                raise RuntimeError(
                    f"{self._qualname}: '{name}' was changed in place, but mutates_args does not name it; "
                    f"mutates_args={(name,)}, or work on {name}.clone()"
                )
        self._check_results(out, tensors)
        return out

    def _check_results(self, out: Any, inputs: list[Any]) -> None:
        results = out if isinstance(out, tuple) else (out,)
        count = len(self._schema.results)
        if count != (0 if out is None else len(results)) or (self._schema.is_tuple and not isinstance(out, tuple)):
            raise RuntimeError(
                f"{self._qualname}: the kernel returned {type(out).__name__}, {self._text} says otherwise"
            )
        seen = [_extent(t) for t in inputs]
        for kind, value in zip(self._schema.results, results, strict=False):
            if not kind.accepts(value):
                raise RuntimeError(
                    f"{self._qualname}: the kernel returned {type(value).__name__} where {self._text} says {kind}"
                )
            for t in _tensors(value):
                where = _extent(t)
                if any(x is t for x in inputs) or any(where[0] < hi and lo < where[1] for lo, hi in seen):
                    raise RuntimeError(
                        f"{self._qualname}: The output of this custom operator (1) must not also be an input to this "
                        f"custom operator and (2) may not alias any inputs to this custom operator or other returns: "
                        f"return a clone()"
                    )
                seen.append(where)

    @property
    def _text(self) -> str:
        return self._schema.text(self._qualname)

    def _change(self, given: dict[str, Any]) -> Any:
        """An op that changes arguments has no derivative: none is needed where nothing is recorded."""
        for name, value in given.items():
            if tp.is_grad_enabled() and any(t.requires_grad for t in _tensors(value)):
                raise RuntimeError(
                    f"{self._qualname}: '{name}' requires grad, and an op that changes "
                    f"{', '.join(self._schema.mutates)} in place has no derivative; call it under no_grad(), or "
                    f"on {name}.detach()"
                )
        out = self._run(given)
        for name in self._schema.mutates:
            for t in _tensors(given[name]):
                increment_version(t)
        return out


class _Enabled:
    """What `set_kernel_enabled` returns: as a context manager it restores the state before."""

    def __init__(self, op: CustomOpDef, device: str, before: bool) -> None:
        self.op, self.device, self.before = op, device, before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        (self.op._disabled.discard if self.before else self.op._disabled.add)(self.device)


# ---- between the op's arguments and a Function's --------------------------------------------------------------------


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, tp.Tensor):
        return [value]
    return [v for v in value if isinstance(v, tp.Tensor)] if isinstance(value, (list, tuple)) else []


def _extent(t: Any) -> tuple[int, int]:
    """First byte and one past the last that a tensor can reach."""
    start = end = t.data_ptr()
    if t.numel() == 0:
        return 0, 0
    for n, s in zip(t.shape, t.stride(), strict=True):
        reach = (n - 1) * s * t.element_size()
        start, end = start + min(reach, 0), end + max(reach, 0)
    return start, end + t.element_size()


def _flattened(schema: Schema, given: dict[str, Any]) -> tuple[list[Any], tuple[int, ...]]:
    """Arguments as a Function takes them, lists of tensors spread out. Layout: -1 for one value, else the length."""
    flat: list[Any] = []
    layout = []
    for a in schema.arguments:
        value = given[a.name]
        if a.kind.base == "Tensor" and a.kind.is_list and value is not None:
            layout.append(len(value))
            flat += value
        else:
            layout.append(-1)
            flat.append(value)
    return flat, tuple(layout)


def _nested(flat: Sequence[Any], layout: Sequence[int]) -> list[Any]:
    out: list[Any] = []
    at = 0
    for n in layout:
        out.append(flat[at] if n < 0 else list(flat[at : at + n]))
        at += 1 if n < 0 else n
    return out


def _as_declared(schema: Schema, out: Any) -> Any:
    """A Function gives lists back as tuples."""
    if len(schema.results) == 1 and not schema.is_tuple:
        return list(out) if schema.results[0].is_list else out
    return out


def _function_of(op: CustomOpDef) -> type[Function]:
    schema = op._schema

    def named(flat: Sequence[Any], layout: Sequence[int]) -> dict[str, Any]:
        return dict(zip((a.name for a in schema.arguments), _nested(flat, layout), strict=True))

    def forward(*flat: Any) -> Any:
        out = op._run(named(flat[:-1], flat[-1]))
        return tuple(out) if isinstance(out, list) else out

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *flat, layout = inputs
        ctx._layout = layout
        if op._setup_context is None:
            return
        given = named(flat, layout)
        positional = tuple(given[a.name] for a in schema.arguments if not a.kwonly)
        keywords = {a.name: given[a.name] for a in schema.arguments if a.kwonly}
        output = _as_declared(schema, output)
        if keywords:
            op._setup_context(ctx=ctx, inputs=positional, keyword_only_inputs=keywords, output=output)
        else:
            op._setup_context(ctx=ctx, inputs=positional, output=output)

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        if op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op._qualname} but no autograd formula was registered. "
                f"Please use register_autograd to add one."
            )
        listed = len(schema.results) == 1 and schema.results[0].is_list
        made = op._backward(ctx, list(grads)) if listed else op._backward(ctx, *grads)
        positional = [(a, n) for a, n in zip(schema.arguments, ctx._layout, strict=True) if not a.kwonly]
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(positional):
            raise RuntimeError(
                f"{op._qualname}: backward returned {len(made)} gradients for {len(positional)} arguments: {op._text}"
            )
        by_name = dict(zip((a.name for a, _ in positional), made, strict=True))
        flat: list[Any] = []
        for a, n in zip(schema.arguments, ctx._layout, strict=True):
            g = by_name.get(a.name)
            if n < 0:
                flat.append(g)
            elif g is None:
                flat += [None] * n
            elif isinstance(g, (list, tuple)) and len(g) == n:
                flat += g
            else:
                raise RuntimeError(
                    f"{op._qualname}: backward must return a list of {n} gradients for '{a.name}', not {g!r:.60}"
                )
        return (*flat, None)

    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError(
            f"{op._qualname}: a custom_op has no rule for forward mode (jvp, jacfwd, hessian), and none can be "
            f"registered; a Function with a jvp can have one. {WITHOUT_FORWARD_MODE}"
        )

    def vmap(info: Any, in_dims: tuple[Any, ...], *flat: Any) -> Any:
        layout = flat[-1]
        dims, values = _nested(in_dims[:-1], layout), _nested(flat[:-1], layout)
        positional = [i for i, a in enumerate(schema.arguments) if not a.kwonly]
        keywords = {a.name: v for a, v in zip(schema.arguments, values, strict=True) if a.kwonly}
        if op._vmap is not None:
            return op._vmap(info, tuple(dims[i] for i in positional), *(values[i] for i in positional), **keywords)
        return _in_turn(op, info.batch_size, in_dims[:-1], flat[:-1], layout)

    members = {
        "forward": staticmethod(forward), "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward), "jvp": staticmethod(jvp), "vmap": staticmethod(vmap),
        "__module__": __name__,
    }  # fmt: skip
    made: type[Function] = type(f"{op._namespace}_{op._name}", (Function,), members)
    node: Any = made._backward_cls
    plain = node.needs_input_grad

    def needs_input_grad(ctx: Any) -> tuple[Any, ...]:
        """One flag per argument, a list of them for a list of tensors."""
        flags = plain.__get__(ctx)
        layout = getattr(ctx, "_layout", None)
        return tuple(flags if layout is None else _nested(flags[:-1], layout))

    node.needs_input_grad = property(needs_input_grad)
    return made


def _in_turn(op: CustomOpDef, size: int, dims: Sequence[Any], flat: Sequence[Any], layout: tuple[int, ...]) -> Any:
    """The op on one sample after another, results stacked."""
    rows = []
    for i in range(size):
        sample = [v if d is None else v.select(d, i) for v, d in zip(flat, dims, strict=True)]
        rows.append(op._function.apply(*sample, layout))
    if isinstance(rows[0], tuple):
        return tuple(tp.stack(list(column)) for column in zip(*rows, strict=True)), (0,) * len(rows[0])
    return tp.stack(rows), 0


# ---- by name ---------------------------------------------------------------------------------------------------------


def _devices(name: str, device_types: str | Sequence[str] | None) -> tuple[str, ...]:
    wanted = _DEVICES if device_types is None else (device_types,) if isinstance(device_types, str) else device_types
    for device in wanted:
        if device not in _DEVICES:
            raise ValueError(f"{name}: no device '{device}'; tensorplay has {', '.join(_DEVICES)}")
    return tuple(wanted)


def _lookup(op: str | CustomOpDef) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if op not in _REGISTRY:
        raise RuntimeError(f"no custom op '{op}'; define it with tensorplay.library.custom_op")
    return _REGISTRY[op]


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Sequence[Any] | None = None,
) -> Any:
    """Makes an op of a Python function that autograd does not look into.

    Args:
        name: "namespace::name". A second definition replaces the first.
        fn: the function; every parameter and the result carry type annotations (Tensor, int, float, bool, str, dtype,
            device, Optional or Sequence of one). Without it, custom_op is a decorator.
        mutates_args: names of the tensor arguments that fn changes in place, or "unknown" for all of them.
        device_types: devices that fn serves; "cpu" or None.
        schema: the schema as text; it must be the one the annotations say.
        tags: accepted for compatibility; nothing reads them.

    Returns:
        A `CustomOpDef`, also found as `tensorplay.ops.namespace.name`.

    Raises:
        ValueError: no "::" in the name, a missing annotation, a type no schema has, an unknown device.

    Example:
        >>> @tensorplay.library.custom_op("docs::cube", mutates_args=())
        ... def cube(x: tensorplay.Tensor) -> tensorplay.Tensor:
        ...     return tensorplay.from_numpy(x.numpy() ** 3)
        >>> cube.register_autograd(lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g,
        ...                        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
        >>> x = tensorplay.tensor([2.0], requires_grad=True)
        >>> cube(x).backward(); x.grad
        tensor([12.])
    """

    def make(fn: Callable[..., Any]) -> CustomOpDef:
        namespace, found, rest = name.partition("::")
        if not (found and namespace.isidentifier() and rest.isidentifier()):
            raise ValueError(f"custom_op: the name must be of the form 'namespace::name', not {name!r}")
        _devices(name, device_types)
        read = parse(fn, mutates_args)
        said = schema.partition("(")[1:] if schema else None
        if said and "".join(said).replace(" ", "") != read.text().replace(" ", ""):
            raise ValueError(f"{name}: schema says {''.join(said)}, the annotations say {read.text()}")
        op = _REGISTRY[name] = CustomOpDef(name, fn, read)
        return op

    return make if fn is None else make(fn)


def register_kernel(
    op: str | CustomOpDef, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /
) -> Callable[..., Any]:
    """`CustomOpDef.register_kernel` of an op given by name."""
    return _lookup(op).register_kernel(device_types, func)


def register_fake(op: str | CustomOpDef, func: Callable[..., Any] | None = None, /) -> Callable[..., Any]:
    """`CustomOpDef.register_fake` of an op given by name."""
    return _lookup(op).register_fake if func is None else _lookup(op).register_fake(func)


def register_autograd(
    op: str | CustomOpDef, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
) -> None:
    """`CustomOpDef.register_autograd` of an op given by name."""
    _lookup(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: str | CustomOpDef, func: Callable[..., Any] | None = None, /) -> Callable[..., Any]:
    """`CustomOpDef.register_vmap` of an op given by name."""
    return _lookup(op).register_vmap(func)


class _Namespace:
    """`tensorplay.ops.NAMESPACE`: the ops defined under it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> CustomOpDef:
        op = _REGISTRY.get(f"{self._name}::{name}")
        if op is None:
            raise AttributeError(f"no custom op '{self._name}::{name}'")
        return op

    def __dir__(self) -> list[str]:
        return sorted(q.split("::")[1] for q in _REGISTRY if q.startswith(self._name + "::"))

    def __repr__(self) -> str:
        return f"<tensorplay.ops.{self._name}>"


class _Ops:
    """`tensorplay.ops`: custom ops by namespace."""

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Namespace(name)

    def __dir__(self) -> list[str]:
        return sorted({q.split("::")[0] for q in _REGISTRY})

    def __repr__(self) -> str:
        return "<tensorplay.ops>"


ops = _Ops()
