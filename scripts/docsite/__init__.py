"""Writes the source of the documentation site: the pages of docs/, and reference pages read from the code."""
