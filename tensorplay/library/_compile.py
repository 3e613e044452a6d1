"""The C++ compiler as define_op uses it: which one, with which flags, and what to say where there is none."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

from .. import _C

COMMON = (
    "-std=c++20", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-DNDEBUG", "-ffp-contract=off", "-w",
)  # fmt: skip
WIRING = ("-O2",)
KERNELS = ("-O3", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-DTP_ISA=baseline")
# The loops are compiled for the instruction set that runs, and for no other.
ISA = {
    "avx2": ("-march=x86-64-v3",),
    "avx512": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
}


def compile_library(
    work: Path, files: list[str], sources: tuple[Path, ...], includes: tuple[Path, ...], out: Path
) -> None:
    """Compiles what the generator wrote below `work`, with the caller's own sources, into one library."""
    from . import _headers
    from ._store import PACKAGE, BuildError, build, compiler, headers_key, include_folders

    cxx = compiler()
    python = sysconfig.get_paths()["include"]
    if not (Path(python) / "Python.h").is_file():
        raise BuildError(
            f"define_op: Python's headers are not in {python}; install them: `apt-get install python3-dev` (Debian, "
            "Ubuntu), `dnf install python3-devel` (Fedora)"
        )
    sanitize = [f"-fsanitize={build()['sanitize']}"] if build()["sanitize"] else []
    flags = [*COMMON, *(f"-I{p}" for p in (work / "cpp", *includes, *include_folders(), Path(python))), *sanitize]
    extra = shlex.split(os.environ.get("TENSORPLAY_CXXFLAGS", ""))
    commands: list[list[str]] = []
    objects: list[str] = []

    def add(source: Path, *more: str) -> None:
        target = str(work / f"{len(objects)}.o")
        objects.append(target)
        commands.append([*cxx, *flags, *more, *extra, "-c", str(source), "-o", target])

    isa = ISA.get(_C._isa, ())
    precompiled = _headers.flags(headers_key())
    shards = [Path(f).name for f in files if f.startswith("cpp/ops/") and f.endswith(".cpp")]
    for k, shard in enumerate(shards):
        # Functions and bindings of a shard in one unit: the headers are most of what a small one costs.
        unit = work / f"unit_{shard}"
        parts = [f"ops/{shard}", f"bind/{shard}"] + (["bind/registry.cpp", "bind/library.cpp"] if k == 0 else [])
        unit.write_text("".join(f'#include "{p}"\n' for p in parts))
        add(unit, *precompiled, *WIRING)
    for f in files:
        if f.startswith("cpp/kernels/"):
            add(work / f, *KERNELS, *isa)
    for source in sources:
        add(source, *KERNELS, *isa)
    _run_all(commands)
    _run_all([_link(cxx, objects, out, PACKAGE, work)])
    for o in objects:
        os.unlink(o)
    if shards and not includes:
        texts = [(work / f).read_text() for f in files if f.startswith(("cpp/ops/", "cpp/bind/"))]
        library = include_folders()
        common = [*COMMON, *(f"-I{p}" for p in (*library, python)), *sanitize, *WIRING, *extra]
        _headers.make(headers_key(), cxx, common, texts, library)


def _link(cxx: list[str], objects: list[str], out: Path, package: Path, work: Path) -> list[str]:
    from ._store import build

    command = [*cxx, "-shared", *objects, "-o", str(out)]
    if build()["sanitize"]:
        command.append(f"-fsanitize={build()['sanitize']}")
    if sys.platform == "darwin":
        library = next((package / "lib").glob("libtensorplay*.dylib"))
        return [*command, str(library), "-undefined", "dynamic_lookup", "-Wl,-exported_symbol,_PyInit__ops"]
    # Nothing but the entry point is seen from outside: two libraries may hold functions and classes of one name. Both
    # dependencies are loaded when this one is, and found by name; no path is recorded.
    script = work / "exports.map"
    script.write_text("{ global: PyInit__ops; local: *; };\n")
    module = next(package.glob("_C.*.so"))
    return [
        *command, str(package / "lib" / "libtensorplay.so"), str(module), f"-Wl,--version-script={script}",
        "-Wl,-z,now",
    ]  # fmt: skip


def _run_all(commands: list[list[str]]) -> None:
    """Runs the commands, as many at a time as there are processors; the first failure ends the rest. Each must write
    the file behind its -o."""
    from ._store import BuildError

    width = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    waiting = list(reversed(commands))
    running: list[tuple[list[str], subprocess.Popen[str]]] = []
    try:
        while waiting or running:
            while waiting and len(running) < width:
                command = waiting.pop()
                running.append((command, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)))
            command, process = running[0]
            said = process.communicate()[1]
            del running[0]
            if process.returncode:
                raise BuildError(
                    f"define_op: the compiler refused the op (exit {process.returncode})\n{said[:4000]}\n"
                    f"command: {shlex.join(command)}"
                )
            out = command[command.index("-o") + 1]
            if not os.path.isfile(out):
                raise BuildError(
                    f"define_op: {command[0]} ended without an error and wrote no {os.path.basename(out)}; is it a C++ "
                    f"compiler? CXX names it\ncommand: {shlex.join(command)}"
                )
    finally:
        for _, process in running:
            process.kill()
            process.communicate()  # closes the pipe too
