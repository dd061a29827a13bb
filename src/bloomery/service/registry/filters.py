"""Filters in the registry: names claimed, rows kept in step with the store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from bloomery.service.registry.models import FilterRow, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.orm import Session


class Filters:
    """Rows of filters."""

    def __init__(self, session: Callable[[], Session]) -> None:
        """Take the maker of sessions."""
        self._session = session

    def claim(self, name: str, node: str, kind: str) -> bool:
        """Take a name for a node; False where it is taken, on whichever node."""
        row = FilterRow(name=name, node=node, kind=kind, created=time.time_ns() // 1_000_000)
        try:
            with self._session() as session, session.begin():
                session.add(row)
        except IntegrityError:
            return False
        return True

    def owner(self, name: str) -> tuple[str, str] | None:
        """Return the node that has a name, and its address."""
        with self._session() as session:
            found = session.execute(
                select(Node.id, Node.http)
                .join(FilterRow, FilterRow.node == Node.id)
                .where(FilterRow.name == name)
            ).first()
        return None if found is None else (found[0], found[1])

    def release(self, name: str, node: str) -> None:
        """Forget a name of a node, and the filter's statistics."""
        with self._session() as session, session.begin():
            session.execute(delete(FilterRow).where(FilterRow.name == name, FilterRow.node == node))

    def rename(self, old: str, new: str, node: str) -> bool:
        """Give a filter's row another name; False where it is taken."""
        try:
            with self._session() as session, session.begin():
                session.execute(
                    update(FilterRow).where(FilterRow.name == old, FilterRow.node == node).values(name=new)
                )
        except IntegrityError:
            return False
        return True

    def known(self, node: str) -> dict[int, tuple[int, str]]:
        """Return the filters of a node: by their number there, the row's number and the name."""
        with self._session() as session:
            rows = session.execute(
                select(FilterRow.number, FilterRow.id, FilterRow.name).where(
                    FilterRow.node == node, FilterRow.number > 0
                )
            ).all()
        return {number: (row, name) for number, row, name in rows}

    def elsewhere(self, node: str) -> dict[str, str]:
        """Return the names of other nodes' filters, with the address of the node."""
        with self._session() as session:
            rows = session.execute(
                select(FilterRow.name, Node.http).join(Node, FilterRow.node == Node.id).where(Node.id != node)
            )
            return {row.name: row.http for row in rows}

    def put(self, node: str, info: dict[str, Any]) -> bool:
        """Write a filter's row as the store tells it; False where another node has the name."""
        values = _values(info)
        try:
            with self._session() as session, session.begin():
                mine = FilterRow.node == node
                found = (
                    session.scalars(
                        select(FilterRow).where(mine, FilterRow.number == values["number"])
                    ).first()
                    or session.scalars(
                        select(FilterRow).where(mine, FilterRow.name == values["name"])
                    ).first()
                )
                if found is None:
                    session.add(FilterRow(node=node, **values))
                else:
                    for name, value in values.items():
                        setattr(found, name, value)
        except IntegrityError:
            return False
        return True

    def put_new(self, node: str, infos: Iterable[dict[str, Any]]) -> bool:
        """Write rows of filters new to the registry, in one go; False: none of them, a name is taken."""
        rows = [{"node": node, **_values(info)} for info in infos]
        try:
            with self._session() as session, session.begin():
                if rows:
                    session.execute(insert(FilterRow), rows)
        except IntegrityError:
            return False
        return True

    def drop(self, rows: Iterable[int]) -> None:
        """Forget rows by their numbers."""
        with self._session() as session, session.begin():
            for row in rows:
                session.execute(delete(FilterRow).where(FilterRow.id == row))

    def count(self) -> int:
        """How many there are, on all nodes."""
        with self._session() as session:
            return session.scalar(select(func.count()).select_from(FilterRow)) or 0


def _values(info: dict[str, Any]) -> dict[str, Any]:
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
