"""Versions of the registry's tables, by Alembic."""
