"""The back half of the generator: what a small file of entries becomes. Compiling the C++ is the build's test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen import plan as P
from codegen import render, resolve, write

HEAD = "schema: 1\nops:\n"
TANH = """
- op: tanh
  family: unary
  sig: tanh(Tensor input) -> Tensor out
  expr: tanh(input)
  d: {input: 1 - out**2}
  inplace: true
  method: true
  like: numpy.tanh
  doc: Hyperbolic tangent of each element.
"""
MUL = """
- op: mul
  family: binary
  sig: mul(Tensor input, Tensor other) -> Tensor out
  expr: input * other
  operator: '*'
  inplace: save_copy
  like: numpy.multiply
  doc: Product of the two, element by element.
"""
GELU = """
- op: bump
  family: unary
  sig: bump(Tensor input, str form='exp', float slope=0.5) -> Tensor out
  expr: exp(-input**2) if form == 'exp' else slope * input
  like: numpy.exp(-input ** 2)
  doc: A bump, or a line through the origin.
"""
SUM = """
- op: total
  family: reduction
  sig: total(Tensor input, int[] dim=(), bool keepdim=False) -> Tensor out
  kernel: sum
  shape: reduce(input, dim, keepdim)
  vjp: {input: 'expand_reduced(g, shape(input), dim, keepdim)'}
  tangent: linear
  like: numpy.sum(input, axis=dim or None, keepdims=keepdim)
  test: {cases: [{input: [2, 3]}]}
  doc: Sum along dim.
