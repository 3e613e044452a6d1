"""The formula AST: frozen nodes with source spans, the parser (Python expression syntax, whitelisted) and the printer.

Knows syntax only. Which names and functions a formula may use is decided by `names.py` and `functions.py`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

MAX_LENGTH = 4000
MAX_DEPTH = 100

Span = tuple[int, int]  # [start, end) as character offsets in the formula text
NO_SPAN: Span = (0, 0)


@dataclass(frozen=True)
class Num:
    """A number: int, float, or complex (an imaginary literal)."""

    value: int | float | complex
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    # 1, 1.0 and True are equal to Python but not to a formula.
    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Num) and type(self.value) is type(other.value) and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value).__name__, repr(self.value)))


@dataclass(frozen=True)
class Bool:
    value: bool
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Str:
    value: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class NoneLit:
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Name:
    id: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Call:
    """func(*args, **kwargs). `a if c else b` parses to Call('where', (c, a, b))."""

    func: str
    args: tuple[Node, ...]
    kwargs: tuple[tuple[str, Node], ...] = ()
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    func_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Unary:
    """op is one of - + ~ not."""

    op: str
    arg: Node
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Binary:
    """op is one of + - * / // % ** @ & | ^ << >>."""

    op: str
    left: Node
    right: Node
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Compare:
    """op is one of < <= > >= == !=. A chain `a < b < c` parses to BoolOp('and', ...)."""

    op: str
    left: Node
    right: Node
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class BoolOp:
    """op is 'and' or 'or'; at least two arguments."""

    op: str
    args: tuple[Node, ...]
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Subscript:
    """value[index]; index is an expression (no slices)."""

    value: Node
    index: Node
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Tuple:
    items: tuple[Node, ...]
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class List:
    items: tuple[Node, ...]
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Each:
    """[body for var in over]: a list with one item for each of a list, or of range(n)."""

    body: Node
    var: str
    over: Node
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


Node = Num | Bool | Str | NoneLit | Name | Call | Unary | Binary | Compare | BoolOp | Subscript | Tuple | List | Each

