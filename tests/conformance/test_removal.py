"""`remove` raises, `discard` answers, `*_many` of both: in every class that takes keys out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import for_each
from support import Variant, every_variant

import fullbloom
from fullbloom.protocols import Removable

# Those that take out what was added, and those that can only take out some of it.
REMOVING = [*every_variant("remove"), *every_variant("remove", "numbers"), *every_variant("delete")]
LONG = 5000


def fill(variant: Variant, count: int = 100) -> Any:
    instance = variant.make(10 * count, 1e-4)
    instance.update(range(count))
    return instance


@for_each("variant", REMOVING)
def test_the_class_is_removable(variant: Variant) -> None:
    assert isinstance(variant.make(10), Removable)


@for_each("variant", REMOVING)
def test_remove_raises_and_discard_returns_a_bool(variant: Variant) -> None:
    instance = fill(variant)
    twin = instance.copy()
    assert instance.remove(7) is None
    assert twin.discard(7) is True
    assert instance.to_bytes() == twin.to_bytes()
    assert 7 not in instance
    before = instance.to_bytes()
    with pytest.raises(KeyError) as caught:
        instance.remove(7)
    assert caught.value.args == (7,)
    assert instance.discard(7) is False
    assert instance.to_bytes() == before


@for_each("variant", REMOVING)
def test_remove_many_returns_none_and_removes_all_keys(variant: Variant) -> None:
    for keys in (list(range(10)), np.arange(10), range(10), iter(range(10))):
        instance = fill(variant)
        twin = instance.copy()
        gone = twin.discard_many(list(range(10)))
        if not all(gone):
            continue  # a key of these shares all its cells, which the class does not take out
        assert instance.remove_many(keys) is None
        assert instance.to_bytes() == twin.to_bytes()


@for_each("variant", REMOVING)
def test_remove_many_stops_at_the_first_absent_key(variant: Variant) -> None:
    instance = fill(variant)
    twin = instance.copy()
    order = [1, 2, 901, 3]
    assert 901 not in instance
    with pytest.raises(KeyError, match="key number 2 of the batch"):
        instance.remove_many(order)
    twin.remove(1)
    twin.remove(2)
    assert instance.to_bytes() == twin.to_bytes()
    with pytest.raises(KeyError, match="key number 0 of the batch"):
        instance.remove_many(np.array([901, 3]))
    assert instance.to_bytes() == twin.to_bytes()


@for_each("variant", REMOVING)
def test_the_index_of_the_failing_key_counts_the_whole_batch(variant: Variant) -> None:
    """Batches are hashed 32,768 objects at a time and changed 1,024 at a time."""
    instance = fill(variant, LONG)
    gone = instance.copy().discard_many(range(LONG))
    keys = [key for key in range(LONG) if gone[key]]
    assert len(keys) > LONG / 2
    absent = next(key for key in range(2 * LONG, 3 * LONG) if key not in instance)
    keys.append(absent)
    for batch in (keys, np.array(keys), iter(keys)):
        with pytest.raises(KeyError, match=f"key number {len(keys) - 1} of the batch"):
            instance.copy().remove_many(batch)


@pytest.mark.parametrize("variant", every_variant("delete"))
def test_a_key_that_cannot_be_removed_adds_a_note(variant: Variant) -> None:
    """A key added twice has met itself everywhere."""
    instance = variant.make(100)
    instance.update(["twice", "twice"])
    before = instance.to_bytes()
    with pytest.raises(KeyError) as caught:
        instance.remove("twice")
    assert "stays" in caught.value.__notes__[0]
    assert instance.discard("twice") is False
    with pytest.raises(KeyError) as caught:
        instance.remove("never there")
    assert not hasattr(caught.value, "__notes__")
    assert instance.to_bytes() == before


@pytest.mark.parametrize("variant", every_variant("delete"))
def test_a_removed_key_that_cannot_be_added_again_is_refused(variant: Variant) -> None:
    """A composite whose second filter takes out only some keys never takes a denied key for added."""
    from fullbloom.compose import WithRemovals

    issued = WithRemovals(fullbloom.BloomFilter(100), variant.make(100))
    issued.update(["ada", "grace"])
    issued.remove_many(["ada"])
    assert issued.add("ada")
    assert "ada" in issued
    issued.remove("ada")
    issued.removed.add("ada")
    for add in (issued.add, lambda key: issued.update([key])):
        with pytest.raises(fullbloom.RemovedKeyError):
            add("ada")
        assert "ada" not in issued
