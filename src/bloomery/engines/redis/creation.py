"""Making, opening, replacing and deleting a filter; nothing half-built is left under its name.

A new filter begins with its manifest, set if none is there, in the state "building" and with a time to
live. Then its strings, each under another name first, with a time to live too. Once all are there the
manifest, for good from here on, says "closing", the strings' times are lifted, and it says "ready". Whoever
stops in between leaves what vanishes by itself, or what the next client brings to its end. Clients that
find "building" wait.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from bloomery.engines.redis import failures, manifest
from bloomery.engines.redis.asks import Pause, call
from bloomery.engines.redis.names import Names, beside
from bloomery.errors import BloomeryError, EngineNameTaken, EngineTimeout

if TYPE_CHECKING:
    from bloomery._core import WireCells
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.manifest import Manifest

#: Milliseconds for which a filter may be under way.
_BUILT_WITHIN = 60_000
_WAITS = 200
_WAIT = 0.05
#: Bytes that are sent or fetched at a time.
PIECE = 1 << 20


def standing(name: str) -> Steps[Manifest | None]:
    """Return the manifest of a filter that is ready, after a while if need be; None where there is none."""
    key = Names(name).manifest
    stood: Manifest | None
    for _ in range(_WAITS):
        data = yield from call(key, b"GET", key)
        if data is None:
            return None
        stood = manifest.read(name, data)
        if stood.state == manifest.CLOSING:
            stood = yield from _closed(name, stood)
        if stood is None or stood.state == manifest.READY:
            return stood
        yield [Pause(_WAIT)]
    raise EngineTimeout(
        f"filter {name!r}: another client began to make it and is not done after {_WAITS * _WAIT:.0f} s; "
        "try again"
    )


def made(
    name: str, wanted: Manifest, cells: WireCells, data: bytes | memoryview | None = None
) -> Steps[Manifest]:
    """Make a filter, without keys or of the cells in ``data``.

    Return what another client made meanwhile, if one did.
    """
    names = Names.of(name, wanted)
    first = wanted.to_bytes()
    won = yield from call(names.manifest, b"SET", names.manifest, first, b"NX", b"PX", _BUILT_WITHIN)
    if not won:
        stood = yield from standing(name)
        return stood if stood is not None else (yield from made(name, wanted, cells, data))
    done: list[bytes] = []
    try:
        if wanted.backend == manifest.MODULE:
            done += names.bits
            yield from _reserved(names.bits[0], wanted)
        for shard, key in enumerate(names.bits if wanted.backend == manifest.STRINGS else ()):
            fresh = beside(key, b"new:" + wanted.id.encode())
            done.append(fresh)
            yield from written(fresh, wanted.mark(shard), cells, shard, data)
            if not (yield from call(key, b"RENAMENX", fresh, key)):
                raise EngineNameTaken(
                    f"filter {name!r}: the server has a key {key.decode()!r} and no filter of this name; "
                    "delete that key, "
                    "or choose another name"
                )
            done[-1] = key
            if data is not None:  # which may take longer than all have to live
                for begun in (names.manifest, *done):
                    yield from call(begun, b"PEXPIRE", begun, _BUILT_WITHIN)
        closing = wanted.at(manifest.CLOSING)
        closed = None
        if (yield from call(names.manifest, b"SET", names.manifest, closing.to_bytes(), b"XX")):
            closed = yield from _closed(name, closing)
        if closed is None:
            raise failures.lost(name, "what was made of it so far")
    except BloomeryError:
        yield from _undone(names.manifest, {first, wanted.at(manifest.CLOSING).to_bytes()}, done)
        raise
    return closed


def _reserved(key: bytes, wanted: Manifest) -> Steps[None]:
    """Make a filter of the server's own."""
    rate = repr(wanted.fpr).encode()
    yield from call(key, b"BF.RESERVE", key, rate, wanted.capacity)
    yield from call(key, b"PEXPIRE", key, _BUILT_WITHIN)


def _closed(name: str, stood: Manifest) -> Steps[Manifest | None]:
    """Lift the strings' times to live.

    None where they came to their end before, and nobody had the filter.
    """
    names = Names.of(name, stood)
    for key in names.bits:
        yield from call(key, b"PERSIST", key)
        if not (yield from call(key, b"EXISTS", key)):
            yield from removed(names)
            return None
    ready = stood.at(manifest.READY)
    yield from call(names.manifest, b"SET", names.manifest, ready.to_bytes(), b"XX")
    return ready


def _undone(key: bytes, begun: set[bytes], done: list[bytes]) -> Steps[None]:
    """Take back what was begun, as far as the server can be reached; the rest vanishes by itself."""
    with suppress(BloomeryError):
        for made_ in done:
            yield from call(made_, b"UNLINK", made_)
        if (yield from call(key, b"GET", key)) in begun:
            yield from call(key, b"DEL", key)


def written(
    key: bytes, mark: bytes, cells: WireCells, shard: int, data: bytes | memoryview | None
) -> Steps[None]:
    """Write a string: the cells of ``data``, or none set, and the mark.

    It vanishes by itself until that is taken back.
    """
    start, nbytes = cells.range(shard)
    yield from call(key, b"SET", key, b"", b"PX", _BUILT_WITHIN)
    yield from call(key, b"SETRANGE", key, nbytes, mark)
    if data is not None:
        view = memoryview(data)[start : start + nbytes]
        for at in range(0, nbytes, PIECE):
            yield from call(key, b"SETRANGE", key, at, cells.turned(view[at : at + PIECE]))
            yield from call(key, b"PEXPIRE", key, _BUILT_WITHIN)


def replaced(
    name: str, stood: Manifest, cells: WireCells, data: bytes | memoryview | None = None
) -> Steps[Manifest]:
    """Put the cells in ``data``, or none set, in the place of those that are there, each string at once."""
    after = stood.next()
    names = Names.of(name, stood)
    token = secrets.token_hex(8).encode()
    fresh = [beside(key, b"new:" + token) for key in names.bits]
    try:
        for shard, key in enumerate(fresh):
            if stood.backend == manifest.MODULE:
                yield from _reserved(key, after)
            else:
                yield from written(key, after.mark(shard), cells, shard, data)
    except BloomeryError:
        with suppress(BloomeryError):
            for key in fresh:
                yield from call(key, b"UNLINK", key)
        raise
    for key, new in zip(names.bits, fresh, strict=True):
        yield from call(key, b"RENAME", new, key)
        yield from call(key, b"PERSIST", key)
    # Clients take strings of a later generation for this filter's, so that stopping before this line does
    # no harm.
    yield from call(names.manifest, b"SET", names.manifest, after.to_bytes(), b"XX")
    return after


def deleted(name: str, shards: int) -> Steps[bool]:
    """Delete a filter in strings: True when there was one."""
    return (yield from removed(Names(name, shards)))


def removed(names: Names) -> Steps[bool]:
    """Delete a filter: True when there was one."""
    was = yield from call(names.manifest, b"DEL", names.manifest)
    for key in names.bits:
        yield from call(key, b"UNLINK", key)
    return bool(was)