BINARY_OPS: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
UNARY_OPS: Mapping[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
COMPARE_OPS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


class FormulaError(Exception):
    """A fault in one formula; `span` says where inside its text."""

    def __init__(self, message: str, span: Span, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint


def parse(text: str) -> Node:
    """Parse one formula. Raises FormulaError and nothing else."""
    if not text.strip():
        raise FormulaError("empty formula", (0, max(1, len(text))), "write an expression, or drop the key")
    if "\n" in text or "\r" in text:
        raise FormulaError("a formula must be one line", (0, 1), "put the whole formula on one line")
    for i, ch in enumerate(text):
        if not " " <= ch <= "~":
            raise FormulaError(f"character {ch!r} is not ASCII text", (i, i + 1), "write formulas in plain ASCII")
    if len(text) > MAX_LENGTH:
        raise FormulaError(
            f"formula of {len(text)} characters (limit {MAX_LENGTH})", (0, 1), "split it into several ops"
        )
    lead = len(text) - len(text.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python finds odd is refused, or means what it says
            tree = ast.parse(text.lstrip(), mode="eval")
    except SyntaxError as e:
        # No offset: it ends where more is expected.
        start = min(e.offset - 1 + lead, len(text) - 1) if e.offset else len(text.rstrip()) - 1
        end = (e.end_offset or 0) - 1 + lead
        raise FormulaError(f"syntax error: {e.msg}", (start, end if end > start else start + 1), _meant(text)) from None
    except (RecursionError, MemoryError, ValueError) as e:
        raise FormulaError(f"cannot parse: {type(e).__name__}", (0, len(text)), "simplify the formula") from None
    return _Converter(lead).convert(tree.body, 0)


_MEANT = (  # what other languages and paper write, and what a formula has for it
    (r"&&", "write 'and'"),
    (r"\|\|", "write 'or'"),
    (r"\?", "a choice is written a if c else b"),
    (r"\bif\b(?!.*\belse\b)", "a choice has both sides: a if c else b"),
    (r"!(?!=)", "write 'not'"),
    (r";|(?<![<>=!])=(?!=)", "a formula is one expression; compose names values in steps, and so does a decorated def"),
)
_JOINED = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?)([A-Za-z_]\w*)")


def _meant(text: str) -> str:
    """A hint for text that is no expression."""
    if (m := _JOINED.search(text)) is not None:
        return f"a product has its sign: write {m[1]} * {m[2]}"
    return next((hint for pattern, hint in _MEANT if re.search(pattern, text)), "")


class _Converter:
    def __init__(self, lead: int) -> None:
        self.lead = lead

    def span(self, n: ast.AST) -> Span:
        return (n.col_offset + self.lead, (n.end_col_offset or 0) + self.lead)  # type: ignore[attr-defined]

    def convert(self, n: ast.expr, depth: int) -> Node:
        span = self.span(n)
        if depth > MAX_DEPTH:
            raise FormulaError(f"nested more than {MAX_DEPTH} deep", span, "simplify the formula")

        def sub(child: ast.expr) -> Node:
            return self.convert(child, depth + 1)

        match n:
            case ast.Constant(value=None):
                return NoneLit(span)
            case ast.Constant(value=bool(v)):
                return Bool(v, span)
            case ast.Constant(value=int(v)) if abs(v) >= 1 << 63:
                raise FormulaError("integer does not fit 64 bits", span, "write it as a float")
            case ast.Constant(value=int() | float() | complex() as v):
                return Num(v, span)
            case ast.Constant(value=str(v)):
                return Str(v, span)
            case ast.Name(id=name):
                return Name(name, span)
            case ast.Tuple(elts=elts):
                return Tuple(tuple(map(sub, elts)), span)
            case ast.List(elts=elts):
                return List(tuple(map(sub, elts)), span)
            case ast.ListComp(elt=body, generators=[ast.comprehension(target=ast.Name(id=var), iter=over, ifs=[])]):
                return Each(sub(body), var, sub(over), span)
            case ast.UnaryOp(op=op, operand=arg):
                return Unary(UNARY_OPS[type(op)], sub(arg), span)
            case ast.BinOp(left=left, op=bop, right=right):
                return Binary(BINARY_OPS[type(bop)], sub(left), sub(right), span)
            case ast.BoolOp(op=lop, values=values):
                return BoolOp("and" if isinstance(lop, ast.And) else "or", tuple(map(sub, values)), span)
            case ast.Compare(left=left, ops=ops, comparators=rest):
                return self._compare(left, ops, rest, span, sub)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return Call("where", (sub(test), sub(body), sub(orelse)), (), span, span)
            case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Slice):
                return Subscript(sub(value), sub(index), span)
            case ast.Call(func=ast.Name(id=func) as f, args=args, keywords=kws):
                kwargs: list[tuple[str, Node]] = []
                for kw in kws:
                    if kw.arg is None:
                        raise FormulaError("** is not allowed in a call", self.span(kw))
                    if kw.arg in dict(kwargs):
                        raise FormulaError(f"argument '{kw.arg}' given twice", self.span(kw))
                    kwargs.append((kw.arg, sub(kw.value)))
                return Call(func, tuple(map(sub, args)), tuple(kwargs), span, self.span(f))
            case ast.Call(func=ast.Attribute(attr=attr) as f):
                raise FormulaError(
                    f"'{ast.unparse(f)}' is not allowed: functions go by their names alone", self.span(f),
                    f"write {attr}(...)",
                )  # fmt: skip
            case ast.Call(func=f):
                factor = ast.unparse(f)
                hint = f"a product has its sign: {factor} * (...)"
                raise FormulaError(f"'{factor}' is no function", self.span(f), hint)
            case ast.Attribute(attr=attr):
                raise FormulaError(
                    f"attribute '.{attr}' is not allowed", span, "formulas call functions: shape(x), dtype(x)"
                )
        what = {ast.Lambda: "a lambda", ast.Starred: "*", ast.NamedExpr: ":=", ast.JoinedStr: "an f-string"}
        raise FormulaError(f"{what.get(type(n), type(n).__name__)} is not allowed in a formula", span)

    def _compare(
        self, left: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr], span: Span, sub: Callable[[ast.expr], Node]
    ) -> Node:
        parts: list[Node] = []
        for op, right in zip(ops, rest, strict=True):
            if type(op) not in COMPARE_OPS:
                raise FormulaError("only < <= > >= == != compare in a formula", span, _instead(left, op, right))
            parts.append(Compare(COMPARE_OPS[type(op)], sub(left), sub(right), span))
            left = right
        return parts[0] if len(parts) == 1 else BoolOp("and", tuple(parts), span)


