"""The registry's rows of filters in Redis: a change reaches its own filter, and no count is lost."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fullbloom.service.redis.filters import RedisFilters
from fullbloom.service.redis.handles import Counters
from fullbloom.service.registry import Registry


@pytest.fixture
def rows(tmp_path):
    registry = Registry(f"sqlite:///{tmp_path}/r.db")
    yield registry.shared_filters
    registry.close()


def create(rows, name):
    """Create the row of a filter, whose cells would be at a place of its own."""
    row = {"name": name, "kind": "bloom", "backend": "redis", "place": f"place of {name}"}
    number = rows.claim(row)
    return rows.finish(number, row["place"], {"num_bits": 512, "num_hashes": 8})


def test_no_change_reaches_a_filter_that_has_the_id_of_a_dropped_one(rows):
    first = create(rows, "first")
    rows.drop(first["id"], first["place"])
    second = create(rows, "second")
    assert second["id"] == first["id"]  # SQLite reuses it
    assert not rows.expire(first["id"], first["place"], 1)
    rows.add_counts(first["id"], first["place"], {"hits": 5})
    assert not rows.hide(first["id"], first["place"])
    rows.drop(first["id"], first["place"])
    assert rows.find("second") == second
    assert rows.retire(1 << 50) == []
    assert rows.expire(second["id"], second["place"], 1)
    rows.add_counts(second["id"], second["place"], {"hits": 5})
    assert rows.find("second") == {**second, "expires": 1, "hits": 5}


def test_counts_that_the_registry_could_not_take_stay_pending(rows):
    row, counters = create(rows, "one"), Counters()
    failures = [OSError("the disk is full")]

    def add_counts(*arguments):
        if failures:
            raise failures.pop()
        rows.add_counts(*arguments)

    open_filters = [SimpleNamespace(row=row, counters=counters)]
    handles = SimpleNamespace(list_open=lambda: open_filters, find=rows.find)
    node = SimpleNamespace(_handles=handles, _rows=SimpleNamespace(add_counts=add_counts))
    counters.count_lookups(10, 3)
    with pytest.raises(OSError, match="full"):
        RedisFilters.flush(node)
    assert counters.pending()["hits"] == 3
    counters.count_adds(4, 2)
    for _ in range(2):
        RedisFilters.flush(node)
    stored = rows.find("one")
    assert [stored[name] for name in Counters.NAMES] == [3, 7, 4, 2]
    assert not any(counters.pending().values())
