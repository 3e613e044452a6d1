"""The elementwise functions a formula may call: arity, result kind, partial derivatives, NumPy and mpmath forms.

A partial is a formula over x, y, z (the arguments) and out (the value itself); None means there is no rule and an entry
must give `d`. Every function a partial uses is in this table, so derivatives of derivatives exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from .formula import Node, parse

CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}
PLACES = ("x", "y", "z")


@dataclass(frozen=True)
class Function:
    name: str
    arity: int
    kind: str  # float: integers become float; any: keeps the type; bool; int: integers and bool only
    partials: tuple[str | None, ...]  # one per argument; '0' where it is piecewise constant
    optional: int = 0  # how many trailing arguments may be None (clamp)

    @property
    def rules(self) -> tuple[Node | None, ...]:
        return tuple(None if p is None else _parsed(p) for p in self.partials)


@cache
def _parsed(text: str) -> Node:
    return parse(text)


FUNCTIONS: dict[str, Function] = {}


def _f(name: str, kind: str, *partials: str | None, optional: int = 0) -> None:
    FUNCTIONS[name] = Function(name, len(partials), kind, partials, optional)


# Exponentials and logarithms. expm1 keeps exp(x): out + 1 cancels where exp(x) is small.
_f("exp", "float", "out")
_f("exp2", "float", "0.6931471805599453 * out")
_f("expm1", "float", "exp(x)")
_f("log", "float", "1 / x")
_f("log2", "float", "1.4426950408889634 / x")
_f("log10", "float", "0.4342944819032518 / x")
_f("log1p", "float", "1 / (1 + x)")
_f("logaddexp", "float", "sigmoid(x - y)", "sigmoid(y - x)")
_f("logaddexp2", "float", "sigmoid(0.6931471805599453 * (x - y))", "sigmoid(0.6931471805599453 * (y - x))")
# 0 * log(0) is 0 here, and so is its partial: the factor x is exactly zero there.
_f("xlogy", "float", "where(x == 0 and y <= 0, 0, log(y))", "x / y")
_f("xlog1py", "float", "where(x == 0 and y <= -1, 0, log1p(y))", "x / (1 + y)")
_f("entr", "float", "-log(x) - 1")
# Powers. The partial in the base is 0 for exponent 0 even at base 0. At base 0, x**y log x tends to 0 with x**y, so the
# partial in the exponent is 0 there.
_f("pow", "any", "where(y == 0, 0, y * x**(y - 1))", "where(x == 0 and (out == 0 or y == 0), 0, out * log(x))")
_f("sqrt", "float", "0.5 / out")
_f("rsqrt", "float", "-0.5 * out**3")
_f("reciprocal", "float", "-out**2")
_f("square", "any", "2 * x")
# hypot at the origin: the subgradient 0.
_f("hypot", "float", "where(out == 0, 0, x / out)", "where(out == 0, 0, y / out)")
# Trigonometric and hyperbolic. (1 - x) * (1 + x) does not cancel near 1 as 1 - x**2 does.
_f("sin", "float", "cos(x)")
_f("cos", "float", "-sin(x)")
_f("tan", "float", "1 + out**2")
_f("asin", "float", "rsqrt((1 - x) * (1 + x))")
_f("acos", "float", "-rsqrt((1 - x) * (1 + x))")
_f("atan", "float", "1 / (1 + x**2)")
_f("sinh", "float", "cosh(x)")
_f("cosh", "float", "sinh(x)")
_f("tanh", "float", "1 - out**2")
_f("asinh", "float", "rsqrt(1 + x**2)")
_f("acosh", "float", "rsqrt(x - 1) * rsqrt(x + 1)")
_f("atanh", "float", "1 / ((1 - x) * (1 + x))")
_f("atan2", "float", "y / (x**2 + y**2)", "-x / (x**2 + y**2)")
# sinc(x) = sin(pi x) / (pi x). Near 0 the quotient cancels, so the series stands there.
_f("sinc", "float", "where(abs(x) < 0.05, sinc_slope(pi * x) * pi, (cos(pi * x) - out) / x)")
# The error function and kin.
_f("erf", "float", "1.1283791670955126 * exp(-x**2)")
_f("erfc", "float", "-1.1283791670955126 * exp(-x**2)")
_f("erfinv", "float", "0.886226925452758 * exp(out**2)")
_f("erfcx", "float", "2 * x * out - 1.1283791670955126")
_f("ndtr", "float", "0.3989422804014327 * exp(-0.5 * x**2)")
_f("ndtri", "float", "2.5066282746310002 * exp(0.5 * out**2)")
_f("log_ndtr", "float", "exp(-0.5 * x**2 - out - 0.9189385332046728)")
_f("lgamma", "float", "digamma(x)")
_f("digamma", "float", "polygamma(1, x)")
_f("trigamma", "float", "polygamma(2, x)")
_f("polygamma", "float", "0", "polygamma(x + 1, y)")  # the order is a constant, never differentiated
_f("i0", "float", "i1(x)")
_f("i1", "float", "where(abs(x) < 0.05, i1_slope(x), i0(x) - out / x)")
_f("i0e", "float", "i1e(x) - sgn(x) * out")
_f("i1e", "float", "where(abs(x) < 0.05, i1_slope(x) * exp(-abs(x)) - sgn(x) * out, i0e(x) - out * (sgn(x) + 1 / x))")
# Bessel functions of the first and second kind, and the modified ones of the second.
_f("bessel_j0", "float", "-bessel_j1(x)")
_f("bessel_j1", "float", "where(abs(x) < 0.05, j1_slope(x), bessel_j0(x) - out / x)")
_f("bessel_y0", "float", "-bessel_y1(x)")
_f("bessel_y1", "float", "bessel_y0(x) - out / x")
_f("modified_bessel_k0", "float", "-modified_bessel_k1(x)")
_f("modified_bessel_k1", "float", "-modified_bessel_k0(x) - out / x")
_f("scaled_modified_bessel_k0", "float", "out - scaled_modified_bessel_k1(x)")
_f("scaled_modified_bessel_k1", "float", "out - scaled_modified_bessel_k0(x) - out / x")
_f("spherical_bessel_j0", "float", "where(abs(x) < 0.15, sinc_slope(x), (cos(x) - out) / x)")
_f("airy_ai", "float", "airy_ai_prime(x)")
_f("airy_ai_prime", "float", "x * airy_ai(x)")
# Hurwitz zeta, the incomplete gamma functions and their slope in y, differentiated z times in x.
_f("zeta", "float", "zeta_order(x, y, 1)", "-x * zeta(x + 1, y)")
_f("igamma", "float", "igamma_order(x, y, 1)", "exp(xlogy(x - 1, y) - y - lgamma(x))")
_f("igammac", "float", "-igamma_order(x, y, 1)", "-exp(xlogy(x - 1, y) - y - lgamma(x))")
_f(
    "zeta_order", "float", "zeta_order(x, y, z + 1)", "-x * zeta_order(x + 1, y, z) - z * zeta_order(x + 1, y, z - 1)",
    None,
)  # fmt: skip
_f("igamma_order", "float", "igamma_order(x, y, z + 1)", "gamma_density(x, y, z)", None)
_f("gamma_density", "float", "gamma_density(x, y, z + 1)", "gamma_density(x - 1, y, z) - gamma_density(x, y, z)", None)
# Orthogonal polynomials of degree y, differentiated z times.
for _name in (
    "chebyshev_t", "chebyshev_u", "chebyshev_v", "chebyshev_w", "hermite_h", "hermite_he", "laguerre_l", "legendre_p",
):  # fmt: skip
    _f(_name, "float", f"{_name}(x, y, z + 1)", None, None)
# Logistic. log_sigmoid keeps sigmoid(-x), exact in both tails.
_f("sigmoid", "float", "out * (1 - out)")
_f("log_sigmoid", "float", "sigmoid(-x)")
# Absolute value, sign, complex parts. conj is the identity on real types; the loops drop it there.
_f("abs", "any", "conj(sgn(x))")
_f("sign", "any", "0")
_f("sgn", "any", "0")
_f("neg", "any", "-1")
_f("conj", "any", None)
_f("real", "any", "1")
_f("imag", "any", None)
_f("angle", "float", None)
_f("copysign", "float", "sgn(x) * copysign(1, y)", "0")
# Selection. At a tie of maximum and minimum each side gets one half; fmax and fmin give it to the first.
_f("where", "any", "0", "where(x, 1, 0)", "where(x, 0, 1)")
_f("maximum", "any", "where(x < y, 0, where(x == y, 0.5, 1))", "where(y < x, 0, where(x == y, 0.5, 1))")
_f("minimum", "any", "where(x > y, 0, where(x == y, 0.5, 1))", "where(y > x, 0, where(x == y, 0.5, 1))")
_f("fmax", "any", "where(x >= y or isnan(y), 1, 0)", "where(x >= y or isnan(y), 0, 1)")
_f("fmin", "any", "where(x <= y or isnan(y), 1, 0)", "where(x <= y or isnan(y), 0, 1)")
# clamp passes the gradient on its closed interval; with lo > hi the result is hi.
# A bound may be None: an order comparison with an absent bound holds, so the rules negate <= and >=.
_f(
    "clamp", "any", "where(x >= y and x <= z, 1, 0)", "where(not (x >= y or isnan(x)) and y < z, 1, 0)",
    "where(not (x <= z and y <= z or isnan(x)), 1, 0)", optional=2,
)  # fmt: skip
_f("heaviside", "any", "0", "where(x == 0, 1, 0)")
# Rounding and remainders: piecewise constant quotients. % is remainder (sign of the divisor), // floors.
_f("floor", "any", "0")
_f("ceil", "any", "0")
_f("round", "any", "0")
_f("trunc", "any", "0")
_f("frac", "any", "1")
_f("fmod", "any", "1", "-trunc(x / y)")
_f("remainder", "any", "1", "-floor(x / y)")
_f("floor_divide", "any", "0", "0")
# One step of rounding away from x, which it follows; where it has arrived it stands still.
_f("nextafter", "float", "where(x == y, 0, 1)", "0")
# Masks and integers.
for _name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "logical_not"):
    _f(_name, "bool", "0")
for _name in ("logical_and", "logical_or", "logical_xor"):
    _f(_name, "bool", "0", "0")
_f("bitwise_not", "int", "0")
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm"):
    _f(_name, "int", "0", "0")
# Casts: `float(x)` makes the default float type of integers and bool; `int(x)` truncates.
_f("float", "float", "1")
_f("bool", "bool", "0")
_f("int", "int", "0")
# Series near 0 of d/du (sin u / u), for |u| < 0.16, and of d/dx i1(x); expanded by derive.
_f("sinc_slope", "float", None)
_f("i1_slope", "float", None)
_f("j1_slope", "float", None)

SINC_SLOPE = parse(
    "x * (-0.3333333333333333 + x**2 * (0.03333333333333333 + x**2 * (-0.0011904761904761906 + x**2 * "
    "(2.2045855379188714e-05 + x**2 * -2.505210838544172e-07))))"
)
I1_SLOPE = parse("0.5 + x**2 * (0.1875 + x**2 * (0.013020833333333334 + x**2 * 0.0003797743055555556))")
J1_SLOPE = parse("0.5 + x**2 * (-0.1875 + x**2 * (0.013020833333333334 + x**2 * -0.0003797743055555556))")
# Pure spellings: rewritten before anything else looks at a formula.
MACROS: dict[str, tuple[tuple[str, ...], Node]] = {
    "sinc_slope": (("x",), SINC_SLOPE),
    "i1_slope": (("x",), I1_SLOPE),
    "j1_slope": (("x",), J1_SLOPE),
    "trigamma": (("x",), parse("polygamma(1, x)")),
    "neg": (("x",), parse("-x")),
    "pow": (("x", "y"), parse("x**y")),
    "remainder": (("x", "y"), parse("x % y")),
    "floor_divide": (("x", "y"), parse("x // y")),
}
REAL_VALUED = frozenset({"abs", "real", "imag", "angle"})  # of complex numbers too
INTERNAL = frozenset({"sinc_slope", "i1_slope", "j1_slope"})  # not offered to entries

# Binary operators as functions: kind and partials.
OPERATORS: dict[str, Function] = {
    "+": Function("+", 2, "any", ("1", "1")),
    "-": Function("-", 2, "any", ("1", "-1")),
    "*": Function("*", 2, "any", ("y", "x")),
    "/": Function("/", 2, "float", ("1 / y", "-x / y**2")),
    "//": Function("//", 2, "any", ("0", "0")),
    "%": Function("%", 2, "any", ("1", "-floor(x / y)")),
    "**": Function("**", 2, "any", FUNCTIONS["pow"].partials),
    "&": Function("&", 2, "int", ("0", "0")),
    "|": Function("|", 2, "int", ("0", "0")),
    "^": Function("^", 2, "int", ("0", "0")),
    "<<": Function("<<", 2, "int", ("0", "0")),
    ">>": Function(">>", 2, "int", ("0", "0")),
}
# The op that computes an operator node when a formula is called as differentiable ops.
OPERATOR_OPS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder", "**": "pow", "@": "matmul",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "bitwise_left_shift", ">>": "bitwise_right_shift",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
    "neg": "neg", "~": "bitwise_not", "not": "logical_not", "and": "logical_and", "or": "logical_or",
}  # fmt: skip


# P_(n+1) = (a x + b) P_n - c P_(n-1), by family, from n: reference forms by exact coefficients.
POLYNOMIALS: dict[str, Callable[[int], tuple[float, float, float]]] = {
    "chebyshev_t": lambda n: (1 if n == 0 else 2, 0, 1),
    "chebyshev_u": lambda n: (2, 0, 1),
    "chebyshev_v": lambda n: (2, -1 if n == 0 else 0, 1),
    "chebyshev_w": lambda n: (2, 1 if n == 0 else 0, 1),
    "hermite_h": lambda n: (2, 0, 2 * n),
    "hermite_he": lambda n: (1, 0, n),
    "laguerre_l": lambda n: (-1 / (n + 1), (2 * n + 1) / (n + 1), n / (n + 1)),
    "legendre_p": lambda n: ((2 * n + 1) / (n + 1), 0, n / (n + 1)),
}


ORDERS = ("zeta_order", "igamma_order", "gamma_density")

# What csrc/kernels/vecmath.h has as scalar code, what has a form over a block of elements that is compiled beside the
# loops (csrc/kernels/special_table.h), and what is an instruction or two. Everything else of kind "float" is long: a
# loop that calls it exists once, without remainders (csrc/kernels/loop_tail.h).
SCALAR = frozenset({
    *POLYNOMIALS, *ORDERS, "airy_ai_prime", "zeta", "igamma", "igammac", "fmod", "remainder", "floor_divide", "gcd",
    "lcm",
})  # fmt: skip
BLOCK = frozenset({
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "lgamma", "digamma", "polygamma",
    "trigamma", "erfinv", "ndtri", "erfcx", "log_ndtr", "i0", "i0e", "i1", "i1e",
})  # fmt: skip
SHORT = frozenset({"sqrt", "rsqrt", "reciprocal", "copysign", "nextafter", "float"})
LONG = frozenset({"pow", *(f.name for f in FUNCTIONS.values() if f.kind == "float")}) - SCALAR - BLOCK - SHORT


@cache
def _orders() -> dict[str, Callable[..., Any]]:
    """What mpmath alone has: functions differentiated z times in x."""
    try:
        import mpmath as mp
    except ImportError:
        raise Unavailable("mpmath is not installed") from None

    def order(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y, z: f(x, y) if z == 0 else mp.diff(lambda v: f(v, y), x, int(z))

    return {
        "zeta_order": lambda s, q, k: mp.mpf(0) if k < 0 else mp.zeta(s, q, int(k)),
        "igamma_order": order(lambda a, x: mp.gammainc(a, 0, x, regularized=True)),
        "gamma_density": order(lambda a, x: mp.power(x, a - 1) * mp.exp(-x) * mp.rgamma(a)),
    }


def _order(name: str, *args: float) -> float:
    return float(_orders()[name](*map(float, args)))


def _polynomial(name: str, one: Any, x: Any, degree: Any, order: Any) -> Any:
    """A polynomial's derivative, by its coefficients, in the numbers of `one`."""
    if degree <= -1:
        return 0 * one
    before: list[Any] = []
    now = [one]
    for n in range(int(degree)):
        a, b, c = (v * one for v in POLYNOMIALS[name](n))
        after = [b * v for v in now] + [0 * one]
        for k, v in enumerate(now):
            after[k + 1] += a * v
        for k, v in enumerate(before):
            after[k] -= c * v
        before, now = now, after
    for _ in range(int(order)):
        now = [k * v for k, v in enumerate(now)][1:]
    total = 0 * one
    for v in reversed(now):
        total = total * x + v
    return total