def _instead(left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
    """How a comparison of Python that formulas lack is written."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        return f"write {ast.unparse(left)} {'==' if isinstance(op, ast.Is) else '!='} {ast.unparse(right)}"
    test, join = ("==", "or") if isinstance(op, ast.In) else ("!=", "and")
    items = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else []
    tests = [f"{ast.unparse(left)} {test} {ast.unparse(i)}" for i in items[:3]]
    return f" {join} ".join(tests) or "compare with each item"


# ---- traversal ------------------------------------------------------------------------------------------------------


def children(n: Node) -> tuple[Node, ...]:
    match n:
        case Call(args=args, kwargs=kwargs):
            return args + tuple(v for _, v in kwargs)
        case Unary(arg=arg):
            return (arg,)
        case Binary(left=a, right=b) | Compare(left=a, right=b):
            return (a, b)
        case BoolOp(args=args):
            return args
        case Subscript(value=v, index=i):
            return (v, i)
        case Tuple(items=items) | List(items=items):
            return items
        case Each(body=body, over=over):
            return (body, over)
    return ()


def map_children(n: Node, f: Callable[[Node], Node]) -> Node:
    """The same node over f(child); spans are kept."""
    match n:
        case Call(func, args, kwargs, span, fspan):
            return Call(func, tuple(map(f, args)), tuple((k, f(v)) for k, v in kwargs), span, fspan)
        case Unary(op, arg, span):
            return Unary(op, f(arg), span)
        case Binary(op, a, b, span):
            return Binary(op, f(a), f(b), span)
        case Compare(op, a, b, span):
            return Compare(op, f(a), f(b), span)
        case BoolOp(op, args, span):
            return BoolOp(op, tuple(map(f, args)), span)
        case Subscript(v, i, span):
            return Subscript(f(v), f(i), span)
        case Tuple(items, span):
            return Tuple(tuple(map(f, items)), span)
        case List(items, span):
            return List(tuple(map(f, items)), span)
        case Each(body, var, over, span):
            return Each(f(body), var, f(over), span)
    return n


def walk(n: Node) -> Iterator[Node]:
    """Every node, parents before children, left to right."""
    stack = [n]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def names(n: Node) -> tuple[str, ...]:
    """Free names in order of first appearance."""
    bound = {x.var for x in walk(n) if isinstance(x, Each)}
    return tuple(dict.fromkeys(x.id for x in walk(n) if isinstance(x, Name) and x.id not in bound))


def calls(n: Node) -> tuple[str, ...]:
    """Functions called, in order of first appearance."""
    return tuple(dict.fromkeys(x.func for x in walk(n) if isinstance(x, Call)))


def size(n: Node) -> int:
    return sum(1 for _ in walk(n))


def substitute(n: Node, mapping: Mapping[str, Node]) -> Node:
    """Replace names by nodes (all at once)."""
    if isinstance(n, Name):
        return mapping.get(n.id, n)
    return map_children(n, lambda c: substitute(c, mapping))


def replace(n: Node, old: Node, new: Node) -> Node:
    """Replace every subtree equal to `old` by `new`."""
    if n == old:
        return new
    return map_children(n, lambda c: replace(c, old, new))


# ---- printing -------------------------------------------------------------------------------------------------------

_PRECEDENCE = {
    "or": 1, "and": 2, "not": 3, "cmp": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9,
    "*": 10, "/": 10, "//": 10, "%": 10, "@": 10, "neg": 11, "**": 12, "atom": 14,
}  # fmt: skip


def _level(n: Node) -> int:
    match n:
        case BoolOp(op=op) | Binary(op=op):
            return _PRECEDENCE[op]
        case Compare():
            return _PRECEDENCE["cmp"]
        case Unary(op="not"):
            return _PRECEDENCE["not"]
        case Unary():
            return _PRECEDENCE["neg"]
        case Num(value=v) if not isinstance(v, complex) and (v < 0 or str(v).startswith("-")):
            return _PRECEDENCE["neg"]
    return _PRECEDENCE["atom"]


def number_text(v: int | float | complex) -> str:
    """A number as formula text; inf and nan are the constants of that name."""
    return repr(v).strip("()")


def to_text(n: Node) -> str:
    """Formula text with the fewest parentheses; parse(to_text(n)) == n for parsed n."""

    def sub(c: Node, least: int) -> str:
        t = to_text(c)
        return f"({t})" if _level(c) < least else t

    match n:
        case Num(value=v):
            return number_text(v)
        case Bool(value=b):
            return repr(b)
        case Str(value=s):
            return repr(s)
        case NoneLit():
            return "None"
        case Name(id=i):
            return i
        case Call(func=func, args=args, kwargs=kwargs):
            inner = [to_text(a) for a in args] + [f"{k}={to_text(v)}" for k, v in kwargs]
            return f"{func}({', '.join(inner)})"
        case Unary(op="not", arg=a):
            return f"not {sub(a, 3)}"
        case Unary(op=op, arg=a):
            return f"{op}{sub(a, 11)}"
        case Binary(op="**", left=a, right=b):
            return f"{sub(a, 13)}**{sub(b, 11)}"
        case Binary(op=op, left=a, right=b):
            p = _PRECEDENCE[op]
            return f"{sub(a, p)} {op} {sub(b, p + 1)}"
        case Compare(op=op, left=a, right=b):
            return f"{sub(a, 5)} {op} {sub(b, 5)}"
        case BoolOp(op=op, args=args):
            p = _PRECEDENCE[op]
            return f" {op} ".join(sub(a, p + 1) for a in args)
        case Subscript(value=v, index=i):
            return f"{sub(v, 14)}[{to_text(i)}]"
        case Tuple(items=items):
            return f"({', '.join(map(to_text, items))}{',' if len(items) == 1 else ''})"
        case List(items=items):
            return f"[{', '.join(map(to_text, items))}]"
        case Each(body=body, var=var, over=over):
            return f"[{to_text(body)} for {var} in {to_text(over)}]"
    raise TypeError(f"not a formula node: {n!r}")
