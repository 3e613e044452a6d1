"""Ops defined at run time behave as the library's own: values, derivatives, dtypes, names, kernels, refusals."""

from __future__ import annotations

import inspect
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorplay as tp
from tensorplay.autograd import gradcheck, gradgradcheck
from tensorplay.library import DefinitionError, NameTaken

SLOPE = 0.5
SIG = "f(Tensor x) -> Tensor out"
swish: Any = None
bent: Any = None


@pytest.fixture(scope="module", autouse=True)
def ops(cache: Path) -> None:
    """Two ops, made in the cache of this run."""
    global swish, bent
    sig = "swish(Tensor input, *, float beta=1.0) -> Tensor out"
    swish = tp.define_op(sig, expr="input / (1 + exp(-beta * input))")

    @tp.define_op
    def bent(x, y, *, k=1.0):
        """A bent line, times another."""
        s = tp.log1p(math.e ** (k * x))
        s *= SLOPE
        return s * y if x > 0 else s.tanh() * y


FILE = """
schema: 1
ops:
- op: twice
  family: unary
  sig: twice(Tensor input) -> Tensor out
  expr: 2 * input
  like: input + input
  doc: Two times the input.
- op: exp
  family: unary
  sig: exp(Tensor input) -> Tensor out
  expr: exp(twice(input)) + silu(input)
  out: true
  inplace: save_copy
  method: exp_of_twice
  like: numpy.exp(2 * input) + input * scipy.special.expit(input)
  doc: The exponential of twice the input, and more.
- op: rms
  family: composite
  home: linalg
  sig: rms(Tensor input, int dim=-1) -> Tensor out
  compose: input / sqrt(mean(input**2, dim, True) + 1e-6)
  like: input / numpy.sqrt(numpy.mean(input**2, dim, keepdims=True) + 1e-6)
  test: {cases: [{input: [2, 3]}]}
  doc: The input over the root of its mean square along dim.
"""


def test_value_and_derivatives() -> None:
    x = tp.tensor([-2.0, 0.0, 1.5], dtype=tp.float64, requires_grad=True)
    n = x.detach().numpy()
    np.testing.assert_allclose(swish(x, beta=2.0).detach().numpy(), n / (1 + np.exp(-2 * n)), rtol=1e-14)
    assert gradcheck(lambda t: swish(t, beta=2.0), (x,))
    assert gradgradcheck(lambda t: swish(t, beta=2.0), (x,))


def test_it_is_one_node_that_saves_its_input() -> None:
    x = tp.tensor([1.0], requires_grad=True)
    out = swish(x)
    assert out.grad_fn.name() == "SwishBackward0"
    assert out.grad_fn.next_functions[0][0].name().endswith("AccumulateGrad")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype: str) -> None:
    x = tp.tensor([0.5, -1.0], dtype=getattr(tp, dtype))
    assert swish(x).dtype is x.dtype
    want = np.array([0.5, -1.0]) / (1 + np.exp(-np.array([0.5, -1.0])))
    got = swish(x).to(tp.complex128).numpy()
    np.testing.assert_allclose(got, want, rtol=2e-2 if dtype in ("float16", "bfloat16") else 1e-6)


def test_integers_promote_and_operands_broadcast() -> None:
    assert swish(tp.tensor([1, 2])).dtype is tp.float32
    assert bent(tp.ones(3, 1), tp.ones(1, 4)).shape == (3, 4)
    assert swish(tp.ones(0, 2)).shape == (0, 2)
    x = tp.arange(12.0).reshape(3, 4).t()
    np.testing.assert_array_equal(swish(x).numpy(), swish(x.contiguous()).numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 7, 40_000, 2_000_000])
