"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "nodes",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("http", sa.String(255), nullable=False),
        sa.Column("resp", sa.String(255), nullable=False),
        sa.Column("started", sa.BigInteger, nullable=False),
        sa.Column("seen", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "filters",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("node", sa.String(64), sa.ForeignKey("nodes.id", ondelete="CASCADE"), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("expected_items", sa.BigInteger, nullable=False),
        sa.Column("fpr", sa.Float, nullable=False),
        sa.Column("num_bits", sa.BigInteger),
        sa.Column("num_hashes", sa.Integer),
        sa.Column("layout", sa.String(32)),
        sa.Column("scheme", sa.String(32)),
        sa.Column("seed", sa.String(20), nullable=False),
        sa.Column("keyed", sa.Boolean, nullable=False),
        sa.Column("strict", sa.Boolean, nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_filters_node", "filters", ["node", "number"])
    op.create_table(
        "snapshots",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("filter_id", _NUMBER, sa.ForeignKey("filters.id", ondelete="CASCADE"), nullable=False),
        sa.Column("sampled_at", sa.BigInteger, nullable=False),
        sa.Column("estimated_items", sa.Float),
        sa.Column("fpr_estimate", sa.Float, nullable=False),
        sa.Column("fill", sa.Float),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("hits", sa.BigInteger, nullable=False),
        sa.Column("misses", sa.BigInteger, nullable=False),
        sa.Column("adds", sa.BigInteger, nullable=False),
        sa.Column("new", sa.BigInteger, nullable=False),
        sa.Column("removed", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_snapshots_filter_time", "snapshots", ["filter_id", sa.text("sampled_at DESC")])
    op.create_table(
        "tokens",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("name", sa.String(128), nullable=False, unique=True),
        sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("scopes", sa.Integer, nullable=False),
        sa.Column("patterns", sa.JSON, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop them."""
    for table in ("tokens", "snapshots", "filters", "nodes"):
        op.drop_table(table)
