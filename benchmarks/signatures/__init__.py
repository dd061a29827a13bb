"""Queries of signatures beside a pass over the same signatures in NumPy."""
