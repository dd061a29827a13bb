"""Tables made at once are those that migrations make step by step."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, inspect, text

from bloomery.service.registry import Registry
from bloomery.service.registry.migrations import LATEST
from bloomery.service.registry.upgrade import upgrade


def described(engine):
    """What the database says of its tables, in an order of its own."""
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


def test_tables_are_those_of_the_migrations(tmp_path):
    stepwise, registry = migrated(f"sqlite:///{tmp_path}/a.db"), Registry(f"sqlite:///{tmp_path}/b.db")
    assert described(stepwise) == described(registry.engine)
    stepwise.dispose()
    registry.close()


@pytest.mark.parametrize("make", [migrated, lambda url: Registry(url).engine], ids=["stepwise", "at once"])
def test_a_registry_of_either_making_opens(tmp_path, make):
    url = f"sqlite:///{tmp_path}/r.db"
    make(url).dispose()
    registry = Registry(url)
    registry.nodes.enter("n", "http://x", "", 1)
    with registry.engine.begin() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == LATEST
        upgrade(connection)  # nothing to do
    assert [node["id"] for node in registry.nodes.listed()] == ["n"]
    registry.close()
