"""Ops of your own: from one line of Python, from a YAML file, or from a pack that pip installs.

Each goes through the generator that makes the library's own ops, is compiled once and kept, and behaves like them:
broadcasting, dtypes, derivatives of any order, forward mode, batching. The page "Ops of your own" teaches it.
What is no formula is registered from Python: `custom_op`, its derivative and batching rule, `opcheck`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, overload

from . import _names, _store
from ._names import NameTaken as NameTaken
from ._store import BuildError as BuildError
from ._store import DefinitionError as DefinitionError

if TYPE_CHECKING:
    from ._custom_op import (
        CustomOpDef,
        custom_op,
        ops,
        register_autograd,
        register_fake,
        register_kernel,
        register_vmap,
    )
    from ._opcheck import OpCheckError, opcheck
    from ._schema import infer_schema

__all__ = [
    "BuildError", "CustomOpDef", "DefinitionError", "NameTaken", "OpCheckError", "clear_cache", "custom_op",
    "define_op", "define_ops", "infer_schema", "load_pack", "opcheck", "ops", "register_autograd", "register_fake",
    "register_kernel", "register_vmap",
]  # fmt: skip
# Loaded when first asked for: a compiled op is found in the cache without them.
_LAZY = {"OpCheckError": "_opcheck", "opcheck": "_opcheck", "infer_schema": "_schema"}
_LAZY |= dict.fromkeys(
    ("CustomOpDef", "custom_op", "ops", "register_autograd", "register_fake", "register_kernel", "register_vmap"),
    "_custom_op",
)
_Op = Callable[..., Any]


@overload
def define_op(sig: str | list[str], **keys: Any) -> _Op: ...
@overload
def define_op(sig: Callable[..., Any]) -> _Op: ...
@overload
def define_op(sig: None = None, **keys: Any) -> Callable[[Callable[..., Any]], _Op]: ...
def define_op(sig: Any = None, *more: Any, namespace: str | None = None, replace: bool = False, **keys: Any) -> Any:
    """Makes an op from a signature and a formula, or from a Python function.

    The op is generated and compiled the first time, by the program that makes the library's own ops, and kept in the
    cache folder ($TENSORPLAY_CACHE_DIR, else ~/.cache/tensorplay); from then on it is only loaded.

    Args:
        sig: the signature, as in ops.yaml: ``"swish(Tensor input, *, float beta=1.0) -> Tensor out"``; several in a
            list are overloads. Or a Python function of one return statement, before which names may be assigned:
            arguments without a default are tensors, numbers with a default are parameters, numbers around it are
            constants.
        namespace: where the op's name must be unique; the module that defines it by default.
        replace: lets the name take the place of another op of the namespace.
        **keys: the keys of an entry of ops.yaml (``expr``, ``d``, ``compose``, ``vjp``, ``out``, ``inplace``,
            ``method``, ``promote``, ``special``, ``doc``, ...). ``family`` is derived; ``doc`` and ``like`` have
            defaults. With ``kernel``, ``sources`` names the C++ file that holds it, ``header`` the one that declares
            it.

    Returns:
        The op, a built-in function with that name, signature and docstring. Without sig, a decorator that makes one.

    Raises:
        DefinitionError: the entry says something wrong; the message points at the character.
        NameTaken: the namespace has another op of that name.
        BuildError: there is no C++ compiler, or it refused the code.

    A point where the one-sided derivatives differ takes what the formula says there; ``special`` decides it otherwise.
    In a notebook, a cell may define its op again.

    Example:
        >>> import tensorplay as tp
        >>> swish = tp.define_op("swish(Tensor input, *, float beta=1.0) -> Tensor out",
        ...                      expr="input / (1 + exp(-beta * input))")
        >>> swish(tp.tensor([0.0, 1.0]), beta=2.0)
        tensor([0.0000, 0.8808])
    """
    if more:
        raise TypeError(
            f"define_op: takes one argument by place, the signature; the formula goes by name: expr={more[0]!r}"
        )
    frame = sys._getframe(1)
    if sig is None:
        return lambda function: _from_function(function, namespace, replace, keys)
    if not isinstance(sig, str) and not (isinstance(sig, (list, tuple)) and all(isinstance(s, str) for s in sig)):
        return _from_function(sig, namespace, replace, keys)
    code = frame.f_code
    positions = None
    if (get := getattr(code, "co_positions", None)) is not None:
        positions = next((p for i, p in enumerate(get()) if i == frame.f_lasti // 2), None)
    where = _store.Caller(frame.f_globals.get("__name__", "__main__"), code.co_filename, frame.f_lineno, positions)
    return _store.one({"sig": sig, **keys}, where, namespace, replace)


def _from_function(function: Any, namespace: str | None, replace: bool, keys: dict[str, Any]) -> _Op:
    code = getattr(function, "__code__", None)
    where = _store.Caller(getattr(function, "__module__", ""), *_at(code), None)
    return _store.from_function(function, keys, where, namespace, replace)


def _at(code: Any) -> tuple[str, int]:
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)


def define_ops(path: str, *, namespace: str | None = None) -> ModuleType:
    """Makes the ops of a YAML file; they may call each other and those of the library.

    Args:
        path: the file; `tensorplay-codegen schema` lists its keys. A folder csrc/ beside it may hold kernels in C++.
        namespace: the name the ops go by; the file's name without its ending by default.

    Returns:
        A module with the ops as functions; homes such as ``linalg`` are modules in it.

    Raises:
        DefinitionError: the file says something wrong.
        NameTaken: the namespace has another op of one of the names, or Tensor a method.
        BuildError: there is no C++ compiler, or it refused the code.

    Example:
        >>> import pathlib, tensorplay as tp
        >>> _ = pathlib.Path("twice.yaml").write_text('''
        ... schema: 1
        ... ops:
        ... - op: twice
        ...   family: unary
        ...   sig: twice(Tensor input) -> Tensor out
        ...   expr: 2 * input
        ...   like: input + input
        ...   doc: Two times the input.
        ... ''')
        >>> tp.define_ops("twice.yaml").twice(tp.tensor([1.0]))
        tensor([2.])
    """
    return _store.from_file(path, namespace)


def load_pack(package: str, version: str = "") -> dict[str, Any]:
    """For the __init__.py of an op pack: loads ``package._ops`` and gives its functions and homes by name.

    Raises ImportError where the pack was built for an incompatible tensorplay, NameTaken where a name is in use.

    Example:
        >>> from tensorplay.library import load_pack  # in physics/__init__.py
        >>> globals().update(load_pack(__name__))  # doctest: +SKIP
    """
    return _names.load_pack(package, version)


def clear_cache() -> None:
    """Removes every compiled op from the cache folder; ops that are loaded keep working.

    Example:
        >>> tensorplay.library.clear_cache()  # doctest: +SKIP
    """
    _store.clear()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_LAZY[name]}")
    globals().update({key: getattr(module, key) for key, home in _LAZY.items() if home == _LAZY[name]})
    return globals()[name]
