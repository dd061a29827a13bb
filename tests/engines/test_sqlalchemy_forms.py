"""Guarantee: no form of a statement hides a row from a pre-check, whatever it looks like."""

from __future__ import annotations

import random

import pytest
import sqlalchemy as sa
from engines.tables import Exact, Other, User, names
from sqlalchemy import event, orm
from sqlalchemy.dialects import postgresql, sqlite

from fullbloom.engines.sqlalchemy import PreCheck

TABLE = User.__table__
INSERTED = sa.insert(TABLE).values(user_name="x", shop=1).returning(TABLE.c.id)
TEXT = sa.text("insert into users (user_name, shop) values ('x', 1) returning id").columns(TABLE.c.id)
OTHER = sa.Table(
    "users",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("user_name", sa.String, key="name"),
    sa.Column("shop", sa.Integer),
)
CAPITALS = sa.table("Users", sa.column("ID"), sa.column("USER_NAME"))
#: A description whose keys are those of other columns.
CROSSED = sa.Table(
    "users",
    sa.MetaData(),
    sa.Column("user_name", sa.String, key="label"),
    sa.Column("shop", sa.Integer, key="user_name"),
)
TRANSLATED = sa.alias(TABLE, "u")

FORMS = {
    "text that returns rows": lambda session: session.execute(TEXT),
    "entities from text": lambda session: session.execute(
        sa.select(User).from_statement(
            sa.text("insert into users (user_name, shop) values ('x', 1) returning *")
        )
    ).all(),
    "entities from an insert": lambda session: session.execute(
        sa.select(User).from_statement(sa.insert(User).values(name="x", shop=1).returning(User))
    ).all(),
    "text of the driver": lambda session: session.connection().exec_driver_sql(
        "insert into users (user_name, shop) values ('x', 1)"
    ),
    "update of ordered values": lambda session: session.execute(
        sa.update(TABLE).ordered_values((TABLE.c.shop, 2), (TABLE.c.user_name, "x"))
    ),
    "update of an alias": lambda session: session.execute(
        sa.update(TRANSLATED).values(user_name="x").where(TRANSLATED.c.shop == 1)
    ),
    "update by another key": lambda session: session.execute(sa.update(OTHER).values(name="x")),
    "update in capitals": lambda session: (
        # PostgreSQL has no table of this name.
        session.execute(sa.update(CAPITALS).values(USER_NAME="x"))
        if session.get_bind().dialect.name == "sqlite"
        else session.execute(sa.update(TABLE).values(user_name="x"))
    ),
    "update by crossed keys": lambda session: session.execute(
        sa.update(CROSSED).values({"label": "x", "user_name": 3})
    ),
    "update by primary keys": lambda session: session.execute(sa.update(User), [{"id": 1, "name": "x"}]),
    "update with a parameter": lambda session: session.execute(
        sa.update(TABLE).where(TABLE.c.id == 1).values(user_name=sa.bindparam("given")), {"given": "x"}
    ),
    "update of parameters": lambda session: session.connection().execute(
        sa.update(TABLE).where(TABLE.c.id == sa.bindparam("number")), {"number": 1, "user_name": "x"}
    ),
}
#: Only PostgreSQL has these.
POSTGRESQL_FORMS = {
    "insert in a query": lambda session: session.execute(sa.select(INSERTED.cte())).all(),
    "insert in a delete": lambda session: session.execute(
        sa.delete(Other).where(Other.id.in_(sa.select(INSERTED.cte().c.id)))
    ),
    "insert in an insert": lambda session: session.execute(
        sa.insert(Other).from_select(
            ["user_name"], sa.select(sa.cast(INSERTED.cte("inserted").c.id, sa.String))
        )
    ),
    "update in a query": lambda session: session.execute(
        sa.select(sa.update(TABLE).values(user_name="x").returning(TABLE.c.id).cte())
    ).all(),
    "text in a query": lambda session: session.execute(sa.select(TEXT.cte())).all(),
    "renamed table": lambda session: [
        session.execute(sa.text(line))
        for line in (
            "create table later (id serial, user_name text, shop int)",
            "insert into later (user_name, shop) values ('x', 1)",
            "drop table users",
            "alter table later rename to users",
        )
    ],
}


