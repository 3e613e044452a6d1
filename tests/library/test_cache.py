"""The cache of compiled ops: one compile however many ask, no leftovers of a killed one, nobody else's folder."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tensorplay as tp
from tensorplay.library import BuildError, _store

DEFINE = """
import sys, tensorplay as tp
f = tp.define_op("halved(Tensor input) -> Tensor out", expr="input / 2")
assert f(tp.tensor([3.0])).item() == 1.5
print("generator" if "jinja2" in sys.modules else "cache")
"""
# Counts compiles, and hangs in the middle of one while a file `hang` is there.
WRAPPER = """#!/bin/sh
echo "$$" >> {top}/calls
while [ -e {top}/hang ]; do sleep 0.05; done
exec {cxx} "$@"
"""


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    wrapper = tmp_path / "c++"
    wrapper.write_text(WRAPPER.format(top=tmp_path, cxx=shlex.join(_store.compiler())))
    wrapper.chmod(0o755)
    paths = [p for p in sys.path if p]
    return os.environ | {
        "CXX": str(wrapper), "TENSORPLAY_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(paths),
        "TENSORPLAY_CXXFLAGS": "-O0", "TENSORPLAY_PRECOMPILED_HEADERS": "0",
    }  # fmt: skip


# Takes a library that is there in place of a compile.
TAKE = """
import shutil, sys
from tensorplay.library import _compile
_compile.compile_library = lambda work, files, sources, includes, out: shutil.copy(sys.argv[1], out)
"""


def start(place: dict[str, str], before: str = "", *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", before + DEFINE, *args], env=place, text=True, stdout=-1, stderr=-1)


@pytest.mark.timeout(900)
def test_sixteen_processes_compile_once(place: dict[str, str], tmp_path: Path) -> None:
    said = [p.communicate() for p in [start(place) for _ in range(16)]]
    assert all(not err for _, err in said), said
    assert sorted(out.strip() for out, _ in said) == ["cache"] * 15 + ["generator"]
    assert len((tmp_path / "calls").read_text().split()) == 3  # functions and bindings, loops, the link
    left = [p.name for p in (tmp_path / "cache" / "ops").iterdir()]
    assert len(left) == 1 and ".tmp" not in left[0], left
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


@pytest.mark.timeout(900)
def test_a_killed_compile_leaves_nothing_that_is_used(place: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "hang").touch()
    victim = start(place)
    deadline = time.monotonic() + 200
    while not (tmp_path / "calls").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    victim.send_signal(signal.SIGKILL)
    victim.wait()  # its compilers live on and hold its pipes
    assert list((tmp_path / "cache" / "ops").glob("*.tmp")), "killed before it compiled"
    (tmp_path / "hang").unlink()
    victim.communicate()
    for want in ("generator", "cache"):
        out, err = start(place).communicate()
        assert (out.strip(), err) == (want, "")
    assert not list((tmp_path / "cache" / "ops").glob("*.tmp"))


@pytest.mark.timeout(900)
def test_a_damaged_library_is_made_again(place: dict[str, str], tmp_path: Path) -> None:
    place["TENSORPLAY_CXXFLAGS"] += " -g0 '-DTWO=1 + 1'"
    place["CXX"] = shlex.join([place["CXX"], "-pipe"])  # a launcher and flags may stand there
    assert start(place).communicate() == ("generator\n", "")
    (made,) = (tmp_path / "cache" / "ops").glob(f"*/_ops{_store.SUFFIX}")
    good = tmp_path / "good"
    good.write_bytes(made.read_bytes())
    size = good.stat().st_size
    for keep in (None, 0, 100, size // 2, size - 1, "size"):
        if isinstance(keep, int):
            os.truncate(made, keep)
        else:
            made.with_name(keep or made.name).unlink()
        assert start(place, TAKE, str(good)).communicate() == ("generator\n", ""), keep
        assert start(place).communicate() == ("cache\n", ""), keep
    assert len(list((tmp_path / "cache" / "ops").iterdir())) == 1


@pytest.mark.timeout(900)
def test_headers_are_precompiled_after_the_first_op_and_used(place: dict[str, str], tmp_path: Path) -> None:
    from tensorplay.library import _store

    said = subprocess.run([*_store.compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    if "Free Software" not in said:
        pytest.skip("only GCC's headers are precompiled")
    cxx = shlex.join(_store.compiler())
    (tmp_path / "c++").write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/said\nexec {cxx} "$@"\n')
    del place["TENSORPLAY_PRECOMPILED_HEADERS"]
    want = ("generator", "")
    out, err = start(place).communicate()
    assert (out.strip(), err) == want
    deadline = time.monotonic() + 600
    while not (made := list((tmp_path / "cache" / "headers").glob("*/all.h.gch"))) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert len(made) == 1, (tmp_path / "said").read_text()
    assert "ops/halved" not in (text := made[0].with_suffix("").read_text()) and '"python/python_ops.h"' in text
    (tmp_path / "said").unlink()
    other = DEFINE.replace("halved", "second")
    second = subprocess.run([sys.executable, "-c", other], env=place, capture_output=True, text=True, check=True)
    assert second.stdout.strip() == "generator"
    commands = (tmp_path / "said").read_text().split("\n")
    (unit,) = [c for c in commands if "unit_unary.cpp" in c]
    assert f"-include {made[0].with_suffix('')} " in unit
    # What the compiler makes of it: `!` before a precompiled header says that it was taken.
    source = tmp_path / "empty.cpp"
    source.write_text("")
    again = [*unit.split(" -c ")[0].split(), "-H", "-fsyntax-only", str(source)]
    said = subprocess.run([*_store.compiler(), *again], capture_output=True, text=True, check=True).stderr
    assert f"! {made[0]}" in said


def test_headers_cut_short_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorplay.library import _headers

    monkeypatch.setenv("TENSORPLAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TENSORPLAY_PRECOMPILED_HEADERS", raising=False)
    source = tmp_path / "some.h"
    source.write_text("#include <vector>\n")
    made = tmp_path / "cache" / "headers" / "key" / "all.h.gch"

    def make() -> None:
        _headers.make("key", _store.compiler(), ["-std=c++20", f"-I{tmp_path}"], ['#include "some.h"'], [tmp_path])
        deadline = time.monotonic() + 100
        while not _headers.flags("key") and time.monotonic() < deadline:
            time.sleep(0.1)

    said = subprocess.run([*_store.compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    if "Free Software" not in said:
        pytest.skip("only GCC's headers are precompiled")
    make()
    assert _headers.flags("key") == ["-include", str(made.with_suffix(""))]
    os.truncate(made, made.stat().st_size // 2)
    assert _headers.flags("key") == []
    make()
    assert _headers.flags("key") and made.stat().st_size > 1000


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORPLAY_CACHE_DIR", str(tmp_path / "theirs"))
    (tmp_path / "theirs").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    with pytest.raises(BuildError, match=r"belongs to user \d+, not to you"):
        tp.define_op("f(Tensor input) -> Tensor out", expr="input * 17")


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORPLAY_CACHE_DIR", str(tmp_path / "open"))
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(BuildError, match="can be written by other users; run `chmod 700"):
        tp.define_op("f(Tensor input) -> Tensor out", expr="input * 18")


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match=r"no C\+\+ compiler found \(looked for no-such-compiler\); install one: `apt"):
        tp.define_op("f(Tensor input) -> Tensor out", expr="input * 19")
    monkeypatch.delenv("CXX")
    monkeypatch.setitem(_store.build(), "compiler", "gone")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match=r"looked for gone, c\+\+, g\+\+, clang\+\+"):
        tp.define_op("f(Tensor input) -> Tensor out", expr="input * 20")


def test_a_compiler_of_several_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _store.compiler()[0]
    spaced = tmp_path / "a folder" / "c++"
    spaced.parent.mkdir()
    spaced.symlink_to(path)
    for text, words in (
        (f"{path} -O1", [path, "-O1"]), (f"env 'A=1 2' {path}", ["env", "A=1 2", path]), (str(spaced), [str(spaced)]),
    ):  # fmt: skip
        monkeypatch.setenv("CXX", text)
        found = _store.compiler()
        assert [os.path.basename(found[0]), *found[1:]] == [os.path.basename(words[0]), *words[1:]]
        assert os.path.isabs(found[0])
    monkeypatch.setenv("CXX", "no-such-launcher 'c++")
    with pytest.raises(BuildError, match=r"no C\+\+ compiler found \(looked for no-such-launcher 'c\+\+\)"):
        _store.compiler()


@pytest.mark.parametrize(("writes", "missing"), [(":", r"\d\.o"), ('touch "${@: -1}"', "_ops.*")], ids=["none", "some"])
def test_a_compiler_that_writes_nothing(
    writes: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "c++"
    wrapper.write_text(f"#!/bin/bash\ncase \"$*\" in *-shared*) ;; *) {writes} ;; esac\n")
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    with pytest.raises(BuildError, match=rf"ended without an error and wrote no {missing}; is it a C\+\+ compiler\?"):
        tp.define_op("f(Tensor input) -> Tensor out", expr="input * 22")


def test_what_the_compiler_says_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORPLAY_CXXFLAGS", "-fno-such-flag")
    with pytest.raises(BuildError, match=r"the compiler refused the op \(exit 1\)\n.*no-such-flag"):
        tp.define_op("f(Tensor input) -> Tensor out", expr="input * 21")
