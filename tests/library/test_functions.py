"""Every function that a formula may call has a form in C++ for every dtype that its op is said to take."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from tensorplay.library import _compile, _store

from codegen.base import library
from codegen.define import Refused, define
from codegen.functions import FUNCTIONS
from codegen.given import Given

HEADERS = '#include "kernels/loop_support.h"\n#include "kernels/loops.h"\n'


def loops(name: str, number: int) -> str | None:
    """The loops of an op that calls the function with as many arguments as it takes."""
    for args in ("x", "xy", "xyz"):
        sig = f"f{number}({', '.join('Tensor ' + a for a in args)}) -> Tensor out"
        try:
            files = define([Given({"sig": sig, "expr": f"{name}({', '.join(args)}) + 0 * x"})], "x.py").files
        except Refused:
            continue
        text = next(t for f, t in files.items() if f.startswith("cpp/kernels"))
        return re.sub(r"\w+_loops\b", f"loops_{number}", text[text.index("namespace tp {") :])
    return None


@pytest.mark.timeout(900)
def test_every_function_compiles(tmp_path: Path) -> None:
    base = library()
    assert base is not None
    ops = [e.op for e in base.entries if e.elementwise and e.overloads[0].expr and "internal" not in e.home]
    names = list(dict.fromkeys([*(n for n in FUNCTIONS if n.isidentifier()), *ops]))
    made = {n: text for i, n in enumerate(names) if (text := loops(n, i)) is not None}
    assert len(made) > 120 and {"sin", "atan2", "where", "silu", "logit", "frac"} <= made.keys()
    unit = tmp_path / "all.cpp"
    unit.write_text(HEADERS + "".join(made.values()))
    folders = [*_store.include_folders(), sysconfig.get_paths()["include"]]
    flags = [*_compile.COMMON, "-DTP_ISA=baseline", "-fsyntax-only", *(f"-I{p}" for p in folders)]
    done = subprocess.run([*_store.compiler(), *flags, str(unit)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
