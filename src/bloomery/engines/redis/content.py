"""All cells at once: out to a filter in memory, in from one, and whether they are still there."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from bloomery.engines.redis import creation, failures, terms
from bloomery.engines.redis.acknowledged import Verification
from bloomery.engines.redis.asks import call, is_done, read_part
from bloomery.engines.redis.creation import PIECE, written
from bloomery.engines.redis.lasting import Expired, lasts, timed
from bloomery.engines.redis.manifest import MARK_BYTES, OWNER_BYTES, STABLE_BYTES
from bloomery.engines.redis.names import beside
from bloomery.errors import EngineError, EngineTimeout, EngineUnavailable, FilterLost, FilterRolledBack

if TYPE_CHECKING:
    from bloomery._core import BloomFilter
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.counters import Counters
    from bloomery.engines.redis.snapshot import Snapshot
    from bloomery.engines.redis.strings import Strings

_NO_MARK = bytes(MARK_BYTES)


def dumped(strings: Strings, known: Snapshot) -> Steps[BloomFilter]:
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
                raise failures.lost(strings.name, f"a part of the cells of shard {shard}")
            cells.write(filter_, first + at, data)
        if (yield from strings.marked(shard, known))[:STABLE_BYTES] != tags[shard][:STABLE_BYTES]:
            raise failures.lost(
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


def united_there(strings: Strings, part: Snapshot, others: list[bytes]) -> Steps[None]:
    """Set the bits that are set in strings of the same server, which are as many and as long."""
    strings.need_cells("|=")
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(part.names.bits):
        yield from strings.marked(shard, part)
        copied = beside(key, b"or:" + token)
        try:
            if not (yield from is_done(key, b"COPY", others[shard], copied, b"REPLACE")):
                raise failures.lost(strings.name, "the other filter's cells")
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


def verified(strings: Strings, *, restarted: bool) -> Steps[Verification]:
    """Compare what the server has with what this client knows that it acknowledged."""
    nothing = Verification(True, False, restarted, (), 0, 0, 0, 0)
    return (yield from terms.looked(strings, lambda: compared(strings, restarted=restarted), lambda: nothing))


def compared(strings: Strings | Counters, *, restarted: bool) -> Steps[Verification]:
    """Compare so for a filter that has not expired."""
    known = strings.snapshot
    stood = yield from creation.same(strings.name, known.manifest)
    remembered = known.acknowledged
    checked = len(remembered.hashes()) // 8
    expected = sum(remembered.bits)
    if stood is None:
        if isinstance(why := (yield from strings.gone("its manifest")), Expired):
            raise why
        everything = tuple(range(known.manifest.shards))
        return Verification(False, True, restarted, everything, checked, checked, expected, 0)
    went_back = strings.went_back or stood.generation < known.manifest.generation
    if stood.generation != known.manifest.generation:
        strings.adopt(stood)
        known = strings.snapshot
        remembered, checked, expected = known.acknowledged, 0, 0
    lost, epochs = [], list(known.epochs)
    for shard in range(known.manifest.shards):
        try:
            tag = yield from strings.marked(shard, known)
        except FilterRolledBack:
            went_back = True
            continue
        except FilterLost:
            lost.append(shard)
            continue
        went_back |= known.epoch_of(tag) < epochs[shard]
        if not known.is_as_known(shard, tag):  # cleared or loaded by somebody: nothing is known of its keys
            strings.retag(known, known, shard, tag)
            remembered, checked, expected = strings.snapshot.acknowledged, 0, 0
    if went_back:
        strings.went_back = True
    counts = yield from strings.counted()
    found = 0 if lost else (yield from strings.present(remembered.hashes()))
    less = any(count < least for count, least in zip(counts, remembered.bits, strict=False))
    keys_lost = checked - found
    ok = not lost and not less and not keys_lost and not went_back
    if ok and len(counts) == len(remembered.bits):
        remembered.bits[:] = counts
    return Verification(
        ok, False, restarted, tuple(lost), checked, keys_lost, expected, sum(counts), rolled_back=went_back
    )
