"""A fixed sample of random programs: gradients, tangents and second derivatives against differences.

`tools/program_check.py` runs many, and compares with PyTorch.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tensorplay as tp
from tensorplay.testing.programs import compare, language
from tensorplay.testing.programs.draw import Drawer, differentiable

TOOL = Path(__file__).resolve().parents[2] / "tools" / "program_check.py"


@cache
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("program_check", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["program_check"] = module
    spec.loader.exec_module(module)
    return module


@cache
def ops() -> tuple[Any, ...]:
    return tuple(differentiable(tool().rows()))


def drawn(seed: int) -> language.Program:
    return Drawer(list(ops()), np.random.default_rng(seed), Counter()).program()


@pytest.mark.parametrize("block", range(6))
def test_sample(block: int) -> None:
    statuses: Counter[str] = Counter()
    for seed in range(10 * block, 10 * block + 10):
        program = drawn(seed)
        verdict = compare.check(program, seed, ("tangent", "second") if seed % 2 else ("tangent",))
        assert verdict.status in ("agrees", "refused", "kink"), f"{verdict.what}\n{compare.listing(program)}"
        statuses[verdict.status] += 1
    assert statuses["agrees"] >= 6, statuses


def test_a_program_is_data() -> None:
    program = drawn(7)
    mine = compare.outcome(tp, program)
    interpreter = compare.Other(sys.executable, "tensorplay", str(Path(tp.__file__).parents[1]))
    other = interpreter.ask(program)
    interpreter.close()
    assert not mine.error and not other["error"]
    assert compare.differences(mine, other) == ""
    other["loss"] += 1
    assert "loss" in compare.differences(mine, other)


class Wrong(tp.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


def test_a_wrong_derivative_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    known = language.functions(tp)
    monkeypatch.setitem(known, "Tanh", Wrong)

    def wrong(p: language.Program) -> bool:
        return compare.check(p, 1, ()).status == "wrong"

    with_tanh = (p for p in map(drawn, range(100)) if any(s.get("name") == "Tanh" for s in p["steps"]))
    program = next(filter(wrong, with_tanh))  # a slope of 0 behind it would hide the factor
    small = compare.minimise(program, wrong)
    assert [s["do"] for s in small["steps"]].count("function") == 1 and len(small["steps"]) < len(program["steps"])
    assert "Tanh.apply(" in compare.listing(small)
