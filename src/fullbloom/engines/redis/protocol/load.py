"""Moves all cells at once: dumps a filter into memory, and merges others into it."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom.engines.redis.protocol import errors, expire
from fullbloom.engines.redis.protocol.create import PIECE, Overtaken, write_string
from fullbloom.engines.redis.protocol.keys import Snapshot, colocated_key, native_cells
from fullbloom.engines.redis.protocol.manifest import (
    OWNER_BYTES,
    STABLE_BYTES,
    TAG_BYTES,
    Manifest,
    expiry_command,
)
from fullbloom.engines.redis.protocol.requests import (
    MAX_ATTEMPTS,
    Steps,
    back_off,
    call,
    change_with_expiry,
    read_part,
    try_call,
)
from fullbloom.errors import (
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    FilterLost,
    FilterRolledBack,
    ParameterTypeError,
)

if TYPE_CHECKING:
    from fullbloom._core import BloomFilter
    from fullbloom.engines.redis.protocol.open import OpenOptions
    from fullbloom.engines.redis.storage.strings import Strings

#: What two filters must have in common to be merged.
_MERGED = ("layout", "scheme", "hash", "num_bits", "num_hashes", "seed", "secret")
_NO_TAG = bytes(TAG_BYTES)


def dump_cells(strings: Strings, known: Snapshot) -> Steps[BloomFilter]:
    """Return the filter in memory, with the same bits. Keys added meanwhile may be missing."""
    strings.need_cells("dump()")
    manifest, cells = known.manifest, known.cells
    tags: dict[int, bytes] = {}
    for shard in range(manifest.shards):  # before allocating what a manifest says
        tags[shard] = yield from strings.read_tag(shard, known)
    filter_ = cells.memory(manifest.capacity, manifest.fpr)
    for shard, key in enumerate(known.names.bits):
        first, nbytes = cells.range(shard)
        for at in range(0, nbytes, PIECE):
            size = min(PIECE, nbytes - at)
            data = yield from read_part(key, at, size)
            if len(data) != size:
                raise errors.loss(strings.name, f"a part of the cells of shard {shard}")
            cells.write(filter_, first + at, data)
        if (yield from strings.read_tag(shard, known))[:STABLE_BYTES] != tags[shard][:STABLE_BYTES]:
            what = f"the cells of shard {shard} while they were read: it was cleared or loaded"
            raise errors.loss(strings.name, what)
    cells.recount(filter_)
    return filter_


def merge_cells(strings: Strings, data: bytes | memoryview, part: Snapshot) -> Steps[None]:
    """Set the bits that are set in a filter in memory, given as bytes; each string changes atomically."""
    strings.need_cells("|=")
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(part.names.bits):
        yield from strings.read_tag(shard, part)
        other = colocated_key(key, b"or:" + token)
        try:
            yield from write_string(other, _NO_TAG, part.cells, shard, data)
            yield from _merge_string(part, shard, other)
        finally:
            yield from call(other, b"UNLINK", other)
        yield from _check_target(strings, part, shard)


def merge_strings(strings: Strings, part: Snapshot, others: list[bytes]) -> Steps[None]:
    """Set the bits that are set in other strings on the same server, of the same number and length."""
    strings.need_cells("|=")
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(part.names.bits):
        yield from strings.read_tag(shard, part)
        copied = colocated_key(key, b"or:" + token)
        try:
            if not (yield from try_call(key, b"COPY", others[shard], copied, b"REPLACE")):
                raise errors.loss(strings.name, "the other filter's cells")
            yield from call(key, b"SETRANGE", copied, part.nbytes(shard), _NO_TAG)
            yield from _merge_string(part, shard, copied)
        finally:
            yield from call(key, b"UNLINK", copied)
        yield from _check_target(strings, part, shard)


def _check_target(strings: Strings, part: Snapshot, shard: int) -> Steps[None]:
    """Check again that the string exists; delete it if BITOP created it."""
    try:
        yield from strings.read_tag(shard, part)
    except FilterLost:
        key, nbytes = part.names.bits[shard], part.nbytes(shard)
        # Only BITOP leaves a string of this length without a tag.
        if (yield from read_part(key, nbytes, TAG_BYTES + 1)) == _NO_TAG:
            yield from call(key, b"UNLINK", key)
        raise


#: Merges KEYS[2] into KEYS[1] if its tag begins with ARGV[2]; BITOP alone would remove the time to live.
_MERGE_SCRIPT = (
    b"local at = tonumber(ARGV[1]) "
    b"if redis.call('GETRANGE', KEYS[1], at, at + 7) ~= ARGV[2] then return 0 end "
    b"local left = redis.call('PTTL', KEYS[1]) "
    b"if left < 0 then redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2]) return 1 end "
    b"redis.call('BITOP', 'OR', KEYS[2], KEYS[1], KEYS[2]) redis.call('PEXPIRE', KEYS[2], 60000) "
    b"redis.call('SETRANGE', KEYS[1], 0, redis.call('GET', KEYS[2])) "
    b"return 1"
)


def _merge_string(part: Snapshot, shard: int, other: bytes) -> Steps[None]:
    """Set the bits of another string, whose tag is all zeros, if the string exists."""
    key = part.names.bits[shard]
    at, owner = part.nbytes(shard), part.manifest.tag(shard)[:OWNER_BYTES]
    try:
        yield from call(key, b"EVAL", _MERGE_SCRIPT, 2, key, other, at, owner)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts; or the string is refused, which the next command reports
        words = (b"BITOP", b"OR", key, key, other)
        if part.manifest.ttl:
            yield from change_with_expiry(key, expiry_command(part.manifest), *words, others=(other,))
        else:
            yield from call(key, *words)


def dump(strings: Strings) -> Steps[BloomFilter]:
    """Return the filter in memory; an empty one if it has expired."""
    strings.need_cells("dump()")
    manifest = strings.manifest
    empty = partial(strings.cells.memory, manifest.capacity, manifest.fpr)
    return (yield from expire.run_or_default(strings, partial(_dump, strings), empty))


def _dump(strings: Strings) -> Steps[BloomFilter]:
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        current = yield from strings.refresh()
        with suppress(Overtaken):
            return (yield from read_cells(strings, current))
    raise EngineTimeout(f"filter {strings.name!r}: other clients keep changing it; try again")


def read_cells(strings: Strings, known: Snapshot) -> Steps[BloomFilter]:
    """Return the filter in memory; raise `Overtaken` if its generation changes meanwhile."""
    try:
        return (yield from dump_cells(strings, known))
    except FilterRolledBack:
        raise
    except FilterLost:
        current = yield from strings.refresh(known)
        if current.manifest.generation != known.manifest.generation:
            raise Overtaken from None
        raise


def merge(strings: Strings, data: memoryview) -> Steps[None]:
    """Set the bits that are set in ``data``, in all strings that clients write."""
    yield from expire.run_or_recreate(strings, partial(_merge, strings, data))


def _merge(strings: Strings, data: memoryview) -> Steps[None]:
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        known = yield from strings.refresh()
        try:
            for part in (known.other, known):
                if part is not None:
                    yield from merge_cells(strings, data, part)
        except FilterLost:
            if (yield from strings.refresh(known)).view == known.view:
                raise
            continue
        if (yield from strings.refresh(known)).view == known.view:
            return
    raise EngineTimeout(f"filter {strings.name!r}: other clients keep changing it; try again")


def require_same_secret(options: OpenOptions, filter_: BloomFilter) -> None:
    """Raise IncompatibleFilters if a filter in memory has another secret."""
    new = options.manifest()
    native_cells(new, options.secret).memory(new.capacity, new.fpr).isdisjoint(filter_)


def require_same_parameters(name: str, manifest: Manifest, other: Manifest) -> None:
    """Raise IncompatibleFilters unless two filters can be merged."""
    theirs = asdict(other)
    manifest.require_match(name, {field: theirs[field] for field in _MERGED})


def merge_on_server(target: Strings, source: Strings) -> Steps[bool]:
    """Add the keys of a filter on the same server; False if they have to pass through memory."""
    if target.manifest.ttl or source.manifest.ttl:
        return False
    mine, theirs = (yield from target.refresh()), (yield from source.refresh())
    if mine.other or theirs.other or mine.manifest.shards != theirs.manifest.shards:
        return False
    yield from merge_strings(target, mine, theirs.names.bits)
    return True


def cells_in_memory(strings: Strings, other: Any) -> memoryview:
    """Return the cells of a filter in memory, which must have the same parameters."""
    if not hasattr(other, "num_bits") or not hasattr(other, "isdisjoint"):
        raise ParameterTypeError(
            f"other must be a BloomFilter or a RedisBloomFilter, got {type(other).__name__}"
        )
    manifest = strings.manifest
    # Raises IncompatibleFilters with every field that differs, including the secret.
    strings.cells.memory(manifest.capacity, manifest.fpr).isdisjoint(other)
    return memoryview(other).cast("B")
