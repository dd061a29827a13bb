"""Versions of the registry's tables, by Alembic."""

#: The newest one; a start that finds it does not import Alembic.
LATEST = "0002"
