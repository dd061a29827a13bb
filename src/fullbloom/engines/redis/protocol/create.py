"""Creates, replaces and deletes filters, so that stopping halfway leaves nothing under a filter's name.

Creating a filter begins with its manifest, in the state "building" and with a time to live, set only if it
does not exist. The strings follow, each under a temporary key first, and with a time to live as well. Once
all strings exist, the manifest loses its time to live and says "closing", the strings get their final time
to live, and the manifest says "ready". A client that stops in between leaves only keys that expire, or a
state that the next client completes. Clients that find "building" wait. Deleting a filter sets the state
"deleting", and removes the manifest last.

Clients resend commands that may have been executed before a connection broke. The id of the manifest and the
tags of strings show the second time what the first one did.

A manifest is replaced only if it is still the one that the writer knew (`advance_manifest`), so a client that
was paused overwrites nothing. Each change of the strings first takes a generation of the manifest, which no
other change then has, and no string returns to an earlier generation.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from fullbloom.engines.redis.protocol import (
    MAX_ATTEMPTS,
    Call,
    Sleep,
    Steps,
    call,
    change_if_equal,
    change_with_expiry,
    contention_error,
    interruption_error,
    loss_error,
    parse_number,
    query_wait_limit,
    read_number,
    read_part,
    read_time,
    read_value,
    set_expiry,
    try_call,
    try_script,
)
from fullbloom.engines.redis.protocol.manifest import (
    BUILDING,
    CLOSING,
    DELETING,
    MODULE,
    OWNER_BYTES,
    READY,
    TAG_BYTES,
    Manifest,
    Names,
    make_colocated_key,
    make_expiry_command,
    parse_manifest,
    read_generation,
)
from fullbloom.errors import EngineError, EngineNameTaken, EngineTimeout, EngineUnavailable, FullbloomError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fullbloom._core import WireCells, WireCounters

#: Milliseconds that a key lives which no client reads: one under construction, or one that was replaced.
TEMPORARY_TTL = 60_000
_WAIT = 0.05
#: Seconds after which a deletion that another client began counts as abandoned.
_DELETION_TIMEOUT = 2.0
#: Attempts that are made even if the client's timeout is over.
_MIN_ATTEMPTS = 10
#: Bytes sent or fetched at a time.
PIECE = 1 << 20


class NewString(NamedTuple):
    """A string being created: its temporary key, its final one, and its tag, b"" if it has none."""

    temporary: bytes
    key: bytes
    nbytes: int
    tag: bytes


class Overtaken(Exception):
    """Another client has changed the filter since the manifest was read."""


def read_manifest(name: str) -> Steps[tuple[bytes, Manifest] | None]:
    """Return the manifest of a name, as bytes and parsed; None if it does not exist."""
    data = yield from read_value(Names(name).manifest)
    return None if data is None else (data, parse_manifest(name, data))


def wait_until_ready(name: str) -> Steps[Manifest | None]:
    """Return the manifest of a filter once it is ready; None if the filter does not exist."""
    start, limit = time.monotonic(), (yield from query_wait_limit())
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


def swap_manifest(name: str, stored: bytes, after: Manifest) -> Steps[bool]:
    """Replace the manifest if its bytes are still ``stored``; False if it has changed, or is gone."""
    key, new = Names(name).manifest, after.to_bytes()
    options = (b"PXAT", after.expires) if after.ttl else ()
    if (yield from change_if_equal(key, stored, b"SET", key, new, *options)):
        return True
    return (yield from read_value(key)) == new  # the command was resent


def advance_manifest(name: str, known: Manifest, after: Manifest) -> Steps[bool]:
    """Replace the manifest if it is still ``known``, or ``after`` already; False for any other."""
    stored = yield from read_manifest(name)
    if stored is None or stored[1] != known:
        return stored is not None and stored[1] == after
    return (yield from swap_manifest(name, stored[0], after))


def create_filter(
    name: str, manifest: Manifest, cells: WireCells | WireCounters, data: bytes | memoryview | None = None
) -> Steps[Manifest]:
    """Create a filter, empty or with the cells in ``data``; return its manifest.

    If another client created the filter meanwhile, returns the manifest of that one.
    """
    key, start, limit = Names(name).manifest, time.monotonic(), (yield from query_wait_limit())
    for attempt in range(MAX_ATTEMPTS):
        if attempt >= _MIN_ATTEMPTS and time.monotonic() - start >= limit:
            break
        if manifest.ttl:
            manifest = replace(manifest, expires=(yield from _compute_expiry(key, manifest.ttl)))
        first, strings = manifest.to_bytes(), list[NewString]()
        try:
            won = yield from try_call(key, b"SET", key, first, b"NX", b"PX", TEMPORARY_TTL)
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


def _compute_expiry(key: bytes, ttl: float) -> Steps[int]:
    return (yield from read_time(key)) + round(ttl * 1000)


class Renewal:
    """Renews the times to live of keys under construction, long before they end."""

    def __init__(self, manifest: tuple[bytes, bytes] | None = None) -> None:
        """Take the key and the value of the manifest under construction, if it expires, too."""
        self.keys: set[bytes] = set()
        self._manifest = manifest
        self._renewed = time.monotonic()

    def renew_if_due(self) -> Steps[None]:
        """Renew all if a quarter of the time to live is over."""
        if time.monotonic() - self._renewed < TEMPORARY_TTL / 4000:
            return
        self._renewed = time.monotonic()
        if self._manifest is not None:
            key, value = self._manifest  # another client may have deleted it, and created another filter
            yield from change_if_equal(key, value, b"PEXPIRE", key, TEMPORARY_TTL)
        yield [Call(key, (b"PEXPIRE", key, TEMPORARY_TTL)) for key in sorted(self.keys)]


def split_cells(
    cells: WireCells | WireCounters, shard: int, data: bytes | memoryview | None
) -> Iterator[tuple[int, bytes]]:
    """Return the pieces of a shard's cells in ``data``, as they are sent, with their offsets."""
    if data is not None:
        start, nbytes = cells.range(shard)
        view = memoryview(data)[start : start + nbytes]
        for at in range(0, nbytes, PIECE):
            yield at, cast("WireCells", cells).reorder(view[at : at + PIECE])  # counters are only cleared


