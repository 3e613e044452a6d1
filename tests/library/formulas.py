"""Formulas of all kinds, many from the sciences, and their meaning in mpmath: the same text, read by other eyes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# expr, then the interval of each argument in alphabetical order (x, y, z, u, v, w as they occur).
TEXT = """
input / (1 + exp(-2 * input)) | input -3 3
x * tanh(log1p(exp(x))) | x -3 3
exp(-x**2 / 2) / sqrt(2 * pi) | x -3 3
log(1 + x**2) | x -3 3
sin(x) / x | x 0.5 3
x * sin(1 / x) | x 0.4 3
sqrt(1 + x**2) - 1 | x -3 3
x**3 - 2 * x**2 + 5 * x - 7 | x -3 3
x**7 / 5040 | x -2 2
x**(-2) | x 0.5 3
x**(-3) + x**4 | x 0.5 2
x**2.5 | x 0.3 3
2**x | x -2 2
x**x | x 0.4 2
(1 + x)**(1 / 3) | x -0.5 3
exp(sin(x) * cos(x)) | x -3 3
tanh(tanh(tanh(x))) | x -2 2
sin(cos(sin(cos(x)))) | x -3 3
log(log(x + 3)) | x -0.5 3
exp(exp(x / 2)) | x -2 1
atan(x) * asinh(x) | x -3 3
acos(x / 2) + asin(x / 3) | x -1.5 1.5
acosh(x) + atanh(1 / x) | x 1.5 4
sinh(x) * cosh(x) - tan(x / 4) | x -2 2
erf(x) * erfc(x) | x -2 2
lgamma(x) | x 0.5 5
digamma(x) * x | x 0.5 5
sigmoid(x) * (1 - sigmoid(x)) | x -4 4
log1p(x) - x + x**2 / 2 | x -0.4 3
expm1(x) / x | x 0.3 2
where(x > 0, x, 0.1 * x) | x 0.2 3
where(x > 0, x, 0.1 * x) * x | x -3 -0.2
where(x > 1, x**2, 2 * x - 1) | x 1.2 3
x**2 if x < 0 else sin(x) | x 0.2 3
x**2 if x < 0 else sin(x) | x -3 -0.2
where(x < -1, exp(x), where(x < 1, x**2, log(x))) | x -3 -1.2
where(x < -1, exp(x), where(x < 1, x**2, log(x))) | x -0.8 0.8
where(x < -1, exp(x), where(x < 1, x**2, log(x))) | x 1.2 3
where(x > 0 and x < 2, x * (2 - x), 0 * x) | x 0.2 1.8
where(x < 0 or x > 2, x, x**3) | x 2.2 3
abs(x) * x | x -3 -0.2
abs(sin(x)) + abs(cos(x)) | x 0.2 1.4
maximum(x, x**2) | x 1.2 3
minimum(x, x**2) * exp(x) | x 0.2 0.8
clamp(x, -1, 1) * x | x -0.8 0.8
clamp(x, -1, 1) * x | x 1.2 3
relu(x) + silu(x) | x 0.2 3
softplus(x) * sigmoid(x) | x -3 3
square(x) + reciprocal(x) + rsqrt(x) | x 0.5 3
-x * log(x) - (1 - x) * log(1 - x) | x 0.1 0.9
1 / (1 + x**2)**2 | x -2 2
(x - 1) / (x + 1) * (x - 2) / (x + 2) | x -0.5 3
x / (1 + abs(x)) | x 0.2 3
sqrt(sqrt(x) + 1) | x 0.3 3
log(x) / log(2) + log2(x) + log10(x) | x 0.3 3
exp2(x) - 2**x + x | x -2 2
cos(2 * pi * x) * exp(-x) | x -1 1
e**x - exp(x) + x**2 | x -2 2
0.044715 * x**3 + 0.7978845608 * x | x -3 3
0.5 * x * (1 + erf(x / sqrt(2))) | x -3 3
0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x**3))) | x -3 3
ndtr(x) * x | x -3 3
xlogy(x, x + 1) | x 0.3 3
logit(x) | x 0.2 0.8
log_sigmoid(x) + log_sigmoid(-x) | x -3 3
hypot(x, 1) | x -3 3
atan2(x, 2) | x -3 3
x * y | x -3 3, y -3 3
x / y | x -3 3, y 0.5 3
x**y | x 0.4 3, y -2 2
x * exp(-y) + y * exp(-x) | x -2 2, y -2 2
sin(x * y) + cos(x / y) | x -2 2, y 0.5 2
hypot(x, y) | x 0.5 3, y 0.5 3
atan2(x, y) | x 0.5 3, y 0.5 3
logaddexp(x, y) | x -3 3, y -3 3
maximum(x, y) * minimum(x, y) | x -3 -0.2, y 0.2 3
where(x > y, x * y, x + y) | x -3 -0.2, y 0.2 3
(x - y)**2 / (x + y) | x 0.5 3, y 0.5 3
x * log(x / y) - x + y | x 0.5 3, y 0.5 3
1 / (1 + exp(-(x - y) / 0.5)) | x -2 2, y -2 2
xlogy(x, y) + xlog1py(x, y) | x 0.3 3, y 0.3 3
erf(x - y) * exp(-x * y) | x -1 1, y -1 1
sqrt(x**2 + y**2 + 1) | x -3 3, y -3 3
x**3 * y**2 - x**2 * y**3 | x -2 2, y -2 2
abs(x - y) * (x + y) | x 1 3, y -3 -1
tanh(x) * sigmoid(y) | x -3 3, y -3 3
x + y * z | x -3 3, y -3 3, z -3 3
(x - y) / z | x -3 3, y -3 3, z 0.5 3
x * y / (x * y + z) | x 0.5 2, y 0.5 2, z 0.5 2
exp(-(x - y)**2 / (2 * z**2)) / (z * sqrt(2 * pi)) | x -2 2, y -2 2, z 0.5 2
where(x > 0, y, z) * x | x 0.3 3, y -3 3, z -3 3
x * sin(y) * exp(z) | x -2 2, y -2 2, z -2 2
log(x**2 + y**2 + z**2) | x 0.5 2, y 0.5 2, z 0.5 2
x**y * y**z | x 0.5 2, y 0.5 2, z 0.5 2
u * x + v * y - u * v | u -2 2, v -2 2, x -2 2, y -2 2
sqrt((u - x)**2 + (v - y)**2) | u 1 3, v 1 3, x -2 0, y -2 0
u * exp(-v * x) * cos(w * x + y) | u -1 1, v 0 1, w -1 1, x -1 1, y -1 1
u * v + w * x + y**2 * sin(z) | u -2 2, v -2 2, w -2 2, x -2 2, y -2 2, z -2 2
log1p(u**2 + v**2) * tanh(w * x) + y / (1 + z**2) | u -2 2, v -2 2, w -2 2, x -2 2, y -2 2, z -2 2
where(u > v, w * x, y * z) * (u - v) | u 1 3, v -3 -1, w -2 2, x -2 2, y -2 2, z -2 2
x**2 * (3 - 2 * x) if x > 0 and x < 1 else where(x > 0.5, 1, 0) * 1 | x 0.1 0.9
clamp(x, 0, 1)**3 * (clamp(x, 0, 1) * (6 * clamp(x, 0, 1) - 15) + 10) | x 0.1 0.9
where(abs(x) < 1, x**2 / 2, abs(x) - 0.5) | x -0.9 0.9
where(abs(x - y) < z, (x - y)**2 / 2, z * (abs(x - y) - z / 2)) | x 2 3, y -1 0, z 0.5 1
y**2 * (sqrt(1 + (x / y)**2) - 1) | x -3 3, y 0.5 2
4 * u * ((v / x)**12 - (v / x)**6) | u 0.5 2, v 0.8 1.2, x 0.9 2
x * ndtr(log(x / y) / v + v / 2) - y * ndtr(log(x / y) / v - v / 2) | v 0.1 0.7, x 8 12, y 8 12
exp(-u * z) * ndtr((log(x / y) + (u - v**2 / 2) * z) / (v * sqrt(z))) | u 0 1, v 0.1 0.5, x 8 12, y 8 12, z 0.2 2
u * x / (v + x) | u 0.5 2, v 0.1 2, x 0.1 5
x**u / (v**u + x**u) | u 1 4, v 0.5 2, x 0.2 4
u / (1 + (u - v) / v * exp(-w * x)) | u 2 4, v 0.1 1, w 0.5 2, x 0 3
exp(u * cos(x - v)) / (2 * pi * i0(u)) | u 0.2 4, v -3 3, x -3 3
x**3 / expm1(x) | x 0.2 6
2 * u * x**3 / (exp(v * x / w) - 1) | u 0.5 2, v 0.5 2, w 0.5 2, x 0.3 3
log1p(exp(x)) - log1p(exp(x - 1)) | x -4 5
abs(x) + log1p(exp(-2 * abs(x))) - log(2) | x 0.2 4
log(cosh(x)) | x -3 3
u * (1 - exp(-v * (x - w)))**2 | u 1 4, v 0.5 2, w 0.5 1.5, x 0.5 3
lgamma((v + 1) / 2) - lgamma(v / 2) - 0.5 * log(v * pi) - (v + 1) / 2 * log1p(x**2 / v) | v 1 8, x -3 3
(u - 1) * log(x) + (v - 1) * log1p(-x) - (lgamma(u) + lgamma(v) - lgamma(u + v)) | u 0.5 4, v 0.5 4, x 0.1 0.9
u * log(v) - lgamma(u) + (u - 1) * log(x) - v * x | u 0.5 4, v 0.5 3, x 0.2 4
exp(x) - y * x + lgamma(y + 1) | x -1 2, y 0.5 5
exp(-(x + exp(-x))) | x -2 3
(u / v) * (x / v)**(u - 1) * exp(-(x / v)**u) | u 1 3, v 0.5 2, x 0.2 3
1 / ((x**2 - y**2)**2 + y**2 * z**2) | x 0.5 2, y 0.5 2, z 0.5 2
u * exp(-v / (8.314462618 * x)) | u 1 3, v 1e3 5e3, x 280 400
u * x / (1 - v * x) - w * x**2 | u 0.5 2, v 0.05 0.2, w 0.5 2, x 0.2 2
1 / sqrt(1 - x**2) - 1 | x -0.9 0.9
1 / (exp((x - y) / z) + 1) | x -2 2, y -1 1, z 0.3 2
exp(-x / y) / x | x 0.3 3, y 0.5 2
0.1 * (x + 40) / (1 - exp(-(x + 40) / 10)) | x -80 -45
(1 - x)**2 + 100 * (y - x**2)**2 | x -2 2, y -2 2
(x**2 + y - 11)**2 + (x + y**2 - 7)**2 | x -4 4, y -4 4
x - y * sin(x) | x -3 3, y 0 0.9
-(1 - x)**y * log(x) | x 0.1 0.9, y 0.5 3
x * log(x / y) + (1 - x) * log((1 - x) / (1 - y)) | x 0.1 0.9, y 0.1 0.9
2 * asin(sqrt(sin((u - v) / 2)**2 + cos(u) * cos(v) * sin((x - y) / 2)**2)) | u 0.3 1, v -1 0.2, x 0.3 1, y -1 0.2
1 / tanh(x) - 1 / x | x 0.3 5
(1 + (1 - y) * x)**(1 / (1 - y)) | x 0.1 2, y 0.1 0.8
1.0507 * where(x > 0, x, 1.67326 * expm1(x)) | x -3 -0.2
x * exp(u * (1 - x / v)) | u 0.5 2, v 0.5 3, x 0.2 4
u * exp(-v * exp(-w * x)) | u 0.5 2, v 0.5 2, w 0.5 2, x -1 3
minimum(maximum(x, -1), 1) + maximum(x - 1, 0)**2 | x 1.2 3
"""


class Formula:
    """One line of the list."""

    def __init__(self, number: int, line: str) -> None:
        expr, _, intervals = line.partition("|")
        self.name, self.expr = f"f{number:03}", expr.strip()
        self.domain: dict[str, tuple[float, float]] = {}
        for part in intervals.split(","):
            name, low, high = part.split()
            self.domain[name] = (float(low), float(high))

    def __str__(self) -> str:
        return f"{self.name}: {self.expr}"

    @property
    def sig(self) -> str:
        return f"{self.name}({', '.join('Tensor ' + a for a in self.domain)}) -> Tensor out"

    def entry(self) -> str:
        family = {1: "unary", 2: "binary", 3: "ternary"}.get(len(self.domain), "pointwise")
        return "\n".join([
            f"- op: {self.name}", f"  family: {family}", f"  sig: {self.sig}", f"  expr: '{self.expr}'",
            "  like: {tests: tests/library/test_formulas.py}",
            f"  doc: 'Formula {self.name[1:]} of the list, {self.expr}.'",
        ])  # fmt: skip


FORMULAS = [Formula(i, line) for i, line in enumerate(TEXT.strip().split("\n"))]


def functions() -> dict[str, Any]:
    """What the formulas call, in mpmath's words."""
    import mpmath as mp

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + mp.exp(-x))

    own: dict[str, Callable[..., Any]] = {
        "where": lambda c, a, b: a if c else b,
        "abs": abs,
        "maximum": max,
        "minimum": min,
        "clamp": lambda x, low, high: min(max(x, low), high),
        "relu": lambda x: max(x, mp.mpf(0)),
        "silu": lambda x: x * sigmoid(x),
        "softplus": lambda x: mp.log(1 + mp.exp(x)),
        "sigmoid": sigmoid,
        "log_sigmoid": lambda x: mp.log(sigmoid(x)),
        "logit": lambda x: mp.log(x / (1 - x)),
        "square": lambda x: x * x,
        "reciprocal": lambda x: 1 / x,
        "rsqrt": lambda x: 1 / mp.sqrt(x),
        "log1p": lambda x: mp.log(1 + x),
        "log2": lambda x: mp.log(x) / mp.log(2),
        "exp2": lambda x: mp.mpf(2) ** x,
        "lgamma": mp.loggamma,
        "digamma": mp.digamma,
        "ndtr": mp.ncdf,
        "i0": lambda x: mp.besseli(0, x),
        "xlogy": lambda x, y: x * mp.log(y),
        "xlog1py": lambda x, y: x * mp.log(1 + y),
        "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        "pi": mp.pi,
        "e": mp.e,
    }
    same = "exp log log10 sqrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc expm1 hypot"
    return own | {name: getattr(mp, name) for name in same.split()}


def reference(f: Formula) -> Callable[..., Any]:
    """The formula as a function of mpmath numbers."""
    return eval(f"lambda {', '.join(f.domain)}: {f.expr}", functions())  # type: ignore[no-any-return]
