"""Symbolic derivatives against mpmath's numerical and SymPy's symbolic ones; stable forms; shared subexpressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
import sympy

from codegen import derive
from codegen import formula as F
from codegen.evaluate import MpmathEvaluator, NumpyEvaluator
from codegen.formula import parse, to_text
from codegen.functions import FUNCTIONS, INTERNAL, ORDERS, POLYNOMIALS, mpmath_functions, numpy_functions
from codegen.plan_compute import share_work
from codegen.simplify import expand, simplify

# Degrees between the steps at whole numbers, where a polynomial of the degree rounded down does not change with it, and
# order 0.
POLYNOMIAL = ((0.2, 0.8), (2.0, 6.0), (0.0, 0.9))
# Domains where a function is smooth, of all its arguments or of each; the rest is smooth on (0.2, 0.8).
DOMAINS = {
    "acosh": (1.2, 3.0),
    "lgamma": (0.5, 3.0),
    "digamma": (0.5, 3.0),
    "trigamma": (0.5, 3.0),
    "polygamma": (0.5, 3.0),
    "zeta": (1.5, 4.0),
    "zeta_order": ((1.5, 4.0), (1.5, 4.0), (1.0, 1.0)),
    "igamma_order": ((0.5, 3.0), (0.5, 3.0), (2.0, 2.0)),
    "gamma_density": ((0.5, 3.0), (0.5, 3.0), (1.0, 1.0)),
    **dict.fromkeys(POLYNOMIALS, POLYNOMIAL),
}
SMOOTH = [
    name
    for name, f in FUNCTIONS.items()
    if name not in INTERNAL and f.kind in ("any", "float") and all(p is not None for p in f.partials)
    and name not in ("where", "clamp", "heaviside", "float", "real", "polygamma", "sign", "sgn", "copysign",
                    "nextafter")  # mpmath has no next number
]  # fmt: skip


def inside(name: str, shares: Sequence[float]) -> list[float]:
    """Arguments of a function, as shares of its domains."""
    domain = DOMAINS.get(name, (0.2, 0.8))
    each = domain if isinstance(domain[0], tuple) else (domain,) * len(shares)
    return [lo + (hi - lo) * v for (lo, hi), v in zip(each, shares, strict=True)]


def at(node: F.Node, env: dict[str, mpmath.mpf]) -> mpmath.mpf:
    return MpmathEvaluator()(expand(node), env)


def slope(node: F.Node, x: str, env: dict[str, mpmath.mpf]) -> mpmath.mpf:
    return mpmath.diff(lambda v: at(node, {**env, x: v}), env[x])


@pytest.mark.parametrize("name", SMOOTH)
def test_every_rule_to_third_order(name: str) -> None:
    f = FUNCTIONS[name]
    args = ["x", "y", "z"][: f.arity]
    for p in ((0.31, 0.77, 0.4), (0.62, 0.23, 0.6), (0.55, 0.44, 0.2)):
        env = dict(zip(args, map(mpmath.mpf, inside(name, p[: f.arity])), strict=True))
        for x in args:
            node: F.Node = F.Call(name, tuple(map(F.Name, args)))
            with mpmath.workdps(40):
                for order in (1, 2, 3):
                    d = derive.partial(node, x, "unused", [*args, "unused"])
                    value = at(d, {**env, "unused": at(node, env)})
                    want = slope(node, x, env)
                    # Series and constants stand to double precision.
                    assert abs(value - want) <= 1e-10 * max(1, abs(want)), (order, x, to_text(d))
                    if "unused" in F.names(d):
                        d = F.substitute(d, {"unused": node})
                    node = d


@pytest.mark.parametrize("name", ORDERS)
def test_rules_of_functions_that_count_their_derivatives(name: str) -> None:
    node = F.Call(name, (F.Name("x"), F.Name("y"), F.Num(2)))
    env = {"x": mpmath.mpf("2.3"), "y": mpmath.mpf("1.7")}
    with mpmath.workdps(30):
        for arg in env:
            want = slope(node, arg, env)
            assert abs(at(derive.partial(node, arg), env) - want) <= 1e-12 * abs(want), arg


@pytest.mark.parametrize(
    "text",
    [
        "x * tanh(log1p(exp(x)))", "x * sigmoid(x)", "0.5 * x * (1 + erf(x / sqrt(2)))", "1 / (1 + exp(-x))",
        "log(1 + exp(x))", "x**3 - 2 * x + 1 / x", "(x + 1)**3 / (x - 1)", "exp(-x**2) * cos(3 * x)", "x**x",
        "sqrt(1 + x**2) / x", "log(x / (1 - x))", "sin(x)**2 + cos(x)**2", "2**x * x", "x * (x * (x * (x + 1)))",
        "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x**3)))",
    ],
)  # fmt: skip
def test_compositions_against_sympy(text: str) -> None:
    x = sympy.Symbol("x")
    names = {"sigmoid": lambda v: 1 / (1 + sympy.exp(-v)), "expm1": lambda v: sympy.exp(v) - 1, "x": x}
    names |= {n: getattr(sympy, n) for n in ("exp", "log", "sin", "cos", "tanh", "erf", "sqrt")}
    names["log1p"] = lambda v: sympy.log(1 + v)
    truth = sympy.diff(eval(text, {"__builtins__": {}}, names), x)
    d = derive.partial(parse(text), "x")
    value = sympy.lambdify(x, truth, "mpmath")
    for point in (0.3, 0.7):
        env = {"x": mpmath.mpf(point)}
        env["out"] = at(parse(text), env)
        assert math.isclose(float(at(d, env)), float(value(mpmath.mpf(point))), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("tanh(x)", "1 - out**2"),
        ("exp(x)", "out"),
        ("sigmoid(x)", "out * (1 - out)"),
        ("1 / (1 + exp(-x))", "out * (1 - out)"),
        ("log(1 + exp(x))", "sigmoid(x)"),
        ("log1p(exp(x))", "sigmoid(x)"),
        ("sqrt(x)", "0.5 / out"),
        ("1 / x", "-out**2"),
        ("x**2", "2 * x"),
        ("x * y + x", "y + 1"),
        ("expm1(x)", "out + 1"),
        ("2 * expm1(x)", "2 * exp(x)"),
        ("x + 3", "1"),
        ("y * 2", "0"),
        ("where(x > 0, x, a * expm1(x))", "where(x > 0, 1, exp(x) * a)"),
        ("floor(x)", "0"),
        ("x > y", "0"),
        ("clamp(x, None, y)", "where(x <= y, 1, 0)"),
        ("log_sigmoid(x)", "sigmoid(-x)"),
        ("abs(x)", "conj(sgn(x))"),
    ],
)
def test_forms(text: str, want: str) -> None:
    assert to_text(derive.partial(parse(text), "x", "out", ["x", "y"])) == want


def test_stable_where_the_naive_form_is_not() -> None:
    d = derive.partial(parse("x * tanh(log1p(exp(x)))"), "x")
    values = NumpyEvaluator()(d, {"x": np.array([-750.0, -30.0, 0.0, 30.0, 750.0])})
    assert np.isfinite(values).all()
    assert values[-1] == 1.0


def test_masked_branch_makes_no_nan() -> None:
    d = derive.partial(parse("where(x > 0, sqrt(x), 0)"), "x", "out", ["x"])
    with np.errstate(all="ignore"):
        values = NumpyEvaluator()(d, {"x": np.array([-1.0, 0.0, 4.0]), "out": np.array([0.0, 0.0, 2.0])})
    assert values.tolist() == [0.0, 0.0, 0.25]


def test_sinc_and_i1_near_zero() -> None:
    for name in ("sinc", "i1"):
        first = derive.partial(parse(f"{name}(x)"), "x")
        second = derive.partial(F.substitute(first, {"out": parse(f"{name}(x)")}), "x", "unused")
        for p in (0.0, 1e-8, 0.049, 0.051):
            env = {"x": mpmath.mpf(p)}
            with mpmath.workdps(40):
                want = mpmath.diff(mpmath_functions()[name], p, 2)
                assert abs(at(second, env) - want) < 1e-9


def test_no_rule_is_named() -> None:
    with pytest.raises(derive.NoRule, match="hermite_h"):
        derive.partial(parse("hermite_h(y, x, 0)"), "x")


def test_cse_shares_and_orders() -> None:
    lets, nodes = derive.cse([parse("exp(x) * sin(exp(x)) + cos(x * exp(x))"), parse("x * exp(x)")])
    env: dict[str, F.Node] = {}
    for name, body in lets:
        assert set(F.names(body)) <= {"x", *env}
        env[name] = body
    rebuilt = nodes[0]
    for name, body in reversed(lets):
        rebuilt = F.substitute(rebuilt, {name: body})
    assert rebuilt == parse("exp(x) * sin(exp(x)) + cos(x * exp(x))")
    assert "exp(x)" in [to_text(b) for _, b in lets]
    assert derive.cse([parse("x + y")]) == ([], [parse("x + y")])


def test_inline_and_cycles() -> None:
    ops = {
        "silu": ((("input", None),), parse("input * sigmoid(input)")),
        "scaled": ((("input", None), ("k", F.Num(2))), parse("silu(k * input)")),
    }
    assert to_text(derive.inline(parse("scaled(x + 1)"), ops)) == "2 * (x + 1) * sigmoid(2 * (x + 1))"
    assert to_text(derive.inline(parse("scaled(x, k=y)"), ops)) == "y * x * sigmoid(y * x)"
    with pytest.raises(derive.Cycle, match="a -> b -> a"):
        derive.inline(
            parse("b(x)"), {"b": ((("x", None),), parse("a(x)")), "a": ((("x", None),), parse("b(x)"))}, ("a",)
        )


@pytest.mark.parametrize("name", sorted(set(numpy_functions()) & set(mpmath_functions())))
def test_numpy_and_mpmath_forms_agree(name: str) -> None:
    f = FUNCTIONS.get(name)
    if (
        f is None
        or f.kind in ("bool", "int")
        or name in ("polygamma", "where", "clamp", "real", "imag", "angle", "conj")
    ):
        return
    for p in ((0.3, 0.6, 0.5), (0.8, 0.1, 0.2)):
        args = inside(name, p[: f.arity])
        got = numpy_functions()[name](*map(np.float64, args))
        want = mpmath_functions()[name](*map(mpmath.mpf, args))
        assert math.isclose(float(got), float(want), rel_tol=1e-12, abs_tol=1e-14)


def test_simplify_keeps_values() -> None:
    rng = np.random.default_rng(0)
    texts = [
        "x * y / x", "-(x - y) * -2", "x**2 * x**-3", "(2 * x)**2 / 4", "x - x + y", "x / (y / x)", "3 - (x - 3)",
        "x**0.5 * x",
        "exp(x) / (1 + exp(x))", "(x + y) / (x + y)", "where(x > 0.5, x, x)", "2 * (3 * x) - 6 * x + y",
    ]  # fmt: skip
    ev = NumpyEvaluator()
    for text in texts:
        env = {"x": rng.uniform(0.3, 2, 20), "y": rng.uniform(0.3, 2, 20)}
        a, b = ev(parse(text), env), ev(simplify(parse(text)), env)
        np.testing.assert_allclose(a, np.broadcast_to(b, a.shape), rtol=1e-12, atol=1e-12, err_msg=text)


def test_gradients_share_a_loop_where_it_pays_and_fits() -> None:
    both = [parse("exp(a) * b"), parse("exp(a) * c")]
    assert share_work(both, 13) and not share_work(both, 14)  # with g and two results 16 operands, then 17
    assert not share_work(both[:1], 2) and not share_work([parse("a * b"), parse("a * c")], 3)
