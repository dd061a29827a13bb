"""Guarantee: a pre-check answers as the table does, whatever transactions do, and saves queries."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest
import sqlalchemy as sa
from engines.tables import Base, Exact, User, names
from sqlalchemy import event, orm

from fullbloom import BloomFilter
from fullbloom.engines.sqlalchemy import PreCheck


def test_absent_keys_cost_no_query(engine, check, session):
    session.add(User(name="ada"))
    session.commit()
    statements = []
    event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    assert not any(check.exists(session, f"absent {number}") for number in range(100))
    assert statements == []
    assert check.exists(session, "ada")
    assert len(statements) == 1
    stats = check.stats()
    assert (stats.lookups, stats.queries_saved, stats.queries, stats.false_positives) == (101, 100, 1, 0)
    assert (stats.fallbacks, stats.failures, stats.pending, stats.is_complete) == (0, 0, 0, True)


def test_a_false_positive_is_a_query_and_is_counted(check, known, session):
    known.add("nobody")
    assert not check.exists(session, "nobody")
    assert check.stats().false_positives == 1


def test_existing_rows_are_loaded_in_batches(engine, session):
    session.add_all([User(name=f"user {number}") for number in range(250)] + [User(name=None)])
    session.commit()
    known = BloomFilter(1000, fpr=1e-6)
    check = PreCheck(known, User.name)
    assert check.exists(session, "user 3")  # by the database: nothing is loaded
    assert check.stats().fallbacks == 1
    assert check.load(engine, batch=100) == 250
    assert known.num_added == 250
    assert all(check.exists(session, f"user {number}") for number in range(250))


def test_a_load_that_fails_leaves_the_answers_to_the_database(engine, known, session):
    session.add(User(name="ada"))
    session.commit()
    check = PreCheck(known, User.name)
    known.is_failing = True
    with pytest.raises(ConnectionError):
        check.load(engine)
    known.is_failing = False
    assert check.exists(session, "ada")
    assert not check.stats().is_complete


def test_keys_are_added_after_the_commit_and_not_before(engine, check, known, session):
    session.add(User(name="ada"))
    session.flush()
    assert not known
    assert check.stats().pending == 1
    assert check.exists(session, "ada")  # the session sees its own row
    with orm.Session(engine) as other:
        assert not check.exists(other, "ada")
    assert check.stats().fallbacks == 2
    session.commit()
    assert known == {"ada"}
    assert check.stats().pending == 0


def test_a_row_that_is_not_flushed_is_found_as_a_query_would_find_it(check, session):
    session.add(User(name="ada"))
    assert check.exists(session, "ada")
    with session.no_autoflush:
        session.add(User(name="grace"))
        assert not check.exists(session, "grace")


@pytest.mark.parametrize("end", ["rollback", "close"])
def test_a_rolled_back_transaction_adds_nothing(check, known, session, end):
    session.add(User(name="ada"))
    session.flush()
    getattr(session, end)()
    assert not known
    assert check.stats().pending == 0
    assert not check.exists(session, "ada")


def test_a_statement_that_fails_adds_nothing(check, known, session):
    session.add(User(name="ada"))
    session.commit()
    session.add_all([User(name="grace"), User(name="ada")])
    with pytest.raises(sa.exc.IntegrityError):
        session.commit()
    session.rollback()
    assert known == {"ada"}
    assert check.stats().pending == 0


@pytest.mark.usefixtures("check")
def test_savepoints_add_what_they_release(engine, known):
    with orm.Session(engine) as session:
        session.add(User(name="outer"))
        session.flush()
        with session.begin_nested():
            session.add(User(name="released"))
            with session.begin_nested():
                session.add(User(name="innermost"))
        with pytest.raises(RuntimeError), session.begin_nested():
            session.add(User(name="undone"))
            session.flush()
            with session.begin_nested():
                session.add(User(name="released in vain"))
            raise RuntimeError
        assert not known
        session.commit()
    assert known == {"outer", "released", "innermost"} == names(engine)


@pytest.mark.usefixtures("check")
def test_a_released_savepoint_goes_with_its_transaction(engine, known):
    with orm.Session(engine) as session:
        session.add(User(name="outer"))
        session.flush()
        with session.begin_nested():
            session.add(User(name="released"))
        session.rollback()
    assert not known
    assert not names(engine)


def test_a_savepoint_that_sqlite_commits_by_itself_is_found(engine, check, known):
    # The driver begins no transaction for a savepoint, so releasing the first one commits it in SQLite.
    with orm.Session(engine) as session:
        with session.begin_nested():
            session.add(User(name="first"))
        session.add(User(name="second"))
        session.flush()
        session.rollback()
        assert {name for name in ("first", "second") if check.exists(session, name)} == names(engine)
    assert known == names(engine)


def test_a_filter_that_fails_is_not_asked_and_catches_up(check, known, session):
    known.is_failing = True
    session.add(User(name="ada"))
    session.commit()
    known.is_failing = False
    assert not known
    assert check.exists(session, "ada")  # the commit stands, and the key is pending
    known.is_failing = True
    assert check.exists(session, "ada")
    assert not check.exists(session, "alan")
    known.is_failing = False
    session.add(User(name="grace"))
    session.commit()
    assert known == {"ada", "grace"}
    stats = check.stats()
    assert (stats.failures, stats.pending, stats.is_complete) == (2, 0, True)


def test_autocommit_adds_what_a_rollback_cannot_undo(engine, check, known):
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.insert(User.__table__).values(user_name="ada"))
        connection.rollback()
        assert check.exists(connection, "ada")
    assert known == names(engine) == {"ada"}


def test_a_commit_that_fails_adds_nothing(database):
    engine = sa.create_engine(database)
    metadata = sa.MetaData()
    table = sa.Table("deferred", metadata, sa.Column("name", sa.String))
    metadata.drop_all(engine)
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(
            sa.text("alter table deferred add constraint once unique (name) deferrable initially deferred")
        )
    known = Exact()
    check = PreCheck(known, table.c.name)
    check.load(engine)
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.insert(table), [{"name": "ada"}, {"name": "ada"}])
    assert not known
    assert check.stats().pending == 0
    with engine.begin() as connection:
        connection.execute(sa.insert(table), [{"name": "ada"}])
    assert known == {"ada"}
    check.close()
    engine.dispose()


def test_a_session_inside_an_outer_transaction_adds_nothing_until_that_commits(engine, check, known):
    with engine.connect() as connection, connection.begin() as outer:
        with orm.Session(bind=connection, join_transaction_mode="create_savepoint") as session:
            session.add(User(name="ada"))
            session.commit()
        if engine.dialect.name == "postgresql":
            assert not known
        outer.rollback()
    # The driver of SQLite begins no transaction for a savepoint, so its release is a commit.
    assert known == names(engine) == ({"ada"} if engine.dialect.name == "sqlite" else set())
    assert check.stats().pending == 0


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_two_phase_transactions_are_read(database, end):
    engine = sa.create_engine(database)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    known = Exact()
    check = PreCheck(known, User.name)
    check.load(engine)
    with engine.connect() as connection:
        transaction = connection.begin_twophase()
        connection.execute(sa.insert(User.__table__).values(user_name="ada", shop=1))
        transaction.prepare()
        getattr(transaction, end)()
    assert known == names(engine) == ({"ada"} if end == "commit" else set())
    check.close()
    engine.dispose()


def test_a_lost_connection_adds_nothing(database):
    engine = sa.create_engine(database)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    known = Exact()
    check = PreCheck(known, User.name)
    check.load(engine)
    with engine.connect() as connection:
        connection.execute(sa.insert(User.__table__).values(user_name="ada", shop=1))
        (number,) = connection.execute(sa.text("select pg_backend_pid()")).one()
        with engine.begin() as other:
            other.execute(sa.text(f"select pg_terminate_backend({number}, 60000)"))  # and waits for its end
        with pytest.raises(sa.exc.OperationalError):
            connection.execute(sa.insert(User.__table__).values(user_name="alan", shop=1))
        connection.rollback()
    assert not known
    assert check.stats().pending == 0
    check.close()
    engine.dispose()


def test_an_asynchronous_session_is_checked(database):
    pytest.importorskip("greenlet", reason="asyncio with SQLAlchemy needs greenlet: sqlalchemy[asyncio]")
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    engine = create_async_engine(database)

    async def run():
        known = Exact()
        check = PreCheck(known, User.name)
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.drop_all)
            await connection.run_sync(Base.metadata.create_all)
        async with engine.connect() as connection:
            assert await connection.run_sync(lambda inner: check.load(inner.engine)) == 0
        async with AsyncSession(engine) as session:
            session.add(User(name="ada"))
            assert await session.run_sync(check.exists, "ada")
            await session.commit()
            assert known == {"ada"}
            assert await session.run_sync(check.exists, "ada")
            assert not await session.run_sync(check.exists, "alan")
        assert check.stats().queries_saved == 1
        await engine.dispose()

    asyncio.run(run())


def test_no_committed_row_is_ever_missed_while_threads_write(engine, check):
    committed, problems, stop = [], [], threading.Event()

    def write(number):
        random_ = random.Random(number)
        for count in range(60):
            name = f"{number}:{count}"
            with orm.Session(engine) as session:
                session.add(User(name=name))
                if random_.random() < 0.3:
                    session.rollback()
                else:
                    session.commit()
                    committed.append(name)

    def read():
        with orm.Session(engine) as session:
            while not stop.is_set():
                problems.extend(name for name in committed[-20:] if not check.exists(session, name))
                session.rollback()

    writers = [
        threading.Thread(target=write, args=(n,)) for n in range(1 if "sqlite" in str(engine.url) else 3)
    ]
    reader = threading.Thread(target=read)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert problems == []
    assert check.stats().pending == 0
    with orm.Session(engine) as session:
        assert all(check.exists(session, name) for name in committed)
