"""ops.yaml -> generated/: every op is one entry, everything else is derived. Never imports tensorplay."""
