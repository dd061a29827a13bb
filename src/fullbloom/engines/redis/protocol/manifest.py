"""The manifest of a filter, the Redis keys of its strings, and the keys that a server acknowledged.

The manifest has a filter's parameters and is stored beside its cells. By it every client checks that it opens
the same filter.

``name:fullbloom`` holds the manifest, ``name:bits:<id>`` the cells, ``name:bits:<id>:0``, ``:1`` and so on
those of a filter in shards, ``name:bits@1:<id>:0`` and so on those after a reshard. The id is random and
drawn when a filter is created, so that commands which arrive after its deletion or expiry never reach the
next filter of the name. A filter of the server's own (BF.*) has a checksum of id and parameters instead of
the id, because it has no tag. Filters of version 1 without a ttl have no id in their keys. Shards are
distributed over the nodes of a cluster by their keys, unless the filter's name has a hash tag in braces,
which selects one node for all.
"""

from __future__ import annotations

import json
import re
import reprlib
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.errors import EngineError, FormatError, IncompatibleFilters, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom._core import WireCells, WireCounters
    from fullbloom.engines.redis.protocol import ExpiryCommand, Shard

#: Version of the manifest and the strings; a newer one is refused. Since version 2 a tag has a checksum of
#: the parameters instead of the filter's id, and an epoch instead of the shard's number. Version 3 is that
#: of windows whose tags have an epoch, too.
VERSION, WINDOW_VERSION = 2, 3
_VERSIONS = (1, 2, 3)
#: Version of the rule that maps keys to hashes.
KEY_RULE = 1
#: Its strings are being created; all exist and their times to live are being set; done.
BUILDING, CLOSING, READY = "building", "closing", "ready"
#: Its strings are being deleted, then the manifest; the client that finds it finishes the deletion.
DELETING = "deleting"
_STATES = {BUILDING, CLOSING, READY, DELETING}
#: The owner tag behind the cells of a string.
TAG_BYTES = 16
#: Bytes of a tag that identify the owner, and of these with the generation.
OWNER_BYTES, STABLE_BYTES = 8, 12
#: The longest manifest, and the most shards: a cluster has 16,384 slots.
MAX_BYTES, MAX_SHARDS = 1 << 16, 1 << 16
#: The longest string on a server, and the longest key that a filter's name is part of.
MAX_STRING_BYTES, MAX_NAME_BYTES = 512 << 20, 512
#: Characters of the name of a hash or a scheme.
_MAX_NAME = 64
_MAX_GENERATION = (1 << 32) - 2
#: Limits of a window, in seconds (a batch must arrive within a generation), and of its generations.
MIN_WINDOW, MAX_WINDOW = 0.1, 1e12
MIN_GENERATIONS, MAX_GENERATIONS = 2, 16
#: What stores the cells: strings, or a filter of the server's own.
STRINGS, MODULE = "strings", "module"
_ID_BYTES = 8
#: Digits of the id in the keys of strings.
ID_DIGITS = 16
#: The fields that identify the owner of a string: all that never change.
_CHECKSUMMED = (
    *("id", "backend", "capacity", "fpr", "layout", "scheme", "hash", "num_bits", "num_hashes", "shards"),
    *("seed", "secret", "counter_bits", "window", "generations", "layout_version", "key_rule", "version"),
    "ttl",
)
#: The names of fields in the stored text that differ from those here.
_STORED_NAMES = {"layout_version": "cut", "other_layout_version": "other_cut"}
_FIELD_NAMES = {stored: field for field, stored in _STORED_NAMES.items()}
#: Values of fields that older manifests lack.
_DEFAULTS = {"ttl": 0.0, "expires": 0}
#: Limits of a filter's ttl, in seconds.
MIN_TTL, MAX_TTL = 0.1, 1e9


