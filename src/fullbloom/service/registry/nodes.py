"""Nodes of one registry: their addresses and heartbeats."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import delete, insert, select, update

from fullbloom.service.registry.models import NODES, Rows


class Heartbeat(NamedTuple):
    """A node's last heartbeat: its address, the time by its own clock, and the epoch of its filters."""

    http: str
    at: int
    epoch: int


class Nodes(Rows):
    """Rows of nodes."""

    def register(self, node: str, http: str, resp: str, now: int) -> None:
        """Insert or update a node with its addresses."""
        values = {"http": http, "resp": resp, "started": now, "seen": now}
        with self._engine.begin() as connection:
            known = connection.execute(update(NODES).where(NODES.c.id == node).values(values)).rowcount
            if not known:
                connection.execute(insert(NODES).values(id=node, **values))

    def beat(self, node: str, now: int, epoch: int) -> bool:
        """Record a heartbeat and the epoch of the node's filters; return False if the node was removed."""
        with self._engine.begin() as connection:
            beat = update(NODES).where(NODES.c.id == node).values(seen=now, epoch=epoch)
            return bool(connection.execute(beat).rowcount)

    def heartbeats(self) -> dict[str, Heartbeat]:
        """Return the last heartbeat of each node."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(NODES))
            return {row.id: Heartbeat(row.http, row.seen, row.epoch) for row in rows}

    def remove(self, node: str, seen: int) -> bool:
        """Delete a node, its names and statistics; return False after a heartbeat since ``seen``."""
        with self._engine.begin() as connection:
            silent = delete(NODES).where(NODES.c.id == node, NODES.c.seen == seen)
            return bool(connection.execute(silent).rowcount)

    def list_alive(self, since: int) -> list[str]:
        """Return the nodes with a heartbeat since then."""
        with self._engine.connect() as connection:
            return list(connection.execute(select(NODES.c.id).where(NODES.c.seen > since)).scalars())

    def list_all(self) -> list[dict[str, object]]:
        """Return all rows."""
        columns = [NODES.c[name] for name in ("id", "http", "resp", "started", "seen")]
        with self._engine.connect() as connection:
            rows = connection.execute(select(*columns).order_by(NODES.c.id)).mappings()
            return [dict(row) for row in rows]
