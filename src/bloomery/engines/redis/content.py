"""All cells at once: out to a filter in memory, in from one, and whether they are still there."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from bloomery.engines.redis import creation, failures, terms
from bloomery.engines.redis.acknowledged import Verification
from bloomery.engines.redis.asks import call
from bloomery.engines.redis.creation import PIECE, written
from bloomery.engines.redis.lasting import Expired, lasts, timed
from bloomery.engines.redis.manifest import MARK_BYTES
from bloomery.engines.redis.names import beside
from bloomery.errors import FilterLost

if TYPE_CHECKING:
    from bloomery._core import BloomFilter
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.counters import Counters
    from bloomery.engines.redis.strings import Strings

_NO_MARK = bytes(MARK_BYTES)


def dumped(strings: Strings) -> Steps[BloomFilter]:
    """Return the filter in memory: the same bits. Keys that come meanwhile may be in it or not."""
    strings.need_cells("dump()")
    stood = strings.manifest
    filter_ = strings.cells.memory(stood.capacity, stood.fpr)
    for shard, key in enumerate(strings.names.bits):
        mark = yield from strings.marked(shard)
        first, nbytes = strings.cells.range(shard)
        for at in range(0, nbytes, PIECE):
            data = yield from call(key, b"GETRANGE", key, at, min(at + PIECE, nbytes) - 1)
            strings.cells.write(filter_, first + at, data)
        if (yield from strings.marked(shard)) != mark:
            raise failures.lost(
                strings.name, f"what was in shard {shard} while it was read: it was cleared or loaded"
            )
    strings.cells.recount(filter_)
    return filter_


def united(strings: Strings, data: bytes | memoryview) -> Steps[None]:
    """Set the bits that are set in ``data``, the bytes of a filter in memory.

    The server sees each string change at once.
    """
    strings.need_cells("|=")
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(strings.names.bits):
        yield from strings.marked(shard)
        other = beside(key, b"or:" + token)
        try:
            yield from written(other, _NO_MARK, strings.cells, shard, data)
            yield from _set(strings, key, other)
        finally:
            yield from call(other, b"UNLINK", other)


def united_there(strings: Strings, others: list[bytes]) -> Steps[None]:
    """Set the bits that are set in strings of the same server, which are as many and as long."""
    strings.need_cells("|=")
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(strings.names.bits):
        yield from strings.marked(shard)
        _, nbytes = strings.cells.range(shard)
        copied = beside(key, b"or:" + token)
        try:
            if not (yield from call(key, b"COPY", others[shard], copied, b"REPLACE")):
                raise failures.lost(strings.name, "the other filter's cells")
            yield from call(key, b"SETRANGE", copied, nbytes, _NO_MARK)
            yield from _set(strings, key, copied)
        finally:
            yield from call(key, b"UNLINK", copied)


def _set(strings: Strings, key: bytes, other: bytes) -> Steps[None]:
    """Set the bits of another string. BITOP takes the time to live away."""
    words = (b"BITOP", b"OR", key, key, other)
    if strings.manifest.ttl:
        yield from timed(key, lasts(strings.manifest), *words, others=(other,))
    else:
        yield from call(key, *words)


def verified(strings: Strings, *, restarted: bool) -> Steps[Verification]:
    """Compare what the server has with what this client knows that it acknowledged."""
    nothing = Verification(True, False, restarted, (), 0, 0, 0, 0)
    return (yield from terms.looked(strings, lambda: compared(strings, restarted=restarted), lambda: nothing))


def compared(strings: Strings | Counters, *, restarted: bool) -> Steps[Verification]:
    """Do so of a filter without a term, or within it."""
    stood = yield from creation.same(strings.name, strings.manifest)
    if stood is not None and stood.generation != strings.manifest.generation:
        strings.adopt(stood)
    remembered = strings.acknowledged
    checked = len(remembered.hashes()) // 8
    expected = sum(remembered.bits)
    if stood is None:
        if isinstance(why := (yield from strings.gone("its manifest")), Expired):
            raise why
        everything = tuple(range(strings.manifest.shards))
        return Verification(False, True, restarted, everything, checked, checked, expected, 0)
    lost = []
    for shard in range(strings.manifest.shards):
        try:
            mark = yield from strings.marked(shard)
        except FilterLost:
            lost.append(shard)
            continue
        if mark != strings.marks[shard]:  # cleared or loaded by somebody: nothing is known of its keys
            strings.forget(shard, mark)
            remembered, checked, expected = strings.acknowledged, 0, 0
    counts = yield from strings.counted()
    found = 0 if lost else (yield from strings.present(remembered.hashes()))
    less = any(count < least for count, least in zip(counts, remembered.bits, strict=True))
    keys_lost = checked - found
    ok = not lost and not less and not keys_lost
    if ok:
        remembered.bits[:] = counts
    return Verification(ok, False, restarted, tuple(lost), checked, keys_lost, expected, sum(counts))
