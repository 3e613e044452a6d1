"""The reference of what is no op: every public name of every module has a section, made from its docstring."""

from __future__ import annotations

import importlib
import importlib.util
import re
import types
from pathlib import Path

import pytest
import tensorplay as tp

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("python_pages", ROOT / "tools" / "python_pages.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    folder = tmp_path_factory.mktemp("pages")
    assert tool.main(folder) == 0
    return {p.stem.removeprefix("python_"): p.read_text(encoding="utf-8") for p in folder.glob("*.md")}


def sections(text: str) -> set[str]:
    return {*re.findall(r"^## (\w+)$", text, flags=re.MULTILINE)}


MODULES = ["autograd", "autograd.graph", "func", "library", "memory", "random", "utils.checkpoint"]


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_a_module_has_a_section(pages: dict[str, str], name: str) -> None:
    module = importlib.import_module(f"tensorplay.{name}")
    around = name.rpartition(".")[0]  # what the package has too is there
    found = {s for n in {name, around or name} for s in sections(pages.get(f"tensorplay_{n.replace('.', '_')}", ""))}
    wanted = {n for n in module.__all__ if callable(getattr(module, n))}
    assert wanted and found >= wanted, wanted - found


def test_the_top_has_what_is_neither_op_nor_module(pages: dict[str, str]) -> None:
    ops = set(dir(tp._C.functions))
    wanted = {
        n for n in dir(tp)
        if not n.startswith("_") and n not in ops and not isinstance(v := getattr(tp, n), types.ModuleType)
        and callable(v) and str(getattr(v, "__module__", "")).startswith("tensorplay")
    }  # fmt: skip
    assert {"save", "load", "define_op", "Generator", "tensor", "no_grad"} <= wanted
    assert sections(pages["tensorplay"]) >= wanted, wanted - sections(pages["tensorplay"])


def test_members_that_are_no_ops_are_listed(pages: dict[str, str]) -> None:
    text = pages["tensorplay"]
    assert "| `backward` | Accumulates" in text and "| `register_hook` |" in text
    assert "| `exp` |" not in text, "ops have pages of their own"


def test_nothing_is_without_words(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            said = re.sub(r"```.*?```", "", part, flags=re.DOTALL).split("\n", 1)[1].strip()
            assert said, f"{name}: {part.splitlines()[0]} has no docstring"
