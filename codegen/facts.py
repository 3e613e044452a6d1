"""What structured formulas ask of sizes, dtypes, lists and values: NumPy forms of the helpers that give no tensor.
Knows no op and no formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .shape_rules import Dims, dims, flatten


def invert_permutation(dims: Dims) -> Any:
    """The permutation that undoes dims."""
    n = len(dims)
    out = [0] * n
    for i, d in enumerate(dims):
        out[d % n] = i
    return tuple(out)


def reduced_count(sizes: Any, dim: Any) -> Any:
    """How many elements one element of a reduction of `sizes` over dim stands for."""
    return math.prod(sizes[d] for d in dims(dim, len(sizes)))


def negative(dims: Dims) -> Any:
    """Every number with the opposite sign."""
    return tuple(-d for d in dims)


def dims_of(dim: Any) -> Any:
    """An optional dimension as a list: empty (all) for None."""
    return () if dim is None else (dim,)


def flatten_shape(sizes: Dims, start: int, end: int) -> Any:
    """Sizes with the dimensions from start to end merged."""
    return flatten(tuple(sizes), start, end)


def tile_shape(sizes: Dims, repeats: Dims) -> Any:
    """Sizes of a repeated tensor with each repeat as a dimension of its own before the size it repeats."""
    lead = len(repeats) - len(sizes)
    return tuple(v for r, n in zip(repeats, (*(1,) * lead, *sizes), strict=True) for v in (r, n))


def tile_dims(sizes: Dims, repeats: Dims) -> Any:
    """The dimensions of tile_shape that count repeats, and the leading ones sizes has not."""
    lead = len(repeats) - len(sizes)
    return tuple(d for i in range(len(repeats)) for d in ((2 * i, 2 * i + 1) if i < lead else (2 * i,)))


def trailing_pads(small: Dims, large: Dims) -> Any:
    """Padding after each dimension that brings `small` to `large`, last dimension first."""
    return tuple(v for a, b in zip(reversed(small), reversed(large), strict=True) for v in (0, b - a))


def along_shape(sizes: Dims, other: Dims, dim: int) -> Any:
    """Sizes broadcast with other's in every dimension but dim, which stays."""
    import numpy as np

    at = dim % len(sizes)
    return tuple(
        s if i == at else int(np.broadcast_shapes((s,), (o,))[0])
        for i, (s, o) in enumerate(zip(sizes, other, strict=True))
    )


def broadcast_shape(a: Dims, b: Dims) -> Any:
    """Sizes that both broadcast to."""
    import numpy as np

    return tuple(np.broadcast_shapes(tuple(a), tuple(b)))


def dtype_or(dtype: Any, x: Any) -> Any:
    """dtype, or x's where it is None."""
    import numpy as np

    return np.asarray(x).dtype if dtype is None else dtype


def is_contiguous(x: Any) -> Any:
    """Whether the elements lie in order without gaps."""
    return x.flags["C_CONTIGUOUS"]


def class_dim(sizes: Dims) -> Any:
    """The dimension of classes of a loss's scores: 1, or 0 of a vector."""
    return 0 if len(sizes) == 1 else 1


def class_shape(sizes: Dims) -> Any:
    """Sizes that let a vector over classes broadcast against scores of `sizes`."""
    at = class_dim(sizes)
    return tuple(s if i == at else 1 for i, s in enumerate(sizes))


def reduction_code(reduction: str) -> Any:
    """0, 1, 2 for none, mean, sum."""
    return {"none": 0, "mean": 1, "sum": 2}[reduction]


def is_floating(x: Any) -> Any:
    """Whether the elements are floating-point numbers."""
    import numpy as np

    return np.issubdtype(np.asarray(x).dtype, np.floating)


def is_complex(dtype: Any) -> Any:
    """Whether a dtype is complex."""
    import numpy as np

    return np.issubdtype(dtype, np.complexfloating)


def last_dims(n: int) -> Any:
    """The last n dimensions."""
    return tuple(range(-n, 0))


def other_dims(n: int) -> Any:
    """Every dimension of n but that of channels, the second."""
    return tuple(i for i in range(n) if i != 1)


def channel_sizes(channels: int, n: int) -> Any:
    """Sizes of a vector over channels before n dimensions of space."""
    return (channels, *(1,) * n)


def fft_dims(dim: Any, s: Any, n: int) -> Any:
    """The dimensions a Fourier transform runs over: the last len(s), or all, where none are given."""
    return tuple(dim) if dim is not None else tuple(range(n - len(s) if s else 0, n))


def fft_sizes(sizes: Dims, dim: Dims, s: Any) -> Any:
    """Lengths of a transform: those of s, the tensor's own where s has none or says -1."""
    return tuple(sizes[d] if not s or s[i] == -1 else s[i] for i, d in enumerate(dim))


def flip_norm(norm: Any) -> Any:
    """The norm with which the opposite transform has the same factor."""
    return "ortho" if norm == "ortho" else "backward" if norm == "forward" else "forward"


