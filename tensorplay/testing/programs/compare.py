"""What a program's derivatives are compared with: differences in float64, another library in another interpreter.

A disagreement is made small before it is shown.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorplay as tp

from .language import Array, Machine, Outcome, Program, Replay, backward, decode, encode, outcome, second, tangent

REFUSED = ("modified by an inplace operation", "modified by an in-place operation", "in-place", "inplace")
TOLERANCE = 1e-6


@dataclass
class Verdict:
    """What became of one program."""

    status: str  # agrees | refused | kink | wrong | raised
    what: str = ""
    hooks: int = 0
    outcome: Outcome = field(default_factory=Outcome)


def directions(program: Program, rng: np.random.Generator) -> list[Array]:
    return [np.asarray(rng.uniform(-1, 1, leaf["value"]["shape"])) for leaf in program["leaves"]]


def moved(program: Program, along: Sequence[Array], h: float) -> Program:
    """The program at other leaves."""
    other = dict(program)
    other["leaves"] = [
        {"name": leaf["name"], "value": encode(decode(leaf["value"]) + h * d)}
        for leaf, d in zip(program["leaves"], along, strict=True)
    ]
    return other


def dot(grads: Sequence[Array | None], along: Sequence[Array]) -> float:
    return float(sum((g * d).sum() for g, d in zip(grads, along, strict=True) if g is not None))


def derivative(f: Callable[[float], float], h: float) -> float:
    """A fourth-order central difference."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def along_line(program: Program, along: Sequence[Array], tangents: bool) -> Callable[[float], float]:
    """The loss as a function of one number; what detach and no_grad hold fixed stays fixed."""
    replay = Replay(tangents=tangents)
    arrays = [decode(leaf["value"]) for leaf in program["leaves"]]
    with tp.no_grad():
        Machine(tp, program, replay).run([tp.tensor(a) for a in arrays])
    replay.recording = False

    def f(t: float) -> float:
        leaves = [tp.tensor(np.asarray(a + t * d)) for a, d in zip(arrays, along, strict=True)]
        with tp.no_grad():
            return float(Machine(tp, program, replay).run(leaves).item())

    return f


def agrees(exact: float, f: Callable[[float], float], tolerance: float) -> tuple[bool, list[float]]:
    seen = []
    for h, loss in ((5e-4, 1.0), (1e-4, 1.0), (1e-5, 10.0)):
        numeric = derivative(f, h)
        seen.append(numeric)
        if abs(exact - numeric) <= loss * tolerance * (1 + abs(exact) + abs(numeric)):
            return True, seen
    return False, seen


def plain(program: Program) -> bool:
    """Whether differentiating twice means the same to differences: nothing held fixed, no scaled gradient."""
    return not any(s["do"] == "detach" or s.get("no_grad") or "hook" in s for s in program["steps"])


def faults(program: Program, seed: int, orders: Sequence[str]) -> tuple[list[str], Outcome]:
    """What disagrees at the program's own leaves."""
    rng = np.random.default_rng(seed)
    along = directions(program, rng)
    out = backward(tp, program)
    found = []
    exact = dot(out.grads, along)
    line = functools.cache(along_line(program, along, False))
    good, seen = agrees(exact, line, TOLERANCE)
    if not good:
        found.append(f"gradient {exact:.12g}, differences {seen}")
    if "tangent" in orders:
        out.tangent = tangent(tp, program, along)
        if not plain(program):  # else both modes hold the same fixed: nothing
            other: Callable[[float], float] = along_line(program, along, True)
        else:
            other = line
        good, seen = agrees(out.tangent, other, TOLERANCE)
        if not good:
            found.append(f"tangent {out.tangent:.12g}, differences {seen}")
    if "second" in orders and plain(program):
        then = directions(program, rng)
        out.second = second(tp, program, along, then)
        once = {**program, "backward": "grad"}
        good, seen = agrees(out.second, lambda t: dot(backward(tp, moved(once, then, t)).grads, along), 10 * TOLERANCE)
        if not good:
            found.append(f"second derivative {out.second:.12g}, differences {seen}")
    return found, out


def check(program: Program, seed: int, orders: Sequence[str] = ("tangent", "second")) -> Verdict:
    try:
        found, out = faults(program, seed, orders)
    except Exception as fault:
        text = f"{type(fault).__name__}: {fault}"
        if isinstance(fault, RuntimeError) and any(t in text for t in REFUSED):
            return Verdict("refused", text, outcome=Outcome(error=text))
        return Verdict("raised", text, outcome=Outcome(error=text))
    if not found:
        return Verdict("agrees", hooks=out.hooks, outcome=out)
    # A kink between the points of the differences goes away at other leaves; a wrong derivative does not.
    rng = np.random.default_rng(seed + 1)
    for _ in range(3):
        try:
            again, _ = faults(moved(program, directions(program, rng), 0.05), seed, orders)
        except Exception as fault:
            again = [str(fault)]
        if not again:
            return Verdict("kink", "; ".join(found), out.hooks, out)
    return Verdict("wrong", "; ".join(found), out.hooks, out)


