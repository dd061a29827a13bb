"""From one number of shards to another, while clients add and look.

A filter goes over to new strings in four states of its manifest, each of the next generation. At each, the
marks of all strings get that generation before anything else is done, so that every client that does not know
yet finds out by its next batch: it reads the marks behind the keys.

| state | read | written | then |
|---|---|---|---|
| before | old | old | the new strings are made, none of them set |
| copying | old | old and new | the old cells are set in the new ones, too |
| switching | new | old and new | all marks are there: nobody reads the old ones |
| after | new | new | the old strings vanish in a minute |

In each state, and while clients are in two that follow each other, what is read has all that was
acknowledged. So it does not matter where who reshards is stopped: clients go on in that state, and the next
reshard goes on from there. What it goes to stands in a key of its own, which the first one sets.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from bloomery.engines.redis import content, creation, failures, terms
from bloomery.engines.redis.asks import Pause, call
from bloomery.engines.redis.lasting import lasts
from bloomery.engines.redis.manifest import MARK_BYTES
from bloomery.engines.redis.names import beside
from bloomery.engines.redis.strings import Strings, cells_of
from bloomery.errors import BloomeryError, FilterLost, FormatError

if TYPE_CHECKING:
    from bloomery._core import BloomFilter
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.manifest import Manifest

#: Milliseconds after which the old strings vanish: a batch that is on its way finds their marks until then.
_KEPT = 60_000
#: Milliseconds for which another client lets one set the next generation, and seconds between its looks.
_TURN = 10_000
_WAIT = 0.05


def _claim(strings: Strings) -> bytes:
    """Return the name of the key that says what a filter goes to."""
    return beside(strings.names.manifest, b"reshard")


def resharded(strings: Strings, shards: int) -> Steps[None]:
    """Go to so many shards; what another client began is brought to its end first."""
    strings.need_cells("reshard()")
    yield from terms.living(strings, lambda: _resharded(strings, shards))


def _resharded(strings: Strings, shards: int) -> Steps[None]:
    while True:
        yield from strings.refreshed()
        stood, key = strings.manifest, _claim(strings)
        to = {"id": stood.id, "shards": shards, "cut": stood.cut + 1, "from": [stood.shards, stood.cut]}
        wanted = json.dumps(to).encode()
        if stood.shards != shards and not stood.other_shards:
            cells_of(replace(stood, shards=shards), strings.secret)  # raises what cannot be
            yield from call(key, b"SET", key, wanted, b"NX")
        claimed = yield from _claimed(strings)
        if claimed is None:
            if strings.manifest.shards == shards:
                return
            continue
        with suppress(_Overtaken):
            yield from _moved(strings, *claimed)
            yield from call(key, b"DEL", key)


def _claimed(strings: Strings) -> Steps[tuple[int, int] | None]:
    """Return the shards and the cut that the filter goes to; None if nobody wants it to go anywhere."""
    key = _claim(strings)
    data = yield from call(key, b"GET", key)
    if data is None:
        return None
    try:
        said = json.loads(data)
        of, shards, cut = said["id"], int(said["shards"]), int(said["cut"])
        before, old_cut = map(int, said["from"])
    except (ValueError, KeyError, TypeError):
        raise FormatError(f"filter {strings.name!r}: what stands beside its manifest is no reshard") from None
    yield from strings.refreshed()
    stood = strings.manifest
    if of == stood.id and (cut > stood.cut or stood.other_shards):
        return shards, cut
    if of == stood.id and old_cut != stood.cut:  # who did it was stopped at the very end
        old = Strings(strings.name, replace(stood, shards=before, cut=old_cut), strings.secret)
        yield from _retired(old, stood.generation)
    yield from call(key, b"DEL", key)
    return None


def _moved(strings: Strings, shards: int, cut: int) -> Steps[None]:
    """Go through the states, from the one that the filter is in."""
    stood = strings.manifest
    if stood.cut != cut and not stood.other_shards:
        new = Strings(strings.name, replace(stood, shards=shards, cut=cut), strings.secret)
        yield from _made(new)
        yield from _told(strings, replace(stood.next(), other_shards=shards, other_cut=cut))
        stood = strings.manifest
    if stood.cut != cut:
        yield from _marked(strings)
        filter_ = yield from _read(strings)
        if strings.other is None:
            raise failures.lost(strings.name, "what it goes to")
        yield from content.united(strings.other, memoryview(filter_).cast("B"))
        after = replace(strings.other.manifest, generation=stood.generation + 1)
        yield from _told(strings, replace(after, other_shards=stood.shards, other_cut=stood.cut))
        stood = strings.manifest
    yield from _marked(strings)
    old = strings.other
    yield from _told(strings, replace(stood.next(), other_shards=0, other_cut=0))
    if old is not None:
        yield from _retired(old, strings.manifest.generation)


def _made(new: Strings) -> Steps[None]:
    """Make strings with no bits set, unless they are there from a try before."""
    for shard, key in enumerate(new.names.bits):
        _, nbytes = new.cells.range(shard)
        if (yield from call(key, b"STRLEN", key)) != nbytes + MARK_BYTES:
            yield from creation.written(key, new.marks[shard], new.cells, shard, None)
        how, *when = lasts(new.manifest)
        yield from call(key, how, key, *when)


def _told(strings: Strings, after: Manifest) -> Steps[None]:
    """Set the manifest, then the marks: from then on every client knows."""
    key = strings.names.manifest
    turn = yield from _turn(strings, after.generation)
    try:
        told = yield from call(key, b"SET", key, after.to_bytes(), b"XX", *after.lasting)
    except BloomeryError:
        yield from _left(*turn)
        raise
    if not told:
        raise (yield from strings.gone("its manifest"))
    strings.adopt(after)
    yield from _marked(strings)


class _Overtaken(Exception):
    """Another client has set the next generation, or is about to."""


def _turn(strings: Strings, generation: int) -> Steps[tuple[bytes, bytes]]:
    """Be the only one who sets this generation; return the key that says so, and what it holds."""
    key, token = beside(strings.names.manifest, b"to:%d" % generation), secrets.token_bytes(8)
    try:
        won = yield from call(key, b"SET", key, token, b"NX", b"PX", _TURN)
        won = won or (yield from call(key, b"GET", key)) == token  # sent twice
        if not won:
            yield [Pause(_WAIT)]
        yield from strings.refreshed()
    except BloomeryError:
        yield from _left(key, token)
        raise
    if not won or strings.manifest.generation != generation - 1:
        raise _Overtaken
    return key, token


def _left(key: bytes, token: bytes) -> Steps[None]:
    """Leave the turn to others, as far as the server can be reached."""
    with suppress(BloomeryError):
        if (yield from call(key, b"GET", key)) == token:
            yield from call(key, b"DEL", key)


def _marked(strings: Strings) -> Steps[None]:
    """Set the marks of all strings to the manifest's generation."""
    for part in (strings, strings.other):
        if part is None:
            continue
        for shard, key in enumerate(part.names.bits):
            yield from part.marked(shard)
            _, nbytes = part.cells.range(shard)
            yield from call(key, b"SETRANGE", key, nbytes, strings.manifest.mark(shard))


