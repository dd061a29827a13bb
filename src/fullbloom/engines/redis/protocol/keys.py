"""The keys of a filter on the server.

``name:fullbloom`` says what it is, ``name:bits:<id>`` holds the cells, ``name:bits:<id>:0``, ``:1`` and so on
those of a filter in shards, ``name:bits@1:<id>:0`` and so on after it went to another number of them. The
id is drawn when a filter is made, so that what a client sends that has missed its end never reaches the
next filter of the name. A filter of the server's own (BF.*) has a checksum of its id and parameters in place
of the id, as it has no tag. Filters of version 1 without a time to live have no id in their names. Shards go
to the nodes of a cluster by their names, unless the name has a tag in braces, which then chooses one node
for all.
"""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from fullbloom import _core
from fullbloom.engines.redis.protocol import manifest
from fullbloom.engines.redis.protocol.manifest import MODULE, Manifest

if TYPE_CHECKING:
    from fullbloom._core import WireCells, WireCounters
    from fullbloom.engines.redis.protocol.requests import Shard


_LONGEST = 512
_ID_DIGITS = 16


class Names:
    """The keys of one filter."""

    def __init__(self, name: str, shards: int = 1, cut: int = 0, of: str = "") -> None:
        """Take the filter's name, how often it has gone to another number of shards, and its id in names."""
        self.text = name
        self.name = name.encode()
        self.manifest = self.name + b":fullbloom"
        bits = self.name + (b":bits@%d" % cut if cut else b":bits") + (b":" + of.encode() if of else b"")
        self.bits = [bits] if shards == 1 else [b"%s:%d" % (bits, shard) for shard in range(shards)]

    @classmethod
    def of(cls, name: str, stood: Manifest) -> Names:
        """Return the keys of a filter by its manifest."""
        of = stood.id[:_ID_DIGITS] if stood.version > 1 or stood.backend == MODULE or stood.ttl else ""
        if stood.backend == MODULE and stood.version > 1:  # which has no tag: its name has the checksum
            of = stood.checksum
        return cls(name, stood.shards, stood.cut, of)


def shard_of(number: int, key: bytes) -> Shard:
    """Return a shard whose string is ``key``."""
    return number, key, beside(key, b"merge")


def beside(key: bytes, suffix: bytes) -> bytes:
    """Return a key that every cluster keeps on the node of ``key``.

    >>> beside(b"seen:bits", b"new"), beside(b"{a}:bits", b"new")
    (b'{seen:bits}:new', b'{a}:bits:new')
    """
    opened = key.find(b"{")
    closed = key.find(b"}", opened + 1)
    tagged = opened >= 0 and closed > opened + 1
    return key + b":" + suffix if tagged else b"{" + key + b"}:" + suffix


def refused(name: object) -> str | None:
    """Say what is wrong with the name of a filter; None for a good one."""
    if not isinstance(name, str):
        return f"name must be a str, got {type(name).__name__}"
    if not 0 < len(name.encode("utf-8", "replace")) <= _LONGEST:
        return f"name must have 1 to {_LONGEST} bytes, got {len(name)} characters"
    if "\x00" in name or name != name.encode("utf-8", "replace").decode():
        return "name must be text without NUL and lone surrogates"
    # Redis takes an empty tag for none, and a lone brace as well.
    if "}" in name and "{" not in name:
        return f"name has a closing brace without an opening one: {name!r}"
    return None


#: Keys that are remembered: 32 KiB of hashes.
REMEMBERED = 4096
_HASH_BYTES = 8


class Acknowledged:
    """The hashes of the last keys, in a ring, and the bits that a client has set, by shard."""

    def __init__(self, shards: int) -> None:
        """Remember nothing yet."""
        self._ring = bytearray(REMEMBERED * _HASH_BYTES)
        self._at = 0
        self._full = False
        self._one = Lock()
        #: Least numbers of set bits: those that a count found, and those that were set since.
        self.bits = [0] * shards

    def note(self, hashes: bytes) -> None:
        """Remember the hashes of keys that were added."""
        ring, size = self._ring, len(self._ring)
        hashes = hashes[-size:]
        with self._one:  # of threads that share a filter
            room = size - self._at
            ring[self._at : self._at + len(hashes)] = hashes[:room]
            if len(hashes) >= room:
                ring[: len(hashes) - room] = hashes[room:]
                self._full = True
            self._at = (self._at + len(hashes)) % size

    def hashes(self) -> bytes:
        """Return what is remembered."""
        return bytes(self._ring if self._full else self._ring[: self._at])


class Present:
    """The hashes of the last keys that a client has added and not removed, and how often it added them."""

    def __init__(self, shards: int) -> None:
        """Remember nothing yet."""
        self._times: dict[int, int] = {}
        self._one = Lock()
        #: As `Acknowledged` has it; counters may become fewer.
        self.bits = [0] * shards

    def note(self, hashes: bytes) -> None:
        """Remember the hashes of keys that were added."""
        with self._one:  # of threads that share a filter
            times = self._times
            for hash_ in array("Q", hashes[-REMEMBERED * _HASH_BYTES :]):
                times[hash_] = times.pop(hash_, 0) + 1
            if len(times) > 2 * REMEMBERED:  # so seldom that it costs nothing a key
                self._times = dict(self._last())

    def drop(self, hashes: bytes) -> None:
        """Forget keys that were removed, each as often as it was."""
        with self._one:
            for hash_ in array("Q", hashes):
                if (times := self._times.get(hash_, 0)) > 1:
                    self._times[hash_] = times - 1
                else:
                    self._times.pop(hash_, None)

    def _last(self) -> islice[tuple[int, int]]:
        return islice(self._times.items(), max(0, len(self._times) - REMEMBERED), None)

    def hashes(self) -> bytes:
        """Return what is remembered."""
        with self._one:
            return array("Q", [hash_ for hash_, _ in self._last()]).tobytes()


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


def counters_of(stood: Manifest, secret: bytes | None) -> WireCounters:
    """Return the counters of a filter, natively."""
    return _core.WireCounters(
        stood.num_bits // stood.counter_bits,
        stood.num_hashes,
        stood.counter_bits,
        shards=stood.shards,
        seed=stood.seed,
        secret=secret,
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
