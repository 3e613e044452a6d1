"""grad, grad_and_value, vjp, jvp, linearize, hvp: what they return, what they refuse, what they leave alone."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple

import pytest
import tensorplay as tp
from tensorplay import func
from tensorplay.func import grad, grad_and_value, hvp, jvp, linearize, vjp

F64 = tp.float64
Pair = namedtuple("Pair", "left right")


def const(*values):
    return tp.tensor(values, dtype=F64)


def scalar(value):
    return tp.tensor(value, dtype=F64)


# ---- grad ------------------------------------------------------------------------------------------------------------


def test_gradient_and_value() -> None:
    x = const(1.0, 2.0)
    assert grad(lambda x: (x**3).sum())(x).tolist() == [3.0, 12.0]
    g, v = grad_and_value(lambda x: (x**3).sum())(x)
    assert g.tolist() == [3.0, 12.0] and v.item() == 9.0
    assert not g.requires_grad and not v.requires_grad and x.grad is None and not x.requires_grad


def test_argnums() -> None:
    def f(a, b, c):
        return (a * b * b * c).sum()

    args = (scalar(2.0), scalar(3.0), scalar(5.0))
    assert grad(f)(*args).item() == 45.0
    assert grad(f, 1)(*args).item() == 60.0
    assert grad(f, -1)(*args).item() == 18.0
    one = grad(f, (1,))(*args)
    assert isinstance(one, tuple) and len(one) == 1 and one[0].item() == 60.0
    both = grad(f, argnums=(2, 0))(*args)
    assert [t.item() for t in both] == [18.0, 45.0]
    for number in (False, True):  # ints as any other
        assert grad(f, number)(*args).item() == grad(f, int(number))(*args).item()
        assert func.jacrev(f, number)(*args).item() == func.jacfwd(f, number)(*args).item() == grad(f, number)(*args)


@pytest.mark.parametrize("argnums", [(0, 0), (), 3, -4, (0, 5), (0, -3), (-1, 2), (False, 0)])
def test_argnums_that_do_not_fit(argnums) -> None:
    for transform in (grad, grad_and_value, func.jacrev, func.jacfwd):
        with pytest.raises(RuntimeError, match="argnum"):
            transform(lambda a, b, c: a * b * c, argnums)(scalar(1.0), scalar(1.0), scalar(1.0))


@pytest.mark.parametrize("argnums", ["0", 1.5, None, [0]])
def test_argnums_of_another_type(argnums) -> None:
    with pytest.raises(RuntimeError, match="argnums? must be int"):
        grad(lambda a: a, argnums)


def test_trees() -> None:
    tree = {"w": const(1.0, 2.0), "rest": [scalar(3.0), (None, Pair(scalar(4.0), scalar(5.0)))]}

    def f(p, scale):
        _, pair = p["rest"][1]
        return scale * ((p["w"] ** 2).sum() * p["rest"][0] + pair.left * pair.right)

    g = grad(f)(tree, 2.0)
    assert g["w"].tolist() == [12.0, 24.0] and g["rest"][0].item() == 10.0
    none, pair = g["rest"][1]
    assert none is None and isinstance(pair, Pair) and pair.left.item() == 10.0 and pair.right.item() == 8.0
    assert isinstance(g["rest"], list) and isinstance(g["rest"][1], tuple)


def test_dicts_keep_their_type() -> None:
    ordered = OrderedDict(b=scalar(2.0), a=scalar(3.0))
    g = grad(lambda p: p["a"] * p["b"])(ordered)
    assert isinstance(g, OrderedDict) and list(g) == ["b", "a"] and g["b"].item() == 3.0
    counted = defaultdict(list, a=scalar(3.0))
    assert isinstance(grad(lambda p: p["a"] ** 2)(counted), defaultdict)


def test_auxiliary_values() -> None:
    def f(x):
        return x.sum(), {"double": x * 2, "name": "aux"}

    g, aux = grad(f, has_aux=True)(const(1.0, 2.0))
    assert g.tolist() == [1.0, 1.0] and aux["double"].tolist() == [2.0, 4.0] and aux["name"] == "aux"
    assert not aux["double"].requires_grad
    g, (v, aux) = grad_and_value(f, has_aux=True)(const(1.0, 2.0))
    assert v.item() == 3.0 and aux["double"].tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="tuple: \\(output, aux\\)"):
        grad(lambda x: x.sum(), has_aux=True)(const(1.0))


def test_outputs_that_are_refused() -> None:
    with pytest.raises(RuntimeError, match="scalar Tensor, got tensor with 1 dims"):
        grad(lambda x: x)(const(1.0))
    with pytest.raises(RuntimeError, match="Expected f\\(\\*args\\) to return a Tensor, got float"):
        grad(lambda x: 1.0)(scalar(1.0))
    with pytest.raises(RuntimeError, match="complex"):
        grad(lambda x: x)(tp.tensor(1.0 + 2.0j))


def test_arguments_that_are_refused() -> None:
    with pytest.raises(ValueError, match="must be Tensor, got float"):
        grad(lambda x: x)(1.0)
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require gradients"):
        grad(lambda x: x.sum())(tp.tensor([1, 2]))
    with pytest.raises(TypeError, match="expected a function"):
        grad(3)


def test_unused_arguments_get_zeros() -> None:
    g = grad(lambda a, b: (a * 2).sum(), (0, 1))(const(1.0), const(1.0, 2.0))
    assert g[0].tolist() == [2.0] and g[1].tolist() == [0.0, 0.0]
    assert grad(lambda a: scalar(3.0))(const(1.0, 2.0)).tolist() == [0.0, 0.0]


def test_higher_orders() -> None:
    f = lambda x: x**4  # noqa: E731
    assert grad(grad(f))(scalar(2.0)).item() == 48.0
    assert grad(grad(grad(f)))(scalar(2.0)).item() == 48.0
    assert grad(grad(grad(grad(f))))(scalar(2.0)).item() == 24.0


def test_perturbations_are_not_confused() -> None:
    assert grad(lambda x: x * grad(lambda y: x + y)(scalar(2.0)))(scalar(1.0)).item() == 1.0
    d = lambda f: lambda x: jvp(f, (x,), (tp.ones_like(x),))[1]  # noqa: E731
    assert d(lambda x: x * d(lambda y: x + y)(scalar(2.0)))(scalar(1.0)).item() == 1.0
    assert d(lambda x: x * grad(lambda y: x * y)(scalar(2.0)))(scalar(3.0)).item() == 6.0
    assert grad(lambda x: x * d(lambda y: x * y)(scalar(2.0)))(scalar(3.0)).item() == 6.0
    # The one that shifts: d/dx of d/dy sin(x + y) at y = x
    shifted = d(lambda x: d(lambda y: (x + y).sin())(x))(scalar(0.3))
    assert shifted.item() == pytest.approx(-2 * tp.sin(scalar(0.6)).item())


def test_outer_histories_are_followed() -> None:
    w = scalar(3.0).requires_grad_()
    g = grad(lambda x: w * x * x)(scalar(2.0))
    assert g.item() == 12.0 and g.requires_grad
    g.backward()
    assert w.grad.item() == 4.0
    x = scalar(2.0).requires_grad_()
    g = grad(lambda x: x**3)(x)
    assert tp.autograd.grad(g, x)[0].item() == 12.0 and x.grad is None
    with tp.no_grad():
        quiet = grad(lambda x: w * x * x)(scalar(2.0))
    assert quiet.item() == 12.0 and not quiet.requires_grad
    _, v = grad_and_value(lambda x: w * x * x)(scalar(2.0))
    assert v.requires_grad


def test_no_grad_inside_counts_and_outside_does_not() -> None:
    def f(x):
        with tp.no_grad():
            y = x * x
        return x * y

    with tp.no_grad():
        assert grad(f)(scalar(3.0)).item() == 9.0
        assert not tp.is_grad_enabled()
    with tp.inference_mode():
        assert grad(lambda x: x * x)(scalar(3.0)).item() == 6.0


def test_exceptions_leave_nothing_behind() -> None:
    def broken(x):
        raise KeyError("mine")

    for transform in (grad(broken), lambda x: vjp(broken, x), lambda x: jvp(broken, (x,), (x,))):
        with pytest.raises(KeyError, match="mine"):
            transform(scalar(1.0))
    x = scalar(1.0).requires_grad_()
    (x * x).backward()
    assert x.grad.item() == 2.0
    with tp.autograd.forward_ad.dual_level():
        pass


def test_attributes_of_the_function_show() -> None:
    def energy(x):
        """Half the square."""
        return (x * x).sum() / 2

    g = grad(energy)
    assert g.__name__ == "energy" and g.__doc__ == "Half the square." and g.__wrapped__ is energy
    g.note = 1
    assert g.note == 1 and "gradient" in repr(g)

    class Model:
        slope = grad(lambda self, x: self.k * x * x, argnums=1)
        k = 4.0

    assert Model().slope(scalar(2.0)).item() == 16.0


def test_keywords_are_constants() -> None:
    assert grad(lambda x, *, power: x**power)(scalar(3.0), power=3).item() == 27.0


def test_backward_is_refused_inside() -> None:
    w = scalar(1.0).requires_grad_()

    def f(x):
        (w * 2).backward()
        return x

    with pytest.raises(RuntimeError, match="inside a func transform"):
        grad(f)(scalar(1.0))


def test_in_place_changes_inside() -> None:
    def f(x):
        y = x.clone()
        y[0] = x[0] * x[1]
        y.mul_(2.0)
        return (y * x).sum()

    assert grad(f)(const(2.0, 3.0)).tolist() == [24.0, 20.0]


# ---- vjp -------------------------------------------------------------------------------------------------------------


def test_vjp_of_trees() -> None:
    out, pull = vjp(lambda a, b: {"p": a * b, "s": (a + b, [a])}, const(2.0), const(3.0))
    assert out["p"].tolist() == [6.0] and not out["p"].requires_grad
    ga, gb = pull({"s": (const(10.0), [const(100.0)]), "p": const(1.0)})
    assert ga.tolist() == [113.0] and gb.tolist() == [12.0]
    ga, gb = pull({"p": const(0.0), "s": (const(0.0), [const(1.0)])})
    assert ga.tolist() == [1.0] and gb.tolist() == [0.0]


def test_vjp_refuses() -> None:
    _, pull = vjp(lambda x: (x, x), const(1.0))
    with pytest.raises(RuntimeError, match="Expected pytree structure of cotangents"):
        pull(const(1.0))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        vjp(lambda x: x, const(1.0))[1](const(1.0, 2.0))
    with pytest.raises(RuntimeError, match="non-empty output"):
        vjp(lambda x: None, const(1.0))
    with pytest.raises(RuntimeError, match="only tensors"):
        vjp(lambda x: 3.0, const(1.0))
    with pytest.raises(RuntimeError, match="floating-point or complex"):
        vjp(lambda x: x > 0, const(1.0))
    with pytest.raises(TypeError, match="one tree of cotangents"):
        pull(const(1.0), const(1.0))


def test_vjp_keeps_history() -> None:
    x = const(3.0).requires_grad_()
    out, pull = vjp(lambda x: x**3, x)
    assert out.requires_grad
    (g,) = pull(const(1.0))
    assert tp.autograd.grad(g.sum(), x)[0].tolist() == [18.0]
    _, pull = vjp(lambda x: x**3, const(3.0))
    ct = const(2.0).requires_grad_()
    (g,) = pull(ct)
    assert tp.autograd.grad(g.sum(), ct)[0].tolist() == [27.0]
    assert not pull(const(1.0))[0].requires_grad


def test_vjp_with_aux() -> None:
    out, pull, aux = vjp(lambda x: (x * x, x + 1), const(3.0), has_aux=True)
    assert out.tolist() == [9.0] and aux.tolist() == [4.0] and pull(const(1.0))[0].tolist() == [6.0]


def test_vjp_of_complex() -> None:
    z = tp.tensor([1.0 + 2.0j], dtype=tp.complex128)
    _, pull = vjp(lambda z: z * z, z)
    assert pull(tp.tensor([1.0 + 0.0j], dtype=tp.complex128))[0].tolist() == [2.0 - 4.0j]


# ---- jvp -------------------------------------------------------------------------------------------------------------


def test_jvp_of_trees() -> None:
    p = {"a": const(2.0), "b": [const(3.0)]}
    t = {"b": [const(10.0)], "a": const(1.0)}
    out, tangent = jvp(lambda p: (p["a"] * p["b"][0], {"s": p["a"] + 1}), (p,), (t,))
    assert out[0].tolist() == [6.0] and tangent[0].tolist() == [23.0]
    assert tangent[1]["s"].tolist() == [1.0]


def test_jvp_refuses() -> None:
    x = const(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Expected primals to be a tuple"):
        jvp(lambda x: x, x, (x,))
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(lambda x: x, (x,), x)
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(lambda x: x, (x,), (x, x))
    with pytest.raises(RuntimeError, match="they must be equal"):
        jvp(lambda x: x, (x,), (const(1.0),))
    with pytest.raises(RuntimeError, match="only contain Tensors"):
        jvp(lambda x: x, (1.0,), (x,))
    with pytest.raises(RuntimeError, match="at least one Tensor"):
        jvp(lambda: x, (), ())
    with pytest.raises(ValueError, match="floating point"):
        jvp(lambda x: x, (tp.tensor([1]),), (tp.tensor([1]),))
    with pytest.raises(RuntimeError, match="only tensors"):
        jvp(lambda x: 1.0, (x,), (x,))


def test_jvp_of_independent_outputs() -> None:
    x = const(1.0)
    assert jvp(lambda x: const(5.0), (x,), (x,))[1].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        jvp(lambda x: const(5.0), (x,), (x,), strict=True)


def test_jvp_with_aux() -> None:
    out, tangent, aux = jvp(lambda x: (x * x, x + 1), (const(3.0),), (const(1.0),), has_aux=True)
    assert out.tolist() == [9.0] and tangent.tolist() == [6.0] and aux.tolist() == [4.0]
    with pytest.raises(RuntimeError, match="tuple: \\(output, aux\\)"):
        jvp(lambda x: x, (const(3.0),), (const(1.0),), has_aux=True)


def test_jvp_keeps_histories() -> None:
    x = const(3.0).requires_grad_()
    out, tangent = jvp(lambda x: x**3, (x,), (const(1.0),))
    assert tp.autograd.grad(out.sum(), x, retain_graph=True)[0].tolist() == [27.0]
    assert tp.autograd.grad(tangent.sum(), x)[0].tolist() == [18.0]


def test_levels_nest_and_close() -> None:
    x = scalar(2.0)
    d = lambda f: lambda x: jvp(f, (x,), (tp.ones_like(x),))[1]  # noqa: E731
    assert d(d(d(lambda x: x**4)))(x).item() == 48.0
    assert d(grad(lambda x: x**4))(x).item() == 48.0
    assert grad(d(lambda x: x**4))(x).item() == 48.0
    assert d(d(grad(lambda x: x**5)))(x).item() == 240.0
    fw = tp.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(x, scalar(1.0))
        slope = d(lambda x: x**3)(dual)
        assert fw.unpack_dual(slope).tangent.item() == 12.0
        with pytest.raises(RuntimeError), fw.dual_level():
            pass
    kept = []
    jvp(lambda x: (kept.append(x * x), x)[1], (x,), (x,))
    assert fw.unpack_dual(kept[0]).tangent is None


def test_in_place_changes_of_duals() -> None:
    d = lambda f: lambda x: jvp(f, (x,), (tp.ones_like(x),))[1]  # noqa: E731

    def f(x):
        y = x * 1.0
        y.mul_(x)
        y[:1].mul_(x[1:])
        y[1:] = y[:1] * x[:1]
        return y.sum()

    # y = (x0**2 x1, x0**3 x1)
    x = const(2.0, 3.0)
    assert d(f)(x).item() == pytest.approx(2 * 2 * 3 + 4 + 3 * 4 * 3 + 8)
    step = 1e-5
    numeric = (d(f)(x + step) - d(f)(x - step)) / (2 * step)
    assert d(d(f))(x).item() == pytest.approx(numeric.item(), rel=1e-8)
    zeroed = jvp(lambda x: (x * 2.0).zero_() + x, (x,), (tp.ones_like(x),))[1]
    assert zeroed.tolist() == [1.0, 1.0]


# ---- linearize and hvp -----------------------------------------------------------------------------------------------


def test_linearize() -> None:
    calls = []

    def f(x, y):
        calls.append(1)
        return {"p": x * y.sin(), "s": x.sum()}

    x, y = const(1.0, 2.0), const(0.5, 0.7)
    out, push = linearize(f, x, y)
    for t in (const(1.0, 0.0), const(0.3, -0.4)):
        want = jvp(f, (x, y), (t, t * 2))[1]
        calls.clear()
        got = push(t, t * 2)
        assert not calls and tp.allclose(got["p"], want["p"]) and tp.allclose(got["s"], want["s"])
    assert tp.allclose(out["p"], x * y.sin())
    with pytest.raises(RuntimeError, match="structure"):
        push(x)


def test_linearize_gives_values_without_history() -> None:
    x, t = const(1.0, 2.0), const(1.0, 0.5)
    f = lambda x: x.sin().exp()  # noqa: E731
    want = t * x.cos() * x.sin().exp()
    _, push = linearize(f, x)
    assert not push(t).requires_grad and tp.allclose(push(t), want)
    rows = tp.vmap(push)(tp.eye(2, dtype=F64))
    assert not rows.requires_grad and tp.allclose(rows.diagonal() * t, want)
    with pytest.raises(RuntimeError, match=r"linearize: the tangents are .*float32 \[2\]; .*dtypes"):
        push(t.float())
    # The transpose of a pullback, made by hand.
    _, pull = vjp(f, x)
    value, transpose = vjp(pull, const(1.0, 1.0))
    assert not value[0].requires_grad and not transpose((t,))[0].requires_grad
    # What somebody outside follows keeps its history: the tangent, the primal, what the function captures.
    followed = t.clone().requires_grad_()
    assert tp.autograd.grad(push(followed).sum(), followed)[0].tolist() == (x.cos() * x.sin().exp()).tolist()
    for at, k in ((x.clone().requires_grad_(), scalar(1.0)), (x, scalar(1.0).requires_grad_())):
        _, push = linearize(lambda x: f(x) * k, at)  # noqa: B023
        asked = at if at.requires_grad else k
        (g,) = tp.autograd.grad(push(t).sum(), asked)
        assert tp.allclose(g, t * f(x) * (x.cos() ** 2 - x.sin()) if asked is at else want.sum())
    slope = grad(lambda y: linearize(f, y)[1](t).sum())(x)
    assert tp.allclose(slope, t * f(x) * (x.cos() ** 2 - x.sin()))


def test_hessian_vector_products() -> None:
    x, v = const(1.0, 2.0), const(1.0, -1.0)
    f = lambda x: (x**3).sum() * x[0]  # noqa: E731
    h = tp.tensor([[12.0, 12.0], [12.0, 12.0]], dtype=F64)
    assert hvp(f, x, v).tolist() == (h @ v).tolist()
    a, b = hvp(lambda a, b: (a * a * b).sum(), (x, v), (v, x))
    assert tp.allclose(a, 2 * v * v + 2 * x * x) and tp.allclose(b, 2 * x * v)


# ---- trees -----------------------------------------------------------------------------------------------------------


def test_tree_helpers() -> None:
    tree = {"w": const(1.0), "b": [scalar(2.0), None]}
    assert [t.tolist() for t in func.tree_leaves(tree)] == [[1.0], 2.0]
    doubled = func.tree_map(lambda a, b: a + b, tree, {"b": [scalar(20.0), None], "w": const(10.0)})
    assert doubled["w"].tolist() == [11.0] and doubled["b"][0].item() == 22.0 and doubled["b"][1] is None
    with pytest.raises(ValueError, match="structure"):
        func.tree_map(lambda a, b: a, tree, {"w": 1})
    stacked = func.stack_trees([tree, tree, doubled])
    assert stacked["w"].tolist() == [[1.0], [1.0], [11.0]]
    assert [t["b"][0].item() for t in func.unstack_tree(stacked)] == [2.0, 2.0, 22.0]
    with pytest.raises(ValueError, match="first dimension"):
        func.unstack_tree({"a": const(1.0, 2.0), "b": const(1.0)})
    with pytest.raises(ValueError, match="at least one tree"):
        func.stack_trees([])
