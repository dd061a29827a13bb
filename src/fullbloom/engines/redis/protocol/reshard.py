"""Changes the number of shards, while clients add and look up keys.

A filter moves to new strings through four states of its manifest, each in the next generation. In each state
the tags of all strings get that generation first, so the next batch of every client notices: it reads the
tags behind its keys.

| state | read | written | then |
|---|---|---|---|
| before | old | old | the new strings are created, with all bits 0 |
| copying | old | old and new | the old cells are merged into the new ones |
| switching | new | old and new | all tags are set: no client reads the old strings |
| after | new | new | the old strings expire within a minute |

In each state, and while clients are in two consecutive ones, what is read has everything that was
acknowledged. So a client may stop anywhere while it reshards: others continue in that state, and the next
reshard takes it from there. The target is recorded in a key of its own, which the first client sets.

A state is entered only from the manifest that precedes it (`create.swap_manifest`), and no tag returns to an
earlier generation. So a client that was paused at any point, for however long, changes nothing when it
continues, unless it is still the one that advances the filter.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fullbloom.engines.redis.protocol import create, expire, load
from fullbloom.engines.redis.protocol.create import Overtaken
from fullbloom.engines.redis.protocol.expire import Expired
from fullbloom.engines.redis.protocol.keys import Snapshot, colocated_key, native_cells
from fullbloom.engines.redis.protocol.manifest import (
    DELETING,
    MAX_SHARDS,
    OWNER_BYTES,
    TAG_BYTES,
    Manifest,
    expiry_command,
    read_generation,
)
from fullbloom.engines.redis.protocol.requests import (
    MAX_ATTEMPTS,
    Steps,
    back_off,
    call,
    change_if_equal,
    read_number,
    read_part,
    read_value,
    try_call,
)
from fullbloom.errors import (
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    FilterLost,
    FilterRolledBack,
    FormatError,
    FullbloomError,
    ParameterError,
)

if TYPE_CHECKING:
    from fullbloom.engines.redis.storage.strings import Strings


#: Milliseconds until the old strings expire: batches that are on their way find their tags until then.
_RETIRED_TTL = 60_000


def _record_key(strings: Strings) -> bytes:
    """Return the key of the reshard's record."""
    return colocated_key(strings.names.manifest, b"reshard")


def reshard(strings: Strings, shards: int) -> Steps[None]:
    """Change the number of shards; a reshard that another client began is finished first."""
    strings.need_cells("reshard()")
    yield from expire.run_or_recreate(strings, partial(_reshard, strings, shards))


def _reshard(strings: Strings, shards: int) -> Steps[None]:
    if type(shards) is int and shards > MAX_SHARDS:
        raise ParameterError(f"shards must be {MAX_SHARDS:,} at most, got {shards:,}")
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        manifest, key = (yield from strings.refresh()).manifest, _record_key(strings)
        source = [manifest.shards, manifest.cut]
        target = {"id": manifest.id, "shards": shards, "cut": manifest.cut + 1, "from": source}
        if manifest.shards != shards and not manifest.other_shards:
            native_cells(replace(manifest, shards=shards), strings.secret)  # raises for impossible numbers
            yield from try_call(key, b"SET", key, json.dumps(target).encode(), b"NX")
        try:
            record = yield from _read_record(strings)
        except FilterLost:  # it was deleted before the record was set
            yield from _delete_record(strings, manifest.id)
            raise
        if record is None:
            if strings.manifest.shards == shards and not strings.manifest.other_shards:
                return
            continue
        data, target_shards, cut = record
        with suppress(Overtaken):
            yield from _advance(strings, target_shards, cut)
            yield from change_if_equal(key, data, b"DEL", key)
    raise EngineTimeout(f"filter {strings.name!r}: other clients keep changing it; try again")


def _delete_record(strings: Strings, of: str) -> Steps[None]:
    """Delete the reshard's record of a filter that is gone."""
    key = _record_key(strings)
    with suppress(FullbloomError):
        data = yield from read_value(key)
        if data is not None and _parse_record(strings.name, data)[0] == of:
            yield from change_if_equal(key, data, b"DEL", key)


def _read_record(strings: Strings) -> Steps[tuple[bytes, int, int] | None]:
    """Return the record, as bytes, and its target's shards and cut; None if no reshard is in progress."""
    key = _record_key(strings)
    data = yield from read_value(key)
    if data is None:
        return None
    of, shards, cut, before, old_cut = _parse_record(strings.name, data)
    manifest = (yield from strings.refresh()).manifest
    if of == manifest.id and (cut > manifest.cut or manifest.other_shards):
        return data, shards, cut
    if of == manifest.id and old_cut != manifest.cut:  # the client stopped at the very end
        old = Snapshot.of(strings.name, replace(manifest, shards=before, cut=old_cut), strings.secret)
        yield from _retire(old, manifest.generation)
    yield from change_if_equal(key, data, b"DEL", key)
    return None


