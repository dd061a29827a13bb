"""`RedisBloomFilter`: a filter whose cells a server holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.filters import Held
from bloomery.engines.redis.protocol import create, load, reshard, verify
from bloomery.engines.redis.protocol import open as opening
from bloomery.engines.redis.protocol.load import cells_in_memory, check_same, check_secret, united_there
from bloomery.engines.redis.protocol.open import Wanted
from bloomery.engines.redis.storage.module import opened_strings
from bloomery.engines.redis.transport.connections import transport_of

if TYPE_CHECKING:
    from typing import Self

    from bloomery._core import BloomFilter
    from bloomery.engines.redis.protocol.plan import Plan
    from bloomery.engines.redis.protocol.verify import Verification
    from bloomery.engines.redis.storage.strings import Load, Strings
    from bloomery.keys import Key, Keys

_LARGE_BATCH = 1000


class RedisBloomFilter(Held):
    """An approximate set of keys that all clients of a Redis or Valkey server share.

    Opens the filter ``name``, or makes it if there is none and ``capacity`` is given. Parameters that are
    given must be those of the filter that is there: `IncompatibleFilters` names each that is not.
    ``client`` is a ``redis.Redis`` or ``valkey.Valkey``: its pool, TLS, passwords, timeouts and retries are
    used.

    The same keys give the same bits as in a `BloomFilter` of these parameters, in one string or in several
    (``shards``), so that ``dump``, ``load`` and ``|=`` go both ways. Of clients that add one new key at a
    time, exactly one is told True. An add that had to be sent twice, because the connection broke, may be
    told False for a key of its own.

    ``backend="module"`` takes the server's own filters (BF.* of RedisBloom, Redis 8, valkey-bloom) for a
    new one instead of strings, "auto" takes them where the server answers that it has them: it grows past
    its capacity, and has no ``dump``, ``load``, ``|=`` and ``fill``.

    ``ttl=3600`` makes a filter that vanishes an hour after it was made, by the server's clock. From then on
    it holds nothing; the next add makes it anew with the same parameters, for an hour again.

    ``acks=1`` waits until one replica has what was added (WAIT, a second at most): EngineUnavailable where
    fewer do, and the add may have been done.

    Raises EngineError and its kin for what the server refuses, FilterLost when it has lost keys that it
    acknowledged. Cost: one round trip a batch of up to 16,384 keys; 57 bytes out and 71 back a key to
    check, 330 and 36 to add.

    ``seen = RedisBloomFilter(redis.Redis(), "seen", 1_000_000, fpr=0.001)``
    """

    _SHOWN = ("capacity", "fpr", "shards")
    _there: Strings

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
        """Open or make the filter."""
        confirmed = opening.checked_acks(acks)
        wanted = Wanted(
            name,
            capacity,
            fpr,
            shards,
            layout,
            scheme,
            hash,
            seed,
            secret,
            allow_eviction=allow_eviction,
            backend=backend,
            ttl=ttl,
        )
        self._open(client, wanted)
        self._there.acks = confirmed

    def _open(self, client: Any, wanted: Wanted, data: memoryview | None = None) -> None:
        self._transport = transport_of(client, wanted.name)
        self._run = self._transport.run
        wanted = replace(wanted, spread=self._transport.shards())
        self._there = self._run(opened_strings(wanted, data))
        self._run_ids = self._run(verify.run_ids(self._there.names, whole=self._transport.whole))

    @classmethod
    def find(cls, client: Any, name: str, *, secret: bytes | None = None) -> Self | None:
        """Return the filter ``name`` if it is there."""
        wanted = Wanted(name, secret=secret)
        if transport_of(client, name).run(create.standing(name)) is None:
            return None
        self = cls.__new__(cls)
        self._open(client, wanted)
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
        """Make a filter on the server with the parameters and bits of one in memory.

        Its secret is given, if it has one. Raises IncompatibleFilters if there is a filter ``name`` with
        other parameters; one with the same is loaded anew.
        """
        wanted = Wanted.of(name, filter, shards=shards, secret=secret, allow_eviction=allow_eviction, ttl=ttl)
        check_secret(wanted, filter)
        self = cls.__new__(cls)
        self._open(client, wanted, memoryview(filter).cast("B"))
        if not self._there.fresh:
            self.load(filter)
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
        batch: int = _LARGE_BATCH,
        name: str = "plan",
    ) -> Plan:
        """Tell what a new filter takes on the client's server, and batches of ``batch`` keys on the way.

        Makes nothing. Each node of a cluster that gets shards is asked; which those are goes by ``name``.
        """
        wanted = Wanted(name, capacity, fpr, shards, layout, scheme)
        transport = transport_of(client, wanted.name)
        return transport.run(opening.plan_filter(replace(wanted, spread=transport.shards()), batch))

    def add(self, key: Key, /) -> bool:
        """Add a key; True when it was certainly new. One round trip."""
        return self._run(self._there.one(key, adding=True))

    def __contains__(self, key: Key, /) -> bool:
        """Tell whether a key was probably added. One round trip."""
        return self._run(self._there.one(key, adding=False))

    def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            self._run(self._there.many(batch, adding=True, answer=False))

    def add_many(self, keys: Any) -> Any:
        """Add many keys and answer, for each, whether it was new, in the caller's kind.

        9 bytes of memory a key; what came before a failure is added.
        """
        return self._run(self._there.many(keys, adding=True))

    def contains_many(self, keys: Any) -> Any:
        """Answer for each key whether it was probably added, in the caller's kind."""
        return self._run(self._there.many(keys, adding=False))

    def add_hashed(self, hashes: Any) -> Any:
        """As ``add_many``, of ready 64-bit hashes: of ``hash_many`` with this filter's seed and secret."""
        return self._run(self._there.hashed(hashes, adding=True))

    def contains_hashed(self, hashes: Any) -> Any:
        """As ``contains_many``, of ready 64-bit hashes: a list, NumPy array or other buffer of them."""
        return self._run(self._there.hashed(hashes, adding=False))

    def __ior__(self, other: BloomFilter | RedisBloomFilter) -> Self:
        """Add the keys of another filter of the same parameters, in memory or on a server."""
        if isinstance(other, RedisBloomFilter):
            check_same(self.name, self.manifest, other.manifest)
            theirs, there = other._transport, other._there
            near = self._transport.whole and theirs.client is self._transport.client
            if near and self._run(united_there(self._there, there)):
                return self
            other = other.dump()
        self._run(load.merged(self._there, cells_in_memory(self._there, other)))
        return self

    def dump(self) -> BloomFilter:
        """Return the filter in memory, with the same bits. Keys that come meanwhile may be in it or not."""
        return self._run(load.dumped(self._there))

    def load(self, filter: BloomFilter) -> None:  # noqa: A002
        """Put the cells of a filter in memory in the place of those on the server.

        Each string changes at once. The end of a filter with a ttl stays where it is.
        """
        self._there.need_cells("load()")
        opening.check_in_memory(filter)
        self._run(reshard.replaced(self._there, cells_in_memory(self._there, filter)))

    def clear(self) -> None:
        """Forget every key; each string changes at once. A filter with a ttl begins its term anew."""
        self._run(reshard.replaced(self._there, None))

    def reshard(self, shards: int) -> None:
        """Go to another number of shards, while clients add and look.

        The old strings are read until the new ones are full; keys go to both meanwhile. Whoever is stopped
        on the way leaves a filter that every client reads rightly; the next call goes on from there. All
        cells pass through this client. ``verify`` knows nothing of keys from before.
        """
        self._run(reshard.resharded(self._there, shards))

    def delete(self) -> bool:
        """Delete the filter from the server; True when it was there."""
        return self._run(reshard.deleted(self._there))

    def fpr(self) -> float:
        """Model rate of false positives at the present load; the server counts bits, 1 ms for 10 MB.

        That of capacity where the server keeps the bits to itself (``backend="module"``).
        """
        return self._load().fpr

    def approx_count(self) -> tuple[float, float]:
        """Estimated number of distinct keys and its standard deviation; the server counts bits."""
        load = self._load()
        return load.keys, load.keys_sd

    @property
    def fill(self) -> float:
        """Share of set bits; the server counts them."""
        self._there.need_cells("fill")
        return self._load().fill or 0.0

    def _load(self) -> Load:
        return self._run(self._there.load())

    def verify(self) -> Verification:
        """Look for what this client knows that the server acknowledged; false when some of it is gone.

        Looked for are the filter itself, each shard, the number of set bits, and the last 4096 keys that
        this client added: a server that restarts without its latest data, or a replica that takes over, has
        lost those that came last.
        """
        now = self._run(verify.run_ids(self._there.names, whole=self._transport.whole))
        return self._run(verify.verified(self._there, restarted=now != self._run_ids))

    def info(self) -> dict[str, Any]:
        """Return the filter's parameters and present load."""
        return {"class": type(self).__name__, **described(self._there, self._load())}


def described(strings: Strings, load: Load) -> dict[str, Any]:
    """Return parameters and load, as far as the server tells it."""
    stood = strings.manifest
    about = {
        "name": strings.name,
        "backend": stood.backend,
        "capacity": stood.capacity,
        "target_fpr": stood.fpr,
        "approx_count": load.keys,
        "approx_count_sd": load.keys_sd,
        "fpr": load.fpr,
        "fill": load.fill,
        **stood.told(),
        "nbytes": strings.nbytes,
    }
    return {name: value for name, value in about.items() if value is not None}
