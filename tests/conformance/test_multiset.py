"""A state machine drives every registry row beside an exact multiset, by whatever the row can do.

After every step: no key that was added is missed (unless the structure forgets by design), no count is below
the truth, and what takes out a key that is certainly absent changes no byte.
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support import SCALE, Variant, bits_of, every_variant, most_counted, window_of

import fullbloom

KEYS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.binary(max_size=6),
    st.integers(),
    st.integers(-3, 3),
    st.booleans(),
    st.floats(),
    st.tuples(st.integers(0, 3), st.text("ab", max_size=2)),
)
BATCHES = st.lists(KEYS, max_size=12)
#: A table of fingerprints has room for a few copies of one key only, however empty it is elsewhere.
COPIES = 3
#: Merging by maximum: the registry's text of such a row has one of these words.
OF_SETS = re.compile(r"\b(or|max|maximum|union|join|united)\b", re.IGNORECASE)


def when(*needs: str) -> Any:
    """Run a rule only for rows with these capabilities."""
    return precondition(lambda machine: all(machine.variant.can(need) for need in needs))


class AgainstACounter(RuleBasedStateMachine):
    """Holds one filter, how often each key's hash must be in it, and a directory for files."""

    variant: Variant

    @initialize(
        capacity=st.sampled_from([1, 2, 10, 64, 300]),
        fpr=st.sampled_from([0.1, 0.01]),
        seed=st.integers(0, 2**64 - 1),
    )
    def start(self, capacity: int, fpr: float, seed: int) -> None:
        self.options = {"capacity": capacity, "fpr": fpr, "seed": seed}
        self.filter = self.variant.make(**self.options)
        self.truth: Counter[int] = Counter()
        self.key_of: dict[int, Any] = {}
        self.latest: list[int] = []
        self.fresh = 10**6
        self.directory = tempfile.TemporaryDirectory()

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.directory.cleanup()

    def hash(self, key: Any) -> int:
        return fullbloom.hash_key(key, seed=self.options["seed"])

    def remember(self, keys: list[Any]) -> None:
        for key in keys:
            value = self.hash(key)
            self.truth[value] += 1
            self.key_of[value] = key
            self.latest.append(value)

    def forget(self, key: Any) -> None:
        value = self.hash(key)
        self.truth[value] -= 1
        self.truth += Counter()  # drops what is not there any more
        self.latest = [other for other in self.latest if other != value]

    def present(self) -> list[Any]:
        return [self.key_of[value] for value in self.truth]

    def choose(self, number: int) -> Any:
        """One of the keys that are there."""
        keys = self.present()
        return keys[number % len(keys)]

    def may_be_full_for(self, key: Any) -> bool:
        return self.truth.total() >= self.filter.capacity or self.truth[self.hash(key)] >= COPIES

    def one_by_one(self, instance: Any, keys: list[Any]) -> tuple[list[bool], bool]:
        """Add in order; the answers, and whether the filter was full before the end."""
        answers: list[bool] = []
        for key in keys:
            before = key in instance
            try:
                answers.append(instance.add(key))
            except fullbloom.FilterFull:
                return answers, True
            assert answers[-1] == (not before), "add() answers True exactly for keys that were not contained"
            assert key in instance, "a key is found right after it was added"
        return answers, False

    def add_batch(self, keys: list[Any]) -> None:
        """add_many and update leave the bytes, and give the answers, of adding one by one."""
        twin, third = self.filter.copy(), self.filter.copy()
        answers, full = self.one_by_one(twin, keys)
        try:
            assert self.filter.add_many(keys) == answers
            assert third.update(keys) is None
            assert not full
        except fullbloom.FilterFull:
            assert full
            with pytest.raises(fullbloom.FilterFull):
                third.update(keys[len(answers) :] if third == self.filter else keys)
        assert self.filter == twin == third
        # A batch refused midway records the types of all its keys: a warning less, never one too many.
        assert full or self.filter.to_bytes() == twin.to_bytes() == third.to_bytes()
        self.remember(keys[: len(answers)])
        assert not full or self.may_be_full_for(keys[len(answers)]), "full before its capacity"

    @rule(key=KEYS)
    @when("keys")
    def add(self, key: Any) -> None:
        answers, full = self.one_by_one(self.filter, [key])
        assert not full or self.may_be_full_for(key), "full before its capacity"
        self.remember([key][: len(answers)])

    @rule(key=KEYS)
    @when("pairs")
    def add_pair(self, key: Any) -> None:
        self.variant.add(self.filter, key)
        self.remember([key])
        assert key in self.filter

    @rule(keys=BATCHES)
    @when("keys")
    def add_many(self, keys: list[Any]) -> None:
        self.add_batch(keys)

    @rule(count=st.integers(1, 5))
    @when("keys")
    def add_known_keys_again(self, count: int) -> None:
        self.add_batch(self.present()[-count:])

    @rule(share=st.sampled_from([0.5, 0.9, 1.0, 1.2]))
    @when("keys")
    def crowd(self, share: float) -> None:
        """Fill up to a share of the capacity with keys never seen."""
        missing = min(int(share * self.filter.capacity) - self.truth.total(), 400)
        if missing > 0:
            self.fresh += missing
            self.add_batch(list(range(self.fresh - missing, self.fresh)))

    @rule(keys=BATCHES)
    def contains_many(self, keys: list[Any]) -> None:
        keys = keys + self.present()[-3:]
        found = self.filter.contains_many(keys)
        assert found == [key in self.filter for key in keys]
        hashes = [self.hash(key) for key in keys]
        assert self.filter.contains_hashed(hashes) == found

    @rule(keys=BATCHES)
    @when("count")
    def count(self, keys: list[Any]) -> None:
        keys = keys + self.present()[-3:]
        counts = self.filter.count_many(keys)
        assert counts == [self.filter.count(key) for key in keys]
        for found, counted in zip(self.filter.contains_many(keys), counts, strict=True):
            assert found == (counted > 0), "a key counts 0 exactly when it is certainly absent"
            assert type(counted) is int

    @rule(keys=BATCHES)
    @when("remove")
    def take_out_what_is_not_there(self, keys: list[Any]) -> None:
        absent = [key for key in keys if key not in self.filter]
        before = self.filter.to_bytes()
        for key in absent:
            assert self.filter.discard(key) is False
            with pytest.raises(KeyError):
                self.filter.remove(key)
        assert self.filter.discard_many(absent) == [False] * len(absent)
        assert self.filter.to_bytes() == before

    @rule(number=st.integers(0, 10**6), how=st.sampled_from(["remove", "discard"]))
    @precondition(lambda machine: machine.variant.can("remove") and machine.truth)
    def take_out(self, number: int, how: str) -> None:
        key = self.choose(number)
        added = self.filter.num_added
        answer = getattr(self.filter, how)(key)
        assert answer is (None if how == "remove" else True)
        assert self.filter.num_added <= added
        self.forget(key)

    @rule(numbers=st.lists(st.integers(0, 10**6), max_size=8), keys=BATCHES)
    @when("remove")
    def take_out_many(self, numbers: list[int], keys: list[Any]) -> None:
        """Present keys, each once, among keys that are certainly absent at the start and stay so."""
        known = {self.hash(key): key for key in map(self.choose, numbers)} if self.truth else {}
        order = [*known.values(), *(key for key in keys if key not in self.filter)]
        order = order[::2] + order[1::2]
        twin = self.filter.copy()
        expected = [twin.discard(key) for key in order]
        assert self.filter.discard_many(order) == expected
        assert self.filter.to_bytes() == twin.to_bytes()
        for key, gone in zip(order, expected, strict=True):
            assert gone == (self.hash(key) in known), "keys that are there are discarded, others are not"
            if gone:
                self.forget(key)

    @rule(number=st.integers(0, 10**6))
    @precondition(lambda machine: machine.variant.can("delete") and machine.truth)
    def delete(self, number: int) -> None:
        """A structure that can take out only some keys answers whether it did."""
        key = self.choose(number)
        before = self.filter.to_bytes()
        twin = self.filter.copy()
        gone = self.filter.discard(key)
        assert type(gone) is bool
        if gone:
            assert twin.remove(key) is None
            self.forget(key)
        else:
            with pytest.raises(KeyError):
                twin.remove(key)
            assert self.filter.to_bytes() == before
        assert twin.to_bytes() == self.filter.to_bytes()

    @rule(keys=BATCHES)
    @when("delete")
    def delete_many(self, keys: list[Any]) -> None:
        absent = [key for key in keys if key not in self.filter]
        before = self.filter.to_bytes()
        assert self.filter.discard_many(absent) == [False] * len(absent)
        assert self.filter.to_bytes() == before
        known, twin = self.present()[:4], self.filter.copy()
        expected = [twin.discard(key) for key in known]
        assert self.filter.discard_many(known) == expected
        assert self.filter.to_bytes() == twin.to_bytes()
        for key, gone in zip(known, expected, strict=True):
            if gone:
                self.forget(key)

    @rule(keys=BATCHES)
    @when("merge")
    def merge(self, keys: list[Any]) -> None:
        other = self.variant.make(**self.options)
        held: list[Any] = []
        for key in keys:
            try:
                self.variant.add(other, key)
            except fullbloom.FilterFull:
                break
            held.append(key)
        theirs = other.to_bytes()
        self.take_in(other, held)
        assert other.to_bytes() == theirs

    @rule()
    @when("merge")
    def merge_with_itself(self) -> None:
        if self.truth.total() < 2000:  # it doubles what is there
            self.take_in(self.filter, [self.key_of[value] for value in self.truth.elements()])

    def take_in(self, other: Any, held: list[Any]) -> None:
        """Merge a filter that holds these keys: all of it, or FilterFull and no change."""
        before = self.filter.to_bytes()
        copies = Counter(map(self.hash, held)) + self.truth
        try:
            assert self.filter.merge(other) is None
        except fullbloom.FilterFull:
            assert copies.total() > self.filter.capacity or max(copies.values()) > COPIES
            assert self.filter.to_bytes() == before, "a merge that is refused changes nothing"
            return
        if OF_SETS.search(self.variant.row["merging"]):
            more = Counter(map(self.hash, held)) - self.truth
            key_of = {self.hash(key): key for key in held}
            held = [key_of[value] for value in more.elements()]
        self.remember(held)
        if not self.variant.can("keeps"):
            self.latest.clear()  # the registry says what a merged window holds

    @rule(keys=BATCHES)
    @when("union")
    def unite(self, keys: list[Any]) -> None:
        other = self.variant.make(**self.options)
        other.update(keys)
        together = self.filter.copy()
        together.update(keys)
        united = self.filter | other
        assert bits_of(united) == bits_of(together)
        assert self.filter <= united
        assert other <= united
        self.filter |= other
        assert self.filter == united
        self.remember(keys)

    @rule(how=st.sampled_from(["copy", "copy.copy", "deepcopy", "pickle", "bytes", "file"]))
    def round_trip(self, how: str) -> None:
        before, original = self.filter.to_bytes(), self.filter
        path = Path(self.directory.name) / "filter.bloom"
        if how == "file":
            self.filter.save(path)
            reopened = fullbloom.open(path, verify="full")
            assert type(reopened) is type(self.filter)
            assert reopened == original
            assert reopened.contains_many(self.present()) == original.contains_many(self.present())
            self.filter = reopened.copy()
        else:
            self.filter = {
                "copy": lambda f: f.copy(),
                "copy.copy": copy.copy,
                "deepcopy": copy.deepcopy,
                "pickle": lambda f: pickle.loads(pickle.dumps(f)),
                "bytes": lambda f: fullbloom.loads(f.to_bytes()),
            }[how](self.filter)
        assert self.filter == original
        assert self.filter.to_bytes() == before
        assert self.filter.num_added == original.num_added

    @rule()
    def copies_are_independent(self) -> None:
        before, twin = self.filter.to_bytes(), self.filter.copy()
        with contextlib.suppress(fullbloom.FilterFull):
            self.variant.add(twin, "new to one of them")
        twin.clear()
        assert self.filter.to_bytes() == before

    @rule()
    def clear(self) -> None:
        self.filter.clear()
        self.truth.clear()
        self.key_of.clear()
        self.latest.clear()
        assert self.filter.num_added == 0
        assert self.filter.fill == 0.0

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "filter"):
            return
        if self.variant.can("keeps"):
            keys = self.present()
        else:
            window = self.latest[-window_of(self.filter) :]
            keys = [self.key_of[value] for value in dict.fromkeys(window)]
        assert all(self.filter.contains_many(keys)), "a key was lost"
        assert all(key in self.filter for key in keys[-5:])
        if self.variant.can("count") and self.variant.can("keeps"):
            most, counts = most_counted(self.filter), self.filter.count_many(keys)
            for key, count in zip(keys, counts, strict=True):
                assert count >= min(self.truth[self.hash(key)], most), "a count is below the truth"

    @invariant()
    def what_was_said_of_a_key_is_an_upper_bound(self) -> None:
        if not hasattr(self, "filter") or not self.variant.can("pairs") or not self.variant.can("keeps"):
            return
        one, many = ("label", "label_many") if self.variant.can("label") else ("get", "get_many")
        keys = self.present()[-5:]
        answers = [getattr(self.filter, one)(key) for key in keys]
        assert list(getattr(self.filter, many)(keys)) == answers
        for key, answer in zip(keys, answers, strict=True):
            assert answer >= self.variant.companion(key)


def machine_for(variant: Variant) -> Any:
    """The machine of one row, as a runnable test."""
    test: Any = type("Machine", (AgainstACounter,), {"variant": variant}).TestCase
    test.settings = settings(
        max_examples=16 * SCALE,
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    return test()


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("variant", every_variant("add"))
def test_every_structure_behaves_as_a_multiset(variant: Variant) -> None:
    machine_for(variant).runTest()
