"""Where PyTorch keeps the handle of a registered hook. The type itself is C++."""

from .._C import RemovableHandle

__all__ = ["RemovableHandle"]
