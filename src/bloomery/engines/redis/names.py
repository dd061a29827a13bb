"""The keys of a filter on the server.

``name:bloomery`` says what it is, ``name:bits:<id>`` holds the cells, ``name:bits:<id>:0``, ``:1`` and so on
those of a filter in shards, ``name:bits@1:<id>:0`` and so on after it went to another number of them. The
id is drawn when a filter is made, so that what a client sends that has missed its end never reaches the
next filter of the name. A filter of the server's own (BF.*) has a checksum of its id and parameters in place
of the id, as it has no tag. Filters of version 1 without a time to live have no id in their names. Shards go
to the nodes of a cluster by their names, unless the name has a tag in braces, which then chooses one node
for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bloomery.engines.redis.manifest import MODULE

if TYPE_CHECKING:
    from bloomery.engines.redis.asks import Shard
    from bloomery.engines.redis.manifest import Manifest

_LONGEST = 512
_ID_DIGITS = 16


class Names:
    """The keys of one filter."""

    def __init__(self, name: str, shards: int = 1, cut: int = 0, of: str = "") -> None:
        """Take the filter's name, how often it has gone to another number of shards, and its id in names."""
        self.text = name
        self.name = name.encode()
        self.manifest = self.name + b":bloomery"
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
