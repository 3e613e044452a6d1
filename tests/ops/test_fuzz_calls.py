"""A small sample of the op fuzzer under a fixed seed; `python -m tools.fuzz_calls` runs the rest, in children."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tensorplay as tp
from tensorplay.testing import wild

ROOT = Path(__file__).resolve().parents[2]
# What the test process may not run itself: calls that ask for all the memory there is.
LARGE = {
    *("arange", "empty", "eye", "full", "linspace", "logspace", "ones", "zeros", "tril_indices", "triu_indices"),
    *("repeat", "tile", "new_zeros", "new_ones", "new_full", "rand", "randn", "randint", "randperm", "one_hot"),
}


def ops() -> list[Any]:
    found = []
    for path in sorted((ROOT / "generated" / "tests").glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"fuzzed_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += [op for op in module.OPS if op.home != "internal"]
    return found


OPS = ops()


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_right_calls(op: Any) -> None:
    for i in range(4):
        call = wild.draw_call(op, 0, i, right=True)
        if call is not None:
            assert (wrong := wild.judge(call)) is None, f"{wild.describe(call)}: {wrong}"


@pytest.mark.parametrize("op", [op for op in OPS if op.name not in LARGE], ids=lambda op: op.name)
def test_wrong_calls(op: Any) -> None:
    for i in range(6):
        call = wild.draw_call(op, 1, i, right=False)
        if call is not None and not wild.is_huge(call):
            assert (wrong := wild.judge(call)) is None, f"{wild.describe(call)}: {wrong}"


def test_the_judge_notices() -> None:
    """A wrong value, an error without a name and a half-written operand are told."""
    op = next(op for op in OPS if op.name == "tanh")
    x = tp.ones(3, dtype=tp.float64)

    def other(*_: Any, **__: Any) -> Any:
        return x * 3

    def nameless(*_: Any, **__: Any) -> Any:
        raise ValueError("something is wrong")

    def writes(t: Any) -> Any:
        t[0] = 5
        raise ValueError("tanh: too late")

    call = wild.draw_call(op, 0, 1, right=True)
    assert call is not None
    call.function, call.dtype, call.odd = other, "f64", False
    assert "differs" in (wild.judge(call) or "")
    for f, text in ((nameless, "does not name"), (writes, "written to"), (lambda *_: {}[1], "raises KeyError")):
        call = wild.Call(op, f, [x.clone()], {}, False, names=("tanh",))
        call.copies = [(call.args[0], wild.bits(call.args[0]))]
        assert text in (wild.judge(call) or ""), text


@pytest.mark.parametrize(
    "make",
    [
        lambda: tp.zeros(2**60), lambda: tp.ones(2**31, 2**31), lambda: tp.empty(2**62 - 1, dtype=tp.uint8),
        lambda: tp.full((2**40, 2**10), 1.0), lambda: tp.arange(2**61), lambda: tp.ones(1).expand(2**60).clone(),
        lambda: tp.ones(1).expand(2**60) + 1, lambda: tp.ones(2).repeat(2**59), lambda: tp.eye(2**30),
        lambda: tp.zeros(2**62, 8), lambda: tp.randn(2**50),
    ],
)  # fmt: skip
def test_memory_that_is_not_there(make: Any) -> None:
    with pytest.raises(MemoryError, match=":"):
        make()
    assert tp.ones(4).sum().item() == 4


def test_ctrl_c_ends_an_op() -> None:
    code = (
        "import _thread, threading, time, tensorplay as tp\n"
        "x = tp.rand(1 << 22)\n"
        "def stop():\n"
        "    time.sleep(0.5)\n"
        "    global at\n"
        "    at = time.perf_counter()\n"
        "    _thread.interrupt_main()\n"
        "for f in (lambda: tp.special.digamma(x.expand(200, 1 << 22)), lambda: x.expand(3000, 1 << 22).sum()):\n"
        "    threading.Thread(target=stop).start()\n"
        "    try:\n"
        "        f()\n"
        "        print('was not long')\n"
        "    except KeyboardInterrupt:\n"
        "        print('ended', time.perf_counter() - at)\n"
        "print(tp.ones(3).sum().item())\n"
    )
    started = time.perf_counter()
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)
    assert out.stdout.count("ended") + out.stdout.count("was not long") == 2, out.stdout + out.stderr
    assert out.stdout.splitlines()[-1] == "3.0" and "ended" in out.stdout, out.stdout
    assert time.perf_counter() - started < 60
