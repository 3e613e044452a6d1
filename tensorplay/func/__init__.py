"""Function transforms: derivatives as functions of functions, in any nesting. Knows autograd and _C alone.

>>> import tensorplay as tp
>>> from tensorplay.func import grad
>>> grad(grad(lambda x: x**3))(tp.tensor(2.0))
tensor(12.)
"""

from __future__ import annotations

from ._derivatives import grad, grad_and_value, hvp, jvp, linearize, vjp
from ._tree import stack_trees, tree_leaves, tree_map, unstack_tree

__all__ = [
    "grad", "grad_and_value", "hvp", "jvp", "linearize", "stack_trees", "tree_leaves", "tree_map", "unstack_tree",
    "vjp",
]  # fmt: skip
