"""Which name belongs to whom: no op takes another's place unseen. Also how an op library becomes functions."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from .. import _C

# (namespace, op) -> (who has it, what it was made of)
_taken: dict[tuple[str, str], tuple[str, str]] = {}
_methods: dict[str, str] = {}  # of Tensor -> who brought it


class NameTaken(ValueError):
    """A name that another op, pack or the library already has."""


def claim(namespace: str, ops: list[str], who: str, content: str, replace: bool = False) -> None:
    """Notes that `who` has these ops. Raises NameTaken where a definition elsewhere has one; the same place may define
    its op again: a cell, a file that was edited, a function that makes ops."""
    for op in ops:
        have = _taken.get((namespace, op))
        if namespace == "tensorplay" or (have is not None and who != have[0] and content != have[1] and not replace):
            other = "tensorplay itself" if have is None else have[0]
            raise NameTaken(
                f"op '{op}' in namespace '{namespace}': {who} would take the name from {other}; choose another name or "
                "namespace" + ("" if have is None else ", or say replace=True")
            )
    for op in ops:
        _taken[namespace, op] = (who, content)


def functions(library: ModuleType, module: str) -> dict[str, dict[str, Any]]:
    """home -> name -> function of an op library, as members of `module`."""
    homes: dict[str, dict[str, Any]] = _C._library_functions(library, module)
    return homes


def install_methods(library: ModuleType, who: str, replace: bool = False) -> None:
    """Puts the library's methods on Tensor. Raises NameTaken where Tensor has one of that name; `replace` takes it from
    others, but never from tensorplay."""
    names: list[str] = _C._library_methods(library)
    methods_are_free(names, who, replace)
    if names:
        _C._install_methods(library)
        _methods.update(dict.fromkeys(names, who))


def methods_are_free(names: Sequence[str], who: str, replace: bool = False) -> None:
    """Raises NameTaken where install_methods would: asked before anything is compiled."""
    for name in names:
        owner = _methods.get(name, "tensorplay" if hasattr(_C.Tensor, name) else who)
        if owner != who and (not replace or owner == "tensorplay"):
            raise NameTaken(f"method Tensor.{name}: {who} would take the name from {owner}; choose another")


def as_members(homes: dict[str, dict[str, Any]], module: str) -> dict[str, Any]:
    """Functions of the top home by name, every other home as a module."""
    members: dict[str, Any] = dict(homes.get("", {}))
    for home, found in homes.items():
        if home in ("", "internal"):
            continue
        at = members
        name = module
        for part in home.split("."):
            name = f"{name}.{part}"
            inner = at.setdefault(part, ModuleType(name))
            at = vars(inner)
        at.update(found)
    return members


def load_pack(package: str, version: str) -> dict[str, Any]:
    from .. import __version__

    who = f"pack {package}" + (f" {version}" if version else "")
    try:
        library = importlib.import_module(f"{package}._ops")
    except ImportError as e:
        raise ImportError(
            f"{who} cannot be loaded beside tensorplay {__version__} (ABI {_C._abi}): {e}. If it was built for "
            "another tensorplay, build it again: pip install --force-reinstall --no-cache-dir --no-deps "
            f"<where {package} is from>",
            name=package,
        ) from e
    homes = functions(library, package)
    ops = [name for found in homes.values() for name in found]
    claim(package, ops, who, str(library.__file__))
    install_methods(library, who)
    return as_members(homes, package)
