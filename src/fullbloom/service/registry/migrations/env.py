"""Run by Alembic with a connection at hand."""

from __future__ import annotations

from alembic import context

from fullbloom.service.registry.models import METADATA

context.configure(
    connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