def test_all_gradients_at_once_are_those_one_by_one(dtype: str, n: int) -> None:
    density = tp.define_op(
        "density(Tensor x, Tensor mean, Tensor width, *, float scale=1.0) -> Tensor out",
        expr="scale * exp(-(x - mean)**2 / (2 * width**2)) * cos(width) / width",
    )
    ends = ((-2, 2), (-1, 1), (0.5, 2))
    inputs = [tp.linspace(a, b, n, dtype=getattr(tp, dtype)).requires_grad_() for a, b in ends]
    g = tp.linspace(-1, 1, n, dtype=getattr(tp, dtype))
    together = tp.autograd.grad(density(*inputs, scale=2.0), inputs, g)
    for i, got in enumerate(together):
        (want,) = tp.autograd.grad(density(*inputs, scale=2.0), [inputs[i]], g)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol={"float16": 2e-3, "float32": 1e-5}.get(dtype, 1e-13))


def test_more_operands_than_one_loop_takes() -> None:
    """Twelve inputs, the gradient and six results are more than there is room for: each gradient has its own loop."""
    names = [f"a{i}" for i in range(12)]
    many = tp.define_op(
        f"many({', '.join(f'Tensor {n}' for n in names)}) -> Tensor out",
        expr=f"exp({' * '.join(names[:6])}) * ({' + '.join(names[6:])})",
        nondiff=names[6:],
    )
    for n in (3, 40_000):
        xs = [tp.rand(n, dtype=tp.float64).requires_grad_(i < 6) for i in range(12)]
        together = tp.autograd.grad(many(*xs).sum(), xs[:6])
        for x, got in zip(xs, together, strict=False):
            (want,) = tp.autograd.grad(many(*xs).sum(), x)
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-14)


def test_gradients_of_operands_that_differ_in_layout() -> None:
    ratio = tp.define_op("ratio(Tensor x, Tensor y) -> Tensor out", expr="exp(x * y) / (1 + exp(x))")
    x = tp.linspace(-1, 1, 12, dtype=tp.float64).reshape(3, 4).requires_grad_()
    y = tp.linspace(0.5, 2, 4, dtype=tp.float64).requires_grad_()
    z = tp.linspace(0.5, 2, 12, dtype=tp.float64).reshape(4, 3).t().requires_grad_()
    assert gradcheck(ratio, (x, y)) and gradgradcheck(ratio, (x, y)) and gradcheck(ratio, (x, z))


def test_names_and_help() -> None:
    assert swish.__name__ == "swish" and swish.__module__ == __name__
    assert str(inspect.signature(swish)) == "(input, *, beta=1.0)"
    assert "Computes input / (1 + exp(-beta * input))." in swish.__doc__
    with pytest.raises(TypeError, match="swish: unexpected keyword argument 'gamma'; signature: swish"):
        swish(tp.ones(2), gamma=1.0)


def test_pickles_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    # Test modules are not in sys.modules under their names; where pickle looks, the op must be.
    monkeypatch.setitem(sys.modules, swish.__module__, sys.modules.get(__name__) or _this())
    assert pickle.loads(pickle.dumps(swish)) is swish


def _this() -> Any:
    import types

    module = types.ModuleType(__name__)
    module.swish = swish
    return module


def test_a_python_function_is_a_formula() -> None:
    assert str(inspect.signature(bent)) == "(x, y, *, k=1.0)" and bent.__doc__.count("A bent line, times another.") == 1
    x = tp.tensor([-1.0, 2.0], dtype=tp.float64, requires_grad=True)
    y = tp.tensor([3.0, -0.5], dtype=tp.float64, requires_grad=True)
    s = 0.5 * np.log1p(np.exp(2 * x.detach().numpy()))
    want = np.where(x.detach().numpy() > 0, s, np.tanh(s)) * y.detach().numpy()
    np.testing.assert_allclose(bent(x, y, k=2.0).detach().numpy(), want, rtol=1e-14)
    assert gradcheck(bent, (x, y)) and gradgradcheck(bent, (x, y))


