"""A Python function as an entry: its arguments become the signature, its return statement the formula.

Reads source text only; the function is never run. Assigned names are put into the formula where they are used.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Mapping
from typing import Any

from . import formula as F
from .base import library
from .errors import Diagnostics, did_you_mean
from .formula import Node
from .functions import CONSTANTS, FUNCTIONS, INTERNAL
from .given import Given, Place, places_of
from .model import Loc
from .scope import WHERE_FUNCTIONS, whole

MODULES = ("tp", "tensorplay", "math", "np", "numpy", "torch", "special", "F")  # f of module.f(x) is what is meant
_RENAMED = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
            "arccosh": "acosh", "arctanh": "atanh", "absolute": "abs", "power": "pow", "expit": "sigmoid"}  # fmt: skip
_TYPES = {"Tensor": "Tensor", "float": "float", "int": "int", "bool": "bool", "complex": "Scalar"}


def given(function: Any, constants: Mapping[str, Any], keys: Mapping[str, Any]) -> Given:
    """The entry of a function. `constants`: numbers around it, by name. Raises define.Refused where it says more than a
    formula can."""
    return _Reader(function, constants).entry(keys)


class _Reader:
    def __init__(self, function: Any, constants: Mapping[str, Any]) -> None:
        self.function, self.constants = function, dict(constants)
        self.filename = function.__code__.co_filename
        self.lines = [line.rstrip("\n") for line in linecache.getlines(self.filename)]
        self.diags = Diagnostics(self.filename, tuple(self.lines))

    def refuse(self, code: str, at: Loc, message: str, hint: str = "") -> Any:
        from .define import Refused

        self.diags.add(code, at, f"op '{self.function.__name__}': {message}", hint)
        raise Refused(self.diags)

    def place(self, node: Any) -> Loc:
        """Of a node; of a definition, its first line."""
        line = self.lines[node.lineno - 1]
        col = len(line.encode()[: node.col_offset].decode(errors="replace"))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return Loc(node.lineno, col + 1, len(line.rstrip()) - col)
        same = node.end_lineno == node.lineno
        return Loc(node.lineno, col + 1, max(1, node.end_col_offset - node.col_offset) if same else 1)

    def entry(self, keys: Mapping[str, Any]) -> Given:
        node = self.definition()
        self.signature_is_fixed(node)
        scope: dict[str, Node] = {}
        final: Node | None = None
        where = Place(self.place(node), False)
        body = node.body
        for k, s in enumerate(body):
            match s:
                case ast.Expr(value=ast.Constant(value=str())) if k == 0:
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    scope[name] = self.formula(value, scope)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    scope[name] = self.formula(value, scope)
                case ast.AugAssign(target=ast.Name(id=name), value=value, op=op) if type(op) in F.BINARY_OPS:
                    if name not in scope and name not in {a.arg for a in self.arguments(node)}:
                        self.refuse("E201", self.place(s), f"'{name}' has no value yet")
                    left = scope.get(name, F.Name(name))
                    scope[name] = F.Binary(F.BINARY_OPS[type(op)], left, self.formula(value, scope))
                case ast.Return(value=ast.expr() as value):
                    final, where = self.formula(value, scope), Place(self.place(value), False)
                    exact = self.exact(value, final)
                    if exact is not None:
                        where = exact
                    break
                case _:
                    self.refuse(
                        "E110", self.place(s), f"{_what(s)} is not part of a formula",
                        "assign names, then return one expression; a choice is written `a if condition else b`",
                    )  # fmt: skip
        if final is None:
            self.refuse("E110", self.place(node), "no return statement", "return the formula")
        assert final is not None
        entry: dict[str, Any] = {"sig": self.signature(node, final), "expr": F.to_text(final)}
        text = inspect.getdoc(self.function)
        if text:
            entry["doc"] = text
        places: dict[Any, Place] = {}
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and keys.keys() <= {k.arg for k in call.keywords}:
                places |= places_of(call, self.lines)
        places |= {("expr",): where, ("sig",): Place(self.place(node), False)}
        return Given({**entry, **keys}, places, made=True)

    def definition(self) -> ast.FunctionDef:
        first = self.function.__code__.co_firstlineno
        try:
            tree = ast.parse("\n".join(self.lines))
        except (SyntaxError, ValueError, RecursionError):
            tree = ast.Module([], [])
        found: ast.AST | None = None
        for n in ast.walk(tree):
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                lines = [n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))]
                if min(lines) == first and getattr(n, "name", "<lambda>") == self.function.__name__:
                    found = n
        if isinstance(found, (ast.AsyncFunctionDef, ast.Lambda)):
            what = "a lambda" if isinstance(found, ast.Lambda) else "an async function"
            return self.refuse(
                "E110", self.place(found), f"{what} is no formula", "write def name(x): return ..., or give the "
                "signature and expr='...' as text",
            )  # fmt: skip
        if not isinstance(found, ast.FunctionDef):
            return self.refuse(
                "E100", Loc(first, 1), "the source of the function is not to be had",
                "put it into a file, or give the signature and expr='...' as text",
            )  # fmt: skip
        return found

    def arguments(self, node: ast.FunctionDef) -> list[ast.arg]:
        a = node.args
        return [*a.posonlyargs, *a.args, *a.kwonlyargs]

    def signature_is_fixed(self, node: ast.FunctionDef) -> None:
        for odd in (node.args.vararg, node.args.kwarg):
            if odd is not None:
                self.refuse("E111", self.place(odd), f"'{odd.arg}' takes any number of arguments", "name each of them")

    def signature(self, node: ast.FunctionDef, final: Node) -> str:
        a = node.args
        defaults = self.function.__defaults__ or ()
        plain = [*a.posonlyargs, *a.args]
        values = dict(zip((x.arg for x in plain[len(plain) - len(defaults) :]), defaults, strict=True))
        values |= self.function.__kwdefaults__ or {}
        parts = []
        for k, x in enumerate([*plain, *a.kwonlyargs]):
            if k == len(plain):
                parts.append("*")
            parts.append(self.argument(x, values))
        result = "Tensor"
        return f"{node.name}({', '.join(parts)}) -> {result} out"

    def argument(self, x: ast.arg, values: Mapping[str, Any]) -> str:
        said = ast.unparse(x.annotation).strip("'\"").rpartition(".")[2] if x.annotation else ""
        if x.arg not in values:
            if said and said not in _TYPES:
                self.refuse("E207", self.place(x), f"'{x.arg}' is a {said}", f"one of {', '.join(_TYPES)}")
            return f"{_TYPES.get(said, 'Tensor')} {x.arg}"
        v = values[x.arg]
        if not isinstance(v, (bool, int, float, str)):
            text = f"the default of '{x.arg}' is {'None' if v is None else f'a {type(v).__name__}'}"
            kind = _TYPES.get(said, "Tensor" if v is None else "float")
            hint = f"a number or a text; what may be absent is {kind}? {x.arg}=None in a signature given as text"
            self.refuse("E207", self.place(x), text, hint if v is None else "a number or a text")
        kind = _TYPES.get(said, type(v).__name__)
        text = repr(float(v)) if kind == "float" and not isinstance(v, str) else repr(v)
        return f"{kind} {x.arg}={text}"

    def formula(self, value: ast.expr, scope: Mapping[str, Node]) -> Node:
        """The expression over the arguments, checked for its form and its names; faults point at them."""
        args = {a.arg for a in self.arguments(self.definition())}
        self.check_names(value, args | {*scope} | {*self.constants} | {*CONSTANTS})
        plain = _Plain(self).visit(ast.parse(ast.unparse(value), mode="eval").body)
        text = ast.unparse(plain)
        try:
            node = F.parse(text)
        except F.FormulaError as e:
            return self.refuse("E110", self.place(value), e.message, e.hint)
        known = {n: F.Num(v) if not isinstance(v, bool) else F.Bool(v) for n, v in self.constants.items()}
        return F.substitute(node, {n: v for n, v in {**known, **scope}.items() if n in scope or n not in args})

    def check_names(self, value: ast.expr, names: set[str]) -> None:
        known = {f for f in FUNCTIONS if f not in INTERNAL} | {*_elementwise()}
        called = {id(n.func) for n in ast.walk(value) if isinstance(n, ast.Call)}
        for n in ast.walk(value):
            if isinstance(n, ast.Call) and isinstance(n.func, (ast.Name, ast.Attribute)):
                name = n.func.id if isinstance(n.func, ast.Name) else n.func.attr
                if _RENAMED.get(name, name) not in known:
                    base = library()
                    hint = whole(name, base.by_name if base else ()) or did_you_mean(name, known) or WHERE_FUNCTIONS
                    if isinstance(n.func, ast.Name) and name in names:
                        hint = f"a product has its sign: {name} * (...)"
                    elif isinstance(n.func, ast.Name) and callable(self.around(name)):
                        hint = "it is a function of Python, which a formula can't call: write out here what it computes"
                    self.refuse("E202", self.place(n.func), f"no function '{name}' here", hint)
            elif isinstance(n, ast.Name) and id(n) not in called and n.id not in names and n.id not in MODULES:
                found = self.around(n.id)
                hint = did_you_mean(n.id, names, True)
                if found is not None:
                    hint = f"it is a {type(found).__name__}, and only numbers are constants; make it an argument"
                self.refuse("E201", self.place(n), f"'{n.id}' is not an argument", hint)

    def around(self, name: str) -> Any:
        """What a name of the function's surroundings stands for; None for nothing."""
        cells = zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True)
        for free, cell in cells:
            if free == name:
                try:
                    return cell.cell_contents
                except ValueError:  # not assigned yet
                    return None
        return self.function.__globals__.get(name)

    def exact(self, value: ast.expr, final: Node) -> Place | None:
        """The place of the returned expression, where the line holds the formula's very characters."""
        text = F.to_text(final)
        at = self.place(value)
        if self.lines[at.line - 1][at.col - 1 : at.col - 1 + len(text)] == text:
            return Place(Loc(at.line, at.col, len(text)), True)
        return None


