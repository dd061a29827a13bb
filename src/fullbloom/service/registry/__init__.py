"""The registry: filters, their statistics, tokens and nodes in SQL; SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

from fullbloom.service.registry.connection import Registry

__all__ = ["Registry"]
