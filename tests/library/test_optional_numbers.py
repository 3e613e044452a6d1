"""Numbers that a caller may leave out, in ops defined at run time: read where they are there, asked about elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorplay as tp


def optional_numbers() -> str:
    """Each kind of number that may be absent, where C++ computes with it and where it asks about it."""
    text = "schema: 1\nops:\n"
    for kind in ("Scalar", "float", "int"):
        one = "3" if kind == "int" else "3.0"
        for key, family, formulas in (
            ("expr", "unary", (f"x * (n if n != None else {one})", f"x if n == None or n > {one} else x * n")),
            ("compose", "composite", (
                f"x * (n if n != None else {one})", f"x * (n**2 + n if n != None else {one})",
                f"x if n == None or n > {one} else x * -n",
            )),
        ):  # fmt: skip
            for k, formula in enumerate(formulas):
                name = f"{key}_{kind.lower()}_{k}"
                text += (
                    f"- op: {name}\n  family: {family}\n  sig: {name}(Tensor x, {kind}? n=None) -> Tensor out\n"
                    f"  {key}: {formula}\n  like: {{tests: t.py}}\n"
                    f"  doc: The {key} {formula} of {kind.lower()} n.\n"
                )
    return text


@pytest.mark.timeout(600)
def test_a_number_that_may_be_absent_is_read_where_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "absent.yaml"
    path.write_text(optional_numbers())
    ops = vars(tp.define_ops(str(path)))
    x = tp.tensor([1.0, -2.0])
    for kind in ("scalar", "float", "int"):
        for name in (f"expr_{kind}_0", f"compose_{kind}_0"):
            assert ops[name](x).tolist() == [3.0, -6.0] and ops[name](x, 2).tolist() == [2.0, -4.0], name
        assert ops[f"compose_{kind}_1"](x).tolist() == [3.0, -6.0]
        assert ops[f"compose_{kind}_1"](x, 2).tolist() == [6.0, -12.0]
        for name, sign in ((f"expr_{kind}_1", 1), (f"compose_{kind}_2", -1)):
            got = [ops[name](x, *n).tolist() for n in ((), (2,), (4,))]
            assert got == [[1.0, -2.0], [sign * 2.0, sign * -4.0], [1.0, -2.0]], name