def write_string(new: NewString, renewal: Renewal, pieces: Iterable[tuple[int, bytes]] = ()) -> Steps[None]:
    """Write a string under its temporary key: zeros or pieces of cells, and the tag.

    If it expires while it is written, what is written after that has no tag.
    """
    key = new.temporary
    renewal.keys.add(key)
    yield from call(key, b"SET", key, b"", b"PX", TEMPORARY_TTL)
    yield from call(key, b"SETRANGE", key, new.nbytes, new.tag)
    for at, piece in pieces:
        yield from renewal.renew_if_due()
        yield from call(key, b"SETRANGE", key, at, piece)
    yield from renewal.renew_if_due()


def claim_name(new: NewString) -> Steps[bytes]:
    """Rename a string to its final key if that is free; return the tag of the string that has the key then.

    A resent command finds the string renamed. b"" if the string expired before.
    """
    refused = None
    try:
        is_renamed = yield from try_call(new.key, b"RENAMENX", new.temporary, new.key)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError as error:  # it was renamed or has expired; or the command is refused
        is_renamed, refused = False, error
    tag = yield from read_part(new.key, new.nbytes, TAG_BYTES)
    if is_renamed and tag[:OWNER_BYTES] != new.tag[:OWNER_BYTES]:
        yield from call(new.key, b"UNLINK", new.key)
        return b""
    if refused is not None and not tag and (yield from read_number(new.temporary, b"EXISTS", new.temporary)):
        raise refused
    return tag


def _create_strings(
    name: str,
    manifest: Manifest,
    cells: WireCells | WireCounters,
    data: bytes | memoryview | None,
    strings: list[NewString],
) -> Steps[None]:
    """Create the strings; those that may exist are appended to ``strings``."""
    names = Names.from_manifest(name, manifest)
    if manifest.backend == MODULE:
        strings.append(NewString(names.bits[0], names.bits[0], 0, b""))
        yield from _reserve(names.bits[0], manifest)
        return
    renewal = Renewal((names.manifest, manifest.to_bytes()))
    for shard, key in enumerate(names.bits):
        temporary = make_colocated_key(key, b"new:" + manifest.id.encode())
        new = NewString(temporary, key, cells.range(shard)[1], manifest.make_tag(shard))
        strings.append(new)
        yield from write_string(new, renewal, split_cells(cells, shard, data))
        tag = yield from claim_name(new)
        if not tag:
            raise interruption_error(name, TEMPORARY_TTL // 1000)
        if not manifest.is_own(shard, tag):
            raise EngineNameTaken(
                f"filter {name!r}: the server has a key {key.decode()!r} but no filter of this name; delete "
                "that key, or choose another name"
            )
        renewal.keys.remove(temporary)
        renewal.keys.add(key)


def _has_name(one: NewString) -> Steps[bool]:
    """Return whether a string has its final key."""
    if not one.tag:
        return bool((yield from read_number(one.key, b"EXISTS", one.key)))
    return (yield from read_part(one.key, one.nbytes, len(one.tag))) == one.tag


def _finish(name: str, manifest: Manifest) -> Steps[Manifest]:
    """Record that all strings exist, and set their final time to live."""
    key, closing = Names(name).manifest, manifest.with_state(CLOSING)
    if (yield from advance_manifest(name, manifest, closing)):
        closed = yield from _close(name, closing)
        if closed is not None and closed.state != READY:  # another client deletes it already
            closed = yield from wait_until_ready(name)
        if closed is not None:
            return closed
    if manifest.ttl and (yield from read_time(key)) >= manifest.expires:
        raise EngineTimeout(
            f"filter {name!r}: its ttl of {manifest.ttl} s was over before it was created; give it more"
        )
    raise loss_error(name, "the strings that were created so far")


def _reserve(key: bytes, manifest: Manifest) -> Steps[None]:
    """Create a filter of the server's own, under a key that only this client has."""
    rate, expiry = repr(manifest.fpr).encode(), (b"PEXPIRE", TEMPORARY_TTL)
    try:
        yield from change_with_expiry(key, expiry, b"BF.RESERVE", key, rate, manifest.capacity)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from try_call(key, b"PEXPIRE", key, TEMPORARY_TTL)):
            raise


