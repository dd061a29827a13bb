"""All cells of a filter at once: dumps, merges, loads and clears it, and changes the number of its shards.

A reshard moves a filter to new strings, while clients add and look up keys, through four states of its
manifest, each in the next generation. In each state the tags of all strings get that generation first, so the
next batch of every client notices: it reads the tags behind its keys.

| state | read | written | then |
|---|---|---|---|
| before | old | old | the new strings are created, with all bits 0 |
| copying | old | old and new | the old cells are merged into the new ones |
| switching | new | old and new | all tags are set: no client reads the old strings |
| after | new | new | the old strings expire within a minute |

In each state, and while clients are in two consecutive ones, what is read has everything that was
acknowledged. So a client may stop anywhere while it reshards: others continue in that state, and the next
reshard takes it from there. The target is recorded in a key of its own, which the first client sets.

A state is entered only from the manifest that precedes it (`create.advance_manifest`), and no tag returns to
an earlier generation. So a client that was paused at any point, for however long, changes nothing when it
continues, unless it is still the one that advances the filter.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.engines.redis.protocol import (
    MAX_ATTEMPTS,
    Steps,
    back_off,
    call,
    change_if_equal,
    change_with_expiry,
    contention_error,
    create,
    loss_error,
    parse_number,
    read_number,
    read_part,
    read_value,
    set_expiry,
    try_call,
    try_script,
)
from fullbloom.engines.redis.protocol.create import (
    TEMPORARY_TTL,
    NewString,
    Overtaken,
    Renewal,
    claim_name,
    split_cells,
    write_string,
)
from fullbloom.engines.redis.protocol.manifest import (
    DELETING,
    MAX_SHARDS,
    OWNER_BYTES,
    TAG_BYTES,
    Manifest,
    make_cells,
    make_colocated_key,
    make_expiry_command,
    read_generation,
)
from fullbloom.engines.redis.storage import (
    Expired,
    Snapshot,
    merge_string,
    read_cells,
    read_tags,
    run_or_default,
    run_or_recreate,
)
from fullbloom.errors import (
    FilterLost,
    FilterRolledBack,
    FormatError,
    FullbloomError,
    ParameterError,
)

if TYPE_CHECKING:
    from fullbloom._core import BloomFilter
    from fullbloom.engines.redis.storage.strings import Strings

_NO_TAG = bytes(TAG_BYTES)


def dump(strings: Strings) -> Steps[BloomFilter]:
    """Return the filter in memory, with the same bits; an empty one if it has expired.

    Keys that are added meanwhile may be missing.
    """
    strings.require_cells("dump()")
    manifest = strings.manifest
    empty = partial(strings.cells.memory, manifest.capacity, manifest.fpr)
    return (yield from run_or_default(strings, partial(_dump, strings), empty))


def _dump(strings: Strings) -> Steps[BloomFilter]:
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        current = yield from strings.refresh()
        with suppress(Overtaken):
            return (yield from _read_filter(strings, current))
    raise contention_error(strings.name)


def _read_filter(strings: Strings, known: Snapshot) -> Steps[BloomFilter]:
    """Return the filter in memory; raise `Overtaken` if its generation changes meanwhile."""
    try:
        tags = yield from read_tags(strings, known)  # before allocating what a manifest says
        filter_ = known.cells.memory(known.manifest.capacity, known.manifest.fpr)
        yield from read_cells(strings, known, tags, partial(known.cells.write, filter_))
    except FilterRolledBack:
        raise
    except FilterLost:
        current = yield from strings.refresh(known)
        if current.manifest.generation != known.manifest.generation:
            raise Overtaken from None
        raise
    known.cells.recount(filter_)
    return filter_


def merge(strings: Strings, data: memoryview) -> Steps[None]:
    """Set the bits that are set in ``data``, in all strings that clients write."""
    strings.require_cells("|=")
    yield from run_or_recreate(strings, partial(_merge, strings, data))


def _merge(strings: Strings, data: memoryview) -> Steps[None]:
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        known = yield from strings.refresh()
        try:
            for part in (known.other, known):
                if part is not None:
                    yield from _merge_cells(strings, data, part)
        except FilterLost:
            if (yield from strings.refresh(known)).view == known.view:
                raise
            continue
        if (yield from strings.refresh(known)).view == known.view:
            return
    raise contention_error(strings.name)


def _merge_cells(strings: Strings, data: bytes | memoryview, part: Snapshot) -> Steps[None]:
    """Set the bits that are set in a filter in memory, given as bytes; each string changes atomically."""
    suffix = b"or:" + secrets.token_hex(8).encode()
    for shard, key in enumerate(part.names.bits):
        yield from strings.read_tag(shard, part)
        other = NewString(make_colocated_key(key, suffix), key, part.nbytes(shard), _NO_TAG)
        try:
            yield from write_string(other, Renewal(), split_cells(part.cells, shard, data))
            yield from merge_string(strings, part, shard, other.temporary)
        finally:
            yield from call(key, b"UNLINK", other.temporary)
        yield from _require_target(strings, part, shard)


def merge_on_server(target: Strings, source: Strings) -> Steps[bool]:
    """Add the keys of a filter on the same server; False if they have to pass through memory."""
    target.require_cells("|=")
    if target.manifest.ttl or source.manifest.ttl:
        return False
    part, theirs = (yield from target.refresh()), (yield from source.refresh())
    if part.other or theirs.other or part.manifest.shards != theirs.manifest.shards:
        return False
    suffix, lost = b"or:" + secrets.token_hex(8).encode(), None
    try:
        for shard, key in enumerate(part.names.bits):
            yield from target.read_tag(shard, part)
            copied = make_colocated_key(key, suffix)
            try:
                yield from _copy_string(source, theirs, shard, copied)
                yield from merge_string(target, part, shard, copied)
            finally:
                yield from call(key, b"UNLINK", copied)
            yield from _require_target(target, part, shard)
    except FilterLost as error:
        lost = error
    for strings, known in ((source, theirs), (target, part)):
        if (yield from strings.refresh(known)).view != known.view:  # a reshard moved it to other strings
            return False
    if lost is not None:
        raise lost
    return True


def _copy_string(source: Strings, theirs: Snapshot, shard: int, copied: bytes) -> Steps[None]:
    """Copy a string to a key that expires; raise what is lost. The copy's tag is all zeros."""
    key, nbytes = theirs.names.bits[shard], theirs.nbytes(shard)
    expiry = (b"PEXPIRE", TEMPORARY_TTL)
    yield from change_with_expiry(copied, expiry, b"COPY", key, copied, b"REPLACE", others=(key,))
    if not theirs.is_own(shard, (yield from read_part(copied, nbytes, TAG_BYTES))):
        yield from source.read_tag(shard, theirs)  # explains it
        raise loss_error(source.name, f"the cells of shard {shard}")
    yield from call(copied, b"SETRANGE", copied, nbytes, _NO_TAG)


