"""Bits that networked filters send, beside the formulas of theory.networked, for docs/networked.md.

``python -m benchmarks.networked`` [--only duplicates replication routing] [--large] [--seed N]
"""
