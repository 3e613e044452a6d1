"""What PyInstaller needs to know of tensorplay; it finds this folder by the entry point `pyinstaller40`."""

from __future__ import annotations

from pathlib import Path


def hook_dirs() -> list[str]:
    return [str(Path(__file__).parent)]