def _require_target(strings: Strings, part: Snapshot, shard: int) -> Steps[None]:
    """Raise if the string is gone; delete it if BITOP created it."""
    try:
        yield from strings.read_tag(shard, part)
    except FilterLost:
        key, nbytes = part.names.bits[shard], part.nbytes(shard)
        # Only BITOP leaves a string of this length without a tag.
        if (yield from read_part(key, nbytes, TAG_BYTES + 1)) == _NO_TAG:
            yield from call(key, b"UNLINK", key)
        raise


class ReshardRecord(NamedTuple):
    """The id of a filter, the target of its reshard and its source, as recorded beside the manifest."""

    of: str
    shards: int
    layout_version: int
    old_shards: int
    old_layout_version: int


def reshard(strings: Strings, shards: int) -> Steps[None]:
    """Change the number of shards; a reshard that another client began is finished first."""
    strings.require_cells("reshard()")
    yield from run_or_recreate(strings, partial(_reshard, strings, shards))


def _reshard(strings: Strings, shards: int) -> Steps[None]:
    if type(shards) is int and shards > MAX_SHARDS:
        raise ParameterError(f"shards must be {MAX_SHARDS:,} at most, got {shards:,}")
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        manifest, key = (yield from strings.refresh()).manifest, strings.names.reshard
        source = [manifest.shards, manifest.layout_version]
        target = {"id": manifest.id, "shards": shards, "cut": manifest.layout_version + 1, "from": source}
        if manifest.shards != shards and not manifest.other_shards:
            make_cells(replace(manifest, shards=shards), strings.secret)  # raises for impossible numbers
            yield from try_call(key, b"SET", key, json.dumps(target).encode(), b"NX")
        try:
            found = yield from _read_record(strings)
        except FilterLost:  # it was deleted before the record was set
            yield from _delete_record(strings, manifest.id)
            raise
        if found is None:
            if strings.manifest.shards == shards and not strings.manifest.other_shards:
                return
            continue
        data, record = found
        with suppress(Overtaken):
            yield from _advance(strings, record)
            yield from change_if_equal(key, data, b"DEL", key)
    raise contention_error(strings.name)


