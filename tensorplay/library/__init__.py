"""Ops registered from Python, for what is no formula: `custom_op`, its registrations by name, `opcheck`."""

from .custom_op import (
    CustomOpDef,
    custom_op,
    ops,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)
from .opcheck import OpCheckError, opcheck
from .schema import infer_schema

__all__ = [
    "CustomOpDef", "OpCheckError", "custom_op", "infer_schema", "opcheck", "ops", "register_autograd", "register_fake",
    "register_kernel", "register_vmap",
]  # fmt: skip
