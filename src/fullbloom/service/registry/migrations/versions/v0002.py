"""Filters on a Redis server belong to no node, and have a secret and counters in the registry."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_ADDED = (
    sa.Column("backend", sa.String(16), nullable=False, server_default="memory"),
    sa.Column("place", sa.String(255)),
    sa.Column("secret", sa.LargeBinary(16)),
    sa.Column("hits", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("misses", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("adds", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("new", sa.BigInteger, nullable=False, server_default="0"),
)


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table("filters") as table:
        table.alter_column("node", existing_type=sa.String(64), nullable=True)
        for column in _ADDED:
            table.add_column(column)


def downgrade() -> None:
    """Drop them, and the filters that no node has."""
    op.execute("DELETE FROM filters WHERE node IS NULL")
    with op.batch_alter_table("filters") as table:
        for column in _ADDED:
            table.drop_column(column.name)
        table.alter_column("node", existing_type=sa.String(64), nullable=False)
