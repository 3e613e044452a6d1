"""Code blocks of the documentation run: Python as programs, sessions as doctests, entries through the generator."""

from __future__ import annotations

import doctest
import linecache
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(#[\w-]*)?\)")
FILE = re.compile(r"// ([\w/]+\.(?:h|cpp))\n")
COMMAND = re.compile(r"^    (?:c = )?command\(\"([\w-]+)\"|^        \(\"(\w+)\", \"", re.MULTILINE)
COMMANDS = {a or b for a, b in COMMAND.findall((ROOT / "codegen" / "cli.py").read_text(encoding="utf-8"))}
# Blocks that are read, not run: commands of a shell; and C++, compiled where Python on its page defines an op of it.
SHOWN = {"console", "cpp", "toml", "text", "mermaid", "sh"}


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    for m in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield m[1], textwrap.dedent(m[2])


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in")  # a page shows what they are for
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page share their names, as a reader who types them in expects."""
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": f"docs_{page.stem}"}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    said: list[str] = []
    for number, (kind, text) in enumerate(blocks(page)):
        if kind == "python" and "serpentine" not in text:  # README's op is added by hand first
            file = f"{name(page)}[{number}]"
            # Functions of the block have a source, as they have in a reader's file.
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            exec(compile(text, file, "exec"), scope)
        elif kind == "cpp" and (m := FILE.match(text)):  # what the reader saves under the name in its first line
            at = tmp_path / m[1]
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
        elif kind == "pycon":
            test = doctest.DocTestParser().get_doctest(text, scope, name(page), name(page), number)
            runner.run(test, out=said.append, clear_globs=False)
            scope.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_every_kind_of_block_is_known() -> None:
    kinds = {kind for page in PAGES for kind, _ in blocks(page)}
    assert kinds - SHOWN <= {"python", "pycon", "yaml", "bash"}, kinds


def test_entries_pass_the_generator(tmp_path: Path) -> None:
    """The entries of all pages at once, as ops of a reader's file beside the library's own."""
    seen: dict[str, str] = {}
    for page in PAGES:
        for kind, text in blocks(page):
            if kind == "yaml" and text.startswith("- op:"):
                for entry in re.split(r"^(?=- op:)", text, flags=re.MULTILINE):
                    if entry.strip():
                        seen[entry.split("\n")[0]] = entry
    assert len(seen) >= 6
    path = tmp_path / "pages.yaml"
    path.write_text("schema: 1\nops:\n" + "".join(seen.values()), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "codegen", "write", "--ops", str(path)],
        cwd=ROOT, text=True, capture_output=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in LINK.findall(text):
        if "://" in target:
            continue
        place = page.parent / target if target else page
        if target.startswith("reference/"):
            place = ROOT / "generated" / "docs" / target[len("reference/") :]
        assert place.exists(), f"{name(page)}: {target}"
        if anchor:
            assert anchor[1:] in anchors(place), f"{name(page)}: {target}{anchor}"


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_decision_is_named_by_a_link(page: Path) -> None:
    """A bare number goes on pointing at something when decisions are numbered anew."""
    text = re.sub(r"\[[^\]]*\]\([^)]*\)|^## .*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert not re.findall(r"decisions? \d+|\bsee \d+\b", text, flags=re.IGNORECASE)


def test_decisions_are_complete() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert [int(p.partition(".")[0]) for p in parts] == [*range(1, len(parts) + 1)]
    for part in parts:
        assert all(f"**{word}.**" in part for word in ("Context", "Choice", "Rejected")), part.splitlines()[0]
        for number in re.findall(r"see (\d+)\)$", part.splitlines()[0]):
            assert int(number) <= len(parts)


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent != ROOT and p.name != "decisions.md"], ids=name)
def test_commands_are_those_of_an_installed_package(page: Path) -> None:
    """A reader of the site has a wheel, and `python -m codegen` is there in the source tree alone."""
    text = page.read_text(encoding="utf-8")
    assert "python -m codegen" not in text
    for command in re.findall(r"tensorplay-codegen ([a-z][\w-]*)", text):
        assert command in COMMANDS, f"{name(page)}: tensorplay-codegen {command}"
