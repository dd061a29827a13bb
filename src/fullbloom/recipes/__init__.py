"""Common tasks as small importable functions; the command line uses the same functions."""