def write(engine, call):
    known = Exact()
    with orm.Session(engine) as session:
        session.add(User(name="before", shop=1))
        session.commit()
    check = PreCheck(known, User.name)
    check.load(engine)
    with orm.Session(engine) as session:
        call(session)
        session.commit()
    assert "x" in names(engine)
    with engine.connect() as connection:
        assert check.exists(connection, "x")
    check.close()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_row_is_found_whatever_wrote_it(engine, form):
    write(engine, form)


@pytest.mark.parametrize("form", POSTGRESQL_FORMS.values(), ids=POSTGRESQL_FORMS)
def test_a_row_is_found_whatever_wrote_it_in_postgresql(database, form):
    engine = sa.create_engine(database)
    User.metadata.drop_all(engine)
    User.metadata.create_all(engine)
    write(engine, form)
    engine.dispose()


def test_a_statement_that_was_prepared_before_the_load_is_not_trusted(database):
    engine = sa.create_engine(database)
    User.metadata.drop_all(engine)
    User.metadata.create_all(engine)
    check = PreCheck(Exact(), User.name)
    with engine.connect() as connection:
        connection.execute(sa.text("prepare add_x as insert into users (user_name, shop) values ('x', 1)"))
        connection.rollback()
        check.load(engine)
        connection.execute(sa.text("execute add_x"))
        connection.commit()
        assert check.exists(connection, "x")
    check.close()
    engine.dispose()


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("is_text", [True, False])
def test_a_key_that_follows_another_one_is_found(database, depth, is_text):
    """Of columns that refer to others with ``on update cascade``."""
    engine, metadata = sa.create_engine(database), sa.MetaData()

    def reference(target):
        return sa.ForeignKey(target, onupdate="CASCADE")

    top = sa.Table(
        "top", metadata, sa.Column("code", sa.String, primary_key=True), sa.Column("n", sa.Integer)
    )
    sa.Table("middle", metadata, sa.Column("code", sa.String, reference("top.code"), primary_key=True))
    low = sa.Table("low", metadata, sa.Column("code", sa.String, reference("middle.code")))
    metadata.drop_all(engine)
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(top).values(code="before", n=1))
        for table in (metadata.tables["middle"], low):
            connection.execute(sa.insert(table).values(code="before"))
    watched = low if depth == 2 else metadata.tables["middle"]
    check = PreCheck(Exact(), watched.c.code)
    check.load(engine)
    with engine.begin() as connection:
        connection.execute(sa.update(top).values(n=2))
    assert check.stats().is_complete
    with engine.begin() as connection:
        connection.execute(
            sa.text("update top set code = 'x'") if is_text else sa.update(top).values(code="x")
        )
    with engine.connect() as connection:
        assert check.exists(connection, "x")
    check.close()
    metadata.drop_all(engine)
    engine.dispose()


def insert_again(top, dialect):
    statement = {"postgresql": postgresql, "sqlite": sqlite}[dialect].insert(top).values(id=1, code="q")
    return statement.on_conflict_do_update(index_elements=["id"], set_={"code": "x"})


def delete_in_query(top, dialect):
    if dialect == "sqlite":
        return sa.delete(top).where(top.c.id == 1)
    return sa.select(sa.delete(top).where(top.c.id == 1).returning(top.c.id).cte())


#: Writes to another table, after which the database writes the key x.
FOLLOWED = {
    "delete": lambda top, _: sa.delete(top).where(top.c.id == 1),
    "delete in text": lambda _top, _: sa.text("delete from top where id = 1"),
    "delete in a query": delete_in_query,
    "delete of what it refers to": lambda top, _: sa.delete(top.metadata.tables["above"]).where(
        sa.text("id = 1")
    ),
    "update": lambda top, _: sa.update(top).where(top.c.id == 1).values(code="x"),
    "insert with an update": insert_again,
}


