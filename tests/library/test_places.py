"""Where a refusal of define_op points: code, line and column in the caller's file, counted by hand, and the hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tensorplay as tp
from tensorplay.library import DefinitionError, _compile

SIG = '"f(Tensor x) -> Tensor out"'
# source, then "code line:column" of each fault, then what the text says besides
CASES = [
    # a keyword: its own name, not its value
    (f"tp.define_op({SIG}, exp='x')\n", "E104 1:43", "unknown key 'exp'"),
    (f"tp.define_op(\n    {SIG},\n    expr='x',\n    bta=1.0,\n)\n", "E104 4:5", "unknown key 'bta'"),
    (f"tp.define_op({SIG}, expr='x**2', d={{'y': '2 * x'}})\n", "E204 1:60", ""),
    ("@tp.define_op(promot='float')\ndef f(x):\n    return x\n", "E104 1:15", "unknown key 'promot'"),
    ("@tp.define_op(promote='flaot')\ndef f(x):\n    return x\n", "E106 1:24", "'flaot' is not known"),
    # a function: its own lines, also where the formula stands there in other words
    ("@tp.define_op\ndef f(x):\n    return x.clamp(min=0.1)\n", "E203 3:12", "clamp() has no argument 'min'"),
    ("@tp.define_op\ndef f(x):\n    y = tp.exp(input=x)\n    return 2 * y\n", "E203 4:12", "go by position alone"),
    ("@tp.define_op(d={'x': '2 * y'})\ndef f(x):\n    return tp.square(x)\n", "E201 1:28", "'y' is not an argument"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "where", "says"), CASES, ids=lambda v: str(v)[:50])
def test_it_points_at_the_fault(
    source: str, where: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compile, "compile_library", lambda *_: pytest.fail("it was compiled"))
    path = tmp_path / "caller.py"
    path.write_text(source)
    with pytest.raises(DefinitionError) as caught:
        exec(compile(source, str(path), "exec"), {"tp": tp, "__name__": "caller"})
    text = str(caught.value)
    found = re.findall(rf"^{re.escape(str(path))}:(\d+:\d+): error\[(E\d+)\]", text, re.MULTILINE)
    assert [f"{code} {at}" for at, code in found] == where.split(", "), text
    assert says in text, text
