"""What stands beside the cells.

The filter's parameters, by which every client checks that it means the same filter.
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

    from fullbloom.engines.redis.protocol.requests import Lasts

#: Of this file and of the strings; a newer one is refused. Since version 2 a tag has a checksum of the
#: parameters in place of the filter's id, and an epoch in place of the shard's number.
VERSION = 2
_VERSIONS = (1, 2)
#: Of the rule by which keys become hashes.
KEY_RULE = 1
#: Strings are being made; all are there, and their times to live are being set; done.
BUILDING, CLOSING, READY = "building", "closing", "ready"
#: Its strings are being deleted, and then it is; who finds it brings that to its end.
DELETING = "deleting"
_STATES = {BUILDING, CLOSING, READY, DELETING}
MARK_BYTES = 16
#: Bytes of a tag that say whose it is, and of these and the generation.
OWNER_BYTES, STABLE_BYTES = 8, 12
#: The longest manifest that is read, and the most shards: a cluster has 16,384 slots.
MOST_BYTES, MOST_SHARDS = 1 << 16, 1 << 16
_LONGEST_STRING, _LONGEST_NAME = 512 << 20, 64
_MOST_GENERATION = (1 << 32) - 2
MOST_WINDOW, MOST_GENERATIONS = 1e12, 1 << 10
#: Who holds the cells: strings, or a filter of the server's own.
STRINGS, MODULE = "strings", "module"
_ID_BYTES = 8
#: The fields that a tag is bound to: what a filter is, without what changes while it is there.
_BOUND = (
    *("id", "backend", "capacity", "fpr", "layout", "scheme", "hash", "num_bits", "num_hashes", "shards"),
    *("seed", "secret", "counter_bits", "window", "generations", "cut", "key_rule", "version", "ttl"),
)
#: What manifests that were written before have not.
_LATER = {"ttl": 0.0, "expires": 0}
#: Seconds for which a filter may stand.
LEAST_TTL, MOST_TTL = 0.1, 1e9


@dataclass(frozen=True)
class Manifest:
    """A filter on a server."""

    #: Drawn when it is made, so that a later one of the same name is known for another.
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
    #: One more after everything was cleared, loaded or moved.
    generation: int = 0
    #: Of a counting filter; 0 of others.
    counter_bits: int = 0
    #: Seconds for which keys are remembered, and generations that take turns; 0 without a window.
    window: float = 0.0
    generations: int = 0
    #: Which strings are read, and the others that keys are written to, too, while it goes to or from them.
    cut: int = 0
    other_shards: int = 0
    other_cut: int = 0
    state: str = BUILDING
    key_rule: int = KEY_RULE
    version: int = VERSION
    #: Seconds for which it stands, 0 for good, and the milliseconds since 1970 at which it vanishes.
    ttl: float = 0.0
    expires: int = 0
    #: The generations of a window that were begun, as `generations` has them; "" of other filters.
    begun: str = ""

    def to_bytes(self) -> bytes:
        """Return the text that stands on the server; that of a filter for good has no ttl."""
        said = asdict(self)
        if not self.window:
            del said["begun"]
        if not self.ttl:
            for field in _LATER:
                del said[field]
        return json.dumps(said, sort_keys=True).encode()

    @property
    def lasting(self) -> tuple[bytes | int, ...]:
        """The words behind the SET of a manifest that is done: the moment at which it vanishes."""
        return (b"PXAT", self.expires) if self.ttl else ()

    @cached_property
    def _bound(self) -> bytes:
        return json.dumps([getattr(self, field) for field in _BOUND]).encode()

    @property
    def checksum(self) -> str:
        """What the parameters are bound by where no tag is: 16 hexadecimal digits."""
        return self._owner(0).hex()

    def _owner(self, shard: int) -> bytes:
        if self.version == 1:
            return bytes.fromhex(self.id)[:_ID_BYTES]
        return blake2b(b"%d:%s" % (shard, self._bound), digest_size=OWNER_BYTES).digest()

    def mark(self, shard: int) -> bytes:
        """Return the tag behind the cells of a shard: whose they are, of which generation and epoch."""
        last = shard.to_bytes(4, "little") if self.version == 1 else bytes(4)
        return self._owner(shard) + self.generation.to_bytes(4, "little") + last

    def stable(self, shard: int) -> bytes:
        """Return the beginning of a shard's tag that stays as it is within a generation."""
        return self.mark(shard)[: MARK_BYTES if self.version == 1 else STABLE_BYTES]

    def is_own(self, shard: int, tag: bytes) -> bool:
        """Tell whether a tag is that of a shard of this filter, of any generation."""
        mine = self.mark(shard)
        if len(tag) != MARK_BYTES or tag[:OWNER_BYTES] != mine[:OWNER_BYTES]:
            return False
        return self.version > 1 or tag[STABLE_BYTES:] == mine[STABLE_BYTES:]

    def epoch_of(self, tag: bytes) -> int:
        """Return the epoch in a tag of this filter; those of version 1 have none."""
        return int.from_bytes(tag[STABLE_BYTES:], "big") if self.version > 1 else 0

    def told(self) -> dict[str, Any]:
        """Return what callers are told of it: the parameters that a filter of its kind has."""
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

    def at(self, state: str) -> Manifest:
        """Return it in another state."""
        return replace(self, state=state)

    def other(self) -> Manifest:
        """Return it for the strings that it goes to or comes from."""
        return replace(self, shards=self.other_shards, cut=self.other_cut, other_shards=0, other_cut=0)

    def next(self, expires: int | None = None) -> Manifest:
        """Return it with the next generation, and with another moment at which it vanishes, if it has one."""
        if self.generation >= _MOST_GENERATION:
            raise EngineError(f"a filter is changed {_MOST_GENERATION} times at most; make another one")
        when = self.expires if expires is None else expires
        return replace(self, generation=self.generation + 1, expires=when)

    def check(self, name: str, wanted: dict[str, Any]) -> None:
        """Raise IncompatibleFilters where ``wanted`` has another value, or is of another kind."""
        kinds = ("window", "counter_bits")
        asked = [field for field in kinds if wanted.get(field) is not None]
        if any(bool(getattr(self, field)) != bool(wanted[field]) for field in asked):
            raise IncompatibleFilters(
                f"the filter {name!r} on the server is a {self.kind}; open it with that class, or choose "
                "another name"
            )
        parts = [
            f"{field} ({_shown(field, getattr(self, field))} there, {_shown(field, value)} asked for)"
            for field, value in wanted.items()
            if value is not None and getattr(self, field) != value
        ]
        if parts:
            raise IncompatibleFilters(
                f"the filter {name!r} on the server differs in {', '.join(parts)}; leave out what it says "
                "itself, or choose "
                "another name"
            )


