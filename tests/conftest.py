"""Shared by all tests: the generator importable as `codegen`, and a last line that names every skip."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def load_codegen() -> None:
    """Makes the source tree's generator importable without putting the source tree, and so tensorplay, on sys.path."""
    if "codegen" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        "codegen", ROOT / "codegen" / "__init__.py", submodule_search_locations=[str(ROOT / "codegen")]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["codegen"] = module
    spec.loader.exec_module(module)


load_codegen()


@pytest.fixture(scope="session")
def root() -> Path:
    """The source tree; for tests that read sources or run `python -m codegen` there."""
    return ROOT


def describe_skips(skipped: list[pytest.TestReport]) -> str:
    """One line: each reason once, with how many tests gave it."""
    reasons: Counter[str] = Counter()
    for report in skipped:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[f"{report.nodeid.split('::')[0]}: {text.removeprefix('Skipped: ')}"] += 1
    if not reasons:
        return "skipped: none"
    return "skipped: " + "; ".join(f"{count} x {reason}" for reason, count in sorted(reasons.items()))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    # After pytest's own closing line, and only in the process that has it.
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    reporter.write_line(describe_skips(reporter.stats.get("skipped", []) + reporter.stats.get("xfailed", [])))
