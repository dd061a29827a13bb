"""`RedisCountingFilter`: a filter whose counters a server holds, so that keys can be removed and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.filters import Held
from bloomery.engines.redis.protocol import verify
from bloomery.engines.redis.protocol.open import CountingWanted, checked_acks, opened_counters
from bloomery.engines.redis.storage.counters import Counters
from bloomery.engines.redis.transport.connections import transport_of

if TYPE_CHECKING:
    from bloomery.engines.redis.protocol.verify import Verification
    from bloomery.engines.redis.storage.counters import Do
    from bloomery.keys import Key, Keys


class RedisCountingFilter(Held):
    """An approximate multiset of keys that all clients of a Redis or Valkey server share.

    Opens the filter ``name``, or makes it if there is none and ``capacity`` is given; given parameters must
    be those that are there (`IncompatibleFilters`). The counters are those of a `CountingBloomFilter` with
    ``layout="blocked"``, ``counter_bits`` 2, 4 or 8 each, in one string or in several (``shards``).

    No key is missed that was added more often than removed, as long as only keys were removed that had been
    added. A counter that reached its maximum stays there for ever, and none falls below 0, whatever clients
    do at the same time. Of clients that remove a key's last occurrence at the same moment one is told True;
    until the others have given back what they took, keys that share counters with it may be missed. When a
    connection breaks, keys whose adding was not answered are added once more, and may be there twice; a
    removal is not repeated, and EngineUnavailable says that it may have been done.

    Raises EngineError and its kin, FilterLost when the counters are gone. Cost: one round trip a batch of up
    to 8,192 keys, two to remove, three when others remove the same keys; 57 bytes out and 71 back a key to
    look, 380 and 37 to add, 1,500 and 130 to remove. Source: as `CountingBloomFilter`.

    ``seen = RedisCountingFilter(redis.Redis(), "seen", 1_000_000)``
    """

    _SHOWN = ("capacity", "fpr", "shards")
    _there: Counters

    def __init__(
        self,
        client: Any,
        name: str,
        capacity: int | None = None,
        fpr: float | None = None,
        *,
        counter_bits: int | None = None,
        shards: int | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
        allow_eviction: bool = False,
        acks: int = 0,
    ) -> None:
        """Open or make the filter."""
        confirmed = checked_acks(acks)
        wanted = CountingWanted(name, capacity, fpr, counter_bits, shards, seed, secret, allow_eviction)
        self._transport = transport_of(client, name)
        self._run = self._transport.run
        stood = self._run(opened_counters(wanted, self._transport.shards()))
        self._there = Counters(name, stood, secret)
        self._there.acks = confirmed
        self._run_ids = self._run(verify.run_ids(self._there.names, whole=self._transport.whole))

    def add(self, key: Key, /) -> bool:
        """Add an occurrence of a key; True when it was certainly new. One round trip."""
        return self._one(key, self._there.add) > 0

    def remove(self, key: Key, /) -> None:
        """Remove an occurrence of a key; KeyError for one that was certainly not there. Two round trips."""
        if not self.discard(key):
            raise KeyError(key)

    def discard(self, key: Key, /) -> bool:
        """Remove an occurrence of a key if it seems to be there; True when it did."""
        return self._one(key, self._there.remove) > 0

    def __contains__(self, key: Key, /) -> bool:
        """Tell whether a key probably is there. One round trip."""
        return self.count(key) > 0

    def count(self, key: Key, /) -> int:
        """Return how often a key is there, rarely more; "so many or more" at the counters' maximum."""
        return self._one(key, self._there.count)

    def _one(self, key: Key, do: Do) -> int:
        return self._run(self._there.each(self._there.cells.hash(key), do))[0]

    def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            self._run(self._there.many(batch, self._there.add, answer=False))

    def add_many(self, keys: Any) -> Any:
        """Add keys in order and answer, for each, whether it was new, in the caller's kind."""
        return self._run(self._there.many(keys, self._there.add))

    def discard_many(self, keys: Any) -> Any:
        """Remove an occurrence of each key that seems to be there, and answer whether it did.

        In the caller's kind. A key that comes more often than it is there is removed as often as it is.
        """
        return self._run(self._there.many(keys, self._there.remove))

    def contains_many(self, keys: Any) -> Any:
        """Answer for each key whether it probably is there, in the caller's kind."""
        return self._run(self._there.many(keys, self._there.count))

    def count_many(self, keys: Any) -> Any:
        """Return how often each key is there, in the caller's kind."""
        return self._run(self._there.many(keys, self._there.count, counts=True))

    def counters(self) -> bytes:
        """Return all counters, byte for byte as in a `CountingBloomFilter`, the first in the lowest bits."""
        return self._run(self._there.cells_there())

    def verify(self) -> Verification:
        """Look for what this client knows that the server acknowledged; false when some of it is gone.

        Looked for are the filter itself, each shard, and the last 4096 keys that this client added and did
        not remove. One that another client has removed counts as lost; bits are not counted.
        """
        now = self._run(verify.run_ids(self._there.names, whole=self._transport.whole))
        return self._run(verify.compared(self._there, restarted=now != self._run_ids))

    def clear(self) -> None:
        """Set every counter to 0; each string changes at once."""
        self._run(self._there.cleared())

    def info(self) -> dict[str, Any]:
        """Return the filter's parameters; the server is not asked."""
        return self._parameters()

    def delete(self) -> bool:
        """Delete the filter from the server; True when it was there."""
        return self._run(self._there.deleted())
