"""The graph seen from Python: nodes, edges, hooks over several tensors, what happens to saved values."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import tensorplay as tp

from .. import _C
from .._C import Node

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save", "save_on_cpu", "saved_tensors_hooks", "to_dot",
]  # fmt: skip


class GradientEdge(NamedTuple):
    """Where a gradient goes: output `output_nr` of `node`. Keeps the graph behind it alive, not the tensor."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge the gradient of `tensor` flows along; a leaf's is its accumulator.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if not isinstance(tensor, tp.Tensor):
        raise TypeError(f"get_gradient_edge: expected a Tensor, got {type(tensor).__name__}")
    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: the tensor does not require grad, so no gradient flows to it")
    fn = tensor.grad_fn
    if fn is None:
        # A view keeps the path for one step: its only edge is the leaf's accumulator.
        with tp.enable_grad():
            step = tensor.view_as(tensor).grad_fn
            assert step is not None
            fn = step.next_functions[0][0]
        return GradientEdge(fn, 0, tensor)
    return GradientEdge(fn, tensor.output_nr)


def increment_version(tensor: Any) -> None:
    """Tells autograd that the memory of a tensor (or of several) was changed by other means.

    Tensors made under inference_mode have no version and are skipped.
    """
    try:
        items = (tensor,) if isinstance(tensor, tp.Tensor) else tuple(tensor)
    except TypeError:
        items = (tensor,)
    for t in items:
        if not isinstance(t, tp.Tensor):
            raise RuntimeError(f"increment_version: expects a Tensor or an iterable of them, got {type(t).__name__}")
    for t in items:
        if not t.is_inference():
            _C._bump_version(t)


class saved_tensors_hooks:
    """Inside the block, `pack_hook(tensor)` is kept for each saved tensor and `unpack_hook` gives it back in backward.

    Args:
        pack_hook: takes a Tensor, returns any object. The tensor carries history: return `tensor.detach()` or something
            made of it to avoid a cycle.
        unpack_hook: takes that object, returns a Tensor with the same content. May be called several times.
    Blocks nest; only the innermost pair acts. The pair belongs to the thread.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> saved_tensors_hooks:
        _C._push_saved_hooks(self.pack_hook, self.unpack_hook)
        return self

    def __exit__(self, *_: object) -> None:
        _C._pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors in host memory. Every tensor is there already, so this changes nothing on a CPU."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        del pin_memory, device_type
        super().__init__(lambda t: t.detach(), lambda t: t)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Any:
    """Inside the block, using saved_tensors_hooks raises `error_message`."""
    before = _C._set_saved_hooks_disabled(error_message)
    try:
        yield
    finally:
        _C._set_saved_hooks_disabled(before)


class _MultiHandle:
    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for h in self.handles:
            h.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def _reached(place: Any) -> bool:
    """Whether the running pass comes to a node, or to the leaf behind a weak reference."""
    if isinstance(place, weakref.ref):
        leaf = place()
        if leaf is None or not leaf.requires_grad:
            return False
        place = get_gradient_edge(leaf).node
    return bool(_C._pass_runs(place))


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Calls `fn` once in each backward: with all gradients when the last one is ready, or with the first.

    Args:
        tensors: tensors that require grad.
        fn: in mode "all" takes a list of gradients (None for a tensor that is not part of the pass); in mode "any"
            takes the first gradient.
        mode: "all" or "any".
    Returns:
        A handle whose remove() takes the hook away.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode must be 'all' or 'any', got {mode!r}")
    items = tuple(tensors)
    for t in items:
        if not t.requires_grad:
            raise RuntimeError("register_multi_grad_hook: expects all tensors to require grad")
    lock = threading.Lock()
    # What a hook holds must not hold its own node: that of a leaf would never end. Any other ends with its tensor.
    places = [weakref.ref(t) if t.is_leaf else get_gradient_edge(t).node for t in items]
    count = len(items)
    passes: dict[int, dict[str, Any]] = {}

    def state() -> dict[str, Any]:
        key = _C._pass_id()
        found = passes.get(key)
        if found is None:
            for old in [k for k, v in passes.items() if v["done"]]:
                del passes[old]
            reached = [_reached(place) for place in places]
            found = passes[key] = {"left": sum(reached), "grads": [None] * count, "done": False}
        return found

    def make(i: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            with lock:
                s = state()
                if s["done"]:
                    return
                if mode == "any":
                    s["done"] = True
                    ready: Any = grad
                else:
                    s["grads"][i] = grad
                    s["left"] -= 1
                    if s["left"] > 0:
                        return
                    s["done"] = True
                    ready = s["grads"]
            fn(ready)

        return hook

    return _MultiHandle([t.register_hook(make(i)) for i, t in enumerate(items)])


_MUTATION = threading.local()


class _Kept:
    """A saved tensor that is copied before an in-place op overwrites it."""

    __slots__ = ("__weakref__", "copy", "tensor", "version")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor.detach()
        self.version = tensor._version
        self.copy: Any = None


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Any:
    """Inside the block a tensor saved for backward may be changed in place: backward sees what it held before.

    Forward and backward both run inside the block. Blocks do not nest.
    """
    if getattr(_MUTATION, "active", False):
        raise RuntimeError("allow_mutation_on_saved_tensors: blocks cannot be nested")
    kept: list[Any] = []

    def pack(t: Any) -> _Kept:
        k = _Kept(t)
        kept.append(k)
        return k

    def unpack(k: _Kept) -> Any:
        if not recording:
            raise RuntimeError(
                "allow_mutation_on_saved_tensors: Trying to backward outside of the block in which the graph was "
                "recorded, where changes of saved tensors are not seen; run backward inside"
            )
        return k.tensor if k.copy is None else k.copy

    def before_change(changed: Any) -> None:
        block = changed.untyped_data_ptr() if hasattr(changed, "untyped_data_ptr") else _C._block_id(changed)
        for k in kept:
            if k.copy is None and _C._block_id(k.tensor) == block:
                k.copy = k.tensor.clone()

    recording = _MUTATION.active = True
    _C._set_mutation_callback(before_change)
    try:
        with saved_tensors_hooks(pack, unpack):
            yield
    finally:
        _C._set_mutation_callback(None)
        recording = _MUTATION.active = False
        kept.clear()


# ---- drawing --------------------------------------------------------------------------------------------------------


def _describe(node: Any) -> list[str]:
    """Lines on a node: its name, what it saved, the bytes of that; of a leaf, its dtype and shape."""
    variable = getattr(node, "variable", None)
    if variable is not None:
        return [f"leaf {variable.dtype.name}{list(variable.shape)}"]
    lines, saved = [node.name()], 0
    for attribute in sorted(n for n in dir(node) if n.startswith("_saved_")):
        try:
            value = getattr(node, attribute)
        except RuntimeError as e:
            lines.append(f"{attribute[7:]}: {'freed' if 'freed' in str(e) else 'changed since'}")
            continue
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, tp.Tensor):
                saved += one.nbytes
                lines.append(f"{attribute[7:]}: {one.dtype.name}{list(one.shape)}")
    return lines + ([f"saves {saved} B"] if saved else [])


def _walk(roots: Iterable[Any]) -> tuple[list[Any], list[tuple[int, int]]]:
    """Nodes in order of discovery and edges as pairs of positions; iterative, so any depth goes."""
    nodes: list[Any] = []
    seen: dict[Any, int] = {}
    edges: list[tuple[int, int]] = []
    stack = [r.node if isinstance(r, GradientEdge) else get_gradient_edge(r).node for r in roots]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen[node] = len(nodes)
        nodes.append(node)
        stack += [n for n, _ in node.next_functions if n is not None]
    for node in nodes:
        edges += [(seen[node], seen[n]) for n, _ in node.next_functions if n is not None]
    return nodes, edges


def to_dot(roots: Any) -> str:
    """The graph behind one or several tensors in Graphviz's language: names, shapes, saved bytes."""
    nodes, edges = _walk((roots,) if isinstance(roots, (tp.Tensor, GradientEdge)) else roots)
    lines = ["digraph graph_of_gradients {", '  node [shape=box, fontname="monospace"];']
    for i, node in enumerate(nodes):
        label = "\\n".join(_describe(node)).replace('"', '\\"')
        lines.append(f'  n{i} [label="{label}"];')
    lines += [f"  n{a} -> n{b};" for a, b in edges]
    return "\n".join([*lines, "}"]) + "\n"


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    depth = [0] * count
    incoming: list[int] = [0] * count
    out: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        out[a].append(b)
        incoming[b] += 1
    ready = [i for i in range(count) if incoming[i] == 0]
    while ready:
        a = ready.pop()
        for b in out[a]:
            depth[b] = max(depth[b], depth[a] + 1)
            incoming[b] -= 1
            if incoming[b] == 0:
                ready.append(b)
    return depth