def _shown(field: str, value: Any) -> str:
    if field == "secret":
        return f"fingerprint {value}" if value else "none"
    return repr(value)


def generation_of(tag: bytes) -> int:
    """Return the generation in a tag."""
    return int.from_bytes(tag[OWNER_BYTES:STABLE_BYTES], "little")


def _whole(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: least <= value <= most


def _seconds(least: float, most: float) -> Callable[[Any], bool]:
    """Zero, or a number of seconds in a range."""
    return lambda value: value == 0 or (isfinite(value) and least <= value <= most)


def _hex(*digits: int) -> Callable[[Any], bool]:
    return lambda value: len(value) in digits and set(value) <= set("0123456789abcdef")


def _is_name(value: str) -> bool:
    return 0 < len(value) <= _LONGEST_NAME and value.isascii() and value.isprintable()


#: What every field must satisfy, beside being of its type, before anything is made of it.
_SOUND: dict[str, Callable[[Any], bool]] = {
    "id": _hex(*range(2 * _ID_BYTES, 65, 2)),
    "backend": lambda value: value in {STRINGS, MODULE},
    "capacity": _whole(1, (1 << 64) - 1),
    "fpr": lambda value: 0 < value < 1,
    "layout": lambda value: value in {row["name"] for row in _core.layouts()},
    "scheme": lambda value: not value or _is_name(value),
    "hash": _is_name,
    "num_bits": _whole(1, MOST_SHARDS * _LONGEST_STRING * 8),
    "num_hashes": _whole(1, 1 << 12),
    "shards": _whole(1, MOST_SHARDS),
    "seed": _whole(0, (1 << 64) - 1),
    "secret": _hex(0, 16),
    "generation": _whole(0, _MOST_GENERATION),
    "counter_bits": lambda value: value in {0, 2, 4, 8},
    "window": _seconds(1e-3, MOST_WINDOW),
    "generations": _whole(0, MOST_GENERATIONS),
    "cut": _whole(0, _MOST_GENERATION),
    "other_shards": _whole(0, MOST_SHARDS),
    "other_cut": _whole(0, _MOST_GENERATION),
    "state": lambda value: value in _STATES,
    "ttl": _seconds(LEAST_TTL, MOST_TTL),
    "expires": _whole(0, (1 << 53) - 1),
}


def _wrong(manifest: Manifest) -> str | None:
    """Return the field of a manifest that cannot be, or None."""
    for field in fields(Manifest):
        value = getattr(manifest, field.name)
        if type(value).__name__ != field.type or not _SOUND.get(field.name, lambda _: True)(value):
            return field.name
    if bool(manifest.window) != (manifest.generations > 1):
        return "generations"
    if bool(manifest.ttl) != bool(manifest.expires):
        return "expires"
    for field_name, shards in (("shards", manifest.shards), ("other_shards", manifest.other_shards)):
        if shards > 1 and shards * 32 > manifest.num_bits // 8:  # a line has 32 bytes or more
            return field_name
    if manifest.backend == STRINGS and manifest.num_bits // 8 // manifest.shards > _LONGEST_STRING:
        return "num_bits"
    return None


def read(name: str, data: bytes) -> Manifest:
    """Return the manifest in ``data``; FormatError for what is none, or of a newer release."""
    known = [field.name for field in fields(Manifest)]
    try:
        # What is longer than any manifest is none, whatever it says.
        stored = {**_LATER, **json.loads(data if len(data) <= MOST_BYTES else b"")}
        if not stored["window"]:
            stored.setdefault("begun", "")
        version, rule = stored["version"], stored["key_rule"]
        fits = type(version) is int and version in _VERSIONS and type(rule) is int and rule == KEY_RULE
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(
            f"what stands under {name + ':fullbloom'!r} on the server is no filter of this package; choose "
            "another name"
        ) from None
    if not fits:
        raise FormatError(
            f"the filter {name!r} on the server is of version {reprlib.repr(version)} with key rule "
            f"{reprlib.repr(rule)}, and this release knows versions up to {VERSION} with key rule "
            f"{KEY_RULE}; use the release that made it, or a newer one"
        )
    missing = [field for field in known if field not in stored]
    if missing:
        raise FormatError(f"the manifest of the filter {name!r} has no {missing[0]}; delete the filter")
    manifest = Manifest(**{field: stored[field] for field in known})
    if wrong := _wrong(manifest):
        raise FormatError(
            f"the manifest of the filter {name!r} says {wrong} {reprlib.repr(stored[wrong])}, which cannot "
            "be; it was changed or damaged, delete the filter and make it again"
        )
    return manifest


def lasts(stood: Manifest) -> Lasts:
    """Return how long the strings of a filter stand."""
    return (b"PEXPIREAT", stood.expires) if stood.ttl else (b"PERSIST",)
