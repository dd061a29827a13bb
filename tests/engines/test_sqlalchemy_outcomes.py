"""Guarantee: whatever becomes of a transaction, a pre-check never rules out a row that was committed."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading

import pytest
import sqlalchemy as sa
from engines.tables import Base, Exact, User, exists, insert, names
from sqlalchemy import event, orm

from fullbloom.engines.sqlalchemy import PreCheck
from fullbloom.engines.sqlalchemy.pending import PendingKeys

TABLE = User.__table__


@pytest.fixture
def postgresql(database):
    """An engine of PostgreSQL with empty tables."""
    created = sa.create_engine(database)
    Base.metadata.drop_all(created)
    Base.metadata.create_all(created)
    yield created
    created.dispose()


def watch(engine, *columns):
    known = Exact()
    check = PreCheck(known, *(columns or (User.name,)))
    check.load(engine)
    return check, known


def end_backend(engine, connection):
    """End the server's process of a connection, and wait for its end."""
    (number,) = connection.connection.driver_connection.execute("select pg_backend_pid()").fetchone()
    with engine.begin() as other:
        other.execute(sa.text(f"select pg_terminate_backend({number}, 60000)"))


EARLIER = {
    "select": lambda: sa.insert(TABLE).from_select(
        ["id", "user_name", "shop"], sa.select(sa.literal(900), sa.literal("x"), sa.literal(1))
    ),
    "text": lambda: sa.text("insert into users (id, user_name, shop) values (900, 'x', 1)"),
}


@pytest.mark.parametrize("earlier", EARLIER.values(), ids=EARLIER)
def test_a_write_that_cannot_be_read_is_remembered_after_one_that_can(engine, earlier):
    check, _ = watch(engine, User.id)
    with engine.begin() as connection:
        connection.execute(earlier())
        connection.execute(insert("readable"))  # its key is read from the result
    assert exists(check, engine, 900) == [True]
    assert not check.stats().is_complete
    check.close()


@pytest.mark.parametrize("is_flushed_before", [True, False])
def test_a_transaction_that_is_older_than_the_load_is_not_forgotten(
    engine, known, session, is_flushed_before
):
    session.execute(sa.select(1))
    if is_flushed_before:
        session.add(User(name="ada"))
        session.flush()
    check = PreCheck(known, User.name)
    check.load(engine)
    if not is_flushed_before:
        session.add(User(name="ada"))
    session.commit()
    assert exists(check, engine, "ada") == [True]
    assert not check.stats().is_complete
    check.load(engine)
    assert check.stats().is_complete
    check.close()


def test_a_savepoint_that_is_older_than_the_load_is_not_forgotten(engine, known):
    check = PreCheck(known, User.name)
    with engine.connect() as connection:
        nested = connection.begin_nested()
        connection.execute(insert("ada"))
        check.load(engine)
        nested.commit()
        connection.commit()
    assert exists(check, engine, "ada") == [True]
    check.close()


def test_an_older_transaction_that_is_rolled_back_changes_nothing(engine, known, session):
    session.add(User(name="ada"))
    session.flush()
    check = PreCheck(known, User.name)
    check.load(engine)
    session.rollback()
    assert check.stats().is_complete
    check.close()


class Interrupted(Exact):
    """A filter that runs a function during its first update, as another thread may."""

    call = None

    def update(self, *batches):
        call, self.call = self.call, None
        if call is not None:
            call()
        super().update(*batches)


def test_a_check_that_is_closed_while_it_loads_stays_closed(engine, session):
    session.add(User(name="before"))
    session.commit()
    known = Interrupted()
    check = PreCheck(known, User.name)
    known.call = check.close
    check.load(engine)
    session.add(User(name="ada"))
    session.commit()
    assert exists(check, engine, "ada") == [True]
    assert not check.stats().is_complete
    check.close()


def test_a_check_that_is_closed_between_its_watch_and_its_load_stays_closed(engine, monkeypatch):
    known = Exact()
    check = PreCheck(known, User.name)
    watch_engine = check.watch

    def watch_and_close(target):
        watch_engine(target)
        check.close()

    monkeypatch.setattr(check, "watch", watch_and_close)
    check.load(engine)
    with engine.begin() as connection:
        connection.execute(insert("ada"))
    assert exists(check, engine, "ada") == [True]


def test_loads_at_the_same_time_watch_an_engine_once(engine, monkeypatch):
    check = PreCheck(Exact(), User.name)
    barrier, listen = threading.Barrier(2, timeout=10), event.listen
    threads = [threading.Thread(target=check.load, args=(engine,)) for _ in range(2)]

    def wait_and_listen(*arguments):
        if arguments[1] == "begin":
            barrier.wait()
        listen(*arguments)

    def meet(*arguments):
        try:
            wait_and_listen(*arguments)
        except threading.BrokenBarrierError:  # the other thread does not register
            listen(*arguments)

    barrier = threading.Barrier(2, timeout=0.5)
    monkeypatch.setattr(event, "listen", meet)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({name for _, name, _ in check._listeners}) == len(check._listeners)
    with engine.begin() as connection:
        connection.execute(insert("ada"))
        assert check.stats().pending == 1
    check.close()
    assert check.stats().pending == 0


