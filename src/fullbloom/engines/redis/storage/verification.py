"""Answers of batches that are sent again; what a server still has of what it acknowledged to a client."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from fullbloom._core import WireBatch, WireCells
from fullbloom.engines.redis.protocol import HASH_BYTES, MAX_ATTEMPTS, back_off, contention_error, create
from fullbloom.engines.redis.protocol.create import Overtaken
from fullbloom.engines.redis.storage import Expired, ExpiringCells, StoredCells, run_or_default
from fullbloom.errors import FilterLost, FilterRolledBack

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.engines.redis.protocol import Steps

#: A single shard, which keeps the order of hashes.
_IN_ORDER = WireCells(512, 8)


class MovedShards(dict[int, int]):
    """Shards that have moved to other strings, and the generation in which they were written."""


class Attempt(NamedTuple):
    """The results of a batch that was sent once: a byte for each key.

    A batch is sent again if a reshard moves the filter to other strings while it is on its way.
    """

    #: Found, or new.
    answers: bytes
    #: New unless another client has added it since: the next attempt decides, by `first`.
    likely: bytes
    #: True if the key was not in the strings that are read, or will be next.
    first: bytes
    #: Whether the filter still uses those strings.
    is_final: bool


def select_answers(
    make: Callable[[WireCells], WireBatch], cells: WireCells, shards: set[int], there: bytes, elsewhere: bytes
) -> bytes:
    """Return the answers ``there`` for keys in ``shards``, and the answers ``elsewhere`` for others."""
    hashes = make(_IN_ORDER).hashes
    answers = bytearray(elsewhere)
    for number in range(len(elsewhere)):
        one = cells.hashed(hashes[HASH_BYTES * number : HASH_BYTES * (number + 1)])
        if one.batch(0, 1).shards[0] in shards:
            answers[number] = there[number]
    return bytes(answers)


def judge_answers(
    make: Callable[[WireCells], WireBatch], cells: WireCells, moved: MovedShards, until: int, answers: bytes
) -> tuple[bytes, bytes]:
    """Return the keys that are new, and those that are new if no client added them to the next strings.

    ``until`` is the generation in which clients read other strings. What was written in the one before may
    have missed the copy to those. What was written later says nothing, as others have answered without it.
    """
    if not moved:
        return answers, bytes(len(answers))
    nothing, late = bytes(len(answers)), {shard for shard, at in moved.items() if at >= until}
    copied = {shard for shard, at in moved.items() if at == until - 1}
    likely = select_answers(make, cells, copied, answers, nothing) if copied else nothing
    doubtful = late | copied
    return (select_answers(make, cells, doubtful, nothing, answers) if doubtful else answers), likely


def combine_attempts(attempts: list[Attempt]) -> bytes:
    """Return 1 for each key that is new by any attempt."""
    new = [one.answers for one in attempts]
    for one, after in pairwise(attempts):
        new.append(bytes(likely & first for likely, first in zip(one.likely, after.first, strict=True)))
    return combine_answers(new)


def combine_answers(answers: list[bytes]) -> bytes:
    """Return 1 for each key for which any of the answers is 1."""
    if len(answers) == 1:
        return answers[0]
    union = 0
    for one in answers:
        union |= int.from_bytes(one, "little")
    return union.to_bytes(len(answers[0]), "little")


@dataclass(frozen=True)
class Verification:
    """The result of `verify`; true when nothing that the server acknowledged is known to be lost.

    ``ok`` does not prove that: the last keys of another client may be lost, or a lost key may be found as a
    false positive (with probability fpr each).
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


def verify_expiring(storage: ExpiringCells, *, restarted: bool) -> Steps[Verification]:
    """Compare what the server has with what it acknowledged to this client; all is well if it expired."""
    steps = partial(verify_cells, storage, restarted=restarted)
    empty = Verification(True, False, restarted, (), 0, 0, 0, 0)
    return (yield from run_or_default(storage, steps, lambda: empty))


def verify_cells(storage: StoredCells, *, restarted: bool) -> Steps[Verification]:
    """Compare what the server has with what it acknowledged to this client."""
    for attempt in range(MAX_ATTEMPTS):
        yield from back_off(attempt)
        with suppress(Overtaken):
            return (yield from _compare(storage, restarted=restarted))
    raise contention_error(storage.name)


def _compare(storage: StoredCells, *, restarted: bool) -> Steps[Verification]:
    """Verify a filter; raise `Overtaken` if it is cleared, loaded or resharded meanwhile."""
    known = storage.snapshot
    manifest = yield from create.read_same_manifest(storage.name, known.manifest)
    if manifest is None:
        if isinstance(error := (yield from storage.explain_loss("its manifest")), Expired):
            raise error
        checked = len(known.acknowledged.hashes()) // HASH_BYTES
        counts = checked, checked, sum(known.acknowledged.bits), 0
        return Verification(False, True, restarted, tuple(range(known.manifest.shards)), *counts)
    # Recorded at once: whoever interrupts the verification must not hide it from the next batch.
    if manifest.generation < known.manifest.generation:  # never set to False: another thread may find out
        storage.rolled_back = True
    rolled_back = storage.rolled_back
    if manifest.generation > known.manifest.generation:
        storage.adopt(manifest)
    lost, is_earlier = yield from _compare_tags(storage)
    rolled_back |= is_earlier
    # Other threads may add keys from here on, which the server has not counted.
    remembered = storage.snapshot.acknowledged
    hashes, least = remembered.hashes(), list(remembered.bits)
    ones, is_behind = yield from storage.count_growing()
    if storage.snapshot.acknowledged is not remembered:
        raise Overtaken
    rolled_back |= is_behind
    if rolled_back:
        storage.rolled_back = True
    checked = len(hashes) // HASH_BYTES
    found = 0 if lost else (yield from storage.count_found(hashes))
    too_few = any(number < floor for number, floor in zip(ones, least, strict=False))
    ok = not lost and not too_few and found == checked and not rolled_back
    if ok and len(ones) == len(least):
        remembered.raise_bits(ones)
    counts = checked, checked - found, sum(least), sum(ones)
    return Verification(ok, False, restarted, tuple(lost), *counts, rolled_back)


def _compare_tags(storage: StoredCells) -> Steps[tuple[list[int], bool]]:
    """Return the lost shards, and whether another is in an earlier state; adopt new tags."""
    known, lost, rolled_back = storage.snapshot, list[int](), False
    progress = list(known.progress)
    for shard in range(known.manifest.shards):
        try:
            tag = yield from storage.read_tag(shard, known)
        except FilterRolledBack:
            rolled_back = True
            continue
        except FilterLost:
            lost.append(shard)
            continue
        rolled_back |= known.read_progress(tag) < progress[shard]
        if not known.is_as_known(shard, tag):  # cleared or loaded by another client: its keys are unknown
            storage.adopt_tag(known, known, shard, tag)
            if storage.snapshot.view != known.view:
                raise Overtaken
            known = storage.snapshot
    return lost, rolled_back