@dataclass(frozen=True)
class Manifest:
    """A filter on a server."""

    #: Random, so that a later filter of the same name is a different one.
    id: str
    backend: str
    capacity: int
    fpr: float
    layout: str
    scheme: str
    hash: str
    num_bits: int
    num_hashes: int
    shards: int
    seed: int
    #: The secret's fingerprint, "" without one; never the secret.
    secret: str
    #: Incremented when the cells are cleared, loaded or resharded.
    generation: int = 0
    #: Of a counting filter; 0 for others.
    counter_bits: int = 0
    #: Seconds for which keys are remembered, and the generations used in turn; 0 without a window.
    window: float = 0.0
    generations: int = 0
    #: The layout version of the strings that are read (incremented by reshards); during a reshard, also the
    #: shards and the layout version of the other strings that are written. Otherwise ``other_layout_version``
    #: is a random number of the client that replaced the cells last, by which it recognizes its own change.
    layout_version: int = 0
    other_shards: int = 0
    other_layout_version: int = 0
    state: str = BUILDING
    key_rule: int = KEY_RULE
    version: int = VERSION
    #: Seconds until it expires, 0 for never; and the millisecond since 1970 at which it does.
    ttl: float = 0.0
    expires: int = 0
    #: The recorded generations of a window, in the format of `generations`; "" for other filters.
    begun: str = ""

    def to_bytes(self) -> bytes:
        """Return the stored text; a filter that never expires has no ttl in it."""
        stored = {_STORED_NAMES.get(field, field): value for field, value in asdict(self).items()}
        if not self.window:
            del stored["begun"]
        if not self.ttl:
            for field in _DEFAULTS:
                del stored[field]
        return json.dumps(stored, sort_keys=True).encode()

    @cached_property
    def _parameters(self) -> bytes:
        return json.dumps([getattr(self, field) for field in _CHECKSUMMED]).encode()

    @property
    def checksum(self) -> str:
        """Checksum of the parameters where there is no tag: 16 hexadecimal digits."""
        return self.compute_owner(0).hex()

    def compute_owner(self, shard: int) -> bytes:
        """Return the part of a shard's tag that identifies this filter."""
        if self.version == 1:
            return bytes.fromhex(self.id)[:_ID_BYTES]
        return blake2b(b"%d:%s" % (shard, self._parameters), digest_size=OWNER_BYTES).digest()

    def make_tag(self, shard: int) -> bytes:
        """Return the tag behind the cells of a shard: owner, generation, epoch."""
        last = shard.to_bytes(4, "little") if self.version == 1 else bytes(4)
        return self.compute_owner(shard) + self.generation.to_bytes(4, "little") + last

    def make_stable_tag(self, shard: int) -> bytes:
        """Return the prefix of a shard's tag that does not change within a generation."""
        return self.make_tag(shard)[: TAG_BYTES if self.version == 1 else STABLE_BYTES]

    def is_own(self, shard: int, tag: bytes) -> bool:
        """Return whether a tag belongs to a shard of this filter, in any generation."""
        mine = self.make_tag(shard)
        if len(tag) != TAG_BYTES or tag[:OWNER_BYTES] != mine[:OWNER_BYTES]:
            return False
        return self.version > 1 or tag[STABLE_BYTES:] == mine[STABLE_BYTES:]

    def read_epoch(self, tag: bytes) -> int:
        """Return the epoch in a tag; tags of version 1 have none."""
        return int.from_bytes(tag[STABLE_BYTES:], "big") if self.version > 1 else 0

    def describe(self) -> dict[str, Any]:
        """Return the parameters for `info`, without those that filters of this kind lack."""
        about = {
            "layout": self.layout,
            "scheme": self.scheme or None,
            "hash": self.hash,
            "num_bits": self.num_bits,
            "num_hashes": self.num_hashes,
            "counter_bits": self.counter_bits or None,
            "window": self.window or None,
            "generations": self.generations or None,
            "shards": self.shards,
            "generation": None if self.window else self.generation,
            "ttl": self.ttl or None,
            "expires": self.expires / 1000 if self.ttl else None,
            "seed": self.seed,
            "keyed": bool(self.secret),
        }
        return {name: value for name, value in about.items() if value is not None}

    @property
    def kind(self) -> str:
        """The class that opens it."""
        if self.window:
            return "RedisRollingFilter"
        return "RedisCountingFilter" if self.counter_bits else "RedisBloomFilter"

    def with_state(self, state: str) -> Manifest:
        """Return a copy in another state."""
        return replace(self, state=state)

    def with_layout(self, shards: int, version: int) -> Manifest:
        """Return a copy for the strings of another layout, as if no reshard was in progress."""
        return replace(self, shards=shards, layout_version=version, other_shards=0, other_layout_version=0)

    def with_other_layout(self) -> Manifest:
        """Return a copy for the other strings of a reshard."""
        return self.with_layout(self.other_shards, self.other_layout_version)

    @property
    def is_clearing(self) -> bool:
        """True of a filter of the server's own that a client clears, perhaps one that stopped halfway."""
        return self.backend == MODULE and self.generation % 2 == 1

    def uses_layout(self, version: int) -> bool:
        """Return whether clients read or write the strings of a layout version."""
        return version == self.layout_version or (
            self.other_shards > 0 and version == self.other_layout_version
        )

    def with_next_generation(self) -> Manifest:
        """Return a copy in the next generation."""
        if self.generation >= _MAX_GENERATION:
            raise EngineError(f"a filter can be changed {_MAX_GENERATION} times at most; create another one")
        return replace(self, generation=self.generation + 1)

    def require_valid(self) -> Manifest:
        """Return the manifest of a new filter; ParameterError if a client could not read it again."""
        # The moment of the expiry is set when the filter is created.
        if field := _find_invalid_field(replace(self, expires=1) if self.ttl else self):
            raise ParameterError(
                f"a filter on a server cannot have {field} {reprlib.repr(getattr(self, field))}; "
                "choose another value, or a smaller capacity"
            )
        return self

    def require_match(self, name: str, expected: dict[str, Any]) -> None:
        """Raise IncompatibleFilters if a value differs from the expected one, or the kind of filter does."""
        kinds = [field for field in ("window", "counter_bits") if expected.get(field) is not None]
        if any(bool(getattr(self, field)) != bool(expected[field]) for field in kinds):
            raise IncompatibleFilters(
                f"the filter {name!r} on the server is a {self.kind}; "
                "open it with that class, or choose another name"
            )
        parts = [
            f"{field} (server: {_format(field, getattr(self, field))}, requested: {_format(field, value)})"
            for field, value in expected.items()
            if value is not None and getattr(self, field) != value
        ]
        if parts:
            raise IncompatibleFilters(
                f"the filter {name!r} on the server differs in {', '.join(parts)}; leave these parameters "
                "out, or choose another name"
            )


