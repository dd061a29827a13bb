"""Benchmarks of Bloomery: definitions (what), measure (how), rivals (whom), record, report."""
