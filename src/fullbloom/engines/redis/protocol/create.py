"""Making, opening, replacing and deleting a filter; nothing half-built is left under its name.

A new filter begins with its manifest, set if none is there, in the state "building" and with a time to
live. Then its strings, each under another name first, with a time to live too. Once all are there the
manifest, for good from here on, says "closing", the strings' times are lifted (or set to the end of the
filter's term), and it says "ready". Whoever stops in between leaves what vanishes by itself, or what the
next client brings to its end. Clients that find "building" wait. One that is deleted says "deleting" first,
and its manifest goes last.

Clients send what broke off once more, when it may have been done: so the manifest has an id and strings have
tags, by which the second time finds what the first did.

A manifest is only ever replaced by comparing it with what the writer knew (`swapped`), so that a client which
was paused meanwhile overwrites nothing. Each change of the strings takes a generation of the manifest first,
which no other change has then, and no string goes from a later generation to an earlier one.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.engines.redis.protocol import errors, manifest
from fullbloom.engines.redis.protocol.keys import Names, beside
from fullbloom.engines.redis.protocol.manifest import Manifest, lasts
from fullbloom.engines.redis.protocol.requests import (
    LONGEST_TEXT,
    Pause,
    Steps,
    Timeout,
    call,
    guarded,
    is_done,
    now,
    read_number,
    read_part,
    read_text,
    timed,
)
from fullbloom.errors import EngineError, EngineNameTaken, EngineTimeout, EngineUnavailable, FullbloomError

if TYPE_CHECKING:
    from fullbloom._core import WireCells

#: Milliseconds for which a filter may be under way.
_BUILT_WITHIN = 60_000
#: Seconds for which another client is waited for, if the client's own timeout is not shorter.
_PATIENCE = 10.0
_WAIT = 0.05
#: Seconds after which what another client began to delete is taken for left behind.
_DELETED_WITHIN = 2.0
#: How often a change is tried that others overtake.
_TRIES = 100
#: How often it is tried even where the client waits for a shorter time.
_TRIES_AT_LEAST = 10
#: Bytes that are sent or fetched at a time.
PIECE = 1 << 20


class _Made(NamedTuple):
    """A string under way: the name that it has first, the one that it gets, and its mark, b"" without one."""

    fresh: bytes
    key: bytes
    nbytes: int
    mark: bytes


class Overtaken(Exception):
    """Another client has changed the filter since the manifest was read."""


def stored(name: str) -> Steps[tuple[bytes, Manifest] | None]:
    """Return the manifest under a name, as bytes and as what they say."""
    key = Names(name).manifest
    data = yield from read_text(key, LONGEST_TEXT, b"GET", key)
    return None if data is None else (data, manifest.read(name, data))


def patience() -> Steps[float]:
    """Return the seconds for which another client may be waited for."""
    (seconds,) = yield [Timeout()]
    return _PATIENCE if seconds is None else min(_PATIENCE, seconds)


def standing(name: str) -> Steps[Manifest | None]:
    """Return the manifest of a filter that is ready, after a while if need be; None where there is none."""
    began, most = time.monotonic(), (yield from patience())
    while True:
        there = yield from stored(name)
        if there is None:
            return None
        found, waited = there[1], time.monotonic() - began
        if found.state == manifest.DELETING and waited >= min(_DELETED_WITHIN, most):
            yield from _removed(name, found)
            return None
        stood = (yield from _closed(name, found)) if found.state == manifest.CLOSING else found
        if stood is None or stood.state == manifest.READY:
            return stood
        if waited >= most:
            raise EngineTimeout(
                f"filter {name!r}: another client began to make it and is not done after {waited:.1f} s; "
                "try again"
            )
        yield [Pause(_WAIT)]


def same(name: str, known: Manifest) -> Steps[Manifest | None]:
    """Return the manifest that is there if its id is that of ``known``; None if not."""
    there = yield from stored(name)
    return there[1] if there is not None and there[1].id == known.id else None


def swapped(name: str, known: Manifest, after: Manifest) -> Steps[bool]:
    """Replace a manifest if it is still ``known``; False where it is another one, or gone."""
    key, there = Names(name).manifest, (yield from stored(name))
    if there is None:
        return False
    data, new = there[0], after.to_bytes()
    if data == new:  # sent twice
        return True
    if there[1] != known:
        return False
    if (yield from guarded(key, data, b"SET", key, new, *after.lasting)):
        return True
    return (yield from read_text(key, LONGEST_TEXT, b"GET", key)) == new  # sent twice


def made(
    name: str, wanted: Manifest, cells: WireCells, data: bytes | memoryview | None = None
) -> Steps[Manifest]:
    """Make a filter, without keys or of the cells in ``data``.

    Return what another client made meanwhile, if one did.
    """
    key, began, most = Names(name).manifest, time.monotonic(), (yield from patience())
    for turn in range(_TRIES):
        if turn >= _TRIES_AT_LEAST and time.monotonic() - began >= most:
            break
        if wanted.ttl:
            wanted = replace(wanted, expires=(yield from _end(key, wanted.ttl)))
        first, done = wanted.to_bytes(), list[_Made]()
        try:
            won = yield from is_done(key, b"SET", key, first, b"NX", b"PX", _BUILT_WITHIN)
            if won or (yield from read_text(key, LONGEST_TEXT, b"GET", key)) == first:
                yield from _built(name, wanted, cells, data, done)
                return (yield from _finished(name, wanted))
        except FullbloomError:
            stood = yield from _undone(name, wanted, done)
            if stood is None:
                raise
            return stood
        stood = yield from standing(name)
        if stood is not None:
            return stood
        yield [Pause(_WAIT)]
    raise EngineTimeout(f"filter {name!r}: other clients keep making and deleting it; try again")


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
        if (yield from is_done(one.key, b"RENAMENX", one.fresh, one.key)):
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
        return bool((yield from read_number(one.key, b"EXISTS", one.key)))
    return (yield from read_part(one.key, one.nbytes, len(one.mark))) == one.mark


def _finished(name: str, wanted: Manifest) -> Steps[Manifest]:
    """Say that all strings are there, and set how long they stand."""
    key, closing = Names(name).manifest, wanted.at(manifest.CLOSING)
    if (yield from swapped(name, wanted, closing)):
        closed = yield from _closed(name, closing)
        if closed is not None:
            return closed
    if wanted.ttl and (yield from now(key)) >= wanted.expires:
        raise EngineTimeout(
            f"filter {name!r}: its ttl of {wanted.ttl} s was over before it was made; give it more"
        )
    raise errors.lost(name, "what was made of it so far")


def _reserved(key: bytes, wanted: Manifest) -> Steps[None]:
    """Make a filter of the server's own, under a name that only this client has."""
    rate, how = repr(wanted.fpr).encode(), (b"PEXPIRE", _BUILT_WITHIN)
    try:
        yield from timed(key, how, b"BF.RESERVE", key, rate, wanted.capacity)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from is_done(key, b"PEXPIRE", key, _BUILT_WITHIN)):
            raise


