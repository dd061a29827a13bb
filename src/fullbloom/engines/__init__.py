"""Filters that live in the engines people already run; one room an engine, one extra each."""
