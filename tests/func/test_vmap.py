"""vmap: which dimensions it maps, what it refuses, chunks, randomness, nesting."""

from __future__ import annotations

from collections import namedtuple

import pytest
import tensorplay as tp
from tensorplay.func import grad, jacfwd, jvp, vjp, vmap

F64 = tp.float64
Pair = namedtuple("Pair", "left right")


def numbers(*sizes):
    n = 1
    for s in sizes:
        n *= s
    return tp.arange(n, dtype=F64).reshape(sizes) * 0.1 - 0.3


def test_basics() -> None:
    x = numbers(4, 3)
    assert tp.equal(vmap(lambda x: x.sum())(x), x.sum(1))
    assert tp.equal(tp.vmap(lambda x: x * 2)(x), x * 2)
    seen = []
    vmap(lambda x: (seen.append(tuple(x.shape)), x)[1])(x)
    assert seen == [(3,)]


def test_in_dims() -> None:
    a, b = numbers(4, 3), numbers(3, 4)
    dot = lambda a, b: (a * b).sum()  # noqa: E731
    assert tp.allclose(vmap(dot, in_dims=(0, 1))(a, b), (a * b.mT).sum(1))
    assert tp.allclose(vmap(dot, in_dims=(0, -1))(a, b), (a * b.mT).sum(1))
    assert tp.allclose(vmap(dot, in_dims=(None, 1))(a[0], b), (a[0].unsqueeze(1) * b).sum(0))
    assert tp.allclose(vmap(dot, in_dims=1)(b, b), (b * b).sum(0))
    tree = {"w": b, "c": (numbers(4), 2.0)}
    f = lambda p, x: (p["w"] * x).sum() + p["c"][0] * p["c"][1]  # noqa: E731
    got = vmap(f, in_dims=({"w": 1, "c": (0, None)}, 0))(tree, a)
    assert tp.allclose(got, (b.mT * a).sum(1) + numbers(4) * 2)
    assert tp.allclose(vmap(lambda p, k: p.left * p.right * k, (Pair(0, None), None))(Pair(a, a[0]), 3.0), a * a[0] * 3)


def test_out_dims() -> None:
    x = numbers(4, 2, 3)
    assert tuple(vmap(lambda x: x, out_dims=1)(x).shape) == (2, 4, 3)
    assert tuple(vmap(lambda x: x, out_dims=-1)(x).shape) == (2, 3, 4)
    a, b = vmap(lambda x: (x, x.sum()), out_dims=(2, 0))(x)
    assert tuple(a.shape) == (2, 3, 4) and tuple(b.shape) == (4,)
    out = vmap(lambda x: {"x": x, "c": x.shape[0]}, out_dims={"x": 0, "c": None})(x)
    assert tuple(out["x"].shape) == (4, 2, 3) and out["c"] == 2
    assert tuple(vmap(lambda x: numbers(5))(x).shape) == (4, 5)
    assert tuple(vmap(lambda x: numbers(5), out_dims=None)(x).shape) == (5,)
    pair = vmap(lambda x: Pair(x, [x]), out_dims=0)(x)
    assert isinstance(pair, Pair) and isinstance(pair.right, list)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: vmap(lambda: x)(), "got no inputs"),
        (lambda x: vmap(lambda a: a, in_dims=None)(x), "expected `in_dims` to be int or a"),
        (lambda x: vmap(lambda a: a, in_dims=(None,))(x), "at least one Tensor"),
        (lambda x: vmap(lambda a: a, in_dims=(0, 0))(x), "in_dims is not compatible"),
        (lambda x: vmap(lambda a: a, in_dims=((0, 0),))(x), "in_dims is not compatible"),
        (lambda x: vmap(lambda a: a, in_dims=(0.5,))(x), "must be either an integer dimension or None"),
        (lambda x: vmap(lambda a: a, in_dims=2)(x), "expected in_dim to satisfy -2 <= in_dim < 2"),
        (lambda x: vmap(lambda a, b: a)(x, 1.0), "cannot vmap over non-Tensor"),
        (lambda x: vmap(lambda a, b: a)(x, x[:2]), "same size in the mapped dimension, got sizes \\[4, 2\\]"),
        (lambda x: vmap(lambda a: 1.0)(x), "must only return Tensors, got type float"),
        (lambda x: vmap(lambda a: a, out_dims=None)(x), "can not return a BatchedTensor when out_dim is None"),
        (lambda x: vmap(lambda a: a, out_dims=(0, 0))(x), "out_dims is not compatible"),
        (lambda x: vmap(lambda a: (a, a), out_dims=(0,))(x), "out_dims is not compatible"),
        (lambda x: vmap(lambda a: a, out_dims="0"), "`out_dims` must be an int, None"),
        (lambda x: vmap(lambda a: a, chunk_size=0), "chunk_size should be None or greater than 0"),
    ],
)
def test_value_errors(call, match) -> None:
    with pytest.raises(ValueError, match=match):
        call(numbers(4, 3))


