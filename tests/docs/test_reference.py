"""The reference of what is no op: every public name of every module has a section, made from its docstring."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import types
from pathlib import Path

import pytest
import tensorplay as tp

ROOT = Path(__file__).resolve().parents[2]


def tool_of(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    try:
        spec.loader.exec_module(tool)
    finally:
        sys.path[:] = before  # a tool looks beside itself; what other tests start must not find the source tree
    return tool


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    tool = tool_of("python_pages")
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
    stubs = (ROOT / "generated" / "stubs" / "_ops.pyi").read_text(encoding="utf-8")
    ops = set(re.findall(r"^ *def (\w+)\(", stubs, flags=re.MULTILINE))
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


def test_every_public_op_is_found_by_its_name(root: Path, pages: dict[str, str]) -> None:
    from codegen.resolve import load

    folder = root / "generated" / "docs"
    rows = re.findall(r"^\| \[(\w+)\]\((\w+\.md)#(\w+)\) \|", tool_of("reference_pages").a_to_z(
        folder, load(str(root / "ops.yaml"))[0]
    ), flags=re.MULTILINE)  # fmt: skip
    assert [name for name, _, _ in rows] == sorted({name for name, _, _ in rows})
    for name, page, anchor in rows:
        assert re.search(rf"^## {anchor}$", (folder / page).read_text(encoding="utf-8"), flags=re.MULTILINE), name
    homes = (tp._C.functions, tp._C.linalg, tp._C.nn_functional, tp._C.fft, tp._C.special)
    public = {n for home in homes for n in dir(home) if not n.startswith("_") and not n.endswith("_")}
    found = {name for name, _, _ in rows} | sections(pages["tensorplay"])  # a few are written by hand
    assert public <= found, public - found
