"""Filters in Redis that this node knows and has open."""

from __future__ import annotations

import bisect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom.errors import FilterLost, FormatError, FullbloomError, IncompatibleFilters
from fullbloom.service.failures import Refused, StartError
from fullbloom.service.redis.errors import not_found, translate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.service.registry import Registry
    from fullbloom.service.settings import Settings

#: Seconds for the server to respond to one request; each request is tried twice.
_TIMEOUT = 3.0
#: Calls that may wait for the server at once: a quarter of the threads is left for filters in memory.
_MAX_CALLS = 48

_NO_SERVER = "filters in Redis need a server; start the service with --redis URL"


class Counters:
    """Lookups and adds since this node opened a filter; any thread may count.

    They are in memory, and are added to the registry now and then.
    """

    NAMES = ("hits", "misses", "adds", "new")

    def __init__(self) -> None:
        """Start at zero."""
        self._totals = dict.fromkeys(self.NAMES, 0)
        self._recorded = dict.fromkeys(self.NAMES, 0)
        self._lock = threading.Lock()

    def count_lookups(self, keys: int, found: int) -> None:
        """Count keys that were looked up."""
        with self._lock:
            self._totals["hits"] += found
            self._totals["misses"] += keys - found

    def count_adds(self, keys: int, new: int) -> None:
        """Count keys that were added."""
        with self._lock:
            self._totals["adds"] += keys
            self._totals["new"] += new

    def totals(self) -> dict[str, int]:
        """Return the counters."""
        with self._lock:
            return dict(self._totals)

    def pending(self) -> dict[str, int]:
        """Return the counts that the registry does not have yet."""
        with self._lock:
            return {name: self._totals[name] - self._recorded[name] for name in self.NAMES}

    def take_pending(self) -> dict[str, int]:
        """Return the pending counts above 0, and consider them recorded."""
        with self._lock:
            pending = {name: self._totals[name] - self._recorded[name] for name in self.NAMES}
            self._recorded = dict(self._totals)
        return {name: count for name, count in pending.items() if count}

    def return_pending(self, counts: dict[str, int]) -> None:
        """Consider counts pending again, because the registry could not take them."""
        with self._lock:
            for name, count in counts.items():
                self._recorded[name] -= count


class OpenFilter(NamedTuple):
    """A filter that this node has open."""

    row: dict[str, Any]
    filter: Any
    counters: Counters


