"""Creates, replaces and deletes filters, so that stopping halfway leaves nothing under a filter's name.

Creating a filter begins with its manifest, in the state "building" and with a time to live, set only if it
does not exist. The strings follow, each under a temporary key first, and with a time to live as well. Once
all strings exist, the manifest loses its time to live and says "closing", the strings get their final time
to live, and the manifest says "ready". A client that stops in between leaves only keys that expire, or a
state that the next client completes. Clients that find "building" wait. Deleting a filter sets the state
"deleting", and removes the manifest last.

Clients resend commands that may have been executed before a connection broke. The id of the manifest and the
tags of strings show the second time what the first one did.

A manifest is replaced only if it is still the one that the writer knew (`swap_manifest`), so a client that
was paused overwrites nothing. Each change of the strings first takes a generation of the manifest, which no
other change then has, and no string returns to an earlier generation.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.engines.redis.protocol import errors
from fullbloom.engines.redis.protocol.keys import Names, colocated_key
from fullbloom.engines.redis.protocol.manifest import (
    CLOSING,
    DELETING,
    MODULE,
    OWNER_BYTES,
    READY,
    Manifest,
    expiry_command,
    parse_manifest,
    read_generation,
)
from fullbloom.engines.redis.protocol.requests import (
    QueryTimeout,
    Sleep,
    Steps,
    call,
    change_if_equal,
    change_with_expiry,
    read_number,
    read_part,
    read_time,
    read_value,
    try_call,
)
from fullbloom.errors import EngineError, EngineNameTaken, EngineTimeout, EngineUnavailable, FullbloomError

if TYPE_CHECKING:
    from fullbloom._core import WireCells

#: Milliseconds within which a filter must be created.
_BUILD_TTL = 60_000
#: Seconds to wait for another client, unless this client's own timeout is shorter.
_MAX_WAIT = 10.0
_WAIT = 0.05
#: Seconds after which a deletion that another client began counts as abandoned.
_DELETION_TIMEOUT = 2.0
#: Attempts at a change while other clients keep changing the filter.
_MAX_ATTEMPTS = 100
#: Attempts that are made even if the client's timeout is over.
_MIN_ATTEMPTS = 10
#: Bytes sent or fetched at a time.
PIECE = 1 << 20


class _NewString(NamedTuple):
    """A string being created: its temporary key, its final one, and its tag, b"" if it has none."""

    temporary: bytes
    key: bytes
    nbytes: int
    tag: bytes


class Overtaken(Exception):
    """Another client has changed the filter since the manifest was read."""


def read_manifest(name: str) -> Steps[tuple[bytes, Manifest] | None]:
    """Return the manifest of a name, as bytes and parsed; None if it does not exist."""
    key = Names(name).manifest
    data = yield from read_value(key)
    return None if data is None else (data, parse_manifest(name, data))


def wait_limit() -> Steps[float]:
    """Return how many seconds to wait for another client."""
    (seconds,) = yield [QueryTimeout()]
    return _MAX_WAIT if seconds is None else min(_MAX_WAIT, seconds)


def wait_until_ready(name: str) -> Steps[Manifest | None]:
    """Return the manifest of a filter once it is ready; None if the filter does not exist."""
    start, limit = time.monotonic(), (yield from wait_limit())
    while True:
        stored = yield from read_manifest(name)
        if stored is None:
            return None
        found, waited = stored[1], time.monotonic() - start
        if found.state == DELETING and waited >= min(_DELETION_TIMEOUT, limit):
            yield from _delete_keys(name, found)
            return None
        manifest = (yield from _close(name, found)) if found.state == CLOSING else found
        if manifest is None or manifest.state == READY:
            return manifest
        if waited >= limit:
            raise EngineTimeout(
                f"filter {name!r}: another client began to create it and is not done after {waited:.1f} s; "
                "try again"
            )
        yield [Sleep(_WAIT)]


def read_same_manifest(name: str, known: Manifest) -> Steps[Manifest | None]:
    """Return the current manifest if its id matches, else None."""
    stored = yield from read_manifest(name)
    return stored[1] if stored is not None and stored[1].id == known.id else None


def swap_manifest(name: str, known: Manifest, after: Manifest) -> Steps[bool]:
    """Replace the manifest if it is still ``known``; False if it has changed, or is gone."""
    key, stored = Names(name).manifest, (yield from read_manifest(name))
    if stored is None:
        return False
    data, new = stored[0], after.to_bytes()
    if data == new:  # sent twice
        return True
    if stored[1] != known:
        return False
    if (yield from change_if_equal(key, data, b"SET", key, new, *after.set_options)):
        return True
    return (yield from read_value(key)) == new  # sent twice


def create_filter(
    name: str, manifest: Manifest, cells: WireCells, data: bytes | memoryview | None = None
) -> Steps[Manifest]:
    """Create a filter, empty or with the cells in ``data``; return its manifest.

    If another client created the filter meanwhile, returns the manifest of that one.
    """
    key, start, limit = Names(name).manifest, time.monotonic(), (yield from wait_limit())
    for attempt in range(_MAX_ATTEMPTS):
        if attempt >= _MIN_ATTEMPTS and time.monotonic() - start >= limit:
            break
        if manifest.ttl:
            manifest = replace(manifest, expires=(yield from _expiry_from_now(key, manifest.ttl)))
        first, strings = manifest.to_bytes(), list[_NewString]()
        try:
            won = yield from try_call(key, b"SET", key, first, b"NX", b"PX", _BUILD_TTL)
            if won or (yield from read_value(key)) == first:
                yield from _create_strings(name, manifest, cells, data, strings)
                return (yield from _finish(name, manifest))
        except FullbloomError:
            existing = yield from _roll_back(name, manifest, strings)
            if existing is None:
                raise
            return existing
        existing = yield from wait_until_ready(name)
        if existing is not None:
            return existing
        yield [Sleep(_WAIT)]
    raise EngineTimeout(f"filter {name!r}: other clients keep creating and deleting it; try again")


def _expiry_from_now(key: bytes, ttl: float) -> Steps[int]:
    return (yield from read_time(key)) + round(ttl * 1000)


def _create_strings(
    name: str,
    manifest: Manifest,
    cells: WireCells,
    data: bytes | memoryview | None,
    strings: list[_NewString],
) -> Steps[None]:
    """Create the strings; those that may exist are appended to ``strings``."""
    names = Names.of(name, manifest)
    if manifest.backend == MODULE:
        strings.append(_NewString(names.bits[0], names.bits[0], 0, b""))
        yield from _reserve(names.bits[0], manifest)
        return
    for shard, key in enumerate(names.bits):
        temporary = colocated_key(key, b"new:" + manifest.id.encode())
        strings.append(_NewString(temporary, key, cells.range(shard)[1], manifest.tag(shard)))
        yield from write_string(temporary, manifest.tag(shard), cells, shard, data)
        if not (yield from _claim_name(strings[-1])):
            raise EngineNameTaken(
                f"filter {name!r}: the server has a key {key.decode()!r} but no filter of this name; delete "
                "that key, or choose another name"
            )
        if data is not None:  # writing it may take longer than the time to live
            for existing in (names.manifest, *(one.key for one in strings)):
                yield from call(existing, b"PEXPIRE", existing, _BUILD_TTL)


def _claim_name(one: _NewString) -> Steps[bool]:
    """Rename a string to its final key if that is free; a resent command finds it renamed."""
    try:
        if (yield from try_call(one.key, b"RENAMENX", one.temporary, one.key)):
            return True
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from _has_name(one)):
            raise
        return True
    return (yield from _has_name(one))


def _has_name(one: _NewString) -> Steps[bool]:
    """Return whether a string has its final key."""
    if not one.tag:
        return bool((yield from read_number(one.key, b"EXISTS", one.key)))
    return (yield from read_part(one.key, one.nbytes, len(one.tag))) == one.tag


def _finish(name: str, manifest: Manifest) -> Steps[Manifest]:
    """Record that all strings exist, and set their final time to live."""
    key, closing = Names(name).manifest, manifest.with_state(CLOSING)
    if (yield from swap_manifest(name, manifest, closing)):
        closed = yield from _close(name, closing)
        if closed is not None:
            return closed
    if manifest.ttl and (yield from read_time(key)) >= manifest.expires:
        raise EngineTimeout(
            f"filter {name!r}: its ttl of {manifest.ttl} s was over before it was created; give it more"
        )
    raise errors.loss(name, "the strings that were created so far")


def _reserve(key: bytes, manifest: Manifest) -> Steps[None]:
    """Create a filter of the server's own, under a key that only this client has."""
    rate, expiry = repr(manifest.fpr).encode(), (b"PEXPIRE", _BUILD_TTL)
    try:
        yield from change_with_expiry(key, expiry, b"BF.RESERVE", key, rate, manifest.capacity)

    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from try_call(key, b"PEXPIRE", key, _BUILD_TTL)):
            raise


