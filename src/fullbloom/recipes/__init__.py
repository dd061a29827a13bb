"""The jobs of Fullbloom as small importable tools; the command line is made of the same functions."""
