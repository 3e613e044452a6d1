"""Conditions over arguments that are not tensors, as C++: a loop gets their value as a parameter."""

from __future__ import annotations

from collections.abc import Mapping

from . import cpp_types as C
from .formula import Binary, Bool, BoolOp, Compare, Name, Node, NoneLit, Num, Str, Unary
from .model import Base, Type


class LoopError(Exception):
    """An expression that has no loop."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node


class StaticText:
    """C++ text of a condition over arguments that are not tensors."""

    def __init__(self, types: Mapping[str, Type], suffix: str = "") -> None:
        self.types = types
        self.suffix = suffix

    def __call__(self, n: Node) -> str:
        match n:
            case Name(id=i):
                return C.cpp_name(i) + self.suffix
            case Num(value=v) if not isinstance(v, complex):
                return C.number_literal(v)
            case Bool(value=v):
                return "true" if v else "false"
            case Str(value=s):
                return C.string_literal(s)
            case Compare(op=op, left=a, right=NoneLit()) | Compare(op=op, left=NoneLit(), right=a):
                if not isinstance(a, Name):
                    raise LoopError("only an argument compares with None", n)
                if self.types[a.id].has_tensor:
                    test = f"has_{a.id}{self.suffix}" if self.suffix else f"!is_absent({C.cpp_name(a.id)})"
                else:
                    test = f"{C.cpp_name(a.id)}{self.suffix}.has_value()"
                return test if op == "!=" else f"!{test}"
            case Compare(op=op, left=a, right=b):
                return f"{self.operand(a)} {op} {self.operand(b)}"
            case BoolOp(op=op, args=args):
                return "(" + (" && " if op == "and" else " || ").join(f"({self(a)})" for a in args) + ")"
            case Unary(op="not", arg=a):
                return f"!({self(a)})"
            case Unary(op="-", arg=a):
                return f"-{self(a)}"
            case Binary(op=op, left=a, right=b) if op in "+-*":
                return f"({self.operand(a)} {op} {self.operand(b)})"
            case Binary(op="/", left=a, right=b):
                return f"(double({self.operand(a)}) / {self.operand(b)})"
            case Binary(op="%", left=a, right=b):
                return f"({self.operand(a)} % {self.operand(b)})"
        raise LoopError(f"{type(n).__name__} cannot be computed from the arguments alone", n)

    def operand(self, n: Node) -> str:
        text = self(n)
        if isinstance(n, Name) and n.id in self.types:
            t = self.types[n.id]
            text = f"(*{text})" if t.optional else text
            return f"{text}.to_double()" if t.base is Base.SCALAR else text
        return text
