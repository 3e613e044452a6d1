"""Ops made at run time: the key of what is asked for, the cache, one compile however many ask, loading.

The generator is imported only where something must be made; a hit costs a hash, some stats and a dlopen.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import json
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import _C
from ..codegen import cache as kept
from . import _names

PACKAGE = Path(_C.__file__).parent  # of the binaries: a development build links the Python files from elsewhere
_PACKAGE = str(Path(__file__).parents[1])  # frames that are ours
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
WHOLE = "size"  # of the library, in a file beside it: the linker may read past the end of one that was cut off
INSTALL = (
    "install one: `apt-get install g++` (Debian, Ubuntu), `dnf install gcc-c++` (Fedora), `xcode-select --install` "
    "(macOS), `conda install cxx-compiler`; or name one with the environment variable CXX"
)
_loaded: dict[str, ModuleType] = {}


class DefinitionError(ValueError):
    """An entry that says something wrong. The text points at each fault; `codes` holds their numbers."""

    def __init__(self, text: str, codes: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.codes = codes


class BuildError(RuntimeError):
    """The op cannot be compiled here; the text says what is missing or what the compiler said."""


class Caller:
    """Who defines an op, and where. `positions`: (line, end line, column, end column) of the call."""

    def __init__(self, module: str, filename: str, line: int, positions: Any) -> None:
        self.module, self.filename, self.line, self.positions = module, filename, line, positions

    @property
    def interactive(self) -> bool:
        return self.module == "__main__" and not os.path.isfile(self.filename)

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


# ---- what is asked for ----------------------------------------------------------------------------------------------


def one(keys: dict[str, Any], where: Caller, namespace: str | None, replace: bool) -> Any:
    keys, sources, headers = _sources(keys, where)

    def generate() -> Any:
        from ..codegen.define import define
        from ..codegen.given import Given, places_in_call

        places = places_in_call(where.filename, *where.positions) if where.positions else {}
        return define([Given(keys, places)], where.filename, headers)

    content = _content(keys)
    sig = keys["sig"]
    first = sig if isinstance(sig, str) else sig[0] if sig else ""
    name = str(keys.get("op") or first.partition("(")[0].strip())
    return _define(name, generate, content, sources, headers, where, namespace, replace)


def from_function(
    function: Any, keys: dict[str, Any], where: Caller, namespace: str | None, replace: bool
) -> Callable[..., Any]:
    from . import _function

    facts = _function.facts(function)

    def generate() -> Any:
        from ..codegen.define import define
        from ..codegen.from_python import given

        return define([given(function, facts.constants, keys)], where.filename)

    content = _content({"function": facts.key, **keys})
    return _define(function.__name__, generate, content, (), (), where, namespace, replace)


def from_file(path: str, namespace: str | None) -> ModuleType:
    takes = "it takes the path of a YAML file of ops"
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"define_ops: {takes}, not {type(path).__name__}")
    path = os.fspath(path)
    if "\n" in path or path.lstrip().startswith(("schema:", "ops:", "{")):
        raise ValueError(f"define_ops: {takes}, not its text; write that into a file, or use define_op for one op")
    if not os.path.isfile(path):
        if os.path.isdir(path):
            raise IsADirectoryError(f"define_ops: {path} is a folder; {takes}")
        raise FileNotFoundError(f"define_ops: {path} does not exist; {takes}")
    text = Path(path).read_bytes()
    root = Path(path).resolve().parent
    sources = tuple(sorted(root.glob("csrc/**/*.cpp")))
    headers = tuple(sorted(root.glob("csrc/**/*.h")))
    name = namespace or Path(path).name.split(".")[0]
    key = _key(text, (*sources, *headers))

    def generate() -> Any:
        from ..codegen.define import define_file

        made = define_file(path)
        _names.methods_are_free(made.methods, str(Path(path).resolve()))
        return made

    library = _library(key, generate, sources, (root / "csrc",) if sources or headers else ())
    full = f"tensorplay.library.{name}"
    homes = _names.functions(library, full)
    _names.claim(name, [op for found in homes.values() for op in found], str(Path(path).resolve()), key)
    _names.install_methods(library, str(Path(path).resolve()))
    module = ModuleType(full, f"The ops of {path}.")
    vars(module).update(_names.as_members(homes, full))
    sys.modules[full] = module  # where pickle looks for them
    return module


def _sources(keys: dict[str, Any], where: Caller) -> tuple[dict[str, Any], tuple[Path, ...], tuple[Path, ...]]:
    """The keys of the entry, and the C++ sources and headers that come with it. A relative path starts at the caller's
    file."""
    files = [_files(k, keys.pop(k, None) or ()) for k in ("sources", "header")]
    if not files[0] and not files[1]:
        return keys, (), ()
    base = Path(where.filename).resolve().parent if os.path.isfile(where.filename) else Path.cwd()
    sources = tuple(base / f for f in files[0])
    headers = tuple(base / f for f in files[1])
    for f in (*sources, *headers):
        if not f.is_file():
            name = str(keys["sig"]).partition("(")[0].strip("[' ")
            raise DefinitionError(f"define_op: op '{name}': no file {f}; `sources` and `header` are relative to {base}")
    if len({h.parent for h in headers}) > 1:
        raise DefinitionError("define_op: the files of `header` lie in different folders; put them into one")
    return keys, sources, headers


def _files(key: str, value: Any) -> list[Any]:
    files = [value] if isinstance(value, (str, os.PathLike)) else value
    if not isinstance(files, (list, tuple)) or not all(isinstance(f, (str, os.PathLike)) for f in files):
        raise TypeError(f"define_op: {key} is {value!r}; give the path of a file, or a list of paths")
    return list(files)


def _content(keys: Mapping[str, Any]) -> bytes:
    return json.dumps(keys, sort_keys=True, default=repr).encode()


def _define(
    name: str, generate: Callable[[], Any], content: bytes, sources: tuple[Path, ...], headers: tuple[Path, ...],
    where: Caller, namespace: str | None, replace: bool,
) -> Any:  # fmt: skip
    key = _key(content, (*sources, *headers))
    over = replace or where.interactive

    def free() -> Any:
        made = generate()
        _names.methods_are_free(made.methods, str(where), over)
        return made

    library = _library(key, free, sources, (headers[0].parent,) if headers else ())
    homes = _names.functions(library, where.module)
    function = next(found[name] for found in homes.values() if name in found)
    _names.claim(namespace or where.module, [name], str(where), key, over)
    _names.install_methods(library, str(where), over)
    return function


# ---- the key --------------------------------------------------------------------------------------------------------


@cache
def build() -> dict[str, Any]:
    """What the library's build says of itself."""
    try:
        found: dict[str, Any] = json.loads((PACKAGE / "_build.json").read_text())
    except OSError as e:
        at = PACKAGE / "_build.json"
        raise BuildError(f"define_op: {at} cannot be read ({e.strerror}); reinstall tensorplay") from e
    return found


