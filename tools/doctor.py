"""Checks what a build needs from the machine itself, and prints the one line that installs what is missing.

Runs on the system's Python before anything is installed: standard library only, and no syntax newer than Python 3.6,
so that the complaint about the version is readable.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

MINIMUM = (3, 11)

# What is missing -> the package that brings it, by package manager.
PACKAGES = {
    "apt-get": {"python": "python3.11", "venv": "python3-venv", "header": "python3-dev", "c++": "g++", "make": "make"},
    "dnf": {"python": "python3.11", "venv": "python3-pip", "header": "python3-devel", "c++": "gcc-c++", "make": "make"},
    "brew": {"python": "python@3.11", "venv": "python@3.11", "header": "python@3.11", "c++": "gcc", "make": "make"},
}

PROBE = """
#include <bit>
#include <concepts>
#include <span>
template <std::integral T> constexpr int width(T x) { return std::bit_width(static_cast<unsigned>(x)); }
int main() { int a[2] = {1, 2}; return width(static_cast<int>(std::span<int>(a).size())) == 2 ? 0 : 1; }
"""


def compiler():
    """The C++ compiler that CMake would take, or None."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name.split()[0]):
            return name
    return None


def compiles_cxx20(command):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "probe.cpp")
        with open(source, "w") as file:
            file.write(PROBE)
        call = [*command.split(), "-std=c++20", source, "-o", os.path.join(folder, "probe")]
        return subprocess.run(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def has_venv():
    """Debian ships venv without ensurepip, so the module alone proves nothing."""
    probe = [sys.executable, "-c", "import venv, ensurepip"]
    return subprocess.run(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def missing():
    """(what, why) for each thing the machine lacks."""
    faults = []
    if sys.version_info < MINIMUM:
        found = ".".join(str(part) for part in sys.version_info[:3])
        faults.append(("python", f"Python {MINIMUM[0]}.{MINIMUM[1]} or newer is needed, {sys.executable} is {found}"))
    elif not has_venv():
        faults.append(("venv", f"the modules venv and ensurepip are missing from {sys.executable}"))
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        faults.append(("header", f"Python.h is not in {include}"))
    found = compiler()
    if found is None:
        faults.append(("c++", "no C++ compiler: neither $CXX nor c++, g++ or clang++ is there"))
    elif not compiles_cxx20(found):
        faults.append(("c++", f"{found} does not compile C++20 (gcc 12, clang 15 or newer does)"))
    if shutil.which("make") is None:
        faults.append(("make", "make is not there"))
    return faults


def remedy(faults):
    """The one line to type, or a sentence where the package manager is unknown."""
    wanted = [what for what, _ in faults]
    for manager, names in PACKAGES.items():
        if shutil.which(manager) is None:
            continue
        packages = " ".join(dict.fromkeys(names[what] for what in wanted))
        if manager == "brew":
            return f"brew install {packages}"
        sudo = "" if os.geteuid() == 0 else "sudo "
        refresh = f"{sudo}apt-get update && " if manager == "apt-get" else ""
        return f"{refresh}{sudo}{manager} install -y {packages}"
    return "install with your package manager: " + ", ".join(dict.fromkeys(wanted))


def main():
    faults = missing()
    if not faults:
        print(f"doctor: Python {sys.version.split()[0]}, {compiler()}: all that a build needs is here")
        return 0
    for _, why in faults:
        print("doctor: " + why, file=sys.stderr)
    print("doctor: to install what is missing:\n  " + remedy(faults), file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