# ---- another library -------------------------------------------------------------------------------------------------
class Other:
    """Another interpreter, which finds the module by itself or on `path`; it starts once and answers line by line."""

    def __init__(self, python: str, module: str, path: str = "") -> None:
        language = Path(__file__).with_name("language.py")
        environment = {"PATH": os.defpath} | ({"PYTHONPATH": path} if path else {})
        if python == sys.executable:  # what a build under a sanitizer needs to load
            environment |= {k: v for k, v in os.environ.items() if k == "LD_PRELOAD" or k.endswith("SAN_OPTIONS")}
        self.process = subprocess.Popen(
            [python, "-W", "ignore", str(language), module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def ask(self, program: Program) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r}: ended with {self.process.wait()}")
        return dict(json.loads(line))

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def differences(mine: Outcome, theirs: dict[str, Any]) -> str:
    """How two outcomes of one program differ, or nothing."""
    if abs(mine.loss - theirs["loss"]) > 1e-7 * (1 + abs(mine.loss)):
        return f"loss {mine.loss:.12g}, theirs {theirs['loss']:.12g}"
    if mine.hooks != theirs["hooks"]:
        return f"{mine.hooks} calls of hooks, theirs {theirs['hooks']}"
    pairs = [(f"gradient {i}", g, t) for i, (g, t) in enumerate(zip(mine.grads, theirs["grads"], strict=True))]
    pairs += [(f".grad of {k}", g, theirs["kept"].get(k)) for k, g in mine.kept.items()]
    top = max([1.0, *(float(np.abs(g).max()) for _, g, _ in pairs if g is not None and g.size)])
    for what, g, t in pairs:
        if (g is None) != (t is None):
            return f"{what}: {g if g is None else g.tolist()}, theirs {t if t is None else decode(t).tolist()}"
        if g is not None and t is not None and not np.allclose(g, decode(t), rtol=1e-7, atol=1e-8 * top):
            return f"{what}: {g.tolist()}, theirs {decode(t).tolist()}"
    return ""


# ---- making a disagreement small -------------------------------------------------------------------------------------
def minimise(program: Program, still: Callable[[Program], bool]) -> Program:
    """Fewer terms, fewer steps, as long as the disagreement stays."""

    def holds(candidate: Program) -> bool:
        try:
            return still(candidate)
        except Exception:
            return False

    best = copy.deepcopy(program)
    for name in list(best["weights"]):
        one = {**best, "weights": {name: best["weights"][name]}}
        if len(best["weights"]) > 1 and holds(one):
            best = one
            break
    shrinking = True
    while shrinking:
        shrinking = False
        for i in reversed(range(len(best["steps"]))):
            shorter = {**best, "steps": best["steps"][:i] + best["steps"][i + 1 :]}
            if holds(shorter):
                best, shrinking = shorter, True
        for i, step in enumerate(best["steps"]):
            if step["do"] == "feed" and step["from"] != best["leaves"][0]["name"]:
                steps = copy.deepcopy(best["steps"])
                steps[i]["from"] = best["leaves"][0]["name"]
                if holds({**best, "steps": steps}):
                    best, shrinking = {**best, "steps": steps}, True
    return best


def listing(program: Program) -> str:
    """A program as text to read."""

    def arg(a: Any) -> str:
        match a:
            case {"v": name}:
                return str(name)
            case {"array": data}:
                return f"<{data['dtype']} {data['shape']}>"
            case {"list": items} | {"tuple": items}:
                return "[" + ", ".join(arg(x) for x in items) + "]"
            case {"slice": parts}:
                return ":".join("" if p is None else str(p) for p in parts)
            case {"dtype": name}:
                return str(name)
        return repr(a)

    lines = [f"{leaf['name']} = leaf {leaf['value']['shape']}" for leaf in program["leaves"]]
    for s in program["steps"]:
        args = ", ".join([*(arg(a) for a in s.get("pos", ())), *(f"{k}={arg(a)}" for k, a in s.get("kw", {}).items())])
        notes = "".join(f"  # {k}={s[k]}" for k in ("hook", "retain", "no_grad", "symmetric") if k in s)
        spoken: dict[str, Any] = {
            "op": lambda s=s, a=args: f"{s['home'] + '.' if s['home'] else ''}{s['op']}({a})",
            "method": lambda s=s, a=args: f"{s['self']}.{s['method']}({a})",
            "inplace": lambda s=s, a=args: f"{s['self']}.{s['method']}({a})",
            "setitem": lambda s=s: f"{s['self']}[{arg(s['at'])}] = {arg(s['value'])}",
            "getitem": lambda s=s: f"{s['self']}[{arg(s['at'])}]",
            "detach": lambda s=s: f"{s['self']}.detach()",
            "feed": lambda s=s: f"base{s['shape']} + {s['scale']} * sin({s['from']})",
            "settle": lambda s=s: f"{s['from']} * {s['by']}",
            "function": lambda s=s, a=args: f"{s['name']}.apply({a})",
        }
        lines.append(f"{', '.join(s['out']) or '_'} = {spoken[s['do']]()}{notes}")
    lines.append(f"loss = sum of {', '.join(program['weights'])}; {program.get('backward', 'backward')}")
    return "\n".join(lines)


__all__ = ["Other", "Verdict", "check", "differences", "listing", "minimise", "outcome"]
