"""Guarantee: a pre-check finds rows that the driver committed, of which SQLAlchemy has no event."""

from __future__ import annotations

import gc
import weakref

import pytest
import sqlalchemy as sa
from engines.tables import Base, Exact, Other, User, exists, insert, names

from fullbloom.engines.sqlalchemy import PreCheck
from fullbloom.engines.sqlalchemy.pending import Transaction


@pytest.fixture
def sqlite(tmp_path):
    """An engine of a SQLite file with empty tables."""
    created = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    Base.metadata.create_all(created)
    yield created
    created.dispose()


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
def test_a_savepoint_that_sqlite_committed_outlives_the_rollback_of_what_follows(sqlite, write):
    check = watch(sqlite)
    with sqlite.connect() as connection:
        with connection.begin_nested():
            connection.execute(insert("ada"))
        write(connection)
        connection.rollback()
    assert names(sqlite) == {"ada"}
    assert exists(check, sqlite, "ada") == [True]
    check.close()


def test_a_savepoint_in_text_that_sqlite_committed_is_found(sqlite):
    check = watch(sqlite)
    with sqlite.connect() as connection:
        connection.exec_driver_sql("savepoint first")
        connection.execute(insert("ada"))
        connection.exec_driver_sql("release first")
        connection.execute(sa.insert(Other.__table__).values(user_name="x"))
        connection.rollback()
    assert names(sqlite) == {"ada"}
    assert exists(check, sqlite, "ada") == [True]
    check.close()


def test_a_savepoint_that_sqlite_committed_outlives_its_connection(sqlite):
    check = watch(sqlite)
    connection = sqlite.connect()
    with connection.begin_nested():
        connection.execute(insert("ada"))
    del connection
    gc.collect()
    assert names(sqlite) == {"ada"}
    assert exists(check, sqlite, "ada") == [True]
    check.close()


def test_a_transaction_that_begins_while_the_watch_begins_is_seen_whole_or_not_at_all(engine, monkeypatch):
    opened, real = [], sa.event.listen

    def listen(target, name, *arguments):
        real(target, name, *arguments)
        if name == "begin":
            opened.append(engine.connect())
            opened[0].execute(insert("ada"))

    monkeypatch.setattr(sa.event, "listen", listen)
    check = watch(engine)
    opened[0].commit()
    opened[0].close()
    assert exists(check, engine, "ada") == [True]
    check.close()


def test_transactions_are_listed_while_other_threads_begin_some(sqlite):
    check = watch(sqlite)
    (observer,) = check._observers
    with sqlite.connect() as one, sqlite.connect() as other:
        one.execute(insert("ada"))

        class Growing(dict):
            def items(self):
                for item in super().items():
                    self[weakref.ref(other)] = Transaction()
                    yield item

        observer._transactions.data = Growing(observer._transactions.data)
        assert observer.list_xids() == set()
    check.close()
