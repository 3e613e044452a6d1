"""What is measured: each row builds, for one library, the call that is timed. Knows nothing of timing or printing.

Libraries with PyTorch's names share one builder; NumPy has its own where the row makes sense without gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    name: str
    group: str
    tensor: Callable[[ModuleType], Call]
    numpy: Callable[[], Call] | None = None


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def binary_tensor(size: int, grad: bool) -> Callable[[ModuleType], Call]:
    def build(lib: ModuleType) -> Call:
        a, b = lib.from_numpy(normal(size)), lib.from_numpy(normal(size))
        if grad:
            a.requires_grad_()
        return lambda: a + b

    return build


def binary_numpy(size: int) -> Callable[[], Call]:
    def build() -> Call:
        a, b = normal(size), normal(size)
        return lambda: a + b

    return build


def unary_tensor(name: str, size: int) -> Callable[[ModuleType], Call]:
    def build(lib: ModuleType) -> Call:
        f, x = getattr(lib, name), lib.from_numpy(normal(size))
        return lambda: f(x)

    return build


def unary_numpy(name: str, size: int) -> Callable[[], Call]:
    def build() -> Call:
        f, x = getattr(np, name), normal(size)
        return lambda: f(x)

    return build


def chain(length: int) -> Callable[[ModuleType], Call]:
    """Forward and backward of a chain of small ops: graph overhead and little else."""

    def build(lib: ModuleType) -> Call:
        x = lib.from_numpy(normal(4)).requires_grad_()

        def call() -> None:
            y = x
            for _ in range(length // 2):
                y = y * 1.01 + x
            y.sum().backward()
            x.grad = None

        return call

    return build


def gradient(name: str, size: int) -> Callable[[ModuleType], Call]:
    def build(lib: ModuleType) -> Call:
        f, x = getattr(lib, name), lib.from_numpy(normal(size)).requires_grad_()

        def call() -> None:
            f(x).sum().backward()
            x.grad = None

        return call

    return build


def matmul_tensor(n: int) -> Callable[[ModuleType], Call]:
    def build(lib: ModuleType) -> Call:
        a, b = lib.from_numpy(normal(n, n)), lib.from_numpy(normal(n, n))
        return lambda: a @ b

    return build


def matmul_numpy(n: int) -> Callable[[], Call]:
    def build() -> Call:
        a, b = normal(n, n), normal(n, n)
        return lambda: a @ b

    return build


def sum_tensor(lib: ModuleType) -> Call:
    x = lib.from_numpy(normal(1024, 1024))
    return lambda: x.sum(1)


def sum_numpy() -> Call:
    x = normal(1024, 1024)
    return lambda: x.sum(1)


def transposed_tensor(lib: ModuleType) -> Call:
    a, b = lib.from_numpy(normal(1024, 1024)), lib.from_numpy(normal(1024, 1024))
    return lambda: a + b.transpose(0, 1)


def transposed_numpy() -> Call:
    a, b = normal(1024, 1024), normal(1024, 1024)
    return lambda: a + b.T


def softmax_tensor(lib: ModuleType) -> Call:
    x = lib.from_numpy(normal(1024, 1024))
    return lambda: lib.softmax(x, 1)


def training_step(lib: ModuleType) -> Call:
    """One step of a two-layer network on a batch of 64 images of 784 values."""
    functional = lib.nn.functional
    x = lib.from_numpy(normal(64, 784))
    y = lib.from_numpy(np.arange(64) % 10)
    w1 = lib.from_numpy(normal(256, 784) * np.float32(0.03)).requires_grad_()
    w2 = lib.from_numpy(normal(10, 256) * np.float32(0.06)).requires_grad_()

    def call() -> None:
        loss = functional.cross_entropy(functional.linear(lib.tanh(functional.linear(x, w1)), w2), y)
        loss.backward()
        with lib.no_grad():
            for w in (w1, w2):
                w.sub_(w.grad * 0.01)
                w.grad = None

    return call


SMALL, LARGE, HUGE = 4, 1 << 20, 1 << 24
ROWS = [
    Row("a + b, 4 elements", "overhead", binary_tensor(SMALL, False), binary_numpy(SMALL)),
    Row("a + b, 4 elements, recorded", "overhead", binary_tensor(SMALL, True)),
    Row("exp(x), 4 elements", "overhead", unary_tensor("exp", SMALL), unary_numpy("exp", SMALL)),
    Row("chain of 100 ops and backward", "overhead", chain(100)),
    Row("a + b, 16M", "throughput", binary_tensor(HUGE, False), binary_numpy(HUGE)),
    Row("a + b.T, 1024 x 1024", "throughput", transposed_tensor, transposed_numpy),
    Row("exp(x), 1M", "throughput", unary_tensor("exp", LARGE), unary_numpy("exp", LARGE)),
    Row("tanh(x), 1M", "throughput", unary_tensor("tanh", LARGE), unary_numpy("tanh", LARGE)),
    Row("tanh(x).sum() and backward, 1M", "throughput", gradient("tanh", LARGE)),
    Row("x.sum(1), 1024 x 1024", "throughput", sum_tensor, sum_numpy),
    Row("softmax(x, 1), 1024 x 1024", "throughput", softmax_tensor),
    Row("a @ b, 64 x 64", "products", matmul_tensor(64), matmul_numpy(64)),
    Row("a @ b, 1024 x 1024", "products", matmul_tensor(1024), matmul_numpy(1024)),
    Row("training step, 784-256-10", "products", training_step),
]
