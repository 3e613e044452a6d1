"""The checks of an op pack's entries, made from the ops.yaml that it brings. The checks themselves: generated.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

from .generated import Check, Form, Op
from .generated import checks as checks_of_rows

__all__ = ["checks"]


def checks(pack: ModuleType) -> list[Check]:
    """Every check of every op of an installed pack: a parameter list for one test.

    Args:
        pack: the pack's package; its ops.yaml lies beside its __init__.py.

    Raises:
        ValueError: the entries say something wrong; the text points at it.

    Example:
        >>> import physics, pytest  # doctest: +SKIP
        >>> @pytest.mark.parametrize("check", checks(physics), ids=str)  # doctest: +SKIP
        ... def test_op(check): check.run()
    """
    from ..codegen import pipeline
    from ..codegen.render import test_rows

    assert pack.__file__ is not None
    ops = Path(pack.__file__).with_name("ops.yaml")
    file, diags, _ = pipeline.checked(str(ops), numeric=False, draft=True)
    if diags:
        raise ValueError(diags.render())
    space: dict[str, object] = {"Op": Op, "Form": Form}
    rows: list[Op] = eval(f"[{test_rows(file)}]", space)
    return checks_of_rows([replace(row, package=pack.__name__) for row in rows])
