"""The Redis keys of a filter, and what a client knows of them: a snapshot, and acknowledged keys.

``name:fullbloom`` holds the manifest, ``name:bits:<id>`` the cells, ``name:bits:<id>:0``, ``:1`` and so on
those of a filter in shards, ``name:bits@1:<id>:0`` and so on those after a reshard. The id is random and
drawn when a filter is created, so that commands which arrive after its deletion or expiry never reach the
next filter of the name. A filter of the server's own (BF.*) has a checksum of id and parameters instead of
the id, because it has no tag. Filters of version 1 without a ttl have no id in their keys. Shards are
distributed over the nodes of a cluster by their keys, unless the filter's name has a hash tag in braces,
which selects one node for all.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from array import array
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from fullbloom import _core
from fullbloom.engines.redis.protocol.manifest import MODULE, TAG_BYTES, Manifest, read_generation

if TYPE_CHECKING:
    from fullbloom._core import WireCells, WireCounters
    from fullbloom.engines.redis.protocol.requests import Acks, Shard


_MAX_NAME_BYTES = 512
_ID_DIGITS = 16


class Names:
    """The keys of one filter."""

    def __init__(self, name: str, shards: int = 1, cut: int = 0, of: str = "") -> None:
        """Take the filter's name, its layout version (incremented by reshards), and the id in its keys."""
        self.text = name
        self.name = name.encode()
        self.manifest = self.name + b":fullbloom"
        bits = self.name + (b":bits@%d" % cut if cut else b":bits") + (b":" + of.encode() if of else b"")
        self.bits = [bits] if shards == 1 else [b"%s:%d" % (bits, shard) for shard in range(shards)]

    @classmethod
    def of(cls, name: str, manifest: Manifest) -> Names:
        """Return the keys of a filter by its manifest."""
        has_id = manifest.version > 1 or manifest.backend == MODULE or manifest.ttl
        of = manifest.id[:_ID_DIGITS] if has_id else ""
        if manifest.backend == MODULE and manifest.version > 1:
            of = manifest.checksum
        return cls(name, manifest.shards, manifest.cut, of)


def make_shard(number: int, key: bytes) -> Shard:
    """Return the shard whose string is ``key``."""
    return number, key, colocated_key(key, b"merge")


def colocated_key(key: bytes, suffix: bytes) -> bytes:
    """Return another key on the same node of a cluster.

    >>> colocated_key(b"seen:bits", b"new"), colocated_key(b"{a}:bits", b"new")
    (b'{seen:bits}:new', b'{a}:bits:new')
    """
    start = key.find(b"{")
    end = key.find(b"}", start + 1)
    has_tag = start >= 0 and end > start + 1
    return key + b":" + suffix if has_tag else b"{" + key + b"}:" + suffix


def find_name_error(name: object) -> str | None:
    """Return what is wrong with the name of a filter; None if it is valid."""
    if not isinstance(name, str):
        return f"name must be a str, got {type(name).__name__}"
    if not 0 < len(name.encode("utf-8", "replace")) <= _MAX_NAME_BYTES:
        return f"name must have 1 to {_MAX_NAME_BYTES} bytes, got {len(name)} characters"
    if "\x00" in name or name != name.encode("utf-8", "replace").decode():
        return "name must be text without NUL and lone surrogates"
    # Redis ignores an empty hash tag, and a lone brace.
    if "}" in name and "{" not in name:
        return f"name has a closing brace without an opening one: {name!r}"
    return None


#: Keys that are remembered: 32 KiB of hashes.
REMEMBERED = 4096
_HASH_BYTES = 8


class AcknowledgedKeys:
    """The hashes of the last keys that the server acknowledged, in a ring, and the bits set in each shard."""

    def __init__(self, shards: int) -> None:
        """Start without keys."""
        self._ring = bytearray(REMEMBERED * _HASH_BYTES)
        self._at = 0
        self._full = False
        self._lock = Lock()
        #: Lower bounds of the set bits: those counted last, and those set since.
        self.bits = [0] * shards

    def note(self, hashes: bytes) -> None:
        """Remember the hashes of keys that were added."""
        ring, size = self._ring, len(self._ring)
        hashes = hashes[-size:]
        with self._lock:  # threads may share a filter
            room = size - self._at
            ring[self._at : self._at + len(hashes)] = hashes[:room]
            if len(hashes) >= room:
                ring[: len(hashes) - room] = hashes[room:]
                self._full = True
            self._at = (self._at + len(hashes)) % size

    def hashes(self) -> bytes:
        """Return the remembered hashes."""
        return bytes(self._ring if self._full else self._ring[: self._at])


class PresentKeys:
    """The hashes of the last keys that a client added and did not remove, and how often it added them."""

    def __init__(self, shards: int) -> None:
        """Start without keys."""
        self._times: dict[int, int] = {}
        self._lock = Lock()
        #: As those of `AcknowledgedKeys`; always 0, because removals clear bits.
        self.bits = [0] * shards

    def note(self, hashes: bytes) -> None:
        """Remember the hashes of keys that were added."""
        with self._lock:  # threads may share a filter
            times = self._times
            for hash_ in array("Q", hashes[-REMEMBERED * _HASH_BYTES :]):
                times[hash_] = times.pop(hash_, 0) + 1
            if len(times) > 2 * REMEMBERED:  # rare enough to cost nothing per key
                self._times = dict(self._last())

    def drop(self, hashes: bytes) -> None:
        """Forget an occurrence of each key that was removed."""
        with self._lock:
            for hash_ in array("Q", hashes):
                if (times := self._times.get(hash_, 0)) > 1:
                    self._times[hash_] = times - 1
                else:
                    self._times.pop(hash_, None)

    def _last(self) -> islice[tuple[int, int]]:
        return islice(self._times.items(), max(0, len(self._times) - REMEMBERED), None)

    def hashes(self) -> bytes:
        """Return the remembered hashes."""
        with self._lock:
            return array("Q", [hash_ for hash_, _ in self._last()]).tobytes()