@pytest.mark.parametrize("follow", FOLLOWED.values(), ids=FOLLOWED)
def test_a_key_that_the_database_writes_after_a_change_of_another_table_is_found(engine, follow):
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda driver, _: driver.execute("pragma foreign_keys = on"))
        engine.dispose()
    metadata = sa.MetaData()
    sa.Table("above", metadata, sa.Column("id", sa.Integer, primary_key=True))
    top = sa.Table(
        "top",
        metadata,
        sa.Column("id", sa.Integer, sa.ForeignKey("above.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("code", sa.String, unique=True),
    )
    key = sa.ForeignKey("top.code", ondelete="SET DEFAULT", onupdate="CASCADE")
    if follow is FOLLOWED["update"]:
        key = sa.ForeignKey("top.code", onupdate="SET DEFAULT")
    low = sa.Table("low", metadata, sa.Column("code", sa.String, key, server_default="x"))
    metadata.drop_all(engine)
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.text("insert into above values (1)"))
        connection.execute(sa.insert(top).values(id=1, code="before"))
        if "update" not in next(name for name, one in FOLLOWED.items() if one is follow):
            connection.execute(sa.text("insert into above values (2)"))
            connection.execute(sa.insert(top).values(id=2, code="x"))
        connection.execute(sa.insert(low).values(code="before"))
    check = PreCheck(Exact(), low.c.code)
    check.load(engine)
    with engine.begin() as connection:
        connection.execute(sa.select(top))
        connection.execute(sa.insert(low).values(code=None))
    assert check.stats().is_complete
    with engine.begin() as connection:
        connection.execute(follow(top, engine.dialect.name))
    with engine.connect() as connection:
        assert "x" in connection.execute(sa.select(low.c.code)).scalars().all()
        assert check.exists(connection, "x")
    check.close()
    metadata.drop_all(engine)


QUERIES = {
    "for update": lambda: sa.select(User).with_for_update(),
    "replace": lambda: sa.select(sa.func.replace(User.name, "a", "b")),
    "text": lambda: sa.text("select replace(user_name, 'a', 'b') from users"),
    "case in text": lambda: sa.text("select case when shop > 1 then 1 end from users"),
    "expression": lambda: sa.select(sa.select(User.shop).cte().c.shop),
    "update of another column": lambda: sa.update(User).where(User.name == "ada").values(shop=3),
    "update of another column, of an alias": lambda: sa.update(TRANSLATED).values(shop=3),
    "delete": lambda: sa.delete(User).where(User.name == "ada"),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_what_adds_no_row_leaves_the_filter_complete(engine, check, session, query):
    if engine.dialect.name == "sqlite" and "FOR UPDATE" in str(query()):
        return
    session.execute(query())
    session.commit()
    assert check.stats().is_complete


def undo(session, name):
    with pytest.raises(ZeroDivisionError), session.begin_nested():
        session.add(User(name=name))
        session.flush()
        raise ZeroDivisionError


def nest(session, name):
    with session.begin_nested():
        session.add(User(name=name))


def fail(session, _name):
    with pytest.raises(sa.exc.StatementError):
        session.execute(sa.text("select :missing"))


def change(session, name):
    first = session.execute(sa.select(User.id).limit(1)).scalar()
    session.execute(sa.update(User).where(User.id == first).values(name=name))


#: Steps of a random transaction.
STEPS = [
    undo,
    nest,
    fail,
    change,
    lambda session, name: session.execute(sa.insert(User).values(name=name, shop=1)),
    lambda session, name: session.add(User(name=name)),
    lambda session, name: session.connection().execute(sa.insert(TABLE), [{"user_name": name, "shop": 1}]),
    lambda session, name: session.execute(sa.insert(User), [{"name": f"{name}:{one}"} for one in range(3)]),
    lambda session, name: session.execute(
        sa.text(f"insert into users (user_name, shop) values ('{name}', 1)")
    ),
    lambda session, _: session.execute(sa.select(User)).all(),
    lambda session, _: session.rollback(),
    lambda session, _: session.commit(),
]


@pytest.mark.parametrize("seed", range(20))
def test_random_transactions_hide_no_row(engine, seed):
    print("seed", seed)
    draw = random.Random(seed)
    check = PreCheck(Exact(), User.name)
    check.load(engine)
    with orm.Session(engine) as session:
        for _ in range(40):
            draw.choice(STEPS)(session, f"{draw.randrange(10**9)}")
            if draw.random() < 0.1:
                check.load(engine)
            with engine.connect() as other:
                present = {name for (name,) in other.execute(sa.select(TABLE.c.user_name))}
                missed = [name for name in present if not check.exists(other, name)]
            assert not missed
    check.close()
