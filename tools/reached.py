"""A plugin of pytest: which mutants of a build with schemata each test reaches, and how long it takes.

One JSON line a test, in a file of each process below the folder TP_REACHED names.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorplay as tp

library = ctypes.CDLL(str(next(iter((Path(tp.__file__ or "").parent / "lib").glob("libtensorplay.*")))))
SIZE = ctypes.c_int.in_dll(library, "tp_mutant_count").value
HIT = (ctypes.c_ubyte * SIZE).in_dll(library, "tp_mutant_hit")
OUT = Path(os.environ["TP_REACHED"]) / f"{os.getpid()}.jsonl"
failed: set[str] = set()
AT_START = {k for k, v in enumerate(bytes(HIT)) if v}  # what importing the library runs, every test relies on


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        failed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[Any]:
    ctypes.memset(HIT, 0, SIZE)
    start = time.monotonic()
    result = yield
    seconds = time.monotonic() - start
    hits = sorted(AT_START | {k for k, v in enumerate(bytes(HIT)) if v})
    record = {"test": item.nodeid, "seconds": seconds, "hits": hits, "passed": item.nodeid not in failed}
    with OUT.open("a") as f:
        f.write(json.dumps(record) + "\n")
    return result