class Handles:
    """Rows by name, as last read from the registry, and open filters."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        """Create the client; nothing is sent yet. ``StartError`` for an invalid URL."""
        self.rows, self.limits = registry.shared_filters, settings.limits
        self.client = create_client(settings)
        self._settings = settings
        #: True once the server has said whether it is a node of a cluster, and the client is one for that.
        self._is_connected = False
        self.known: dict[str, dict[str, Any]] = {}
        #: Their names, in order.
        self.names: list[str] = []
        #: By their places, which are never used twice.
        self._open: dict[str, OpenFilter] = {}
        self._state: tuple[int, ...] = ()
        self._lock = threading.Lock()
        self._calls = threading.BoundedSemaphore(_MAX_CALLS)

    def answers(self) -> bool:
        """Return whether the server responds; True without a server."""
        if self.client is None:
            return True
        from fullbloom.engines.redis.transport import ping

        try:
            return ping(self.client)
        except Exception:  # noqa: BLE001 - whatever the reason is
            return False

    def find(self, name: str) -> dict[str, Any] | None:
        """Return the row of a name as the registry has it now; None if it has none."""
        row = self.rows.find(name)
        with self._lock:
            if row is None:
                self._forget(name)
            else:
                self._learn(row)
        return row

    def require(self, name: str) -> dict[str, Any]:
        """Return the row of a name as the registry has it now; refuse a name that it does not have."""
        row = self.find(name)
        if row is None:
            raise not_found()
        return row

    def refresh(self) -> bool:
        """Read which filters the registry has; return True if they changed."""
        state = self.rows.version()
        if state == self._state:
            return False
        rows = {row["name"]: row for row in self.rows.list_all()}
        places = {row["place"] for row in rows.values()}
        with self._lock:
            self.known, self.names, self._state = rows, sorted(rows), state
            for place in self._open.keys() - places:
                del self._open[place]
        return True

    def learn(self, row: dict[str, Any]) -> None:
        """Add a filter that was just created."""
        with self._lock:
            self._learn(row)

    def forget(self, name: str, place: str) -> None:
        """Forget a name, unless another filter has it."""
        with self._lock:
            self._open.pop(place, None)
            if self.known.get(name, {}).get("place") == place:
                self._forget(name)

    def require_server(self) -> None:
        """Refuse to create a filter if the settings name no server: no retry would succeed."""
        if self.client is None:
            raise Refused("unsupported", _NO_SERVER)

    def connect(self, name: str) -> Any:
        """Return the client; refuse if the settings name no server, or it is away the first time."""
        if self.client is None or self._settings.redis is None:
            raise Refused("unavailable", _NO_SERVER)
        if not self._is_connected:
            from fullbloom.engines.redis.transport import connect

            try:
                self.client = connect(self._settings.redis.get_secret_value(), name, timeout=_TIMEOUT)
            except FullbloomError as error:
                raise translate(error) from None
            self._is_connected = True
        return self.client

    @staticmethod
    def engine() -> Any:
        """Return the engine's class."""
        from fullbloom.engines.redis import RedisBloomFilter

        return RedisBloomFilter

    def reopen(self, row: dict[str, Any]) -> Any:
        """Open the filter of a row."""
        client = self.connect(row["name"])
        return self.engine()(client, row["place"], seed=int(row["seed"]), secret=row["secret"])

    def erase(self, row: dict[str, Any]) -> None:
        """Delete a filter on the server, by its place if its manifest is gone or changed."""
        try:
            self.reopen(row).delete()
        except (FilterLost, FormatError, IncompatibleFilters):
            from fullbloom.engines.redis.transport import delete_keys

            delete_keys(self.client, row["place"])

    def open(self, row: dict[str, Any]) -> OpenFilter:
        """Return the filter of a row, which stays open."""
        one = self._open.get(row["place"])
        if one is None:
            new = OpenFilter(row, self.reopen(row), Counters())
            with self._lock:
                one = self._open.setdefault(row["place"], new)
        return one

    def list_open(self) -> list[OpenFilter]:
        """Return the filters that this node has open."""
        return list(self._open.values())

    def pending_counts(self, row: dict[str, Any]) -> dict[str, int]:
        """Return the counts of a filter that the registry does not have yet."""
        one = self._open.get(row["place"])
        return {} if one is None else one.counters.pending()

    @contextmanager
    def limit_calls(self) -> Iterator[None]:
        """Count a call inside ``with``; refuse one too many, since all of them wait if the server hangs."""
        if not self._calls.acquire(blocking=False):
            raise Refused("overloaded", "too many requests wait for the Redis server; try again")
        try:
            yield
        finally:
            self._calls.release()

    def _learn(self, row: dict[str, Any]) -> None:
        before = self.known.get(row["name"])
        if before is None:
            names = self.names.copy()  # others go through the list meanwhile
            bisect.insort(names, row["name"])
            self.names = names
        elif before["place"] != row["place"]:
            self._open.pop(before["place"], None)
        if before is None or before["place"] != row["place"]:
            # Another process may have dropped it by now: then the registry's state is that of before, and
            # only reading it again shows that.
            self._state = ()
        self.known[row["name"]] = row

    def _forget(self, name: str) -> None:
        row = self.known.pop(name, None)
        if row is not None:
            self.names = [other for other in self.names if other != name]
            self._open.pop(row["place"], None)
            self._state = ()  # the registry may have got it since it was asked


def create_client(settings: Settings) -> Any:
    """Return a client of the settings' server, without connecting; None if they name none."""
    if settings.redis is None:
        return None
    try:
        from fullbloom.engines.redis import transport
    except ImportError as error:
        raise StartError(
            f"--redis needs redis-py ({error.name} is missing): pip install 'fullbloom[redis]'"
        ) from None
    try:
        return transport.create_client(settings.redis.get_secret_value(), timeout=_TIMEOUT)
    except ValueError:
        # Its text would contain the URL, and with it the password.
        raise StartError(
            "the URL of --redis cannot be read; it is redis://[USER:PASSWORD@]HOST:PORT/DB"
        ) from None
