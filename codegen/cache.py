"""A folder of this user for what is made once and kept: compiled ops, the library's model. Knows nothing of either.

The folder is readable by its owner alone, and one that belongs to somebody else is refused: what lies there is loaded.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "TENSORPLAY_CACHE_DIR"


class CacheError(RuntimeError):
    """A cache folder that cannot be trusted or written."""


def folder() -> Path:
    """The cache folder, made if need be: $TENSORPLAY_CACHE_DIR, else tensorplay/ in the user's cache folder.

    Raises CacheError where it belongs to another user, can be written by others, or cannot be made.
    """
    given = os.environ.get(VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = Path(given) if given else Path(base) / "tensorplay"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as e:
        hint = f"name another folder with {VARIABLE}"
        raise CacheError(f"tensorplay cache: {path} cannot be used: {e.strerror or e}; {hint}") from None
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise CacheError(
            f"tensorplay cache: {path} belongs to user {found.st_uid}, not to you ({os.getuid()}); compiled ops are "
            f"not loaded from there; name a folder of your own with {VARIABLE}"
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        # Ours, but open to others (made by hand, or by a looser umask): closed before anything is trusted.
        if stat.S_IMODE(found.st_mode) & 0o022:
            raise CacheError(
                f"tensorplay cache: {path} can be written by other users; run `chmod 700 {path}` once you trust what "
                "is in it"
            )
        os.chmod(path, 0o700)
    return path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time. The system lets go of the lock when its holder ends, however it ends."""
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write(path: Path, data: bytes) -> None:
    """Under its name only when it is whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "wb") as f:
        f.write(data)
    os.replace(temporary, path)
