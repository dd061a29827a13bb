"""Filters in the registry: claims of names, and rows that mirror the store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from fullbloom.service.registry.models import FILTERS, NODES, Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


class Filters(Rows):
    """Rows of filters."""

    def claim(self, name: str, node: str, kind: str) -> bool:
        """Claim a name for a node; return False if any node has it."""
        row = {"name": name, "node": node, "kind": kind, "created": time.time_ns() // 1_000_000}
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(FILTERS).values(row))
        except IntegrityError:
            return False
        return True

    def find_owner(self, name: str) -> tuple[str, str] | None:
        """Return the node that owns a name, and its address."""
        with self._engine.connect() as connection:
            found = connection.execute(
                select(NODES.c.id, NODES.c.http)
                .join(FILTERS, FILTERS.c.node == NODES.c.id)
                .where(FILTERS.c.name == name)
            ).first()
        return None if found is None else (found[0], found[1])

    def release(self, name: str, node: str, number: int | None = None) -> None:
        """Delete a node's row of a name, with the filter's statistics.

        With ``number``, only the row of that filter: 0 for a name that is only claimed.
        """
        mine = [FILTERS.c.name == name, FILTERS.c.node == node]
        if number is not None:
            mine.append(FILTERS.c.number == number)
        with self._engine.begin() as connection:
            connection.execute(delete(FILTERS).where(*mine))

    def rename(self, old: str, new: str, node: str) -> bool:
        """Rename a filter's row, replacing this node's row of the new name.

        Return False if another node has the name.
        """
        try:
            with self._engine.begin() as connection:
                connection.execute(delete(FILTERS).where(FILTERS.c.name == new, FILTERS.c.node == node))
                mine = (FILTERS.c.name == old, FILTERS.c.node == node)
                connection.execute(update(FILTERS).where(*mine).values(name=new))
        except IntegrityError:
            return False
        return True

    def load(self, node: str) -> dict[int, tuple[int, str]]:
        """Return the filters of a node: by their number there, the row's id and the name."""
        columns = select(FILTERS.c.number, FILTERS.c.id, FILTERS.c.name)
        with self._engine.connect() as connection:
            rows = connection.execute(columns.where(FILTERS.c.node == node, FILTERS.c.number > 0))
            return {number: (row, name) for number, row, name in rows}

    def row_ids(self, node: str, numbers: Collection[int]) -> dict[int, int]:
        """Return the ids of the rows of some filters of a node, by their numbers there."""
        mine = (FILTERS.c.node == node, FILTERS.c.number.in_(numbers))
        with self._engine.connect() as connection:
            found = connection.execute(select(FILTERS.c.number, FILTERS.c.id).where(*mine))
            return {row.number: row.id for row in found}

    def load_remote_names(self, node: str) -> dict[str, str]:
        """Return the names of other nodes' filters, with the address of the node."""
        remote = (
            select(FILTERS.c.name, NODES.c.http)
            .join(NODES, FILTERS.c.node == NODES.c.id)
            .where(NODES.c.id != node)
        )
        with self._engine.connect() as connection:
            return {row.name: row.http for row in connection.execute(remote)}

    def record(self, node: str, info: dict[str, Any]) -> bool:
        """Insert or update a filter's row from its info; return False if another node has the name."""
        values = _to_row(info)
        try:
            with self._engine.begin() as connection:
                for column in ("number", "name"):
                    mine = (FILTERS.c.node == node, FILTERS.c[column] == values[column])
                    if connection.execute(update(FILTERS).where(*mine).values(values)).rowcount:
                        return True
                connection.execute(insert(FILTERS).values(node=node, **values))
        except IntegrityError:
            return False
        return True

    def insert(self, node: str, infos: Iterable[dict[str, Any]]) -> bool:
        """Insert rows of new filters; return False, with none inserted, if a name is taken."""
        rows = [{"node": node, **_to_row(info)} for info in infos]
        try:
            with self._engine.begin() as connection:
                if rows:
                    connection.execute(insert(FILTERS), rows)
        except IntegrityError:
            return False
        return True

    def drop(self, node: str, numbers: Iterable[int]) -> None:
        """Delete rows by their numbers on a node, which no other filter ever has: SQLite reuses ids."""
        with self._engine.begin() as connection:
            for number in numbers:
                mine = (FILTERS.c.node == node, FILTERS.c.number == number)
                connection.execute(delete(FILTERS).where(*mine))


def _to_row(info: dict[str, Any]) -> dict[str, Any]:
    details = info["details"]
    return {
        "name": info["name"],
        "number": info["id"],
        "kind": info["kind"],
        "expected_items": min(info["capacity"], (1 << 63) - 1),
        "fpr": info["target_fpr"],
        "num_bits": details.get("num_bits"),
        "num_hashes": details.get("num_hashes"),
        "layout": details.get("layout"),
        "scheme": details.get("scheme"),
        "seed": str(info["seed"]),
        "keyed": info["keyed"],
        "strict": info["strict"],
        "options": dict(info["options"]),
        "created": info["created"],
        "expires": info["expires"],
    }
