"""The manifest: a filter's parameters, stored beside its cells.

By it every client checks that it opens the same filter.
"""

from __future__ import annotations

import json
import reprlib
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from math import isfinite
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.errors import EngineError, FormatError, IncompatibleFilters

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.engines.redis.protocol.requests import ExpiryCommand

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
_MAX_STRING_BYTES, _MAX_NAME = 512 << 20, 64
_MAX_GENERATION = (1 << 32) - 2
MAX_WINDOW, MAX_GENERATIONS = 1e12, 1 << 10
#: What stores the cells: strings, or a filter of the server's own.
STRINGS, MODULE = "strings", "module"
_ID_BYTES = 8
#: The fields that identify the owner of a string: all that never change.
_CHECKSUMMED = (
    *("id", "backend", "capacity", "fpr", "layout", "scheme", "hash", "num_bits", "num_hashes", "shards"),
    *("seed", "secret", "counter_bits", "window", "generations", "cut", "key_rule", "version", "ttl"),
)
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
    #: The layout version of the strings that are read; and during a reshard those that are written, too.
    cut: int = 0
    other_shards: int = 0
    other_cut: int = 0
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
        stored = asdict(self)
        if not self.window:
            del stored["begun"]
        if not self.ttl:
            for field in _DEFAULTS:
                del stored[field]
        return json.dumps(stored, sort_keys=True).encode()

    @property
    def set_options(self) -> tuple[bytes | int, ...]:
        """The options of the SET that stores a finished manifest: when it expires."""
        return (b"PXAT", self.expires) if self.ttl else ()

    @cached_property
    def _parameters(self) -> bytes:
        return json.dumps([getattr(self, field) for field in _CHECKSUMMED]).encode()

    @property
    def checksum(self) -> str:
        """Checksum of the parameters where there is no tag: 16 hexadecimal digits."""
        return self._owner(0).hex()

    def _owner(self, shard: int) -> bytes:
        if self.version == 1:
            return bytes.fromhex(self.id)[:_ID_BYTES]
        return blake2b(b"%d:%s" % (shard, self._parameters), digest_size=OWNER_BYTES).digest()

    def tag(self, shard: int) -> bytes:
        """Return the tag behind the cells of a shard: owner, generation, epoch."""
        last = shard.to_bytes(4, "little") if self.version == 1 else bytes(4)
        return self._owner(shard) + self.generation.to_bytes(4, "little") + last

    def stable_tag(self, shard: int) -> bytes:
        """Return the prefix of a shard's tag that does not change within a generation."""
        return self.tag(shard)[: TAG_BYTES if self.version == 1 else STABLE_BYTES]

    def is_own(self, shard: int, tag: bytes) -> bool:
        """Return whether a tag belongs to a shard of this filter, in any generation."""
        mine = self.tag(shard)
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

    def other_layout(self) -> Manifest:
        """Return the manifest for the other strings of a reshard."""
        return replace(self, shards=self.other_shards, cut=self.other_cut, other_shards=0, other_cut=0)

    def next_generation(self, expires: int | None = None) -> Manifest:
        """Return a copy in the next generation, and with another expiry if one is given."""
        if self.generation >= _MAX_GENERATION:
            raise EngineError(f"a filter can be changed {_MAX_GENERATION} times at most; create another one")
        return replace(
            self, generation=self.generation + 1, expires=self.expires if expires is None else expires
        )

    def require_match(self, name: str, expected: dict[str, Any]) -> None:
        """Raise IncompatibleFilters if a value differs from the expected one, or the kind of filter does."""
        kinds = [field for field in ("window", "counter_bits") if expected.get(field) is not None]
        if any(bool(getattr(self, field)) != bool(expected[field]) for field in kinds):
            raise IncompatibleFilters(
                f"the filter {name!r} on the server is a {self.kind}; "
                "open it with that class, or choose another name"
            )
        parts = [
            f"{field} ({_format(field, getattr(self, field))} there, {_format(field, value)} asked for)"
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


def _integer(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: least <= value <= most


def _seconds(least: float, most: float) -> Callable[[Any], bool]:
    """Accept zero, or a number of seconds in a range."""
    return lambda value: value == 0 or (isfinite(value) and least <= value <= most)


def _hex_digits(*digits: int) -> Callable[[Any], bool]:
    return lambda value: len(value) in digits and set(value) <= set("0123456789abcdef")


def _is_name(value: str) -> bool:
    return 0 < len(value) <= _MAX_NAME and value.isascii() and value.isprintable()


#: What each field must satisfy, besides its type, before anything is done with it.
_VALIDATORS: dict[str, Callable[[Any], bool]] = {
    "id": _hex_digits(*range(2 * _ID_BYTES, 65, 2)),
    "backend": lambda value: value in {STRINGS, MODULE},
    "capacity": _integer(1, (1 << 64) - 1),
    "fpr": lambda value: 0 < value < 1,
    "layout": lambda value: value in {row["name"] for row in _core.layouts()},
    "scheme": lambda value: not value or _is_name(value),
    "hash": _is_name,
    "num_bits": _integer(1, MAX_SHARDS * _MAX_STRING_BYTES * 8),
    "num_hashes": _integer(1, 1 << 12),
    "shards": _integer(1, MAX_SHARDS),
    "seed": _integer(0, (1 << 64) - 1),
    "secret": _hex_digits(0, 16),
    "generation": _integer(0, _MAX_GENERATION),
    "counter_bits": lambda value: value in {0, 2, 4, 8},
    "window": _seconds(1e-3, MAX_WINDOW),
    "generations": _integer(0, MAX_GENERATIONS),
    "cut": _integer(0, _MAX_GENERATION),
    "other_shards": _integer(0, MAX_SHARDS),
    "other_cut": _integer(0, _MAX_GENERATION),
    "state": lambda value: value in _STATES,
    "ttl": _seconds(MIN_TTL, MAX_TTL),
    "expires": _integer(0, (1 << 53) - 1),
}


def _find_invalid_field(manifest: Manifest) -> str | None:
    """Return the name of a field with an impossible value, or None."""
    for field in fields(Manifest):
        value = getattr(manifest, field.name)
        if type(value).__name__ != field.type or not _VALIDATORS.get(field.name, lambda _: True)(value):
            return field.name
    if bool(manifest.window) != (manifest.generations > 1):
        return "generations"
    if bool(manifest.ttl) != bool(manifest.expires):
        return "expires"
    for field_name, shards in (("shards", manifest.shards), ("other_shards", manifest.other_shards)):
        if shards > 1 and shards * 32 > manifest.num_bits // 8:  # a line has 32 bytes or more
            return field_name
    if manifest.backend == STRINGS and manifest.num_bits // 8 // manifest.shards > _MAX_STRING_BYTES:
        return "num_bits"
    return None


def parse_manifest(name: str, data: bytes) -> Manifest:
    """Return the manifest in ``data``; FormatError if it is invalid, or from a newer release."""
    known = [field.name for field in fields(Manifest)]
    try:
        # Longer data is not parsed at all.
        stored = {**_DEFAULTS, **json.loads(data if len(data) <= MAX_BYTES else b"")}
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
    missing = [field for field in known if field not in stored]
    if missing:
        raise FormatError(f"the manifest of the filter {name!r} has no {missing[0]}; delete the filter")
    manifest = Manifest(**{field: stored[field] for field in known})
    if wrong := _find_invalid_field(manifest):
        raise FormatError(
            f"the manifest of the filter {name!r} has the impossible {wrong} {reprlib.repr(stored[wrong])}; "
            "it was changed or damaged, delete the filter and create it again"
        )
    return manifest


def expiry_command(manifest: Manifest) -> ExpiryCommand:
    """Return the command that sets how long the strings of a filter live."""
    return (b"PEXPIREAT", manifest.expires) if manifest.ttl else (b"PERSIST",)
