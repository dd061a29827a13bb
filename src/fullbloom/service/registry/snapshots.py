"""Statistics over time, thinned as they age."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from fullbloom.service.registry.models import FILTERS, SNAPSHOTS, Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


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


class Snapshots(Rows):
    """Rows of statistics."""

    def add(self, samples: Iterable[tuple[int, dict[str, Any]]], at: int) -> None:
        """Insert samples: ids of filters' rows, and infos."""
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
        if not rows:
            return
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(SNAPSHOTS), rows)
        except IntegrityError:  # a filter was dropped meanwhile, and its row with it
            for one in rows:
                with suppress(IntegrityError), self._engine.begin() as connection:
                    connection.execute(insert(SNAPSHOTS), one)

    def load(self, name: str, *, since: int, until: int, most: int) -> list[dict[str, Any]]:
        """Return the newest ``most`` samples of a filter between two times, the newest first."""
        at = SNAPSHOTS.c.sampled_at
        wanted = (
            select(*(SNAPSHOTS.c[column] for column in _COLUMNS))
            .join(FILTERS, FILTERS.c.id == SNAPSHOTS.c.filter_id)
            .where(FILTERS.c.name == name, at >= since, at < until)
            .order_by(at.desc())
            .limit(most)
        )
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(wanted).mappings()]

    def latest_fills(self, names: Collection[str]) -> dict[str, float]:
        """Return the fill of filters in their last samples, by name, of those that have a sample."""
        last = (
            select(SNAPSHOTS.c.id)
            .where(SNAPSHOTS.c.filter_id == FILTERS.c.id)
            .order_by(SNAPSHOTS.c.sampled_at.desc())
            .limit(1)
            .correlate(FILTERS)
            .scalar_subquery()
        )
        wanted = (
            select(FILTERS.c.name, SNAPSHOTS.c.fill)
            .join(SNAPSHOTS, SNAPSHOTS.c.id == last)
            .where(FILTERS.c.name.in_(names), SNAPSHOTS.c.fill.is_not(None))
        )
        with self._engine.connect() as connection:
            return {row.name: row.fill for row in connection.execute(wanted)}

    def thin(self, now: int, full: float, hourly: float) -> int:
        """Keep the last of older samples per hour, and later per day; return how many were deleted."""
        removed, rows, at = 0, SNAPSHOTS.c, SNAPSHOTS.c.sampled_at
        for older, newer, span in (
            (0, now - int(hourly * 1000), _DAY),
            (now - int(hourly * 1000), now - int(full * 1000), _HOUR),
        ):
            within = (at >= older, at < newer)
            last = select(func.max(rows.id)).where(*within).group_by(rows.filter_id, at - at % span)
            with self._engine.begin() as connection:
                removed += connection.execute(delete(SNAPSHOTS).where(*within, rows.id.not_in(last))).rowcount
        return removed
