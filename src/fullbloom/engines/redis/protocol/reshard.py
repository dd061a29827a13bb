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

Each state is set by comparing the manifest with the one that it follows (`creation.swapped`), and no tag is
set to an earlier generation than it has. So a client that was paused at any point, for however long, changes
nothing when it goes on: another one has gone on in its place, or it is the one who does.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fullbloom.engines.redis.protocol import create, expire, load, manifest
from fullbloom.engines.redis.protocol.create import Overtaken
from fullbloom.engines.redis.protocol.expire import Expired
from fullbloom.engines.redis.protocol.keys import Snapshot, beside, cells_of
from fullbloom.engines.redis.protocol.load import _read
from fullbloom.engines.redis.protocol.manifest import MARK_BYTES, MOST_SHARDS, Manifest, lasts
from fullbloom.engines.redis.protocol.requests import (
    TRIES,
    Steps,
    call,
    guarded,
    is_done,
    paused,
    read_number,
    read_part,
    read_text,
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


#: Milliseconds after which the old strings vanish: a batch that is on its way finds their tags until then.
_KEPT = 60_000
#: Bytes of what a filter goes to.
_CLAIM_BYTES = 1 << 12


def _claim(strings: Strings) -> bytes:
    """Return the name of the key that says what a filter goes to."""
    return beside(strings.names.manifest, b"reshard")


def resharded(strings: Strings, shards: int) -> Steps[None]:
    """Go to so many shards; what another client began is brought to its end first."""
    strings.need_cells("reshard()")
    yield from expire.living(strings, lambda: _resharded(strings, shards))


def _resharded(strings: Strings, shards: int) -> Steps[None]:
    if type(shards) is int and shards > MOST_SHARDS:
        raise ParameterError(f"shards must be {MOST_SHARDS:,} at most, got {shards:,}")
    for turn in range(TRIES):
        yield from paused(turn)
        now = yield from strings.refreshed()
        stood, key = now.manifest, _claim(strings)
        to = {"id": stood.id, "shards": shards, "cut": stood.cut + 1, "from": [stood.shards, stood.cut]}
        if stood.shards != shards and not stood.other_shards:
            cells_of(replace(stood, shards=shards), strings.secret)  # raises what cannot be
            yield from is_done(key, b"SET", key, json.dumps(to).encode(), b"NX")
        try:
            claimed = yield from _claimed(strings)
        except FilterLost:  # it was deleted before the claim was set
            yield from _disclaimed(strings, stood.id)
            raise
        if claimed is None:
            if strings.manifest.shards == shards and not strings.manifest.other_shards:
                return
            continue
        said, to_shards, cut = claimed
        with suppress(Overtaken):
            yield from _moved(strings, to_shards, cut)
            yield from guarded(key, said, b"DEL", key)
    raise EngineTimeout(f"filter {strings.name!r}: other clients keep changing it; try again")


def _disclaimed(strings: Strings, of: str) -> Steps[None]:
    """Delete what a filter that is gone was to go to."""
    key = _claim(strings)
    with suppress(FullbloomError):
        data = yield from read_text(key, _CLAIM_BYTES, b"GET", key)
        if data is not None and _read_claim(strings.name, data)[0] == of:
            yield from guarded(key, data, b"DEL", key)


def _claimed(strings: Strings) -> Steps[tuple[bytes, int, int] | None]:
    """Return the claim, the shards and the cut that the filter goes to; None if it goes nowhere."""
    key = _claim(strings)
    data = yield from read_text(key, _CLAIM_BYTES, b"GET", key)
    if data is None:
        return None
    of, shards, cut, before, old_cut = _read_claim(strings.name, data)
    stood = (yield from strings.refreshed()).manifest
    if of == stood.id and (cut > stood.cut or stood.other_shards):
        return data, shards, cut
    if of == stood.id and old_cut != stood.cut:  # who did it was stopped at the very end
        old = Snapshot.of(strings.name, replace(stood, shards=before, cut=old_cut), strings.secret)
        yield from _retired(old, stood.generation)
    yield from guarded(key, data, b"DEL", key)
    return None


def _read_claim(name: str, data: bytes) -> tuple[str, int, int, int, int]:
    """Return the id, the shards and the cut that a filter goes to, and those that it comes from."""
    try:
        said = json.loads(data)
        of, numbers = said["id"], (said["shards"], said["cut"], *said["from"])
        sound = isinstance(of, str) and all(type(number) is int and number >= 0 for number in numbers)
        shards, cut, before, old_cut = numbers
        sound &= 0 < shards <= MOST_SHARDS and 0 < before <= MOST_SHARDS and max(cut, old_cut) < 1 << 32
    except (ValueError, KeyError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise FormatError(f"filter {name!r}: invalid reshard record beside its manifest; delete the filter")
    return of, shards, cut, before, old_cut


def _moved(strings: Strings, shards: int, cut: int) -> Steps[None]:
    """Go through the states, from the one that the filter is in."""
    now = strings.snapshot
    stood = now.manifest
    if stood.cut != cut and not stood.other_shards:
        new = Snapshot.of(strings.name, replace(stood, shards=shards, cut=cut), strings.secret)
        try:
            yield from _made(new)
            now = yield from _entered(strings, now, replace(stood.next(), other_shards=shards, other_cut=cut))
        except (FullbloomError, Overtaken, Expired):
            yield from _given_up(strings, stood, new)
            raise
        stood = now.manifest
    if stood.cut != cut:
        other = now.other
        if other is None or stood.other_cut != cut:
            raise Overtaken
        yield from _marked(strings, now)
        filter_ = yield from _read(strings, now)
        yield from load.united(strings, memoryview(filter_).cast("B"), other)
        after = replace(other.manifest, generation=stood.next().generation)
        after = replace(after, other_shards=stood.shards, other_cut=stood.cut)
        now = yield from _entered(strings, now, after)
        stood = now.manifest
    yield from _marked(strings, now)
    old = now.other
    if old is None:
        return
    now = yield from _entered(strings, now, replace(stood.next(), other_shards=0, other_cut=0))
    yield from _retired(old, now.manifest.generation)


def _made(new: Snapshot) -> Steps[None]:
    """Make strings with no bits set, unless they are there from a try before.

    Each is made under a name of its own and renamed if none is there: nobody else's is written over.
    """
    token = secrets.token_hex(8).encode()
    for shard, key in enumerate(new.names.bits):
        nbytes, fresh = new.nbytes(shard), beside(key, b"new:" + token)
        if not new.is_own(shard, (yield from read_part(key, nbytes, MARK_BYTES))):
            yield from create.written(fresh, new.manifest.mark(shard), new.cells, shard, None)
            try:
                named = yield from is_done(key, b"RENAMENX", fresh, key)
                tag = yield from read_part(key, nbytes, MARK_BYTES)
                if not named and not new.is_own(shard, tag):
                    if new.manifest.version > 1:  # of this filter, as the name has its id: for other shards
                        raise Overtaken
                    # Left by a filter that had the name before.
                    yield from is_done(key, b"RENAME", fresh, key)
            finally:
                yield from call(fresh, b"UNLINK", fresh)
        how, *when = lasts(new.manifest)
        yield from call(key, how, key, *when)


def _given_up(strings: Strings, stood: Manifest, new: Snapshot) -> Steps[None]:
    """Delete new strings that nobody goes to: the filter was deleted, or has gone past them, meanwhile."""
    with suppress(FullbloomError):
        there = yield from create.same(strings.name, stood)
        cut = new.manifest.cut
        if there is None or there.state == manifest.DELETING or _is_past(there, cut):
            yield from strings.swept(new)
        if there is None or there.state == manifest.DELETING:
            yield from _disclaimed(strings, stood.id)


def _is_past(stood: Manifest, cut: int) -> bool:
    """Tell whether a filter neither is in strings any more nor goes to or from them."""
    return cut < stood.cut and not (stood.other_shards and stood.other_cut == cut)


def _entered(strings: Strings, before: Snapshot, after: Manifest) -> Steps[Snapshot]:
    """Set the manifest if it is the one before, then the tags: from then on every client knows."""
    if not (yield from create.swapped(strings.name, before.manifest, after)):
        yield from strings.refreshed(before)  # raises if it is gone
        raise Overtaken
    strings.adopt(after)
    now = Snapshot.of(strings.name, after, strings.secret)
    yield from _marked(strings, now)
    return now


#: Sets the generation in a tag, whose first 8 bytes must be ARGV[2], unless it has a later one.
_MARK = (
    b"local at = tonumber(ARGV[1]) "
    b"local tag = redis.call('GETRANGE', KEYS[1], at, at + 15) "
    b"if #tag ~= 16 or string.sub(tag, 1, 8) ~= ARGV[2] then return 0 end "
    b"if struct.unpack('<I4', tag, 9) < struct.unpack('<I4', ARGV[3]) then "
    b"redis.call('SETRANGE', KEYS[1], at + 8, ARGV[3]) end "
    b"return 1"
)


def _tagged(part: Snapshot, shard: int, generation: int) -> Steps[bool]:
    """Set the generation in a tag unless it has a later one; False where it is not this filter's."""
    key, at, owner = (
        part.names.bits[shard],
        part.nbytes(shard),
        part.manifest.mark(shard)[: manifest.OWNER_BYTES],
    )
    set_to = generation.to_bytes(4, "little")
    try:
        return bool((yield from read_number(key, b"EVAL", _MARK, 1, key, at, owner, set_to)))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts
        tag = yield from read_part(key, at, MARK_BYTES)
        if not part.is_own(shard, tag):
            return False
        if manifest.generation_of(tag) < generation:
            yield from read_number(key, b"SETRANGE", key, at + manifest.OWNER_BYTES, set_to)
        return True


def _marked(strings: Strings, now: Snapshot) -> Steps[None]:
    """Set the tags of all strings to the manifest's generation, but for those that have a later one."""
    for part in (now, now.other):
        if part is None:
            continue
        for shard, key in enumerate(part.names.bits):
            if not (yield from _tagged(part, shard, now.manifest.generation)):
                current = yield from strings.refreshed(now)
                if current.view != now.view:
                    raise Overtaken
                raise (yield from strings.gone(f"the cells of shard {shard}", key, now))


def _retired(old: Snapshot, generation: int) -> Steps[None]:
    """Tag strings that nobody reads, and let them vanish."""
    for shard, key in enumerate(old.names.bits):
        if (yield from is_done(key, b"PEXPIRE", key, _KEPT)):
            yield from _tagged(old, shard, generation)


def finished(strings: Strings) -> Steps[None]:
    """Bring to its end what another client began."""
    yield from strings.refreshed()
    if (yield from _claimed(strings)) is not None:
        yield from resharded(strings, strings.manifest.shards)


def replaced(strings: Strings, data: memoryview | None) -> Steps[None]:
    """Put the cells in ``data``, or none set, in the place of those that are there."""
    yield from expire.living(strings, lambda: _replaced(strings, data))


def _replaced(strings: Strings, data: memoryview | None) -> Steps[None]:
    for turn in range(TRIES):
        yield from paused(turn)
        try:
            yield from finished(strings)
            now = strings.snapshot
            if now.manifest.other_shards:
                continue
            after = yield from create.replaced(strings.name, now.manifest, now.cells, data)
        except FilterRolledBack:  # which is what they begin afresh from
            there = yield from create.same(strings.name, strings.manifest)
            if there is None:
                raise
            strings.adopt(there)
        except Overtaken:
            continue
        else:
            strings.adopt(after)
            strings.went_back = False
            return
    raise EngineTimeout(f"filter {strings.name!r}: other clients keep changing it; try again")


def deleted(strings: Strings) -> Steps[bool]:
    """Delete the filter; True when there was one."""
    known, key = strings.snapshot, _claim(strings)
    claim = yield from read_text(key, _CLAIM_BYTES, b"GET", key)
    was = yield from create.deleted(strings.name)
    yield from strings.swept(known)
    if claim is not None:
        with suppress(FormatError):
            of, shards, cut, *_ = _read_claim(strings.name, claim)
            if of == known.manifest.id:
                to = replace(known.manifest, shards=shards, cut=cut, other_shards=0, other_cut=0)
                yield from strings.swept(Snapshot.of(strings.name, to, strings.secret))
        yield from guarded(key, claim, b"DEL", key)
    return was
