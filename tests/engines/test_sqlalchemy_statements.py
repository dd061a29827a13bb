"""Guarantee: a pre-check reads the keys of statements, or sends lookups to the database if it cannot."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa
from engines.tables import Exact, Other, User, names
from hostile.container import File
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import StaticPool

from fullbloom import BloomFilter, FormatError, KeyTypeError, ParameterError, ParameterTypeError, loads
from fullbloom.engines.sqlalchemy import PreCheck

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


RENAMES = {
    "renamed table": [
        "create table staging as select * from users where 1 = 0",
        "insert into staging (id, user_name) values (1, 'x')",
        "drop table users",
        "alter table staging rename to users",
    ],
    "table from a query": ["drop table users", "create table users as select 1 as id, 'x' as user_name"],
    "renamed column": [
        "alter table users drop column user_name",
        "alter table users add user_name text default 'x'",
    ],
}


@pytest.mark.parametrize("statements", RENAMES.values(), ids=RENAMES)
@pytest.mark.parametrize("make", [sa.text, sa.DDL], ids=["text", "ddl"])
def test_rows_that_come_with_another_table_are_found(tmp_path, statements, make):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    table = sa.Table("users", sa.MetaData(), sa.Column("id", sa.Integer), sa.Column("user_name", sa.String))
    table.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(id=1, user_name="before"))
    check = PreCheck(BloomFilter(100), table.c.user_name)
    check.load(engine)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(make(statement))
    with engine.connect() as connection:
        assert check.exists(connection, "x")
    assert not check.stats().is_complete


OTHER_NAMES = {
    "schema": lambda: sa.Table("users", sa.MetaData(), sa.Column("user_name", sa.String), schema="main"),
    "case": lambda: sa.table("Users", sa.column("user_name")),
    "case of the column": lambda: sa.table("users", sa.column("USER_NAME")),
    "key": lambda: sa.Table("users", sa.MetaData(), sa.Column("user_name", sa.String, key="name")),
}


@pytest.mark.parametrize("describe", OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_a_table_may_be_described_by_several_objects(tmp_path, describe):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    table = sa.Table("users", sa.MetaData(), sa.Column("user_name", sa.String))
    table.metadata.create_all(engine)
    check = PreCheck(BloomFilter(100), table.c.user_name)
    check.load(engine)
    other = describe()
    (column,) = other.c
    with engine.begin() as connection:
        connection.execute(sa.insert(other), [{column.key: "ada"}])
    with engine.connect() as connection:
        assert check.exists(connection, "ada")


def test_a_table_of_another_schema_is_another_one():
    engine = sa.create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        connection.execute(sa.text("attach ':memory:' as archive"))
    tables = [
        sa.Table("users", sa.MetaData(), sa.Column("user_name", sa.String), schema=schema)
        for schema in ("main", "archive")
    ]
    for table in tables:
        table.metadata.create_all(engine)
    known = Exact()
    check = PreCheck(known, tables[0].c.user_name)
    check.load(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(tables[1]), [{"user_name": "ada"}])
    assert not known
    assert check.stats().is_complete


@pytest.mark.parametrize("onupdate", ["x", lambda: "x", sa.func.lower("X")], ids=["value", "function", "sql"])
def test_keys_that_an_update_sets_by_itself_are_read(tmp_path, onupdate):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    columns = [sa.Column("shop", sa.Integer), sa.Column("user_name", sa.String, onupdate=onupdate)]
    table = sa.Table("users", sa.MetaData(), *columns)
    table.metadata.create_all(engine)
    check = PreCheck(BloomFilter(100), table.c.user_name)
    check.load(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(shop=1, user_name="before"))
        connection.execute(sa.update(table).values(shop=2))
    with engine.connect() as connection:
        assert check.exists(connection, "x")
    assert check.stats().is_complete == (not isinstance(onupdate, sa.ClauseElement))


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


def test_a_filter_of_another_key_rule_is_refused_before_a_lookup_has_it():
    file = File.parse(BloomFilter(10).to_bytes())
    file.rule = 2
    with pytest.raises(FormatError, match="key rule 2, this release knows 1"):
        PreCheck(loads(file.build()), User.name)


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
