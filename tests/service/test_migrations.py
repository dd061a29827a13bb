"""Tables made at once are those that migrations make step by step."""

from __future__ import annotations

import os
import stat

import pytest
from sqlalchemy import create_engine, inspect, text

from fullbloom.service.registry import Registry
from fullbloom.service.registry.migrations import LATEST
from fullbloom.service.registry.upgrade import upgrade


def described(engine):
    """The description of the tables by the database, in a fixed order."""
    about = inspect(engine)
    return {
        table: {
            "columns": [{**column, "type": str(column["type"])} for column in about.get_columns(table)],
            "key": about.get_pk_constraint(table)["constrained_columns"],
            "foreign": about.get_foreign_keys(table),
            "unique": sorted(str(one["column_names"]) for one in about.get_unique_constraints(table)),
            "indexes": sorted(map(str, about.get_indexes(table))),
        }
        for table in about.get_table_names()
    }


def migrated(url):
    engine = create_engine(url)
    with engine.begin() as connection:
        upgrade(connection)
    return engine


def test_created_tables_equal_migrated_tables(tmp_path):
    stepwise, registry = migrated(f"sqlite:///{tmp_path}/a.db"), Registry(f"sqlite:///{tmp_path}/b.db")
    assert described(stepwise) == described(registry.engine)
    stepwise.dispose()
    registry.close()


@pytest.mark.parametrize("make", [migrated, lambda url: Registry(url).engine], ids=["stepwise", "at once"])
def test_created_and_migrated_registries_open(tmp_path, make):
    url = f"sqlite:///{tmp_path}/r.db"
    make(url).dispose()
    registry = Registry(url)
    registry.nodes.register("n", "http://x", "", 1)
    with registry.engine.begin() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == LATEST
        upgrade(connection)  # nothing to do
    assert [node["id"] for node in registry.nodes.list_all()] == ["n"]
    registry.close()


def test_migrations_keep_the_rows_of_the_first_version(tmp_path):
    """A filter of a node that ran the release before filters in Redis."""
    url = f"sqlite:///{tmp_path}/r.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        upgrade(connection, "0001")
        connection.execute(
            text("INSERT INTO nodes (id, http, resp, started, seen, epoch) VALUES ('n', 'h', '', 1, 1, 1)")
        )
        columns = "id, name, node, number, kind, expected_items, fpr, seed, keyed, strict, options, created"
        row = "7, 'old', 'n', 3, 'bloom', 10, 0.1, '5', 0, 0, '{}', 1"
        connection.execute(text(f"INSERT INTO filters ({columns}) VALUES ({row})"))
        snapshot = "filter_id, sampled_at, fpr_estimate, bytes, hits, misses, adds, new, removed"
        connection.execute(text(f"INSERT INTO snapshots ({snapshot}) VALUES (7, 5, 0.1, 1, 2, 3, 4, 5, 6)"))
    engine.dispose()
    registry = Registry(url)
    assert registry.filters.load("n") == {3: (7, "old")}
    assert [one["adds"] for one in registry.snapshots.load("old", since=0, until=9, most=9)] == [4]
    assert registry.shared_filters.list_all() == []
    assert registry.shared_filters.find("old") is None
    # Names are one's own, whoever has the filter; what is dropped takes its statistics along.
    assert registry.shared_filters.claim({"name": "old", "kind": "bloom", "backend": "redis"}) is None
    row = registry.shared_filters.claim({"name": "new", "kind": "bloom", "backend": "redis", "place": "p"})
    registry.shared_filters.finish(row, "p", {})
    assert not registry.filters.claim("new", "n", "bloom")
    assert registry.shared_filters.find("new")["place"] == "p"
    registry.filters.drop("n", [3])
    assert registry.snapshots.load("old", since=0, until=9, most=9) == []
    registry.close()


def test_a_registry_file_is_private_to_its_owner(tmp_path):
    """Also if ``fullbloom token create`` creates it with the usual mask, because it may hold secrets."""
    before = os.umask(0o022)
    try:
        registry = Registry(f"sqlite:///{tmp_path}/r.db")
        registry.nodes.register("n", "http://x", "", 1)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        registry.close()
    finally:
        os.umask(before)
    assert "r.db-wal" in modes
    assert set(modes.values()) == {0o600}
