"""Lists of filters: searched, sorted and paged here, so that a client holds one page only.

Infos are read in batches of 200, of which only the name and the sort key of each filter are kept.
"""

from __future__ import annotations

import heapq
import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.operations import Meter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fullbloom.service.node import Node

#: Figures by which a list may be sorted.
Sort = Literal[
    "name", "kind", "keys", "load", "fill", "fpr", "target_fpr", "bytes", "operations", "hits", "created"
]
#: Most filters that a search or a sort goes through: some tenths of a second.
MOST_FILTERS = 100_000
#: Filters whose figures are read at once: an info takes 4 kB, and the interpreter waits for a millisecond.
_BATCH = 200
#: Cells are counted up to so many bytes of a filter, and of all filters of a request.
_COUNTED, _COUNTED_IN_ALL = 1 << 20, 64 << 20


class ListQuery(NamedTuple):
    """What a request lists: names by prefix, patterns of its token, and a text within them."""

    prefix: str = ""
    patterns: tuple[str, ...] = ()
    search: str = ""
    sort: Sort = "name"
    descending: bool = False


class Listing:
    """The filters that a node serves: those in its memory, and those in Redis."""

    def __init__(self, node: Node) -> None:
        """List the filters of a node."""
        self._node, self._service = node, node.service
        self._meter = Meter()

    def names(self, wanted: ListQuery, *, after: str = "", most: int) -> list[str]:
        """Return names in order, after ``after``."""
        query = {"prefix": wanted.prefix, "after": after, "patterns": list(wanted.patterns)}
        if not wanted.search:
            return self._names(**query, most=most)
        found = _find_matches(self._all_names(query), wanted.search)
        return list(islice(found, most))

    def page(self, wanted: ListQuery, *, number: int, size: int) -> tuple[list[str], int]:
        """Return the names of one page, the first of which has number 1, and how many filters match."""
        query = {"prefix": wanted.prefix, "after": "", "patterns": list(wanted.patterns)}
        names = list(_find_matches(self._all_names(query), wanted.search))
        first = (number - 1) * size
        if first >= len(names):
            return [], len(names)
        if wanted.sort == "name":
            ordered = names[::-1] if wanted.descending else names
            return ordered[first : first + size], len(names)
        keys = ((_sort_key(info, wanted.sort), info["name"]) for info in self._figures(names, wanted.sort))
        if wanted.descending:
            ranked = heapq.nlargest(first + size, keys)
        else:
            ranked = heapq.nsmallest(first + size, ((_last(key), name) for key, name in keys))
        return [name for _, name in ranked[first:]], len(names)

    def infos(self, names: Iterable[str], *, figures: bool) -> list[dict[str, Any]]:
        """Return the infos of filters; ``figures`` adds their fill and operations per second.

        The cells of small filters are counted; the fill of others is that of their last sample.
        """
        infos = [info for name in names if (info := self._find_info(name)) is not None]
        if figures:
            self._add_fills(infos)
            for info in infos:
                info["operations"] = self._meter.measure(info, time.monotonic())
        return infos

    def _names(self, **query: Any) -> list[str]:
        both = heapq.merge(self._service.names(**query), self._node.shared.names(**query))
        return list(islice(both, query["most"]))

    def _all_names(self, query: dict[str, Any]) -> list[str]:
        names = self._names(**query, most=MOST_FILTERS + 1)
        if len(names) > MOST_FILTERS:
            text = (
                f"search, sort and page go through {MOST_FILTERS} filters at most; narrow the list by prefix"
            )
            raise Refused("limit", text)
        return names

    def _find_info(self, name: str) -> dict[str, Any] | None:
        try:
            # Without a query to the registry for a name that was in Redis a moment ago.
            store = self._node.shared.find_known(name) or self._service
            info: dict[str, Any] = store.info(name, counted=False)
        except (Fault, Refused):  # deleted meanwhile
            return None
        return info

    def _figures(self, names: Sequence[str], sort: Sort) -> Iterator[dict[str, Any]]:
        """Yield the infos of all filters with these names, some at a time."""
        budget = 4 * _COUNTED_IN_ALL
        for start in range(0, len(names), _BATCH):
            infos = self._read_batch(names[start : start + _BATCH])
            if sort == "fill":
                budget -= self._add_fills(infos, budget)
            elif sort == "operations":
                now = time.monotonic()
                for info in infos:
                    info["operations"] = self._meter.measure(info, now)
            yield from infos

    def _read_batch(self, names: Sequence[str]) -> list[dict[str, Any]]:
        numbers, infos = [], []
        for name in names:
            if self._node.shared.find_known(name) is not None:
                infos += self.infos([name], figures=False)
                continue
            try:
                numbers.append(self._service.version(name)[0])
            except Fault:  # deleted meanwhile
                continue
        return infos + list(self._service.stats(numbers))

    def _add_fills(self, infos: Sequence[dict[str, Any]], budget: int = _COUNTED_IN_ALL) -> int:
        """Set the fill of filters; return the bytes of cells that were counted."""
        counted = 0
        small: dict[int, dict[str, Any]] = {}
        rest: dict[str, dict[str, Any]] = {}
        for info in infos:
            if info.get("place") is None and info["nbytes"] <= min(_COUNTED, budget - counted):
                small[info["id"]] = info
                counted += info["nbytes"]
            else:
                rest[info["name"]] = info
        for now in self._service.stats(list(small), counted=True):
            small[now["id"]].update(fill=now["fill"], estimated=now["estimated"])
        if rest:
            for name, fill in self._node.registry.snapshots.latest_fills(list(rest)).items():
                rest[name]["fill"] = fill
        return counted


def _find_matches(names: Iterable[str], search: str) -> Iterator[str]:
    """Yield the names that contain a text, case-insensitively; ``*`` matches any text.

    The parts between stars are searched for in order, so the time grows with the name only.

    >>> list(_find_matches(["logs:eu", "logs:us", "users"], "S*u")), list(_find_matches(["a.b"], "a?b"))
    (['logs:eu', 'logs:us'], [])
    """
    parts = [part for part in search.lower().split("*") if part]
    for name in names:
        lower, at = name.lower(), 0
        for part in parts:
            at = lower.find(part, at) + len(part)
            if at < len(part):
                break
        else:
            yield name


def _sort_key(info: dict[str, Any], sort: Sort) -> Any:
    """Return what a filter is sorted by; figures that are unknown come before all others."""
    if sort == "load":
        value = info["num_added"] / info["capacity"] if info["capacity"] else None
    else:
        value = info[{"keys": "num_added", "bytes": "nbytes"}.get(sort, sort)]
    if isinstance(value, str):
        return value
    return -1.0 if value is None else value


def _last(key: Any) -> Any:
    """Return a key that sorts unknown figures after all others."""
    return float("inf") if key == -1.0 else key
