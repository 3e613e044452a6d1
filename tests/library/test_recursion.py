"""Ops composed through themselves: as deep as the stack of the thread allows, and an error of Python's beyond."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import tensorplay as tp

FILE = """
schema: 1
ops:
- op: even_half
  family: composite
  sig: even_half(Tensor x, int n) -> Tensor out
  compose: odd_half(x / 2, n - 1) if n > 0 else x
  like: {tests: test_recursion.py}
  doc: Half of the elements n times.
- op: odd_half
  family: composite
  sig: odd_half(Tensor x, int n) -> Tensor out
  compose: even_half(x / 2, n - 1) if n > 0 else -x
  like: {tests: test_recursion.py}
  doc: As the other one, negative at the end.
"""


def test_one_that_goes_too_deep_is_a_recursion_error(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(FILE)
    half = tp.define_ops(path).even_half
    assert half(tp.ones(2), 3).tolist() == [-0.125, -0.125]
    x = tp.ones(2, dtype=tp.float64, requires_grad=True)
    half(x, 601).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [-(2.0**-601)] * 2
    with pytest.raises(RecursionError, match=r"_half: called itself until the stack of \d+ KB was full"):
        half(tp.ones(2), 10**7)
    with pytest.raises(RecursionError, match="_half: called itself"):
        tp.vmap(lambda v: half(v, 10**7))(tp.ones(3, 2))


def test_the_stack_is_that_of_the_thread() -> None:
    down = tp.define_op("down(Tensor x, int n) -> Tensor out", compose="down(x + 1, n - 1) if n > 0 else x")
    said: list[str] = []

    def call() -> None:
        assert down(tp.zeros(1), 100).item() == 100
        with pytest.raises(RecursionError) as caught:
            down(tp.zeros(1), 10**7)
        said.append(str(caught.value))

    size = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
    assert said == ["down: called itself until the stack of 1024 KB was full; let the recursion end sooner"]
