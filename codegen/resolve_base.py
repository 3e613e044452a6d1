"""What the parts of resolution share: the entry at hand, what entries know of each other, diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import formula as F
from . import load as L
from .errors import Diagnostics
from .markers import Declared
from .model import (
    DTYPE_GROUPS,
    Loc,
    Signature,
)  # fmt: skip
from .scope import Callee, Checker

FOLLOW_UPS = ("E105", "E211", "E301", "E302")
INTEGERS = ("bool", *DTYPE_GROUPS["int"])
Exprs = dict[str, tuple[tuple[tuple[str, F.Node | None], ...], F.Node]]


@dataclass
class World:
    """What entries know of each other."""

    ops: dict[str, tuple[Callee, ...]]
    elementwise: dict[str, tuple[Callee, ...]]
    exprs: Exprs
    declared: Declared
    base: frozenset[str] = frozenset()  # ops of the library: a formula that names one means it
    rules: Mapping[str, tuple[Signature, ...]] = field(default_factory=dict)  # batching rule -> its ops


class Resolver:
    """One entry on its way to the model."""

    def __init__(self, raw: L.Raw, diags: Diagnostics, world: World) -> None:
        self.raw, self.diags, self.world = raw, diags, world
        self.bad = raw.bad
        self.check = Checker(diags, raw.op, ops=world.ops)
        self.spoken: dict[str, tuple[str, Loc]] = {}  # argument -> (key, place)
        self.given: dict[str, Loc] = {}  # value of the composition at hand -> its formula

    def fault(
        self, code: str, loc: Loc, message: str, hint: str = "", notes: Any = (), *, parsed: bool = False
    ) -> None:
        """`parsed`: what the fault rests on is known as soon as the formulas parse, right or not."""
        self.bad = True
        if code in FOLLOW_UPS and (
            self.raw.bad
            or (self.check.bad and not parsed)
            or any(d.loc == loc and d.code != code for d in self.diags.items)
        ):
            return  # a value of this entry was refused already; what is missing may be what it was
        self.diags.add(code, loc, f"op '{self.raw.op}': {message}", hint, notes)

    def per(self, key: str, i: int) -> Any:
        return self.raw.per_overload[key][i] if key in self.raw.per_overload else None

    def key_loc(self, key: str) -> Loc:
        return self.raw.keys.get(key, self.raw.loc)

    def sig_notes(self) -> list[tuple[Loc, str]]:
        return [(s.loc, "the signature") for s in self.raw.sigs]

    def speak(self, arg: str, key: str, loc: Loc) -> None:
        if arg in self.spoken:
            other, place = self.spoken[arg]
            if place != loc and not (other == key and key in L.PER_OVERLOAD):  # a list says it once for each overload
                self.fault(
                    "E303", loc, f"'{arg}' is under '{key}' and under '{other}'", "keep one", [(place, f"'{other}'")]
                )
            return
        self.spoken[arg] = (key, loc)
