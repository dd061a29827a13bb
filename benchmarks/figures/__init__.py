"""Figures of the literature, published beside measured: `python -m benchmarks.figures`."""
