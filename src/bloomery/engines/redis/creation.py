"""Making, opening, replacing and deleting a filter; nothing half-built is left under its name.

A new filter begins with its manifest, set if none is there, in the state "building" and with a time to
live. Then its strings, each under another name first, with a time to live too. Once all are there the
manifest, for good from here on, says "closing", the strings' times are lifted (or set to the end of the
filter's term), and it says "ready". Whoever stops in between leaves what vanishes by itself, or what the
next client brings to its end. Clients that find "building" wait. One that is deleted says "deleting" first,
and its manifest goes last.

Clients send what broke off once more, when it may have been done: so the manifest has an id and strings have
marks, by which the second time finds what the first did.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bloomery.engines.redis import failures, manifest
from bloomery.engines.redis.asks import Pause, call
from bloomery.engines.redis.lasting import lasts, now, timed
from bloomery.engines.redis.names import Names, beside
from bloomery.errors import BloomeryError, EngineError, EngineNameTaken, EngineTimeout, EngineUnavailable

if TYPE_CHECKING:
    from bloomery._core import WireCells
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.manifest import Manifest

#: Milliseconds for which a filter may be under way.
_BUILT_WITHIN = 60_000
_WAITS = 200
_WAIT = 0.05
#: Waits after which what another client began to delete is taken for left behind.
_DELETED_WITHIN = 40
#: Bytes that are sent or fetched at a time.
PIECE = 1 << 20


class _Made(NamedTuple):
    """A string under way: the name that it has first, the one that it gets, and its mark, b"" without one."""

    fresh: bytes
    key: bytes
    nbytes: int
    mark: bytes


def standing(name: str) -> Steps[Manifest | None]:
    """Return the manifest of a filter that is ready, after a while if need be; None where there is none."""
    key = Names(name).manifest
    stood: Manifest | None
    for turn in range(_WAITS):
        data = yield from call(key, b"GET", key)
        if data is None:
            return None
        stood = manifest.read(name, data)
        if stood.state == manifest.CLOSING:
            stood = yield from _closed(name, stood)
        elif stood.state == manifest.DELETING and turn >= _DELETED_WITHIN:
            yield from _removed(name, stood)
            return None
        if stood is None or stood.state == manifest.READY:
            return stood
        yield [Pause(_WAIT)]
    raise EngineTimeout(
        f"filter {name!r}: another client began to make it and is not done after {_WAITS * _WAIT:.0f} s; "
        "try again"
    )


def same(name: str, known: Manifest) -> Steps[Manifest | None]:
    """Return the manifest that stands, if it is still that of the filter which is known; None if not."""
    key = Names(name).manifest
    data = yield from call(key, b"GET", key)
    stood = None if data is None else manifest.read(name, data)
    return stood if stood is not None and stood.id == known.id else None


def made(
    name: str, wanted: Manifest, cells: WireCells, data: bytes | memoryview | None = None
) -> Steps[Manifest]:
    """Make a filter, without keys or of the cells in ``data``.

    Return what another client made meanwhile, if one did.
    """
    key = Names(name).manifest
    if wanted.ttl:
        wanted = replace(wanted, expires=(yield from _end(key, wanted.ttl)))
    first, done = wanted.to_bytes(), list[_Made]()
    try:
        won = yield from call(key, b"SET", key, first, b"NX", b"PX", _BUILT_WITHIN)
        if won or (yield from call(key, b"GET", key)) == first:
            yield from _built(name, wanted, cells, data, done)
            return (yield from _finished(name, wanted))
    except BloomeryError:
        stood = yield from _undone(name, wanted, done)
        if stood is None:
            raise
        return stood
    stood = yield from standing(name)
    return stood if stood is not None else (yield from made(name, wanted, cells, data))


def _end(key: bytes, ttl: float) -> Steps[int]:
    return (yield from now(key)) + round(ttl * 1000)


def _built(
    name: str, wanted: Manifest, cells: WireCells, data: bytes | memoryview | None, done: list[_Made]
) -> Steps[None]:
    """Make the strings; what may be there is in ``done``."""
    names = Names.of(name, wanted)
    if wanted.backend == manifest.MODULE:
        done.append(_Made(names.bits[0], names.bits[0], 0, b""))
        yield from _reserved(names.bits[0], wanted)
        return
    for shard, key in enumerate(names.bits):
        fresh = beside(key, b"new:" + wanted.id.encode())
        done.append(_Made(fresh, key, cells.range(shard)[1], wanted.mark(shard)))
        yield from written(fresh, wanted.mark(shard), cells, shard, data)
        if not (yield from _named(done[-1])):
            raise EngineNameTaken(
                f"filter {name!r}: the server has a key {key.decode()!r} and no filter of this name; "
                "delete that key, "
                "or choose another name"
            )
        if data is not None:  # which may take longer than all have to live
            for begun in (names.manifest, *(one.key for one in done)):
                yield from call(begun, b"PEXPIRE", begun, _BUILT_WITHIN)


def _named(one: _Made) -> Steps[bool]:
    """Give a string its name if no other has it; sent twice, it is found there."""
    try:
        if (yield from call(one.key, b"RENAMENX", one.fresh, one.key)):
            return True
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from _stands(one)):
            raise
        return True
    return (yield from _stands(one))


def _stands(one: _Made) -> Steps[bool]:
    """Tell whether a string has got its name."""
    if not one.mark:
        return bool((yield from call(one.key, b"EXISTS", one.key)))
    last = one.nbytes + len(one.mark) - 1
    mark: bytes = yield from call(one.key, b"GETRANGE", one.key, one.nbytes, last)
    return mark == one.mark


def _finished(name: str, wanted: Manifest) -> Steps[Manifest]:
    """Say that all strings are there, and set how long they stand."""
    key, closing = Names(name).manifest, wanted.at(manifest.CLOSING)
    if (yield from call(key, b"SET", key, closing.to_bytes(), b"XX", *closing.lasting)):
        closed = yield from _closed(name, closing)
        if closed is not None:
            return closed
    if wanted.ttl and (yield from now(key)) >= wanted.expires:
        raise EngineTimeout(
            f"filter {name!r}: its ttl of {wanted.ttl} s was over before it was made; give it more"
        )
    raise failures.lost(name, "what was made of it so far")


def _reserved(key: bytes, wanted: Manifest) -> Steps[None]:
    """Make a filter of the server's own, under a name that only this client has."""
    rate, how = repr(wanted.fpr).encode(), (b"PEXPIRE", _BUILT_WITHIN)
    try:
        yield from timed(key, how, b"BF.RESERVE", key, rate, wanted.capacity)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from call(key, b"PEXPIRE", key, _BUILT_WITHIN)):
            raise


