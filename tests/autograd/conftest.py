"""The checklist of what users expect of autograd: every test names its row, and runs on PyTorch too.

`TENSORPLAY_TEST_MODULE=torch` runs the same rows there; those marked `ours` are where the two differ on purpose.
"""

from __future__ import annotations

import os

import pytest

OTHER = os.environ.get("TENSORPLAY_TEST_MODULE", "tensorplay") != "tensorplay"
collect_ignore = ["test_better.py", "test_corners.py", "test_function_apply.py", "test_python_face.py"] if OTHER else []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(name): the row of the autograd checklist this test holds to")
    config.addinivalue_line("markers", "ours: a row in which this library differs from PyTorch on purpose")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not OTHER:
        return
    ours = [i for i in items if i.get_closest_marker("ours")]
    if ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [i for i in items if i not in ours]