"""
HELPERS = """
- op: add
  family: binary
  sig: add(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor out
  expr: input + alpha * other
  like: input + alpha * other
  doc: Sum of the two.
- op: sub
  family: binary
  sig: sub(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor out
  expr: input - alpha * other
  like: input - alpha * other
  doc: Difference of the two.
- op: square
  family: unary
  sig: square(Tensor input) -> Tensor out
  expr: square(input)
  like: numpy.square
  doc: Each element times itself.
- op: neg
  family: unary
  sig: neg(Tensor input) -> Tensor out
  expr: -input
  like: numpy.negative
  doc: Each element with the other sign.
- op: exp
  family: unary
  sig: exp(Tensor input) -> Tensor out
  expr: exp(input)
  like: numpy.exp
  doc: Exponential of each element.
"""


def files(*entries: str) -> dict[str, str]:
    file, diags = resolve.load_string(HEAD + "".join(entries), "none/ops.yaml")
    assert not diags, diags.render()
    return render.render(P.plan(file))


@pytest.fixture(scope="module")
def small() -> dict[str, str]:
    return files(TANH, MUL, GELU, SUM, HELPERS)


def function(text: str, head: str) -> str:
    """The definition that begins with `head`."""
    start = text.index(head)
    return text[start : text.index("\n}\n", start)]


def test_a_loop_per_gradient_in_one_pass(small: dict[str, str]) -> None:
    loops = small["cpp/kernels/unary.cpp"]
    assert "to[i] = m::tanh(input[i]);" in loops
    assert "to[i] = m::strong_mul(m::conj(T(1) - m::square(out[i])), g[i]);" in loops
    table = next(line for line in loops.splitlines() if "tanh<float>" in line)
    assert table.strip() == "{{nullptr, nullptr, nullptr, nullptr, tanh<float>, tanh<double>, tanh<c64>, tanh<c128>}},"


def test_static_conditions_are_hoisted(small: dict[str, str]) -> None:
    loop = function(small["cpp/kernels/unary.cpp"], "void bump(")
    before, inside = loop.split("#pragma", 1)
    assert "params[" in before and "params[" not in inside
    assert 'form_ == "exp"' in " ".join(small["cpp/ops/unary.cpp"].split())


def test_only_what_a_formula_reads_is_saved(small: dict[str, str]) -> None:
    header = small["cpp/nodes/unary.h"]
    tanh = header[header.index("class TanhBackward") :]
    assert 'kSavedNames{"out"}' in tanh and "kSavedInput{-1}" in tanh
    total = small["cpp/nodes/reduction.h"]
    assert "FuncOp<TotalBackward, 1, 0>" in total, "shape(input) keeps the sizes, not the tensor"
    assert "Dims dim_;" in total and "bool keepdim_ = false;" in total


def test_a_slot_is_saved_only_for_a_gradient_that_reads_it(small: dict[str, str]) -> None:
    mul = function(small["cpp/ops/binary.cpp"], "TensorRef mul(const TensorRef& input")
    assert "if (other->requires_grad()) back.save(0, input);" in mul
    assert "if (input->requires_grad()) back.save(1, other);" in mul


def test_in_place_forms_copy_what_they_overwrite_only_where_asked(small: dict[str, str]) -> None:
    mul = function(small["cpp/ops/binary.cpp"], "TensorRef mul_(")
    assert "if (other->requires_grad()) back.save(0, wiring::copied(input));" in mul
    tanh = function(small["cpp/ops/unary.cpp"], "TensorRef tanh_(")
    assert "copied" not in tanh and "if (node) node->save(0, input);" in tanh


def test_other_shards_are_declared_not_included(small: dict[str, str]) -> None:
    unary = small["cpp/ops/unary.cpp"]
    assert "TensorRef mul(const TensorRef& input, const TensorRef& other);" in unary
    assert '#include "ops/binary.h"' not in unary


def test_every_file_carries_the_banner(small: dict[str, str]) -> None:
    assert all(render.BANNER in text[:400] for text in small.values())
    assert not [name for name, text in small.items() if re.search(r"[ \t]$", text, re.M)], "trailing blanks"


def test_the_output_depends_on_the_entries_alone() -> None:
    assert files(TANH, MUL, HELPERS) == files(HELPERS, MUL, TANH)


def test_an_op_that_no_entry_computes_is_a_located_error() -> None:
    file, diags = resolve.load_string(HEAD + TANH, "none/ops.yaml")
    assert not diags
    with pytest.raises(P.PlanError) as e:
        P.plan(file)
    assert "E409" in e.value.diags.render() and "derivative of 'input'" in e.value.diags.render()


def test_a_large_family_is_cut_into_even_shards() -> None:
    class Item:
        def __init__(self, i: int) -> None:
            self.op = f"op{i:03}"
            self.family = type("F", (), {"name": "unary"})
            self.elementwise = loops

    loops = False
    shards = P.shards_of([Item(i) for i in range(95)])  # type: ignore[list-item]
    assert [len(v) for v in shards.values()] == [32, 32, 31] and list(shards) == ["unary_1", "unary_2", "unary_3"]
    loops = True  # smaller ones: each loop is compiled for every instruction set
    shards = P.shards_of([Item(i) for i in range(95)])  # type: ignore[list-item]
    assert [len(v) for v in shards.values()] == [19] * 5


# ---- writing --------------------------------------------------------------------------------------------------------


def test_writing_touches_only_what_changed(tmp_path, small: dict[str, str]) -> None:
    write.write(small, tmp_path)
    path = tmp_path / "cpp/ops/unary.cpp"
    before = path.stat().st_mtime_ns
    report = write.write(small, tmp_path)
    assert not report.written and not report.removed and path.stat().st_mtime_ns == before
    assert write.diff(small, tmp_path) == ""


def test_stale_files_of_ours_go_and_others_stay(tmp_path, small: dict[str, str]) -> None:
    write.write(small, tmp_path)
    ours, theirs = tmp_path / "cpp/ops/gone.cpp", tmp_path / "notes.txt"
    ours.write_text(f"// {render.BANNER}\n")
    theirs.write_text("mine\n")
    assert "gone.cpp" in write.diff(small, tmp_path)
    assert write.write(small, tmp_path).removed == ("cpp/ops/gone.cpp",)
    assert not ours.exists() and theirs.exists()


def test_a_hand_edit_shows_in_the_diff(tmp_path, small: dict[str, str]) -> None:
    write.write(small, tmp_path)
    path = tmp_path / "cpp/nodes/unary.h"
    path.write_text(path.read_text().replace("TanhBackward", "ThanBackward"))
    assert "+class TanhBackward" in write.diff(small, tmp_path)


def test_one_call_for_gradients_that_differ_in_what_is_wanted() -> None:
    folder = Path(__file__).parents[2] / "generated" / "cpp" / "ops"
    text = next(
        t for f in sorted(folder.glob("nn_*.cpp")) if "GradVec NativeLayerNormBackward::apply(" in (t := f.read_text())
    )
    apply = function(text, "GradVec NativeLayerNormBackward::apply(")
    assert apply.count("native_layer_norm_vjp_") == 1
    assert "joint = native_layer_norm_vjp_joint<Storage>(" in apply
    assert all(f"fit_into(grads[{i}], joint[{i}]," in apply for i in range(3))


def test_short_forms_for_whole_blocks(small: dict[str, str]) -> None:
    loops = small["cpp/kernels/unary.cpp"]
    exp = function(loops, "void exp(std::int64_t count")
    assert "if (m::exp_near(end - from, input + from))" in exp
    assert "to[i] = m::exp_fast(input[i]);" in exp and "to[i] = m::exp(input[i]);" in exp
    assert "exp_near" not in function(loops, "void bump")


HALVED = """
- op: halved
  family: composite
  sig: halved(Tensor input, int n=1, bool want_rest=False) -> (Tensor out, Tensor rest)
  require:
    'n > 0': 'IndexError: n={n} is not positive for sizes {shape(input)}'
    'ndim(gone) == ndim(input)': '{ndim(gone)} dimensions are left'
  when: {rest: want_rest}
  compose:
    gone: 'mul(input, 0.5)'
    out: 'gone if n == 1 else halved(gone, n - 1)[0]'
    rest: 'input'
  like: '(input / 2 ** n, input)'
  test: {cases: [{input: [2], n: 1}, {input: [2], n: 3}]}
  doc: Input divided by two, n times over.
"""
JOINED = """
- op: joined_up
  family: composite
  sig: joined_up(Tensor *tensors) -> Tensor[] out
  compose: '[mul(tensors[k], x) for x in tensors for_k]'
  like: tensors
  doc: Something of each tensor.
"""


def test_what_a_formula_asks_for() -> None:
    text = files(MUL, HALVED)["cpp/ops/composite.cpp"]
    body = function(text, "std::array<V, 2> halved_compose")
    first = body.index("if (TP_UNLIKELY(!(n > std::int64_t(0))))")
    assert "ErrorKind::Index, \"n={} is not positive for sizes {}\", {n, shape(input)}" in body
    assert first < body.index("const auto gone") < body.index("are left") < body.index("const auto out")
    # Nothing calls it on memory: the formula is compiled for tensors alone.
    assert "return on_tensors([&] { return halved(tensors_of(input), n, want_rest); });" in text
    assert "wrap_chosen(ops::halved(" in files(MUL, HALVED)["cpp/bind/composite.cpp"]


def test_lists_of_tensors_and_of_numbers() -> None:
    good = JOINED.replace("for x in tensors for_k", "for x in tensors").replace("tensors[k]", "tensors[0]")
    text = files(MUL, good)
    assert "each<V>(tensors, [&](const V& x) -> V { return mul(item(tensors, std::int64_t(0)), x); })" in text[
        "cpp/ops/composite.cpp"
    ]
    assert 'Kind::TensorArgs' in text["cpp/bind/composite.cpp"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("'n > 0'", "'m > 0'"), "require: 'm' is not"),
        (("rest: want_rest", "rest: n"), "when: 'n' is not a bool argument"),
        (("rest: want_rest", "out: want_rest"), "when: 'out' is not a result after the first"),
        (("gone if n == 1 else halved(gone, n - 1)[0]", "halved(gone, n)[0]"), "composed through itself"),
        (("require:", "hints: [nothing]\n  require:"), "hints: 'nothing' is not an argument"),
    ],
)
def test_refused_requirements(change: tuple[str, str], says: str) -> None:
    _, diags = resolve.load_string(HEAD + MUL + HALVED.replace(*change), "none/ops.yaml")
    assert says in diags.render()
