"""Open connections, and which of them is closed for a new one when the port is full."""

from __future__ import annotations

import time
from typing import Protocol

#: Seconds in which a new connection may send its first request before it can be closed.
_GRACE = 0.2


class Connection(Protocol):
    """A connection that can be closed."""

    def abort(self) -> None:
        """Close at once."""


class Connections:
    """The open connections of a port, at most ``most``.

    A connection is a *stranger* until a whole request of it was authorized. Afterwards it *waits* whenever
    the service waits for its client: for the next request, the rest of one, or until it reads a response.
    At the limit, the stranger that has sent nothing for the longest time is closed; without strangers, or
    if all of them have just come, whoever has sent nothing for the longest time. Clients with a token, and
    requests in progress, are never closed. Every operation takes constant time, because strangers come by
    the thousand.
    """

    def __init__(self, most: int) -> None:
        """Start without connections."""
        self._most = most
        self._all: set[Connection] = set()
        # With the time at which they last sent something, in that order: a dict keeps the order of insertion.
        self._strangers: dict[Connection, float] = {}
        self._waiting: dict[Connection, float] = {}

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._all)

    def add(self, connection: Connection) -> None:
        """Add a new connection, a stranger.

        At the limit, close another one; if none may be closed, this one.
        """
        if len(self._all) >= self._most:
            longest = self._find_longest() or connection
            self.remove(longest)
            longest.abort()
            if longest is connection:
                return
        self._all.add(connection)
        self._strangers[connection] = time.monotonic()

    def _find_longest(self) -> Connection | None:
        """Return the connection to close for a new one; None if none may be closed."""
        stranger, stranger_since = next(iter(self._strangers.items()), (None, 0.0))
        client, client_since = next(iter(self._waiting.items()), (None, 0.0))
        if stranger is None or client is None:
            return stranger or client
        is_new = time.monotonic() - stranger_since < _GRACE
        return client if is_new and client_since < stranger_since else stranger

    def remove(self, connection: Connection) -> None:
        """Remove a connection that was closed."""
        self._all.discard(connection)
        self._strangers.pop(connection, None)
        self._waiting.pop(connection, None)

    def note_activity(self, connection: Connection) -> None:
        """Record that a client sent something."""
        for order in (self._strangers, self._waiting):
            if connection in order:
                del order[connection]
                order[connection] = time.monotonic()

    def protect(self, connection: Connection) -> None:
        """Keep a connection open: its client has a token, or its request is in progress."""
        self._strangers.pop(connection, None)
        self._waiting.pop(connection, None)

    def wait_for(self, connection: Connection) -> None:
        """Record that the service waits for a client without a token, which is no longer a stranger."""
        if connection in self._all and connection not in self._strangers:
            self._waiting[connection] = time.monotonic()
