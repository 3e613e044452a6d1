"""The pipeline as functions: file -> checked model -> files of generated/. `define_op` and op packs use these too.

The stages behind the model: plan.plan(OpFile) -> Plan, render.render(Plan) -> {path: text}, write.write / write.diff.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from . import check, markers
from .errors import Diagnostics
from .model import OpFile
from .resolve import check_kernels, load


def root_of(ops: Path) -> Path | None:
    """The project an ops file belongs to: the folder beside it that has csrc/, or none (an op pack)."""
    return ops.parent if (ops.parent / "csrc").is_dir() else None


def checked(ops: str, numeric: bool = True, kernels: bool = False) -> tuple[OpFile, Diagnostics, list[str]]:
    """Load and check. Also what could not be checked numerically. `kernels` asks that headers and entries agree."""
    root = root_of(Path(ops).resolve())
    declared = markers.scan(root) if root else markers.Declared()
    if not kernels:
        declared = replace(declared, kernels={}, batches={})
    file, diags = load(ops, declared)
    skipped: list[str] = []
    if numeric and not diags:
        skipped = check.run(file, diags)
    if kernels and not diags and root:
        check_kernels(file, diags, declared)
    return file, diags, skipped


def outputs(file: OpFile) -> Mapping[str, str]:
    """Path under --out -> text, of every generated file."""
    from .plan import plan
    from .render import render

    return render(plan(file))  # type: ignore[no-any-return]
