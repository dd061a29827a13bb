"""Measurements of the service: `python -m benchmarks.service NAME...`; each starts its own and prints its figures."""