#: What a filter of the server's own has instead of a tag: the reply that it exists.
EXISTS = b"\x01"


def native_cells(manifest: Manifest, secret: bytes | None) -> WireCells:
    """Return the native cells of a filter."""
    return _core.WireCells(
        manifest.num_bits,
        manifest.num_hashes,
        layout=manifest.layout,
        scheme=manifest.scheme,
        hash=manifest.hash,
        shards=manifest.shards,
        seed=manifest.seed,
        secret=secret,
        native=manifest.backend == MODULE,
    )


def native_counters(manifest: Manifest, secret: bytes | None) -> WireCounters:
    """Return the native counters of a filter."""
    return _core.WireCounters(
        manifest.num_bits // manifest.counter_bits,
        manifest.num_hashes,
        manifest.counter_bits,
        shards=manifest.shards,
        seed=manifest.seed,
        secret=secret,
    )


#: Later than any generation.
LATER = 1 << 64


class Tags(NamedTuple):
    """What must follow the cells of each shard: the stable prefix of its tag, and the tag's length."""

    stable: tuple[bytes, ...]
    nbytes: int


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A filter as its manifest described it: batches are built from it, and replies compared with it."""

    manifest: Manifest
    names: Names
    cells: WireCells
    tags: Tags
    shards: tuple[Shard, ...]
    #: Keys that the server acknowledged for this snapshot.
    acknowledged: AcknowledgedKeys
    #: The latest epoch seen in each shard.
    epochs: list[int]
    #: The strings that are written, too, during a reshard.
    other: Snapshot | None
    #: Shards written to since their epochs were raised, and when that was.
    touched: set[int] = field(default_factory=set)
    raised: list[float] = field(default_factory=lambda: [time.monotonic()])

    @classmethod
    def of(cls, name: str, manifest: Manifest, secret: bytes | None) -> Snapshot:
        """Return the snapshot for a manifest."""
        names = Names.of(name, manifest)
        tags = Tags(tuple(manifest.stable_tag(shard) for shard in range(manifest.shards)), TAG_BYTES)
        return cls(
            manifest,
            names,
            native_cells(manifest, secret),
            Tags((EXISTS,), len(EXISTS)) if manifest.backend == MODULE else tags,
            tuple(make_shard(number, key) for number, key in enumerate(names.bits)),
            AcknowledgedKeys(manifest.shards),
            [0] * manifest.shards,
            cls.of(name, manifest.other_layout(), secret) if manifest.other_shards else None,
        )

    @property
    def view(self) -> tuple[str, int, int]:
        """The filter's id, the layout that is read, and the other one that is written."""
        manifest = self.manifest
        return manifest.id, manifest.cut, manifest.other_shards and manifest.other_cut + 1

    @property
    def is_copying(self) -> bool:
        """True while the old strings are read, and both old and new ones written."""
        return self.manifest.other_shards > 0 and self.manifest.other_cut > self.manifest.cut

    def is_as_known(self, shard: int, tag: bytes) -> bool:
        """Return whether a tag is the known one."""
        return len(tag) == self.tags.nbytes and tag.startswith(self.tags.stable[shard])

    def is_own(self, shard: int, tag: bytes) -> bool:
        """Return whether a tag belongs to this filter, in any generation."""
        if self.manifest.backend == MODULE:
            return tag == EXISTS
        return self.manifest.is_own(shard, tag)

    def read_generation(self, shard: int, tag: bytes) -> int:
        """Return the generation in a tag of this filter; a later one than any for another tag."""
        is_known = self.manifest.backend != MODULE and self.is_own(shard, tag)
        return read_generation(tag) if is_known else LATER

    def read_epoch(self, tag: bytes) -> int:
        """Return the epoch in a tag."""
        return 0 if self.manifest.backend == MODULE else self.manifest.read_epoch(tag)

    def with_tag(self, shard: int, tag: bytes) -> Snapshot:
        """Return a copy with another tag of a shard, whose string was replaced, and without known keys."""
        stable = list(self.tags.stable)
        stable[shard] = tag[: len(stable[shard])]
        epochs = list(self.epochs)
        epochs[shard] = self.read_epoch(tag)
        tags = Tags(tuple(stable), self.tags.nbytes)
        return replace(self, tags=tags, epochs=epochs, acknowledged=self.forget_keys())

    def forget_keys(self) -> AcknowledgedKeys:
        """Return an empty record of keys."""
        return AcknowledgedKeys(self.manifest.shards)

    def nbytes(self, shard: int) -> int:
        """Return the bytes of a shard's cells."""
        return self.cells.range(shard)[1]


class StoredCells(ABC):
    """The common base of Bloom and counting filters: the client's knowledge of the filter."""

    snapshot: Snapshot

    def __init__(self, name: str, manifest: Manifest, secret: bytes | None) -> None:
        """Take the manifest on the server."""
        self.name, self.secret = name, secret
        #: Replicas that must confirm what is added.
        self.acks: Acks | None = None
        #: True once the server was seen in an earlier state, until the filter is cleared or loaded.
        self.rolled_back = False
        self._lock = Lock()
        self.adopt(manifest)

    @abstractmethod
    def adopt(self, manifest: Manifest) -> None:
        """Switch to a new manifest and drop the acknowledgements."""

    @property
    def manifest(self) -> Manifest:
        """The manifest that this client knows."""
        return self.snapshot.manifest

    @property
    def names(self) -> Names:
        """The keys on the server."""
        return self.snapshot.names
