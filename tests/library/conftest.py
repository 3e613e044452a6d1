"""A cache of this test run, shared by its worker processes: an op is compiled once, nothing of an old run used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    top = tmp_path_factory.getbasetemp()
    folder = (top.parent if os.environ.get("PYTEST_XDIST_WORKER") else top) / "ops-cache"
    patch = pytest.MonkeyPatch()
    patch.setenv("TENSORPLAY_CACHE_DIR", str(folder))
    patch.setenv("TENSORPLAY_CXXFLAGS", "-O1")  # what is tested does not depend on it, and the compiler is quicker
    yield folder
    patch.undo()
