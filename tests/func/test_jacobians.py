"""jacrev, jacfwd, hessian: sizes, structures, chunks, errors."""

from __future__ import annotations

import pytest
import tensorplay as tp
from tensorplay.func import grad, hessian, jacfwd, jacrev, jvp, vmap

F64 = tp.float64
both = pytest.mark.parametrize("jac", [jacrev, jacfwd])


def const(*values):
    return tp.tensor(values, dtype=F64)


@both
def test_sizes(jac) -> None:
    w = tp.arange(6, dtype=F64).reshape(2, 3)
    x = const(1.0, 2.0, 3.0)
    assert tp.allclose(jac(lambda x: w @ x)(x), w)
    assert tuple(jac(lambda x: x.sum())(x).shape) == (3,)
    assert tuple(jac(lambda x: x.sum())(w).shape) == (2, 3)
    full = jac(lambda w: w.mT * 2)(w)
    assert tuple(full.shape) == (3, 2, 2, 3) and full[2, 1, 1, 2].item() == 2.0 and full.sum().item() == 12.0
    assert jac(lambda x: x * x)(tp.tensor(3.0)).item() == 6.0


@both
def test_structures(jac) -> None:
    f = lambda p, y: {"s": p["a"] * y, "t": (p["b"].sum(),)}  # noqa: E731
    p, y = {"a": const(1.0, 2.0), "b": const(3.0)}, const(5.0, 7.0)
    j = jac(f)(p, y)
    assert j["s"]["a"].tolist() == [[5.0, 0.0], [0.0, 7.0]] and j["s"]["b"].tolist() == [[0.0], [0.0]]
    assert j["t"][0]["b"].tolist() == [1.0]
    j = jac(f, argnums=(1, 0))(p, y)
    assert isinstance(j["s"], tuple) and j["s"][0].tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert j["s"][1]["a"].tolist() == [[5.0, 0.0], [0.0, 7.0]]
    assert jac(lambda a, b: a * b, -1)(y, y).tolist() == [[5.0, 0.0], [0.0, 7.0]]
    assert jac(lambda a, *, k: a * k)(y, k=2.0).tolist() == [[2.0, 0.0], [0.0, 2.0]]


@both
def test_aux(jac) -> None:
    j, aux = jac(lambda x: (x * x, {"x": x + 1, "n": 3}), has_aux=True)(const(1.0, 2.0))
    assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]] and aux["x"].tolist() == [2.0, 3.0] and aux["n"] == 3


@both
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_chunks(jac, size) -> None:
    x = const(1.0, 2.0, 3.0)
    f = lambda x: (x.cumsum(0) * x, x.sum())  # noqa: E731
    a, b = jac(f, chunk_size=size)(x)
    want = jac(f)(x)
    assert tp.allclose(a, want[0]) and tp.allclose(b, want[1])


@both
def test_errors(jac) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        jac(lambda x: x, chunk_size=0)
    with pytest.raises(RuntimeError, match="real"):
        jac(lambda x: x)(tp.tensor([1.0 + 1.0j]))
    with pytest.raises(RuntimeError, match="real"):
        jac(lambda x: x * 1.0j)(tp.tensor([1.0]))
    with pytest.raises(RuntimeError, match="argnum"):
        jac(lambda x: x, argnums=2)(tp.tensor([1.0]))
    with pytest.raises(RuntimeError, match="only tensors"):
        jac(lambda x: "x")(tp.tensor([1.0]))


@both
def test_empty(jac) -> None:
    assert tuple(jac(lambda x: x * 2)(tp.zeros(0)).shape) == (0, 0)
    assert tuple(jac(lambda x: x[:0])(tp.zeros(3)).shape) == (0, 3)
    assert tuple(jac(lambda x: tp.cat([x, tp.ones(2)]))(tp.zeros(0)).shape) == (2, 0)


def test_the_primal_runs_once() -> None:
    calls = []

    def f(x):
        calls.append(tuple(x.shape))
        return x.sin()

    jacrev(f)(const(1.0, 2.0))
    jacfwd(f)(const(1.0, 2.0))
    assert calls == [(2,), (2,)]


def test_hessian() -> None:
    x = const(1.0, 2.0, 3.0)
    f = lambda x: (x**3).sum() + x[0] * x[1]  # noqa: E731
    want = [[6.0, 1.0, 0.0], [1.0, 12.0, 0.0], [0.0, 0.0, 18.0]]
    assert hessian(f)(x).tolist() == want
    for outer in (jacrev, jacfwd):
        for inner in (jacrev, jacfwd, grad):
            assert outer(inner(f))(x).tolist() == want
    h = hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(const(2.0), const(3.0))
    assert h[0][0].tolist() == [[6.0]] and h[0][1].tolist() == [[4.0]] and h[1][1].tolist() == [[0.0]]
    assert tuple(vmap(hessian(f))(tp.stack([x, x])).shape) == (2, 3, 3)
    third = jacfwd(hessian(f))(x)
    assert third[2, 2, 2].item() == 6.0 and third.sum().item() == 18.0


def test_of_samples() -> None:
    xs = tp.arange(6, dtype=F64).reshape(2, 3)
    f = lambda x: x.sin() * x.sum()  # noqa: E731
    for jac in (jacrev, jacfwd):
        assert tp.allclose(vmap(jac(f))(xs), tp.stack([jac(f)(x) for x in xs]))


def test_sum_of_second_derivatives() -> None:
    laplacian = lambda f: lambda x: jacfwd(grad(f))(x).diagonal(0).sum()  # noqa: E731
    f = lambda x: (x**4).sum()  # noqa: E731
    assert laplacian(f)(const(1.0, 2.0)).item() == 60.0
    assert jvp(laplacian(f), (const(1.0, 2.0),), (const(1.0, 0.0),))[1].item() == 24.0
