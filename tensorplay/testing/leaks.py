"""Ways to drop a graph, each a function that leaves nothing behind; `measure` says what rounds of one left."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorplay as tp
from tensorplay.autograd import Function, forward_ad, graph
from tensorplay.utils.checkpoint import checkpoint

WAYS: dict[str, Callable[[], object]] = {}


def way(f: Callable[[], object]) -> Callable[[], object]:
    WAYS[f.__name__] = f
    return f


def leaf() -> tp.Tensor:
    return tp.ones(4, dtype=tp.float64, requires_grad=True)


class Own(Exception):
    pass


def fails(*_: Any) -> Any:
    raise Own


def square(x: Any) -> Any:
    return (x * x).sin()


def function(forward: Any, backward: Any = None) -> Any:
    """A Function made anew: classes come and go too."""
    backward = backward or (lambda ctx, g: g)
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def keeps(attribute: str) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        setattr(ctx, attribute, {"x": x, "y": y, "ctx": ctx}[attribute])
        return y

    return forward


class Saves(Function):
    """Saves its own output, and a view of it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y, y.view(-1), x)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0]


class Dirty(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class SavesView(Saves):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y.view(-1))
        return y


class Kept:
    """What a hook packs: the tensor itself, history and all."""

    def __init__(self, t: Any) -> None:
        self.t = t

    def get(self) -> Any:
        return self.t


class Named(tp.Tensor):
    pass


# ---- never, once, twice ----------------------------------------------------------------------------------------------
@way
def never_backwarded() -> None:
    square(leaf()).sum()


@way
def backward() -> None:
    square(leaf()).sum().backward()


@way
def backward_with_the_graph_kept() -> None:
    y = square(leaf()).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)


@way
def grad() -> None:
    x = leaf()
    tp.autograd.grad(square(x).sum(), x)


@way
def second_order() -> None:
    x = leaf()
    (g,) = tp.autograd.grad(square(x).sum(), x, create_graph=True)
    tp.autograd.grad(g.sum(), x)


@way
def second_order_never_run() -> None:
    x = leaf()
    tp.autograd.grad(square(x).sum(), x, create_graph=True)


@way
def a_gradient_with_history_in_its_leaf() -> None:
    import warnings

    x = leaf()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        square(x).sum().backward(create_graph=True)


@way
def backward_to_some_inputs() -> None:
    x = leaf()
    y = x * 2
    square(y).sum().backward(inputs=[y])


@way
def a_long_chain() -> None:
    y = leaf()
    for _ in range(300):
        y = y * 1.0


@way
def a_retained_gradient() -> None:
    y = leaf() * 2
    y.retain_grad()
    y.sum().backward()


@way
def an_edge() -> None:
    y = square(leaf())
    edge = graph.get_gradient_edge(y)
    del y
    roots: Any = edge
    tp.autograd.backward(roots, tp.ones(4, dtype=tp.float64))


# ---- exceptions ------------------------------------------------------------------------------------------------------
@way
def half_backwarded() -> None:
    y = square(function(lambda ctx, x: x * 1, fails).apply(square(leaf())))
    with contextlib.suppress(Own):
        y.sum().backward()


@way
def half_backwarded_with_anomaly() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tp.autograd.detect_anomaly(), contextlib.suppress(Own):
            function(lambda ctx, x: x * 1, fails).apply(square(leaf())).sum().backward()


@way
def a_hook_that_fails() -> None:
    y = square(leaf())
    y.register_hook(fails)
    with contextlib.suppress(Own):
        (y * y).sum().backward()


@way
def a_forward_that_fails() -> None:
    with contextlib.suppress(Own):
        function(fails).apply(square(leaf()))


@way
def a_wrong_number_of_gradients() -> None:
    with contextlib.suppress(RuntimeError):
        function(lambda ctx, x: x * 1, lambda ctx, g: (g, g, g)).apply(square(leaf())).sum().backward()


