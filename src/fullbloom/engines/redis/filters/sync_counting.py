# Generated from async_counting.py by scripts/generate_sync.py (`make stubs`); do not edit.

"""`RedisCountingFilter`: a filter on a server from which keys can be removed, and counted."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom.engines.redis.filters import StoredFilter
from fullbloom.engines.redis.filters.capacity import LoadWatch
from fullbloom.engines.redis.filters.domains import KnownDomains
from fullbloom.engines.redis.protocol import verify
from fullbloom.engines.redis.protocol.open import CountingOptions, open_counting, parse_acks, plan_counting
from fullbloom.engines.redis.storage.counters import Counters
from fullbloom.engines.redis.transport.connections import KeyBatcher
from fullbloom.engines.redis.transport.sync_transport import create_transport
from fullbloom.errors import FullbloomError

if TYPE_CHECKING:
    from fullbloom.engines.redis.protocol.plan import Plan
    from fullbloom.engines.redis.protocol.verify import Verification
    from fullbloom.engines.redis.storage.counters import Operation
    from fullbloom.engines.redis.transport.sync_transport import Transport
    from fullbloom.keys import Key, Keys

_LARGE_BATCH = 1000


class RedisCountingFilter(StoredFilter):
    """An approximate multiset of keys that all clients of a Redis or Valkey server share.

    Opens the filter ``name``, or creates it if it does not exist and ``capacity`` is given; given parameters
    must match those of an existing filter (`IncompatibleFilters`). The counters are those of a
    `CountingBloomFilter` with ``layout="blocked"``, ``counter_bits`` 2, 4 or 8 each, in one string or in
    several (``shards``).

    A key that was added more often than removed is always found, as long as only keys were removed that had
    been added. A counter that reached its maximum stays there, and none falls below 0, whatever clients do
    at the same time. Of clients that remove a key's last occurrence at the same moment, one gets True;
    until the others have given back what they took, keys that share counters with it may be missed. When a
    connection breaks, keys whose add was not answered are added again, and may be counted twice; a removal is
    not repeated, and EngineUnavailable says that it may have been done.

    A filter that takes keys beyond its capacity is reported once (CapacityWarning), and by ``over_capacity``:
    each object reads some of the counters now and then.

    Raises EngineError or a subclass, FilterLost when the counters are lost. Cost: one round trip a batch of
    up to 8,192 keys, two to remove, three when others remove the same keys; 57 bytes out and 71 back a key
    to look up, 380 and 37 to add, 1,500 and 130 to remove. Source: as `CountingBloomFilter`.

    ``seen = RedisCountingFilter(redis.Redis(), "seen", 1_000_000)``
    """

    _SHOWN = ("capacity", "fpr", "shards")
    _storage: Counters
    _transport: Transport

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
        """Open or create the filter."""
        confirmed = parse_acks(acks)
        options = CountingOptions(name, capacity, fpr, shards, seed, secret, allow_eviction, counter_bits)
        self._open(client, options)
        self._storage.acks = confirmed

    @classmethod
    def plan(
        cls,
        client: Any,
        capacity: int,
        fpr: float | None = None,
        *,
        counter_bits: int | None = None,
        shards: int | None = None,
        batch: int = _LARGE_BATCH,
        name: str = "plan",
    ) -> Plan:
        """Estimate a new filter as `RedisBloomFilter.plan` does; creates nothing."""
        options = CountingOptions(name, capacity, fpr, shards, counter_bits=counter_bits)
        transport = create_transport(client, name)
        return transport.run(plan_counting(options, transport.shards(), batch))

    def _open(self, client: Any, options: CountingOptions) -> None:
        self._transport = create_transport(client, options.name)
        self._run = self._transport.run
        manifest = self._run(open_counting(options, self._transport.shards()))
        storage = self._storage = Counters(options.name, manifest, options.secret)
        self._run_ids = self._query_run_ids()
        self._domains = KnownDomains(options.name)
        self._load_watch = LoadWatch(options.name, manifest)
        self._adds = KeyBatcher(partial(self._send_hashes, storage.add))
        self._counts = KeyBatcher(partial(self._send_hashes, storage.count))
        self._removals = KeyBatcher(partial(self._send_hashes, storage.remove))

    def _send_hashes(self, do: Operation, hashes: bytes) -> bytes:
        return self._run(self._storage.each(hashes, do))

    def _watch_load(self) -> None:
        """Find out now and then whether the filter is over capacity; warn once."""
        num_changed = self._storage.num_changed
        if self._load_watch.start(num_changed):
            try:
                with suppress(FullbloomError):  # the change succeeded
                    self._load_watch.take(self._run(self._storage.estimate_load()), num_changed)
            finally:
                self._load_watch.end()

    @property
    def over_capacity(self) -> bool:
        """True if the filter held more keys than its capacity, at a rate above its target, when last asked.

        An object reads 64 kB of the counters with the first key that it adds or removes, and then after at
        most as many keys as a sixteenth of the capacity; it warns once (CapacityWarning).
        """
        return self._load_watch.is_over

    def add(self, key: Key, /) -> bool:
        """Add an occurrence of a key; True if it was certainly new. One round trip."""
        new = self._adds.put(self._storage.cells.hash(key)) > 0
        self._domains.note_key(key)
        self._watch_load()
        return new

    def remove(self, key: Key, /) -> None:
        """Remove an occurrence of a key; KeyError if it is certainly absent. Two round trips."""
        if not self.discard(key):
            raise KeyError(key)

    def discard(self, key: Key, /) -> bool:
        """Remove an occurrence of a key if it is probably present; True if it was."""
        found = self._removals.put(self._storage.cells.hash(key)) > 0
        self._domains.look_up_key(key, found)
        self._watch_load()
        return found

    def __contains__(self, key: Key, /) -> bool:
        """Return whether a key is probably present. One round trip."""
        found = self._counts.put(self._storage.cells.hash(key)) > 0
        self._domains.look_up_key(key, found)
        return found

    def count(self, key: Key, /) -> int:
        """Return how often a key is present, rarely more; a counter's maximum means "so many or more"."""
        number = self._counts.put(self._storage.cells.hash(key))
        self._domains.look_up_key(key, number)
        return number

    def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            self._run(self._storage.many(batch, self._storage.add, answer=False))
            self._domains.note_many(batch)
            self._watch_load()

    def add_many(self, keys: Any) -> Any:
        """Add keys in order; answer for each whether it was new, in the caller's kind."""
        new = self._run(self._storage.many(keys, self._storage.add))
        self._domains.note_many(keys)
        self._watch_load()
        return new

    def discard_many(self, keys: Any) -> Any:
        """Remove an occurrence of each key that is probably present, and answer whether it was.

        In the caller's kind. A key that occurs more often in ``keys`` than in the filter is removed as often
        as the filter has it.
        """
        found = self._run(self._storage.many(keys, self._storage.remove))
        self._domains.look_up_many(keys, found)
        self._watch_load()
        return found

    def contains_many(self, keys: Any) -> Any:
        """Tell for each key whether it is probably present, in the caller's kind."""
        found = self._run(self._storage.many(keys, self._storage.count))
        self._domains.look_up_many(keys, found)
        return found

    def count_many(self, keys: Any) -> Any:
        """Return how often each key is present, in the caller's kind."""
        numbers = self._run(self._storage.many(keys, self._storage.count, counts=True))
        self._domains.look_up_many(keys, numbers)
        return numbers

    def counters(self) -> bytes:
        """Return all counters, byte for byte as in a `CountingBloomFilter`, the first in the lowest bits."""
        return self._run(self._storage.read_counters())

    def verify(self) -> Verification:
        """Check that the server still has what it acknowledged to this client; false if some of it is lost.

        Checks the filter itself, each shard, and the last 4096 keys that this client added and did not
        remove. A key that another client removed counts as lost; bits are not counted.
        """
        restarted = self._query_run_ids() != self._run_ids
        return self._run(verify.compare(self._storage, restarted=restarted))

    def _query_run_ids(self) -> tuple[str | None, ...]:
        return self._run(verify.query_run_ids(self._storage.names, whole=self._transport.whole))

    def clear(self) -> None:
        """Set all counters to 0; each string changes atomically."""
        self._run(self._storage.clear())
        self._domains.forget()
        self._load_watch.forget(self._storage.num_changed)

    def info(self) -> dict[str, Any]:
        """Return the filter's parameters, without asking the server."""
        return self._parameters()

    def delete(self) -> bool:
        """Delete the filter from the server; True if it existed."""
        return self._run(self._storage.delete())
