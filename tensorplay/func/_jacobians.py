"""jacrev, jacfwd, hessian: a batch of vjps or jvps over a basis, the primal computed once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from ._derivatives import ArgNums
from ._tree import tree_leaves, tree_map
from ._vmap import check_randomness

__all__ = ["hessian", "jacfwd", "jacrev"]


def _check_chunk(where: str, chunk_size: int | None) -> None:
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"{where}: `chunk_size` should be greater than 0, got {chunk_size}")


def _refuse_complex(where: str, tree: Any, what: str) -> None:
    for i, leaf in enumerate(tree_leaves(tree)):
        if isinstance(leaf, _C.Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{where}: Expected all {what}s to be real but received complex tensor at flattened {what} idx: {i}"
            )


def _chosen(args: tuple[Any, ...], argnums: ArgNums) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """(positions counted from the front, the arguments there)."""
    nums = argnums if isinstance(argnums, tuple) else (argnums,)
    for i in nums:
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i).__name__}")
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"Got argnum={i}, but only {len(args)} positional inputs")
    nums = tuple(i % len(args) for i in nums)
    if not nums or len(set(nums)) != len(nums):
        raise RuntimeError(f"argnums must be non-empty and its elements unique, got {argnums}")
    return nums, tuple(args[i] for i in nums)


def _restricted(
    func: Callable[..., Any], args: tuple[Any, ...], nums: tuple[int, ...], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    if nums == tuple(range(len(args))) and not kwargs:
        return func

    def of_chosen(*picked: Any) -> Any:
        full = list(args)
        for i, v in zip(nums, picked, strict=True):
            full[i] = v
        return func(*full, **kwargs)

    return of_chosen


def _basis(leaves: list[Any], start: int, stop: int, total: int) -> list[Any]:
    """Rows start to stop of the identity over the elements of all leaves, cut to each leaf's elements."""
    from .. import eye

    rows, at = [], 0
    for leaf in leaves:
        n = leaf.numel()
        block = eye(total, dtype=leaf.dtype)[start:stop, at : at + n]
        rows.append(block.reshape((stop - start, *leaf.shape)))
        at += n
    return rows


def _like(tree: Any, leaves: list[Any]) -> Any:
    """The tree with other leaves."""
    rest: Iterator[Any] = iter(leaves)
    return tree_map(lambda _: next(rest), tree)


def _steps(total: int, chunk_size: int | None) -> list[tuple[int, int]]:
    step = chunk_size or max(total, 1)
    return [(i, min(i + step, total)) for i in range(0, total, step)]


def _joined(parts: list[Any], like: Any) -> Any:
    from .. import cat, zeros

    if not parts:
        return zeros((0, *like.shape), dtype=like.dtype)
    return parts[0] if len(parts) == 1 else cat(parts, 0)


def _first_row(tangents: Any, value: Any) -> Any:
    """What func returned beside its output: the same for every row, unless it holds random numbers of each."""
    row = max((max(_C._batch_levels(t), default=0) for t in tree_leaves(tangents)), default=0)
    if row and isinstance(value, _C.Tensor) and row in _C._batch_levels(value):
        return _C._batch_value(value)[0]
    return value


def _batched(
    fn: Callable[..., Any],
    rows: tuple[Any, ...],
    chunk_size: int | None,
    randomness: str = "error",
    basis: bool = False,
) -> Any:
    """fn of every row; `basis`: only tangents depend on the row, so what fn differentiates need not be expanded."""
    if chunk_size == 1:  # no batch at all: what chunks are for is memory, and some functions only run unbatched
        out = fn(*(tree_map(lambda r: r[0], row) for row in rows))
        return tree_map(lambda t: t.unsqueeze(0), out)
    return _C._func_vmap(fn, 0, 0, randomness, basis)(*rows)