@way
def a_backward_that_fails_while_gradients_wait() -> None:
    y = leaf() * 2
    with contextlib.suppress(Own):
        # sin is newer, so its gradient waits for the product when the Function fails.
        (function(lambda ctx, x: x * 1, fails).apply(y) + y.sin()).sum().backward()


@way
def a_second_backward() -> None:
    y = square(leaf()).sum()
    y.backward()
    with contextlib.suppress(RuntimeError):
        y.backward()


@way
def a_changed_saved_value() -> None:
    y = leaf() * 1
    z = y.sin()
    y.mul_(2)
    with contextlib.suppress(RuntimeError):
        z.sum().backward()


# ---- Functions -------------------------------------------------------------------------------------------------------
@way
def a_context_that_holds_itself() -> None:
    function(keeps("ctx")).apply(leaf())


@way
def a_context_that_holds_its_output() -> None:
    square(function(keeps("y")).apply(leaf())).sum().backward()


@way
def a_context_that_holds_its_input() -> None:
    function(keeps("x")).apply(leaf() * 2)


@way
def a_function_that_saves_its_output() -> None:
    Saves.apply(leaf())


@way
def a_function_that_saves_its_output_backwarded() -> None:
    Saves.apply(leaf()).sum().backward()


@way
def a_function_that_changes_its_input() -> None:
    Dirty.apply((leaf() * 1)[:2])


@way
def an_output_that_knows_its_node() -> None:
    y = Saves.apply(leaf())
    y.grad_fn.output = y


# ---- hooks -----------------------------------------------------------------------------------------------------------
@way
def a_hook_on_its_own_tensor() -> None:
    y = leaf() * 2
    y.register_hook(lambda g: g if y is not None else None)


@way
def a_hook_of_a_leaf_that_holds_it() -> None:
    x = leaf()
    x.register_hook(lambda g: g * x.detach())
    square(x).sum().backward()


@way
def a_hook_of_a_node_that_holds_it() -> None:
    node = square(leaf()).grad_fn
    assert node is not None

    def hook(*_: Any) -> None:
        assert node is not None

    node.register_hook(hook)
    node.register_prehook(hook)


@way
def a_post_accumulate_hook_that_holds_its_leaf() -> None:
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda p: setattr(x, "grad", None))
    x.sum().backward()


@way
def a_hook_of_several_tensors() -> None:
    x, y = leaf(), leaf()
    graph.register_multi_grad_hook((x, y), lambda grads: grads.extend((x, y)))
    (x * y).sum().backward()


@way
def a_backward_inside_a_hook() -> None:
    x = leaf()
    y = x * 2

    def hook(g: Any) -> None:
        with tp.enable_grad():
            tp.autograd.grad(square(x).sum(), x)

    y.register_hook(hook)
    y.sum().backward()


@way
def metadata_that_holds_its_node() -> None:
    node = square(leaf()).grad_fn
    assert node is not None
    node.metadata["node"] = node


@way
def saved_tensors_packed_as_they_are() -> None:
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = square(leaf())
    y.sum().backward()


@way
def saved_tensors_packed_in_objects() -> None:
    with graph.saved_tensors_hooks(Kept, Kept.get):
        for f in (square, Saves.apply, SavesView.apply, lambda x: Dirty.apply((x * 1)[:2]), lambda x: (x * 1).exp_()):
            f(leaf())
    y: Any = leaf().exp()
    y.grad_fn._raw_saved_out.register_hooks(Kept, Kept.get)
    z: Any = Saves.apply(leaf())
    z.grad_fn._raw_saved_tensors[0].register_hooks(Kept, Kept.get)


@way
def a_pack_hook_that_fails() -> None:
    with contextlib.suppress(Own), graph.saved_tensors_hooks(fails, lambda t: t):
        square(leaf())


