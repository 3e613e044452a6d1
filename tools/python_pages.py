"""`python tools/python_pages.py FOLDER`: pages of what is no op: one a module, from signatures and docstrings.

Used by `make docs`; imports the tensorplay that is built or installed. Knows the modules by walking them.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import types
from pathlib import Path
from typing import Any

import tensorplay

STUBS = Path(__file__).resolve().parent.parent / "generated" / "stubs"
_DEF = re.compile(r"^ *def (\w+)\(", re.MULTILINE)
# Not for users: the generator and the tests' helpers have pages of their own where they need them.
LEFT_OUT = ("tensorplay.codegen", "tensorplay.testing", "tensorplay.cmake", "tensorplay.array_api.")


def modules() -> list[str]:
    """Public modules by name; array_api's parts are named by the standard."""
    found = (m.name for m in pkgutil.walk_packages(tensorplay.__path__, "tensorplay."))
    public = (n for n in found if not any(part.startswith("_") for part in n.split(".")))
    return ["tensorplay", *sorted(n for n in public if not n.startswith(LEFT_OUT))]


def ops() -> set[int]:
    """The ops' functions by identity: they have pages of their own, whatever name they are reached by."""
    named = {n for stub in STUBS.glob("_ops*.pyi") for n in _DEF.findall(stub.read_text(encoding="utf-8"))}
    tables = [t for t in vars(tensorplay._C).values() if isinstance(t, types.ModuleType)]
    return {id(getattr(t, n)) for t in tables for n in dir(t) if n in named}


def members(module: types.ModuleType) -> dict[str, Any]:
    """Public functions and classes that this module is the place for, and not the package around it."""
    around = module.__name__.rpartition(".")[0]
    there = members(importlib.import_module(around)) if around not in ("", "tensorplay") else {}
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    known = ops()
    out = {}
    for name in sorted(set(names)):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType) or not callable(value) or id(value) in known:
            continue
        if not str(getattr(value, "__module__", "") or "").startswith("tensorplay"):
            continue
        if there.get(name) is not value:
            out[name] = value
    return out


def signature(name: str, value: Any) -> str:
    try:
        text = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
        return name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations are kept as text
    except (TypeError, ValueError):
        return name


def text_of(value: Any, before: str) -> list[str]:
    """The first paragraph as text, the rest as it was written."""
    doc = inspect.getdoc(value) or ""
    head, _, rest = doc.partition("\n\n")
    head = " ".join(head.split())
    out = [before, "", head if "`" in head else re.sub(r"([*_<])", r"\\\1", head), ""]
    return [*out, "```text", rest.rstrip(), "```", ""] if rest.strip() else out


def methods(cls: type) -> dict[str, Any]:
    """Public members that the class brings itself; of Tensor, those that are no ops."""
    made = set()
    if cls is tensorplay.Tensor:
        made = set(_DEF.findall((STUBS / "_tensor.pyi").read_text(encoding="utf-8")))
    found = {n: v for n, v in vars(cls).items() if not n.startswith("_") and n not in made}
    return {n: v for n, v in sorted(found.items()) if inspect.getdoc(v)}


def page(name: str) -> str:
    module = importlib.import_module(name)
    parts = [f"# {name}", "", *text_of(module, "")[2:]] if name != "tensorplay" else [f"# {name}", ""]
    found = members(module)
    for each, value in found.items():
        parts += [f"## {each}", "", *text_of(value, f"```python\n{signature(each, value)}\n```")]
        inner = methods(value) if isinstance(value, type) and not issubclass(value, BaseException) else {}
        if inner:
            parts += ["| member | |", "|---|---|"]
            for n, v in inner.items():
                first = " ".join((inspect.getdoc(v) or "").partition("\n\n")[0].split())
                parts.append(f"| `{n}` | {first.replace('|', '/').replace('*', chr(92) + '*')} |")
            parts.append("")
    return "\n".join(parts) if found else ""


def main(folder: Path) -> int:
    written = 0
    for name in modules():
        if text := page(name):
            (folder / f"python_{name.replace('.', '_')}.md").write_text(text, encoding="utf-8")
            written += 1
    print(f"{written} modules")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).resolve()))
