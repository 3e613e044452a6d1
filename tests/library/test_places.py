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
    # what a formula lacks, and how it is said there
    (f"tp.define_op({SIG}, compose='x if x is not None else 1')\n", "E110 1:57", "write x != None"),
    (f"tp.define_op({SIG}, compose='x if x is None else 1')\n", "E110 1:57", "write x == None"),
    (f"tp.define_op({SIG}, compose='x if 1 in (2, 3) else 1')\n", "E110 1:57", "1 == 2 or 1 == 3"),
    (f"tp.define_op({SIG}, compose='x if 1 not in (2, 3) else 1')\n", "E110 1:57", "1 != 2 and 1 != 3"),
    ("@tp.define_op\ndef f(x, y=None):\n    return x\n", "E207 2:10", "Tensor? y=None in a signature"),
    ("@tp.define_op\ndef f(x, y: float = None):\n    return x\n", "E207 2:10", "float? y=None in a signature"),
    ("@tp.define_op\ndef f(x, y=()):\n    return x\n", "E207 2:10", "the default of 'y' is a tuple"),
    ("@tp.define_op\ndef f(x):\n    if x: return x\n", "E110 3:5", "an if statement is not part of a formula"),
    ("@tp.define_op\ndef f(x):\n    x[0] = 1\n    return x\n", "E110 3:5", "an assignment to more than a name is"),
    ("@tp.define_op\ndef f(x):\n    print(x)\n    return x\n", "E110 3:5", "an expression whose value nothing takes"),
    ("@tp.define_op\ndef f(x):\n    while x: pass\n", "E110 3:5", "a while statement is not part of a formula"),
    ("@tp.define_op\ndef f(x):\n    return\n", "E110 3:5", "a return without a value is not part of a formula"),
    ("@tp.define_op\nasync def f(x):\n    return x\n", "E110 2:1", "an async function is no formula"),
    ("f = tp.define_op(lambda x: x)\n", "E110 1:18", "a lambda is no formula"),
    # dtypes that the formula is not defined for
    (f"tp.define_op({SIG}, expr='x / 3', dtypes=['int'])\n", "E409 1:49", "its values are floats, and dtypes has none"),
    (f"tp.define_op({SIG}, expr='1 + x % 2', dtypes=['complex'])\n", "E409 1:49", "'x % 2' is not defined for complex"),
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
