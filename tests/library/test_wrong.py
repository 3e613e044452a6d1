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
