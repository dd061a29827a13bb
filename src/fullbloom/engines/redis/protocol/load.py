"""All cells at once: out to a filter in memory, in from one, and whether they are still there."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fullbloom.engines.redis.protocol import errors, expire
from fullbloom.engines.redis.protocol.create import PIECE, Overtaken, written
from fullbloom.engines.redis.protocol.keys import Snapshot, beside, cells_of
from fullbloom.engines.redis.protocol.manifest import MARK_BYTES, OWNER_BYTES, STABLE_BYTES, Manifest, lasts
from fullbloom.engines.redis.protocol.requests import TRIES, Steps, call, is_done, paused, read_part, timed
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
    from fullbloom.engines.redis.protocol.open import Wanted
    from fullbloom.engines.redis.storage.strings import Strings

#: What two filters must have in common to be united.
_MERGED = ("layout", "scheme", "hash", "num_bits", "num_hashes", "seed", "secret")
_NO_MARK = bytes(MARK_BYTES)


def dump_cells(strings: Strings, known: Snapshot) -> Steps[BloomFilter]:
    """Return the filter in memory: the same bits. Keys that come meanwhile may be in it or not."""
    strings.need_cells("dump()")
    stood, cells = known.manifest, known.cells
    tags: dict[int, bytes] = {}
    for shard in range(stood.shards):  # before memory is asked for by what a manifest says
        tags[shard] = yield from strings.marked(shard, known)
    filter_ = cells.memory(stood.capacity, stood.fpr)
    for shard, key in enumerate(known.names.bits):
        first, nbytes = cells.range(shard)
        for at in range(0, nbytes, PIECE):
            size = min(PIECE, nbytes - at)
            data = yield from read_part(key, at, size)
            if len(data) != size:
                raise errors.lost(strings.name, f"a part of the cells of shard {shard}")
            cells.write(filter_, first + at, data)
        if (yield from strings.marked(shard, known))[:STABLE_BYTES] != tags[shard][:STABLE_BYTES]:
            raise errors.lost(
                strings.name, f"what was in shard {shard} while it was read: it was cleared or loaded"
            )
    cells.recount(filter_)
    return filter_


def united(strings: Strings, data: bytes | memoryview, part: Snapshot) -> Steps[None]:
    """Set the bits that are set in ``data``, the bytes of a filter in memory.

    The server sees each string change at once.
    """
    strings.need_cells("|=")
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(part.names.bits):
        yield from strings.marked(shard, part)
        other = beside(key, b"or:" + token)
        try:
            yield from written(other, _NO_MARK, part.cells, shard, data)
            yield from _set(part, shard, other)
        finally:
            yield from call(other, b"UNLINK", other)
        yield from _checked(strings, part, shard)


def unite_strings(strings: Strings, part: Snapshot, others: list[bytes]) -> Steps[None]:
    """Set the bits that are set in strings of the same server, which are as many and as long."""
    strings.need_cells("|=")
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(part.names.bits):
        yield from strings.marked(shard, part)
        copied = beside(key, b"or:" + token)
        try:
            if not (yield from is_done(key, b"COPY", others[shard], copied, b"REPLACE")):
                raise errors.lost(strings.name, "the other filter's cells")
            yield from call(key, b"SETRANGE", copied, part.nbytes(shard), _NO_MARK)
            yield from _set(part, shard, copied)
        finally:
            yield from call(key, b"UNLINK", copied)
        yield from _checked(strings, part, shard)


def _checked(strings: Strings, part: Snapshot, shard: int) -> Steps[None]:
    """Look once more whether the string was there; what was made where none was is deleted."""
    try:
        yield from strings.marked(shard, part)
    except FilterLost:
        key, nbytes = part.names.bits[shard], part.nbytes(shard)
        # Nothing but BITOP leaves a string of this length without a tag.
        if (yield from read_part(key, nbytes, MARK_BYTES + 1)) == _NO_MARK:
            yield from call(key, b"UNLINK", key)
        raise


#: Merges KEYS[2] into KEYS[1] if its tag begins with ARGV[2]. BITOP would take the time to live away.
_UNITE = (
    b"local at = tonumber(ARGV[1]) "
    b"if redis.call('GETRANGE', KEYS[1], at, at + 7) ~= ARGV[2] then return 0 end "
    b"local left = redis.call('PTTL', KEYS[1]) "
    b"if left < 0 then redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2]) return 1 end "
    b"redis.call('BITOP', 'OR', KEYS[2], KEYS[1], KEYS[2]) redis.call('PEXPIRE', KEYS[2], 60000) "
    b"redis.call('SETRANGE', KEYS[1], 0, redis.call('GET', KEYS[2])) "
    b"return 1"
)


def _set(part: Snapshot, shard: int, other: bytes) -> Steps[None]:
    """Set the bits of another string, whose tag is of zeros, if the string is there."""
    key = part.names.bits[shard]
    at, owner = part.nbytes(shard), part.manifest.mark(shard)[:OWNER_BYTES]
    try:
        yield from call(key, b"EVAL", _UNITE, 2, key, other, at, owner)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts; or what it is refused for, which is told now
        words = (b"BITOP", b"OR", key, key, other)
        if part.manifest.ttl:
            yield from timed(key, lasts(part.manifest), *words, others=(other,))
        else:
            yield from call(key, *words)


def dumped(strings: Strings) -> Steps[BloomFilter]:
    """Return the filter in memory."""
    strings.need_cells("dump()")
    stood = strings.manifest
    return (
        yield from expire.looked(
            strings, lambda: _dumped(strings), lambda: strings.cells.memory(stood.capacity, stood.fpr)
        )
    )


def _dumped(strings: Strings) -> Steps[BloomFilter]:
    for turn in range(TRIES):
        yield from paused(turn)
        now = yield from strings.refreshed()
        with suppress(Overtaken):
            return (yield from _read(strings, now))
    raise EngineTimeout(f"filter {strings.name!r}: other clients keep changing it; try again")


def _read(strings: Strings, now: Snapshot) -> Steps[BloomFilter]:
    """Return the filter in memory, unless it gets another generation meanwhile."""
    try:
        return (yield from dump_cells(strings, now))
    except FilterRolledBack:
        raise
    except FilterLost:
        current = yield from strings.refreshed(now)
        if current.manifest.generation != now.manifest.generation:
            raise Overtaken from None
        raise


def merged(strings: Strings, data: memoryview) -> Steps[None]:
    """Set the bits that are set in ``data``, in all strings that keys are written to."""
    yield from expire.living(strings, lambda: _merged(strings, data))


def _merged(strings: Strings, data: memoryview) -> Steps[None]:
    for turn in range(TRIES):
        yield from paused(turn)
        now = yield from strings.refreshed()
        try:
            for part in (now.other, now):
                if part is not None:
                    yield from united(strings, data, part)
        except FilterLost:
            if (yield from strings.refreshed(now)).view == now.view:
                raise
            continue
        if (yield from strings.refreshed(now)).view == now.view:
            return
    raise EngineTimeout(f"filter {strings.name!r}: other clients keep changing it; try again")


def check_secret(wanted: Wanted, filter_: BloomFilter) -> None:
    """Raise IncompatibleFilters where the secret of a filter in memory is another one."""
    new = wanted.manifest()
    cells_of(new, wanted.secret).memory(new.capacity, new.fpr).isdisjoint(filter_)


def check_same(name: str, stood: Manifest, other: Manifest) -> None:
    """Raise IncompatibleFilters unless two filters can be united."""
    theirs = asdict(other)
    stood.check(name, {field: theirs[field] for field in _MERGED})


def united_there(here: Strings, there: Strings) -> Steps[bool]:
    """Add the keys of a filter on the same server there; False where they have to pass through memory."""
    if here.manifest.ttl or there.manifest.ttl:
        return False
    mine, theirs = (yield from here.refreshed()), (yield from there.refreshed())
    if mine.other or theirs.other or mine.manifest.shards != theirs.manifest.shards:
        return False
    yield from unite_strings(here, mine, theirs.names.bits)
    return True


def cells_in_memory(strings: Strings, other: Any) -> memoryview:
    """Return the cells of a filter in memory, if it is of the same parameters."""
    if not hasattr(other, "num_bits") or not hasattr(other, "isdisjoint"):
        raise ParameterTypeError(
            f"other must be a BloomFilter or a RedisBloomFilter, got {type(other).__name__}"
        )
    stood = strings.manifest
    # Raises IncompatibleFilters with every field that differs, the secret among them.
    strings.cells.memory(stood.capacity, stood.fpr).isdisjoint(other)
    return memoryview(other).cast("B")
