"""ops.yaml -> generated/: every op is one entry, everything else is derived. Never imports tensorplay."""

# How this program is run: in the source tree, and where tensorplay is installed.
COMMAND = "python -m codegen" if __name__ == "codegen" else "tensorplay-codegen"
