"""Entries that are wrong, each with its code and the characters that the caret must stand under."""

from __future__ import annotations

from typing import Any

U = "f(Tensor input) -> Tensor out"
P = "f(Tensor input, *, float beta=1.0) -> Tensor out"
B = "f(Tensor x, Tensor y) -> Tensor out"


def _(code: str, mark: str, sig: Any = U, **keys: Any) -> tuple[str, str, dict[str, Any]]:
    return code, mark, {"sig": sig, **keys}


WRONG = [
    # names and calls in a formula
    _("E201", "inputt", expr="input + inputt"),
    _("E201", "gamma", sig=P, expr="input * beta + gamma"),
    _("E201", "out", expr="input + out"),
    _("E201", "g", expr="input * g"),
    _("E201", "true", expr="where(true, input, 0)"),
    _("E202", "sinn", expr="input + sinn(input)"),
    _("E202", "conv2d", expr="conv2d(input, input)"),
    _("E202", "softmax", expr="softmax(input, -1)"),
    _("E202", "sum", expr="input / sum(input)"),
    _("E202", "input @ input", expr="input @ input"),
    _("E202", "print", expr="print(input)"),
    _("E203", "sin(input, input)", expr="1 + sin(input, input)"),
    _("E203", "pow(input)", expr="pow(input) + 1"),
    _("E203", "where(input > 0, input)", expr="where(input > 0, input)"),
    _("E203", "silu()", expr="input + silu()"),
    _("E203", "atan2(input)", expr="atan2(input)"),
    # syntax
    _("E110", "", expr=""),
    _("E110", ")", expr="(input))"),
    _("E110", "lambda x: x", expr="lambda x: x"),
    _("E110", "input.T", expr="input.T + 1"),
    _("E110", "input is None", expr="input is None"),
    _("E207", "[v for v in input]", expr="[v for v in input]"),
    _("E110", "99999999999999999999", expr="input + 99999999999999999999"),
    _("E110", "f'{input}'", expr="f'{input}'"),
    _("E110", "(y := input)", expr="1 + (y := input)"),
    _("E207", "input[0]", expr="input[0] + 1"),
    _("E207", "(input, 1)", expr="(input, 1)"),
    # signatures
    _("E111", "Tensor", sig="f Tensor input) -> Tensor out", expr="input"),
    _("E111", "", sig="f(Tensor input)", expr="input"),
    _("E111", "Tensor", sig="f(Tensor input Tensor other) -> Tensor out", expr="input + other"),
    _("E111", "", sig="f(Tensor input -> Tensor out", expr="input"),
    _("E111", "#", sig="f(Tensor input) # -> Tensor out", expr="input"),
    _("E207", "Tensr", sig="f(Tensr input) -> Tensor out", expr="input"),
    _("E207", "double", sig="f(Tensor input, double b=1.0) -> Tensor out", expr="input * b"),
    _("E207", "'a'", sig="f(Tensor input, float b='a') -> Tensor out", expr="input * b"),
    _("E207", "b", sig="f(Tensor input, float a=1.0, float b) -> Tensor out", expr="input * a * b"),
    _("E206", "input", sig="f(Tensor input, Tensor input) -> Tensor out", expr="input"),
    _("E206", "g", sig="f(Tensor g) -> Tensor out", expr="g"),
    _("E206", "self", sig="f(Tensor self) -> Tensor out", expr="self"),
    _("E205", "class", sig="class(Tensor input) -> Tensor out", expr="input"),
    _("E211", "beta", sig=P, expr="input"),
    _("E211", "y", sig=B, expr="x * x"),
    _("E210", U, family="binary", expr="input"),
    _("E210", B, sig=B, family="unary", expr="x * y"),
    # keys
    _("E104", "bta", expr="input", bta=1.0),
    _("E104", "promot", expr="input", promot="float"),
    _("E106", "flaot", expr="input", promote="flaot"),
    _("E106", "unray", expr="input", family="unray"),
    _("E106", "maybe", expr="input", out="maybe"),
    _("E106", "f23", expr="input", dtypes=["f23"]),
    _("E106", "linlag", expr="input", home="linlag"),
    _("E108", "TODO", expr="input", doc="TODO"),
    _("E108", "Short", expr="input", doc="Short"),
    # derivatives
    _("E204", "inptu", expr="input**2", d={"inptu": "2 * input"}),
    _("E201", "inputt", expr="input**2", d={"input": "2 * inputt"}),
    _("E310", "3 * input", expr="input**2", d={"input": "3 * input"}),
    _("E310", "cos(x)", sig=B, expr="sin(x) * y", d={"x": "cos(x)"}),
    _("E301", "inplace", expr="input**3", inplace=True),
    _("E304", "input", expr="input > 0", d={"input": "1"}),
    _("E314", "sin(input)", expr="sin(input)", like="numpy.cos(input)"),
]