def halves(sizes: Dims) -> Any:
    """Half of every size, rounded down."""
    return tuple(n // 2 for n in sizes)


def first_sizes(sizes: Dims, n: int) -> Any:
    """The first n items; all but the last -n for a negative n."""
    return tuple(sizes[:n])


def last_sizes(sizes: Dims, n: int) -> Any:
    """The items from number n on; counted from the end for a negative n."""
    return tuple(sizes[n:])


def product_of(sizes: Dims) -> Any:
    """The product of all items."""
    return math.prod(sizes)


def joined(a: Dims, b: Dims) -> Any:
    """Both lists, one after the other."""
    return (*a, *b)


def without_dims(n: int, dim: Any) -> Any:
    """Every dimension of n but those of dim."""
    gone = {d % n for d in dim or ()}
    return tuple(i for i in range(n) if i not in gone)


def epsilon(dtype: Any) -> Any:
    """The distance from 1 to the next number of a dtype."""
    import numpy as np

    return float(np.finfo(dtype).eps)


def first_of_size(sizes: Dims, n: int) -> Any:
    """The first dimension of a size; as many as there are where none has it."""
    return next((i for i, s in enumerate(sizes) if s == n), len(sizes))


def within_sizes(sizes: Dims, least: int) -> Any:
    """Whether no size is below the least."""
    return all(s >= least for s in sizes)


def wrap_dim(dim: int, n: int) -> Any:
    """A dimension counted from the front; one that is out of range is an IndexError."""
    if not -max(n, 1) <= dim < max(n, 1):
        raise IndexError(f"dimension {dim} is out of range for {n} dimensions")
    return dim % max(n, 1)


def per_dim(given: Any, n: int) -> Any:
    """One number for each of n dimensions, of one for all or one each."""
    given = (given,) if isinstance(given, int) else tuple(given)
    return given * n if len(given) == 1 else given


def starts(lengths: Dims) -> Any:
    """Where pieces of these lengths begin, and where the last one ends."""
    return tuple(sum(lengths[:k]) for k in range(len(lengths) + 1))


def kept_sizes(given: Any, sizes: Dims) -> Any:
    """The given sizes, a tensor's own in place of None."""
    given = (given,) * len(sizes) if isinstance(given, int) else tuple(given)
    return tuple(s if g is None else g for g, s in zip(given, sizes, strict=True))


def resized(sizes: Dims, size: Any, scale: Any) -> Any:
    """The size of interpolation: the given one, or sizes times a factor or one each."""
    if size is not None:
        return tuple(size) * (len(sizes) // len(size))
    factors = scale if isinstance(scale, (tuple, list)) else (scale,) * len(sizes)
    return tuple(math.floor(s * f) for s, f in zip(sizes, factors, strict=True))


def kept_scales(n: int, scale: Any, recompute: bool) -> Any:
    """The factors of interpolation, none where sizes say them."""
    return () if scale is None or recompute else scale if isinstance(scale, (tuple, list)) else (scale,) * n


def unpool_sizes(natural: Dims, step: Dims, wanted: Any) -> Any:
    """The last of the wanted sizes, each less than a step away from the natural one."""
    return tuple(wanted)[-len(natural) :]


def is_whole(dtype: Any) -> Any:
    """Whether a dtype holds whole numbers; bool is none."""
    import numpy as np

    return np.issubdtype(dtype, np.integer)


def real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of complex numbers; other dtypes as they are."""
    import numpy as np

    return np.empty(0, dtype).real.dtype


def floating_dtype(dtype: Any) -> Any:
    """The dtype, or the default one of floats for whole numbers and bool."""
    import numpy as np

    return dtype if np.issubdtype(dtype, np.inexact) else np.float64


def default_dtype() -> Any:
    """The dtype of new tensors of floats."""
    import numpy as np

    return np.float64


def largest_of(dtype: Any) -> Any:
    """The largest finite number of a floating or complex dtype."""
    import numpy as np

    return float(np.finfo(dtype).max) if np.issubdtype(dtype, np.inexact) else 0.0


def whole_limit(dtype: Any) -> Any:
    """The end of the whole numbers that a dtype holds without gaps."""
    import numpy as np

    return 2**53 if np.issubdtype(dtype, np.floating) else int(np.iinfo(dtype).max)


def broadcast_sizes(tensors: Any) -> Any:
    """The size that tensors have together."""
    import numpy as np

    return tuple(np.broadcast_shapes(*(np.shape(x) for x in tensors)))


def odd_one(tensors: Any, least: int, most: int) -> Any:
    """The first tensor with less or more dimensions; -1 where there is none."""
    import numpy as np

    return next((i for i, x in enumerate(tensors) if not least <= np.ndim(x) <= most), -1)


def first_unlike(tensors: Any) -> Any:
    """The first tensor whose dtype is not the first one's; -1 where there is none."""
    return next((i for i, x in enumerate(tensors) if x.dtype != tensors[0].dtype), -1)


def readable(x: Any) -> Any:
    """Whether the elements can be read: not inside vmap."""
    return True


def within(x: Any, low: float, high: float) -> Any:
    """Whether every element lies between two numbers, both included; true where elements can't be read."""
    import numpy as np

    return bool(np.all((x >= low) & (x <= high)))


def least(x: Any) -> Any:
    """The smallest element."""
    import numpy as np

    return float(np.min(x))


def greatest(x: Any) -> Any:
    """The largest element."""
    import numpy as np

    return float(np.max(x))


FACTS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        fft_dims, fft_sizes, flip_norm, halves, first_sizes, last_sizes, product_of, joined, without_dims, epsilon,
        is_complex, last_dims, other_dims, channel_sizes, class_dim, class_shape, reduction_code, is_floating,
        invert_permutation, reduced_count, negative, dims_of, flatten_shape, tile_shape, tile_dims, trailing_pads,
        along_shape, broadcast_shape, dtype_or, is_contiguous, first_of_size, within_sizes, wrap_dim, per_dim, starts,
        kept_sizes, resized, kept_scales, unpool_sizes, is_whole, real_dtype, floating_dtype, default_dtype,
        largest_of, whole_limit, broadcast_sizes, odd_one, first_unlike, readable, within, least, greatest,
    )
}  # fmt: skip
