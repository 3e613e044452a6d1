"""Function transforms: derivatives and batching as functions of functions, in any nesting. Knows autograd and _C alone.

>>> import tensorplay as tp
>>> from tensorplay.func import grad, vmap
>>> x = tp.tensor([1.0, 2.0, 3.0])
>>> vmap(grad(lambda x: x**3))(x)
tensor([ 3., 12., 27.])
"""

from __future__ import annotations

from typing import NoReturn

from .._absent import missing
from ._derivatives import grad, grad_and_value, hvp, jvp, linearize, vjp
from ._jacobians import hessian, jacfwd, jacrev
from ._tree import stack_trees, tree_leaves, tree_map, unstack_tree
from ._vmap import vmap

__all__ = [
    "grad", "grad_and_value", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "linearize", "stack_trees", "tree_leaves",
    "tree_map", "unstack_tree", "vjp", "vmap",
]  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    raise missing(__name__, name)
