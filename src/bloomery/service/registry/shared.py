"""Filters in the registry that no node has in its memory: names, secrets and traffic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from bloomery.service.registry.models import FILTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Engine

_MINE = FILTERS.c.node.is_(None)
#: A name whose filter was not made within so many milliseconds is free again: its maker has ended.
_MADE_WITHIN = 120_000


class Shared:
    """Rows of filters that every node answers for; their number is 1 once they are made, 0 before."""

    def __init__(self, engine: Engine) -> None:
        """Take what connects to the database."""
        self._engine = engine

    def claim(self, values: Mapping[str, Any]) -> int | None:
        """Take a name for a filter that is to be made: the row's number; None where the name is taken."""
        now = time.time_ns() // 1_000_000
        left = (FILTERS.c.name == values["name"], _MINE, FILTERS.c.number == 0)
        try:
            with self._engine.begin() as connection:
                connection.execute(delete(FILTERS).where(*left, FILTERS.c.created < now - _MADE_WITHIN))
                row = {**values, "node": None, "number": 0, "created": now}
                made = connection.execute(insert(FILTERS).values(row)).inserted_primary_key
        except IntegrityError:
            return None
        return None if made is None else int(made[0])

    def made(self, row: int, values: Mapping[str, Any]) -> None:
        """Say that a filter is there."""
        with self._engine.begin() as connection:
            connection.execute(update(FILTERS).where(FILTERS.c.id == row).values(number=1, **values))

    def find(self, name: str) -> dict[str, Any] | None:
        """Return the row of a filter that is there."""
        with self._engine.connect() as connection:
            there = select(FILTERS).where(FILTERS.c.name == name, _MINE, FILTERS.c.number == 1)
            found = connection.execute(there).mappings().first()
        return None if found is None else dict(found)

    def state(self) -> tuple[int, ...]:
        """Return what changes when filters are made or dropped: SQLite uses numbers of rows again."""
        wanted = select(func.count(FILTERS.c.id), func.max(FILTERS.c.id), func.max(FILTERS.c.created))
        with self._engine.connect() as connection:
            return tuple(connection.execute(wanted.where(_MINE, FILTERS.c.number == 1)).one())

    def all(self) -> list[dict[str, Any]]:
        """Return the rows of all filters that are there."""
        with self._engine.connect() as connection:
            found = connection.execute(select(FILTERS).where(_MINE, FILTERS.c.number == 1))
            return [dict(row) for row in found.mappings()]

    def due(self, now: int) -> list[str]:
        """Return the names of filters whose time has come."""
        with self._engine.connect() as connection:
            late = select(FILTERS.c.name).where(_MINE, FILTERS.c.number == 1, FILTERS.c.expires <= now)
            return list(connection.execute(late).scalars())

    def expire(self, row: int, at: int | None) -> None:
        """Say when a filter is to be dropped."""
        with self._engine.begin() as connection:
            connection.execute(update(FILTERS).where(FILTERS.c.id == row).values(expires=at))

    def add_traffic(self, row: int, counts: Mapping[str, int]) -> None:
        """Add to the counters of a filter."""
        added = {name: FILTERS.c[name] + count for name, count in counts.items()}
        with self._engine.begin() as connection:
            connection.execute(update(FILTERS).where(FILTERS.c.id == row).values(added))

    def drop(self, row: int) -> None:
        """Forget a filter, and its statistics."""
        with self._engine.begin() as connection:
            connection.execute(delete(FILTERS).where(FILTERS.c.id == row))
