"""`list`: the ops by family and by what they lack; counts of hand-written lines. Reads sources, writes nothing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from .model import FAMILIES, Diff, Entry, OpFile
from .plan_batch import rule_of

_HOMES = (
    *("nn/functional.py", "linalg.py", "fft.py", "special.py", "random.py"),
    *("linalg/__init__.py", "fft/__init__.py", "special/__init__.py", "random/__init__.py", "__init__.py"),
)


def by_family(file: OpFile) -> list[str]:
    groups: dict[str, list[Entry]] = defaultdict(list)
    for e in file.entries:
        groups[e.family.name].append(e)
    out = []
    for name in FAMILIES:
        if name in groups:
            names = " ".join(e.op for e in groups[name])
            out.append(f"{name:<11} {len(groups[name]):>4}  {names}")
    out.append(f"{'all':<11} {len(file.entries):>4}  {sum(len(e.overloads) for e in file.entries)} signatures")
    return out


def missing(file: OpFile, what: str) -> list[str]:
    test = {"tangent": lacks_tangent, "batch": lacks_batch, "doc": lambda e: len(e.doc) < 20}[what]
    found = [e for e in file.entries if test(e)]
    return [
        *(f"{e.op}   {e.family.name}, line {e.loc.line}" for e in found),
        f"{len(found)} of {len(file.entries)} lack {what}",
    ]


def lacks_tangent(e: Entry) -> bool:
    """An op that raises in forward mode: a derivative is missing. Without a rule of its own a tangent follows from
    the partials, the composition, or the vjp, which is transposed."""
    return any(d.kind is Diff.TODO for o in e.overloads for d in o.deriv.values())


def lacks_batch(e: Entry) -> bool:
    """A signature that vmap runs once per sample."""
    return not e.python and any(rule_of(e, o).name == "loop" for o in e.overloads)


def todo(file: OpFile) -> list[str]:
    out = []
    for e in file.entries:
        for o in e.overloads:
            out += [f"{e.op}({name}): {d.why}" for name, d in o.deriv.items() if d.kind is Diff.TODO]
    return [*dict.fromkeys(out), f"{len(set(out))} derivatives are missing"]


def python(file: OpFile, root: Path | None) -> list[str]:
    """Entries with a Python implementation, and public functions that are no entry at all: those of the modules of each
    home, and those a home takes from private modules, whether at once or when first asked for. A setting is no op: it
    gives nothing back, or is asked for without an argument."""
    out = [f"{e.op}   {e.python}" for e in file.entries if e.python]
    names = {e.op for e in file.entries} | {a.rpartition(".")[2] for e in file.entries for a in e.aliases}
    if root:
        for part in _HOMES:
            path = root / "tensorplay" / part
            for name, place, lines in _public_functions(path):
                if name not in names:
                    out.append(f"{name}   {place.relative_to(root)}, {lines} lines")
    return [*out, f"{len(out)} public ops are written in Python"]


def _public_functions(path: Path) -> Iterator[tuple[str, Path, int]]:
    if not path.is_file():
        return
    for n in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(n, ast.FunctionDef) and not n.name.startswith("_") and not _is_setting(n):
            yield n.name, path, (n.end_lineno or n.lineno) - n.lineno + 1
        for module, name in _taken(n):
            for found in _public_functions(path.parent / f"{module}.py"):
                if found[0] == name:
                    yield found


def _is_setting(f: ast.FunctionDef) -> bool:
    nothing_back = isinstance(f.returns, ast.Constant) and f.returns.value is None
    a = f.args
    return nothing_back or not (a.posonlyargs or a.args or a.vararg or a.kwonlyargs or a.kwarg)


def _taken(n: ast.stmt) -> Iterator[tuple[str, str]]:
    """(module, name) of `from ._module import name`, and of the table _LAZY_NAMES."""
    if isinstance(n, ast.ImportFrom) and n.level == 1 and n.module and n.module != "_C":
        yield from ((n.module, a.name) for a in n.names if not (a.asname or a.name).startswith("_"))
    elif isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "_LAZY_NAMES" for t in n.targets):
        yield from ((module, name) for name, module in ast.literal_eval(n.value).items())


def handwritten(file: OpFile, root: Path | None) -> list[str]:
    """Lines of csrc/ and tensorplay/ that an entry needs of its own. A kernel that several entries use is shared."""
    if root is None:
        return ["no csrc/ beside the entries"]
    sizes = kernel_sizes(root)
    users: dict[str, list[str]] = defaultdict(list)
    for e in file.entries:
        for k in {o.kernel for o in e.overloads if o.kernel}:
            users[k].append(e.op)
    functions = {}
    for path in sorted((root / "tensorplay").rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for n in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(n, ast.FunctionDef):
                functions[f"{module}:{n.name}"] = (n.end_lineno or n.lineno) - n.lineno + 1
    out, total_cpp, total_py, none = [], 0, 0, 0
    for e in file.entries:
        kernels = sorted({o.kernel for o in e.overloads if o.kernel})
        cpp = sum(sizes.get(k, 0) for k in kernels)
        py = functions.get(e.python or "", 0)
        if not cpp and not py:
            none += 1
            continue
        shared = [k for k in kernels if len(users[k]) > 1]
        note = f"   (shares {', '.join(shared)})" if shared else ""
        out.append(f"{e.op:<28} {cpp:>5} C++ {py:>5} Python{note}")
        total_cpp, total_py = total_cpp + cpp, total_py + py
    return [
        *out,
        f"{none} of {len(file.entries)} entries have no line of their own; the rest {total_cpp} C++, {total_py} Python",
    ]


def kernel_sizes(root: Path) -> dict[str, int]:
    """Lines of the definition `... NAME(const OpSchema& op, ...) {` of each kernel, braces counted."""
    out: dict[str, int] = {}
    pattern = re.compile(r"^[\w:<>,&\s\*]+?\b(\w+)\(const OpSchema&[^;{]*\{", re.M)
    for path in sorted((root / "csrc" / "kernels").rglob("*.cpp")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for m in pattern.finditer(text):
            depth, i = 1, m.end()
            while i < len(text) and depth:
                depth += (text[i] == "{") - (text[i] == "}")
                i += 1
            out[m[1]] = out.get(m[1], 0) + text.count("\n", m.start(), i) + 1
    return out
