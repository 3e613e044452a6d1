"""Section 2, thread rules: threads that run backward into the same leaves lose nothing.

`tools/thread_check.py` runs long.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest
import tensorplay as tp

row = pytest.mark.row


def tool() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools" / "thread_check.py"
    spec = importlib.util.spec_from_file_location("thread_check", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["thread_check"] = module
    spec.loader.exec_module(module)
    return module


@row("2.thread rules")
def test_sums_over_shared_leaves_are_exact() -> None:
    rounds, faults = tool().run(8, 2.0, 400_000)
    assert rounds >= 8 and not faults, faults


@row("2.thread rules")
def test_a_retained_gradient_of_a_shared_value() -> None:
    y = tp.ones(400_000, dtype=tp.float64, requires_grad=True) * 1
    y.retain_grad()
    total = y.sum()
    threads = [threading.Thread(target=lambda: total.backward(retain_graph=True)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert float(y.grad.min()) == float(y.grad.max()) == 8.0
