"""`__array_namespace_info__`: what this namespace offers."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._dtypes import kind_names
from ._ops import check_device

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


class Info:
    """Capabilities, devices and dtypes of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on values, and how many dimensions an array may have."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> Any:
        """Where new arrays are."""
        return _C.device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays, by kind."""
        check_device(device)
        real = _C.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": _C.int64,
            "indexing": _C.int64,
        }

    def devices(self) -> list[Any]:
        """The devices there are."""
        return [_C.device("cpu")]

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The dtypes of the standard by name, all or of a kind."""
        check_device(device)
        if kind is None:
            names: tuple[str, ...] = _NAMES
        else:
            kinds = (kind,) if isinstance(kind, str) else kind
            names = tuple(n for n in _NAMES if any(n in kind_names(k) for k in kinds))
        return {n: getattr(_C, n) for n in names}


def __array_namespace_info__() -> Info:
    """What this namespace offers: capabilities, devices, dtypes."""
    return Info()
