"""Measurements of the service, each of one of its own: `python -m benchmarks.service NAME...`."""
