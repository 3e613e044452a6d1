"""What scripts for PyTorch, JAX and NumPy ask for and is not here, and what to do instead. Knows no other part."""

from __future__ import annotations

_INSTEAD = {
    "FloatTensor": "tensor(data) makes float32 ones",
    "DoubleTensor": "tensor(data, dtype=float64)",
    "LongTensor": "tensor(data, dtype=int64)",
    "BoolTensor": "tensor(data, dtype=bool)",
    "array": "tensor(data), or from_numpy(array) over the same memory",
    "compile": "write the formula as one op, with define_op",
    "cuda": "the CPU is the one device",
    "jit": "write the formula as one op, with define_op",
    "optim": "update the tensors under no_grad, as in w -= rate * w.grad",
    "func.value_and_grad": "grad_and_value(f) gives (gradient, value), in that order",
    "func.functional_call": "call the function with the tensors",
    "nn.Parameter": "a leaf is tensor(data, requires_grad=True), or t.requires_grad_()",
    "nn.parameter": "a leaf is tensor(data, requires_grad=True), or t.requires_grad_()",
    "utils.data": "batches are randperm(n, generator=g).split(size), and indexing",
    "utils.cpp_extension": "define_op compiles a kernel of yours: sources= and kernel=",
}


def instead(module: str, name: str) -> str:
    """What to do instead, behind a colon; empty where nothing is known."""
    hint = _INSTEAD.get(f"{module}.{name}".partition(".")[2])
    return f": {hint}" if hint else ""


def missing(module: str, name: str) -> AttributeError:
    """The error of a module that has no attribute of that name."""
    return AttributeError(f"module {module!r} has no attribute {name!r}{instead(module, name)}")
