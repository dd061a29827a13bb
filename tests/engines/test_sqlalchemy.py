"""Guarantee: a pre-check answers as the table does, whatever transactions do, and saves queries."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid

import pytest
import sqlalchemy as sa
from sqlalchemy import event, orm
from sqlalchemy.dialects import postgresql, sqlite

from fullbloom import BloomFilter, KeyTypeError, ParameterError, ParameterTypeError
from fullbloom.engines.sqlalchemy import PreCheck


class Base(orm.DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str | None] = orm.mapped_column("user_name", sa.String(50), unique=True)
    shop: orm.Mapped[int] = orm.mapped_column(default=0)


class Other(Base):
    __tablename__ = "others"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    user_name: orm.Mapped[str]


@pytest.fixture(params=["postgresql", "sqlite"])
def engine(request, tmp_path):
    """An engine with empty tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'rows.db'}"
    else:
        url = request.getfixturevalue("database")
    made = sa.create_engine(url)
    Base.metadata.drop_all(made)
    Base.metadata.create_all(made)
    yield made
    made.dispose()


class Exact(set):
    """A filter without false positives, so that its keys can be compared."""

    def __init__(self, *keys):
        super().__init__(keys)
        self.is_failing = False

    def update(self, *batches):
        if self.is_failing:
            raise ConnectionError("the filter is unavailable")
        super().update(*batches)

    def __contains__(self, key):
        if self.is_failing:
            raise ConnectionError("the filter is unavailable")
        return super().__contains__(key)


@pytest.fixture
def known():
    return Exact()


@pytest.fixture
def check(engine, known):
    made = PreCheck(known, User.name)
    made.load(engine)
    yield made
    made.close()


@pytest.fixture
def session(engine):
    with orm.Session(engine) as made:
        yield made


def names(engine):
    with engine.connect() as connection:
        return {name for (name,) in connection.execute(sa.select(User.__table__.c.user_name)) if name}


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


