"""Ops written in Python over other ops; ops.yaml names each by `python: tensorplay._composed.<file>:<function>`.

A file owns one subject. Derivatives of every order, tangents and batching follow from the ops that are called.
"""