class Unavailable(Exception):
    """A numeric form that needs a package that is not installed."""


def is_absent(why: str) -> bool:
    """Whether something could not be computed because a package is not installed."""
    return why.endswith(("is not installed", "needs SciPy"))


# ---- numeric forms --------------------------------------------------------------------------------------------------


@cache
def numpy_functions() -> dict[str, Callable[..., Any]]:
    """NumPy forms over float64, complex128, integers and bool; SciPy where NumPy has none."""
    import numpy as np

    try:
        import scipy.special as sp
    except ImportError:
        sp = None

    def need(name: str) -> Callable[..., Any]:
        if sp is not None:
            return getattr(sp, name)

        def missing(*_: Any) -> Any:
            raise Unavailable(f"{name} needs SciPy")

        return missing

    def sgn(x: Any) -> Any:
        return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))) if np.iscomplexobj(x) else np.sign(x)

    def clamp(x: Any, lo: Any = None, hi: Any = None) -> Any:
        x = x if lo is None else np.maximum(x, lo)
        return x if hi is None else np.minimum(x, hi)

    def sigmoid(x: Any) -> Any:
        return np.where(np.real(x) >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))

    def power(x: Any, y: Any) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        integers = x.dtype.kind in "iub" and y.dtype.kind in "iub" and not np.any(y < 0)
        return np.power(x, y) if integers else np.power(x * 1.0, y)

    def log_sigmoid(x: Any) -> Any:
        return -np.logaddexp(0, -x)

    table: dict[str, Callable[..., Any]] = {
        name: getattr(np, name)
        for name in [
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "logaddexp",
            "logaddexp2",
            "sqrt",
            "square",
            "hypot",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "sinc",
            "abs",
            "sign",
            "conj",
            "real",
            "imag",
            "angle",
            "copysign",
            "where",
            "maximum",
            "minimum",
            "fmax",
            "fmin",
            "heaviside",
            "floor",
            "ceil",
            "trunc",
            "fmod",
            "remainder",
            "floor_divide",
            "nextafter",
            "isnan",
            "isinf",
            "isfinite",
            "isposinf",
            "isneginf",
            "signbit",
            "logical_not",
            "logical_and",
            "logical_or",
            "logical_xor",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "gcd",
            "lcm",
        ]
    }
    table |= {
        "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
        "atanh": np.arctanh, "atan2": np.arctan2, "rsqrt": lambda x: 1 / np.sqrt(x),
        "reciprocal": lambda x: 1 / (x * 1.0),
        "neg": lambda x: -x, "pow": power, "sgn": sgn, "clamp": clamp, "sigmoid": sigmoid, "log_sigmoid": log_sigmoid,
        "round": np.round,
        "frac": lambda x: x - np.trunc(x), "bitwise_not": np.invert, "bitwise_left_shift": np.left_shift,
        "bitwise_right_shift": np.right_shift, "float": lambda x: np.asarray(x) * 1.0,
        "bool": lambda x: np.asarray(x) != 0, "int": lambda x: np.trunc(x).astype(np.int64),
        "erf": need("erf"), "erfc": need("erfc"), "erfinv": need("erfinv"), "erfcx": need("erfcx"),
        "ndtr": need("ndtr"),
        "ndtri": need("ndtri"), "log_ndtr": need("log_ndtr"), "lgamma": need("gammaln"), "digamma": need("digamma"),
        "polygamma": need("polygamma"), "trigamma": lambda x: need("polygamma")(1, x), "i0": need("i0"),
        "i1": need("i1"),
        "i0e": need("i0e"), "i1e": need("i1e"), "xlogy": need("xlogy"), "xlog1py": need("xlog1py"),
        "entr": need("entr"), "bessel_j0": need("j0"), "bessel_j1": need("j1"), "bessel_y0": need("y0"),
        "bessel_y1": need("y1"), "modified_bessel_k0": need("k0"), "modified_bessel_k1": need("k1"),
        "scaled_modified_bessel_k0": need("k0e"), "scaled_modified_bessel_k1": need("k1e"),
        "spherical_bessel_j0": lambda x: np.sinc(x / np.pi), "airy_ai": lambda x: need("airy")(x)[0],
        "airy_ai_prime": lambda x: need("airy")(x)[1], "zeta": need("zeta"), "igamma": need("gammainc"),
        "igammac": need("gammaincc"),
    }  # fmt: skip
    table |= {name: np.vectorize(partial(_polynomial, name, 1.0), otypes=[float]) for name in POLYNOMIALS}
    table |= {name: np.vectorize(partial(_order, name), otypes=[float]) for name in ORDERS}
    if sp is None:
        table |= {
            "erf": np.vectorize(math.erf),
            "erfc": np.vectorize(math.erfc),
            "lgamma": np.vectorize(math.lgamma),
            "i0": np.i0,
        }
    return table


