"""What define_op refuses: the code, the place in the caller's text, and that nothing was compiled."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
import tensorplay as tp
from tensorplay.library import DefinitionError, _compile

from .wrong import WRONG


def marked(text: str) -> list[str]:
    """The characters over every caret of a rendered diagnostic."""
    lines = text.split("\n")
    out = []
    for above, line in pairwise(lines):
        m = re.match(r" +\| ( *)(\^+)$", line)
        if m:
            source = above.split("| ", 1)[1] if "| " in above else ""
            out.append(source[len(m[1]) : len(m[1]) + len(m[2])])
    return out


def test_there_are_many() -> None:
    assert len(WRONG) >= 100


@pytest.mark.parametrize(("code", "mark", "keys"), WRONG, ids=lambda v: str(v)[:60])
def test_refused(code: str, mark: str, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compile, "compile_library", lambda *_: pytest.fail("it was compiled"))
    with pytest.raises(DefinitionError) as caught:
        tp.define_op(**keys)
    text = str(caught.value)
    assert code in caught.value.codes, text
    assert f"error[{code}]" in text
    assert re.search(r":\d+:\d+: error", text) or not mark, text
    if mark:
        assert any(mark in m or m in mark for m in marked(text) if m), f"{mark!r} is under no caret\n{text}"


def test_what_is_no_file_of_ops(tmp_path: Any) -> None:
    takes = "define_ops: it takes the path of a YAML file of ops"
    with pytest.raises(ValueError, match=f"{takes}, not its text"):
        tp.define_ops("schema: 1\nops:\n- op: f\n")
    with pytest.raises(TypeError, match=f"{takes}, not int"):
        tp.define_ops(3)  # type: ignore[arg-type]
    with pytest.raises(IsADirectoryError, match="define_ops: .* is a folder; it takes"):
        tp.define_ops(str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"define_ops: .*none\.yaml does not exist"):
        tp.define_ops(str(tmp_path / "none.yaml"))
    with pytest.raises(TypeError, match=r"define_op: .* expr='x \* 2'"):
        tp.define_op("f(Tensor x) -> Tensor out", "x * 2")  # type: ignore[call-overload]
    with pytest.raises(DefinitionError, match=r"op 'lone': no file .*none\.cpp"):
        tp.define_op("lone(Tensor x) -> Tensor out", kernel="lone", sources="none.cpp", vjp={"x": "g"})


def test_a_number_that_would_lose_its_gradient(cache: Any) -> None:
    times = tp.define_op("times_k(Tensor x, *, float k) -> Tensor out", expr="x * k")
    k = tp.tensor(2.0, requires_grad=True)
    with pytest.raises(TypeError, match=r"times_k: k is a number; .* or declare k as Tensor in the op"):
        times(tp.ones(2), k=k)
    assert times(tp.ones(2), k=k.detach()).tolist() == [2.0, 2.0]
