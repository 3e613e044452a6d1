"""Batching rules as codegen plans them: which rule an op gets, how arguments move, what `explain` and `list` say."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.explain import explain
from codegen.listing import missing
from codegen.plan_batch import rule_of
from codegen.resolve import load


@pytest.fixture(scope="module")
def catalogue(root: Path):  # type: ignore[no-untyped-def]
    return load(str(root / "ops.yaml"))[0]


@pytest.mark.parametrize(
    ("op", "rule", "args"),
    [
        ("mul", "broadcast", {}),
        ("clamp", "compose", {}),
        ("sum", "leading", {"dim": "all_dims"}),
        ("argmax", "leading", {"dim": "flat_dim"}),
        ("cumsum", "leading", {"dim": "dim"}),
        ("select_backward", "leading", {"size": "sizes", "dim": "dim of size"}),
        ("reshape", "leading", {"shape": "shape"}),
        ("unsqueeze", "leading", {"dim": "new_dim"}),
        ("det", "leading", {}),
        ("matmul", "matmul", {}),
        ("max_pool2d_with_indices", "fold", {}),
        ("rand", "random", {}),
        ("zeros", "none", {}),
        ("nonzero", "loop", {}),
    ],
)
def test_the_rule_of_an_op(catalogue, op: str, rule: str, args: dict[str, str]) -> None:  # type: ignore[no-untyped-def]
    e = catalogue.get(op)
    found = rule_of(e, e.overloads[0])
    assert (found.name, found.args) == (rule, args)


def test_few_ops_run_once_per_sample(catalogue) -> None:  # type: ignore[no-untyped-def]
    lines = missing(catalogue, "batch")
    assert len(lines) < 0.05 * len(catalogue.entries)
    assert any(line.startswith("argwhere ") for line in lines)


def test_explain_says_the_rule(catalogue) -> None:  # type: ignore[no-untyped-def]
    text = explain(catalogue, catalogue.get("gather"), code=False)
    assert "batching    leading: batch dimensions in front; dim counts behind them" in text
