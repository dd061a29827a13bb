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
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fullbloom import _core
from fullbloom.engines.redis.protocol import (
    HASH_BYTES,
    MAX_ATTEMPTS,
    Call,
    Request,
    SendBatch,
    Steps,
    back_off,
    change_if_equal,
    contention_error,
    count_bits,
    loss_error,
    read_value,
    refusal_error,
    rollback_error,
)
from fullbloom.engines.redis.protocol.create import read_manifest, swap_manifest
from fullbloom.engines.redis.protocol.generations import (
    Clock,
    CurrentGenerations,
    MissingStrings,
    Portion,
    RecordedGeneration,
    WindowState,
    compute_end,
    compute_generation_seconds,
    create_strings,
    digest_tags,
    make_new_string,
    query_generations,
    read_record,
    restore_record,
    with_record,
)
from fullbloom.engines.redis.protocol.manifest import (
    AcknowledgedKeys,
    Manifest,
    Names,
    make_cells,
    make_shard,
    parse_manifest,
)
from fullbloom.engines.redis.protocol.plan import PORTION
from fullbloom.engines.redis.storage import strings
from fullbloom.engines.redis.storage.strings import is_collection, run_iterator
from fullbloom.engines.redis.storage.verification import Verification, combine_answers
from fullbloom.errors import (
    EngineNameTaken,
    EngineTimeout,
    FilterLost,
    FilterRolledBack,
    FullbloomError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fullbloom._core import WireExchange
    from fullbloom.engines.redis.protocol import Acks

T = TypeVar("T")

#: Retries without a pause.
_IMMEDIATE_RETRIES = 3
#: Translates 0 to 1 and 1 to 0.
_NEGATE = bytes([1, 0]) + bytes(254)


class Window:
    """The window as its strings; each method is a generator of requests."""

    def __init__(self, name: str, manifest: Manifest, secret: bytes | None) -> None:
        """Take the manifest on the server."""
        self.name, self.cells = name, make_cells(manifest, secret)
        #: Hashes keys in order, as cells in shards do not.
        self.hasher = _core.WireCells(512, 8, seed=manifest.seed, secret=secret)
        self.names = Names(name)
        self.clock = Clock(self.names.manifest)
        self.seconds = compute_generation_seconds(manifest)
        #: Replicas that must confirm what is added.
        self.acks: Acks | None = None
        self.state = WindowState(name, manifest)

    @property
    def manifest(self) -> Manifest:
        """The manifest that was read last."""
        return self.state.manifest

    def _query_now(self) -> Steps[CurrentGenerations]:
        return (yield from query_generations(self.manifest, self.clock))

    def hash_key(self, key: Any) -> bytes:
        """Return the hash of one key."""
        return self.hasher.one(key).hashes

    def run_batch(self, keys: Any, *, adding: bool, answer: bool = True) -> Steps[Any]:
        """Look up or add many keys; return the answers in the container type of the keys, if requested."""
        if not is_collection(keys):
            steps = partial(self.run_batch, adding=adding, answer=answer)
            return (yield from run_iterator(keys, PORTION, steps, answer=answer))
        batch = self.hasher.keys(keys)
        answers = yield from self.run_hashes(batch.batch(0, len(batch)).hashes, adding=adding)
        if not answer:
            return None
        batch.give(answers)
        return batch.answers(keys)

    def run_hashes(self, hashes: bytes, *, adding: bool) -> Steps[bytes]:
        """Look up or add given hashes; return a byte for each: 1 if found, or new."""
        answers, size = b"", HASH_BYTES * PORTION
        run = self._add if adding else self._look_up
        for start in range(0, len(hashes), size):
            portion = Portion(self.cells, hashes[start : start + size])
            answers += yield from self._repeat(partial(run, portion))
        return answers

    def _repeat(self, steps: Callable[[WindowState], Steps[T]]) -> Steps[T]:
        """Run steps, and repeat them when the window is cleared or a generation ends meanwhile."""
        for attempt in range(MAX_ATTEMPTS):
            yield from back_off(max(0, attempt - _IMMEDIATE_RETRIES))
            with suppress(_Retry):
                return (yield from steps(self.state))
        raise contention_error(self.name)

    def _look_up(self, portion: Portion, state: WindowState) -> Steps[bytes]:
        now = yield from self._query_now()
        known = state.list_live(now)
        reads = state.may_have_changed(now) or state.is_unread()
        answers = yield from self._query(state, portion, known, (), now if reads else None)
        if more := [one for one in state.list_live(now) if one not in known]:
            answers += yield from self._query(state, portion, more, ())
        return combine_answers([bytes(len(portion)), *answers])

    def _add(self, portion: Portion, state: WindowState) -> Steps[bytes]:
        """Add to the present generation and look up the older ones: a key is new if all of them lacked it."""
        written = set[int]()
        # A new generation begins in each further pass, so that as many of them last as long as the window.
        for _ in range(self.manifest.generations + 1):
            now = yield from self._query_now()
            present = sorted({now.earliest, now.latest} - written)
            if not present:
                return portion.new
            for generation in present:
                yield from self._begin(state, generation)
            if not written and state.may_have_changed(now):
                yield from self._refresh(state)
            older = [] if written else [one for one in state.list_live(now) if one not in present]
            reads = state.is_unread()
            answers = yield from self._query(state, portion, older, present, now if reads else None)
            for generation in present:
                state.record_keys(generation, portion.hashes, now.first)
            yield from self._raise_epochs(state)
            if not written:  # later generations contain what was just added
                found = [*answers[: len(older)], *(one.translate(_NEGATE) for one in answers[len(older) :])]
                portion.new = combine_answers([portion.new, combine_answers(found).translate(_NEGATE)])
            written.update(present)
        raise EngineTimeout(
            f"filter {self.name!r}: adding a batch takes longer than the window of {self.manifest.window} s; "
            "choose a longer window, or fewer generations"
        )

    def _query(
        self,
        state: WindowState,
        portion: Portion,
        looked: Sequence[int],
        added: Sequence[int],
        reading: CurrentGenerations | None = None,
    ) -> Steps[list[bytes]]:
        """Look up in some generations and add to others, at the same time; return a byte a hash for each.

        With ``reading``, the manifest is read along with them.
        """
        yield from self._require_cleared(state, (*looked, *added))
        unknown = [(one, self.cells.marks()) for one in looked if one not in state.tags]
        each = [(one, portion.lookup) for one in looked] + [(one, portion.to_add()) for one in added]
        epochs = {
            (one, shard): state.epochs.get((one, shard), 0) for one, batch in each for shard in batch.shards
        }
        counted = {one: keys.counted for one, keys in list(state.acknowledged.items())}
        requests: list[Request] = [
            state.make_request(one, batch, self.acks if number >= len(unknown) + len(looked) else None)
            for number, (one, batch) in enumerate((*unknown, *each))
        ]
        if reading is not None:
            key = self.names.manifest
            requests.append(SendBatch(_core.WireText(key), [make_shard(0, key)]))
        replies = yield from self._exchange(requests)
        missing = MissingStrings()
        for (generation, _), exchanges in zip(unknown, replies, strict=False):
            if not self._compare_tags(state, generation, exchanges):
                missing.missing.append(generation)
        answers = list[bytes]()
        for (generation, batch), exchanges in zip(each, replies[len(unknown) :], strict=False):
            adding = len(answers) >= len(looked)
            for exchange in exchanges:
                batch.take(exchange)
                bits = missing.record(state, generation, exchange, adding=adding)
                self._record_epochs(state, generation, exchange, epochs)
                if adding:
                    state.touched.update((generation, shard) for shard in batch.shards)
                    state.find_record(generation).add_bits(0, bits, counted.get(generation, 0))
            answers.append(batch.answers)
            if adding and generation in missing.missing:
                missing.new.append(batch.answers)
        if missing.missing:
            yield from self._explain_missing(state, missing, portion)
        if reading is not None:
            self._learn(state, replies[-1][0].states[0][1], reading)
        yield from self._raise_losses(state, (*looked, *added))
        return answers

    def _require_cleared(self, state: WindowState, generations: Sequence[int]) -> Steps[None]:
        """Raise if generations were rolled back, unless another client has cleared the window since."""
        if state.rolled_back.intersection(generations):
            yield from self._refresh(state)
            raise rollback_error(self.name)

    def _raise_losses(self, state: WindowState, generations: Sequence[int]) -> Steps[None]:
        """Write back what the manifest lacks; raise if one of the generations has lost keys."""
        if state.is_incomplete:
            yield from restore_record(state, self.names.manifest, self.clock)
        if state.rolled_back.intersection(generations):
            raise rollback_error(self.name)
        if lost := [one for one in generations if one not in state.tags and state.is_lost(one)]:
            raise self._make_loss(lost)

    @staticmethod
    def _record_epochs(
        state: WindowState, generation: int, exchange: WireExchange, known: dict[tuple[int, int], int]
    ) -> None:
        """Compare the epochs in tags of the window with those known before the batch was sent."""
        tags = state.tags.get(generation)
        for shard, tag, short, _ in exchange.states:
            if tags is not None and not short and state.strip_epoch(tag) == tags[shard]:
                state.record_epoch(generation, shard, tag, known.get((generation, shard), 0))

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
                    try:
                        epoch = yield from strings.raise_epoch(state.make_key(*place), at, tags[shard])
                    except BaseException:
                        state.touched.add(place)
                        raise
                    state.epochs[place] = max(epoch, state.epochs.get(place, 0))

    def _exchange(self, requests: list[Request]) -> Steps[list[list[WireExchange]]]:
        """Send several batches at once; raise what a server refuses."""
        replies: list[list[WireExchange]] = yield requests
        for exchange in (exchange for exchanges in replies for exchange in exchanges):
            if exchange.refusals:
                raise refusal_error(self.name, exchange.refusals[0][1])
        return replies

    def _compare_tags(self, state: WindowState, generation: int, exchanges: list[WireExchange]) -> bool:
        tags = [b""] * self.cells.shards
        for exchange in exchanges:
            for shard, tag, _, _ in exchange.states:
                tags[shard] = tag
        return state.adopt_tags(generation, tags)

    def _query_tags(self, state: WindowState, generation: int) -> Steps[None]:
        """Compare the tags of all strings of a generation with the record."""
        epochs = dict(state.epochs)
        (exchanges,) = yield from self._exchange([state.make_request(generation, self.cells.marks())])
        for exchange in exchanges:
            self._record_epochs(state, generation, exchange, epochs)
        if not self._compare_tags(state, generation, exchanges):
            yield from self._explain_missing(state, MissingStrings([generation]))

    def _begin(self, state: WindowState, generation: int) -> Steps[None]:
        """Make sure that a generation is recorded and its strings exist."""
        for attempt in range(MAX_ATTEMPTS):
            if generation in state.tags:
                return
            yield from back_off(max(0, attempt - _IMMEDIATE_RETRIES))
            if generation in state.recorded:
                yield from self._query_tags(state, generation)
                continue
            stored = yield from self._refresh(state)
            if generation not in state.recorded:
                yield from self._create(state, generation, stored)
        raise contention_error(self.name)

    def _create(self, state: WindowState, generation: int, stored: bytes) -> Steps[None]:
        """Create the missing strings of a generation, and record it in the manifest ``stored``.

        Clients that do so at the same time find each other's strings, and one of them records the generation.
        A client that was paused in between recreates lost strings with tags that differ from the record.
        """
        before = parse_manifest(self.name, stored)
        ends = compute_end(before, generation)
        new = [
            make_new_string(key, self.cells.range(shard)[1], state.draw_tag(shard))
            for shard, key in enumerate(state.list_keys(generation))
        ]
        tags = yield from create_strings(new, ends)
        for one, tag in zip(new, tags, strict=True):
            if not tag:  # the generation is over
                raise _Retry
            if not state.is_same_window(tag, one.tag):
                raise EngineNameTaken(
                    f"filter {self.name!r}: the server has a key {one.key.decode()!r} that is not one of its "
                    "strings; delete that key"
                )
        now = yield from self._query_now()
        # Generations that another client may still look up stay recorded.
        oldest = now.first - before.generations
        earlier = read_record(self.name, before)
        recorded = {one: about for one, about in earlier.items() if one >= oldest}
        tags = [state.strip_epoch(tag) for tag in tags]
        recorded[generation] = RecordedGeneration(ends, digest_tags(tags))
        after = with_record(before, recorded)
        if (yield from swap_manifest(self.name, stored, after)):
            state.adopt(after, state.settled)
            state.tags[generation] = tags

    def _refresh(self, state: WindowState) -> Steps[bytes]:
        """Read the manifest and return it; raise if the filter was replaced, or the window was cleared."""
        now, key = (yield from self._query_now()), self.names.manifest
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
            raise loss_error(self.name, "its manifest, or another filter has its name")
        if manifest.generation < state.manifest.generation:
            raise rollback_error(self.name)
        if manifest.generation != state.manifest.generation:
            if self.state is state:
                self.state = WindowState(self.name, manifest)
            raise _Retry
        state.adopt(manifest, now.earliest)

    def _explain_missing(
        self, state: WindowState, missing: MissingStrings, portion: Portion | None = None
    ) -> Steps[None]:
        """Find out why strings are missing: they have expired, the window was cleared, or they were lost."""
        keys = [(state.make_key(*one), compute_end(state.manifest, one[0])) for one in missing.untagged]
        try:
            yield from self._refresh(state)
        except (_Retry, FilterLost):
            if portion is not None:  # it was cleared: a key that is new in a missing string was in no other
                portion.new = combine_answers([portion.new, *missing.new])
            if keys:
                yield [Call(key, (b"UNLINK", key)) for key, _ in keys]
            raise
        if keys:
            yield [Call(key, (b"PEXPIREAT", key, ends)) for key, ends in keys]
        now = yield from self._query_now()
        if lost := sorted({one for one in missing.missing if one >= now.first}):
            raise self._make_loss(lost)
        raise _Retry

    def _make_loss(self, lost: list[int]) -> Exception:
        numbers = ", ".join(map(str, lost))
        return loss_error(self.name, f"strings of generation {numbers}, which is within the window")

    def verify(self, *, restarted: bool) -> Steps[Verification]:
        """Compare what the server has with the record, and with what it acknowledged to this client."""
        return self._repeat(partial(self._verify, restarted=restarted))

    def _verify(self, state: WindowState, *, restarted: bool) -> Steps[Verification]:
        exists = True
        try:
            yield from self._refresh(state)
        except FilterRolledBack:  # to before a clear
            return Verification(False, False, restarted, (), 0, 0, 0, 0, True)
        except FilterLost:
            exists = False
        now = yield from self._query_now()
        lost, checked, found, expected, bits = list[int](), 0, 0, 0, 0
        for generation in state.list_live(now):
            acknowledged = state.acknowledged.get(generation) or AcknowledgedKeys(1)
            hashes, least, ones, answers = acknowledged.hashes(), acknowledged.bits[0], 0, b""
            if exists:
                try:
                    ones = yield from self._count_ones(state, generation)
                    if hashes:
                        portion = Portion(self.cells, hashes)
                        (answers,) = yield from self._query(state, portion, [generation], ())
                except FilterRolledBack:
                    answers = b""
                except FilterLost:
                    lost.append(generation)
                    ones, answers = 0, b""
            checked, found = checked + len(hashes) // HASH_BYTES, found + sum(answers)
            expected, bits = expected + least, bits + ones
            acknowledged.raise_bits([ones])
        rolled_back = bool(state.rolled_back.intersection(state.list_live(now)))
        ok = exists and not lost and not rolled_back and found == checked and bits >= expected
        counts = checked, checked - found, expected, bits
        return Verification(ok, not exists, restarted, tuple(lost), *counts, rolled_back)

    def _count_ones(self, state: WindowState, generation: int) -> Steps[int]:
        """Count the set bits of a generation, all strings of which must exist."""
        ones = 0
        for shard, key in enumerate(state.list_keys(generation)):
            ones += yield from count_bits(key, self.cells.range(shard)[1])
        yield from self._query_tags(state, generation)
        return ones

    def fpr(self) -> Steps[float]:
        """Compute the rate of false positives at the present load."""
        return self._repeat(self._compute_fpr)

    def _compute_fpr(self, state: WindowState) -> Steps[float]:
        yield from self._refresh(state)
        true_negatives = 1.0
        for generation in state.list_live((yield from self._query_now())):
            true_negatives *= 1 - self.cells.fpr((yield from self._count_ones(state, generation)))
        return 1 - true_negatives

    def clear(self) -> Steps[None]:
        """Remove all keys. Clients find the new generation of the manifest when they miss a string."""
        for attempt in range(MAX_ATTEMPTS):
            yield from back_off(attempt)
            stored = yield from read_manifest(self.name)
            if stored is None or stored[1].id != self.manifest.id:
                raise loss_error(self.name, "its manifest, or another filter has its name")
            data, manifest = stored
            after = with_record(manifest.with_next_generation(), {})
            if (yield from swap_manifest(self.name, data, after)):
                yield from self._delete_strings(WindowState(self.name, manifest))
                self.state = WindowState(self.name, after)
                return
        raise contention_error(self.name)

    def _delete_strings(self, state: WindowState) -> Steps[None]:
        """Delete the strings that are recorded, and those that a client may have begun."""
        now = yield from self._query_now()
        generations = {*state.recorded, *range(now.first, now.latest + 1)}
        yield [Call(key, (b"UNLINK", key)) for one in generations for key in state.list_keys(one)]

    def delete(self) -> Steps[bool]:
        """Delete the window of this name; True if it existed."""
        key, deleted = self.names.manifest, list[Manifest]()
        for attempt in range(MAX_ATTEMPTS):
            yield from back_off(attempt)
            stored = yield from read_manifest(self.name)
            if stored is None or not stored[1].window:
                break
            data, manifest = stored
            deleted = [manifest]
            if (yield from change_if_equal(key, data, b"DEL", key)):
                break
        else:
            raise contention_error(self.name)
        for state in (*(WindowState(self.name, one) for one in deleted), self.state):
            yield from self._delete_strings(state)
        return bool(deleted)


class _Retry(Exception):
    """The window was cleared, or a generation has ended: the operation has to be repeated."""
