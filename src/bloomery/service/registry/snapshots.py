"""Statistics over time, thinned as they age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select

from bloomery.service.registry.models import FilterRow, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.orm import Session

_HOUR, _DAY = 3_600_000, 86_400_000
_COLUMNS = (
    "sampled_at",
    "estimated_items",
    "fpr_estimate",
    "fill",
    "bytes",
    "hits",
    "misses",
    "adds",
    "new",
    "removed",
)


class Snapshots:
    """Rows of statistics."""

    def __init__(self, session: Callable[[], Session]) -> None:
        """Take the maker of sessions."""
        self._session = session

    def add(self, samples: Iterable[tuple[int, dict[str, Any]]], at: int) -> None:
        """Write what filters told of themselves, by the numbers of their rows."""
        rows = [
            {
                "filter_id": row,
                "sampled_at": at,
                "estimated_items": info["estimated"],
                "fpr_estimate": info["fpr"],
                "fill": info["fill"],
                "bytes": info["nbytes"],
                **{name: info[name] for name in ("hits", "misses", "adds", "new", "removed")},
            }
            for row, info in samples
        ]
        if rows:
            with self._session() as session, session.begin():
                session.execute(insert(Snapshot), rows)

    def of(self, name: str, *, since: int, until: int, most: int) -> list[dict[str, Any]]:
        """Return the newest ``most`` samples of a filter between two times, the newest first."""
        columns = [getattr(Snapshot, column) for column in _COLUMNS]
        with self._session() as session:
            rows = session.execute(
                select(*columns)
                .join(FilterRow, FilterRow.id == Snapshot.filter_id)
                .where(FilterRow.name == name, Snapshot.sampled_at >= since, Snapshot.sampled_at < until)
                .order_by(Snapshot.sampled_at.desc())
                .limit(most)
            ).all()
        return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]

    def thin(self, now: int, full: float, hourly: float) -> int:
        """Keep the last sample of each hour, and later of each day, of what is older: how many went."""
        removed = 0
        for older, newer, span in (
            (0, now - int(hourly * 1000), _DAY),
            (now - int(hourly * 1000), now - int(full * 1000), _HOUR),
        ):
            within = (Snapshot.sampled_at >= older, Snapshot.sampled_at < newer)
            kept = (
                select(func.max(Snapshot.id))
                .where(*within)
                .group_by(Snapshot.filter_id, Snapshot.sampled_at - Snapshot.sampled_at % span)
            )
            with self._session() as session, session.begin():
                done = session.execute(delete(Snapshot).where(*within, Snapshot.id.not_in(kept)))
                removed += getattr(done, "rowcount", 0)
        return removed
