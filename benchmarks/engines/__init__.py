"""Measurements of engines on real servers of this machine."""
