"""Nodes of one registry: who lives where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from bloomery.service.registry.models import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session


class Nodes:
    """Rows of nodes."""

    def __init__(self, session: Callable[[], Session]) -> None:
        """Take the maker of sessions."""
        self._session = session

    def enter(self, node: str, http: str, resp: str, now: int) -> None:
        """Say that a node lives, and where."""
        with self._session() as session, session.begin():
            row = session.get(Node, node) or Node(id=node, epoch=0)
            row.http, row.resp, row.started, row.seen = http, resp, now, now
            session.add(row)

    def say(self, node: str, now: int, epoch: int) -> None:
        """Say that it still lives, and how often its filters changed."""
        with self._session() as session, session.begin():
            session.execute(update(Node).where(Node.id == node).values(seen=now, epoch=epoch))

    def epochs(self) -> dict[str, tuple[int, str]]:
        """Return how often the filters of each node changed, and its address."""
        with self._session() as session:
            return {row.id: (row.epoch, row.http) for row in session.scalars(select(Node))}

    def listed(self) -> list[dict[str, object]]:
        """Return all rows."""
        with self._session() as session:
            return [
                {"id": row.id, "http": row.http, "resp": row.resp, "started": row.started, "seen": row.seen}
                for row in session.scalars(select(Node).order_by(Node.id))
            ]
