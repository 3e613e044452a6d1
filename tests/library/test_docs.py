"""The Python of docs/your_own_ops.md runs, block after block, in one module."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest


@pytest.mark.timeout(600)
def test_the_page_runs(root: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (root / "docs" / "your_own_ops.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 5
    # A file, so that functions have a source to be read from.
    file = tmp_path / "page.py"
    file.write_text("\n".join(blocks), encoding="utf-8")
    module = types.ModuleType("page")
    module.__file__ = str(file)
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), vars(module))
    assert module.bump.__doc__.startswith("bump(") or "A bell over the origin" in module.bump.__doc__