def test_a_file_of_ops(tmp_path: Path) -> None:
    path = tmp_path / "ops_of_a_file.yaml"
    path.write_text(FILE)
    ops = tp.define_ops(str(path))
    x = tp.tensor([0.25, -0.75], dtype=tp.float64, requires_grad=True)
    n = x.detach().numpy()
    want = np.exp(2 * n) + n / (1 + np.exp(-n))
    # Of the same name as an op of the library; in the formula, exp means the library's.
    np.testing.assert_allclose(ops.exp(x).detach().numpy(), want, rtol=1e-14)
    assert gradcheck(ops.exp, (x,)) and gradgradcheck(ops.exp, (x,))
    np.testing.assert_allclose(tp.exp(x.detach()).numpy(), np.exp(n), rtol=1e-14)
    out = tp.empty(2, dtype=tp.float64)
    assert ops.exp(x.detach(), out=out) is out
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-14)
    y = (x * 1).exp_of_twice_()
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-14)
    before = np.exp(2 * n) * 2 + (1 / (1 + np.exp(-n))) * (1 + n * (1 - 1 / (1 + np.exp(-n))))
    np.testing.assert_allclose(tp.autograd.grad(y.sum(), x)[0].numpy(), before, rtol=1e-12)
    z = tp.tensor([[1.0, 2.0], [3.0, -4.0]], dtype=tp.float64, requires_grad=True)
    assert gradcheck(ops.linalg.rms, (z,)) and gradgradcheck(ops.linalg.rms, (z,))
    assert pickle.loads(pickle.dumps(ops.twice)) is ops.twice
    assert tp.define_ops(str(path)).twice(tp.ones(1)).item() == 2  # the same file again


KERNEL_H = """
#include "kernels/author.h"

namespace tp::kernels {
// kernel: row_product
Storage row_product(const OpSchema& op, const Storage& input);
// kernel: row_product_backward
Storage row_product_backward(const OpSchema& op, const Storage& g, const Storage& input, const Storage& out);
}  // namespace tp::kernels
"""
KERNEL_CPP = """
#include "rows.h"

namespace tp::kernels {

Storage row_product(const OpSchema& op, const Storage& input) {
  if (input.dim() == 0) value_error(op.name, ": expected rows, got a number");
  const Storage x = contiguous(op, input);
  Shape sizes = input.sizes();
  sizes.resize(sizes.size() - 1);
  Storage out = empty(sizes, x.dtype());
  author::by_float(op, x.dtype(), [&](auto t) {
    using T = decltype(t);
    T* to = out.data<T>();
    author::for_rows<T>(x, [&](const T* row, std::int64_t at, std::int64_t n) {
      T product = 1;
      for (std::int64_t i = 0; i < n; ++i) product *= row[i];
      to[at / n] = product;
    });
  });
  return out;
}

}  // namespace tp::kernels
"""