@way
def an_unpack_hook_that_fails() -> None:
    with graph.saved_tensors_hooks(lambda t: t.detach(), fails):
        y = square(leaf())
    with contextlib.suppress(Own):
        y.sum().backward()


# ---- views, in-place, attributes -------------------------------------------------------------------------------------
@way
def views_of_views() -> None:
    y = (leaf() * 1).view((2, 2))
    y.t()[0].mul_(3)
    y[:1].sum().backward()


@way
def several_views_of_one() -> None:
    a, _ = (leaf() * 1).chunk(2)
    a.sum()


@way
def a_tensor_that_holds_itself() -> None:
    y = square(leaf())
    y.me = y


@way
def a_tensor_of_a_subclass() -> None:
    x = leaf().detach().as_subclass(Named).requires_grad_()
    square(x).sum().backward()


@way
def copies() -> None:
    x = leaf()
    x.sum().backward()
    copy.deepcopy(x)
    pickle.loads(pickle.dumps(x))


# ---- forward mode ----------------------------------------------------------------------------------------------------
@way
def tangents() -> None:
    with forward_ad.dual_level():
        square(forward_ad.make_dual(leaf(), leaf().detach()))


@way
def tangents_in_views() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(leaf().detach(), leaf().detach()) * 1
        x[:2].mul_(2)
        forward_ad.unpack_dual(x)


@way
def a_level_left_by_an_exception() -> None:
    with contextlib.suppress(Own), forward_ad.dual_level():
        square(forward_ad.make_dual(leaf(), leaf().detach()))
        fails()


@way
def tangents_of_gradients() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(leaf(), leaf().detach())
        tp.autograd.grad(square(x).sum(), x)


# ---- checkpoint, threads, generators ---------------------------------------------------------------------------------
@way
def a_checkpoint_never_backwarded() -> None:
    checkpoint(square, leaf(), use_reentrant=False)


@way
def a_checkpoint() -> None:
    checkpoint(square, leaf(), use_reentrant=False).sum().backward()


@way
def a_reentrant_checkpoint() -> None:
    checkpoint(square, leaf(), use_reentrant=True).sum().backward()


@way
def a_checkpoint_that_fails() -> None:
    calls: list[int] = []

    def once(x: Any) -> Any:
        calls.append(1)
        return square(x) if len(calls) == 1 else fails()

    y = checkpoint(once, leaf(), use_reentrant=False)
    with contextlib.suppress(Own):
        y.sum().backward()


@way
def a_graph_of_another_thread() -> None:
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(square(leaf())))
    thread.start()
    thread.join()
    made[0].sum().backward()


@way
def a_generator_left_open() -> None:
    @tp.no_grad()
    def steps() -> Any:
        x = leaf()
        while True:
            yield square(x)

    next(steps())


@way
def functional_products() -> None:
    tp.autograd.functional.hvp(lambda x: square(x).sum(), leaf(), leaf().detach())


# ---- measuring -------------------------------------------------------------------------------------------------------
@dataclass
class Left:
    """What stayed after the rounds: data blocks, Python's memory blocks, resident bytes."""

    blocks: int
    objects: int
    resident: int

    def flat(self, rounds: int) -> bool:
        # Caches of the interpreter and the allocators breathe a little; a leak grows with the rounds.
        return self.blocks <= 0 and self.objects < max(30, rounds // 50) and self.resident < max(1 << 20, 64 * rounds)


def resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4096
    except OSError:
        return 0


def measure(f: Callable[[], object], rounds: int, warm: int = 100) -> Left:
    def now() -> tuple[int, int, int]:
        gc.collect()
        gc.collect()  # what finalisers of the first left
        return int(tp.memory.stats()["blocks_live"]), sys.getallocatedblocks(), resident()

    for _ in range(warm):
        f()
    before = now()
    for _ in range(rounds):
        f()
    after = now()
    return Left(*(b - a for a, b in zip(before, after, strict=True)))
