"""grad, vjp, jvp and their kin: the arguments users pass, in front of the machinery in C++."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from ._tree import tree_leaves, tree_map

ArgNums = int | tuple[int, ...]


def grad(func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient of `func`.

    Nothing is accumulated into `.grad`. The result can be transformed again: `grad(grad(f))`, `vmap(grad(f))`.

    Args:
        func: returns a scalar tensor, or (scalar, aux) with has_aux.
        argnums: which positional arguments to differentiate with respect to: an int, or a tuple of them. An argument
            may be a tensor or a tree (dict, list, tuple, named tuple, None) of tensors.
        has_aux: func returns a second value, which is handed through.
    Returns:
        A function with the arguments of func. It returns the gradient in the structure of the argument (a tuple of them
        where argnums is a tuple), or (gradient, aux).
    Raises:
        RuntimeError: the output is not a scalar tensor, or argnums do not fit the arguments.
        ValueError: a differentiated argument holds something that is no tensor.

    An argument that the output does not depend on gets zeros. Recording is on inside even under `no_grad` outside.

    Example:
        >>> from tensorplay.func import grad
        >>> grad(lambda x: x.sin())(tensorplay.tensor(0.0))
        tensor(1.)
    """
    return _C._func_grad(func, argnums, has_aux, False)


def grad_and_value(func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient and the value of `func` in one go.

    Args and errors are those of `grad`.

    Returns:
        A function that returns (gradient, value), or (gradient, (value, aux)) with has_aux.

    Example:
        >>> from tensorplay.func import grad_and_value
        >>> grad_and_value(lambda x: x * x)(tensorplay.tensor(3.0))
        (tensor(6.), tensor(9.))
    """
    return _C._func_grad(func, argnums, has_aux, True)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `func` at `primals` and the function that multiplies a vector with its Jacobian from the left.

    Args:
        func: returns a tensor or a tree of tensors.
        primals: tensors or trees of tensors.
        has_aux: func returns (output, aux).
    Returns:
        (output, vjp_fn), or (output, vjp_fn, aux). vjp_fn takes cotangents in the structure of the output and returns a
        tuple with one entry for each primal. It may be called any number of times, under other transforms too.
    Raises:
        RuntimeError: the output has no tensor, or one that is not floating point; cotangents of another structure.

    Example:
        >>> from tensorplay.func import vjp
        >>> y, pull = vjp(lambda x: x * x, tensorplay.tensor([1.0, 2.0]))
        >>> pull(tensorplay.tensor([1.0, 10.0]))
        (tensor([ 2., 40.]),)
    """
    return _C._func_vjp(func, primals, has_aux)


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of `func` at `primals` and the product of its Jacobian with `tangents`, in one forward pass.

    Levels nest: a jvp inside a jvp, a jvp of a gradient and a gradient of a jvp are right.

    Args:
        func: returns a tensor or a tree of tensors.
        primals: a tuple of the arguments, tensors or trees of them.
        tangents: the same structure and sizes; each is converted to the dtype of its primal.
        strict: raise where an output does not depend on the primals, instead of giving zeros.
        has_aux: func returns (output, aux).
    Returns:
        (output, tangent of the output), or (output, tangent, aux).
    Raises:
        RuntimeError: structures or sizes differ. ValueError: an integer primal or tangent.

    Example:
        >>> from tensorplay.func import jvp
        >>> jvp(lambda x: x * x, (tensorplay.tensor(3.0),), (tensorplay.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    return _C._func_jvp(func, primals, tangents, strict, has_aux, None)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of `func` at `primals` and its linear approximation there.

    `func` runs once; every call of the second result only multiplies its Jacobian with new tangents. It pays when that
    happens often, and costs the memory of a backward graph.

    Args:
        func: returns a tensor or a tree of tensors.
        primals: tensors or trees of tensors.
    Returns:
        (output, jvp_fn): jvp_fn takes one tangent for each primal and returns the tangent of the output.
    Raises:
        RuntimeError: func returns something else than tensors, or the tangents have other sizes or dtypes than the
            primals.

    Example:
        >>> from tensorplay.func import linearize
        >>> y, push = linearize(lambda x: x * x, tensorplay.tensor([1.0, 2.0]))
        >>> push(tensorplay.tensor([1.0, 1.0]))
        tensor([2., 4.])
    """
    output, pull = vjp(functools.partial(_tensors_of, func), *primals)
    # u -> u^T J is linear in u, whatever u it is recorded at; its own transpose is J.
    _, push = vjp(pull, tree_map(_zeros, output))

    kinds = [_kind(x) for x in tree_leaves(primals)]

    def jvp_fn(*tangents: Any) -> Any:
        given = [_kind(x) for x in tree_leaves(tangents)]
        if given != kinds or len(tangents) != len(primals):
            wanted = f"give the structure, sizes and dtypes of the primals: {', '.join(kinds)}"
            raise RuntimeError(f"linearize: the tangents are {', '.join(given)}; {wanted}")
        return push(tangents)[0]

    return output, jvp_fn


def _kind(x: Any) -> str:
    return f"{x.dtype} {list(x.shape)}" if isinstance(x, _C.Tensor) else type(x).__name__


def _tensors_of(func: Callable[..., Any], *args: Any) -> Any:
    output = func(*args)
    for leaf in [output] if output is None else tree_leaves(output):
        if not isinstance(leaf, _C.Tensor):
            kind = type(leaf).__name__
            raise RuntimeError(f"linearize(f, *primals): expected f(*primals) to return only tensors, got {kind}")
    return output


def _zeros(t: Any) -> Any:
    from .. import zeros_like

    return zeros_like(t)


def hvp(func: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The product of the Hessian of a scalar `func` with `tangents`, by a jvp of its gradient: no Hessian is formed.

    Args:
        func: returns a scalar tensor.
        primals: a tensor, or a tuple of the arguments (tensors or trees of them).
        tangents: the same structure and sizes.
    Returns:
        The product in the structure of `primals`.
    Raises:
        RuntimeError: structures or sizes differ, or the output is no scalar.

    Example:
        >>> from tensorplay.func import hvp
        >>> hvp(lambda x: (x**3).sum(), tensorplay.tensor([1.0, 2.0]), tensorplay.tensor([1.0, 0.0]))
        tensor([6., 0.])
    """
    single = not isinstance(primals, tuple)
    at, along = ((primals,), (tangents,)) if single else (primals, tangents)
    product = jvp(grad(func, tuple(range(len(at)))), at, along)[1]
    return product[0] if single else product