def _parse_record(name: str, data: bytes) -> tuple[str, int, int, int, int]:
    """Return the filter's id, the shards and the cut of the target, and those of the source."""
    try:
        record = json.loads(data)
        of, numbers = record["id"], (record["shards"], record["cut"], *record["from"])
        is_valid = isinstance(of, str) and all(type(number) is int and number >= 0 for number in numbers)
        shards, cut, before, old_cut = numbers
        is_valid &= 0 < shards <= MAX_SHARDS and 0 < before <= MAX_SHARDS and max(cut, old_cut) < 1 << 32
    except (ValueError, KeyError, TypeError, RecursionError):
        is_valid = False
    if not is_valid:
        raise FormatError(f"filter {name!r}: invalid reshard record beside its manifest; delete the filter")
    return of, shards, cut, before, old_cut


def _advance(strings: Strings, shards: int, cut: int) -> Steps[None]:
    """Go through the states, from the present one on."""
    now = strings.snapshot
    manifest = now.manifest
    if manifest.cut != cut and not manifest.other_shards:
        new = Snapshot.of(strings.name, replace(manifest, shards=shards, cut=cut), strings.secret)
        copying = replace(manifest.next_generation(), other_shards=shards, other_cut=cut)
        try:
            yield from _create_strings(new)
            now = yield from _enter_state(strings, now, copying)
        except (FullbloomError, Overtaken, Expired):
            yield from _abandon(strings, manifest, new)
            raise
        manifest = now.manifest
    if manifest.cut != cut:
        other = now.other
        if other is None or manifest.other_cut != cut:
            raise Overtaken
        yield from _tag_strings(strings, now)
        filter_ = yield from load.read_cells(strings, now)
        yield from load.merge_cells(strings, memoryview(filter_).cast("B"), other)
        switching = replace(other.manifest, generation=manifest.next_generation().generation)
        switching = replace(switching, other_shards=manifest.shards, other_cut=manifest.cut)
        now = yield from _enter_state(strings, now, switching)
        manifest = now.manifest
    yield from _tag_strings(strings, now)
    old = now.other
    if old is None:
        return
    after = replace(manifest.next_generation(), other_shards=0, other_cut=0)
    now = yield from _enter_state(strings, now, after)
    yield from _retire(old, now.manifest.generation)


def _create_strings(new: Snapshot) -> Steps[None]:
    """Create strings with all bits 0, unless an earlier attempt has.

    Each is created under a temporary key and renamed if its key is free, so no other string is overwritten.
    """
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(new.names.bits):
        nbytes, temporary = new.nbytes(shard), colocated_key(key, b"new:" + token)
        if not new.is_own(shard, (yield from read_part(key, nbytes, TAG_BYTES))):
            yield from create.write_string(temporary, new.manifest.tag(shard), new.cells, shard, None)
            try:
                is_renamed = yield from try_call(key, b"RENAMENX", temporary, key)
                tag = yield from read_part(key, nbytes, TAG_BYTES)
                if not is_renamed and not new.is_own(shard, tag):
                    if new.manifest.version > 1:  # this filter's, whose id is in the key: for other shards
                        raise Overtaken
                    # Left by an earlier filter of the name.
                    yield from try_call(key, b"RENAME", temporary, key)
            finally:
                yield from call(temporary, b"UNLINK", temporary)
        command, *when = expiry_command(new.manifest)
        yield from call(key, command, key, *when)


def _abandon(strings: Strings, manifest: Manifest, new: Snapshot) -> Steps[None]:
    """Delete new strings that are not needed: the filter was deleted, or has moved past them, meanwhile."""
    with suppress(FullbloomError):
        current = yield from create.read_same_manifest(strings.name, manifest)
        is_gone = current is None or current.state == DELETING
        if current is None or is_gone or _has_left(current, new.manifest.cut):
            yield from strings.sweep(new)
        if is_gone:
            yield from _delete_record(strings, manifest.id)


def _has_left(manifest: Manifest, cut: int) -> bool:
    """Return whether a filter has left the strings of a layout version, and is not moving to or from them."""
    return cut < manifest.cut and not (manifest.other_shards and manifest.other_cut == cut)