def _delete_record(strings: Strings, of: str) -> Steps[None]:
    """Delete the reshard's record of a filter that is gone."""
    key = strings.names.reshard
    with suppress(FullbloomError):
        data = yield from read_value(key)
        if data is not None and _parse_record(strings.name, data).of == of:
            yield from change_if_equal(key, data, b"DEL", key)


def _read_record(strings: Strings) -> Steps[tuple[bytes, ReshardRecord] | None]:
    """Return the record, as bytes and parsed; None if no reshard is in progress."""
    key = strings.names.reshard
    data = yield from read_value(key)
    if data is None:
        return None
    record = _parse_record(strings.name, data)
    manifest = (yield from strings.refresh()).manifest
    if record.of == manifest.id:
        if record.layout_version > manifest.layout_version or manifest.other_shards:
            return data, record
        if record.old_layout_version != manifest.layout_version:  # the client stopped at the very end
            source = manifest.with_layout(record.old_shards, record.old_layout_version)
            old = Snapshot.from_manifest(strings.name, source, strings.secret)
            yield from _retire(old, manifest.generation)
    yield from change_if_equal(key, data, b"DEL", key)
    return None


def _parse_record(name: str, data: bytes) -> ReshardRecord:
    try:
        stored = json.loads(data)
        of, numbers = stored["id"], (stored["shards"], stored["cut"], *stored["from"])
        record = ReshardRecord(of, *numbers)
        is_valid = isinstance(of, str) and all(type(one) is int and one >= 0 for one in numbers)
        is_valid &= all(0 < one <= MAX_SHARDS for one in (record.shards, record.old_shards))
        is_valid &= max(record.layout_version, record.old_layout_version) < 1 << 32
    except (ValueError, KeyError, TypeError, RecursionError):
        is_valid = False
    if not is_valid:
        raise FormatError(f"filter {name!r}: invalid reshard record beside its manifest; delete the filter")
    return record


def _advance(strings: Strings, record: ReshardRecord) -> Steps[None]:
    """Go through the states, from the present one on."""
    now, version = strings.snapshot, record.layout_version
    manifest = now.manifest
    if manifest.layout_version != version and not manifest.other_shards:
        target = manifest.with_layout(record.shards, version)
        new = Snapshot.from_manifest(strings.name, target, strings.secret)
        copying = replace(
            manifest.with_next_generation(), other_shards=record.shards, other_layout_version=version
        )
        try:
            yield from _create_strings(new)
            now = yield from _enter_state(strings, now, copying)
        except (FullbloomError, Overtaken, Expired):
            yield from _abandon(strings, manifest, new)
            raise
        manifest = now.manifest
    if manifest.layout_version != version:
        other = now.other
        if other is None or manifest.other_layout_version != version:
            raise Overtaken
        yield from _tag_strings(strings, now)
        filter_ = yield from _read_filter(strings, now)
        yield from _merge_cells(strings, memoryview(filter_).cast("B"), other)
        switching = replace(
            other.manifest,
            generation=manifest.with_next_generation().generation,
            other_shards=manifest.shards,
            other_layout_version=manifest.layout_version,
        )
        now = yield from _enter_state(strings, now, switching)
        manifest = now.manifest
    yield from _tag_strings(strings, now)
    old = now.other
    if old is None:
        return
    after = manifest.with_next_generation().with_layout(manifest.shards, manifest.layout_version)
    now = yield from _enter_state(strings, now, after)
    yield from _retire(old, now.manifest.generation)


