"""A filter that the server has of its own: BF.* of RedisBloom, Redis 8, valkey-bloom or our service.

It is told the hashes of keys, 8 bytes each, lowest first: so all kinds of keys and secrets are as
everywhere, and other clients who want to ask it follow docs/keys.md. Bits and growth are the server's
business, so there is no ``dump``, ``load`` or ``|=``. Each batch asks first whether the filter is there:
BF.MEXISTS answers "no" for one that is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.engines.redis.protocol import expire
from fullbloom.engines.redis.protocol.manifest import MODULE
from fullbloom.engines.redis.protocol.open import Wanted, opened
from fullbloom.engines.redis.protocol.requests import Steps, read_number
from fullbloom.engines.redis.storage.strings import Load, Strings
from fullbloom.errors import EngineError

if TYPE_CHECKING:
    from fullbloom._core import WireBatch, WireExchange
    from fullbloom.engines.redis.protocol.keys import Snapshot

_THERE = b"\x01"


class Module(Strings):
    """The filter as the server's own."""

    def _exchanged(
        self, part: Snapshot, batch: WireBatch, *, adding: bool = False
    ) -> Steps[list[WireExchange]]:
        try:
            return (yield from super()._exchanged(part, batch, adding=adding))
        except EngineError:
            (key,) = part.names.bits
            if not (yield from read_number(key, b"EXISTS", key)):
                yield from self.refreshed(part)
                raise (yield from self.gone("the filter", key, part)) from None
            raise

    def need_cells(self, what: str) -> None:
        """Refuse what only strings have."""
        raise EngineError(
            f"filter {self.name!r}: a filter of the server's own (backend 'module') has no {what}; "
            "make it with backend='strings'"
        )

    @property
    def nbytes(self) -> int | None:
        """Return None: they are the server's business."""
        return None

    def marked(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Ask whether it is there."""
        snapshot = self.snapshot if known is None else known
        key = snapshot.names.bits[shard]
        if not (yield from read_number(key, b"EXISTS", key)):
            yield from self.refreshed(snapshot)
            raise (yield from self.gone("the filter", key, snapshot))
        return _THERE

    def load(self) -> Steps[Load]:
        """Ask how many keys were new: what was found wrongly when it came is not counted."""
        number = yield from expire.looked(self, self._card, int)
        fpr = self.manifest.fpr
        return Load(fpr, float(number), number * fpr, None)

    def counted(self) -> Steps[list[int]]:
        """Ask for the number of keys that were new."""
        return [(yield from self._card())]

    def _card(self) -> Steps[int]:
        yield from self.refreshed()
        (key,) = self.names.bits
        return (yield from read_number(key, b"BF.CARD", key))


def opened_strings(wanted: Wanted, data: bytes | memoryview | None = None) -> Steps[Strings]:
    """Return the filter, made if there is none, of the cells in ``data`` if they are given."""
    stood, fresh = yield from opened(wanted, data)
    strings = (Module if stood.backend == MODULE else Strings)(wanted.name, stood, wanted.secret)
    strings.fresh = fresh
    return strings
