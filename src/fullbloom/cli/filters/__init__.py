"""Filters from options: of a kind, within a memory, from a file, kept from run to run."""