@cache
def mpmath_functions() -> dict[str, Callable[..., Any]]:
    """mpmath forms of scalars, for checks to many digits."""
    try:
        import mpmath as mp
    except ImportError:
        raise Unavailable("mpmath is not installed") from None

    def sgn(x: Any) -> Any:
        return mp.mpf(0) if x == 0 else x / abs(x)

    def clamp(x: Any, lo: Any = None, hi: Any = None) -> Any:
        x = x if lo is None else max(x, lo)
        return x if hi is None else min(x, hi)

    def sinc(x: Any) -> Any:
        return mp.mpf(1) if x == 0 else mp.sin(mp.pi * x) / (mp.pi * x)

    table: dict[str, Callable[..., Any]] = {
        name: getattr(mp, name)
        for name in [
            "exp",
            "expm1",
            "log",
            "log10",
            "log1p",
            "sqrt",
            "hypot",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "atan2",
            "erf",
            "erfc",
            "erfinv",
            "conj",
            "floor",
            "ceil",
            "digamma",
            "isnan",
            "isinf",
            "isfinite",
        ]
    }
    table |= {
        "exp2": lambda x: mp.power(2, x), "log2": lambda x: mp.log(x, 2), "rsqrt": lambda x: 1 / mp.sqrt(x),
        "reciprocal": lambda x: 1 / mp.mpmathify(x), "square": lambda x: x * x, "abs": abs, "sign": sgn, "sgn": sgn,
        "neg": lambda x: -x, "pow": mp.power, "clamp": clamp, "sinc": sinc, "real": mp.re, "imag": mp.im,
        "angle": mp.arg,
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "log_sigmoid": lambda x: -mp.log1p(mp.exp(-x)),
        "logaddexp": lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))) if x != y else x + mp.log(2),
        "logaddexp2": lambda x, y: mp.log(mp.power(2, x) + mp.power(2, y), 2), "lgamma": mp.loggamma,
        "polygamma": lambda n, x: mp.psi(int(n), x), "trigamma": lambda x: mp.psi(1, x),
        "i0": lambda x: mp.besseli(0, x), "i1": lambda x: mp.besseli(1, x),
        "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
        "ndtr": mp.ncdf, "log_ndtr": lambda x: mp.log(mp.ncdf(x)), "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "bessel_j0": lambda x: mp.besselj(0, x), "bessel_j1": lambda x: mp.besselj(1, x),
        "bessel_y0": lambda x: mp.bessely(0, x), "bessel_y1": lambda x: mp.bessely(1, x),
        "modified_bessel_k0": lambda x: mp.besselk(0, x), "modified_bessel_k1": lambda x: mp.besselk(1, x),
        "scaled_modified_bessel_k0": lambda x: mp.besselk(0, x) * mp.exp(x),
        "scaled_modified_bessel_k1": lambda x: mp.besselk(1, x) * mp.exp(x),
        "spherical_bessel_j0": lambda x: mp.sinc(x), "airy_ai": mp.airyai,
        "airy_ai_prime": lambda x: mp.airyai(x, derivative=1), "zeta": mp.zeta,
        "igamma": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        "igammac": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
        "ndtri": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), "entr": lambda x: -x * mp.log(x) if x > 0 else mp.mpf(0),
        "xlogy": lambda x, y: mp.mpf(0) if x == 0 else x * mp.log(y),
        "xlog1py": lambda x, y: mp.mpf(0) if x == 0 else x * mp.log1p(y), "where": lambda c, a, b: a if c else b,
        "maximum": max, "minimum": min, "fmax": max, "fmin": min,
        "trunc": lambda x: mp.floor(x) if x > 0 else mp.ceil(x),
        "round": mp.nint, "frac": lambda x: x - (mp.floor(x) if x > 0 else mp.ceil(x)),
        "fmod": lambda x, y: x - y * (mp.floor(x / y) if x / y > 0 else mp.ceil(x / y)),
        "remainder": lambda x, y: x - y * mp.floor(x / y), "floor_divide": lambda x, y: mp.floor(x / y),
        "copysign": lambda x, y: abs(x) if y >= 0 else -abs(x), "heaviside": lambda x,
        y: y if x == 0 else mp.mpf(x > 0),
        "signbit": lambda x: x < 0, "float": lambda x: mp.mpmathify(x), "bool": lambda x: x != 0,
        "logical_not": lambda x: not x, "logical_and": lambda x, y: bool(x) and bool(y),
        "logical_or": lambda x, y: bool(x) or bool(y), "logical_xor": lambda x, y: bool(x) != bool(y),
    }  # fmt: skip
    table |= {name: partial(_polynomial, name, mp.mpf(1)) for name in POLYNOMIALS} | _orders()
    return table
