"""Nodes of one registry: who lives where."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, insert, select, update

from fullbloom.service.registry.models import NODES

if TYPE_CHECKING:
    from sqlalchemy import Engine


class Seen(NamedTuple):
    """What a node said last: its address, when by its own clock, and how often its filters had changed."""

    http: str
    at: int
    epoch: int


class Nodes:
    """Rows of nodes."""

    def __init__(self, engine: Engine) -> None:
        """Take what connects to the database."""
        self._engine = engine

    def enter(self, node: str, http: str, resp: str, now: int) -> None:
        """Say that a node lives, and where."""
        values = {"http": http, "resp": resp, "started": now, "seen": now}
        with self._engine.begin() as connection:
            known = connection.execute(update(NODES).where(NODES.c.id == node).values(values)).rowcount
            if not known:
                connection.execute(insert(NODES).values(id=node, **values))

    def say(self, node: str, now: int, epoch: int) -> bool:
        """Say that it still lives, and how often its filters changed; False where it was let go."""
        with self._engine.begin() as connection:
            said = update(NODES).where(NODES.c.id == node).values(seen=now, epoch=epoch)
            return bool(connection.execute(said).rowcount)

    def seen(self) -> dict[str, Seen]:
        """Return what the nodes said last."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(NODES))
            return {row.id: Seen(row.http, row.seen, row.epoch) for row in rows}

    def let_go(self, node: str, seen: int) -> bool:
        """Forget a node, its names and statistics; False where it has said something since ``seen``."""
        with self._engine.begin() as connection:
            gone = delete(NODES).where(NODES.c.id == node, NODES.c.seen == seen)
            return bool(connection.execute(gone).rowcount)

    def alive(self, since: int) -> list[str]:
        """Return the nodes that have said since then that they live."""
        with self._engine.connect() as connection:
            return list(connection.execute(select(NODES.c.id).where(NODES.c.seen > since)).scalars())

    def listed(self) -> list[dict[str, object]]:
        """Return all rows."""
        columns = [NODES.c[name] for name in ("id", "http", "resp", "started", "seen")]
        with self._engine.connect() as connection:
            rows = connection.execute(select(*columns).order_by(NODES.c.id)).mappings()
            return [dict(row) for row in rows]