def _retired(old: Strings, generation: int) -> Steps[None]:
    """Mark strings that nobody reads, and let them vanish."""
    for shard, key in enumerate(old.names.bits):
        _, nbytes = old.cells.range(shard)
        mark = replace(old.manifest, generation=generation).mark(shard)
        if (yield from call(key, b"PEXPIRE", key, _KEPT)):
            yield from call(key, b"SETRANGE", key, nbytes, mark)


def dumped(strings: Strings) -> Steps[BloomFilter]:
    """Return the filter in memory."""
    strings.need_cells("dump()")
    stood = strings.manifest
    return (
        yield from terms.looked(
            strings, lambda: _dumped(strings), lambda: strings.cells.memory(stood.capacity, stood.fpr)
        )
    )


def _dumped(strings: Strings) -> Steps[BloomFilter]:
    while True:
        yield from strings.refreshed()
        with suppress(_Overtaken):
            return (yield from _read(strings))


def _read(strings: Strings) -> Steps[BloomFilter]:
    """Return the filter in memory, unless it gets another generation meanwhile."""
    generation = strings.manifest.generation
    try:
        return (yield from content.dumped(strings))
    except FilterLost:
        yield from strings.refreshed()
        if strings.manifest.generation != generation:
            raise _Overtaken from None
        raise


def finished(strings: Strings) -> Steps[None]:
    """Bring to its end what another client began."""
    yield from strings.refreshed()
    if (yield from _claimed(strings)) is not None:
        yield from resharded(strings, strings.manifest.shards)


def merged(strings: Strings, data: memoryview) -> Steps[None]:
    """Set the bits that are set in ``data``, in all strings that keys are written to."""
    yield from terms.living(strings, lambda: _merged(strings, data))


def _merged(strings: Strings, data: memoryview) -> Steps[None]:
    yield from strings.refreshed()
    while True:
        view = strings.view
        for part in (strings, strings.other):
            if part is not None:
                yield from content.united(part, data)
        yield from strings.refreshed()
        if strings.view == view:
            return


def replaced(strings: Strings, data: memoryview | None) -> Steps[None]:
    """Put the cells in ``data``, or none set, in the place of those that are there."""
    yield from terms.living(strings, lambda: _replaced(strings, data))


def _replaced(strings: Strings, data: memoryview | None) -> Steps[None]:
    while True:
        yield from finished(strings)
        try:
            turn = yield from _turn(strings, strings.manifest.generation + 1)
        except _Overtaken:
            continue
        break
    try:
        strings.adopt((yield from creation.replaced(strings.name, strings.manifest, strings.cells, data)))
    except BloomeryError:
        yield from _left(*turn)
        raise


def deleted(strings: Strings) -> Steps[bool]:
    """Delete the filter; True when there was one."""
    key, was = _claim(strings), (yield from creation.deleted(strings.name, strings.manifest))
    yield from call(key, b"UNLINK", key)
    return was