def _close(name: str, manifest: Manifest) -> Steps[Manifest | None]:
    """Set the strings' final time to live; None if they had expired before, so no client had the filter."""
    names, (command, *when) = Names.of(name, manifest), expiry_command(manifest)
    for key in names.bits:
        yield from call(key, command, key, *when)
        if not (yield from read_number(key, b"EXISTS", key)):
            yield from _delete_keys(name, manifest)
            return None
    ready = manifest.with_state(READY)
    if (yield from swap_manifest(name, manifest, ready)):
        return ready
    return (yield from read_same_manifest(name, manifest))  # another client has closed it, and perhaps more


def _roll_back(name: str, manifest: Manifest, strings: list[_NewString]) -> Steps[Manifest | None]:
    """Delete what was created, as far as the server can be reached; the rest expires.

    If other clients may have the filter by now, completes it instead, and returns its manifest.
    """
    with suppress(FullbloomError):
        key = Names(name).manifest
        data = yield from read_value(key)
        if data in {manifest.with_state(state).to_bytes() for state in (CLOSING, READY)}:
            return (yield from wait_until_ready(name))
        for one in strings:
            yield from call(one.temporary, b"UNLINK", one.temporary)
            with suppress(EngineNameTaken):  # another program has that key
                if (yield from _has_name(one)):
                    yield from call(one.key, b"UNLINK", one.key)
        if data == manifest.to_bytes():
            yield from change_if_equal(key, data, b"DEL", key)
    return None


