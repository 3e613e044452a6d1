"""Run by PyInstaller: names the modules that tensorplay loads when they are first asked for, which reading cannot find.

The generator and the helpers of tests stay out: an application brings its ops compiled, as a pack.
"""

import pkgutil

import tensorplay

_LEFT_OUT = ("tensorplay.codegen", "tensorplay.testing", "tensorplay._pyinstaller", "tensorplay.cmake")

hiddenimports = [
    m.name
    for m in pkgutil.walk_packages(tensorplay.__path__, "tensorplay.")
    if not m.name.startswith(_LEFT_OUT)
]