def test_other_errors() -> None:
    x = numbers(4, 3)
    with pytest.raises(IndexError, match="out of range"):
        vmap(lambda a: a, out_dims=5)(x)
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(lambda a: a, randomness="some")
    with pytest.raises(RuntimeError, match="item"):
        vmap(lambda a: a * a.sum().item())(x)
    with pytest.raises(RuntimeError):
        vmap(lambda a: a if a.sum() > 0 else -a)(x)
    whole = numbers(3)
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda a: whole.add_(a))(x)
    with pytest.raises(RuntimeError, match="andomness"):
        vmap(lambda a: a + tp.rand(3))(x)
    kept = []
    vmap(lambda a: (kept.append(a), a)[1])(x)
    with pytest.raises(RuntimeError, match="after the vmap"):
        kept[0] + 1
    with pytest.raises(ZeroDivisionError):
        vmap(lambda a: 1 / 0)(x)
    assert tp.equal(vmap(lambda a: a + 1)(x), x + 1)


def test_keywords_are_shared() -> None:
    x = numbers(4, 3)
    assert tp.equal(vmap(lambda a, *, b: a + b)(x, b=x[0]), x + x[0])


def test_chunks() -> None:
    x, w = numbers(7, 3), numbers(3)
    f = lambda x, w: ((x * w).sum(), {"x": x, "w": w * 2})  # noqa: E731
    whole = vmap(f, in_dims=(0, None), out_dims=(0, {"x": 1, "w": None}))(x, w)
    for size in (1, 2, 3, 7, 50):
        s, d = vmap(f, in_dims=(0, None), out_dims=(0, {"x": 1, "w": None}), chunk_size=size)(x, w)
        assert tp.equal(s, whole[0]) and tp.equal(d["x"], whole[1]["x"]) and tp.equal(d["w"], whole[1]["w"])
    sizes = []
    vmap(lambda x: (sizes.append(1), x)[1], chunk_size=3)(x)
    assert len(sizes) == 3
    assert tp.equal(vmap(lambda x: x, in_dims=1, out_dims=1, chunk_size=2)(x), x)


def test_randomness() -> None:
    x = numbers(4, 3)
    same = vmap(lambda a: a * 0 + tp.rand(3, dtype=F64), randomness="same")(x)
    assert tp.equal(same[0], same[1])
    different = vmap(lambda a: a * 0 + tp.rand(3, dtype=F64), randomness="different")(x)
    assert not tp.equal(different[0], different[1])


def test_nesting() -> None:
    a, b = numbers(2, 3), numbers(4, 3)
    outer = vmap(lambda a: vmap(lambda b: (a * b).sum())(b))(a)
    assert tp.allclose(outer, a @ b.mT)
    assert tp.allclose(vmap(vmap(lambda x: x.sum()))(numbers(2, 3, 4)), numbers(2, 3, 4).sum(2))
    swapped = vmap(vmap(lambda x: x, out_dims=1), in_dims=2)(numbers(2, 3, 4, 5))
    assert tuple(swapped.shape) == (4, 3, 2, 5)


def test_gradients_of_samples() -> None:
    w1, w2 = numbers(5, 3) * 0.5, numbers(2, 5) * 0.3
    x, y = numbers(6, 3), numbers(6, 2)

    def loss(w1, w2, x, y):
        return ((w2 @ (w1 @ x).tanh() - y) ** 2).sum()

    got = vmap(grad(loss, (0, 1)), in_dims=(None, None, 0, 0))(w1, w2, x, y)
    for i in range(6):
        p, q = w1.clone().requires_grad_(), w2.clone().requires_grad_()
        loss(p, q, x[i], y[i]).backward()
        assert tp.allclose(got[0][i], p.grad) and tp.allclose(got[1][i], q.grad)
    # Captured, not passed: still one gradient for each sample.
    inner = vmap(lambda x, y: grad(lambda w: loss(w, w2, x, y))(w1))(x, y)
    assert tp.allclose(inner, got[0])


