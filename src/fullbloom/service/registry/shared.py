"""Filters in the registry that no node has in its memory: names, secrets and traffic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from fullbloom.service.registry.models import FILTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Engine

_MINE = FILTERS.c.node.is_(None)
#: A filter that was not made within so many milliseconds is dropped: its maker has ended.
_MADE_WITHIN = 120_000


class Shared:
    """Rows of filters that every node answers for; their number is 1 once they are made, 0 before.

    It is -1 while a filter is dropped: nobody finds it, and its name is not free until its cells are gone.
    """

    def __init__(self, engine: Engine) -> None:
        """Take what connects to the database."""
        self._engine = engine

    def claim(self, values: Mapping[str, Any]) -> int | None:
        """Take a name for a filter that is to be made: the row's number; None where the name is taken."""
        row = {**values, "node": None, "number": 0, "created": _now()}
        try:
            with self._engine.begin() as connection:
                made = connection.execute(insert(FILTERS).values(row)).inserted_primary_key
        except IntegrityError:
            return None
        return None if made is None else int(made[0])

    def made(self, row: int, place: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Say that a filter is there: its row; None where it took so long that it is dropped."""
        mine = (FILTERS.c.id == row, FILTERS.c.place == place)
        with self._engine.begin() as connection:
            claimed = update(FILTERS).where(*mine, FILTERS.c.number == 0)
            if connection.execute(claimed.values(number=1, **values)).rowcount != 1:
                return None
            return dict(connection.execute(select(FILTERS).where(*mine)).mappings().one())

    def hide(self, row: int, place: str) -> bool:
        """Begin to drop a filter; False where others have begun, or it is gone."""
        there = (FILTERS.c.id == row, FILTERS.c.place == place, FILTERS.c.number != -1)
        with self._engine.begin() as connection:
            return connection.execute(update(FILTERS).where(*there).values(number=-1)).rowcount == 1

    def abandoned(self, name: str) -> dict[str, Any] | None:
        """Hide the filter of a name whose maker has ended, and return its row; None where there is none."""
        left = (
            FILTERS.c.name == name,
            _MINE,
            FILTERS.c.number == 0,
            FILTERS.c.created < _now() - _MADE_WITHIN,
        )
        with self._engine.begin() as connection:
            if connection.execute(update(FILTERS).where(*left).values(number=-1)).rowcount == 0:
                return None
            hidden = select(FILTERS).where(FILTERS.c.name == name, _MINE, FILTERS.c.number == -1)
            return dict(connection.execute(hidden).mappings().one())

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

    def retire(self, now: int) -> list[dict[str, Any]]:
        """Hide the filters whose time has come, or whose maker has ended: their rows, and those still hidden.

        The time is looked at in the same statement: one that was put off meanwhile stays.
        """
        late = and_(FILTERS.c.number == 1, FILTERS.c.expires <= now)
        left = and_(FILTERS.c.number == 0, FILTERS.c.created < now - _MADE_WITHIN)
        due = (_MINE, or_(late, left, FILTERS.c.number == -1))
        with self._engine.connect() as connection:
            if connection.execute(select(FILTERS.c.id).where(*due).limit(1)).first() is None:
                return []
        with self._engine.begin() as connection:
            connection.execute(update(FILTERS).where(*due).values(number=-1))
            found = connection.execute(select(FILTERS).where(_MINE, FILTERS.c.number == -1))
            return [dict(row) for row in found.mappings()]

    def expire(self, row: int, at: int | None) -> bool:
        """Say when a filter is to be dropped; False where it is gone."""
        there = (FILTERS.c.id == row, FILTERS.c.number == 1)
        with self._engine.begin() as connection:
            return connection.execute(update(FILTERS).where(*there).values(expires=at)).rowcount == 1

    def add_traffic(self, row: int, counts: Mapping[str, int]) -> None:
        """Add to the counters of a filter."""
        added = {name: FILTERS.c[name] + count for name, count in counts.items()}
        with self._engine.begin() as connection:
            connection.execute(update(FILTERS).where(FILTERS.c.id == row).values(added))

    def drop(self, row: int, place: str) -> None:
        """Forget a filter, and its statistics; SQLite may have given the number of its row to another."""
        with self._engine.begin() as connection:
            connection.execute(delete(FILTERS).where(FILTERS.c.id == row, FILTERS.c.place == place))


def _now() -> int:
    return time.time_ns() // 1_000_000
