"""Benchmarks of Fullbloom: definitions (what), measure (how), rivals (whom), record, report."""
