"""Sphinx settings. `make docs` gathers docs/ and the generated reference in build/docs/src and builds there."""

project = "tensorplay"
author = "The tensorplay authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "tensorplay"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]
