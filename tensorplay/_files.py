"""save and load: dictionaries of tensors in safetensors files. Knows no pickle: a file runs no code when it is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, Any

from . import _C

__all__ = ["load", "save"]

# The dtypes of the format, by the names it has for them.
_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64",
}  # fmt: skip
_File = str | os.PathLike[str] | IO[bytes]


def _library(op: str) -> Any:
    try:
        import safetensors
    except ImportError as e:
        raise ImportError(
            f"{op}: files of tensors are written and read by the package safetensors, which the extra 'files' brings; "
            "install it with: pip install 'safetensors>=0.8'"
        ) from e
    return safetensors


def save(tensors: Mapping[str, Any], f: _File) -> None:
    """Writes tensors to a file in the safetensors format.

    Values are written in order, without history, gradient and class; tensors that share memory are written each.

    Args:
        tensors: a dictionary of tensors by name.
        f: a path, or a file open for writing bytes.

    Raises:
        TypeError: `tensors` is no dictionary of tensors, or one is complex128, which the format does not know.
        ImportError: the package safetensors is not installed.

    Example:
        >>> tensorplay.save({"weight": w, "bias": b}, "model.safetensors")
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(f"save: expected a dictionary of tensors by name, not {type(tensors).__name__}")
    library = _library("save")
    kept, specs = [], {}
    for name, t in tensors.items():
        if not isinstance(name, str) or not isinstance(t, _C.Tensor):
            raise TypeError(f"save: expected tensors by name, got {type(t).__name__} under {name!r}")
        if t.dtype.name not in _NAMES.values():
            raise TypeError(
                f"save: {name!r} is {t.dtype}, which the format has not; save its parts with view_as_real()"
            )
        kept.append(flat := t.detach().contiguous())
        specs[name] = library.TensorSpec(
            dtype=t.dtype.name, shape=list(t.shape), data_ptr=flat.data_ptr(), data_len=flat.nbytes
        )
    if hasattr(f, "write"):
        f.write(bytes(library.serialize(specs, metadata=None)))
    else:
        library.serialize_file(specs, os.fspath(f), metadata=None)


def load(f: _File, map_location: Any = None, *, weights_only: bool | None = True) -> dict[str, Any]:
    """Reads the tensors of a safetensors file.

    Args:
        f: a path, or a file open for reading bytes.
        map_location: None or "cpu", where the tensors go in any case.
        weights_only: True or None: a file holds nothing else.

    Returns:
        The tensors by name, each with memory of its own.

    Raises:
        ValueError: the file is not of the format, or the other arguments ask for what no file holds.
        ImportError: the package safetensors is not installed.

    Example:
        >>> tensorplay.load("model.safetensors")["weight"].shape
    """
    if map_location is not None and str(map_location) != "cpu":
        raise ValueError(f"load: map_location={map_location!r}: tensors go to the CPU, the one device; leave it out")
    if weights_only not in (True, None):
        raise ValueError(f"load: weights_only={weights_only!r}: a file holds arrays alone, no objects; leave it out")
    library = _library("load")
    if hasattr(f, "read"):
        data = f.read()
    else:
        with open(f, "rb") as file:
            data = file.read()
    try:
        entries = library.deserialize(data)
    except library.SafetensorError as e:
        hint = ""
        if data[:2] in (b"PK", b"\x80\x02"):  # a zip archive, or a pickle
            hint = "; files of torch.save are not read: there, safetensors.torch.save_file(state, path) writes one"
        raise ValueError(f"load: {f!r} is no safetensors file: {e}{hint}") from e
    return {name: _tensor(name, e) for name, e in entries}


def _tensor(name: str, entry: Mapping[str, Any]) -> Any:
    kind = _NAMES.get(entry["dtype"])
    if kind is None:
        raise ValueError(f"load: {name!r} has the dtype {entry['dtype']}, which tensorplay has not")
    shape, data = tuple(entry["shape"]), entry["data"]
    dtype = getattr(_C, kind)
    if not data:
        return _C.functions.empty(shape, dtype=dtype)
    return _C.frombuffer(data if isinstance(data, bytearray) else bytearray(data), dtype=dtype).reshape(shape)
