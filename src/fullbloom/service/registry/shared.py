"""Filters in the registry that no node has in its memory: names, secrets and counters."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from fullbloom.service.registry.models import FILTERS, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping


_MINE = FILTERS.c.node.is_(None)
#: A filter that is not created within so many milliseconds is dropped: its process has ended.
_CREATION_TIMEOUT = 120_000


class Shared(Rows):
    """Rows of filters that every node serves. Their number is 1 once they are created, 0 before.

    It is -1 while a filter is dropped: no lookup finds it, and its name stays taken until its cells are gone.
    SQLite reuses ids, so what changes a filter names its place, too, which no other filter ever has.
    """

    def claim(self, values: Mapping[str, Any]) -> int | None:
        """Claim a name for a new filter; return the row's id, or None if the name is taken."""
        row = {**values, "node": None, "number": 0, "created": _now()}
        try:
            with self._engine.begin() as connection:
                key = connection.execute(insert(FILTERS).values(row)).inserted_primary_key
        except IntegrityError:
            return None
        return None if key is None else int(key[0])

    def finish(self, row: int, place: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Mark a filter as created and return its row; None if it took so long that it was dropped."""
        mine = (FILTERS.c.id == row, FILTERS.c.place == place)
        with self._engine.begin() as connection:
            claimed = update(FILTERS).where(*mine, FILTERS.c.number == 0)
            if connection.execute(claimed.values(number=1, **values)).rowcount != 1:
                return None
            return dict(connection.execute(select(FILTERS).where(*mine)).mappings().one())

    def hide(self, row: int, place: str) -> bool:
        """Begin to drop a filter; return False if another process has begun, or it is gone."""
        present = (FILTERS.c.id == row, FILTERS.c.place == place, FILTERS.c.number != -1)
        with self._engine.begin() as connection:
            return connection.execute(update(FILTERS).where(*present).values(number=-1)).rowcount == 1

    def take_abandoned(self, name: str) -> dict[str, Any] | None:
        """Hide a filter whose creation was abandoned and return its row; None if the name has none."""
        abandoned = (
            FILTERS.c.name == name,
            _MINE,
            FILTERS.c.number == 0,
            FILTERS.c.created < _now() - _CREATION_TIMEOUT,
        )
        with self._engine.begin() as connection:
            if connection.execute(update(FILTERS).where(*abandoned).values(number=-1)).rowcount == 0:
                return None
            hidden = select(FILTERS).where(FILTERS.c.name == name, _MINE, FILTERS.c.number == -1)
            return dict(connection.execute(hidden).mappings().one())

    def find(self, name: str) -> dict[str, Any] | None:
        """Return the row of a filter."""
        with self._engine.connect() as connection:
            present = select(FILTERS).where(FILTERS.c.name == name, _MINE, FILTERS.c.number == 1)
            found = connection.execute(present).mappings().first()
        return None if found is None else dict(found)

    def version(self) -> tuple[int, ...]:
        """Return numbers that change when a filter is created or dropped: SQLite reuses ids of rows."""
        wanted = select(func.count(FILTERS.c.id), func.max(FILTERS.c.id), func.max(FILTERS.c.created))
        with self._engine.connect() as connection:
            return tuple(connection.execute(wanted.where(_MINE, FILTERS.c.number == 1)).one())

    def list_all(self) -> list[dict[str, Any]]:
        """Return the rows of all filters."""
        with self._engine.connect() as connection:
            found = connection.execute(select(FILTERS).where(_MINE, FILTERS.c.number == 1))
            return [dict(row) for row in found.mappings()]

    def retire(self, now: int) -> list[dict[str, Any]]:
        """Hide expired and abandoned filters; return their rows, and those hidden before.

        One statement checks the expiry and hides: a filter whose expiry was extended meanwhile stays.
        """
        expired = and_(FILTERS.c.number == 1, FILTERS.c.expires <= now)
        abandoned = and_(FILTERS.c.number == 0, FILTERS.c.created < now - _CREATION_TIMEOUT)
        due = (_MINE, or_(expired, abandoned, FILTERS.c.number == -1))
        with self._engine.connect() as connection:
            if connection.execute(select(FILTERS.c.id).where(*due).limit(1)).first() is None:
                return []
        with self._engine.begin() as connection:
            connection.execute(update(FILTERS).where(*due).values(number=-1))
            found = connection.execute(select(FILTERS).where(_MINE, FILTERS.c.number == -1))
            return [dict(row) for row in found.mappings()]

    def expire(self, row: int, place: str, at: int | None) -> bool:
        """Set when a filter expires; return False if it is gone."""
        present = (FILTERS.c.id == row, FILTERS.c.place == place, FILTERS.c.number == 1)
        with self._engine.begin() as connection:
            return connection.execute(update(FILTERS).where(*present).values(expires=at)).rowcount == 1

    def add_counts(self, row: int, place: str, counts: Mapping[str, int]) -> None:
        """Add to the counters of a filter, unless it is gone."""
        added = {name: FILTERS.c[name] + count for name, count in counts.items()}
        mine = (FILTERS.c.id == row, FILTERS.c.place == place)
        with self._engine.begin() as connection:
            connection.execute(update(FILTERS).where(*mine).values(added))

    def drop(self, row: int, place: str) -> None:
        """Delete a filter's row and statistics."""
        with self._engine.begin() as connection:
            connection.execute(delete(FILTERS).where(FILTERS.c.id == row, FILTERS.c.place == place))


def _now() -> int:
    return time.time_ns() // 1_000_000