WRITES = {
    "values": lambda: sa.insert(User).values(name="a"),
    "several values": lambda: sa.insert(User).values([{"name": "a"}, {"name": "b"}]),
    "table": lambda: sa.insert(User.__table__).values(user_name="a"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_keys_of_insert_statements_are_read(engine, check, known, session, write):
    session.execute(write())
    session.commit()
    assert known == names(engine)
    assert known
    assert check.stats().is_complete


@pytest.mark.usefixtures("check")
def test_bulk_inserts_are_read(engine, known, session):
    many = [{"name": f"user {number}"} for number in range(3000)]
    session.execute(sa.insert(User), many)
    session.add_all([User(name=f"other {number}") for number in range(3000)])
    session.commit()
    assert len(known) == 6000
    assert known == names(engine)


def test_core_transactions_are_read(engine, check, known):
    with engine.begin() as connection:
        connection.execute(sa.insert(User.__table__), [{"user_name": "a"}, {"user_name": "b"}])
    assert known == {"a", "b"}
    with engine.connect() as connection:
        connection.execute(sa.insert(User.__table__), [{"user_name": "c"}])
        connection.commit()
        assert check.exists(connection, "c")
        connection.execute(sa.insert(User.__table__), [{"user_name": "d"}])
        assert "c" in known
        connection.rollback()
    assert known == {"a", "b", "c"}


def test_a_changed_key_is_added(check, known, session):
    session.add_all([User(name="ada"), User(name="alan")])
    session.commit()
    session.query(User).filter_by(name="ada").one().name = "grace"
    session.commit()
    session.execute(sa.update(User).where(User.name == "alan").values(name="barbara"))
    session.execute(sa.update(User).where(User.name == "barbara").values(shop=5))
    session.commit()
    assert known == {"ada", "alan", "grace", "barbara"}
    assert check.stats().is_complete


UNREADABLE = {
    "select": lambda: sa.insert(User).from_select(["user_name", "shop"], sa.select(sa.literal("x"), 1)),
    "expression": lambda: sa.insert(User).values(name=sa.func.lower("X")),
    "expression among values": lambda: sa.insert(User).values([{"name": "y"}, {"name": sa.func.lower("X")}]),
    "text": lambda: sa.text("insert into users (user_name, shop) values ('x', 1)"),
    "update": lambda: sa.update(User).values(name=sa.func.lower("X")),
}


@pytest.mark.parametrize("write", UNREADABLE.values(), ids=UNREADABLE)
def test_a_write_that_cannot_be_read_sends_lookups_to_the_database_until_a_load(
    engine, check, session, write
):
    session.add(User(name="before"))
    session.commit()
    session.execute(write())
    session.rollback()
    assert check.stats().is_complete
    session.execute(write())
    assert check.exists(session, "x")
    session.commit()
    assert not check.stats().is_complete
    assert check.exists(session, "x")
    check.load(engine)
    assert check.stats().is_complete
    assert check.exists(session, "x")
    queries = check.stats().queries
    assert not check.exists(session, "absent")
    assert check.stats().queries == queries


@pytest.mark.parametrize("dialect", [postgresql, sqlite])
def test_an_upsert_that_may_change_the_key_is_not_trusted(engine, check, session, dialect):
    if dialect.__name__.rpartition(".")[2] != engine.dialect.name:
        return
    session.add(User(id=1, name="a"))
    session.commit()
    insert = dialect.insert(User).values(id=1, name="b", shop=0)
    session.execute(insert.on_conflict_do_update(index_elements=["id"], set_={"shop": 1}))
    session.commit()
    assert check.stats().is_complete
    session.execute(insert.on_conflict_do_update(index_elements=["id"], set_={"user_name": "z"}))
    session.commit()
    assert check.exists(session, "z")
    assert not check.stats().is_complete


def test_other_tables_and_queries_are_not_counted(check, known, session):
    session.add(Other(user_name="ada"))
    session.execute(sa.text("select * from users"))
    session.execute(sa.text("insert into others (user_name) values ('alan')"))
    session.execute(sa.delete(User))
    session.commit()
    assert not known
    assert check.stats().is_complete


def test_keys_that_the_database_generates_are_read(engine, session):
    known = Exact()
    check = PreCheck(known, User.id)
    check.load(engine)
    session.add_all([User(name="a"), User(name="b")])
    session.commit()
    session.execute(sa.insert(User).values(name="c"))
    session.commit()
    ids = {one for (one,) in session.execute(sa.select(User.id))}
    assert known == ids
    assert len(ids) == 3
    assert check.stats().is_complete
    check.close()


def test_several_columns_are_a_tuple(engine, session):
    known = Exact()
    check = PreCheck(known, User.shop, User.name)
    check.load(engine)
    session.add_all([User(shop=1, name="a"), User(shop=2, name=None)])
    session.execute(sa.insert(User).values([{"shop": 3, "name": "b"}, {"shop": 4, "name": "c"}]))
    session.commit()
    assert known == {(1, "a"), (3, "b"), (4, "c")}
    assert check.exists(session, (1, "a"))
    assert not check.exists(session, (2, "a"))
    with pytest.raises(KeyTypeError, match="tuple of 2 values"):
        check.exists(session, "a")
    check.close()


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
            other.execute(sa.text(f"select pg_terminate_backend({number})"))
        time.sleep(0.2)
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


def test_a_key_of_another_type_or_null_is_refused(check, session):
    with pytest.raises(KeyTypeError, match="of the type str, got int"):
        check.exists(session, 5)
    with pytest.raises(KeyTypeError, match="got NoneType"):
        check.exists(session, None)


def test_a_value_that_the_database_converts_is_not_trusted(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'rows.db'}")
    table = sa.Table("numbers", sa.MetaData(), sa.Column("number", sa.Integer))
    table.metadata.create_all(engine)
    check = PreCheck(Exact(), table.c.number)
    check.load(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(table), [{"number": "5"}])
    with engine.connect() as connection:
        assert check.exists(connection, 5)
    assert not check.stats().is_complete
    check.close()
    engine.dispose()


@pytest.mark.parametrize(
    "kind",
    [
        sa.Float,
        sa.Numeric,
        sa.DateTime,
        sa.CHAR(3),
        sa.Enum("a", name="e"),
        sa.Uuid(as_uuid=False),
        sa.String(collation="NOCASE"),
        postgresql.CITEXT,
        postgresql.JSONB,
    ],
)
def test_types_with_an_equality_of_their_own_need_a_function(kind):
    column = sa.Table("t", sa.MetaData(), sa.Column("c", kind)).c.c
    with pytest.raises(ParameterError, match="pass normalize="):
        PreCheck(BloomFilter(10), column)
    PreCheck(BloomFilter(10), column, normalize=str)


def test_equal_texts_in_any_case_are_one_key_with_a_function(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'rows.db'}")
    table = sa.Table("people", sa.MetaData(), sa.Column("name", sa.String(collation="NOCASE")))
    table.metadata.create_all(engine)
    check = PreCheck(BloomFilter(100, fpr=1e-6), table.c.name, normalize=str.lower)
    check.load(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(table), [{"name": "Ada"}])
        assert check.exists(connection, "aDA")
    with engine.connect() as connection:
        assert check.exists(connection, "ADA")
        assert not check.exists(connection, "Alan")
    assert check.stats().queries_saved == 1
    check.close()
    engine.dispose()


@pytest.mark.parametrize("kind", [sa.Integer, sa.BigInteger, sa.Text, sa.Uuid, sa.LargeBinary, sa.Date])
def test_plain_types_need_none(kind):
    assert PreCheck(BloomFilter(10), sa.Table("t", sa.MetaData(), sa.Column("c", kind)).c.c)


def test_uuids_are_keys(engine):
    table = sa.Table("tokens", sa.MetaData(), sa.Column("token", sa.Uuid))
    table.metadata.drop_all(engine)
    table.metadata.create_all(engine)
    check = PreCheck(BloomFilter(100, fpr=1e-9), table.c.token)
    check.load(engine)
    token = uuid.uuid4()
    with engine.begin() as connection:
        connection.execute(sa.insert(table), [{"token": token}])
    with engine.connect() as connection:
        assert check.exists(connection, token)
        assert not check.exists(connection, uuid.uuid4())
    check.close()


def test_what_is_no_filter_column_or_engine_is_refused(engine):
    with pytest.raises(ParameterTypeError, match="got list"):
        PreCheck([], User.name)
    with pytest.raises(ParameterTypeError, match="got str"):
        PreCheck(BloomFilter(10), "name")
    with pytest.raises(ParameterError, match="one table"):
        PreCheck(BloomFilter(10), User.name, Other.user_name)
    with pytest.raises(ParameterError, match="one or more columns"):
        PreCheck(BloomFilter(10))
    with pytest.raises(ParameterTypeError, match="got str"):
        PreCheck(BloomFilter(10), User.name).watch("sqlite://")
    with pytest.raises(ParameterError, match="batch must be 1 or more, got 0"):
        PreCheck(BloomFilter(10), User.name).load(engine, batch=0)


def test_a_closed_pre_check_asks_the_database(engine, known, session):
    check = PreCheck(known, User.name)
    check.load(engine)
    check.close()
    session.add(User(name="ada"))
    session.commit()
    assert not known
    assert check.exists(session, "ada")
