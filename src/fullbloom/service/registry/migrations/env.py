"""Runs the migrations; Alembic executes this file with a connection."""

from __future__ import annotations

from alembic import context

from fullbloom.service.registry.models import METADATA

context.configure(
    connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