def include_folders() -> list[Path]:
    return [PACKAGE / p for p in build()["includes"]]


def compiler() -> list[str]:
    """The words a command of the compiler begins with (`ccache g++`), the first a path: of $CXX, else the one that
    built the library, or the first of c++, g++, clang++."""
    wish = os.environ.get("CXX")
    names = [wish] if wish else [build()["compiler"], "c++", "g++", "clang++"]
    for name in names:
        for words in ([name], _words(name)):
            if words and (path := _program(words[0])):
                return [path, *words[1:]]
    raise BuildError(f"define_op: no C++ compiler found (looked for {', '.join(names)}); {INSTALL}")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark without its other half
        return text.split()


def _program(name: str) -> str:
    """The path of a program; '' for none."""
    folders = [""] if os.sep in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


@cache
def _surroundings() -> bytes:
    """Everything but the entry that a compiled op depends on: versions, compiler, headers, generator."""
    b = build()
    h = hashlib.sha256(json.dumps([b, _C._abi, _C._isa, SUFFIX, sys.version]).encode())
    try:
        for word in compiler():  # a launcher, the compiler behind it, flags
            s = os.stat(path) if (path := _program(word)) else None
            h.update(f"{word} {s and (s.st_size, s.st_mtime_ns)};".encode())
    except BuildError:
        pass  # what is compiled already can still be loaded
    h.update(os.environ.get("TENSORPLAY_CXXFLAGS", "").encode())
    for top in (*include_folders(), PACKAGE / "codegen"):
        for folder, _, names in sorted(os.walk(top)):
            for name in sorted(names):
                if name.endswith((".h", ".py", ".j2", ".yaml")):
                    s = os.stat(os.path.join(folder, name))
                    h.update(f"{name} {s.st_size} {s.st_mtime_ns};".encode())
    return h.digest()