def _format(field: str, value: Any) -> str:
    if field == "secret":
        return f"fingerprint {value}" if value else "none"
    return repr(value)


def read_generation(tag: bytes) -> int:
    """Return the generation in a tag."""
    return int.from_bytes(tag[OWNER_BYTES:STABLE_BYTES], "little")


def _accept_integer(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: least <= value <= most


def _accept_seconds(least: float, most: float) -> Callable[[Any], bool]:
    """Accept zero, or a number of seconds in a range."""
    return lambda value: value == 0 or (isfinite(value) and least <= value <= most)


def _accept_digits(*digits: int) -> Callable[[Any], bool]:
    return lambda value: len(value) in digits and set(value) <= set("0123456789abcdef")


def _is_name(value: str) -> bool:
    return 0 < len(value) <= _MAX_NAME and value.isascii() and value.isprintable()


#: What each field must satisfy, besides its type, before anything is done with it.
_VALIDATORS: dict[str, Callable[[Any], bool]] = {
    "id": _accept_digits(*range(2 * _ID_BYTES, 65, 2)),
    "backend": lambda value: value in {STRINGS, MODULE},
    "capacity": _accept_integer(1, (1 << 64) - 1),
    "fpr": lambda value: 0 < value < 1,
    "layout": lambda value: value in {row["name"] for row in _core.layouts()},
    "scheme": lambda value: not value or _is_name(value),
    "hash": _is_name,
    "num_bits": _accept_integer(1, MAX_SHARDS * MAX_STRING_BYTES * 8),
    "num_hashes": _accept_integer(1, 1 << 12),
    "shards": _accept_integer(1, MAX_SHARDS),
    "seed": _accept_integer(0, (1 << 64) - 1),
    "secret": _accept_digits(0, 16),
    "generation": _accept_integer(0, _MAX_GENERATION),
    "counter_bits": lambda value: value in {0, 2, 4, 8},
    "window": _accept_seconds(MIN_WINDOW, MAX_WINDOW),
    "generations": _accept_integer(0, MAX_GENERATIONS),
    "layout_version": _accept_integer(0, _MAX_GENERATION),
    "other_shards": _accept_integer(0, MAX_SHARDS),
    "other_layout_version": _accept_integer(0, _MAX_GENERATION),
    "state": lambda value: value in _STATES,
    "ttl": _accept_seconds(MIN_TTL, MAX_TTL),
    "expires": _accept_integer(0, (1 << 53) - 1),
}


def _find_invalid_field(manifest: Manifest) -> str | None:
    """Return the name of a field with an impossible value, or None."""
    for field in fields(Manifest):
        value = getattr(manifest, field.name)
        if type(value).__name__ != field.type or not _VALIDATORS.get(field.name, lambda _: True)(value):
            return field.name
    if bool(manifest.window) != (manifest.generations >= MIN_GENERATIONS):
        return "generations"
    if bool(manifest.ttl) != bool(manifest.expires):
        return "expires"
    for field_name, shards in (("shards", manifest.shards), ("other_shards", manifest.other_shards)):
        if shards > 1 and shards * 32 > manifest.num_bits // 8:  # a line has 32 bytes or more
            return field_name
    if manifest.backend == STRINGS and manifest.num_bits // 8 // manifest.shards > MAX_STRING_BYTES:
        return "num_bits"
    return None


def parse_manifest(name: str, data: bytes) -> Manifest:
    """Return the manifest in ``data``; FormatError if it is invalid, or from a newer release."""
    try:
        # Longer data is not parsed at all.
        stored = {**_DEFAULTS, **json.loads(data if len(data) <= MAX_BYTES else b"")}
        stored = {_FIELD_NAMES.get(name, name): value for name, value in stored.items()}
        if not stored["window"]:
            stored.setdefault("begun", "")
        version, rule = stored["version"], stored["key_rule"]
        fits = type(version) is int and version in _VERSIONS and type(rule) is int and rule == KEY_RULE
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(
            f"the key {name + ':fullbloom'!r} on the server does not hold a Fullbloom filter; "
            "choose another name"
        ) from None
    if not fits:
        raise FormatError(
            f"the filter {name!r} on the server has version {reprlib.repr(version)} and key rule "
            f"{reprlib.repr(rule)}, but this release supports versions up to {_VERSIONS[-1]} and key rule "
            f"{KEY_RULE}; use the release that created it, or a newer one"
        )
    known = [field.name for field in fields(Manifest)]
    missing = [field for field in known if field not in stored]
    if missing:
        raise FormatError(f"the manifest of the filter {name!r} has no {missing[0]}; delete the filter")
    manifest = Manifest(**{field: stored[field] for field in known})
    if field := _find_invalid_field(manifest):
        raise FormatError(
            f"the manifest of the filter {name!r} has the impossible {field} {reprlib.repr(stored[field])}; "
            "it was changed or damaged, delete the filter and create it again"
        )
    return manifest


def make_expiry_command(manifest: Manifest) -> ExpiryCommand:
    """Return the command that sets how long the strings of a filter live."""
    return (b"PEXPIREAT", manifest.expires) if manifest.ttl else (b"PERSIST",)


class Names:
    """The keys of one filter."""

    def __init__(self, name: str, shards: int = 1, layout_version: int = 0, number: str = "") -> None:
        """Take the filter's name, its layout version, and the id or checksum in the keys of its strings."""
        self.manifest = name.encode() + b":fullbloom"
        #: The record of a reshard in progress.
        self.reshard = make_colocated_key(self.manifest, b"reshard")
        bits = name.encode() + (b":bits@%d" % layout_version if layout_version else b":bits")
        bits += b":" + number.encode() if number else b""
        self.bits = [bits] if shards == 1 else [b"%s:%d" % (bits, shard) for shard in range(shards)]

    @classmethod
    def from_manifest(cls, name: str, manifest: Manifest) -> Names:
        """Return the keys of a filter by its manifest."""
        has_id = manifest.version > 1 or manifest.backend == MODULE or manifest.ttl
        number = manifest.id[:ID_DIGITS] if has_id else ""
        if manifest.backend == MODULE and manifest.version > 1:
            number = manifest.checksum
        return cls(name, manifest.shards, manifest.layout_version, number)


def make_string_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the keys of all strings under a name, of any filter and of any version."""
    identity = rf"[0-9a-f]{{{ID_DIGITS}}}"
    plain, window = rf"(?:@\d+)?(?::{identity})?(?::\d+)?", rf":{identity}\.\d+@\d+(?::\d+)?"
    return re.compile(rf"{re.escape(name)}:bits(?:{plain}|{window})")


def make_shard(number: int, key: bytes) -> Shard:
    """Return the shard whose string is ``key``."""
    return number, key, make_colocated_key(key, b"merge")


def make_colocated_key(key: bytes, suffix: bytes) -> bytes:
    """Return another key on the same node of a cluster.

    >>> make_colocated_key(b"seen:bits", b"new"), make_colocated_key(b"{a}:bits", b"new")
    (b'{seen:bits}:new', b'{a}:bits:new')
    """
    return key + b":" + suffix if _has_hash_tag(key) else b"{" + key + b"}:" + suffix


def _has_hash_tag(key: bytes) -> bool:
    """Return whether a part in braces alone decides on the node of a key."""
    start = key.find(b"{")
    return start >= 0 and key.find(b"}", start + 1) > start + 1


def find_name_error(name: object) -> str | None:
    """Return what is wrong with the name of a filter; None if it is valid."""
    if not isinstance(name, str):
        return f"name must be a str, got {type(name).__name__}"
    if not 0 < len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES:
        return f"name must have 1 to {MAX_NAME_BYTES} bytes, got {len(name)} characters"
    if "\x00" in name or name != name.encode("utf-8", "replace").decode():
        return "name must be text without NUL and lone surrogates"
    if "}" in name and not _has_hash_tag(name.encode()):  # in braces, its keys would have another one
        return f"name has a closing brace that ends no hash tag: {name!r}"
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
        #: How often a verification has raised these bounds.
        self.counted = 0

    def add_bits(self, shard: int, bits: int, counted: int) -> None:
        """Take the bits that a batch set; it was sent when the bounds had been raised ``counted`` times."""
        with self._lock:
            if counted == self.counted:  # otherwise the server may have counted these bits already
                self.bits[shard] += bits

    def raise_bits(self, ones: list[int]) -> None:
        """Raise the bounds to the set bits that the server counted."""
        with self._lock:
            self.counted += 1
            self.bits[:] = [max(pair) for pair in zip(ones, self.bits, strict=True)]

    def record(self, hashes: bytes) -> None:
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


def make_cells(manifest: Manifest, secret: bytes | None) -> WireCells:
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


def make_counters(manifest: Manifest, secret: bytes | None) -> WireCounters:
    """Return the native counters of a filter."""
    return _core.WireCounters(
        manifest.num_bits // manifest.counter_bits,
        manifest.num_hashes,
        manifest.counter_bits,
        shards=manifest.shards,
        seed=manifest.seed,
        secret=secret,
    )
