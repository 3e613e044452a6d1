"""The licence texts the wheel carries are those of the packages whose code it carries."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

TEXTS = Path(__file__).resolve().parent.parent / "third_party" / "licenses"


@pytest.mark.parametrize("package", ["pybind11", "scipy-openblas32"])
def test_text_is_the_packages_own(package: str) -> None:
    files = metadata.files(package) or []
    texts = [file.read_text(encoding="utf-8") for file in files if "licenses" in file.parts]
    assert (TEXTS / f"{package}.txt").read_text(encoding="utf-8") in texts


def test_installed_package_carries_them() -> None:
    names = {Path(str(file)).name for file in metadata.files("tensorplay") or []}
    assert {"LICENSE", *(path.name for path in TEXTS.iterdir())} <= names
