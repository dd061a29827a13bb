"""The native module's calls for one filter in Redis, as a request found it."""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Any, TypeVar

import fullbloom
from fullbloom import theory
from fullbloom.errors import FilterLost, FullbloomError
from fullbloom.service.engine import hash_body, pack_flags
from fullbloom.service.failures import Refused
from fullbloom.service.redis.errors import not_found, translate, unsupported
from fullbloom.service.redis.handles import Counters

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.service.redis.handles import Handles, OpenFilter

T = TypeVar("T")
#: Name of this backend in the registry.
BACKEND = "redis"
#: Flags, keys, how many flags are set, "one" or "many" keys in the body, over capacity, warning of a lookup.
Results = tuple[bytes, int, int, str, bool, str | None]


class RedisFilter:
    """A filter by its row. Calls wait for the server; they take its name, as the native module's do.

    They raise ``Refused``: "missing" if the registry no longer has the filter, "unavailable" if the server
    does not respond, "lost" if it lost acknowledged keys. Conditions on versions were refused before.
    """

    def __init__(self, handles: Handles, row: dict[str, Any]) -> None:
        """Serve the filter of ``row`` through ``handles``."""
        self._handles, self.row = handles, row

    def takes_hashes(self, _name: str) -> bool:
        """Return True: the key hash is the package's own."""
        return True

    def takes_pairs(self, _name: str) -> bool:
        """Return False: a filter in Redis is not a bank."""
        return False

    def hashing(self, _name: str) -> tuple[int, bytes | None, str]:
        """Return seed, secret and base of the key hash."""
        row = self.row
        return int(row["seed"]), row["secret"], row["options"].get("hash", "xxh3")

    def check(
        self,
        _name: str,
        form: str,
        body: bytes,
        *,
        pack: bool = True,
        wait: bool = True,
        of: int | None = None,
    ) -> Any:
        """Look keys up; None if the call may not wait."""
        del of
        if not wait:
            return None

        def look_up(one: OpenFilter) -> tuple[bytes, str, bool]:
            hashes, what = self._hash_keys(form, body)
            found = bytes(one.filter.contains_hashed(hashes))
            one.counters.count_lookups(len(found), found.count(1))
            return found, what, one.filter.over_capacity

        return _make_results(*self._run(look_up, form=form), pack=pack)

    def add(self, _name: str, form: str, body: bytes, *, pack: bool = True, of: int | None = None) -> Results:
        """Add keys; a flag is set if the key was certainly new."""
        del of

        def add(one: OpenFilter) -> tuple[bytes, str, bool]:
            hashes, what = self._hash_keys(form, body)
            new = bytes(one.filter.add_hashed(hashes))
            one.counters.count_adds(len(new), new.count(1))
            return new, what, one.filter.over_capacity

        return _make_results(*self._run(add, form=form), pack=pack)

    def remove(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise unsupported("cannot remove keys; delete it, or use a kind in memory that can")

    def count(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise unsupported("does not count keys; its info estimates how many there are")

    def values(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise unsupported("has no labels or values")

    def advance(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise unsupported("has no window")

    def positions(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise unsupported("does not return positions; open its dump, whose positions() does")

    def version(self, _name: str) -> None:
        """Return None: any node may change the filter, and no node counts the changes."""

    def clear(self, _name: str, **_: Any) -> None:
        """Remove every key."""
        self._run(lambda one: one.filter.clear())

    def merge(self, source: Any) -> None:
        """Add the keys of another of these filters, or of one in memory."""
        other = source.handle() if isinstance(source, RedisFilter) else source

        def unite(one: OpenFilter) -> None:
            filter_ = one.filter
            filter_ |= other

        self._run(unite)

    def handle(self) -> Any:
        """Return the engine's filter."""
        return self._run(lambda one: one.filter)

    def dump(self, _name: str) -> bytes:
        """Return the filter as the bytes of a file."""
        return bytes(self._run(lambda one: one.filter.dump().to_bytes()))

    def load(self, data: bytes) -> None:
        """Replace the filter's cells by those in a file's bytes."""
        self._run(lambda one: one.filter.load(fullbloom.loads(data, secret=self.row["secret"])))

    def expire(self, name: str, at: int | None, **_: Any) -> dict[str, Any]:
        """Set when the filter is dropped, in milliseconds since 1970; None: never. Return its info."""
        if not self._handles.rows.expire(self.row["id"], self.row["place"], at):
            raise not_found()
        return self.info(name)

    def info(self, _name: str, *, counted: bool = True) -> dict[str, Any]:
        """Return configuration and state; the server counts the cells if ``counted``."""
        handles = self._handles
        if not counted:
            return describe(self.row, handles.pending_counts(self.row), None)
        self.row = handles.require(self.row["name"])
        info = self._run(lambda one: one.filter.info())
        return describe(self.row, handles.pending_counts(self.row), info)

    def _hash_keys(self, form: str, body: bytes) -> tuple[memoryview, str]:
        """Return a hash per key, within the limits, and what the body held: "one" or "many"."""
        limits, (seed, secret, base) = self._handles.limits, self.hashing("")
        found, what = hash_body(
            form,
            body,
            seed=seed,
            secret=secret,
            hash=base,
            most_keys=limits.batch_keys,
            key_bytes=limits.key_bytes,
        )
        words = array("Q", bytes(found))
        if sys.byteorder == "big":
            words.byteswap()
        return memoryview(words), what

    def _run(self, work: Callable[[OpenFilter], T], *, form: str = "") -> T:
        """Call ``work`` with the open filter; one that was recreated under its name is reopened first.

        Hashes are refused then: those of a request belong to the filter that it found.
        """
        handles, name = self._handles, self.row["name"]
        try:
            with handles.limit_calls():
                try:
                    return work(handles.open(self.row))
                except FilterLost:
                    row = handles.require(name)
                    if row["place"] == self.row["place"]:
                        raise
                    self.row = row
                if form.startswith("hashes"):
                    raise Refused("unavailable", f"{name} was recreated meanwhile; try again")
                return work(handles.open(row))
        except FullbloomError as error:
            raise translate(error) from None


def _make_results(flags: bytes, what: str, over: bool, *, pack: bool) -> Results:
    # The types of its keys are not recorded.
    return (pack_flags(flags) if pack else flags), len(flags), flags.count(1), what, over, None


def describe(row: dict[str, Any], pending: dict[str, int], info: dict[str, Any] | None) -> dict[str, Any]:
    """Return a filter's info, with the members of the native module's.

    pending: counts that the row does not include yet. info: the server's, if it counted the cells.
    """
    counts = {name: row[name] + pending.get(name, 0) for name in Counters.NAMES}
    details = {key: row[key] for key in ("num_bits", "num_hashes", "layout", "scheme")}
    counted = info or {}
    fpr = counted["fpr"] if info else _fpr(row, counts["new"])
    # The bits show that a filter was cleared; the counters do not.
    keys = counted.get("approx_count", counts["new"])
    return {
        "id": row["id"],
        "name": row["name"],
        "kind": row["kind"],
        "backend": BACKEND,
        "place": row["place"],
        "class": "RedisBloomFilter",
        "options": [[key, str(value)] for key, value in row["options"].items()],
        "seed": int(row["seed"]),
        "keyed": row["keyed"],
        "strict": False,
        "created": row["created"],
        "expires": row["expires"],
        "version": None,
        "capacity": row["expected_items"],
        "target_fpr": row["fpr"],
        "num_added": counts["new"],
        "fpr": fpr,
        "over_capacity": keys > row["expected_items"] and fpr > row["fpr"],
        "nbytes": -(-row["num_bits"] // 8),
        "fill": counted.get("fill"),
        "estimated": counted.get("approx_count"),
        "estimated_deviation": counted.get("approx_count_sd"),
        **counts,
        "removed": 0,
        "details": details | ({"shards": info["shards"]} if info else {}),
    }


def _fpr(row: dict[str, Any], keys: int) -> float:
    law: float = theory.fpr_at(row["layout"], row["num_bits"], row["num_hashes"], keys, row["scheme"])
    return law