def _svg(nodes: Sequence[Any], edges: Sequence[tuple[int, int]]) -> str:
    from xml.sax.saxutils import escape

    depth = _layers(len(nodes), edges)
    texts = [_describe(node) for node in nodes]
    columns: dict[int, int] = {}
    places = []
    for d in depth:
        places.append((columns.get(d, 0) * 230 + 20, d * 110 + 20))
        columns[d] = columns.get(d, 0) + 1
    width = max((x for x, _ in places), default=0) + 230
    height = max((y for _, y in places), default=0) + 110
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="monospace" font-size="12">'
    ]
    for a, b in edges:
        (xa, ya), (xb, yb) = places[a], places[b]
        bottom = ya + 18 + 15 * len(texts[a])
        out.append(f'<line x1="{xa + 100}" y1="{bottom}" x2="{xb + 100}" y2="{yb}" stroke="#888"/>')
    for (x, y), lines in zip(places, texts, strict=True):
        out.append(
            f'<rect x="{x}" y="{y}" width="200" height="{18 + 15 * len(lines)}" rx="4" fill="#eef4fb" stroke="#456"/>'
        )
        for i, line in enumerate(lines):
            out.append(f'<text x="{x + 8}" y="{y + 20 + 15 * i}">{escape(line[:26])}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def save(roots: Any, path: str) -> None:
    """Writes the graph behind one or several tensors: `.svg` as a picture, `.dot` for Graphviz, anything else as text.

    Example:
        >>> x = tp.tensor([1.0], requires_grad=True)
        >>> tp.autograd.graph.save((x * 2).exp(), "graph.svg")
    """
    items = (roots,) if isinstance(roots, (tp.Tensor, GradientEdge)) else tuple(roots)
    nodes, edges = _walk(items)
    if path.endswith(".svg"):
        text = _svg(nodes, edges)
    elif path.endswith(".dot"):
        text = to_dot(items)
    else:
        depth = _layers(len(nodes), edges)
        rows = ["  " * min(depth[i], 40) + "  ".join(_describe(node)) for i, node in enumerate(nodes)]
        text = "\n".join(rows) + "\n"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
