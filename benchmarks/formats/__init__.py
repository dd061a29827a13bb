"""Filters of other programs, beside those programs."""
