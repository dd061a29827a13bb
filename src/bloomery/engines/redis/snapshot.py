"""What a batch of a filter in plain strings is built from, never changed, only replaced as a whole."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from bloomery import _core
from bloomery.engines.redis import manifest
from bloomery.engines.redis.acknowledged import Acknowledged
from bloomery.engines.redis.names import Names, shard_of

if TYPE_CHECKING:
    from bloomery._core import WireCells
    from bloomery.engines.redis.asks import Shard
    from bloomery.engines.redis.manifest import Manifest

#: What a filter of the server's own has in place of a tag: the answer that it exists.
THERE = b"\x01"


def cells_of(stood: Manifest, secret: bytes | None) -> WireCells:
    """Return the cells of a filter, natively."""
    return _core.WireCells(
        stood.num_bits,
        stood.num_hashes,
        layout=stood.layout,
        scheme=stood.scheme,
        hash=stood.hash,
        shards=stood.shards,
        seed=stood.seed,
        secret=secret,
        native=stood.backend == manifest.MODULE,
    )


class Tags(NamedTuple):
    """What must be behind the cells of each shard: the beginning of its tag, and how long that is in all."""

    stable: tuple[bytes, ...]
    nbytes: int


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A filter as its manifest said it is; a batch is built from one, and its replies compared with that."""

    manifest: Manifest
    names: Names
    cells: WireCells
    tags: Tags
    shards: tuple[Shard, ...]
    #: What was acknowledged by it.
    acknowledged: Acknowledged
    #: The latest epoch that each shard was seen in.
    epochs: list[int]
    #: The strings that keys are written to, too, while the filter goes to another number of shards.
    other: Snapshot | None
    #: Shards that were written to since their epochs were raised, and when they were.
    touched: set[int] = field(default_factory=set)
    raised: list[float] = field(default_factory=lambda: [time.monotonic()])

    @classmethod
    def of(cls, name: str, stood: Manifest, secret: bytes | None) -> Snapshot:
        """Return what a manifest says."""
        names = Names.of(name, stood)
        tags = Tags(tuple(stood.stable(shard) for shard in range(stood.shards)), manifest.MARK_BYTES)
        return cls(
            stood,
            names,
            cells_of(stood, secret),
            Tags((THERE,), len(THERE)) if stood.backend == manifest.MODULE else tags,
            tuple(shard_of(number, key) for number, key in enumerate(names.bits)),
            Acknowledged(stood.shards),
            [0] * stood.shards,
            cls.of(name, stood.other(), secret) if stood.other_shards else None,
        )

    @property
    def view(self) -> tuple[str, int, int]:
        """Which filter it is, which strings are read, and which others written to."""
        stood = self.manifest
        return stood.id, stood.cut, stood.other_shards and stood.other_cut + 1

    @property
    def is_copying(self) -> bool:
        """True while the old strings are read, and written to as well as the new ones."""
        return self.manifest.other_shards > 0 and self.manifest.other_cut > self.manifest.cut

    def is_as_known(self, shard: int, tag: bytes) -> bool:
        """Tell whether a tag is what it was."""
        return len(tag) == self.tags.nbytes and tag.startswith(self.tags.stable[shard])

    def is_own(self, shard: int, tag: bytes) -> bool:
        """Tell whether a tag is that of this filter, of any generation."""
        if self.manifest.backend == manifest.MODULE:
            return tag == THERE
        return self.manifest.is_own(shard, tag)

    def epoch_of(self, tag: bytes) -> int:
        """Return the epoch in a tag."""
        return 0 if self.manifest.backend == manifest.MODULE else self.manifest.epoch_of(tag)

    def retagged(self, shard: int, tag: bytes) -> Snapshot:
        """Return it with another tag of a shard, whose string was replaced: nothing is known of its keys."""
        stable = list(self.tags.stable)
        stable[shard] = tag[: len(stable[shard])]
        epochs = list(self.epochs)
        epochs[shard] = self.epoch_of(tag)
        tags = Tags(tuple(stable), self.tags.nbytes)
        return replace(self, tags=tags, epochs=epochs, acknowledged=self.fresh())

    def fresh(self) -> Acknowledged:
        """Return what remembers nothing yet."""
        return Acknowledged(self.manifest.shards)

    def nbytes(self, shard: int) -> int:
        """Return the bytes of a shard's cells."""
        return self.cells.range(shard)[1]
