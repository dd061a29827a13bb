"""The jobs of Bloomery as small importable tools; the command line is made of the same functions."""