def jacrev(
    func: Callable[..., Any], argnums: ArgNums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[..., Any]:
    """The function that computes the Jacobian of `func` in reverse mode: one vjp for each element of the output.

    Args:
        func: returns a tensor or a tree of tensors.
        argnums: which positional arguments: an int or a tuple of them; tensors or trees of tensors.
        has_aux: func returns (output, aux).
        chunk_size: how many vjps run as one batch (all of them by default); smaller takes less memory.
    Returns:
        A function that returns the Jacobian, of size `output.shape + argument.shape`, in the structure of the output
        with the structure of the argument inside, or (jacobian, aux).
    Raises:
        RuntimeError: complex arguments or outputs. ValueError: a chunk_size that is not positive.

    Example:
        >>> from tensorplay.func import jacrev
        >>> jacrev(lambda x: x * x)(tensorplay.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    _check_chunk("jacrev", chunk_size)
    simple = argnums == 0 and isinstance(argnums, int) and not has_aux and chunk_size is None

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        if simple and len(args) == 1 and not kwargs and isinstance(args[0], _C.Tensor) and not args[0].is_complex():
            chosen, aux = args, []
            nums: tuple[int, ...] = (0,)
            output, pull = _C._func_vjp(func, args, False)
            if isinstance(output, _C.Tensor) and not output.is_complex():  # as in most uses: all the rest in C++
                return _C._func_jacobian(pull, output)
        else:
            nums, chosen = _chosen(args, argnums)
            _refuse_complex("jacrev", chosen, "input")
            output, pull, *aux = _C._func_vjp(_restricted(func, args, nums, kwargs), chosen, has_aux)
        _refuse_complex("jacrev", output, "output")
        outs, ins = tree_leaves(output), tree_leaves(chosen)
        total = sum(o.numel() for o in outs)
        parts: list[list[Any]] = [[] for _ in ins]
        for start, stop in _steps(total, chunk_size):
            rows = _like(output, _basis(outs, start, stop, total))
            for part, g in zip(parts, tree_leaves(_batched(pull, (rows,), chunk_size)), strict=True):
                part.append(g)
        columns = [_joined(part, x) for part, x in zip(parts, ins, strict=True)]
        blocks, at = [], 0
        for o in outs:
            n = o.numel()
            cut = [c[at : at + n].reshape((*o.shape, *x.shape)) for c, x in zip(columns, ins, strict=True)]
            inner = _like(chosen, cut)
            blocks.append(inner if isinstance(argnums, tuple) else inner[0])
            at += n
        result = _like(output, blocks)
        return (result, aux[0]) if has_aux else result

    return jacobian


def jacfwd(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that computes the Jacobian of `func` in forward mode: one jvp for each element of the argument.

    Args:
        func: returns a tensor or a tree of tensors.
        argnums: which positional arguments: an int or a tuple of them; tensors or trees of tensors.
        has_aux: func returns (output, aux).
        chunk_size: how many jvps run as one batch (all of them by default); smaller takes less memory.
        randomness: what random ops in func do: "error", "same" or "different", as in `vmap`.
    Returns:
        A function that returns the Jacobian as `jacrev` does.
    Raises:
        RuntimeError: complex arguments or outputs. ValueError: a chunk_size that is not positive, another randomness.

    Example:
        >>> from tensorplay.func import jacfwd
        >>> jacfwd(lambda x: x * x)(tensorplay.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    _check_chunk("jacfwd", chunk_size)
    check_randomness("jacfwd", randomness)

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        from .. import movedim

        nums, chosen = _chosen(args, argnums)
        _refuse_complex("jacfwd", chosen, "input")
        of_all = functools.partial(func, **kwargs) if kwargs else func
        output: Any = None
        aux: Any = None
        ins = tree_leaves(chosen)

        def push(*tangents: Any) -> Any:
            nonlocal output, aux
            output, tangent, *rest = _C._func_jvp(of_all, args, tangents, False, has_aux, nums)
            _refuse_complex("jacfwd", output, "output")
            if rest:
                aux = tree_map(functools.partial(_first_row, tangents), rest[0])
            return tangent

        total = sum(x.numel() for x in ins)
        parts: list[list[Any]] = []
        for start, stop in _steps(total, chunk_size) or [(0, 0)]:
            if stop == start:  # no element to differentiate with respect to: the call gives the output's sizes alone
                tangent = tree_map(lambda t: t.unsqueeze(0)[:0], push(*_like(chosen, ins)))
            else:
                rows = _like(chosen, _basis(ins, start, stop, total))
                tangent = _batched(push, rows, chunk_size, randomness, True)
            leaves = tree_leaves(tangent)
            parts = parts or [[] for _ in leaves]
            for part, t in zip(parts, leaves, strict=True):
                part.append(t)
        blocks = []
        for part in parts:
            rows, at, cut = movedim(_joined(part, part[0]), 0, -1), 0, []
            for x in ins:
                n = x.numel()
                cut.append(rows[..., at : at + n].reshape((*rows.shape[:-1], *x.shape)))
                at += n
            inner = _like(chosen, cut)
            blocks.append(inner if isinstance(argnums, tuple) else inner[0])
        result = _like(output, blocks)
        return (result, aux) if has_aux else result

    return jacobian


def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """The function that computes the Hessian of `func`: forward mode over reverse mode, `jacfwd(jacrev(func))`.

    Args:
        func: returns a tensor, usually a scalar, or a tree of tensors.
        argnums: which positional arguments: an int or a tuple of them; tensors or trees of tensors.
    Returns:
        A function that returns the Hessian, of size `output.shape + argument.shape + argument.shape`; nested as
        [argument][argument] where argnums is a tuple.
    Raises:
        RuntimeError: complex arguments or outputs.

    Example:
        >>> from tensorplay.func import hessian
        >>> hessian(lambda x: (x**3).sum())(tensorplay.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
