"""Filters from options: of a kind, within a memory, from a file, saved from run to run."""
