"""The pipeline as functions: file -> checked model -> files of generated/. `define_op` and op packs use these too.

The stages behind the model: plan.plan(OpFile) -> Plan, render.render(Plan) -> {path: text}, write.write / write.diff.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from . import markers
from .base import base_of
from .errors import Diagnostics
from .model import Entry, OpFile
from .resolve import check_kernels, load


def root_of(ops: Path) -> Path | None:
    """The project an ops file belongs to: the folder beside it that has csrc/, or none (an op pack)."""
    return ops.parent if (ops.parent / "csrc").is_dir() else None


def checked(
    ops: str, numeric: bool = True, draft: bool = False, unreached: bool = False, again: bool = True
) -> tuple[OpFile, Diagnostics, list[str]]:
    """Load and check. Also what could not be checked numerically.

    `draft`: kernels and named rules need not be declared yet. `unreached`: kernels that no entry names are faults too.
    `again`: also entries that passed before, unchanged.
    """
    root = root_of(Path(ops).resolve())
    base = base_of(ops)
    # A file beside the library's has the kernels of its own csrc/, or none; who only reads entries does not ask.
    declared = markers.scan(root) if root else markers.Declared(scanned=base is not None and numeric)
    if draft:
        declared = markers.Declared(shapes=declared.shapes)
    file, diags = load(ops, declared, base)
    skipped: list[str] = []
    if numeric and not diags:
        from .checked import Passed

        passed = None if again else Passed(file)
        todo = passed.new() if passed else None
        if todo is None or todo:
            from . import check

            skipped = check.run(file, diags, among=todo)
        if passed and todo and not diags:
            passed.note(todo - {line.partition(":")[0] for line in skipped})  # what was left out is said each time
    if unreached and not diags and root and not draft:
        check_kernels(file, diags, declared)
    return file, diags, skipped


def outputs(file: OpFile) -> Mapping[str, str]:
    """Path under --out -> text, of every generated file."""
    from .plan import plan
    from .render import render

    return render(plan(file, base=base_of(file.path)))


def renders(file: OpFile) -> Callable[[Entry], bool]:
    """Whether an entry that takes the place of one of file's has a C++ form."""
    from .plan import PlanError, declared_kernels, plan

    kernels = declared_kernels(file.path)

    def accept(e: Entry) -> bool:
        try:
            plan(OpFile(file.path, file.schema, (e,), file.source), kernels, file)
        except PlanError:
            return False
        return True

    return accept