def _closed(name: str, stood: Manifest) -> Steps[Manifest | None]:
    """Set how long the strings stand.

    None where they came to their end before, and nobody had the filter.
    """
    names, (how, *when) = Names.of(name, stood), lasts(stood)
    for key in names.bits:
        yield from call(key, how, key, *when)
        if not (yield from read_number(key, b"EXISTS", key)):
            yield from _removed(name, stood)
            return None
    ready = stood.at(manifest.READY)
    if not (yield from swapped(name, stood, ready)):  # another client has done so, and may have gone on
        return (yield from same(name, stood))
    return ready


def _undone(name: str, wanted: Manifest, done: list[_Made]) -> Steps[Manifest | None]:
    """Take back what was begun, as far as the server can be reached; the rest vanishes by itself.

    What others may have by now is brought to its end instead, and returned.
    """
    with suppress(FullbloomError):
        key = Names(name).manifest
        data = yield from read_text(key, LONGEST_TEXT, b"GET", key)
        if data in {wanted.at(state).to_bytes() for state in (manifest.CLOSING, manifest.READY)}:
            return (yield from standing(name))
        for one in done:
            yield from call(one.fresh, b"UNLINK", one.fresh)
            with suppress(EngineNameTaken):  # somebody's
                if (yield from _stands(one)):
                    yield from call(one.key, b"UNLINK", one.key)
        if data == wanted.to_bytes():
            yield from guarded(key, data, b"DEL", key)
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

    None set begin another term of a filter that has one. Raises `Overtaken` where another client has changed
    the filter since ``stood`` was read.
    """
    names = Names.of(name, stood)
    after = stood.next()
    token = secrets.token_hex(8).encode()
    fresh = [beside(key, b"new:" + token) for key in names.bits]
    try:
        for shard, key in enumerate(fresh):
            if stood.backend == manifest.MODULE:
                yield from _reserved(key, after)
            else:
                yield from written(key, after.mark(shard), cells, shard, data)
        # From here on this generation is nobody else's; strings of an earlier one are this filter's still, so
        # that stopping anywhere below does no harm.
        yield from _taken(name, stood, after)
        end = after
        if data is None and stood.ttl:
            end = replace(after, expires=(yield from _end(names.manifest, stood.ttl)))
        for shard, (key, new) in enumerate(zip(names.bits, fresh, strict=True)):
            mark = b"" if stood.backend == manifest.MODULE else after.mark(shard)
            yield from _renamed(_Made(new, key, cells.range(shard)[1], mark), end)
        if end != after:
            yield from _taken(name, after, end)
    except (FullbloomError, Overtaken):
        with suppress(FullbloomError):
            for key in fresh:
                yield from call(key, b"UNLINK", key)
        raise
    return end


def _taken(name: str, stood: Manifest, after: Manifest) -> Steps[None]:
    if not (yield from swapped(name, stood, after)):
        raise Overtaken


#: Renames KEYS[2] to KEYS[1] unless that has a later generation, and sets how long it is there.
_RENAMED = (
    b"local tag = redis.call('GETRANGE', KEYS[1], ARGV[3], ARGV[3] + 15) "
    b"if #tag == 16 and string.sub(tag, 1, 8) == string.sub(ARGV[4], 1, 8) "
    b"and struct.unpack('<I4', tag, 9) > struct.unpack('<I4', ARGV[4], 9) then return 0 end "
    b"redis.call('RENAME', KEYS[2], KEYS[1]) "
    b"if ARGV[1] == 'PERSIST' then redis.call('PERSIST', KEYS[1]) "
    b"else redis.call(ARGV[1], KEYS[1], ARGV[2]) end "
    b"return 1"
)


def _renamed(one: _Made, after: Manifest) -> Steps[None]:
    """Put a string in the place of another; sent twice, it is found there."""
    how, *when = lasts(after)
    try:
        if one.mark:
            words = (how, *(when or [0]), one.nbytes, one.mark)
            try:
                script = (b"EVAL", _RENAMED, 2, one.key, one.fresh)
                renamed = yield from read_number(one.key, *script, *words)
            except (EngineTimeout, EngineUnavailable):
                raise
            except EngineError:  # no scripts; or the string is not there, which is told now
                tag = yield from read_part(one.key, one.nbytes, len(one.mark))
                mine, theirs = manifest.generation_of(one.mark), manifest.generation_of(tag)
                if tag[: manifest.OWNER_BYTES] == one.mark[: manifest.OWNER_BYTES] and theirs > mine:
                    raise Overtaken from None
            else:
                if not renamed:
                    raise Overtaken
                return
        yield from timed(one.key, lasts(after), b"RENAME", one.fresh, one.key, others=(one.fresh,))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from _stands(one)):
            raise
        yield from call(one.key, how, one.key, *when)


def deleted(name: str) -> Steps[bool]:
    """Delete the filter of a name: True when there was one."""
    for turn in range(_TRIES):
        there = yield from stored(name)
        if there is None:
            return False
        stood = there[1]
        going = stood.at(manifest.DELETING)
        if stood == going or (yield from swapped(name, stood, going)):
            break
        yield [Pause(_WAIT * min(turn, 4))]
    else:
        raise EngineTimeout(f"filter {name!r}: other clients keep changing it; try again")
    try:
        yield from _removed(name, going)
    except (EngineTimeout, EngineUnavailable):  # a client that does not try again itself
        yield from _removed(name, going)
    return True


def _removed(name: str, stood: Manifest) -> Steps[None]:
    """Delete the strings of a filter, then its manifest, unless that is of another one by now."""
    key = Names(name).manifest
    names = Names.of(name, stood).bits
    if stood.other_shards:
        names = names + Names.of(name, stood.other()).bits
    for string in names:
        yield from call(string, b"UNLINK", string)
    there = yield from stored(name)
    if there is not None and there[1].id == stood.id:
        yield from guarded(key, there[0], b"DEL", key)


#: Deletes a string that is this filter's, by its owner's bytes, or was never whole and is there for good.
_SWEPT = (
    b"local whole, size = tonumber(ARGV[1]), redis.call('STRLEN', KEYS[1]) "
    b"local owner = redis.call('GETRANGE', KEYS[1], whole, whole + 7) "
    b"local bare = size > 0 and size <= whole and redis.call('PTTL', KEYS[1]) == -1 "
    b"if bare or (ARGV[3] == '1' and owner == ARGV[2]) "
    b"then return redis.call('DEL', KEYS[1]) end "
    b"return 0"
)


def swept(key: bytes, nbytes: int, tag: bytes, *, own: bool) -> Steps[None]:
    """Delete a string without a tag, which an add left that came after the filter was gone.

    own: also one with the tag of this filter, which is gone.
    """
    owner = tag[: manifest.OWNER_BYTES]
    with suppress(EngineNameTaken):  # something else has the name, and keeps it
        try:
            yield from call(key, b"EVAL", _SWEPT, 1, key, nbytes, owner, int(own))
        except (EngineTimeout, EngineUnavailable, EngineNameTaken):
            raise
        except EngineError:  # no scripts
            size = yield from read_number(key, b"STRLEN", key)
            bare = 0 < size <= nbytes and (yield from read_number(key, b"PTTL", key)) == -1
            if bare or (own and (yield from read_part(key, nbytes, len(owner))) == owner):
                yield from call(key, b"UNLINK", key)
