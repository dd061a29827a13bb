"""The tables. Times are milliseconds since 1970, so that every database orders them alike.

They are tables of SQLAlchemy's core, not mapped classes: nothing follows a row from one request to the next,
and the mapper takes 6 MB, a third of what SQLAlchemy does.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

#: SQLite numbers rows by itself in a column of this very type only.
_Number = BigInteger().with_variant(Integer, "sqlite")

METADATA = MetaData()


class Rows:
    """Rows of one table; every call waits for the database."""

    def __init__(self, engine: Engine) -> None:
        """Use the database of ``engine``."""
        self._engine = engine


#: Alembic's own table: which version the others have.
STAMP = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))

#: Processes of the service.
NODES = Table(
    "nodes",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("http", String(255), nullable=False),
    Column("resp", String(255), nullable=False, default=""),
    Column("started", BigInteger, nullable=False),
    # Time of its last heartbeat.
    Column("seen", BigInteger, nullable=False),
    # Counts changes of its filters; other nodes read its names again when it changed.
    Column("epoch", BigInteger, nullable=False, default=0),
)

#: Filters' configurations, and the nodes that own them.
FILTERS = Table(
    "filters",
    METADATA,
    Column("id", _Number, primary_key=True),
    Column("name", String(128), nullable=False),
    # None for a filter that is not in a node's memory: every node serves it.
    Column("node", ForeignKey("nodes.id", ondelete="CASCADE")),
    # Its number on its node; 0 while the name is only claimed.
    Column("number", BigInteger, nullable=False, default=0),
    Column("kind", String(32), nullable=False),
    Column("expected_items", BigInteger, nullable=False, default=0),
    Column("fpr", Float, nullable=False, default=0.0),
    Column("num_bits", BigInteger),
    Column("num_hashes", Integer),
    Column("layout", String(32)),
    Column("scheme", String(32)),
    # 64 bits without a sign: beyond the range of the databases' integers.
    Column("seed", String(20), nullable=False, default="0"),
    Column("keyed", Boolean, nullable=False, default=False),
    Column("strict", Boolean, nullable=False, default=False),
    Column("options", JSON, nullable=False, default=dict),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    # "memory" of a node, or the engine that has it. The other columns are for filters of an engine: their
    # name there, the secret of their key hash, and their counters, summed over all nodes.
    Column("backend", String(16), nullable=False, server_default="memory"),
    Column("place", String(255)),
    Column("secret", LargeBinary(16)),
    Column("hits", BigInteger, nullable=False, server_default="0"),
    Column("misses", BigInteger, nullable=False, server_default="0"),
    Column("adds", BigInteger, nullable=False, server_default="0"),
    Column("new", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("name"),
    Index("ix_filters_node", "node", "number"),
)

#: Samples of filters' states; counters count from the start of the service.
SNAPSHOTS = Table(
    "snapshots",
    METADATA,
    Column("id", _Number, primary_key=True),
    Column("filter_id", ForeignKey("filters.id", ondelete="CASCADE"), nullable=False),
    Column("sampled_at", BigInteger, nullable=False),
    Column("estimated_items", Float),
    Column("fpr_estimate", Float, nullable=False),
    Column("fill", Float),
    Column("bytes", BigInteger, nullable=False),
    Column("hits", BigInteger, nullable=False),
    Column("misses", BigInteger, nullable=False),
    Column("adds", BigInteger, nullable=False),
    Column("new", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
)
Index("ix_snapshots_filter_time", SNAPSHOTS.c.filter_id, SNAPSHOTS.c.sampled_at.desc())

#: Tokens, by their digests only.
TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", _Number, primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    Column("scopes", Integer, nullable=False),
    Column("patterns", JSON, nullable=False, default=list),
    Column("created", BigInteger, nullable=False),
)
