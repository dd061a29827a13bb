"""Guarantee: a pre-check finds rows that the driver committed, of which SQLAlchemy has no event."""

from __future__ import annotations

import gc

import pytest
import sqlalchemy as sa
from engines.tables import Base, Exact, Other, User, names

from fullbloom.engines.sqlalchemy import PreCheck

TABLE = User.__table__


def insert(name):
    return sa.insert(TABLE).values(user_name=name, shop=1)


def exists(check, engine, *wanted):
    with engine.connect() as connection:
        return [check.exists(connection, one) for one in wanted]


def watch(engine):
    check = PreCheck(Exact(), User.name)
    check.load(engine)
    return check


def test_a_commit_by_the_driver_is_not_undone_by_a_rollback(engine):
    check = watch(engine)
    with engine.connect() as connection:
        connection.execute(insert("ada"))
        connection.connection.commit()
        connection.rollback()
    assert exists(check, engine, "ada") == [True]
    check.close()


NEXT = {
    "an insert into another table": lambda connection: connection.execute(
        sa.insert(Other.__table__).values(user_name="x")
    ),
    "text": lambda connection: connection.exec_driver_sql("insert into others (user_name) values ('x')"),
}


@pytest.mark.parametrize("write", NEXT.values(), ids=NEXT)
def test_a_commit_by_the_driver_is_not_undone_by_the_rollback_of_the_next_transaction(engine, write):
    check = watch(engine)
    with engine.connect() as connection:
        connection.execute(insert("ada"))
        connection.connection.commit()
        write(connection)
        connection.rollback()
    assert exists(check, engine, "ada") == [True]
    check.close()


@pytest.mark.parametrize("write", NEXT.values(), ids=NEXT)
def test_a_savepoint_that_sqlite_committed_outlives_the_rollback_of_what_follows(tmp_path, write):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    Base.metadata.create_all(engine)
    check = watch(engine)
    with engine.connect() as connection:
        with connection.begin_nested():
            connection.execute(insert("ada"))
        write(connection)
        connection.rollback()
    assert names(engine) == {"ada"}
    assert exists(check, engine, "ada") == [True]
    check.close()
    engine.dispose()


def test_a_savepoint_in_text_that_sqlite_committed_is_found(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    Base.metadata.create_all(engine)
    check = watch(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("savepoint first")
        connection.execute(insert("ada"))
        connection.exec_driver_sql("release first")
        connection.execute(sa.insert(Other.__table__).values(user_name="x"))
        connection.rollback()
    assert names(engine) == {"ada"}
    assert exists(check, engine, "ada") == [True]
    check.close()
    engine.dispose()


def test_a_savepoint_that_sqlite_committed_outlives_its_connection(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    Base.metadata.create_all(engine)
    check = watch(engine)
    connection = engine.connect()
    with connection.begin_nested():
        connection.execute(insert("ada"))
    del connection
    gc.collect()
    assert names(engine) == {"ada"}
    assert exists(check, engine, "ada") == [True]
    check.close()
    engine.dispose()
