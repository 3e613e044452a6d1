"""The headers of an op library, precompiled: half of what compiling one op takes. Made in the background after the
first compile, used by the next ones. Knows flags and files, nothing of ops. GCC only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

from ..codegen import cache as kept

SWITCH = "TENSORPLAY_PRECOMPILED_HEADERS"  # 0: neither made nor used
NAME = "all.h"
UNUSED = 7 * 24 * 3600.0  # seconds after which those of another version go
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def _folder(key: str) -> Path:
    return kept.folder() / "headers" / key


def flags(key: str) -> list[str]:
    """What makes the compiler use them, where they have been made."""
    made = _folder(key) / f"{NAME}.gch"
    if os.environ.get(SWITCH) == "0" or not _whole(made):
        return []
    with contextlib.suppress(OSError):
        os.utime(made.parent)
    return ["-include", str(made.with_suffix(""))]


def _whole(made: Path) -> bool:
    """Whether it is there, all of it: the compiler refuses every unit that is given one cut short."""
    try:
        return made.stat().st_size == int(made.with_name("size").read_text())
    except (OSError, ValueError):
        return False


def make(key: str, cxx: list[str], command: list[str], texts: list[str], includes: list[Path]) -> None:
    """Starts making them, unless they are there or in the making: the library's headers that `texts` include. The
    compiler may outlive this process; nothing waits for it, and a failure costs only the time it would save."""
    import fcntl

    folder = _folder(key)
    if os.environ.get(SWITCH) == "0" or _whole(folder / f"{NAME}.gch"):
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the compiler inherits it, and lets go when it ends
        except OSError:
            return
        for old in folder.parent.iterdir():
            if old != folder and time.time() - old.stat().st_mtime > UNUSED:
                shutil.rmtree(old, ignore_errors=True)
        named = dict.fromkeys(name for text in texts for name in _INCLUDE.findall(text))
        lines = [f'#include "{name}"\n' for name in named if any((i / name).is_file() for i in includes)]
        (folder / NAME).write_text("".join(lines))
        part, size = str(folder / "part"), shlex.quote(str(folder / "size"))
        gcc = f"{shlex.join(cxx)} --version | grep -q 'Free Software'"
        run = shlex.join([*cxx, *command, "-x", "c++-header", str(folder / NAME), "-o", part])
        move = shlex.join(["mv", part, str(folder / f"{NAME}.gch")])
        script = f"{gcc} && {run} && wc -c <{shlex.quote(part)} >{size} && {move}"
        # A shell that leaves it behind: nobody has to wait for it.
        left = f"({script}) </dev/null >/dev/null 2>&1 &"
        subprocess.run(["nice", "-n", "5", "sh", "-c", left], pass_fds=(lock,), start_new_session=True, check=False)
    except OSError:
        pass
    finally:
        os.close(lock)