def _close(name: str, manifest: Manifest) -> Steps[Manifest | None]:
    """Set the strings' final time to live, and record that the filter is ready; return the manifest.

    None if strings had expired before, so that no client had the filter.
    """
    names, after = Names.from_manifest(name, manifest), manifest.with_state(READY)
    for key in names.bits:
        yield from set_expiry(key, make_expiry_command(manifest), manifest.generation)
        if not (yield from read_number(key, b"EXISTS", key)):
            after = manifest.with_state(DELETING)
            break
    if (yield from advance_manifest(name, manifest, after)):
        if after.state == READY:
            return after
        yield from _delete_keys(name, after)
        return None
    # Another client has closed it, and perhaps more.
    current = yield from read_same_manifest(name, manifest)
    if current is not None and not current.uses_layout(manifest.layout_version):
        yield [Call(key, (b"PEXPIRE", key, TEMPORARY_TTL)) for key in names.bits]
    return current


def _roll_back(name: str, manifest: Manifest, strings: list[NewString]) -> Steps[Manifest | None]:
    """Delete what was created, as far as the server can be reached; the rest expires.

    If other clients may have the filter by now, completes it instead, and returns its manifest.
    """
    with suppress(FullbloomError):
        current = yield from read_same_manifest(name, manifest)
        if current is not None and current.state not in {BUILDING, DELETING}:
            return (yield from wait_until_ready(name))
        for one in strings:
            yield from call(one.temporary, b"UNLINK", one.temporary)
            with suppress(EngineNameTaken):  # another program has that key
                if (yield from _has_name(one)):
                    yield from call(one.key, b"UNLINK", one.key)
        key = Names(name).manifest
        yield from change_if_equal(key, manifest.to_bytes(), b"DEL", key)
    return None


def replace_strings(
    name: str, manifest: Manifest, cells: WireCells | WireCounters, data: bytes | memoryview | None = None
) -> Steps[Manifest]:
    """Replace the cells by those in ``data``, or by zeros, one string at a time and each atomically.

    Zeros start a new ttl of a filter that has one. Raises `Overtaken` if another client has changed the
    filter since ``manifest`` was read.

    A filter of the server's own has no tag that shows its generation. It is replaced in an odd generation of
    the manifest, which the next even one follows: only in the odd one may it hold fewer keys than before.
    """
    names, after = Names.from_manifest(name, manifest), manifest.with_next_generation()
    if manifest.backend == MODULE and not after.is_clearing:
        after = after.with_next_generation()
    after = replace(after, other_layout_version=secrets.randbits(31))
    token, renewal = secrets.token_hex(8).encode(), Renewal()
    new = [
        NewString(
            make_colocated_key(key, b"new:" + token),
            key,
            cells.range(shard)[1],
            b"" if manifest.backend == MODULE else after.make_tag(shard),
        )
        for shard, key in enumerate(names.bits)
    ]
    try:
        for shard, one in enumerate(new):
            if manifest.backend == MODULE:
                yield from _reserve(one.temporary, after)
            else:
                yield from write_string(one, renewal, split_cells(cells, shard, data))
        # From here on no other client has this generation; strings of an earlier one still belong to this
        # filter, so stopping anywhere below does no harm.
        yield from _take_generation(name, manifest, after)
        final = after.with_next_generation() if manifest.backend == MODULE else after
        if data is None and manifest.ttl:
            final = replace(final, expires=(yield from _compute_expiry(names.manifest, manifest.ttl)))
        for one in new:
            yield from _replace_string(name, one, final)
            renewal.keys.discard(one.temporary)
            yield from renewal.renew_if_due()
        if final != after:
            yield from _take_generation(name, after, final)
    except (FullbloomError, Overtaken):
        with suppress(FullbloomError):
            for one in new:
                yield from call(one.temporary, b"UNLINK", one.temporary)
        raise
    return final


