"""Checks that a server still has what it acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fullbloom.engines.redis.protocol import create, expire
from fullbloom.engines.redis.protocol.expire import Expired
from fullbloom.engines.redis.protocol.plan import optional_text, parse_info
from fullbloom.engines.redis.protocol.requests import Steps, call
from fullbloom.errors import EngineRefused, FilterLost, FilterRolledBack

if TYPE_CHECKING:
    from fullbloom.engines.redis.protocol.keys import AcknowledgedKeys, Names
    from fullbloom.engines.redis.storage.counters import Counters
    from fullbloom.engines.redis.storage.strings import Strings


@dataclass(frozen=True)
class Verification:
    """The result of `verify`; true when nothing that the server acknowledged is known to be lost.

    ``ok`` is no proof: the last keys of another client may be lost, or a lost key may be found as a false
    positive (with probability fpr each).
    """

    #: True when nothing is known to be lost.
    ok: bool
    #: The manifest is gone, or another filter has the name.
    replaced: bool
    #: The server is another process than the one that this client met first.
    restarted: bool
    #: Numbers of the shards that are missing or incomplete; for a window, of the generations.
    shards_lost: tuple[int, ...]
    #: The last acknowledged keys of this client that were looked up, and how many were not found.
    keys_checked: int
    keys_lost: int
    #: Bits that must be set according to this client, and bits that are set.
    bits_expected: int
    bits_found: int
    #: The server went back to an earlier state: its cells are older than those that this client has seen.
    rolled_back: bool = False

    def __bool__(self) -> bool:
        """Return whether nothing is known to be lost."""
        return self.ok


def query_run_ids(names: Names, *, whole: bool) -> Steps[tuple[str | None, ...]]:
    """Query the ids of the processes that hold the filter: of the server, or of the node of each shard."""
    ids = []
    for key in [names.manifest] if whole else names.bits:
        try:
            ids.append(optional_text(parse_info((yield from call(key, b"INFO", b"server"))).get("run_id")))
        except EngineRefused:  # this user may not run INFO
            ids.append(None)
    return tuple(ids)


def verify_filter(strings: Strings, *, restarted: bool) -> Steps[Verification]:
    """Compare what the server has with what it acknowledged to this client."""
    steps = partial(compare, strings, restarted=restarted)
    empty = Verification(True, False, restarted, (), 0, 0, 0, 0)
    return (yield from expire.run_or_default(strings, steps, lambda: empty))


def _count_found(strings: Strings | Counters, known: AcknowledgedKeys) -> Steps[tuple[int, bool]]:
    """Return how many of the remembered keys are found, and whether the filter counts fewer keys than before.

    A filter of the server's own that does so refuses its batches; its keys are counted all the same.
    """
    try:
        return (yield from strings.count_found(known.hashes())), False
    except FilterRolledBack:
        least, known.bits[:] = list(known.bits), [0] * len(known.bits)
        strings.rolled_back = False
        try:
            return (yield from strings.count_found(known.hashes())), True
        finally:
            known.bits[:] = least


def compare(strings: Strings | Counters, *, restarted: bool) -> Steps[Verification]:
    """Verify a filter that has not expired."""
    known = strings.snapshot
    manifest = yield from create.read_same_manifest(strings.name, known.manifest)
    remembered = known.acknowledged
    checked = len(remembered.hashes()) // 8
    expected = sum(remembered.bits)
    if manifest is None:
        if isinstance(error := (yield from strings.explain_loss("its manifest")), Expired):
            raise error
        everything = tuple(range(known.manifest.shards))
        return Verification(False, True, restarted, everything, checked, checked, expected, 0)
    rolled_back = strings.rolled_back or manifest.generation < known.manifest.generation
    if manifest.generation != known.manifest.generation:
        strings.adopt(manifest)
        known = strings.snapshot
        remembered, checked, expected = known.acknowledged, 0, 0
    lost, epochs = [], list(known.epochs)
    for shard in range(known.manifest.shards):
        try:
            tag = yield from strings.read_tag(shard, known)
        except FilterRolledBack:
            rolled_back = True
            continue
        except FilterLost:
            lost.append(shard)
            continue
        rolled_back |= known.read_epoch(tag) < epochs[shard]
        if not known.is_as_known(shard, tag):  # cleared or loaded by another client: its keys are unknown
            strings.adopt_tag(known, known, shard, tag)
            remembered, checked, expected = strings.snapshot.acknowledged, 0, 0
    counts = yield from strings.count_growing()
    found, is_behind = (0, False) if lost else (yield from _count_found(strings, remembered))
    rolled_back |= is_behind
    strings.rolled_back |= rolled_back
    too_few = any(count < least for count, least in zip(counts, remembered.bits, strict=False))
    keys_lost = checked - found
    ok = not lost and not too_few and not keys_lost and not rolled_back
    if ok and len(counts) == len(remembered.bits):
        remembered.bits[:] = counts
    bits = (expected, sum(counts))
    return Verification(ok, False, restarted, tuple(lost), checked, keys_lost, *bits, rolled_back)
