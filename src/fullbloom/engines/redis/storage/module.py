"""Filters of the server's own: BF.* of RedisBloom, Redis 8, valkey-bloom or our service.

Such a filter stores the hashes of keys, 8 bytes each, lowest first, so all kinds of keys and secrets work as
everywhere, and other clients can follow docs/keys.md to query it. The server decides on bits and growth, so
there is no ``dump``, ``load`` or ``|=``. Each batch first asks whether the filter exists, because BF.MEXISTS
answers "no" for a missing filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.engines.redis.protocol import expire
from fullbloom.engines.redis.protocol.keys import EXISTS
from fullbloom.engines.redis.protocol.manifest import MODULE
from fullbloom.engines.redis.protocol.open import OpenOptions, open_filter
from fullbloom.engines.redis.protocol.requests import Steps, read_number
from fullbloom.engines.redis.storage.strings import LoadEstimate, Strings
from fullbloom.errors import EngineError

if TYPE_CHECKING:
    from fullbloom._core import WireBatch, WireExchange
    from fullbloom.engines.redis.protocol.keys import Snapshot


class Module(Strings):
    """The filter as one of the server's own."""

    def _exchange(
        self, part: Snapshot, batch: WireBatch, *, adding: bool = False
    ) -> Steps[list[WireExchange]]:
        try:
            return (yield from super()._exchange(part, batch, adding=adding))
        except EngineError:
            (key,) = part.names.bits
            if not (yield from read_number(key, b"EXISTS", key)):
                yield from self.refresh(part)
                raise (yield from self.explain_loss("the filter", key, part)) from None
            raise

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
        return [(yield from self._count_new())]

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
