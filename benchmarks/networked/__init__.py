"""Bits that networked filters send, beside the formulas of theory.networked, for docs/networked.md."""
