"""Prints what pip must install for the named extras, read from pyproject.toml: the one list of requirements.

Installing `.[extra]` would build the package first; this lists the requirements alone, one a line.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def expand(extra: str, extras: dict[str, list[str]], name: str) -> list[str]:
    """The requirements of one extra, with references to other extras of this package followed."""
    found: list[str] = []
    for requirement in extras[extra]:
        inner = re.fullmatch(rf"{re.escape(name)}\[([\w,\s-]+)\]", requirement)
        if inner is None:
            found.append(requirement)
            continue
        for other in inner.group(1).split(","):
            found += expand(other.strip(), extras, name)
    return found


def main(wanted: list[str]) -> int:
    with (ROOT / "pyproject.toml").open("rb") as file:
        config = tomllib.load(file)
    project = config["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    found: list[str] = []
    for group in wanted:
        if group == "build":
            found += config["build-system"]["requires"]
        elif group == "run":
            found += project["dependencies"]
        elif group in extras:
            found += expand(group, extras, project["name"])
        else:
            print(f"requirements: no extra '{group}'; there are: build, run, {', '.join(extras)}", file=sys.stderr)
            return 2
    print("\n".join(dict.fromkeys(found)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
