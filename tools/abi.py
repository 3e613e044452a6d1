"""The ABI number and the headers it stands for: `--update` raises it where they changed, nothing checks them.

Op packs compile against these headers; a change of layout that the number does not show would be a crash in their
users' programs. What counts is the code: comments and white space are left out of the hash.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("core", "kernels", "autograd", "ops", "transforms")
PYTHON = ("args.h", "objects.h", "op_library.h", "python_ops.h")


def headers(root: Path = ROOT) -> list[Path]:
    """The headers that the wheel brings; cmake/InstallLayout.cmake says the same."""
    found = [p for room in ROOMS for p in (root / "csrc" / room).rglob("*.h")]
    return sorted([*found, *(root / "csrc" / "python" / name for name in PYTHON)])


def code_of(text: str) -> str:
    """C++ without comments and white space; strings are kept whole."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\])*")|\s+', re.DOTALL)
    return token.sub(lambda m: m[1] or (" " if m[0].isspace() else ""), text)


def digest(root: Path = ROOT) -> str:
    h = hashlib.sha256()
    for p in headers(root):
        if p.name == "abi.h":
            continue  # it holds the number
        h.update(p.relative_to(root / "csrc").as_posix().encode())
        h.update(re.sub(r" +", " ", code_of(p.read_text(encoding="utf-8"))).encode())
    return h.hexdigest()


def number(root: Path = ROOT) -> int:
    found = re.search(r"#define TP_ABI (\d+)", (root / "csrc" / "core" / "abi.h").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1])


def fault(root: Path = ROOT) -> str:
    """What is wrong; empty when number and headers agree with what was noted."""
    noted = json.loads((root / "cmake" / "abi.json").read_text(encoding="utf-8"))
    if noted["abi"] != number(root):
        text = f"csrc/core/abi.h says ABI {number(root)}, cmake/abi.json {noted['abi']}"
        return f"{text}; run: python tools/abi.py --update"
    if noted["headers"] != digest(root):
        return f"headers changed, but the ABI number is still {noted['abi']}; run: python tools/abi.py --update"
    return ""


def update(root: Path = ROOT) -> None:
    note = root / "cmake" / "abi.json"
    noted = json.loads(note.read_text(encoding="utf-8"))
    now = max(noted["abi"], number(root))
    if noted["headers"] != digest(root):
        now += 1
    header = root / "csrc" / "core" / "abi.h"
    text = header.read_text(encoding="utf-8")
    header.write_text(re.sub(r"#define TP_ABI \d+", f"#define TP_ABI {now}", text), encoding="utf-8")
    note.write_text(json.dumps({"abi": now, "headers": digest(root)}, indent=1) + "\n", encoding="utf-8")
    print(f"ABI {now}")


if __name__ == "__main__":
    if "--update" in sys.argv[1:]:
        update()
        raise SystemExit(0)
    if text := fault():
        raise SystemExit(text)
    print(f"ABI {number()}: the headers are what it stands for")
