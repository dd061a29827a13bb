"""Writes the parts of pages that describe the registry, the file format and the formulas."""
