"""vmap: the arguments users pass and chunks, in front of the batching in C++."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from ._tree import tree_map


def check_randomness(name: str, randomness: str) -> None:
    if randomness not in ("error", "same", "different"):
        allowed = "error, different, or same"
        raise RuntimeError(f"{name}: Only allowed values for randomness are {allowed}. Got {randomness}")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies `func` to every sample of a batch at once.

    Inside, tensors show the sizes of one sample; each op runs once for the whole batch. It nests with itself and with
    every other transform.

    Args:
        func: takes tensors or trees of them, returns a tensor or a tree of them. It may not look at values (`.item()`,
            `if x.sum() > 0`), which differ from sample to sample.
        in_dims: the dimension of each argument that is mapped over; None: the argument is the same for all samples. An
            int for all, or a tuple with one entry for each argument, an int, None or a tree like the argument. Negative
            ones count from the end.
        out_dims: where the batch dimension stands in each output: an int, None for an output that is the same for all
            samples, or a tree like the output.
        randomness: what random ops do: "error", "same" (one draw for all samples) or "different" (one each).
        chunk_size: how many samples run at once; all by default.
    Returns:
        A function with the arguments of func. Keyword arguments are the same for all samples.
    Raises:
        ValueError: nothing to map over, batch sizes that differ, in_dims or out_dims that do not fit.
        RuntimeError: in func, an op that can't be batched: `.item()`, a batched value written into an unbatched tensor,
            random ops under randomness="error".

    Example:
        >>> from tensorplay.func import vmap
        >>> vmap(lambda a, b: (a * b).sum())(tensorplay.ones(3, 2), tensorplay.tensor([[1.0, 2], [3, 4], [5, 6]]))
        tensor([ 3.,  7., 11.])
    """
    check_randomness("vmap", randomness)
    if chunk_size is None:
        return _C._func_vmap(func, in_dims, out_dims, randomness)
    if chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    whole = _C._func_vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func)
    def chunked(*args: Any, **kwargs: Any) -> Any:
        from .. import cat, narrow

        size, dims = _C._vmap_dims(whole, args)
        if size <= chunk_size:
            return whole(*args, **kwargs)
        results = []
        for start in range(0, size, chunk_size):
            rest = iter(dims)

            def cut(leaf: Any, start: int = start, rest: Any = rest) -> Any:
                dim = next(rest)
                return leaf if dim is None else narrow(leaf, dim, start, min(chunk_size, size - start))

            results.append(whole(*tree_map(cut, args), **kwargs))
        at = iter(_C._vmap_out_dims(whole, results[0]))

        def join(*parts: Any) -> Any:
            dim = next(at)
            return parts[0] if dim is None else cat(parts, dim)

        return tree_map(join, *results)

    return chunked
