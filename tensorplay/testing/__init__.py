"""Helpers of tests: what the generated ones check (generated.py, inputs.py)."""
