"""Sizes that do not fit and words that mean nothing are refused: by the op's name, the argument's and the value."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorplay as tp
from tensorplay.testing.inputs import samples
from tensorplay.testing.rows import Sample, call, tensor

F = tp.nn.functional
ONE, TWO, THREE = tp.ones(2), tp.ones(2, 2), tp.ones(2, 2, 2)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tp.mv(TWO, TWO), r"mv: vec must have 1 dimension; it is \[2, 2\]"),
        (lambda: tp.mv(ONE, ONE), r"mv: input must have 2 dimensions; it is \[2\]"),
        (lambda: tp.mm(TWO, ONE), r"mm: mat2 must have 2 dimensions; it is \[2\]"),
        (lambda: tp.bmm(THREE, TWO), r"bmm: mat2 must have 3 dimensions; it is \[2, 2\]"),
        (lambda: tp.addmv(ONE, TWO, TWO), r"addmv: vec must have 1 dimension"),
        (lambda: tp.addmm(TWO, TWO, ONE), r"addmm: mat2 must have 2 dimensions"),
        (lambda: tp.baddbmm(THREE, THREE, TWO), r"baddbmm: batch2 must have 3 dimensions"),
        (lambda: tp.dot(TWO, TWO), r"dot: input must have 1 dimension"),
        (lambda: tp.outer(TWO, ONE), r"outer: .*1 dimension.*\[2, 2\]"),
        (lambda: tp.outer(ONE, TWO), r"outer: .*1 dimension.*\[2, 2\]"),
        (lambda: F.conv1d(tp.ones(3), tp.ones(1, 1, 1)), r"conv1d: .*input must have 3 dimensions"),
        (lambda: F.conv2d(tp.ones(1, 1, 2, 2), tp.ones(1, 1)), r"conv2d: .*weight must have"),
        (lambda: F.conv3d(tp.ones(1, 1, 2, 2, 2, 2), tp.ones(1, 1, 1, 1, 1, 1)), r"conv3d: .*weight must have"),
        (lambda: tp.ones(2, 3).copy_(tp.ones(3, 2)), r"copy_: values of shape \[3, 2\] do not broadcast"),
        (lambda: tp.ones(2, 3).copy_(tp.ones(2, 2)), r"copy_: values of shape \[2, 2\] do not broadcast"),
        (lambda: tp.ones(2, 3).copy_(tp.ones(3, 3)), r"copy_: values of shape \[3, 3\] do not broadcast"),
        (lambda: tp.ones(3).copy_(tp.ones(2, 3)), r"copy_: values of shape \[2, 3\] do not broadcast"),
    ],
)
def test_sizes_are_named(call: Callable[[], object], says: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=says):
        call()


def test_numbers_of_steps_beyond_any_stack() -> None:
    x = tp.tensor([1.0, 4.0, 9.0, 16.0])
    assert tp.diff(x, n=2**31).shape == (0,) and tp.diff(x, n=2**62).shape == (0,)
    assert tp.diff(tp.arange(3000.0, dtype=tp.float64), n=2500).abs().max() == 0
    with pytest.raises(ValueError, match="matrix_power: n=-9223372036854775808"):
        tp.matrix_power(tp.eye(2), -(2**63))


def words() -> list:
    """Every public op with an argument that is a word."""
    found = []
    for path in sorted((Path(__file__).resolve().parents[2] / "generated" / "tests").glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for op in module.OPS:
            if op.home != "internal":
                found += [(op, f, a[0]) for f in op.forms for a in f.args if a[1].rstrip("?") == "str"]
    return found


@pytest.mark.parametrize(("op", "form", "name"), words(), ids=lambda x: str(getattr(x, "name", x))[:20])
def test_unknown_words_are_refused(op, form, name: str) -> None:
    sample = next(s for s in samples(op) if s.form.args == form.args)
    given = {k: tensor(v) for k, v in sample.given.items()} | {name: "bogus"}
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        call(op, Sample(form, {}), given)


def test_words_of_messages() -> None:
    with pytest.raises(ValueError, match="div: rounding_mode='up' is not 'floor', 'trunc' or None"):
        tp.div(ONE, 2, rounding_mode="up")
    with pytest.raises(ValueError, match="gelu: approximate='erf' is not 'none' or 'tanh'"):
        F.gelu(ONE, approximate="erf")
    with pytest.raises(ValueError, match="lstsq: driver='x' is not 'gels', 'gelsy', 'gelsd', 'gelss' or None"):
        tp.linalg.lstsq(TWO, TWO, driver="x")
    with pytest.raises(RuntimeError, match="clamp: min and max are both None"):
        tp.clamp(ONE)


K = tp.tensor(0.2, requires_grad=True)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: F.leaky_relu(ONE, K),
        lambda: F.leaky_relu(ONE, negative_slope=K),
        lambda: tp.add(ONE, ONE, alpha=K),
        lambda: tp.full((2,), K),
        lambda: F.dropout(ONE, K),
        lambda: tp.logit(ONE, K),
        lambda: ONE.new_full((2,), K),
    ],
)
def test_a_number_is_no_tensor_that_requires_grad(wrong: Callable[[], object]) -> None:
    says = r"requires grad, and its gradient would be lost; pass \w+\.item\(\)"
    with pytest.raises(TypeError, match=says):
        wrong()
    with tp.no_grad(), pytest.raises(TypeError, match=says):
        wrong()


def test_tensors_that_may_stand_for_numbers() -> None:
    assert F.leaky_relu(-ONE, K.detach()).tolist() == F.leaky_relu(-ONE, 0.2).tolist()
    for y in (ONE * K, tp.pow(ONE, K), tp.clamp(ONE, K), ONE.masked_fill(ONE > 0, K)):
        assert y.requires_grad
    with pytest.raises(TypeError, match="slope is a number; .* carries a tangent, .* lost"):
        tp.func.jvp(lambda k: F.leaky_relu(ONE, k), (K.detach(),), (tp.tensor(1.0),))
    with pytest.raises(TypeError, match="gradient would be lost"):
        tp.func.grad(lambda k: F.leaky_relu(ONE, k).sum())(K.detach())
    with pytest.raises(RuntimeError, match="vmap"):
        tp.vmap(lambda k: F.leaky_relu(ONE, k))(ONE)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: F.cross_entropy(tp.ones(2, 3), ONE), r"^cross_entropy: a target of floats .*\[2, 3\]; it has \[2\]"),
        (lambda: F.cross_entropy(tp.ones(2, 3), tp.tensor([0, 7])), "^cross_entropy: target 7 is out of bounds"),
        (lambda: F.embedding(TWO, TWO), "^embedding: input must hold integers"),
        (lambda: F.conv2d(tp.ones(1, 1, 3, 3), tp.ones(1, 1, 3, 3), padding="foo"), "^conv2d: padding must .*'foo'"),
        (lambda: tp.linalg.solve(tp.ones(2, 3), ONE), r"^linalg\.solve: A must be"),
        (lambda: tp.linalg.solve(ONE), r"^linalg\.solve: missing argument 'B'; signature: linalg\.solve\(Tensor A"),
        (lambda: tp.linalg.svd(TWO, driver="x"), r"^linalg\.svd: driver='x'"),
        (lambda: F.unfold(ONE, 3), "^unfold: input must be"),
        (lambda: tp.linalg.matrix_norm(TWO, "foo"), "^matrix_norm: ord must be fro, .*; it is foo"),
        (lambda: tp.linalg.matrix_norm(TWO, 3), "^matrix_norm: ord must be fro, .*; it is 3"),
    ],
)
def test_messages_name_what_was_called(wrong: Callable[[], object], says: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError, IndexError), match=says):
        wrong()


def test_the_type_of_results_has_the_public_name() -> None:
    assert type(tp.linalg.svd(TWO)).__name__ == "linalg_svd"


def homes() -> list:
    """The public functions of every home, by name."""
    places = (tp, tp.nn.functional, tp.linalg, tp.fft, tp.special)
    tables = (tp._C.functions, tp._C.nn_functional, tp._C.linalg, tp._C.fft, tp._C.special)
    return [
        (f"{place.__name__}.{name}", getattr(place, name))
        for place, table in zip(places, tables, strict=True)
        for name in sorted(dir(table))
        if not name.startswith("_") and hasattr(place, name)
    ]


def test_no_message_shows_an_internal_name() -> None:
    public = {name.rpartition(".")[2] for name, _ in homes()}
    internal = {n for n in dir(tp._C.internal) if not n.startswith("_")} - public
    odd = tp.ones(2, 3, 1, 2, 1, 3)
    seen, leaks = 0, []
    for name, f in homes():
        for n in range(1, 6):
            for values in ([odd] * n, [tp.ones(0)] * n, [TWO, *["bog"] * (n - 1)], [TWO, *[-7] * (n - 1)], ["no"] * n):
                try:
                    f(*values)
                except Exception as e:
                    seen += 1
                    words = set(re.findall(r"\b([A-Za-z_][\w.]*)(?=: |\(Tensor)", str(e)))
                    if {w.rstrip("_") for w in words - public} & internal or any(w.endswith("__") for w in words):
                        leaks.append(f"{name}: {str(e).splitlines()[0]}")
    assert seen > 5000
    assert not leaks, "\n".join(leaks)