def test_a_kernel_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "rows.h").write_text(KERNEL_H.split("// kernel: row_product_backward")[0] + "}\n")
    (tmp_path / "rows.cpp").write_text(KERNEL_CPP)
    op = tp.define_op(
        "row_product(Tensor input) -> Tensor out", kernel="row_product", sources=str(tmp_path / "rows.cpp"),
        header=str(tmp_path / "rows.h"), vjp={"input": "unsqueeze(g * out, -1) / input"},
        test={"cases": [{"input": [2, 3]}]}, batch="rows",
    )  # fmt: skip
    x = tp.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=tp.float64, requires_grad=True)
    assert op(x).tolist() == [6.0, 120.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that of an op that runs sample by sample
        assert tp.vmap(op)(x).tolist() == [6.0, 120.0]
        assert tp.vmap(op, in_dims=1)(x).tolist() == [4.0, 10.0, 18.0]
        assert tp.vmap(tp.vmap(op))(x.unsqueeze(0)).tolist() == [[6.0, 120.0]]
        each = tp.vmap(tp.func.grad(op))(x.detach())
    assert each.tolist() == tp.func.grad(lambda x: op(x).sum())(x.detach()).tolist()
    with pytest.raises(Exception, match="row_product"):
        tp.vmap(op)(tp.ones(3))  # samples are numbers
    assert op(x.t()).tolist() == [4.0, 10.0, 18.0]
    assert gradcheck(op, (x,)) and gradgradcheck(op, (x,))
    with pytest.raises(ValueError, match="row_product: expected rows, got a number"):
        op(tp.tensor(1.0))
    with pytest.raises(TypeError, match="row_product: takes float32 or float64, got int64"):
        op(tp.ones(2, 2, dtype=tp.int64))


def test_the_generator_is_that_of_the_file(tmp_path: Path) -> None:
    from codegen import pipeline
    from codegen.define import define
    from codegen.given import Given

    keys = {"sig": "swish(Tensor input, *, float beta=1.0) -> Tensor out", "expr": "input / (1 + exp(-beta * input))"}
    path = tmp_path / "ops.yaml"
    path.write_text(
        "schema: 1\nops:\n- op: swish\n  family: unary\n"
        f"  sig: {keys['sig']}\n  expr: {keys['expr']}\n  like: {{tests: x}}\n  doc: Computes {keys['expr']}.\n"
    )
    file, diags, _ = pipeline.checked(str(path))
    assert not diags, diags.render()
    written = {name: text for name, text in pipeline.outputs(file).items() if name.startswith("cpp/")}
    assert define([Given(keys)], "x.py").files == written


NAMES = """
schema: 1
ops:
- op: saved
  family: ternary
  sig: saved(Tensor back, Tensor grads, Tensor node) -> Tensor out
  expr: back * exp(node) / grads
  like: back * numpy.exp(node) / grads
  doc: Arguments named as the variables of generated code.
- op: loops
  family: pointwise
  sig: loops(Tensor to, Tensor n, Tensor c0, Tensor s0, *, float i=2.0, float data=3.0) -> Tensor out
  expr: sigmoid(s0) * to + sigmoid(s0) * n * c0 * (2 * i + data)
  like: {tests: here}
  doc: Arguments named as the variables of loops.
- op: NULL
  family: ternary
  sig: NULL(Tensor errno, Tensor Storage, Tensor V) -> Tensor out
  expr: errno * Storage * V
  like: errno * Storage * V
  doc: Arguments named as macros and types.
- op: template
  family: binary
  sig: template(Tensor double, Tensor sum) -> Tensor out
  expr: double * exp(sum)
  like: double * numpy.exp(sum)
  doc: Arguments named as words of C++ and ops.
"""


def test_any_name_will_do(tmp_path: Path) -> None:
    (tmp_path / "names.yaml").write_text(NAMES)
    ops = tp.define_ops(str(tmp_path / "names.yaml"))
    a, b, c, d = (tp.tensor([v, 1.5], dtype=tp.float64, requires_grad=True) for v in (0.5, 2.0, -1.0, 0.25))
    x, y, z, w = (t.detach().numpy() for t in (a, b, c, d))
    np.testing.assert_allclose(ops.saved(a, b, c).detach().numpy(), x * np.exp(z) / y, rtol=1e-14)
    want = (x + y * z * (2 * 5 + 7)) / (1 + np.exp(-w))
    np.testing.assert_allclose(ops.loops(a, b, c, d, i=5.0, data=7.0).detach().numpy(), want, rtol=1e-14)
    np.testing.assert_allclose(ops.NULL(a, b, c).detach().numpy(), x * y * z, rtol=1e-14)
    np.testing.assert_allclose(ops.template(a, b).detach().numpy(), x * np.exp(y), rtol=1e-14)
    for op, args in ((ops.saved, (a, b, c)), (ops.loops, (a, b, c, d)), (ops.NULL, (a, b, c)), (ops.template, (a, b))):
        assert gradcheck(op, args) and gradgradcheck(op, args)


def test_complex_numbers_where_the_derivative_serves_them() -> None:
    z = tp.tensor([1.0 + 2.0j], requires_grad=True)
    # The slope of this one depends on the direction: one partial cannot say it.
    mixed = tp.define_op("mixed(Tensor input) -> Tensor out", expr="abs(input) * input")
    with pytest.raises(TypeError, match="mixed: .*complex64"):
        mixed(z)
    assert mixed(tp.tensor([-2.0])).item() == -4
    turned = tp.define_op("turned(Tensor input) -> Tensor out", expr="input * 1j")
    assert turned(z.detach()).tolist() == [-2 + 1j]
    with pytest.raises(TypeError, match="turned: .*float32"):
        turned(tp.ones(1))


def test_a_file_without_ops_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("schema: 1\nops: []\n")
    with pytest.raises(DefinitionError, match="no op in this file"):
        tp.define_ops(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    "keys",
    [
        {"sig": "f(Tensor x, Tensor y) -> Tensor out", "expr": "where(x > y, silu(x), y) * tanh(x)"},
        {"sig": "f(Tensor x, Tensor y, Tensor z, Tensor w) -> Tensor out", "expr": "x * y + z * w"},
        {"sig": "f(Tensor input, int dim=-1) -> Tensor out", "compose": "input - mean(input, dim, True)"},
        {"sig": "f(Tensor input) -> Tensor out", "expr": "input * 2", "out": True, "inplace": True, "method": True},
    ],
    ids=["binary", "pointwise", "composite", "forms"],
)
def test_its_code_is_what_the_command_writes(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Byte for byte, from an entry given in Python and the same entry in a file."""
    from codegen.define import define
    from codegen.given import Given, complete

    entry = complete(Given(keys), "x.py").keys
    text = "".join(f"  {k}: {str(v).lower() if isinstance(v, bool) else v}\n" for k, v in entry.items() if k != "op")
    (tmp_path / "ops.yaml").write_text(f"schema: 1\nops:\n- op: f\n{text}")
    from codegen.cli import main

    assert main(["write", "--ops", str(tmp_path / "ops.yaml")]) == 0
    made = define([Given(keys)], "x.py").files
    assert made
    for name, want in made.items():
        assert (tmp_path / "generated" / name).read_bytes() == want.encode(), name


@pytest.mark.parametrize("sig", [42, {"op": "x"}, b"f(Tensor x) -> Tensor out", [1], [SIG, None], print])
def test_what_is_no_signature_is_a_type_error(sig: Any) -> None:
    with pytest.raises(TypeError, match=r"^define_op: .* is neither a signature nor a Python function; give 'name\("):
        tp.define_op(sig, expr="x")


@pytest.mark.parametrize("key", ["sources", "header"])
@pytest.mark.parametrize("value", [42, [42], b"x.cpp"])
def test_what_is_no_path_is_a_type_error(key: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^define_op: {key} is .*; give the path of a file, or a list of paths$"):
        tp.define_op("f(Tensor x) -> Tensor out", kernel="f", **{key: value})


def test_a_fault_points_into_the_callers_text() -> None:
    with pytest.raises(DefinitionError) as caught:
        tp.define_op("f(Tensor input) -> Tensor out", expr="input + expp(input)")
    lines = str(caught.value).split("\n")
    source = Path(__file__).read_text().split("\n")
    number = next(i for i, line in enumerate(source, 1) if "expp(" in line)
    assert lines[0].startswith(f"{__file__}:{number}:{source[number - 1].index('expp') + 1}: error[E202]")
    assert source[number - 1].strip() in lines[1]


def test_a_fault_points_into_the_function() -> None:
    with pytest.raises(DefinitionError) as caught:

        @tp.define_op
        def f(x):
            y = sinn(x)  # noqa: F821
            return y  # noqa: RET504

    assert f"{__file__}:" in str(caught.value) and "error[E202]: op 'f': no function 'sinn' here" in str(caught.value)
    with pytest.raises(DefinitionError, match="a for statement is not part of a formula"):

        @tp.define_op
        def g(x):
            for _ in range(3):
                x = x + 1
            return x

    with pytest.raises(TypeError, match="neither a signature nor a Python function"):
        tp.define_op(len)


def test_a_name_is_taken_once() -> None:
    again = tp.define_op(
        "swish(Tensor input, *, float beta=1.0) -> Tensor out", expr="input / (1 + exp(-beta * input))"
    )
    assert again(tp.ones(1)).item() == swish(tp.ones(1)).item()
    from tensorplay.library import _names

    with pytest.raises(NameTaken, match=r"op 'swish' in namespace '.*': b.py:3 would take the name from .*test_define"):
        _names.claim(__name__, ["swish"], "b.py:3", "another formula")
    with pytest.raises(NameTaken, match="from tensorplay itself"):
        _names.claim("tensorplay", ["swish"], "b.py:3", "another formula")
    _names.claim("elsewhere", ["swish"], "b.py:3", "another formula")


def test_what_reads_elements_is_not_required_inside_vmap() -> None:
    """Elements of all samples at once are not those of one."""
    apart = tp.define_op(
        "apart(Tensor a, Tensor? b=None) -> Tensor out",
        require={
            "least(abs(a)) > 0": "a holds a 0",
            "b == None or greatest(b) < 5": "b reaches {greatest(b)}",
        },
        compose="a / (ones_like(a) if b == None else b)",
    )  # fmt: skip
    a, b = tp.tensor([[1.0, 2.0], [4.0, 8.0]]), tp.tensor([[1.0, 2.0], [2.0, 4.0]])
    assert tp.vmap(apart)(a, b).tolist() == (a / b).tolist()
    assert tp.vmap(lambda x: apart(x))(a).tolist() == a.tolist()
    assert tp.vmap(tp.func.grad(lambda x: apart(x).sum()))(a).tolist() == tp.ones(2, 2).tolist()
    with pytest.raises(ValueError, match="apart: a holds a 0"):
        apart(tp.zeros(2))
    with pytest.raises(ValueError, match="apart: b reaches 7"):
        tp.vmap(apart, in_dims=(0, None))(a, tp.tensor([1.0, 7.0]))  # b is the same for all


def test_a_reference_that_cannot_be_called_is_a_warning_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorplay.codegen import reference

    space = {k: v for k, v in reference._namespace().items() if k != "scipy"}
    monkeypatch.setattr(reference, "_namespace", lambda: space)
    with pytest.warns(UserWarning, match="thirds: not compared with its reference: scipy is not installed") as said:
        tp.define_op("thirds(Tensor x) -> Tensor out", expr="x / 3", like="x * scipy.special.gamma(2) / 3")
    assert said[0].filename == __file__


def test_lists_are_values_and_results_of_a_composition() -> None:
    both = tp.define_op(
        "both(Tensor x) -> Tensor[] out",
        compose={"pair": "(x, x + 1)", "dims": "(0, 1)", "out": "[sum(stack(pair, 0), dims), pair[1], topk(x, 2)[0]]"},
    )
    assert [t.tolist() for t in both(tp.tensor([1.0, 2.0]))] == [8.0, [2.0, 3.0], [2.0, 1.0]]


def test_a_method_that_is_taken_is_refused_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorplay.library import _compile

    monkeypatch.setattr(_compile, "compile_library", lambda *_: pytest.fail("it was compiled"))
    text = "schema: 1\nops:\n- op: backward\n  family: unary\n  sig: backward(Tensor x) -> Tensor out\n"
    path = tmp_path / "mine.yaml"
    path.write_text(text + "  expr: x * 3.25\n  method: true\n  like: {tests: here}\n  doc: A name of Tensor.\n")
    for make in (
        lambda: tp.define_op("backward(Tensor x) -> Tensor out", expr="x * 3.25", method=True),
        lambda: tp.define_ops(str(path)),
    ):
        with pytest.raises(NameTaken, match=r"method Tensor\.backward: .* would take the name from tensorplay"):
            make()
