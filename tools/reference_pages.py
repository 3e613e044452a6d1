"""`python tools/reference_pages.py FOLDER`: formulas typeset and pictures drawn into a copy of the generated pages.

Used by `make docs` on the copy that Sphinx reads; generated/docs stays plain text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from codegen import pipeline  # noqa: E402
from codegen.model import Entry, OpFile  # noqa: E402
from codegen.plot import Refused, plot  # noqa: E402
from codegen.tex import name_tex, tex  # noqa: E402

SECTION = re.compile(r"^## (\S+)\n", re.MULTILINE)
LONGEST = 700  # characters of TeX; beyond that the line of text is easier to read


def typeset(e: Entry) -> list[str]:
    """The value and its partial derivatives, of the first form that has a formula."""
    o = next((o for o in e.overloads if o.expr is not None), None)
    if o is None or o.expr is None or not e.elementwise:
        return []
    out = name_tex(o.sig.results[0].name)
    rows = [f"{out} &= {tex(o.expr.node)}"]
    for a in o.sig.tensor_args:
        d = o.deriv.get(a.name)
        if d is not None and d.formula is not None and "vjp" not in e.keys:
            rows.append(rf"\frac{{\partial {out}}}{{\partial {name_tex(a.name)}}} &= {tex(d.formula.node)}")
    rows = [r for r in rows if len(r) <= LONGEST]
    return ["$$", r"\begin{aligned}", r" \\[4pt] ".join(rows), r"\end{aligned}", "$$", ""] if rows else []


def picture(e: Entry, folder: Path) -> list[str]:
    """A curve, where the op is one of a single real tensor and has a slope."""
    o = e.overloads[0]
    if e.family.name != "unary" or o.inlined is None or not any(d.differentiable for d in o.deriv.values()):
        return []
    try:
        plot(e, str(folder / f"{e.op}.svg"))
    except Refused:
        return []
    return [f"![{e.op} and its derivative](pictures/{e.op}.svg)", ""]


def a_to_z(folder: Path, file: OpFile) -> str:
    """Every public op by name, with the section that describes it; other names lead to the same place."""
    where = {m[1]: p.stem for p in folder.glob("*.md") for m in SECTION.finditer(p.read_text(encoding="utf-8"))}
    names: dict[str, tuple[Entry, str]] = {}
    for e in file.entries:
        hidden = "internal" in e.home
        if not hidden or e.method:
            names[e.op] = (e, "")
        for a in e.aliases:
            names.setdefault(a.rpartition(".")[2], (e, "" if hidden else f"another name of `{e.op}`"))
    rows = [
        f"| [{name}]({where[e.op]}.md#{e.op}) | {said or e.doc.replace('|', chr(92) + '|')} |"
        for name, (e, said) in sorted(names.items())
        if e.op in where
    ]
    return "\n".join(["# Ops from A to Z", "", "| op | |", "|---|---|", *rows, ""])


def main(folder: Path) -> int:
    file, diags, _ = pipeline.checked(str(ROOT / "ops.yaml"), numeric=False)
    if diags:
        print(diags.render(), file=sys.stderr)
        return 1
    (folder / "pictures").mkdir(exist_ok=True)
    formulas = drawn = 0
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        starts = [*SECTION.finditer(text)]
        parts = [text[: starts[0].start()]] if starts else [text]
        for m, following in zip(starts, [*starts[1:], None], strict=True):
            section = text[m.start() : following.start() if following else len(text)].rstrip("\n")
            e = file.get(m[1])
            math = typeset(e) if e else []
            curve = picture(e, folder / "pictures") if e else []
            formulas, drawn = formulas + bool(math), drawn + bool(curve)
            parts.append("\n".join([section, "", *math, *curve]) + "\n")
        page.write_text("".join(parts), encoding="utf-8")
    (folder / "a_to_z.md").write_text(a_to_z(folder, file), encoding="utf-8")
    print(f"{formulas} ops with their formulas typeset, {drawn} drawn")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).resolve()))