class _Plain(ast.NodeTransformer):
    """tp.exp(x) -> exp(x), math.pi -> pi, x.exp() -> exp(x)."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader

    def visit_Call(self, node: ast.Call) -> ast.AST:
        f = node.func
        if isinstance(f, ast.Attribute):
            name = _RENAMED.get(f.attr, f.attr)
            args = [self.visit(a) for a in node.args]
            keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
            if not _is_module(f.value):
                args.insert(0, self.visit(f.value))
            return ast.Call(ast.Name(name, ast.Load()), args, keywords)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr, ast.Load()) if _is_module(node.value) else node


_STATEMENTS = {
    ast.Expr: "an expression whose value nothing takes", ast.If: "an if statement", ast.FunctionDef: "a function",
    ast.AsyncFunctionDef: "a function", ast.ClassDef: "a class", ast.Import: "an import", ast.ImportFrom: "an import",
    ast.Delete: "a del statement", ast.Assert: "an assert statement", ast.Return: "a return without a value",
    ast.AugAssign: "an assignment to more than a name", ast.Assign: "an assignment to more than a name",
    ast.AnnAssign: "an annotation without a value",
}  # fmt: skip


def _what(s: ast.stmt) -> str:
    """What the author would call a statement: most are named by their first word."""
    word = type(s).__name__.removeprefix("Async").lower()
    return _STATEMENTS.get(type(s), f"a {word.removesuffix('star')} statement")


def _elementwise() -> list[str]:
    """The library's ops that a formula may call."""
    base = library()
    return [e.op for e in base.entries if e.elementwise and any(o.expr for o in e.overloads)] if base else []


def _is_module(n: ast.expr) -> bool:
    while isinstance(n, ast.Attribute):
        n = n.value
    return isinstance(n, ast.Name) and n.id in MODULES


__all__ = ["given"]