def _create_strings(new: Snapshot) -> Steps[None]:
    """Create strings with all bits 0, unless an earlier attempt has."""
    suffix = b"new:" + secrets.token_hex(8).encode()
    for shard, key in enumerate(new.names.bits):
        nbytes, temporary = new.nbytes(shard), make_colocated_key(key, suffix)
        one = NewString(temporary, key, nbytes, new.manifest.make_tag(shard))
        if not new.is_own(shard, (yield from read_part(key, nbytes, TAG_BYTES))):
            yield from write_string(one, Renewal())
            try:
                if not new.is_own(shard, (yield from claim_name(one))):
                    if new.manifest.version > 1:  # this filter's, whose id is in the key: for other shards
                        raise Overtaken
                    # Left by an earlier filter of the name.
                    yield from try_call(key, b"RENAME", temporary, key)
            finally:
                yield from call(temporary, b"UNLINK", temporary)
        yield from set_expiry(key, make_expiry_command(new.manifest), new.manifest.generation)
        if not new.is_own(shard, (yield from read_part(key, nbytes, TAG_BYTES))):
            raise Overtaken  # the string of an earlier attempt expired before it got its final time to live


def _abandon(strings: Strings, manifest: Manifest, new: Snapshot) -> Steps[None]:
    """Delete new strings that are not needed: the filter was deleted, or has moved past them, meanwhile."""
    version = new.manifest.layout_version
    with suppress(FullbloomError):
        current = yield from create.read_same_manifest(strings.name, manifest)
        if current is None or current.state == DELETING:
            yield from strings.sweep(new)
            yield from _delete_record(strings, manifest.id)
        elif version < current.layout_version and not current.uses_layout(version):
            yield from strings.sweep(new)


def _enter_state(strings: Strings, before: Snapshot, after: Manifest) -> Steps[Snapshot]:
    """Swap the manifest for its successor, then set the tags: from then on every client notices."""
    if not (yield from create.advance_manifest(strings.name, before.manifest, after)):
        yield from strings.refresh(before)  # raises if it is gone
        raise Overtaken
    strings.adopt(after)
    now = Snapshot.from_manifest(strings.name, after, strings.secret)
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
    key, at, owner = part.names.bits[shard], part.nbytes(shard), part.manifest.compute_owner(shard)
    number = generation.to_bytes(4, "little")
    reply = yield from try_script(_SET_GENERATION, (key,), at, owner, number)
    if reply is not None:
        return bool(parse_number(reply))
    tag = yield from read_part(key, at, TAG_BYTES)
    if part.is_own(shard, tag) and read_generation(tag) < generation:
        yield from read_number(key, b"SETRANGE", key, at + OWNER_BYTES, number)
    return part.is_own(shard, tag)


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
    """Let strings expire that no client reads, and tag them: a batch on its way finds the tag."""
    for shard, key in enumerate(old.names.bits):
        if (yield from try_call(key, b"PEXPIRE", key, TEMPORARY_TTL)):
            yield from _set_generation(old, shard, generation)


def replace_cells(strings: Strings, data: memoryview | None) -> Steps[None]:
    """Replace the cells by those in ``data``, or by zeros."""
    yield from run_or_recreate(strings, partial(_replace_cells, strings, data))


def _replace_cells(strings: Strings, data: memoryview | None) -> Steps[None]:
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        try:
            yield from strings.refresh()
            if (yield from _read_record(strings)) is not None:  # another client began it
                yield from reshard(strings, strings.manifest.shards)
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
            strings.adopt_replacement(after)
            return
    raise contention_error(strings.name)


def delete(strings: Strings) -> Steps[bool]:
    """Delete the filter; True if it existed."""
    known, key = strings.snapshot, strings.names.reshard
    data = yield from read_value(key)
    existed = yield from create.delete_filter(strings.name)
    yield from strings.sweep(known)
    if data is not None:
        with suppress(FormatError):
            record = _parse_record(strings.name, data)
            if record.of == known.manifest.id:
                target = known.manifest.with_layout(record.shards, record.layout_version)
                yield from strings.sweep(Snapshot.from_manifest(strings.name, target, strings.secret))
        yield from change_if_equal(key, data, b"DEL", key)
    return existed
