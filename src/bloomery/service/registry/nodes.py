"""Nodes of one registry: who lives where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from bloomery.service.registry.models import NODES

if TYPE_CHECKING:
    from sqlalchemy import Engine


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

    def say(self, node: str, now: int, epoch: int) -> None:
        """Say that it still lives, and how often its filters changed."""
        with self._engine.begin() as connection:
            connection.execute(update(NODES).where(NODES.c.id == node).values(seen=now, epoch=epoch))

    def epochs(self) -> dict[str, tuple[int, str]]:
        """Return how often the filters of each node changed, and its address."""
        with self._engine.connect() as connection:
            return {row.id: (row.epoch, row.http) for row in connection.execute(select(NODES))}

    def listed(self) -> list[dict[str, object]]:
        """Return all rows."""
        columns = [NODES.c[name] for name in ("id", "http", "resp", "started", "seen")]
        with self._engine.connect() as connection:
            rows = connection.execute(select(*columns).order_by(NODES.c.id)).mappings()
            return [dict(row) for row in rows]