def test_ensembles() -> None:
    from tensorplay.func import stack_trees

    models = [{"w": numbers(2, 3) * k, "b": numbers(2) + k} for k in (1.0, 2.0, 3.0)]
    x = numbers(3)
    f = lambda p, x: p["w"] @ x + p["b"]  # noqa: E731
    got = vmap(f, in_dims=(0, None))(stack_trees(models), x)
    assert tp.allclose(got, tp.stack([f(m, x) for m in models]))


def test_directions_batched_where_the_primal_is_not() -> None:
    x, vs = numbers(3), numbers(4, 3)
    f = lambda x: (x.sin() * x.sum()).cumsum(0)  # noqa: E731
    want = tp.stack([jvp(f, (x,), (v,))[1] for v in vs])
    assert tp.allclose(vmap(lambda v: jvp(f, (x,), (v,))[1])(vs), want)
    pulled = vjp(f, x)[1]
    assert tp.allclose(vmap(lambda v: pulled(v)[0])(vs), tp.stack([pulled(v)[0] for v in vs]))
    assert tp.allclose(vmap(lambda v: vjp(f, x)[1](v)[0])(vs), tp.stack([pulled(v)[0] for v in vs]))


def test_directions_meet_the_batch_inside_the_function() -> None:
    x, vs = numbers(3), numbers(4, 3)
    want = tp.stack([jvp(lambda x, v=v: x * v * v + v, (x,), (v,))[1] for v in vs])
    assert tp.allclose(vmap(lambda v: jvp(lambda x: x * v * v + v, (x,), (v,))[1])(vs), want)
    mixed = vmap(lambda v: jvp(lambda x: (x * x) @ v.unsqueeze(1), (x,), (v,))[1])(vs)
    assert tp.allclose(mixed, tp.stack([jvp(lambda x, v=v: (x * x) @ v.unsqueeze(1), (x,), (v,))[1] for v in vs]))
    want = tp.stack([vjp(lambda x, v=v: x * v, x)[1](v)[0] for v in vs])
    assert tp.allclose(vmap(lambda v: vjp(lambda x: x * v, x)[1](v)[0])(vs), want)


def test_histories_go_through() -> None:
    x = numbers(4, 3).requires_grad_()
    out = vmap(lambda x: (x**3).sum())(x)
    assert tp.allclose(tp.autograd.grad(out.sum(), x)[0], 3 * x.detach() ** 2)
    w = numbers(3).requires_grad_()
    out = vmap(lambda a: (a * w).sum())(numbers(4, 3))
    assert tp.allclose(tp.autograd.grad(out.sum(), w)[0], numbers(4, 3).sum(0))


def test_a_batch_of_one() -> None:
    w = numbers(2)
    one = tp.tensor([0.7], dtype=F64)
    assert tp.allclose(vmap(lambda x: x * w)(one), (one * w).unsqueeze(0))
    both = vmap(lambda a: vmap(lambda b: a * w + b * w)(one))(one)
    assert tuple(both.shape) == (1, 1, 2) and tp.allclose(both[0, 0], 1.4 * w)
    assert tp.allclose(jacfwd(lambda x: x * w)(one[0]), w)
    assert tuple(vmap(lambda a: vmap(lambda b: b * w)(numbers(3)))(one).shape) == (1, 3, 2)


def test_empty_batch() -> None:
    assert tuple(vmap(lambda x: x.sin())(tp.zeros(0, 3)).shape) == (0, 3)


def test_attributes_of_the_function_show() -> None:
    def energy(x):
        """Half the square."""
        return (x * x).sum() / 2

    v = vmap(energy)
    assert v.__name__ == "energy" and v.__doc__ == "Half the square." and v.__wrapped__ is energy


def test_named_results_are_trees() -> None:
    x = tp.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], dtype=tp.float64)
    for f in (lambda r: r.sort(0), lambda r: r.topk(2), lambda r: r.max(0)):
        got, want = tp.func.vmap(f)(x), f(x[1])
        assert type(got) is type(want) and got.values[1].tolist() == want.values.tolist()
        assert got.indices[1].tolist() == want.indices.tolist()
    qr = tp.func.vmap(tp.linalg.qr)(tp.stack([x.mT, x.mT + 1]))
    assert type(qr) is type(tp.linalg.qr(x.mT)) and tuple(qr.Q.shape) == (2, 3, 2)
    out, tangent = tp.func.jvp(lambda r: tp.linalg.qr(r), (x.mT,), (tp.ones_like(x.mT),))
    assert type(out) is type(tangent) is type(qr)
    assert isinstance(tp.func.jacrev(tp.linalg.qr)(x.mT), type(qr))
