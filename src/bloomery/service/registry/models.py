"""The tables. Times are milliseconds since 1970, so that every database orders them alike."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

#: SQLite numbers rows by itself in a column of this very type only.
_Number = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """Root of the tables."""


class Node(Base):
    """A process of the service."""

    __tablename__ = "nodes"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    http: Mapped[str] = mapped_column(String(255))
    resp: Mapped[str] = mapped_column(String(255), default="")
    started: Mapped[int] = mapped_column(BigInteger)
    #: When it last said that it lives.
    seen: Mapped[int] = mapped_column(BigInteger)
    #: Counts changes of its filters; other nodes read its names anew when it moved.
    epoch: Mapped[int] = mapped_column(BigInteger, default=0)


class FilterRow(Base):
    """A filter's configuration, and the node that owns it."""

    __tablename__ = "filters"
    __table_args__ = (UniqueConstraint("name"), Index("ix_filters_node", "node", "number"))

    id: Mapped[int] = mapped_column(_Number, primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    node: Mapped[str] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"))
    #: Its number on its node; 0 while the name is only claimed.
    number: Mapped[int] = mapped_column(BigInteger, default=0)
    kind: Mapped[str] = mapped_column(String(32))
    expected_items: Mapped[int] = mapped_column(BigInteger, default=0)
    fpr: Mapped[float] = mapped_column(default=0.0)
    num_bits: Mapped[int | None] = mapped_column(BigInteger)
    num_hashes: Mapped[int | None] = mapped_column(Integer)
    layout: Mapped[str | None] = mapped_column(String(32))
    scheme: Mapped[str | None] = mapped_column(String(32))
    #: 64 bits without a sign: beyond what the databases' integers hold.
    seed: Mapped[str] = mapped_column(String(20), default="0")
    keyed: Mapped[bool] = mapped_column(default=False)
    strict: Mapped[bool] = mapped_column(default=False)
    options: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    created: Mapped[int] = mapped_column(BigInteger)
    expires: Mapped[int | None] = mapped_column(BigInteger)


class Snapshot(Base):
    """What a filter told of itself at one time; counters are those since the service began."""

    __tablename__ = "snapshots"

    id: Mapped[int] = mapped_column(_Number, primary_key=True)
    filter_id: Mapped[int] = mapped_column(ForeignKey("filters.id", ondelete="CASCADE"))
    sampled_at: Mapped[int] = mapped_column(BigInteger)
    estimated_items: Mapped[float | None]
    fpr_estimate: Mapped[float]
    fill: Mapped[float | None]
    bytes: Mapped[int] = mapped_column(BigInteger)
    hits: Mapped[int] = mapped_column(BigInteger)
    misses: Mapped[int] = mapped_column(BigInteger)
    adds: Mapped[int] = mapped_column(BigInteger)
    new: Mapped[int] = mapped_column(BigInteger)
    removed: Mapped[int] = mapped_column(BigInteger)


Index("ix_snapshots_filter_time", Snapshot.filter_id, Snapshot.sampled_at.desc())


class TokenRow(Base):
    """A token, by its digest only."""

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(_Number, primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    scopes: Mapped[int] = mapped_column(Integer)
    patterns: Mapped[list[str]] = mapped_column(JSON, default=list)
    created: Mapped[int] = mapped_column(BigInteger)