def headers_key() -> str:
    return _surroundings().hex()[:24]


def _key(content: bytes, files: tuple[Path, ...]) -> str:
    h = hashlib.sha256(_surroundings())
    h.update(content)
    for f in files:
        h.update(f.name.encode())
        h.update(f.read_bytes())
    return h.hexdigest()[:32]


# ---- the cache ------------------------------------------------------------------------------------------------------


def _library(
    key: str, generate: Callable[[], Any], sources: tuple[Path, ...], includes: tuple[Path, ...]
) -> ModuleType:
    found = _loaded.get(key)
    if found is None:
        try:
            top = kept.folder() / "ops"
        except kept.CacheError as e:
            raise BuildError(str(e)) from None
        found = _kept(top / key)
        if found is None:
            top.mkdir(mode=0o700, exist_ok=True)
            found = _make(top, key, generate, sources, includes)
        _loaded[key] = found
    return found


def _kept(folder: Path) -> ModuleType | None:
    """The library that was made before; None where there is none, or not the whole of it (a full disk, a cleaner)."""
    file = folder / f"_ops{SUFFIX}"
    try:
        if file.stat().st_size != int((folder / WHOLE).read_text()):
            return None
        return _load(file)
    except (OSError, ValueError, ImportError):
        return None


def _make(
    top: Path, key: str, generate: Callable[[], Any], sources: tuple[Path, ...], includes: tuple[Path, ...]
) -> ModuleType:
    import shutil

    with kept.locked(top / f"{key}.lock"):
        if (found := _kept(top / key)) is not None:
            return found  # another process made it while this one waited
        for left in (top / key, *top.glob(f"{key}.*.tmp")):
            # Damaged, or of a process that was killed: nobody else holds the lock.
            shutil.rmtree(left, ignore_errors=True)
        try:
            from ..codegen.define import Refused
        except ImportError as e:
            if str(e.name).partition(".")[0] not in ("yaml", "jinja2", "markupsafe"):
                raise
            raise BuildError(
                f"define_op: the generator needs {e.name}, which is not installed; run: pip install pyyaml jinja2"
            ) from e
        from ._compile import compile_library

        try:
            made = generate()
        except Refused as e:
            raise DefinitionError(str(e), e.codes) from None
        for line in made.unchecked:
            warnings.warn(line, stacklevel=_outside())
        work = top / f"{key}.{os.getpid()}.tmp"
        work.mkdir(mode=0o700)
        try:
            for name, text in made.files.items():
                path = work / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            out = work / f"_ops{SUFFIX}"
            compile_library(work, list(made.files), sources, includes, out)
            (work / WHOLE).write_text(str(out.stat().st_size))
            os.rename(work, top / key)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        os.unlink(top / f"{key}.lock")
    return _load(top / key / f"_ops{SUFFIX}")


def _outside() -> int:
    """How many frames up the caller's code is, for a warning of the function that calls this."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def _load(file: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader("_ops", str(file))
    spec = importlib.machinery.ModuleSpec("_ops", loader, origin=str(file))
    return loader.create_module(spec)


def clear() -> None:
    import shutil

    for name in ("ops", "headers"):
        shutil.rmtree(kept.folder() / name, ignore_errors=True)
