"""Time windows on a server: generations of strings, used in turn by the server's clock.

Generation e is the strings of the e-th interval of ``window / (generations - 1)`` seconds since 1970, by the
server's TIME. A key is added to the present generation and looked up in the ``generations`` latest ones, so
it is remembered for at least ``window`` seconds and at most ``window * g / (g - 1)``: the rule of
`RollingBloomFilter`. No client rotates them: a generation begins with its first key, and its strings expire
(PEXPIREAT) when it is not among the latest any more.

The client that adds the first key of a generation creates all of its strings and records it in the manifest
(`generations`). A client that meets a generation for the first time compares the tags of all its strings with
the record, and from then on those of the strings that each batch touches. A generation that is not recorded
has no keys. For past generations that is final; to learn about the present one, the manifest is read in the
round trip of the batch.

The server's time is known to within the round trip of a TIME. A key that arrives while the present may be
either of two generations goes to both; and once it is written, the latest moment at which that may have been
is checked again. So neither clients' clocks matter, nor how late a batch arrives.
"""

from __future__ import annotations

import time
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.engines.redis.protocol import errors, generations
from fullbloom.engines.redis.protocol.generations import (
    Clock,
    CurrentGenerations,
    MissingStrings,
    RecordedGeneration,
    WindowState,
    current_generations,
    recorded_generations,
    restore_record,
    seconds_per_generation,
    swap_manifest,
    with_record,
)
from fullbloom.engines.redis.protocol.keys import (
    AcknowledgedKeys,
    Names,
    make_shard,
    native_cells,
)
from fullbloom.engines.redis.protocol.manifest import parse_manifest
from fullbloom.engines.redis.protocol.requests import (
    Call,
    Request,
    SendBatch,
    Steps,
    read_number,
    read_value,
)
from fullbloom.engines.redis.protocol.verify import Verification
from fullbloom.engines.redis.storage import strings
from fullbloom.engines.redis.storage.attempts import combine_answers
from fullbloom.engines.redis.storage.creation import NewString, create_strings
from fullbloom.engines.redis.storage.strings import PORTION, run_portions
from fullbloom.errors import (
    EngineNameTaken,
    FilterLost,
    FilterRolledBack,
    FullbloomError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom._core import WireBatch, WireCells, WireExchange
    from fullbloom.engines.redis.protocol.manifest import Manifest
    from fullbloom.engines.redis.protocol.requests import Acks

#: Translates 0 to 1 and 1 to 0.
_NEGATE = bytes([1, 0]) + bytes(254)
_WORD = 8


class Window:
    """The window as its strings; each method is a generator of requests."""

    def __init__(self, name: str, manifest: Manifest, secret: bytes | None) -> None:
        """Take the manifest on the server."""
        self.name, self.cells = name, native_cells(manifest, secret)
        #: Hashes keys in order, as cells in shards do not.
        self.hasher = _core.WireCells(512, 8, seed=manifest.seed, secret=secret)
        self.names = Names(name)
        self.clock = Clock(self.names.manifest)
        self.seconds = seconds_per_generation(manifest)
        #: Replicas that must confirm what is added.
        self.acks: Acks | None = None
        self.state = WindowState(name, manifest)

    @property
    def manifest(self) -> Manifest:
        """The manifest that was read last."""
        return self.state.manifest

    def key(self, generation: int, shard: int = 0) -> bytes:
        """Return the key of a string."""
        return self.state.key(generation, shard)

    def _now(self) -> Steps[CurrentGenerations]:
        return (yield from current_generations(self.manifest, self.clock))

    def many(self, keys: Any, *, adding: bool, answer: bool = True) -> Steps[Any]:
        """Look up or add many keys; return the answers in the container type of the keys, if requested."""
        if not hasattr(keys, "__len__") and not hasattr(keys, "__arrow_c_stream__"):
            return (yield from run_portions(self.many, keys, adding=adding, answer=answer))
        batch = self.hasher.keys(keys)
        answers = yield from self.each(batch.batch(0, len(batch)).hashes, adding=adding)
        if not answer:
            return None
        batch.give(answers)
        return batch.answers(keys)

    def each(self, hashes: bytes, *, adding: bool) -> Steps[bytes]:
        """Look up or add given hashes; return a byte for each: 1 if found, or new."""
        answers, size = b"", _WORD * PORTION
        for start in range(0, len(hashes), size):
            portion = _Portion(self.cells, hashes[start : start + size])
            while True:
                run = self._add if adding else self._look_up
                try:
                    answers += yield from run(self.state, portion)
                except _Retry:
                    continue
                break
        return answers

    def _look_up(self, state: WindowState, portion: _Portion) -> Steps[bytes]:
        now = yield from self._now()
        known = state.live(now)
        reads = state.may_have_changed(now) or state.is_unread()
        answers = yield from self._query(state, portion, known, (), now if reads else None)
        if more := [one for one in state.live(now) if one not in known]:
            answers += yield from self._query(state, portion, more, ())
        return combine_answers([bytes(len(portion)), *answers])

    def _add(self, state: WindowState, portion: _Portion) -> Steps[bytes]:
        """Add to the present generation and look up the older ones: a key is new if all of them lacked it."""
        found: list[bytes] | None = None
        written = set[int]()
        while True:
            now = yield from self._now()
            present = sorted({now.earliest, now.latest} - written)
            if not present:
                return combine_answers([portion.new, combine_answers(found or []).translate(_NEGATE)])
            for generation in present:
                yield from self._begin(state, generation)
            if found is None and state.may_have_changed(now):
                yield from self._refresh(state)
            older = [one for one in state.live(now) if one not in present] if found is None else []
            reads = state.is_unread()
            answers = yield from self._query(state, portion, older, present, now if reads else None)
            for generation in present:
                state.note(generation, portion.hashes, now.first)
            yield from self._raise_epochs(state)
            if found is None:  # later generations contain what was just added
                known, new = answers[: len(older)], answers[len(older) :]
                found = [*known, *(one.translate(_NEGATE) for one in new)]
            written.update(present)

    def _query(
        self,
        state: WindowState,
        portion: _Portion,
        looked: Sequence[int],
        added: Sequence[int],
        reading: CurrentGenerations | None = None,
    ) -> Steps[list[bytes]]:
        """Look up in some generations and add to others, at the same time; return a byte a hash for each.

        With ``reading``, the manifest is read along with them.
        """
        yield from self._check_cleared(state, (*looked, *added))
        unknown = [(one, self.cells.marks()) for one in looked if one not in state.tags]
        each = [(one, portion.lookup) for one in looked] + [(one, portion.to_add()) for one in added]
        epochs = {
            (one, shard): state.epochs.get((one, shard), 0) for one, batch in each for shard in batch.shards
        }
        requests: list[Request] = [
            state.send(one, batch, self.acks if number >= len(unknown) + len(looked) else None)
            for number, (one, batch) in enumerate((*unknown, *each))
        ]
        if reading is not None:
            key = self.names.manifest
            requests.append(SendBatch(_core.WireText(key), [make_shard(0, key)]))
        replies = yield from self._exchange(requests)
        missing = MissingStrings()
        for (generation, _), exchanges in zip(unknown, replies, strict=False):
            if not self._check_tags(state, generation, exchanges):
                missing.missing.append(generation)
        answers = list[bytes]()
        for (generation, batch), exchanges in zip(each, replies[len(unknown) :], strict=False):
            adding = len(answers) >= len(looked)
            for exchange in exchanges:
                batch.take(exchange)
                bits = missing.note(state, generation, exchange, adding=adding)
                self._note_epochs(state, generation, exchange, epochs)
                if adding:
                    state.touched.update((generation, shard) for shard in batch.shards)
                    state.acknowledged.setdefault(generation, AcknowledgedKeys(1)).bits[0] += bits
            answers.append(batch.answers)
            if adding and generation in missing.missing:
                # If the window was cleared, a key that is new in a missing string was in no other.
                portion.new = combine_answers([portion.new, batch.answers])
        if missing.missing:
            yield from self._explain_missing(state, missing)
        if reading is not None:
            self._learn(state, replies[-1][0].states[0][1], reading)
        yield from self._check_losses(state, (*looked, *added))
        return answers

    def _check_cleared(self, state: WindowState, generations: Sequence[int]) -> Steps[None]:
        """Raise if generations were rolled back, unless another client has cleared the window since."""
        if state.rolled_back.intersection(generations):
            yield from self._refresh(state)
            raise errors.rollback(self.name)

    def _check_losses(self, state: WindowState, generations: Sequence[int]) -> Steps[None]:
        """Write back what the manifest lacks; raise if one of the generations has lost keys."""
        if state.is_incomplete:
            yield from restore_record(state, self.names.manifest, self.clock)
        if state.rolled_back.intersection(generations):
            raise errors.rollback(self.name)
        if lost := [one for one in generations if one not in state.tags and state.is_lost(one)]:
            raise self._loss(lost)

    @staticmethod
    def _note_epochs(
        state: WindowState, generation: int, exchange: WireExchange, known: dict[tuple[int, int], int]
    ) -> None:
        """Compare the epochs in tags of the window with those known before the batch was sent."""
        tags = state.tags.get(generation)
        for shard, tag, short, _ in exchange.states:
            if tags is not None and not short and state.stable(tag) == tags[shard]:
                state.note_epoch(generation, shard, tag, known.get((generation, shard), 0))

    def _raise_epochs(self, state: WindowState) -> Steps[None]:
        """Raise the epochs of the strings that were written to, once in a while."""
        if not state.has_epochs or time.monotonic() - state.raised < strings.RAISED_EVERY:
            return
        state.raised = time.monotonic()
        with suppress(FullbloomError):  # the next add tries again
            for place in list(state.touched):
                state.touched.discard(place)
                generation, shard = place
                tags = state.tags.get(generation)
                if tags is not None:
                    at = self.cells.range(shard)[1]
                    epoch = yield from strings.raise_epoch(state.key(*place), at, tags[shard])
                    state.epochs[place] = max(epoch, state.epochs.get(place, 0))

    def _exchange(self, requests: list[Request]) -> Steps[list[list[WireExchange]]]:
        """Send several batches at once; raise what a server refuses."""
        replies: list[list[WireExchange]] = yield requests
        for exchange in (exchange for exchanges in replies for exchange in exchanges):
            if exchange.refusals:
                raise errors.refusal(self.name, exchange.refusals[0][1])
        return replies

    def _check_tags(self, state: WindowState, generation: int, exchanges: list[WireExchange]) -> bool:
        tags = [b""] * self.cells.shards
        for exchange in exchanges:
            for shard, tag, _, _ in exchange.states:
                tags[shard] = tag
        return state.enter(generation, tags)

    def _query_tags(self, state: WindowState, generation: int) -> Steps[None]:
        """Compare the tags of all strings of a generation with the record."""
        epochs = dict(state.epochs)
        (exchanges,) = yield from self._exchange([state.send(generation, self.cells.marks())])
        for exchange in exchanges:
            self._note_epochs(state, generation, exchange, epochs)
        if not self._check_tags(state, generation, exchanges):
            yield from self._explain_missing(state, MissingStrings([generation]))

    def _begin(self, state: WindowState, generation: int) -> Steps[None]:
        """Make sure that a generation is recorded and its strings exist."""
        while generation not in state.tags:
            if generation in state.recorded:
                yield from self._query_tags(state, generation)
                continue
            manifest = yield from self._refresh(state)
            if generation not in state.recorded:
                yield from self._create(state, generation, manifest)

    def _create(self, state: WindowState, generation: int, stored: bytes) -> Steps[None]:
        """Create the missing strings of a generation, and record it in the manifest ``stored``.

        Clients that do so at the same time find each other's strings, and one of them records the generation.
        A client that was paused in between recreates lost strings with tags that differ from the record.
        """
        before = parse_manifest(self.name, stored)
        ends = ceil(((generation + before.generations) * self.seconds + generations.GRACE) * 1000)
        new = [
            NewString(key, self.cells.range(shard)[1], state.draw_tag(shard), ends)
            for shard, key in enumerate(state.keys(generation))
        ]
        tags = yield from create_strings(new)
        for one, tag in zip(new, tags, strict=True):
            if not tag:  # the generation is over
                raise _Retry
            if not state.is_same_window(tag, one.tag):
                raise EngineNameTaken(
                    f"filter {self.name!r}: the server has a key {one.key.decode()!r} that is not one of its "
                    "strings; delete that key"
                )
        now = yield from self._now()
        # Generations that another client may still look up stay recorded.
        oldest = now.first - before.generations
        earlier = recorded_generations(self.name, before)
        recorded = {one: about for one, about in earlier.items() if one >= oldest}
        tags = [state.stable(tag) for tag in tags]
        recorded[generation] = RecordedGeneration(ends, generations.digest_tags(tags))
        after = with_record(before, recorded)
        if (yield from swap_manifest(self.names.manifest, stored, after.to_bytes())):
            state.tags[generation] = tags
            state.adopt(after, state.settled)

    def _refresh(self, state: WindowState) -> Steps[bytes]:
        """Read the manifest and return it; raise if the filter was replaced, or the window was cleared."""
        now, key = (yield from self._now()), self.names.manifest
        stored = (yield from read_value(key)) or b""
        self._learn(state, stored, now)
        if state.is_incomplete:
            yield from restore_record(state, self.names.manifest, self.clock)
            stored = (yield from read_value(key)) or b""
            self._learn(state, stored, now)
        return stored

    def _learn(self, state: WindowState, data: bytes, now: CurrentGenerations) -> None:
        """Take a manifest that was read at ``now`` or later."""
        manifest = parse_manifest(self.name, data) if data else None
        if manifest is None or manifest.id != state.manifest.id:
            raise errors.loss(self.name, "its manifest, or another filter has its name")
        if manifest.generation < state.manifest.generation:
            raise errors.rollback(self.name)
        if manifest.generation != state.manifest.generation:
            if self.state is state:
                self.state = WindowState(self.name, manifest)
            raise _Retry
        state.adopt(manifest, now.earliest)

    def _explain_missing(self, state: WindowState, missing: MissingStrings) -> Steps[None]:
        """Find out why strings are missing: they have expired, the window was cleared, or they were lost."""
        keys = [(state.key(*one), state.recorded[one[0]].ends) for one in missing.untagged]
        try:
            yield from self._refresh(state)
        except (_Retry, FilterLost):
            if keys:
                yield [Call(key, (b"UNLINK", key)) for key, _ in keys]
            raise
        if keys:
            yield [Call(key, (b"PEXPIREAT", key, ends)) for key, ends in keys]
        now = yield from self._now()
        lost = sorted({one for one in missing.missing if one >= now.first})
        if not lost:
            raise _Retry
        raise self._loss(lost)

    def _loss(self, lost: list[int]) -> Exception:
        numbers = ", ".join(map(str, lost))
        return errors.loss(self.name, f"strings of generation {numbers}, which is within the window")

    def verify(self, *, restarted: bool) -> Steps[Verification]:
        """Compare what the server has with the record, and with what it acknowledged to this client."""
        while True:
            state, exists = self.state, True
            try:
                yield from self._refresh(state)
            except FilterRolledBack:  # to before a clear
                return Verification(False, False, restarted, (), 0, 0, 0, 0, True)
            except FilterLost:
                exists = False
            except _Retry:
                continue
            try:
                return (yield from self._verify(state, exists=exists, restarted=restarted))
            except _Retry:
                continue

    def _verify(self, state: WindowState, *, exists: bool, restarted: bool) -> Steps[Verification]:
        now = yield from self._now()
        lost, checked, found, expected, bits = list[int](), 0, 0, 0, 0
        for generation in state.live(now):
            acknowledged = state.acknowledged.get(generation) or AcknowledgedKeys(1)
            hashes, least, ones, answers = acknowledged.hashes(), acknowledged.bits[0], 0, b""
            if exists:
                try:
                    ones = yield from self._count_ones(state, generation)
                    if hashes:
                        portion = _Portion(self.cells, hashes)
                        (answers,) = yield from self._query(state, portion, [generation], ())
                except FilterRolledBack:
                    answers = b""
                except FilterLost:
                    lost.append(generation)
                    ones, answers = 0, b""
            checked, found = checked + len(hashes) // _WORD, found + sum(answers)
            expected, bits = expected + least, bits + ones
            if ones >= least:
                acknowledged.bits[0] = ones
        rolled_back = bool(state.rolled_back.intersection(state.live(now)))
        ok = exists and not lost and not rolled_back and found == checked and bits >= expected
        counts = checked, checked - found, expected, bits
        return Verification(ok, not exists, restarted, tuple(lost), *counts, rolled_back)

    def _count_ones(self, state: WindowState, generation: int) -> Steps[int]:
        """Count the set bits of a generation, all strings of which must exist."""
        ones = 0
        for shard, key in enumerate(state.keys(generation)):
            ones += yield from read_number(key, b"BITCOUNT", key, 0, self.cells.range(shard)[1] - 1)
        yield from self._query_tags(state, generation)
        return ones

    def count_ones(self) -> Steps[list[int]]:
        """Count the set bits of each recorded generation, oldest first."""
        while True:
            state = self.state
            try:
                yield from self._refresh(state)
                counts = list[int]()
                for generation in state.live((yield from self._now())):
                    ones = yield from self._count_ones(state, generation)
                    counts.append(ones)
            except _Retry:
                continue
            return counts

    def fpr(self) -> Steps[float]:
        """Compute the rate of false positives at the present load."""
        absent = 1.0
        for ones in (yield from self.count_ones()):
            absent *= 1 - self.cells.fpr(ones)
        return 1 - absent

    def clear(self) -> Steps[None]:
        """Remove all keys. Clients find the new generation of the manifest when they miss a string."""
        key = self.names.manifest
        while True:
            data = yield from read_value(key)
            manifest = parse_manifest(self.name, data) if data else None
            if data is None or manifest is None or manifest.id != self.manifest.id:
                raise errors.loss(self.name, "its manifest, or another filter has its name")
            after = with_record(manifest.next_generation(), {})
            if (yield from swap_manifest(key, data, after.to_bytes())):
                yield from self._delete_strings(WindowState(self.name, manifest))
                self.state = WindowState(self.name, after)
                return

    def _delete_strings(self, state: WindowState) -> Steps[None]:
        """Delete the strings that are recorded, and those that a client may have begun."""
        now = yield from self._now()
        live = {*state.recorded, *range(now.first, now.latest + 1)}
        yield [Call(key, (b"UNLINK", key)) for one in live for key in state.keys(one)]

    def delete(self) -> Steps[bool]:
        """Delete the window of this name; True if it existed."""
        key, existed = self.names.manifest, False
        while True:
            data = yield from read_value(key)
            manifest = parse_manifest(self.name, data) if data else None
            if data is None or manifest is None or not manifest.window:
                break
            existed = True
            if (yield from swap_manifest(key, data, None)):
                yield from self._delete_strings(WindowState(self.name, manifest))
                break
        yield from self._delete_strings(self.state)
        return existed


class _Portion:
    """Hashes that are sent to several generations."""

    def __init__(self, cells: WireCells, hashes: bytes) -> None:
        """Take hashes of 8 bytes each."""
        self._cells, self.hashes = cells, hashes
        #: The batch that looks them up; its answers are those of the last exchange.
        self.lookup = cells.hashed(hashes).batch(0, PORTION)
        #: Those that were new when the window turned out to be cleared.
        self.new = bytes(len(self))

    def __len__(self) -> int:
        """Return the number of hashes."""
        return len(self.hashes) // _WORD

    def to_add(self) -> WireBatch:
        """Return a new batch that adds them."""
        return self._cells.hashed(self.hashes, adding=True).batch(0, PORTION)


class _Retry(Exception):
    """The window was cleared, or a generation has ended: the operation has to be repeated."""