def test_a_commit_between_the_two_questions_of_a_lookup_is_seen(engine, session):
    check, _ = watch(engine)
    session.execute(sa.text("insert into users (user_name, shop) values ('x', 1)"))

    class Late(PendingKeys):
        """Pending keys whose transaction ends just before the lookup asks for them."""

        def __contains__(self, key):
            session.commit()
            session.close()
            return super().__contains__(key)

    check.pending.__class__ = Late
    assert exists(check, engine, "x") == [True]
    check.pending.__class__ = PendingKeys
    check.close()


def test_a_statement_that_fails_after_a_commit_does_not_undo_it(engine):
    check, known = watch(engine)
    with engine.connect() as connection:
        connection.execute(insert("ada"))
        connection.commit()
        with pytest.raises(sa.exc.StatementError):
            connection.execute(sa.text("select :missing"))
        assert check.exists(connection, "ada")
    assert known == names(engine) == {"ada"}
    check.close()


AUTOCOMMIT = {
    "option of the connection": ({}, {"isolation_level": "AUTOCOMMIT"}),
    "option of the engine": ({"isolation_level": "AUTOCOMMIT"}, {}),
    "option of the driver": ({"connect_args": {"autocommit": True}}, {}),
}


@pytest.mark.parametrize("way", AUTOCOMMIT.values(), ids=AUTOCOMMIT)
@pytest.mark.parametrize("end", ["rollback", "disconnect", "nothing"])
def test_what_autocommit_wrote_stays(postgresql, database, way, end):
    options, chosen = way
    engine = sa.create_engine(database, **options)
    check, known = watch(engine)
    with engine.connect().execution_options(**chosen) as connection:
        connection.execute(insert("ada"))
        if end == "rollback":
            connection.rollback()
        elif end == "disconnect":
            end_backend(postgresql, connection)
            with pytest.raises(sa.exc.OperationalError):
                connection.execute(insert("alan"))
            connection.rollback()
    assert "ada" in names(engine)
    assert exists(check, engine, "ada") == [True]
    assert "ada" in known
    assert check.stats().pending == 0
    check.close()
    engine.dispose()


def test_a_connection_that_commits_each_statement_keeps_no_keys_back(postgresql):
    check, known = watch(postgresql)
    with postgresql.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(insert("ada"))
        assert known == {"ada"}
        assert check.stats().pending == 0
    check.close()


def test_sqlite_without_transactions_keeps_its_rows(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db", connect_args={"isolation_level": None})
    Base.metadata.create_all(engine)
    check, _ = watch(engine)
    connection = engine.connect()
    connection.execute(insert("ada"))
    del connection
    gc.collect()
    assert exists(check, engine, "ada") == [True]
    check.close()
    engine.dispose()


@pytest.mark.parametrize("command", ["commit", "COMMIT AND CHAIN", "end", "select 1; commit"])
def test_a_commit_in_text_is_not_undone_by_a_rollback(postgresql, command):
    check, _ = watch(postgresql)
    with postgresql.connect() as connection:
        connection.execute(insert("ada"))
        connection.exec_driver_sql(command)
        connection.execute(sa.select(1))
        connection.rollback()
    assert exists(check, postgresql, "ada") == [True]
    check.close()


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_prepared_transaction_that_is_recovered_elsewhere_is_found(postgresql, is_readable):
    check, _ = watch(postgresql)
    name = sa.literal("ada") if is_readable else sa.func.lower("ADA")
    statement = insert("ada") if is_readable else sa.insert(TABLE).values(user_name=name, shop=1)
    with postgresql.connect() as connection:
        transaction = connection.begin_twophase()
        connection.execute(statement)
        transaction.prepare()
        end_backend(postgresql, connection)
        with pytest.raises(sa.exc.OperationalError):
            transaction.commit()
    check.load(postgresql)
    assert not check.stats().is_complete
    with postgresql.connect() as connection:
        (xid,) = connection.recover_twophase()
        connection.commit_prepared(xid, recover=True)
    assert names(postgresql) == {"ada"}
    assert exists(check, postgresql, "ada") == [True]
    check.load(postgresql)
    assert check.stats().is_complete
    assert exists(check, postgresql, "ada") == [True]
    check.close()


def test_a_prepared_transaction_whose_end_will_be_seen_leaves_a_load_complete(postgresql):
    check, _ = watch(postgresql)
    with postgresql.connect() as connection:
        transaction = connection.begin_twophase()
        connection.execute(insert("ada"))
        transaction.prepare()
        check.load(postgresql)
        assert check.stats().is_complete
        transaction.commit()
    assert exists(check, postgresql, "ada", "alan") == [True, False]
    assert check.stats().queries_saved == 1
    check.close()


def test_a_rollback_of_a_prepared_transaction_that_fails_may_be_followed_by_its_commit(postgresql):
    check, _ = watch(postgresql)
    with postgresql.connect() as connection:
        transaction = connection.begin_twophase()
        connection.execute(insert("ada"))
        transaction.prepare()
        end_backend(postgresql, connection)
        with pytest.raises(sa.exc.OperationalError):
            transaction.rollback()
    with postgresql.connect() as connection:
        (xid,) = connection.recover_twophase()
        connection.commit_prepared(xid, recover=True)
    assert exists(check, postgresql, "ada") == [True]
    check.close()


def test_a_commit_that_sqlite_refuses_can_be_repeated(tmp_path):
    path = tmp_path / "rows.db"
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})
    Base.metadata.create_all(engine)
    check, _ = watch(engine)
    reader = sqlite3.connect(path)
    with engine.connect() as connection:
        connection.execute(insert("ada"))
        reader.execute("begin")
        reader.execute("select * from users").fetchall()
        with pytest.raises(sa.exc.OperationalError, match="locked"):
            connection.commit()
        connection.rollback()  # SQLAlchemy sends none, because its transaction is over
        reader.close()
        connection.execute(insert("alan"))
        connection.commit()
    assert exists(check, engine, "ada", "alan") == [True, True]
    assert names(engine) == {"ada", "alan"}
    check.close()
    engine.dispose()


