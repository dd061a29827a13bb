"""Filters in Redis that this node knows and has open."""

from __future__ import annotations

import bisect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom.errors import FilterLost, FormatError, FullbloomError, IncompatibleFilters
from fullbloom.service.failures import Refused, StartError
from fullbloom.service.redis.refusals import missing, refused
from fullbloom.service.redis.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.service.registry import Registry
    from fullbloom.service.settings import Settings

#: Seconds for the server to answer one question; it is asked twice.
_TIMEOUT = 3.0
#: Calls that may wait for the server at once: a quarter of the threads is left for filters in memory.
_AT_WORK = 48

_NO_SERVER = "filters in Redis need a server; start the service with --redis URL"


class One(NamedTuple):
    """A filter that this node has open."""

    row: dict[str, Any]
    handle: Any
    traffic: Traffic


class Handles:
    """Rows by name, as the registry told them last, and open filters."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        """Take what connects; nothing is sent yet. ``StartError`` for a URL that is none."""
        self.rows, self.limits = registry.shared_filters, settings.limits
        self.client = client_of(settings)
        self._settings = settings
        #: True once the server has said whether it is a node of a cluster, and the client is one for that.
        self._reached = False
        self.known: dict[str, dict[str, Any]] = {}
        #: Their names, in order.
        self.names: list[str] = []
        #: By their places, which are never used twice.
        self._open: dict[str, One] = {}
        self._state: tuple[int, ...] = ()
        self._one = threading.Lock()
        self._room = threading.BoundedSemaphore(_AT_WORK)

    def answers(self) -> bool:
        """Tell whether the server does, where there is one."""
        if self.client is None:
            return True
        from fullbloom.engines.redis.transport import ping

        try:
            return ping(self.client)
        except Exception:  # noqa: BLE001 - whatever keeps it from answering
            return False

    def find(self, name: str) -> dict[str, Any] | None:
        """Return the row of a name as the registry has it now; None where it has none."""
        row = self.rows.find(name)
        with self._one:
            if row is None:
                self._forget(name)
            else:
                self._learn(row)
        return row

    def found(self, name: str) -> dict[str, Any]:
        """Return the row of a name as the registry has it now; refuses one that it does not have."""
        row = self.find(name)
        if row is None:
            raise missing()
        return row

    def look_around(self) -> bool:
        """Learn which filters the registry has: True when they are others than before."""
        state = self.rows.state()
        if state == self._state:
            return False
        rows = {row["name"]: row for row in self.rows.all()}
        places = {row["place"] for row in rows.values()}
        with self._one:
            self.known, self.names, self._state = rows, sorted(rows), state
            for place in self._open.keys() - places:
                del self._open[place]
        return True

    def learn(self, row: dict[str, Any]) -> None:
        """Know a filter that was just made."""
        with self._one:
            self._learn(row)

    def forget(self, name: str, place: str) -> None:
        """Know a name no longer, unless another filter has it."""
        with self._one:
            self._open.pop(place, None)
            if self.known.get(name, {}).get("place") == place:
                self._forget(name)

    def require_server(self) -> None:
        """Refuse to create a filter where the settings name no server: no retry would succeed."""
        if self.client is None:
            raise Refused("unsupported", _NO_SERVER)

    def connected(self, name: str) -> Any:
        """Return the client; refuses where the settings name no server, or the first time it is away."""
        if self.client is None or self._settings.redis is None:
            raise Refused("unavailable", _NO_SERVER)
        if not self._reached:
            from fullbloom.engines.redis.transport import connect

            try:
                self.client = connect(self._settings.redis.get_secret_value(), name, timeout=_TIMEOUT)
            except FullbloomError as error:
                raise refused(error) from None
            self._reached = True
        return self.client

    @staticmethod
    def engine() -> Any:
        """Return the engine's class."""
        from fullbloom.engines.redis import RedisBloomFilter

        return RedisBloomFilter

    def opened(self, row: dict[str, Any]) -> Any:
        """Open the filter of a row."""
        client = self.connected(row["name"])
        return self.engine()(client, row["place"], seed=int(row["seed"]), secret=row["secret"])

    def erase(self, row: dict[str, Any]) -> None:
        """Delete what the server has of a filter, by its place where the manifest is gone or changed."""
        try:
            self.opened(row).delete()
        except (FilterLost, FormatError, IncompatibleFilters):
            from fullbloom.engines.redis.transport import delete_keys

            delete_keys(self.client, row["place"])

    def handle(self, row: dict[str, Any]) -> One:
        """Return the filter of a row, opened if it is not."""
        one = self._open.get(row["place"])
        if one is None:
            made = One(row, self.opened(row), Traffic())
            with self._one:
                one = self._open.setdefault(row["place"], made)
        return one

    def all_open(self) -> list[One]:
        """Return the filters that this node has open."""
        return list(self._open.values())

    def waiting(self, row: dict[str, Any]) -> dict[str, int]:
        """Return the traffic of a filter that the registry has not been told of."""
        one = self._open.get(row["place"])
        return {} if one is None else one.traffic.waiting()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep a place for a call; refuses one too many, as all of them wait while the server hangs."""
        if not self._room.acquire(blocking=False):
            raise Refused("overloaded", "too many requests wait for the Redis server; try again")
        try:
            yield
        finally:
            self._room.release()

    def _learn(self, row: dict[str, Any]) -> None:
        before = self.known.get(row["name"])
        if before is None:
            bisect.insort(self.names, row["name"])
        elif before["place"] != row["place"]:
            self._open.pop(before["place"], None)
        self.known[row["name"]] = row

    def _forget(self, name: str) -> None:
        row = self.known.pop(name, None)
        if row is not None:
            self.names.remove(name)
            self._open.pop(row["place"], None)


def client_of(settings: Settings) -> Any:
    """Return a client of the server that the settings name, not asked yet; None where they name none."""
    if settings.redis is None:
        return None
    try:
        from fullbloom.engines.redis.transport import create_client
    except ImportError as error:
        raise StartError(
            f"--redis needs redis-py ({error.name} is missing): pip install 'fullbloom[redis]'"
        ) from None
    try:
        return create_client(settings.redis.get_secret_value(), timeout=_TIMEOUT)
    except ValueError:
        # Its text would have the URL, and with it the password.
        raise StartError(
            "the URL of --redis cannot be read; it is redis://[USER:PASSWORD@]HOST:PORT/DB"
        ) from None
