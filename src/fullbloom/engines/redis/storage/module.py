"""Filters of the server's own: BF.* of RedisBloom, Redis 8, valkey-bloom or our service.

Such a filter stores the hashes of keys, 8 bytes each, lowest first, so all kinds of keys and secrets work as
everywhere, and other clients can follow docs/keys.md to query it. The server decides on bits and growth, so
there is no ``dump``, ``load`` or ``|=``.

Each batch asks whether the filter exists, because BF.MEXISTS answers "no" for a missing filter, and how many
keys it counts (BF.CARD). Fewer than before means that the server went back, or that somebody else reserved
the key again, unless a client cleared the filter: that takes an odd generation of the manifest before the key
is replaced, and the next even one after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fullbloom.engines.redis.protocol import errors, expire
from fullbloom.engines.redis.protocol.create import is_clearing
from fullbloom.engines.redis.protocol.keys import EXISTS
from fullbloom.engines.redis.protocol.manifest import MODULE
from fullbloom.engines.redis.protocol.open import OpenOptions, open_filter
from fullbloom.engines.redis.protocol.requests import SendBatch, Steps, read_number
from fullbloom.engines.redis.storage.cardinality import CardinalityBatch
from fullbloom.engines.redis.storage.strings import LoadEstimate, Strings
from fullbloom.errors import EngineError

if TYPE_CHECKING:
    from fullbloom._core import WireBatch, WireExchange
    from fullbloom.engines.redis.protocol.keys import Snapshot
    from fullbloom.engines.redis.storage.cardinality import CardinalityExchange


class Module(Strings):
    """The filter as one of the server's own."""

    def _exchange(
        self, part: Snapshot, batch: WireBatch, *, adding: bool = False
    ) -> Steps[list[WireExchange]]:
        known, together = part.acknowledged.bits[0], CardinalityBatch(batch)
        shards, acks = [part.shards[shard] for shard in batch.shards], self.acks if adding else None
        exchanges: list[CardinalityExchange]
        try:
            # It has the methods of a batch that transports call.
            (exchanges,) = yield [SendBatch(cast("WireBatch", together), shards, acks=acks)]
            for exchange in exchanges:
                if exchange.refusals:
                    raise errors.refusal(self.name, exchange.refusals[0][1])
        except EngineError:
            (key,) = part.names.bits
            if not (yield from read_number(key, b"EXISTS", key)):
                yield from self.refresh(part)
                raise (yield from self.explain_loss("the filter", key, part)) from None
            raise
        for exchange in exchanges:
            together.take(exchange)
            if exchange.cardinality is not None and exchange.batch.states[0][1] == EXISTS:
                yield from self._check_cardinality(
                    part, known + (batch.count if adding else 0), exchange.cardinality
                )
        return [exchange.batch for exchange in exchanges]

    def _check_cardinality(self, part: Snapshot, least: int, cardinality: int) -> Steps[None]:
        """Raise if the filter counts fewer keys than ``least``, unless it was cleared."""
        bits = part.acknowledged.bits
        if cardinality >= least:
            bits[0] = max(bits[0], cardinality)
            return
        current = yield from self.refresh(part)
        if current.manifest.generation > part.manifest.generation:
            return
        if is_clearing(part.manifest):
            bits[0] = cardinality
            return
        self.rolled_back = True
        raise errors.rollback(self.name)

    def _note_set(self, part: Snapshot, shard: int, bits: int) -> None:
        """Do nothing: `_exchange` has taken the number of keys."""

    def need_cells(self, what: str) -> None:
        """Refuse what only strings support."""
        raise EngineError(
            f"filter {self.name!r}: a filter of the server's own (backend 'module') has no {what}; "
            "create it with backend='strings'"
        )

    @property
    def nbytes(self) -> int | None:
        """None: the server does not show it."""
        return None

    def read_tag(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Ask whether the filter exists."""
        snapshot = self.snapshot if known is None else known
        key = snapshot.names.bits[shard]
        if not (yield from read_number(key, b"EXISTS", key)):
            yield from self.refresh(snapshot)
            raise (yield from self.explain_loss("the filter", key, snapshot))
        return EXISTS

    def estimate_load(self) -> Steps[LoadEstimate]:
        """Read how many keys were new when they were added; false positives are not counted."""
        number = yield from expire.run_or_default(self, self._count_new, int)
        fpr = self.manifest.fpr
        return LoadEstimate(fpr, float(number), number * fpr, None)

    def count_growing(self) -> Steps[list[int]]:
        """Read the number of keys that were new."""
        number = yield from self._count_new()
        if is_clearing(self.manifest):
            bits = self.acknowledged.bits
            bits[0] = min(bits[0], number)
        return [number]

    def _count_new(self) -> Steps[int]:
        yield from self.refresh()
        (key,) = self.names.bits
        return (yield from read_number(key, b"BF.CARD", key))


def open_strings(options: OpenOptions, data: bytes | memoryview | None = None) -> Steps[Strings]:
    """Open a filter, or create it with the cells in ``data``."""
    manifest, is_new = yield from open_filter(options, data)
    kind = Module if manifest.backend == MODULE else Strings
    strings = kind(options.name, manifest, options.secret)
    strings.is_new = is_new
    return strings
