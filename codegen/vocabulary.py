"""The helpers a structured formula may call besides ops: C++ name, kinds of arguments and result.

They live in csrc/ops/formula.h and generated.h; `structured.py` holds their NumPy forms. Metadata of a saved tensor
(shape, dtype) is not a call in the end: the planner keeps the sizes instead of the tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .cpp_types import BOOL, DIMS, DTYPE, FLOAT, INT, SCALAR, STR, TENSOR, TENSORS
from .model import REQUIRED, Base, Type

INT_OPT = Type(Base.INT, optional=True)
DIMS_OPT = Type(Base.INT, optional=True, is_list=True)
DTYPE_OPT = Type(Base.DTYPE, optional=True)
STR_OPT = Type(Base.STR, optional=True)
SHAPES = Type(Base.INT, is_list=True, size=-1)  # the shapes of a list of tensors
FLOATS = Type(Base.FLOAT, is_list=True)
FLOATS_OPT = Type(Base.FLOAT, optional=True, is_list=True)
TENSOR_OPT = Type(Base.TENSOR, optional=True)


@dataclass(frozen=True)
class Param:
    name: str
    type: Type
    default: Any = REQUIRED


@dataclass(frozen=True)
class Helper:
    name: str
    params: tuple[Param, ...]
    result: Type
    template: bool = False  # called as name<V>(...): nothing in its arguments tells the world


def _h(name: str, result: Type, *params: tuple[str, Type] | tuple[str, Type, Any], template: bool = False) -> Helper:
    return Helper(name, tuple(Param(*p) for p in params), result, template)


_ALL = (
    # Metadata.
    _h("shape", DIMS, ("x", TENSOR)),
    _h("dtype", DTYPE, ("x", TENSOR)),
    _h("ndim", INT, ("x", TENSOR)),
    _h("numel", INT, ("x", TENSOR)),
    _h("size", INT, ("x", TENSOR), ("dim", INT)),
    _h("len", INT, ("x", TENSORS)),
    _h("len", INT, ("x", DIMS)),
    _h("len", INT, ("x", FLOATS)),
    _h("reduced_count", INT, ("sizes", DIMS), ("dim", DIMS_OPT)),
    _h("negative", DIMS, ("dims", DIMS)),
    _h("dims_of", DIMS, ("dim", INT_OPT)),
    _h("flatten_shape", DIMS, ("sizes", DIMS), ("start", INT), ("end", INT)),
    _h("tile_shape", DIMS, ("sizes", DIMS), ("repeats", DIMS)),
    _h("tile_dims", DIMS, ("sizes", DIMS), ("repeats", DIMS)),
    _h("trailing_pads", DIMS, ("small", DIMS), ("large", DIMS)),
    _h("along_shape", DIMS, ("sizes", DIMS), ("other", DIMS), ("dim", INT)),
    _h("broadcast_shape", DIMS, ("a", DIMS), ("b", DIMS)),
    _h("dtype_or", DTYPE, ("dtype", DTYPE_OPT), ("x", TENSOR)),
    _h("class_dim", INT, ("sizes", DIMS)),
    _h("class_shape", DIMS, ("sizes", DIMS)),
    _h("last_dims", DIMS, ("n", INT)),
    _h("other_dims", DIMS, ("n", INT)),
    _h("channel_sizes", DIMS, ("channels", INT), ("n", INT)),
    _h("reduction_code", INT, ("reduction", STR)),
    _h("is_floating", BOOL, ("x", TENSOR)),
    _h("is_complex", BOOL, ("dtype", DTYPE)),
    _h("is_contiguous", BOOL, ("x", TENSOR)),
    _h("invert_permutation", DIMS, ("dims", DIMS)),
    _h("real_dtype", DTYPE, ("dtype", DTYPE)),
    # Fourier transforms: the dimensions, their sizes, and the norm of the adjoint.
    _h("fft_dims", DIMS, ("dim", DIMS_OPT), ("s", DIMS_OPT), ("n", INT)),
    _h("fft_sizes", DIMS, ("sizes", DIMS), ("dim", DIMS), ("s", DIMS_OPT)),
    _h("flip_norm", STR, ("norm", STR_OPT)),
    _h("halves", DIMS, ("sizes", DIMS)),
    # Parts of lists of sizes.
    _h("first_sizes", DIMS, ("sizes", DIMS), ("n", INT)),
    _h("last_sizes", DIMS, ("sizes", DIMS), ("n", INT)),
    _h("product_of", INT, ("sizes", DIMS)),
    _h("joined", DIMS, ("a", DIMS), ("b", DIMS)),
    _h("without_dims", DIMS, ("n", INT), ("dim", DIMS_OPT)),
    _h("epsilon", FLOAT, ("dtype", DTYPE)),
    _h("first_of_size", INT, ("sizes", DIMS), ("n", INT)),
    _h("within_sizes", BOOL, ("sizes", DIMS), ("least", INT)),
    _h("wrap_dim", INT, ("dim", INT), ("n", INT)),
    _h("per_dim", DIMS, ("given", DIMS), ("n", INT)),
    _h("starts", DIMS, ("lengths", DIMS)),
    _h("kept_sizes", DIMS, ("given", DIMS), ("sizes", DIMS)),
    _h("resized", DIMS, ("sizes", DIMS), ("size", DIMS_OPT), ("scale", FLOATS_OPT)),
    _h("kept_scales", FLOATS, ("n", INT), ("scale", FLOATS_OPT), ("recompute", BOOL)),
    _h("unpool_sizes", DIMS, ("natural", DIMS), ("step", DIMS), ("wanted", DIMS_OPT)),
    # Facts of dtypes.
    _h("is_whole", BOOL, ("dtype", DTYPE)),
    _h("floating_dtype", DTYPE, ("dtype", DTYPE)),
    _h("default_dtype", DTYPE),
    _h("largest_of", FLOAT, ("dtype", DTYPE)),
    _h("whole_limit", INT, ("dtype", DTYPE)),
    # Facts of lists of tensors: the size they have together, and the first that differs (-1: none).
    _h("broadcast_sizes", DIMS, ("tensors", TENSORS)),
    _h("odd_one", INT, ("tensors", TENSORS), ("least", INT), ("most", INT)),
    _h("first_unlike", INT, ("tensors", TENSORS)),
    # Values that are read. Inside vmap they differ from sample to sample: a check of them is left out.
    _h("readable", BOOL, ("x", TENSOR)),
    _h("within", BOOL, ("x", TENSOR), ("low", FLOAT), ("high", FLOAT)),
    _h("least", FLOAT, ("x", TENSOR)),
    _h("greatest", FLOAT, ("x", TENSOR)),
    # Tensors from nothing but sizes.
    _h("zeros", TENSOR, ("sizes", DIMS), ("dtype", DTYPE_OPT, None), template=True),
    _h("ones", TENSOR, ("sizes", DIMS), ("dtype", DTYPE_OPT, None), template=True),
    _h("full", TENSOR, ("sizes", DIMS), ("value", SCALAR), ("dtype", DTYPE_OPT, None), template=True),
    # Sizes of gradients.
    _h("sum_to", TENSOR, ("x", TENSOR), ("sizes", DIMS)),
    _h("expand_to", TENSOR, ("x", TENSOR), ("sizes", DIMS)),
    _h("expand_reduced", TENSOR, ("g", TENSOR), ("sizes", DIMS), ("dim", DIMS_OPT), ("keepdim", BOOL)),
    _h("restore_dims", TENSOR, ("x", TENSOR), ("sizes", DIMS), ("dim", DIMS_OPT), ("keepdim", BOOL)),
    _h("drop_dim", TENSOR, ("x", TENSOR), ("dim", INT), ("keepdim", BOOL)),
    _h("split_like", TENSORS, ("x", TENSOR), ("shapes", SHAPES), ("dim", INT)),
    _h("cast", TENSOR, ("x", TENSOR), ("dtype", DTYPE)),
    _h("conj_of", TENSOR, ("x", TENSOR)),
    _h("mT", TENSOR, ("x", TENSOR)),
    _h("mH", TENSOR, ("x", TENSOR)),
    _h("shorten_rows", TENSOR, ("table", TENSOR), ("index", TENSOR), ("max_norm", FLOAT), ("norm_type", FLOAT)),
)
# Several of a name are overloads, tried in order.
HELPERS: dict[str, tuple[Helper, ...]] = {}
for _helper in _ALL:
    HELPERS[_helper.name] = (*HELPERS.get(_helper.name, ()), _helper)
# What a call of `shape(x)`, `ndim(x)`, `size(x, d)`... needs of a saved tensor: its sizes, or its dtype.
SIZE_ONLY = frozenset({"shape", "ndim", "numel", "size"})
DTYPE_ONLY = frozenset({"dtype"})
