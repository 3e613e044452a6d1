"""What identifies the formula of a Python function: its code, its defaults, and the numbers around it that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True)
class Facts:
    key: Any  # changes when the formula may have changed
    constants: dict[str, Any]  # numbers of the closure and the module that the function reads


def facts(function: Any) -> Facts:
    """Facts of a Python function. Raises TypeError for what is none."""
    code = getattr(function, "__code__", None)
    if code is None:
        raise TypeError(
            f"define_op: {function!r} is neither a signature nor a Python function; "
            "give 'name(Tensor input) -> Tensor out' and expr=..."
        )
    constants = {n: v for n in code.co_names if isinstance(v := function.__globals__.get(n), NUMBERS)}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if isinstance(value, NUMBERS):
            constants[name] = value
    key = (
        function.__name__, code.co_code.hex(), [repr(c) for c in code.co_consts], code.co_names, code.co_varnames,
        repr(function.__defaults__), repr(function.__kwdefaults__), repr(function.__annotations__), repr(constants),
        function.__doc__,
    )  # fmt: skip
    return Facts(key, constants)