def _closed(name: str, stood: Manifest) -> Steps[Manifest | None]:
    """Set how long the strings stand.

    None where they came to their end before, and nobody had the filter.
    """
    names, (how, *when) = Names.of(name, stood), lasts(stood)
    for key in names.bits:
        yield from call(key, how, key, *when)
        if not (yield from call(key, b"EXISTS", key)):
            yield from _removed(name, stood)
            return None
    ready = stood.at(manifest.READY)
    yield from call(names.manifest, b"SET", names.manifest, ready.to_bytes(), b"XX", *ready.lasting)
    return ready


def _undone(name: str, wanted: Manifest, done: list[_Made]) -> Steps[Manifest | None]:
    """Take back what was begun, as far as the server can be reached; the rest vanishes by itself.

    What others may have by now is brought to its end instead, and returned.
    """
    with suppress(BloomeryError):
        key = Names(name).manifest
        data = yield from call(key, b"GET", key)
        if data in {wanted.at(state).to_bytes() for state in (manifest.CLOSING, manifest.READY)}:
            return (yield from standing(name))
        for one in done:
            yield from call(one.fresh, b"UNLINK", one.fresh)
            with suppress(EngineNameTaken):  # somebody's
                if (yield from _stands(one)):
                    yield from call(one.key, b"UNLINK", one.key)
        if data == wanted.to_bytes():
            yield from call(key, b"DEL", key)
    return None


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
    """Put the cells in ``data``, or none set, in the place of those that are there, each string at once.

    None set begin another term of a filter that has one.
    """
    names = Names.of(name, stood)
    again = data is None and stood.ttl
    after = stood.next((yield from _end(names.manifest, stood.ttl)) if again else None)
    token = secrets.token_hex(8).encode()
    fresh, given_up = [beside(key, b"new:" + token) for key in names.bits], stood.next()
    try:
        for shard, key in enumerate(fresh):
            if stood.backend == manifest.MODULE:
                yield from _reserved(key, after)
            else:
                yield from written(key, after.mark(shard), cells, shard, data)
        for shard, (key, new) in enumerate(zip(names.bits, fresh, strict=True)):
            mark = b"" if stood.backend == manifest.MODULE else after.mark(shard)
            yield from _renamed(_Made(new, key, cells.range(shard)[1], mark), after)
        given_up = after
        # Clients take strings of a later generation for this filter's, so that stopping before this line
        # does no harm.
        yield from call(names.manifest, b"SET", names.manifest, after.to_bytes(), b"XX", *after.lasting)
    except BloomeryError:
        with suppress(BloomeryError):
            for key in fresh:
                yield from call(key, b"UNLINK", key)
            # The next one to replace them has a generation of its own.
            yield from call(
                names.manifest, b"SET", names.manifest, given_up.to_bytes(), b"XX", *given_up.lasting
            )
        raise
    return after


def _renamed(one: _Made, after: Manifest) -> Steps[None]:
    """Put a string in the place of another; sent twice, it is found there."""
    try:
        yield from timed(one.key, lasts(after), b"RENAME", one.fresh, one.key, others=(one.fresh,))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from _stands(one)):
            raise
        how, *when = lasts(after)
        yield from call(one.key, how, one.key, *when)


def deleted(name: str, known: Manifest) -> Steps[bool]:
    """Delete a filter, the one that stands now: True when there was one.

    known: the one that the caller has, whose strings go in any case.
    """
    key = Names(name).manifest
    data = yield from call(key, b"GET", key)
    stood = known if data is None else manifest.read(name, data)
    if data is not None and stood.state != manifest.DELETING:
        going = stood.at(manifest.DELETING)
        yield from call(key, b"SET", key, going.to_bytes(), b"XX", *going.lasting)
    try:
        yield from _removed(name, stood)
    except (EngineTimeout, EngineUnavailable):  # a client that does not try again itself
        yield from _removed(name, stood)
    if stood.id != known.id:
        yield from _unlinked(name, known)
    return data is not None


def _removed(name: str, stood: Manifest) -> Steps[None]:
    """Delete the strings of a filter, then its manifest, unless that is of another one by now."""
    key = Names(name).manifest
    yield from _unlinked(name, stood)
    data = yield from call(key, b"GET", key)
    if data is not None and manifest.read(name, data).id == stood.id:
        yield from call(key, b"DEL", key)


def _unlinked(name: str, stood: Manifest) -> Steps[None]:
    keys = Names.of(name, stood).bits
    if stood.other_shards:
        keys = keys + Names.of(name, stood.other()).bits
    for key in keys:
        yield from call(key, b"UNLINK", key)
