"""Names that hand-written C++ declares by a marker line: `// kernel: name`, `// shape: name`, `// batch: name`.

Also the parameters of a kernel's declaration, so that a signature and its kernel cannot drift apart unseen, and the
functions of the Python face, which an entry may name instead of a kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .model import Base, Signature, Type

_MARKER = re.compile(r"^\s*//\s*(kernel|shape|batch):\s*([A-Za-z_]\w*)(?:\s*\((internal)\))?\s*$", re.M)

_DEF = re.compile(r"^def ([A-Za-z_]\w*)\(((?:[^()]|\([^()]*\))*)\)", re.M)
# A name at the beginning of a line or behind a comma, before its type: those inside [...] have none.
_PARAMETER = re.compile(r"(?:^|[,\s])\**([A-Za-z_]\w*)\s*:")


@dataclass(frozen=True)
class Declared:
    """name -> file:line, for each kind. Where nothing was scanned, names are taken at their word."""

    kernels: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, str] = field(default_factory=dict)
    batches: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # kernel -> its C++ types after the schema
    internal: frozenset[str] = frozenset()  # kernels that only other C++ calls
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # module:function -> parameters
    scanned: bool = False  # these are all the kernels there are


def scan(root: Path) -> Declared:
    """Read the markers of every header under root/csrc, and the names of what root/tensorplay defines."""
    return replace(scan_files(sorted((root / "csrc").rglob("*.h")), root), functions=functions(root))


def functions(root: Path) -> dict[str, tuple[str, ...]]:
    return {
        f"{'.'.join(path.relative_to(root).with_suffix('').parts)}:{m[1]}": tuple(_PARAMETER.findall(m[2]))
        for path in sorted((root / "tensorplay").rglob("*.py"))
        for m in _DEF.finditer(path.read_text(encoding="utf-8", errors="replace"))
    }


def scan_files(headers: Iterable[Path], root: Path) -> Declared:
    """Read the markers of some headers; their names are given relative to root."""
    found: dict[str, dict[str, str]] = {"kernel": {}, "shape": {}, "batch": {}}
    parameters: dict[str, tuple[str, ...]] = {}
    internal = set()
    for path in headers:
        text = path.read_text(encoding="utf-8", errors="replace")
        for m in _MARKER.finditer(text):
            kind, name = m[1], m[2]
            line = text.count("\n", 0, m.start(1)) + 1
            found[kind].setdefault(name, f"{path.relative_to(root)}:{line}")
            if m[3]:
                internal.add(name)
            if kind == "kernel":
                declaration = re.compile(rf"\b{name}\(\s*const OpSchema&\s*\w*\s*(?:,([^;{{]*))?\)\s*[;{{]").search(
                    text, m.end()
                )
                if declaration and declaration.start() - m.end() < 400:
                    parameters.setdefault(name, _types(declaration[1] or ""))
    return Declared(found["kernel"], found["shape"], found["batch"], parameters, frozenset(internal), scanned=True)


def _types(text: str) -> tuple[str, ...]:
    """Types of a parameter list, without names, const, & and std::."""
    out, depth, start = [], 0, 0
    for i, ch in enumerate(text + ","):
        depth += (ch in "<(") - (ch in ">)")
        if ch == "," and depth == 0:
            if part := text[start:i].split("=")[0].strip():
                out.append(normal(re.sub(r"\s+\w+$", "", part)))
            start = i + 1
    return tuple(out)


def normal(cpp: str) -> str:
    return re.sub(r"\s+", "", re.sub(r"\bconst\b|&|\bstd::|\btp::", "", cpp))


_CPP = {
    Base.SCALAR: "Scalar", Base.INT: "int64_t", Base.FLOAT: "double", Base.BOOL: "bool", Base.STR: "string_view",
    Base.DTYPE: "Dtype",
}  # fmt: skip


def cpp_type(t: Type) -> str | None:
    """The C++ type of an argument as `normal` writes it; None where several are in use."""
    if t.base is Base.TENSOR:
        return "span<Storage>" if t.is_list else "Storage"
    plain = "Dims" if t.is_list and t.base is Base.INT else None if t.is_list else _CPP.get(t.base)
    return f"optional<{plain}>" if t.optional and plain else plain


def disagreement(sig: Signature, parameters: tuple[str, ...]) -> str:
    """How a kernel's parameters differ from the signature; empty when they agree."""
    wanted = [cpp_type(a.type) for a in sig.args]
    if len(wanted) != len(parameters):
        return f"it takes {len(parameters)} arguments after the schema, the signature has {len(wanted)}"
    for a, want, got in zip(sig.args, wanted, parameters, strict=True):
        if want is not None and want != got:
            return f"'{a.name}' is {a.type} ({want}) in the signature, {got} in the header"
    return ""


def known_kernels(root: Path) -> set[str]:
    return set(scan(root).kernels)