def _enter_state(strings: Strings, before: Snapshot, after: Manifest) -> Steps[Snapshot]:
    """Swap the manifest for its successor, then set the tags: from then on every client notices."""
    if not (yield from create.swap_manifest(strings.name, before.manifest, after)):
        yield from strings.refresh(before)  # raises if it is gone
        raise Overtaken
    strings.adopt(after)
    now = Snapshot.of(strings.name, after, strings.secret)
    yield from _tag_strings(strings, now)
    return now


#: Sets the generation in a tag whose first 8 bytes are ARGV[2], unless it has a later one.
_SET_GENERATION = (
    b"local at = tonumber(ARGV[1]) "
    b"local tag = redis.call('GETRANGE', KEYS[1], at, at + 15) "
    b"if #tag ~= 16 or string.sub(tag, 1, 8) ~= ARGV[2] then return 0 end "
    b"if struct.unpack('<I4', tag, 9) < struct.unpack('<I4', ARGV[3]) then "
    b"redis.call('SETRANGE', KEYS[1], at + 8, ARGV[3]) end "
    b"return 1"
)


def _set_generation(part: Snapshot, shard: int, generation: int) -> Steps[bool]:
    """Set the generation in a tag unless it has a later one; False if the tag belongs to another filter."""
    key, at, owner = part.names.bits[shard], part.nbytes(shard), part.manifest.tag(shard)[:OWNER_BYTES]
    number = generation.to_bytes(4, "little")
    try:
        return bool((yield from read_number(key, b"EVAL", _SET_GENERATION, 1, key, at, owner, number)))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts
        tag = yield from read_part(key, at, TAG_BYTES)
        if not part.is_own(shard, tag):
            return False
        if read_generation(tag) < generation:
            yield from read_number(key, b"SETRANGE", key, at + OWNER_BYTES, number)
        return True


def _tag_strings(strings: Strings, now: Snapshot) -> Steps[None]:
    """Set the generation in the tags of all strings, except in later ones."""
    for part in (now, now.other):
        if part is None:
            continue
        for shard, key in enumerate(part.names.bits):
            if not (yield from _set_generation(part, shard, now.manifest.generation)):
                current = yield from strings.refresh(now)
                if current.view != now.view:
                    raise Overtaken
                raise (yield from strings.explain_loss(f"the cells of shard {shard}", key, now))


def _retire(old: Snapshot, generation: int) -> Steps[None]:
    """Tag strings that no client reads, and let them expire."""
    for shard, key in enumerate(old.names.bits):
        if (yield from try_call(key, b"PEXPIRE", key, _RETIRED_TTL)):
            yield from _set_generation(old, shard, generation)


def finish_reshard(strings: Strings) -> Steps[None]:
    """Finish the reshard that another client began, if any."""
    yield from strings.refresh()
    if (yield from _read_record(strings)) is not None:
        yield from reshard(strings, strings.manifest.shards)


def replace_cells(strings: Strings, data: memoryview | None) -> Steps[None]:
    """Replace the cells by those in ``data``, or by zeros."""
    yield from expire.run_or_recreate(strings, partial(_replace_cells, strings, data))


def _replace_cells(strings: Strings, data: memoryview | None) -> Steps[None]:
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        try:
            yield from finish_reshard(strings)
            now = strings.snapshot
            if now.manifest.other_shards:
                continue
            after = yield from create.replace_strings(strings.name, now.manifest, now.cells, data)
        except FilterRolledBack:  # replacing the cells is the remedy
            current = yield from create.read_same_manifest(strings.name, strings.manifest)
            if current is None:
                raise
            strings.adopt(current)
        except Overtaken:
            continue
        else:
            strings.adopt(after)
            strings.rolled_back = False
            return
    raise EngineTimeout(f"filter {strings.name!r}: other clients keep changing it; try again")


def delete(strings: Strings) -> Steps[bool]:
    """Delete the filter; True if it existed."""
    known, key = strings.snapshot, _record_key(strings)
    record = yield from read_value(key)
    existed = yield from create.delete_filter(strings.name)
    yield from strings.sweep(known)
    if record is not None:
        with suppress(FormatError):
            of, shards, cut, *_ = _parse_record(strings.name, record)
            if of == known.manifest.id:
                target = replace(known.manifest, shards=shards, cut=cut, other_shards=0, other_cut=0)
                yield from strings.sweep(Snapshot.of(strings.name, target, strings.secret))
        yield from change_if_equal(key, record, b"DEL", key)
    return existed
