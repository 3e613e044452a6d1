"""Near-minimax polynomials for the vector maths: `python minimax.py NAME` prints the coefficients of one fit.

Owns the fits behind csrc/kernels/vecmath_*.h; needs mpmath and knows nothing of the kernels. A fit fixes the leading
coefficients (1, -1/2, ...), runs Remez on the rest and rounds the lowest free ones first, refitting after each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import mpmath as mp

Function = Callable[[mp.mpf], mp.mpf]
mp.mp.dps = 40


def remez(g: Function, powers: Sequence[int], a: mp.mpf, b: mp.mpf, weight: Function, grid: int) -> list[mp.mpf]:
    """Coefficients c minimising max |weight * (sum c_k x^k - g)| over a Chebyshev grid of [a, b]."""
    lowest = powers[0] if a <= 0 <= b else 0
    # x^lowest vanishes inside the interval and would break the alternation: divide it out.
    powers = [p - lowest for p in powers]
    n = len(powers)
    points = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (grid - i - mp.mpf(1) / 2) / grid) for i in range(grid)]
    scale = [abs(weight(x) * x**lowest) for x in points]
    target = [g(x) / x**lowest for x in points]
    basis = [[x**p for p in powers] for x in points]
    chosen = [round((grid - 1) * (1 - float(mp.cos(mp.pi * i / n))) / 2) for i in range(n + 1)]
    best_error, best = mp.inf, [mp.mpf(0)] * n
    for _ in range(12):
        system, right = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for row, i in enumerate(chosen):
            for column in range(n):
                system[row, column] = basis[i][column] * scale[i]
            system[row, n] = (-1) ** row
            right[row] = target[i] * scale[i]
        solution = mp.lu_solve(system, right)
        c = [solution[k] for k in range(n)]
        error = [scale[i] * (mp.fdot(basis[i], c) - target[i]) for i in range(grid)]
        worst = max(abs(e) for e in error)
        if worst < best_error:
            best_error, best = worst, c
        if worst <= abs(solution[n]) * mp.mpf("1.02"):
            break
        chosen = alternation(error, n + 1)
        if len(chosen) < n + 1:
            break
    return best


def alternation(error: Sequence[mp.mpf], wanted: int) -> list[int]:
    """The extrema of the error, one per run of equal sign, thinned to the wanted number."""
    runs: list[int] = []
    for i, e in enumerate(error):
        if runs and (error[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(error[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > wanted:
        if len(runs) == wanted + 1:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
        else:
            sizes = [max(abs(error[runs[k]]), abs(error[runs[k + 1]])) for k in range(len(runs) - 1)]
            k = sizes.index(min(sizes))
            del runs[k : k + 2]
    return runs


@dataclass
class Fit:
    """One polynomial: the function, its free powers, the interval, what is fixed, the precision of the coefficients."""

    f: Function
    powers: range
    low: float | mp.mpf
    high: float | mp.mpf
    fixed: dict[int, float] = field(default_factory=dict)
    weight: Function | None = None
    bits: int = 53
    refits: int = 2

    def remainder(self, known: dict[int, mp.mpf]) -> Function:
        """The function less its known terms."""
        terms = dict(known)

        def g(x: mp.mpf) -> mp.mpf:
            return self.f(x) - sum(c * x**p for p, c in terms.items())

        return g

    def run(self) -> dict[int, mp.mpf]:
        weight = self.weight or (lambda x: 1 / abs(self.f(x)))
        done = {p: mp.mpf(c) for p, c in self.fixed.items()}
        free = list(self.powers)
        refits = len(free) if self.bits == 24 else self.refits
        while free:
            rest = remez(self.remainder(done), free, mp.mpf(self.low), mp.mpf(self.high), weight, 300)
            last = len(done) - len(self.fixed) >= refits
            for p, c in list(zip(free, rest, strict=True))[: None if last else 1]:
                with mp.workprec(self.bits):
                    done[p] = +c
            free = [] if last else free[1:]
        return done


def ratio(f: Function, limit: float | mp.mpf) -> Function:
    """f(x) / x with its limit at 0."""
    return lambda x: f(x) / x if x else mp.mpf(limit)


def odd(f: Function, limit: float | mp.mpf) -> Function:
    """f(sqrt(s)) / sqrt(s): the even part of an odd function, in s."""
    return lambda s: f(mp.sqrt(s)) / mp.sqrt(s) if s else mp.mpf(limit)


@dataclass(frozen=True)
class LeastSquares:
    """A fit of the relative error over a Chebyshev grid, where the bits to spare are many."""

    f: Function
    degree: int
    a: mp.mpf
    b: mp.mpf

    def run(self) -> dict[int, mp.mpf]:
        n = 4 * self.degree
        points = [(self.a + self.b + (self.b - self.a) * mp.cos(mp.pi * (2 * i + 1) / (2 * n))) / 2 for i in range(n)]
        rows = mp.matrix([[u**p / self.f(u) for p in range(self.degree + 1)] for u in points])
        return dict(enumerate(mp.lu_solve(rows, mp.matrix([1] * n))))


@dataclass(frozen=True)
class Pieces:
    """Fits on 16 intervals of one width, in the distance from a centre near the middle of each.

    A centre is where the function is nearly a float32, so that the first coefficient has no error.
    """

    f: Function
    degree: int
    width: mp.mpf
    start: mp.mpf = field(default_factory=lambda: mp.mpf(0))

    def centre(self, middle: mp.mpf) -> mp.mpf:
        near = [middle + mp.mpf(k) / 2**14 for k in range(-200, 201)] if middle else [middle]
        return min(near, key=lambda c: abs(self.f(c) / float32(self.f(c)) - 1))

    def rows(self) -> list[tuple[mp.mpf, ...]]:
        """The centres, then the coefficients from power 0 up."""
        columns = []
        for k in range(16):
            middle = self.start + k * self.width
            c, low = self.centre(middle), middle - self.width / 2 if k else middle
            fit = Fit(
                lambda u, c=c: self.f(c + u), range(1, self.degree + 1), low - c, middle + self.width / 2 - c,
                {0: float32(self.f(c))}, bits=24,
            )  # fmt: skip
            found = fit.run()
            columns.append((c, *(found[p] for p in range(self.degree + 1))))
        return list(zip(*columns, strict=True))


def float32(x: mp.mpf) -> mp.mpf:
    with mp.workprec(24):
        return +x


def erfcx_times(u: mp.mpf, centre: int = 4) -> mp.mpf:
    """exp(x^2) erfc(x) (1 + 2 x) at u = (x - centre) / (x + centre)."""
    if u >= 1:
        return 2 / mp.sqrt(mp.pi)
    x = centre * (1 + u) / (1 - u)
    series = (1 - 1 / (2 * x**2) + 3 / (4 * x**4) - 15 / (8 * x**6)) / (x * mp.sqrt(mp.pi)) if x > 1 else mp.mpf(0)
    return (mp.exp(x * x) * mp.erfc(x) if x < 200 else series) * (1 + 2 * x)


def erf_weight(t: mp.mpf) -> mp.mpf:
    return mp.erfc(t) / mp.erf(t) * mp.log(2)


def normal_tail_log(u: mp.mpf) -> mp.mpf:
    """The logarithm to base 2 of 8 ndtr(-a) exp(a^2 / 2) at a = u + 2.5."""
    a = u + mp.mpf("2.5")
    return mp.log(4 * mp.erfc(a / mp.sqrt(2)) * mp.exp(a * a / 2), 2)


def tail_factor(z: mp.mpf) -> mp.mpf:
    """a ndtr(-a) exp(a^2 / 2) at z = 1 / a^2."""
    a = 1 / mp.sqrt(z)
    return a * mp.exp(a * a / 2) * mp.erfc(a / mp.sqrt(2)) / 2


HALF_LN2, QUARTER_PI = 0.34675, 0.78556
LOG_ENDS, LOG1P_ENDS = (-0.2929, 0.4143), (-0.25, 0.5)
LOG_FIXED = {0: 1.0, 1: -0.5}
LOG = ratio(mp.log1p, 1)
ERF_GAIN = odd(mp.erf, 2 / mp.sqrt(mp.pi))

FITS: dict[str, Fit | LeastSquares | Pieces] = {
    "exp32": Fit(mp.exp, range(2, 7), -HALF_LN2, HALF_LN2, {0: 1.0, 1: 1.0}, bits=24),
    "expm1_32": Fit(ratio(mp.expm1, 1), range(2, 6), -HALF_LN2, HALF_LN2, {0: 1.0, 1: 0.5}, bits=24),
    "expm1_64": Fit(ratio(mp.expm1, 1), range(2, 12), -HALF_LN2, HALF_LN2, {0: 1.0, 1: 0.5}),
    "tanh32": Fit(ratio(mp.expm1, 1), range(2, 6), -0.174, 0.521, {0: 1.0, 1: 0.5}, bits=24),
    "tanh64": Fit(ratio(mp.expm1, 1), range(2, 12), -0.174, 0.521, {0: 1.0, 1: 0.5}),
    "exp2_32": Fit(lambda x: mp.mpf(2) ** x, range(1, 7), -0.5005, 0.5005, {0: 1.0}, bits=24),
    "exp2_64": Fit(lambda x: mp.mpf(2) ** x, range(1, 12), -0.5005, 0.5005, {0: 1.0}, refits=3),
    "log32": Fit(LOG, range(2, 10), *LOG_ENDS, LOG_FIXED, bits=24),
    "log64": Fit(LOG, range(2, 21), *LOG_ENDS, LOG_FIXED),
    "log1p32": Fit(LOG, range(2, 10), *LOG1P_ENDS, LOG_FIXED, bits=24),
    "log1p64": Fit(LOG, range(2, 21), *LOG1P_ENDS, LOG_FIXED),
    "log2_64": Fit(lambda x: LOG(x) / mp.log(2) - 1, range(20), *LOG_ENDS, weight=lambda x: 1 / LOG(x), refits=0),
    "log10_64": Fit(lambda x: LOG(x) / mp.log(10) - 0.5, range(20), *LOG_ENDS, weight=lambda x: 1 / LOG(x), refits=0),
    "sin32": Fit(odd(mp.sin, 1), range(1, 4), 0, QUARTER_PI**2, {0: 1.0}, bits=24),
    "sin64": Fit(odd(mp.sin, 1), range(1, 7), 0, QUARTER_PI**2, {0: 1.0}),
    "cos32": Fit(lambda s: mp.cos(mp.sqrt(s)), range(2, 5), 0, QUARTER_PI**2, {0: 1.0, 1: -0.5}, bits=24),
    "cos64": Fit(lambda s: mp.cos(mp.sqrt(s)), range(2, 8), 0, QUARTER_PI**2, {0: 1.0, 1: -0.5}),
    "sinh64": Fit(odd(mp.sinh, 1), range(1, 8), 0, 1, {0: 1.0}),
    "asin64": Fit(odd(mp.asin, 1), range(1, 13), 0, 0.25, {0: 1.0}),
    "atan64": Fit(odd(mp.atan, 1), range(1, 20), 0, 1, {0: 1.0}),
    "erf_small32": Fit(lambda s: ERF_GAIN(s) - 1, range(6), 0, 0.8649, weight=lambda s: 1 / ERF_GAIN(s), bits=24),
    "erf_small64": Fit(lambda s: ERF_GAIN(s) - 1, range(12), 0, 0.81, weight=lambda s: 1 / ERF_GAIN(s)),
    "erf_tail32": Fit(lambda t: -mp.log(mp.erfc(t), 2), range(7), 0.92, 4, weight=erf_weight, bits=24),
    "erf_tail64": Fit(lambda t: -mp.log(mp.erfc(t), 2), range(18), 0.9, 6, weight=erf_weight, refits=0),
    # Rounded to float32 afterwards; the leading one keeps a second part.
    "erfcx32": LeastSquares(lambda u: erfcx_times(u, 3), 11, mp.mpf(-1), mp.mpf("7.1") / mp.mpf("13.1")),
    "ndtr_middle32": Fit(lambda s: ERF_GAIN(s / 2) / mp.sqrt(8), range(5), 0, 0.4625, bits=24),
    "ndtr32": Fit(normal_tail_log, range(11), -1.83, 2.501, weight=lambda u: mp.mpf(1), bits=24),
    "ndtr_far32": Fit(tail_factor, range(6), mp.mpf(1) / 220, 0.0401, bits=24),
    "ndtr_pieces32": Pieces(lambda a: mp.ncdf(-a), 6, mp.mpf(1) / 4),
    "ndtr_scaled_pieces32": Pieces(lambda a: mp.exp(a * a / 2) * mp.ncdf(-a), 5, mp.mpf(45) / 64, mp.mpf(31) / 8),
    "erfcx64": Fit(erfcx_times, range(24), -1, 1, refits=0),
}


def main() -> int:
    names = sys.argv[1:]
    if not names or any(name not in FITS for name in names):
        print("usage: minimax.py NAME...; names: " + " ".join(FITS))
        return 2
    for name in names:
        fit = FITS[name]
        if isinstance(fit, Pieces):
            print(f"{name}, centres, then from power 0 up:")
            for row in fit.rows():
                print("  {" + ", ".join(f"{float(x).hex()}f" for x in row) + "},")
            continue
        coefficients = fit.run()
        print(name, "from power", max(coefficients), "down:")
        print("  " + ", ".join(float(coefficients[p]).hex() for p in sorted(coefficients, reverse=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
