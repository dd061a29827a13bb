# Generated from async_bitmap.py by scripts/generate_sync.py (`make stubs`); do not edit.

"""`RedisBitmapFilter`: a filter that another program keeps in a string by SETBIT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fullbloom.engines.redis.protocol.bitmap import Bitmap
from fullbloom.engines.redis.transport.sync_transport import create_transport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fullbloom._core import ForeignFilter
    from fullbloom.engines.redis.protocol.bitmap import BitmapVerification
    from fullbloom.engines.redis.transport.sync_transport import Transport
    from fullbloom.keys import Key


class RedisBitmapFilter:
    """A filter that another program keeps in a plain string of a Redis or Valkey server by SETBIT and GETBIT.

    The string stays under its key ``name`` and keeps its layout: both programs go on with it. Nothing in it
    says by which rule its bits were set, so you do. ``rule``: a format of bits alone, see docs/formats.md;
    ``num_bits`` and ``num_hashes``: those of its program; ``order``: "msb" if position p is bit p of the
    string, as SETBIT counts, "lsb" if the program wrote bytes whose lowest bit is the first.

    ``verify=keys`` looks up keys that are known members before anything is written, and raises
    IncompatibleFilters unless all are found; the message states how many were, and how many chance finds.

    A bare string has no owner and no checksum. If it is deleted, keys are absent, and the next add creates a
    string that has only these keys, as SETBIT does. For losses that are noticed, create a `RedisBloomFilter`.

    Raises FilterLost if the key does not exist, FormatError if it holds something else or a longer string,
    ParameterError, EngineError or a subclass for what the server refuses. Cost: one BITFIELD, one round trip,
    for 8,192 bits.

    ``seen = RedisBitmapFilter(redis.Redis(), "seen:bits", "md5-double", 95851, 7)``
    """

    _bitmap: Bitmap
    _transport: Transport
    #: The result of ``verify=keys``; None without it.
    verification: BitmapVerification | None

    def __init__(
        self,
        client: Any,
        name: str,
        rule: str,
        num_bits: int,
        num_hashes: int,
        *,
        order: Literal["lsb", "msb"] = "msb",
        verify: Iterable[Key] | None = None,
    ) -> None:
        """Open the string; nothing is written."""
        bitmap = Bitmap(name, rule, num_bits, num_hashes, order)
        self._bitmap = bitmap
        self._transport = create_transport(client, name)
        self._transport.run(bitmap.check())
        self.verification = None
        if verify is not None:
            self.verification = self._transport.run(bitmap.require(verify))

    @property
    def name(self) -> str:
        """The string's key."""
        return self._bitmap.name

    @property
    def rule(self) -> str:
        """The rule that was named."""
        return self._bitmap.rule

    @property
    def num_bits(self) -> int:
        """Bits."""
        return self._bitmap.num_bits

    @property
    def num_hashes(self) -> int:
        """Positions of a key."""
        return self._bitmap.num_hashes

    @property
    def order(self) -> str:
        """The order of the bits of a byte."""
        return self._bitmap.order

    def add(self, key: Key, /) -> bool:
        """Add a key; True if it was new: of clients that add it, exactly one gets True. One round trip."""
        return self._transport.run(self._bitmap.send([key], adding=True))[0]

    def __contains__(self, key: Key, /) -> bool:
        """Return whether a key was probably added. One round trip."""
        return self._transport.run(self._bitmap.send([key], adding=False))[0]

    def update(self, /, *keys: Iterable[Key]) -> None:
        """Add the keys of each batch."""
        for batch in keys:
            self._transport.run(self._bitmap.send(batch, adding=True))

    def add_many(self, keys: Iterable[Key]) -> list[bool]:
        """Add many keys, str or bytes; for each whether it was new. Keys before a failure are added."""
        return self._transport.run(self._bitmap.send(keys, adding=True))

    def contains_many(self, keys: Iterable[Key]) -> list[bool]:
        """Tell for each key, str or bytes, whether it was probably added."""
        return self._transport.run(self._bitmap.send(keys, adding=False))

    def verify(self, keys: Iterable[Key]) -> BitmapVerification:
        """Count how many known members are found, and how many chance would find; nothing is written."""
        return self._transport.run(self._bitmap.verify(keys))

    @property
    def fill(self) -> float:
        """Share of set bits, counted by the server (BITCOUNT)."""
        return self._transport.run(self._bitmap.fill())

    def fpr(self) -> float:
        """Model false-positive rate at the present fill."""
        return float((self._transport.run(self._bitmap.fill())) ** self.num_hashes)

    def dump(self) -> ForeignFilter:
        """Return a copy in memory, read in portions of 1 MiB; ``save`` and ``fullbloom convert`` take it on.

        Keys added meanwhile may be missing.
        """
        return self._transport.run(self._bitmap.dump())

    def __repr__(self) -> str:
        """Show the key and the rule."""
        return (
            f"{type(self).__name__}({self.name!r}, {self.rule!r}, {self.num_bits}, {self.num_hashes}, "
            f"order={self.order!r})"
        )