@pytest.mark.parametrize("style", ["commit", None])
def test_a_pool_that_does_not_roll_back_may_commit(tmp_path, style):
    engine = sa.create_engine(
        f"sqlite:///{tmp_path}/rows.db", pool_reset_on_return=style, poolclass=sa.QueuePool
    )
    Base.metadata.create_all(engine)
    check, _ = watch(engine)
    connection = engine.connect()
    connection.execute(insert("ada"))
    del connection
    gc.collect()
    with engine.connect() as connection:
        connection.execute(insert("alan"))
        connection.commit()
    assert exists(check, engine, "ada", "alan") == [True, True]
    check.close()
    engine.dispose()


def test_an_engine_that_is_disposed_is_still_watched(engine):
    check, _ = watch(engine)
    engine.dispose()
    with engine.begin() as connection:
        connection.execute(insert("ada"))
    assert exists(check, engine, "ada") == [True]
    check.close()
    with engine.begin() as connection:
        connection.execute(insert("alan"))
    assert exists(check, engine, "alan") == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_asks_the_database_until_it_loads(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db", poolclass=sa.NullPool)
    Base.metadata.create_all(engine)
    check, _ = watch(engine)
    ready, done = os.pipe(), os.pipe()
    with check._lock, check.pending._lock:  # as another thread may hold them
        child = os.fork()
        if not child:
            try:
                os.read(ready[0], 1)
                found = [*exists(check, engine, "ada"), check.stats().is_complete]
                check.load(engine)
                found += [*exists(check, engine, "ada", "nobody"), check.stats().is_complete]
                os.write(done[1], repr(found).encode())
            finally:
                os._exit(0)
    with engine.begin() as connection:
        connection.execute(insert("ada"))
    os.write(ready[1], b".")
    os.close(done[1])
    with os.fdopen(done[0], "rb") as results:
        assert results.read() == b"[True, False, True, False, True]"
    os.waitpid(child, 0)
    assert check.stats().is_complete
    check.close()


def test_a_check_that_is_closed_and_loaded_again_has_no_keys_of_before(engine, session):
    check, _ = watch(engine)
    session.execute(sa.text("insert into users (user_name, shop) values ('x', 1)"))
    check.close()
    session.rollback()
    check.load(engine)
    assert exists(check, engine, "absent") == [False]
    assert check.stats().queries_saved == 1
    check.close()


@pytest.mark.long
def test_large_inserts_are_read_once(tmp_path):
    """Also where each part of them is committed by itself."""
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db", isolation_level="AUTOCOMMIT")
    # Else 5,000 syncs of the file: 4 s of the processor took 136 s on a busy disk.
    sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
    Base.metadata.create_all(engine)
    check, known = watch(engine)
    reads = []
    read_key = check.read_key
    check.read_key = lambda values: reads.append(values) or read_key(values)
    with orm.Session(engine) as session:
        session.add_all([User(name=f"user {number}") for number in range(5000)])
        session.commit()
    assert len(known) == len(reads) == 5000
    check.close()
    engine.dispose()
