"""A variant of the project: a copy of its sources under build/NAME/src with an ops.yaml of its own, built in place.

The demo adds an op to one, the mutant check builds wrong formulas in one. The copy keeps the layout of the tree, so the
compiler cache serves files both share, and its build directory stays, so a second run compiles only what changed.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("CMakeLists.txt", "pyproject.toml", "ops.yaml", "cmake", "codegen", "csrc", "generated", "tensorplay")
# Cleared, so that nothing of the caller's environment is imported in place of the variant.
CLEARED = ("PYTHONPATH", "PYTHONHOME")


def files_below(top: Path) -> dict[str, Path]:
    if top.is_file():
        return {"": top}
    return {
        path.relative_to(top).as_posix(): path
        for path in top.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }


def mirror(source: Path, copy: Path) -> None:
    """Makes copy equal to source, touching only what differs: build times follow contents, not copying."""
    wanted = files_below(source)
    for name, path in wanted.items():
        target = copy / name if name else copy
        if target.exists() and filecmp.cmp(path, target, shallow=False):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    if copy.is_dir():
        for name, path in files_below(copy).items():
            if name not in wanted:
                path.unlink()


class Variant:
    def __init__(self, name: str, *options: str) -> None:
        self.options = options  # of the configuration, as -DNAME=VALUE
        self.src = ROOT / "build" / name / "src"
        self.ops = self.src / "ops.yaml"
        self.build_dir = self.src / "build" / "out"
        self.site = self.build_dir / "site"

    @property
    def is_built(self) -> bool:
        return any((self.site / "tensorplay").glob("_C.*"))

    def sync(self) -> None:
        """Takes over the sources of the tree; the generated files only once, since `generate` rewrites them."""
        for name in COPIED:
            if name == "generated" and self.is_built:
                continue
            mirror(ROOT / name, self.src / name)

    def codegen(self, *arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
        """One command of the generator, with the variant's ops.yaml and generated/ in place of the project's."""
        command = [sys.executable, "-m", "codegen", *arguments, "--ops", str(self.ops)]
        return subprocess.run(command, cwd=self.src, text=True, capture_output=capture, env=self.environment())

    def generate(self) -> subprocess.CompletedProcess[str]:
        return self.codegen("write", "--out", str(self.src / "generated"), capture=True)

    def configure(self) -> None:
        configure = ["cmake", "-S", str(self.src), "-B", str(self.build_dir), "-G", "Ninja"]
        configure += [f"-DPython_EXECUTABLE={sys.executable}", *self.options]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)

    def build(self) -> None:
        """Configures once, then compiles what changed; raises CalledProcessError where the compiler refuses."""
        if not (self.build_dir / "build.ninja").exists():
            self.configure()
        subprocess.run(["cmake", "--build", str(self.build_dir)], check=True)
        link = [sys.executable, str(ROOT / "tools" / "dev_site.py"), str(self.site), str(self.src)]
        subprocess.run(link, check=True)

    def environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name not in CLEARED}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs Python with the variant as the tensorplay it imports."""
        environment = self.environment() | {"PYTHONPATH": str(self.site)}
        return subprocess.run([sys.executable, *command], text=True, env=environment, cwd=self.build_dir)
