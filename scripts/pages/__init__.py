"""Writes what pages say of the registry, the file format and the formulas."""