def _take_generation(name: str, manifest: Manifest, after: Manifest) -> Steps[None]:
    if not (yield from advance_manifest(name, manifest, after)):
        raise Overtaken


#: Renames KEYS[2] to KEYS[1] unless that has a later generation (0), and sets its time to live; -1 if KEYS[2]
#: has another tag or is gone.
_REPLACE = (
    b"local tag = redis.call('GETRANGE', KEYS[1], ARGV[3], ARGV[3] + 15) "
    b"if #tag == 16 and string.sub(tag, 1, 8) == string.sub(ARGV[4], 1, 8) "
    b"and struct.unpack('<I4', tag, 9) > struct.unpack('<I4', ARGV[4], 9) then return 0 end "
    b"if redis.call('GETRANGE', KEYS[2], ARGV[3], ARGV[3] + 15) ~= ARGV[4] then return -1 end "
    b"redis.call('RENAME', KEYS[2], KEYS[1]) "
    b"if ARGV[1] == 'PERSIST' then redis.call('PERSIST', KEYS[1]) "
    b"else redis.call(ARGV[1], KEYS[1], ARGV[2]) end "
    b"return 1"
)


def _replace_string(name: str, one: NewString, after: Manifest) -> Steps[None]:
    """Rename a string over an existing one; a resent command finds it renamed."""
    expiry = command, *when = make_expiry_command(after)
    try:
        if one.tag:
            outcome = yield from _try_replacing(one, expiry)
            if outcome == 0:
                raise Overtaken
            if outcome == 1 or (yield from _has_name(one)):
                return
            raise interruption_error(name, TEMPORARY_TTL // 1000)
        # Without a tag, a string that has expired looks like one that a resent command renamed.
        if not (yield from try_call(one.temporary, b"PEXPIRE", one.temporary, TEMPORARY_TTL)):
            raise interruption_error(name, TEMPORARY_TTL // 1000)
        rename = (b"RENAME", one.temporary, one.key)
        yield from change_with_expiry(one.key, expiry, *rename, others=(one.temporary,))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        if not (yield from _has_name(one)):
            raise
        yield from call(one.key, command, one.key, *when)


def _try_replacing(one: NewString, expiry: tuple[bytes | int, ...]) -> Steps[int]:
    """Run `_REPLACE`, or where scripts are refused, the same as several commands."""
    command, when = expiry[0], expiry[1] if len(expiry) > 1 else 0
    reply = yield from try_script(_REPLACE, (one.key, one.temporary), command, when, one.nbytes, one.tag)
    if reply is not None:
        return parse_number(reply)
    tag = yield from read_part(one.key, one.nbytes, len(one.tag))
    mine, theirs = read_generation(one.tag), read_generation(tag)
    if tag[:OWNER_BYTES] == one.tag[:OWNER_BYTES] and theirs > mine:
        return 0
    if (yield from read_part(one.temporary, one.nbytes, len(one.tag))) != one.tag:
        return -1
    rename = (b"RENAME", one.temporary, one.key)
    yield from change_with_expiry(one.key, expiry, *rename, others=(one.temporary,))
    return 1


def delete_filter(name: str) -> Steps[bool]:
    """Delete the filter of a name; True if it existed."""
    for attempt in range(MAX_ATTEMPTS):
        stored = yield from read_manifest(name)
        if stored is None:
            return False
        manifest = stored[1]
        deleting = manifest.with_state(DELETING)
        if manifest == deleting or (yield from swap_manifest(name, stored[0], deleting)):
            break
        yield [Sleep(_WAIT * min(attempt, 4))]
    else:
        raise contention_error(name)
    try:
        yield from _delete_keys(name, deleting)
    except (EngineTimeout, EngineUnavailable):  # of a client without retries
        yield from _delete_keys(name, deleting)
    return True


def _delete_keys(name: str, manifest: Manifest) -> Steps[None]:
    """Delete the strings of a filter, then its manifest, unless another filter has the name by now."""
    keys = Names.from_manifest(name, manifest).bits
    if manifest.other_shards:
        keys = keys + Names.from_manifest(name, manifest.with_other_layout()).bits
    for string in keys:
        yield from call(string, b"UNLINK", string)
    stored = yield from read_manifest(name)
    if stored is not None and stored[1].id == manifest.id:
        key = Names(name).manifest
        yield from change_if_equal(key, stored[0], b"DEL", key)
