# Generated from async_bloom.py by scripts/generate_sync.py (`make stubs`); do not edit.

"""`RedisBloomFilter`: a Bloom filter whose cells a server stores."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom.engines.redis.filters import (
    KeyBatcher,
    KnownDomains,
    LoadWatch,
    StoredFilter,
    read_memory,
    require_same_parameters,
    require_same_secret,
)
from fullbloom.engines.redis.protocol.create import wait_until_ready
from fullbloom.engines.redis.protocol.open import OpenOptions, parse_acks, plan_filter, require_bloom_filter
from fullbloom.engines.redis.protocol.plan import LARGE_BATCH, query_run_ids
from fullbloom.engines.redis.storage import cells
from fullbloom.engines.redis.storage.foreign import open_strings
from fullbloom.engines.redis.transport.sync_transport import create_transport

if TYPE_CHECKING:
    from typing import Self

    from fullbloom._core import BloomFilter
    from fullbloom.engines.redis.protocol.plan import Plan
    from fullbloom.engines.redis.storage.counters import Counters
    from fullbloom.engines.redis.storage.strings import LoadEstimate, Strings
    from fullbloom.engines.redis.storage.verification import Verification
    from fullbloom.engines.redis.storage.windows import Window
    from fullbloom.engines.redis.transport.sync_transport import Transport
    from fullbloom.keys import Key, Keys


class ServerFilter(StoredFilter):
    """What the filters have in common that are recorded in a manifest."""

    #: True if the object watches all nodes of a cluster that have shards for restarts.
    _watches_nodes = True
    _storage: Strings | Counters | Window
    _transport: Transport
    #: The processes that held the filter when it was opened.
    _run_ids: tuple[str | None, ...]
    #: None for filters whose load is not watched.
    _load_watch: LoadWatch | None = None

    def _connect(self, client: Any, name: str) -> None:
        self._transport = create_transport(client, name)
        self._run = self._transport.run
        self._domains = KnownDomains(name)

    def _query_run_ids(self) -> tuple[str | None, ...]:
        is_single = self._transport.is_single or not self._watches_nodes
        return self._run(query_run_ids(self._storage.names, is_single=is_single))

    def _watch_load(self) -> None:
        """Measure the load now and then; warn once if the filter is over capacity."""
        watch = self._load_watch
        if watch is not None and watch.is_due():
            self._run(watch.measure())

    def _verify(self) -> Verification:
        restarted = self._query_run_ids() != self._run_ids
        return self._run(self._storage.verify(restarted=restarted))


class ServerSet(ServerFilter):
    """A filter to which keys are added, and in which they are looked up."""

    _storage: Strings | Window

    def _create_batchers(self) -> None:
        self._adds = KeyBatcher(partial(self._send_hashes, adding=True))
        self._lookups = KeyBatcher(partial(self._send_hashes, adding=False))

    def _send_hashes(self, hashes: bytes, *, adding: bool) -> bytes:
        return self._run(self._storage.run_hashes(hashes, adding=adding))

    def add(self, key: Key, /) -> bool:
        """Add a key; True if it was certainly new. One round trip."""
        new = bool(self._adds.put(self._storage.hash_key(key)))
        self._domains.record_key(key)
        self._watch_load()
        return new

    def __contains__(self, key: Key, /) -> bool:
        """Return whether a key was probably added. One round trip."""
        found = bool(self._lookups.put(self._storage.hash_key(key)))
        self._domains.look_up_key(key, found)
        return found

    def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            self._run(self._storage.run_batch(batch, adding=True, answer=False))
            self._domains.record_batch(batch)
            self._watch_load()

    def add_many(self, keys: Any) -> Any:
        """Add many keys; return for each whether it was new, in the container type of the keys.

        Takes 9 bytes of memory a key. Keys before a failure are added.
        """
        new = self._run(self._storage.run_batch(keys, adding=True))
        self._domains.record_batch(keys)
        self._watch_load()
        return new

    def contains_many(self, keys: Any) -> Any:
        """Return, for each key, whether it was probably added, in the container type of the keys."""
        found = self._run(self._storage.run_batch(keys, adding=False))
        self._domains.look_up_batch(keys, found)
        return found


class RedisBloomFilter(ServerSet):
    """An approximate set of keys that all clients of a Redis or Valkey server share.

    Opens the filter ``name``, or creates it if it does not exist and ``capacity`` is given. Parameters that
    are given must match those of an existing filter: `IncompatibleFilters` names each one that differs.
    ``client`` may be one of redis-py or valkey-py; its pool, TLS, passwords, timeouts and retries are used.

    The same keys set the same bits as in a `BloomFilter` with these parameters, in one string or in several
    (``shards``), so ``dump``, ``load`` and merging work in both directions. Of clients that add one new key
    at a time, exactly one gets the answer that it is new. An add that had to be sent twice, because the
    connection broke, may report its own key as known.

    ``backend="module"`` stores a new filter in one of the server's own (BF.* of RedisBloom, Redis 8,
    valkey-bloom) instead of strings; "auto" does so if the server answers that it has them. Such a filter
    grows past its capacity, and cannot be dumped, loaded or merged, nor does it report its ``fill``.

    ``ttl=3600`` creates a filter that expires an hour later, by the server's clock. An expired filter holds
    nothing; the next add recreates it with the same parameters, for another hour.

    A filter that takes keys beyond its capacity is reported once (CapacityWarning), and by ``over_capacity``:
    each object queries the number of set bits now and then.

    An object that added or found keys of some types warns once (KeyDomainWarning) when keys of another type
    are looked up and absent.

    ``acks=1`` waits until one replica has what was added (WAIT, at most a second): EngineUnavailable if fewer
    confirm it, although the add may have been done.

    Raises EngineError or a subclass for what the server refuses, FilterLost when it has lost keys that it
    acknowledged. Cost: one round trip a batch of up to 16,384 keys; 57 bytes out and 71 back a key to
    check, 330 and 36 to add.

    ``seen = RedisBloomFilter(redis.Redis(), "seen", 1_000_000, fpr=0.001)``
    """

    _SHOWN = ("capacity", "fpr", "shards")
    _storage: Strings
    _load_watch: LoadWatch

    def __init__(
        self,
        client: Any,
        name: str,
        capacity: int | None = None,
        fpr: float | None = None,
        *,
        shards: int | None = None,
        layout: str | None = None,
        scheme: str | None = None,
        hash: str | None = None,  # noqa: A002 - the name that it has everywhere
        seed: int | None = None,
        secret: bytes | None = None,
        backend: str | None = None,
        ttl: float | None = None,
        allow_eviction: bool = False,
        acks: int = 0,
    ) -> None:
        """Open or create the filter."""
        confirmed = parse_acks(acks)
        options = OpenOptions(
            name,
            capacity,
            fpr,
            shards,
            seed,
            secret,
            allow_eviction,
            layout,
            scheme,
            hash,
            backend,
            ttl,
        )
        self._open(client, options)
        self._storage.acks = confirmed

    def _open(self, client: Any, options: OpenOptions, data: memoryview | None = None) -> None:
        self._connect(client, options.name)
        options = replace(options, spread=self._transport.count_default_shards())
        self._storage = self._run(open_strings(options, data))
        self._run_ids = self._query_run_ids()
        self._load_watch = LoadWatch(self._storage)
        self._create_batchers()

    @classmethod
    def find(cls, client: Any, name: str, *, secret: bytes | None = None) -> Self | None:
        """Return the filter ``name``, or None if it does not exist."""
        options = OpenOptions(name, secret=secret)
        transport = create_transport(client, name)
        if transport.run(wait_until_ready(name)) is None:
            return None
        self = cls.__new__(cls)
        self._open(client, options)
        return self

    @classmethod
    def from_filter(
        cls,
        client: Any,
        name: str,
        filter: BloomFilter,  # noqa: A002
        *,
        shards: int | None = None,
        secret: bytes | None = None,
        ttl: float | None = None,
        allow_eviction: bool = False,
    ) -> Self:
        """Create a filter on the server with the parameters and bits of one in memory.

        Pass its secret, if it has one. Other clients find the filter once it has its bits. Raises
        IncompatibleFilters if a filter ``name`` exists with other parameters; one with the same is reloaded.
        """
        options = OpenOptions.from_filter(
            name, filter, shards=shards, secret=secret, allow_eviction=allow_eviction, ttl=ttl
        )
        require_same_secret(options, filter)
        self = cls.__new__(cls)
        self._open(client, options, memoryview(filter).cast("B"))
        if not self._storage.is_new:
            self.load(filter)
        self._domains.record_filter(filter)
        return self

    @classmethod
    def plan(
        cls,
        client: Any,
        capacity: int,
        fpr: float | None = None,
        *,
        shards: int | None = None,
        layout: str | None = None,
        scheme: str | None = None,
        batch: int = LARGE_BATCH,
        name: str = "plan",
    ) -> Plan:
        """Estimate the memory of a new filter on the server, and the traffic of batches of ``batch`` keys.

        Creates nothing. Each node of a cluster that would get shards is queried; ``name`` decides which.
        """
        options = OpenOptions(name, capacity, fpr, shards, layout=layout, scheme=scheme)
        transport = create_transport(client, options.name)
        return transport.run(plan_filter(replace(options, spread=transport.count_default_shards()), batch))

    @property
    def over_capacity(self) -> bool:
        """True if the filter held more keys than its capacity, at a higher rate, when last measured.

        An object queries the server with the first key that it adds, and then after at most a sixteenth of
        the capacity in new keys of its own; it warns once (CapacityWarning).
        """
        return self._load_watch.is_over

    def add_hashed(self, hashes: Any) -> Any:
        """As ``add_many``, for 64-bit hashes from ``hash_many`` with this filter's seed and secret."""
        new = self._run(self._storage.run_hashed_batch(hashes, adding=True))
        self._domains.record_hashes()
        self._watch_load()
        return new

    def contains_hashed(self, hashes: Any) -> Any:
        """As ``contains_many``, for 64-bit hashes: a list, a NumPy array or another buffer of them."""
        return self._run(self._storage.run_hashed_batch(hashes, adding=False))

    def __ior__(self, other: BloomFilter | RedisBloomFilter) -> Self:
        """Add the keys of another filter with the same parameters, in memory or on a server."""
        if isinstance(other, RedisBloomFilter):
            require_same_parameters(self.name, self.manifest, other.manifest)
            if not self._merge_on_server(other):
                self._merge_cells(other.dump())
            self._domains.record_hashes()  # its keys may be of any type
        else:
            self._merge_cells(other)
            self._domains.record_filter(other)
        return self

    def _merge_cells(self, other: BloomFilter) -> None:
        self._run(cells.merge(self._storage, read_memory(self._storage, other)))

    def _merge_on_server(self, other: RedisBloomFilter) -> bool:
        """Merge a filter on the same server; False if its cells have to pass through memory."""
        if not self._transport.is_single or other._transport.client is not self._transport.client:
            return False
        return self._run(cells.merge_on_server(self._storage, other._storage))

    def dump(self) -> BloomFilter:
        """Return the filter in memory, with the same bits. Keys added meanwhile may be missing."""
        return self._run(cells.dump(self._storage))

    def load(self, filter: BloomFilter) -> None:  # noqa: A002
        """Replace the cells on the server by those of a filter in memory.

        Each string changes atomically. A filter with a ttl keeps its expiry.
        """
        self._storage.require_cells("load()")
        require_bloom_filter(filter)
        self._run(cells.replace_cells(self._storage, read_memory(self._storage, filter)))
        self._domains.forget()
        self._load_watch.forget()
        self._domains.record_filter(filter)

    def clear(self) -> None:
        """Remove all keys; each string changes atomically. A filter with a ttl starts a new one."""
        self._run(cells.replace_cells(self._storage, None))
        self._domains.forget()
        self._load_watch.forget()

    def reshard(self, shards: int) -> None:
        """Change the number of shards, while clients add and look up keys.

        Clients read the old strings until the new ones are complete, and write keys to both meanwhile. If a
        client stops on the way, all clients still read correctly, and the next call continues. All cells pass
        through this client. ``verify`` does not know keys from before.
        """
        self._run(cells.reshard(self._storage, shards))

    def delete(self) -> bool:
        """Delete the filter from the server; True if it existed."""
        return self._run(cells.delete(self._storage))

    def fpr(self) -> float:
        """Model rate of false positives at the present load; the server counts bits, 1 ms for 10 MB.

        The rate at capacity if the server does not show the bits (``backend="module"``).
        """
        return self._load().fpr

    def approx_count(self) -> tuple[float, float]:
        """Estimated number of distinct keys and its standard deviation; the server counts bits."""
        estimate = self._load()
        return estimate.keys, estimate.keys_sd

    @property
    def fill(self) -> float:
        """Share of set bits; the server counts them."""
        self._storage.require_cells("fill")
        return self._load().fill or 0.0

    def _load(self) -> LoadEstimate:
        return self._run(self._storage.estimate_load())

    def verify(self) -> Verification:
        """Check that the server still has what it acknowledged to this client; false if some of it is lost.

        Checks the filter itself, each shard, the number of set bits, and the last 4096 keys that this client
        added: a server that restarts without its latest data, or a replica that takes over, has lost the
        latest keys.
        """
        return self._verify()

    def info(self) -> dict[str, Any]:
        """Return the filter's parameters and present load."""
        estimate = self._load()
        about = {
            "name": self.name,
            "backend": self.manifest.backend,
            "capacity": self.manifest.capacity,
            "target_fpr": self.manifest.fpr,
            "approx_count": estimate.keys,
            "approx_count_sd": estimate.keys_sd,
            "fpr": estimate.fpr,
            "fill": estimate.fill,
            **self.manifest.describe(),
            "nbytes": self._storage.nbytes,
        }
        known = {name: value for name, value in about.items() if value is not None}
        return {"class": type(self).__name__, **known}