def write_string(
    key: bytes, tag: bytes, cells: WireCells, shard: int, data: bytes | memoryview | None
) -> Steps[None]:
    """Write a string that expires: the cells of ``data``, or zeros, and the tag."""
    start, nbytes = cells.range(shard)
    yield from call(key, b"SET", key, b"", b"PX", _BUILD_TTL)
    yield from call(key, b"SETRANGE", key, nbytes, tag)
    if data is not None:
        view = memoryview(data)[start : start + nbytes]
        for at in range(0, nbytes, PIECE):
            yield from call(key, b"SETRANGE", key, at, cells.reorder(view[at : at + PIECE]))
            yield from call(key, b"PEXPIRE", key, _BUILD_TTL)


def replace_strings(
    name: str, manifest: Manifest, cells: WireCells, data: bytes | memoryview | None = None
) -> Steps[Manifest]:
    """Replace the cells by those in ``data``, or by zeros, one string at a time and each atomically.

    Zeros start a new ttl of a filter that has one. Raises `Overtaken` if another client has changed the
    filter since ``manifest`` was read.

    A filter of the server's own has no tag that shows its generation. It is replaced in an odd generation of
    the manifest, which the next even one follows: only in the odd one may it hold fewer keys than before.
    """
    names = Names.of(name, manifest)
    after = manifest.next_generation()
    if manifest.backend == MODULE and not is_clearing(after):
        after = after.next_generation()
    token = secrets.token_hex(8).encode()
    temporary = [colocated_key(key, b"new:" + token) for key in names.bits]
    try:
        for shard, key in enumerate(temporary):
            if manifest.backend == MODULE:
                yield from _reserve(key, after)
            else:
                yield from write_string(key, after.tag(shard), cells, shard, data)
        # From here on no other client has this generation; strings of an earlier one still belong to this
        # filter, so stopping anywhere below does no harm.
        yield from _take_generation(name, manifest, after)
        final = after.next_generation() if manifest.backend == MODULE else after
        if data is None and manifest.ttl:
            final = replace(final, expires=(yield from _expiry_from_now(names.manifest, manifest.ttl)))
        for shard, (key, new) in enumerate(zip(names.bits, temporary, strict=True)):
            tag = b"" if manifest.backend == MODULE else after.tag(shard)
            yield from _replace_string(_NewString(new, key, cells.range(shard)[1], tag), final)
        if final != after:
            yield from _take_generation(name, after, final)
    except (FullbloomError, Overtaken):
        with suppress(FullbloomError):
            for key in temporary:
                yield from call(key, b"UNLINK", key)
        raise
    return final


def is_clearing(manifest: Manifest) -> bool:
    """Return whether a filter of the server's own is being cleared, or a client stopped while it did so."""
    return manifest.backend == MODULE and manifest.generation % 2 == 1


def _take_generation(name: str, manifest: Manifest, after: Manifest) -> Steps[None]:
    if not (yield from swap_manifest(name, manifest, after)):
        raise Overtaken


