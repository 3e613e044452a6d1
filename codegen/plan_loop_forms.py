"""One element loop as C++ text, and the special forms the maths has for it: short ones for usual values, products for
powers, whole blocks.

Knows text alone, neither formulas nor types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import cpp_types as C
from .functions import BLOCK, LONG, SCALAR


@dataclass(frozen=True)
class LoopParam:
    """A scalar of the loop: how the loop reads it and what the op passes."""

    decl: str  # const T alpha = scalar_to<T>(params[0]);
    argument: str  # C++ expression over the op's arguments


@dataclass(frozen=True)
class LoopInput:
    name: str
    ctype: str  # T, or std::uint8_t for a mask


@dataclass(frozen=True)
class Loop:
    name: str  # C++ function and, in camel case, the enumerator
    comment: str
    out: str  # type of the output element: T, real_t<T>, bool
    inputs: tuple[LoopInput, ...]
    params: tuple[LoopParam, ...]
    lets: tuple[str, ...]  # statements before the loop
    body: tuple[str, ...]  # statements per element before the last
    value: str
    table: tuple[str, ...]  # per compute type: an instantiation or nullptr
    more: tuple[str, ...] = ()  # values of further results, each with memory of its own

    @property
    def enumerator(self) -> str:
        return "k" + C.pascal(self.name)

    @property
    def steps(self) -> bool:
        """Whether it is long vector code: such a loop takes whole steps (csrc/kernels/loop_tail.h)."""
        called = set(re.findall(r"m::(\w+)\(", " ".join([*self.body, *self.stores])))
        return bool(called & LONG) and not called & SCALAR

    @property
    def operands(self) -> str:
        """The types of the results and of the inputs."""
        return ", ".join([self.out] * (1 + len(self.more)) + [i.ctype for i in self.inputs])

    @property
    def plain(self) -> bool:
        """One result from one expression: what the special forms below know."""
        return not self.body and not self.more and self.out == "T"

    @property
    def stores(self) -> tuple[str, ...]:
        """The statements that write the results of one element."""
        return f"to[i] = {self.value};", *(f"to{k}[i] = {v};" for k, v in enumerate(self.more, 1))

    @property
    def block(self) -> str:
        """The call that does the whole loop for real elements, where the maths has a faster form over many elements."""
        plain = re.fullmatch(r"m::(sin|cos|tan)\((\w+)\[i\]\)", self.value)
        if self.plain and (whole := _BLOCK_CALL.fullmatch(self.value)):
            return _block_call(whole, "n", "", "to")
        return f"m::{plain[1]}_block(n, {plain[2]}, to)" if plain and self.plain else ""

    @property
    def parts(self) -> Parts | None:
        """Where functions that have a form over a block are parts of the value: they are done first, block by block."""
        lines = [*self.body, *self.stores]
        calls = list(dict.fromkeys(m[0] for line in lines for m in _BLOCK_CALL.finditer(line)))
        if not calls or self.block or self.out != "T":
            return None
        found = [_BLOCK_CALL.fullmatch(c) for c in calls]
        done = tuple(_block_call(m, "end - from", " + from", f"p{k}") for k, m in enumerate(found) if m)
        for k, call in enumerate(calls):
            lines = [line.replace(call, f"p{k}[i - from]") for line in lines]
        return Parts(done, tuple(lines))

    @property
    def pieces(self) -> Parts | None:
        """Parts where the maths has a function as polynomials on pieces: for the types of m::kPieces."""
        if not self.plain:
            return None
        if whole := _PIECES_CALL.fullmatch(self.general):
            return Parts((f"m::{whole[1]}_block(n, {whole[2]}, to)",), ())
        calls = list(dict.fromkeys(_PIECES_CALL.findall(self.value)))
        if len(calls) != 1:
            return None
        name, operand = calls[0]
        line = f"to[i] = {self.value};".replace(f"m::{name}({operand}[i])", "p0[i - from]")
        return Parts((f"m::{name}_block(end - from, {operand} + from, p0)",), (line,))

    @property
    def near(self) -> Near | None:
        """Where the maths has a short form for all elements of a block."""
        if not self.plain:
            return None
        if whole := re.fullmatch(r"m::(fmod|remainder|floor_divide)\((\w+)\[i\], (\w+)\[i\]\)", self.value):
            value = self.value.replace(f"m::{whole[1]}(", f"m::{whole[1]}_fast(")
            return Near("(m::Real<T> || __is_same(T, std::int64_t))", 1, "m::fmod_near", (whole[2], whole[3]), value)
        powers = set(re.findall(r"m::pow\((\w+)\[i\], (\w+)\[i\](?: - T\(1\))?\)", self.value))
        if len(powers) == 1 and self.value.count("m::pow(") == 1:
            return Near(_F32, 1, "m::pow_near", powers.pop(), self.value.replace("m::pow(", "m::pow_fast("))
        found = set(re.findall(r"m::(exp|log|ndtr)\((\w+)\[i\]\)", self.value))
        alone = re.fullmatch(r"m::(exp|log)\(\w+\[i\]\)", self.value) or "m::ndtr(" in self.value
        if len(found) != 1 or not alone:
            return None
        name, operand = found.pop()
        value = self.value.replace(f"m::{name}({operand}[i])", f"m::{name}_fast({operand}[i])")
        if name == "ndtr":  # the density beside it is in reach of the short exponential then
            density = f"(T(-0.5) * m::square({operand}[i]))"
            value = value.replace("m::exp" + density, "m::exp_fast" + density)
        # A few elements are done before the test pays, unless the long form is a very long one.
        return Near(_F32, 1 if name == "ndtr" else 32, f"m::{name}_near", (operand,), value)

    @property
    def powers(self) -> Powers | None:
        """The most frequent powers take a product or two, where all of a block have one of them."""
        found = set(re.findall(r"m::pow\((\w+\[i\]), (\w+)\[i\]( - T\(1\))?\)", self.value))
        if len(found) != 1 or self.body or self.more or self.value.count("m::pow(") != 1:
            return None
        base, exponent, shifted = found.pop()
        value = re.sub(r"m::pow\([^()]*(\(1\))?\)", f"m::half_power<kTwice>({base})", self.value)
        return Powers(exponent, "-1" if shifted else "0", value, self.value.replace("m::pow(", "m::power("))

    @property
    def general(self) -> str:
        """The value of one element, whatever its neighbours are."""
        for whole, name in _WHOLE:
            if found := whole.fullmatch(self.value):
                return f"m::{name}({found[1]})"
        return self.value

    @property
    def trig(self) -> Trig | None:
        """Sines and cosines of small angles take a short form; a look at a block of angles tells whether all may."""
        lines = [*self.body, *self.stores]
        angles = list(dict.fromkeys(a for line in lines for a in _angles(line)))
        if not angles or self.block or self.out != "T":
            return None
        # Only angles that cost little are computed once more for the look.
        cheap = {m[1]: line for line in self.body if "m::" not in line and (m := _LET.match(line))}
        if any("m::" in a for a in angles) or any(
            n not in cheap for text in [*angles, *cheap.values()] for n in re.findall(r"\bs\d+\b(?!\[)", text)
        ):
            return None
        near = tuple(_with_angles(line, "m::{0}_fast({1})") for line in lines)
        # An element takes the short form where that holds for it, whatever its neighbours are.
        far = tuple(_with_angles(line, _EITHER) for line in lines)
        return Trig(tuple(cheap.values()), tuple(angles), near, far)


@dataclass(frozen=True)
class Parts:
    """What fills the parts of a block, and the statements per element that read them."""

    calls: tuple[str, ...]
    lines: tuple[str, ...]


_BLOCK_CALL = re.compile(rf"m::({'|'.join(sorted(BLOCK))})\((?:(int\(\w+\)), )?(\w+)\[i\]\)")


_PIECES_CALL = re.compile(r"m::(ndtr|times_ndtr)\((\w+)\[i\]\)")


def _block_call(match: re.Match[str], count: str, offset: str, to: str) -> str:
    name, order, operand = match.groups()
    return f"m::{name}_block({f'{order}, ' if order else ''}{count}, {operand}{offset}, {to})"


# Products whose other factor would be rounded to few bits where it nearly vanishes: the maths has them in one.
_WHOLE = (
    (re.compile(r"(\w+\[i\]) \* m::sigmoid\(\1\)"), "times_sigmoid"),
    (re.compile(r"(\w+\[i\]) \* m::ndtr\(\1\)"), "times_ndtr"),
    (re.compile(r"(\w+\[i\]) \* m::tanh\(m::logaddexp\(\1, T\(0\)\)\)"), "times_tanh_softplus"),
)


@dataclass(frozen=True)
class Powers:
    """Exponents, what is added to each, and the value: where all of them are half of kTwice, and otherwise."""

    exponents: str
    shift: str
    shared: str
    mixed: str


@dataclass(frozen=True)
class Near:
    """A short form, for the types and from the count on where it pays, and the test whether a block may take it."""

    types: str
    count: int
    test: str
    operands: tuple[str, ...]
    value: str


_F32 = "__is_same(T, float)"


@dataclass(frozen=True)
class Trig:
    """The two loops over a block, and what the look at it computes."""

    lets: tuple[str, ...]
    angles: tuple[str, ...]
    near: tuple[str, ...]
    far: tuple[str, ...]


_LET = re.compile(r"const T (s\d+) = ")
_TRIG = re.compile(r"m::(sin|cos)\(")
TRIG_LIMIT = "T(__is_same(T, float) ? m::detail::kTrigFastF : m::detail::kTrigFast)"
_EITHER = "(m::detail::magnitude({1}) <= " + TRIG_LIMIT + " ? m::{0}_fast({1}) : m::{0}({1}))"


def _closing(text: str, at: int) -> int:
    """The place of the parenthesis that closes the one before `at`."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at - 1


def _angles(text: str) -> list[str]:
    return [text[m.end() : _closing(text, m.end())] for m in _TRIG.finditer(text)]


def _with_angles(text: str, form: str) -> str:
    out, at = "", 0
    for m in _TRIG.finditer(text):
        end = _closing(text, m.end())
        out += text[at : m.start()] + form.format(m[1], text[m.end() : end])
        at = end + 1
    return out + text[at:]
