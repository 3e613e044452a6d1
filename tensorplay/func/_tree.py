"""Trees of tensors: dicts, lists, tuples, named tuples and None, with anything else for leaves. The walk is C++."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C


def tree_map(func: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The tree with func(leaf, and the leaves of `rest` in the same place) for every leaf.

    Args:
        func: takes one leaf of each tree.
        tree: dicts, lists, tuples, named tuples and None, nested as you like; everything else is a leaf.
        rest: further trees of the same structure.
    Returns:
        A new tree of the structure of `tree`.
    Raises:
        ValueError: a further tree has another structure.

    Example:
        >>> from tensorplay.func import tree_map
        >>> tree_map(lambda a, b: a + b, {"w": 1, "b": (2, None)}, {"w": 10, "b": (20, None)})
        {'w': 11, 'b': (22, None)}
    """
    return _C._tree_map(func, tree, *rest)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of a tree in order; None has none.

    Example:
        >>> from tensorplay.func import tree_leaves
        >>> tree_leaves({"w": 1, "b": (2, None, [3])})
        [1, 2, 3]
    """
    return _C._tree_leaves(tree)


def stack_trees(trees: Sequence[Any]) -> Any:
    """One tree whose leaves are those of several, stacked along a new first dimension: an ensemble for `vmap`.

    Args:
        trees: at least one tree of tensors, all of the same structure.
    Returns:
        A tree of that structure.
    Raises:
        ValueError: no trees, or structures that differ.

    Example:
        >>> from tensorplay.func import stack_trees
        >>> stack_trees([{"w": tensorplay.tensor(1.0)}, {"w": tensorplay.tensor(2.0)}])
        {'w': tensor([1., 2.])}
    """
    from .. import stack

    if not trees:
        raise ValueError("stack_trees: expected at least one tree")
    return tree_map(lambda *leaves: stack(leaves), *trees)


def unstack_tree(tree: Any) -> list[Any]:
    """The inverse of `stack_trees`: one tree for each entry of the first dimension that all leaves share.

    Raises:
        ValueError: no tensors, or first dimensions of different lengths.

    Example:
        >>> from tensorplay.func import unstack_tree
        >>> unstack_tree({"w": tensorplay.tensor([1.0, 2.0])})
        [{'w': tensor(1.)}, {'w': tensor(2.)}]
    """
    sizes = {leaf.shape[0] if leaf.ndim else None for leaf in tree_leaves(tree)}
    if len(sizes) != 1 or None in sizes:
        raise ValueError(f"unstack_tree: expected tensors with one common first dimension, got lengths {sizes}")
    (size,) = sizes
    return [tree_map(lambda leaf, i=i: leaf[i], tree) for i in range(int(size or 0))]