#: Renames KEYS[2] to KEYS[1] unless that has a later generation, and sets its time to live.
_REPLACE = (
    b"local tag = redis.call('GETRANGE', KEYS[1], ARGV[3], ARGV[3] + 15) "
    b"if #tag == 16 and string.sub(tag, 1, 8) == string.sub(ARGV[4], 1, 8) "
    b"and struct.unpack('<I4', tag, 9) > struct.unpack('<I4', ARGV[4], 9) then return 0 end "
    b"redis.call('RENAME', KEYS[2], KEYS[1]) "
    b"if ARGV[1] == 'PERSIST' then redis.call('PERSIST', KEYS[1]) "
    b"else redis.call(ARGV[1], KEYS[1], ARGV[2]) end "
    b"return 1"
)


def _replace_string(one: _NewString, after: Manifest) -> Steps[None]:
    """Rename a string over an existing one; a resent command finds it renamed."""
    expiry = command, *when = expiry_command(after)
    try:
        if one.tag:
            words = (command, *(when or [0]), one.nbytes, one.tag)
            try:
                script = (b"EVAL", _REPLACE, 2, one.key, one.temporary)
                renamed = yield from read_number(one.key, *script, *words)
            except (EngineTimeout, EngineUnavailable):
                raise
            except EngineError:  # no scripts; or the string is gone, which the next command reports
                tag = yield from read_part(one.key, one.nbytes, len(one.tag))
                mine, theirs = read_generation(one.tag), read_generation(tag)
                if tag[:OWNER_BYTES] == one.tag[:OWNER_BYTES] and theirs > mine:
                    raise Overtaken from None
            else:
                if not renamed:
                    raise Overtaken
                return
        rename = (b"RENAME", one.temporary, one.key)
        yield from change_with_expiry(one.key, expiry, *rename, others=(one.temporary,))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from _has_name(one)):
            raise
        yield from call(one.key, command, one.key, *when)


def delete_filter(name: str) -> Steps[bool]:
    """Delete the filter of a name; True if it existed."""
    for attempt in range(_MAX_ATTEMPTS):
        stored = yield from read_manifest(name)
        if stored is None:
            return False
        manifest = stored[1]
        deleting = manifest.with_state(DELETING)
        if manifest == deleting or (yield from swap_manifest(name, manifest, deleting)):
            break
        yield [Sleep(_WAIT * min(attempt, 4))]
    else:
        raise EngineTimeout(f"filter {name!r}: other clients keep changing it; try again")
    try:
        yield from _delete_keys(name, deleting)
    except (EngineTimeout, EngineUnavailable):  # of a client without retries
        yield from _delete_keys(name, deleting)
    return True


def _delete_keys(name: str, manifest: Manifest) -> Steps[None]:
    """Delete the strings of a filter, then its manifest, unless another filter has the name by now."""
    key = Names(name).manifest
    names = Names.of(name, manifest).bits
    if manifest.other_shards:
        names = names + Names.of(name, manifest.other_layout()).bits
    for string in names:
        yield from call(string, b"UNLINK", string)
    stored = yield from read_manifest(name)
    if stored is not None and stored[1].id == manifest.id:
        yield from change_if_equal(key, stored[0], b"DEL", key)


#: Deletes a string with this filter's owner bytes, or one without a tag that does not expire.
_SWEEP = (
    b"local whole, size = tonumber(ARGV[1]), redis.call('STRLEN', KEYS[1]) "
    b"local owner = redis.call('GETRANGE', KEYS[1], whole, whole + 7) "
    b"local bare = size > 0 and size <= whole and redis.call('PTTL', KEYS[1]) == -1 "
    b"if bare or (ARGV[3] == '1' and owner == ARGV[2]) "
    b"then return redis.call('DEL', KEYS[1]) end "
    b"return 0"
)


def sweep_string(key: bytes, nbytes: int, tag: bytes, *, own: bool) -> Steps[None]:
    """Delete a string without a tag, which an add left behind after the filter was gone.

    With ``own``, deletes one with the tag of this filter as well.
    """
    owner = tag[:OWNER_BYTES]
    with suppress(EngineNameTaken):  # something else has that key, and keeps it
        try:
            yield from call(key, b"EVAL", _SWEEP, 1, key, nbytes, owner, int(own))
        except (EngineTimeout, EngineUnavailable, EngineNameTaken):
            raise
        except EngineError:  # no scripts
            size = yield from read_number(key, b"STRLEN", key)
            bare = 0 < size <= nbytes and (yield from read_number(key, b"PTTL", key)) == -1
            if bare or (own and (yield from read_part(key, nbytes, len(owner))) == owner):
                yield from call(key, b"UNLINK", key)
