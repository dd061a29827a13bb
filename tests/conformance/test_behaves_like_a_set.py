"""A state machine drives every registry row beside a plain ``set``: whatever happens, no key is lost."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support import SCALE, Variant, bits_of, every_variant

import bloomery

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


class AgainstASet(RuleBasedStateMachine):
    """Holds one filter, the hashes it must contain, and a directory for files."""

    variant: Variant

    @initialize(capacity=st.sampled_from([1, 3, 64]), seed=st.integers(0, 2**64 - 1))
    def start(self, capacity: int, seed: int) -> None:
        self.seed = seed
        self.capacity = capacity
        self.filter = self.variant.make(capacity, 0.1, seed=seed)
        self.model: set[int] = set()
        self.keys: list[Any] = []
        self.directory = tempfile.TemporaryDirectory()

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.directory.cleanup()

    def hashes(self, keys: list[Any]) -> list[int]:
        return [bloomery.hash_key(key, seed=self.seed) for key in keys]

    def remember(self, keys: list[Any]) -> None:
        self.model.update(self.hashes(keys))
        self.keys += keys

    @rule(key=KEYS)
    def add(self, key: Any) -> None:
        before = key in self.filter
        new = self.filter.add(key)
        assert new == (not before), "add() answers True exactly for keys that were not contained"
        self.remember([key])
        assert key in self.filter
        assert not self.filter.add(key)

    @rule(keys=BATCHES)
    def update(self, keys: list[Any]) -> None:
        assert self.filter.update(keys) is None
        self.remember(keys)

    @rule(keys=BATCHES)
    def add_many(self, keys: list[Any]) -> None:
        twin = self.filter.copy()
        one_by_one = [twin.add(key) for key in keys]
        assert self.filter.add_many(keys) == one_by_one
        assert self.filter.to_bytes() == twin.to_bytes()
        self.remember(keys)

    @rule(count=st.integers(1, 5))
    def add_known_keys_again(self, count: int) -> None:
        known = self.keys[-count:]
        twin = self.filter.copy()
        assert [twin.add(key) for key in known] == [False] * len(known)
        assert self.filter.add_many(known) == [False] * len(known)
        assert self.filter.to_bytes() == twin.to_bytes()

    @rule(keys=BATCHES)
    def contains_many(self, keys: list[Any]) -> None:
        found = self.filter.contains_many(keys)
        assert found == [key in self.filter for key in keys]
        for value, answer in zip(self.hashes(keys), found, strict=True):
            assert answer or value not in self.model

    @rule(keys=BATCHES)
    def unite(self, keys: list[Any]) -> None:
        if not self.variant.can("merge"):
            return
        other = self.variant.make(self.capacity, 0.1, seed=self.seed)
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
        before = self.filter.to_bytes()
        path = Path(self.directory.name) / "filter.bloom"
        if how == "file":
            self.filter.save(path)
            reopened = bloomery.open(path, verify="full")
            assert type(reopened) is type(self.filter)
            self.filter = reopened.copy()
        else:
            self.filter = {
                "copy": lambda f: f.copy(),
                "copy.copy": copy.copy,
                "deepcopy": copy.deepcopy,
                "pickle": lambda f: pickle.loads(pickle.dumps(f)),
                "bytes": lambda f: bloomery.loads(f.to_bytes()),
            }[how](self.filter)
        assert self.filter.to_bytes() == before

    @rule()
    def copies_are_independent(self) -> None:
        before = self.filter.to_bytes()
        twin = self.filter.copy()
        twin.update(range(50))
        assert self.filter.to_bytes() == before

    @rule()
    def clear(self) -> None:
        self.filter.clear()
        self.model.clear()
        self.keys.clear()
        assert self.filter.num_added == 0
        assert self.filter.fill == 0.0

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "filter"):
            return
        assert all(self.filter.contains_many(self.keys))
        assert all(key in self.filter for key in self.keys[-5:])


@pytest.mark.filterwarnings("ignore::bloomery.CapacityWarning")
@pytest.mark.parametrize("variant", every_variant("add"))
def test_against_a_set(variant: Variant) -> None:
    machine = type("Machine", (AgainstASet,), {"variant": variant})
    test: Any = machine.TestCase
    test.settings = settings(
        max_examples=25 * SCALE,
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    test().runTest()
