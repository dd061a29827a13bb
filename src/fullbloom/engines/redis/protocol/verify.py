"""Whether cells are still there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fullbloom.engines.redis.protocol import create, expire
from fullbloom.engines.redis.protocol.expire import Expired
from fullbloom.engines.redis.protocol.plan import _pairs, _text
from fullbloom.engines.redis.protocol.requests import Steps, call
from fullbloom.errors import EngineRefused, FilterLost, FilterRolledBack

if TYPE_CHECKING:
    from fullbloom.engines.redis.protocol.keys import Names
    from fullbloom.engines.redis.storage.counters import Counters
    from fullbloom.engines.redis.storage.strings import Strings


@dataclass(frozen=True)
class Verification:
    """What `verify` found; true when nothing that was acknowledged is known to be gone.

    ``ok`` is no proof: keys that another client added last may be gone, or the only ones that are gone be
    found by a false positive (probability fpr each).
    """

    #: True when nothing is known to be gone.
    ok: bool
    #: The manifest is gone, or another filter has the name.
    replaced: bool
    #: The server is another process than the one that this client met first.
    restarted: bool
    #: Numbers of the shards that are not there, or not whole; of a window, of the generations.
    shards_lost: tuple[int, ...]
    #: The last acknowledged keys of this client that were looked for, and how many of them were not found.
    keys_checked: int
    keys_lost: int
    #: Bits that must be set by what this client knows, and those that are.
    bits_expected: int
    bits_found: int
    #: The server went back to an earlier state: older cells than this client has seen.
    rolled_back: bool = False

    def __bool__(self) -> bool:
        """Tell whether nothing is known to be gone."""
        return self.ok


def run_ids(names: Names, *, whole: bool) -> Steps[tuple[str | None, ...]]:
    """Ask for the numbers of the processes that hold the filter, whole in one of them, or shard by shard."""
    told = []
    for key in [names.manifest] if whole else names.bits:
        try:
            told.append(_text(_pairs((yield from call(key, b"INFO", b"server"))).get("run_id")))
        except EngineRefused:  # this user may not know
            told.append(None)
    return tuple(told)


def verified(strings: Strings, *, restarted: bool) -> Steps[Verification]:
    """Compare what the server has with what this client knows that it acknowledged."""
    nothing = Verification(True, False, restarted, (), 0, 0, 0, 0)
    return (
        yield from expire.looked(strings, lambda: compared(strings, restarted=restarted), lambda: nothing)
    )


def compared(strings: Strings | Counters, *, restarted: bool) -> Steps[Verification]:
    """Compare so for a filter that has not expired."""
    known = strings.snapshot
    stood = yield from create.same(strings.name, known.manifest)
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
