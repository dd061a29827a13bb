"""What stands beside the cells.

The filter's parameters, by which every client checks that it means the same filter.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from bloomery.errors import FormatError, IncompatibleFilters

#: Of this file and of the strings; a newer one is refused.
VERSION = 1
#: Of the rule by which keys become hashes.
KEY_RULE = 1
#: Strings are being made; all are there, and their times to live are being set; done.
BUILDING, CLOSING, READY = "building", "closing", "ready"
#: Its strings are being deleted, and then it is; who finds it brings that to its end.
DELETING = "deleting"
_STATES = {BUILDING, CLOSING, READY, DELETING}
MARK_BYTES = 16
#: Who holds the cells: strings, or a filter of the server's own.
STRINGS, MODULE = "strings", "module"
_ID_BYTES = 8
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

    def to_bytes(self) -> bytes:
        """Return the text that stands on the server; that of a filter for good has no ttl."""
        said = asdict(self)
        if not self.ttl:
            for field in _LATER:
                del said[field]
        return json.dumps(said, sort_keys=True).encode()

    @property
    def lasting(self) -> tuple[bytes | int, ...]:
        """The words behind the SET of a manifest that is done: the moment at which it vanishes."""
        return (b"PXAT", self.expires) if self.ttl else ()

    def mark(self, shard: int) -> bytes:
        """Return the bytes behind the cells of a shard.

        Whose they are, of which generation, and which ones.
        """
        id_ = bytes.fromhex(self.id)[:_ID_BYTES]
        return id_ + self.generation.to_bytes(4, "little") + shard.to_bytes(4, "little")

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


def read(name: str, data: bytes) -> Manifest:
    """Return the manifest in ``data``; FormatError for what is none, or of a newer release."""
    known = {field.name: field.type for field in fields(Manifest)}
    try:
        stored = {**_LATER, **json.loads(data)}
        version = stored["version"]
        if version != VERSION or stored["key_rule"] != KEY_RULE:
            raise FormatError(
                f"the filter {name!r} on the server is of version {version} with key rule "
                f"{stored['key_rule']}, and this "
                f"release knows version {VERSION} with key rule {KEY_RULE}; use the release that made it, "
                "or a newer one"
            )
        manifest = Manifest(**{field: stored[field] for field in known})
        sound = all(type(getattr(manifest, field)).__name__ == kind for field, kind in known.items())
        sound &= len(bytes.fromhex(manifest.id)) >= _ID_BYTES and manifest.state in _STATES
        sound &= manifest.backend in {STRINGS, MODULE}
        sound &= all(0 <= number < 1 << 32 for number in (manifest.generation, manifest.shards - 1))
        sound &= all(
            0 <= number < 1 << 32 for number in (manifest.cut, manifest.other_shards, manifest.other_cut)
        )
        sound &= 0 <= manifest.ttl < MOST_TTL + 1 and 0 <= manifest.expires < 1 << 53
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        sound = False
    if not sound:
        raise FormatError(
            f"what stands under {name + ':bloomery'!r} on the server is no filter of this package; choose "
            "another name"
        )
    return manifest
